"""Pruning makes a too deep tree nearly harmless, and the LPCT synthetic pair scores as measured."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from example_models import complete_tree, protocol_of, totals_of

from ldptree.encoding import Encoding, NumericFeature
from ldptree.families.tree_fit import fit_model
from ldptree.inference.depth import automatic_depth
from ldptree.inference.pruning import PRUNINGS, prune_by_variance
from ldptree.inference.weighting import gather_class_evidence, weigh_evidence
from ldptree.partition.max_edge import grow_max_edge
from ldptree.partition.tree import Partition

SQUARE = Encoding((NumericFeature("x1", 0.0, 1.0), NumericFeature("x2", 0.0, 1.0)))


def share_private(X: np.ndarray) -> np.ndarray:
    """eta_P of LPCT section 6.1, with the amplitude of its Figure 4 (as printed it exceeds 1)."""
    first, second = X.T
    size = np.abs(1.5 * first - 0.5) * np.abs(1.5 * second - 0.5) * np.maximum(0, 1 - np.abs(2 * second - 1))
    return 0.5 + np.sign(first - 1 / 3) * np.sign(second - 1 / 3) * 0.4 * size**0.1


def share_public(X: np.ndarray, gamma: float) -> np.ndarray:
    """eta_Q of LPCT section 6.1."""
    z = 2.5 * (share_private(X) - 0.5)
    return 0.5 + 0.4 * np.sign(z) * np.abs(z) ** gamma


@cache
def accuracy(
    gamma: float, epsilon: float, depth: int | None, lam: str | float, prune: str, n_runs: int = 8
) -> float:
    """Mean accuracy over runs of 10,000 private rows and LPCT's number of public rows, on 20,000 fresh points."""
    scores = []
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        X, public_X, test_X = (rng.random((n, 2)) for n in (10_000, 50 if gamma < 1 else 1_000, 20_000))
        y = (rng.random(10_000) < share_private(X)).astype(int)
        public_y = (rng.random(len(public_X)) < share_public(public_X, gamma)).astype(int)
        p = automatic_depth(2, 10_000, epsilon, 2, "oue") if depth is None else depth
        tree = grow_max_edge(public_X.astype(np.float32), public_y, n_classes=2, depth=p)
        protocol = protocol_of(tree, SQUARE, epsilon=epsilon)
        totals = totals_of(protocol, tally(tree, X, y), rng)
        model = fit_model(protocol, totals, tally(tree, public_X, public_y), lam=lam, prune=prune)
        share = share_private(test_X)
        scores.append(np.where(model.predict(test_X) == 1, share, 1 - share).mean())
    return float(np.mean(scores))


def tally(tree: Partition, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    cells = tree.apply(X.astype(np.float32))
    return np.bincount(2 * cells + y, minlength=2 * tree.n_leaves).reshape(-1, 2)


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [
        pytest.param(1.0, 0.673, marks=pytest.mark.slow),
        (2.0, 0.699),
        pytest.param(4.0, 0.735, marks=pytest.mark.slow),
    ],
)
def test_the_synthetic_pair_scores_as_measured(epsilon: float, expected: float) -> None:
    # Standard error of eight runs about 0.006.
    assert accuracy(0.5, epsilon, None, "auto", "none") == pytest.approx(expected, abs=0.02)
    assert accuracy(0.5, epsilon, None, "learned", "smooth") == pytest.approx(expected, abs=0.025)


def test_smoothing_rescues_a_tree_that_is_too_deep() -> None:
    plain, smooth = (accuracy(0.5, 2.0, 8, "learned", prune, 4) for prune in ("none", "smooth"))
    assert plain < 0.60
    assert smooth > 0.63
    assert accuracy(0.5, 2.0, 8, "auto", "variance", 4) > plain + 0.03


def test_smoothing_costs_nothing_where_there_is_little_noise() -> None:
    # Gaussian smoothing alone draws children of opposite sign together and loses .004 here (standard error .0005).
    plain, smooth = (accuracy(0.5, 8.0, None, "auto", prune) for prune in ("none", "smooth"))
    assert smooth > plain - 0.002


def balanced_evidence(rng: np.random.Generator, depth: int = 4):
    cells = 2**depth
    return gather_class_evidence(
        complete_tree(depth),
        private=rng.normal(300, 60, (cells, 2)),
        margin_noise=np.full(cells, 1_800.0),
        mass_noise=np.full(cells, 7_200.0),
        public=rng.integers(0, 9, (cells, 2)),
        n_private=600 * cells,
        class_index=1,
    )


def walk(found, bound: float, node: int) -> int:
    """The walk of LPCT section 5 written as it is said: up from the node, one ancestor after the other."""
    path = [node]
    order = list(found.levels.order)
    while (above := found.levels.above[order.index(path[-1])]) >= 0:
        path.append(order[above])
    spread = 0.25
    s = found.private_margin / np.sqrt(found.private_noise + spread * found.private_mass)
    t = found.public_margin / np.sqrt(np.maximum(spread * found.public_mass, 1e-300))
    statistic = [math.hypot(s[k], t[k]) if s[k] * t[k] > 0 else max(abs(s[k]), abs(t[k])) for k in path]
    enough = [k for k, value in zip(path, statistic, strict=True) if value >= math.sqrt(bound)]
    return enough[0] if enough else path[int(np.argmax(statistic))]


@pytest.mark.parametrize("bound", [0.0, 1.0, 2.0, 9.0, 1e9])
def test_the_variance_rule_stops_where_the_evidence_suffices(bound: float) -> None:
    found = balanced_evidence(np.random.default_rng(7))
    got = prune_by_variance(found, weigh_evidence(found, "auto"), bound)
    assert list(got.decided_at) == [walk(found, bound, node) for node in range(31)]
    np.testing.assert_array_equal(got.theta, got.theta[got.decided_at])


def test_the_variance_rule_follows_the_stronger_source() -> None:
    found = balanced_evidence(np.random.default_rng(8))
    got = prune_by_variance(found, weigh_evidence(found, "auto"), 0.0)
    s = found.private_margin / np.sqrt(found.private_noise + found.private_mass / 4)
    t = found.public_margin / np.sqrt(np.maximum(found.public_mass / 4, 1e-300))
    np.testing.assert_array_equal(np.sign(got.theta), np.sign(np.where(np.abs(s) >= np.abs(t), s, t)))
    private = prune_by_variance(found, weigh_evidence(found, 0.0), 0.0)
    np.testing.assert_array_equal(np.sign(private.theta), np.sign(s))
    public = prune_by_variance(found, weigh_evidence(found, math.inf), 0.0)
    np.testing.assert_array_equal(np.sign(public.theta), np.sign(t))


def test_smoothing_never_makes_a_cell_less_sure() -> None:
    found = balanced_evidence(np.random.default_rng(9))
    weighted = weigh_evidence(found, "learned")
    at = found.cell_nodes
    assert np.all(PRUNINGS["smooth"](found, weighted).variance[at] < weighted.variance[at])


def test_no_pruning_leaves_every_node_as_it_was() -> None:
    found = balanced_evidence(np.random.default_rng(10))
    weighted = weigh_evidence(found, 1.0)
    got = PRUNINGS["none"](found, weighted)
    np.testing.assert_array_equal(got.theta, weighted.theta)
    np.testing.assert_array_equal(got.decided_at, np.arange(31))
