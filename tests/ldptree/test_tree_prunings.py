"""All prunings are averaged exactly: against a sum over every one of them, and with the guarantees that follow."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ldptree.inference.pruning import average_prunings
from ldptree.inference.tree_gaussian import Levels

PARENT = np.array([-1, 0, 0, 1, 1, 2, 2, 3, 3])
"""Cells 4, 5, 6, 7, 8; node 3 has two cells below."""
CELLS = np.array([4, 5, 6, 7, 8])
CHILDREN = {node: np.flatnonzero(node == PARENT) for node in range(9)}


def prunings(node: int = 0) -> list[tuple[float, list[list[int]]]]:
    """Every pruning below a node: (how many nodes it parts, how many it leaves whole), and its groups of cells."""
    if not CHILDREN[node].size:
        return [((0, 0), [[node]])]
    found = [((0, 1), [cells_below(node)])]
    for parts in itertools.product(*(prunings(child) for child in CHILDREN[node])):
        counts = (1 + sum(p[0][0] for p in parts), sum(p[0][1] for p in parts))
        found.append((counts, [group for _, groups in parts for group in groups]))
    return found


def cells_below(node: int) -> list[int]:
    return [node] if not CHILDREN[node].size else [c for k in CHILDREN[node] for c in cells_below(k)]


def dense(
    observed: np.ndarray, variance: np.ndarray, weights: np.ndarray, spread: float, split: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean and variance of weights @ values of the cells, and the log likelihood, pruning by pruning."""
    seen = np.isfinite(variance[CELLS])
    y, v = observed[CELLS][seen], variance[CELLS][seen]
    chances, means, squares = [], [], []
    for (n_parted, n_whole), groups in prunings():
        same = np.array([[any(a in g and b in g for g in groups) for b in CELLS] for a in CELLS])
        prior = spread * same
        noisy = prior[np.ix_(seen, seen)] + np.diag(v)
        gain = prior[:, seen] @ np.linalg.inv(noisy)
        log_density = -0.5 * (
            np.linalg.slogdet(noisy)[1] + y @ np.linalg.solve(noisy, y) + y.size * math.log(2 * math.pi)
        )
        chances.append(split**n_parted * (1 - split) ** n_whole * math.exp(log_density))
        means.append(weights @ gain @ y)
        squares.append(
            np.einsum("nc,cd,nd->n", weights, prior - gain @ prior[seen], weights) + means[-1] ** 2
        )
    share = np.array(chances) / sum(chances)
    mean = share @ np.array(means)
    return mean, share @ np.array(squares) - mean**2, math.log(sum(chances))


@pytest.mark.parametrize("seed", range(5))
def test_the_average_is_the_sum_over_every_pruning(seed: int) -> None:
    rng = np.random.default_rng(seed)
    observed, variance, mass = np.full(9, np.nan), np.full(9, np.inf), np.zeros(9)
    observed[CELLS], variance[CELLS] = rng.normal(0, 0.3, 5), rng.uniform(0.01, 0.2, 5)
    variance[CELLS[seed]] = np.inf  # a cell without any evidence
    of_cells = rng.uniform(1, 9, 5)
    for node in range(9):
        mass[node] = of_cells[np.isin(CELLS, cells_below(node))].sum()
    weights = np.array([np.isin(CELLS, cells_below(node)) * of_cells / mass[node] for node in range(9)])
    got = average_prunings(Levels.of(PARENT), observed, variance, mass, spread=0.05, split=0.7)
    mean, spread, log_likelihood = dense(observed, variance, weights, 0.05, 0.7)
    np.testing.assert_allclose(got.mean, mean, atol=1e-12)
    np.testing.assert_allclose(got.variance, spread, atol=1e-12)
    assert got.log_likelihood == pytest.approx(log_likelihood, abs=1e-10)


def balanced(depth: int) -> np.ndarray:
    return np.concatenate([[-1], (np.arange(1, 2 ** (depth + 1) - 1) - 1) // 2])


def test_cells_that_are_alike_are_pooled_and_a_border_stays_sharp() -> None:
    rng = np.random.default_rng(4)
    parent = balanced(6)
    is_cell = np.arange(parent.size) >= 63
    truth = np.where(np.arange(64) < 32, 0.2, -0.2)
    observed, variance = np.full(parent.size, np.nan), np.where(is_cell, 0.02, np.inf)
    observed[is_cell] = truth + rng.normal(0, math.sqrt(0.02), 64)
    got = average_prunings(
        Levels.of(parent), observed, variance, np.ones(parent.size), spread=0.05, split=0.8
    )
    errors = got.mean[is_cell] - truth
    assert np.sqrt(np.mean(errors**2)) < 0.4 * math.sqrt(0.02)
    assert abs(errors[31] - errors[32]) < 0.1  # the cells at the border do not lean to each other


def test_a_root_alone_and_a_tree_without_evidence() -> None:
    one = average_prunings(
        Levels.of(np.array([-1])), np.array([1.0]), np.array([1.0]), np.ones(1), spread=1.0, split=0.5
    )
    assert (one.mean[0], one.variance[0]) == (pytest.approx(0.5), pytest.approx(0.5))
    none = average_prunings(
        Levels.of(PARENT), np.full(9, np.nan), np.full(9, np.inf), np.ones(9), spread=0.1, split=0.8
    )
    np.testing.assert_array_equal(none.mean, 0.0)
    np.testing.assert_allclose(none.variance[CELLS], 0.1)
    assert none.log_likelihood == pytest.approx(0.0, abs=1e-12)


def test_extreme_evidence_overflows_nowhere() -> None:
    parent = balanced(4)
    is_cell = np.arange(parent.size) >= 15
    with np.errstate(all="raise", under="ignore"):
        got = average_prunings(
            Levels.of(parent),
            np.where(is_cell, np.where(np.arange(31) % 2, 0.5, -0.5), np.nan),
            np.where(is_cell, 1e-9, np.inf),
            np.ones(31),
            spread=0.05,
            split=0.8,
        )
    np.testing.assert_allclose(np.abs(got.mean[is_cell]), 0.5, atol=1e-6)
    assert np.isfinite(got.log_likelihood)
