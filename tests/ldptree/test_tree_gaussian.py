"""Inference on a tree equals the textbook answer with the full covariance matrix."""

from __future__ import annotations

import numpy as np
import pytest

from ldptree.inference.tree_gaussian import (
    Levels,
    fit_innovations,
    log_likelihoods,
    posterior,
    variance_of_sum,
)


def random_parents(n_nodes: int, rng: np.random.Generator) -> np.ndarray:
    """A random tree, not always binary, its ids shuffled so that no order of nodes may be assumed."""
    parent = np.array([-1] + [int(rng.integers(max(0, i - 6), i)) for i in range(1, n_nodes)])
    name = rng.permutation(n_nodes)
    shuffled = np.full(n_nodes, -1)
    shuffled[name[1:]] = name[parent[1:]]
    return shuffled


def depths_of(parent: np.ndarray) -> np.ndarray:
    depth = np.zeros(parent.size, dtype=int)
    for node in range(parent.size):
        at = node
        while parent[at] >= 0:
            at, depth[node] = parent[at], depth[node] + 1
    return depth


def prior_covariance(parent: np.ndarray, innovation: np.ndarray) -> np.ndarray:
    depth = depths_of(parent)
    ancestry = np.zeros((parent.size, parent.size))
    for node in range(parent.size):
        at = node
        while at >= 0:
            ancestry[node, at] = 1.0
            at = parent[at]
    return ancestry @ np.diag(innovation[depth]) @ ancestry.T


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("zeros", ["none", "root", "depth", "all"])
def test_posterior_and_likelihood_equal_the_dense_gaussian(seed: int, zeros: str) -> None:
    rng = np.random.default_rng(seed)
    parent = random_parents(23, rng)
    levels = Levels.of(parent)
    innovation = rng.uniform(0.01, 1.0, levels.max_depth + 1)
    if zeros == "root":
        innovation[0] = 0.0
    elif zeros == "depth":
        innovation[1::2] = 0.0
    elif zeros == "all":
        innovation[:] = 0.0
    variance = np.where(rng.random(23) < 0.6, rng.uniform(0.05, 2.0, 23), np.inf)
    observed = np.where(np.isfinite(variance), rng.normal(size=23), np.nan)

    prior = prior_covariance(parent, innovation)
    seen = np.flatnonzero(np.isfinite(variance))
    noisy = prior[np.ix_(seen, seen)] + np.diag(variance[seen])
    gain = prior[:, seen] @ np.linalg.inv(noisy)
    sign, logdet = np.linalg.slogdet(2 * np.pi * noisy)
    expected_likelihood = -0.5 * (logdet + observed[seen] @ np.linalg.solve(noisy, observed[seen]))

    got = posterior(levels, observed, variance, innovation)
    assert sign == 1
    np.testing.assert_allclose(got.mean, gain @ observed[seen], atol=1e-10)
    np.testing.assert_allclose(got.variance, np.diag(prior - gain @ prior[seen]), atol=1e-10)
    assert got.log_likelihood == pytest.approx(expected_likelihood, abs=1e-9)
    assert log_likelihoods(levels, observed, variance, innovation[None]) == [got.log_likelihood]
    weights = rng.uniform(0.0, 1.0, 23)
    of_sum = weights @ (prior - gain @ prior[seen]) @ weights
    assert variance_of_sum(levels, variance, innovation, weights) == pytest.approx(of_sum, rel=1e-6, abs=1e-9)


def test_the_expected_steps_equal_the_dense_gaussian() -> None:
    rng = np.random.default_rng(3)
    parent = random_parents(31, rng)
    levels, depth = Levels.of(parent), depths_of(parent)
    innovation = rng.uniform(0.01, 1.0, levels.max_depth + 1)
    variance, observed = rng.uniform(0.05, 2.0, 31), rng.normal(size=31)
    prior = prior_covariance(parent, innovation)
    gain = prior @ np.linalg.inv(prior + np.diag(variance))
    second = prior - gain @ prior + np.outer(gain @ observed, gain @ observed)
    steps = np.diag(second).copy()
    child = np.flatnonzero(parent >= 0)
    steps[child] += second[parent[child], parent[child]] - 2 * second[child, parent[child]]
    expected = [steps[depth == k].mean() for k in range(levels.max_depth + 1)]
    np.testing.assert_allclose(
        posterior(levels, observed, variance, innovation).innovation, expected, rtol=1e-9
    )


def test_each_round_of_the_fit_raises_the_likelihood() -> None:
    rng = np.random.default_rng(5)
    parent = np.concatenate([[-1], (np.arange(1, 255) - 1) // 2])
    levels = Levels.of(parent)
    leaf = np.arange(255) >= 127
    variance = np.where(leaf, 0.02, np.inf)
    observed = rng.normal(0, 0.3, 255)
    likelihoods = []
    for rounds in range(6):
        fitted = fit_innovations(levels, observed, variance, root=0.05, start=0.02, rounds=rounds, floor=1e-5)
        likelihoods.append(float(log_likelihoods(levels, observed, variance, fitted[None])[0]))
    assert np.all(np.diff(likelihoods) > 0)
    assert fitted[0] == 0.05


def test_several_sets_of_observations_at_once_are_what_each_is_alone() -> None:
    rng = np.random.default_rng(7)
    levels = Levels.of(random_parents(40, rng))
    variance = np.where(rng.random((3, 40)) < 0.7, rng.uniform(0.05, 2.0, (3, 40)), np.inf)
    observed = rng.normal(size=(3, 40))
    how = {"root": 0.05, "start": 0.02, "rounds": 4, "floor": 1e-5}
    fitted = fit_innovations(levels, observed, variance, **how)
    together = posterior(levels, observed, variance, fitted)
    likelihoods = log_likelihoods(levels, observed[0], variance[0], fitted)
    for k in range(3):
        np.testing.assert_array_equal(
            fitted[k], fit_innovations(levels, observed[k], variance[k], **how), strict=True
        )
        alone = posterior(levels, observed[k], variance[k], fitted[k])
        np.testing.assert_array_equal(together.mean[k], alone.mean)
        np.testing.assert_array_equal(together.variance[k], alone.variance)
        assert together.log_likelihood[k] == pytest.approx(alone.log_likelihood, rel=1e-12)
        first = posterior(levels, observed[0], variance[0], fitted[k])
        assert likelihoods[k] == pytest.approx(first.log_likelihood, rel=1e-12)


def test_nothing_observed_leaves_the_prior() -> None:
    levels = Levels.of(np.array([-1, 0, 0, 1, 1]))
    got = posterior(levels, np.full(5, np.nan), np.full(5, np.inf), np.array([1.0, 0.5, 0.25]))
    np.testing.assert_array_equal(got.mean, np.zeros(5))
    np.testing.assert_allclose(got.variance, [1.0, 1.5, 1.5, 1.75, 1.75])
    assert got.log_likelihood == 0.0


def test_a_root_alone_is_a_tree() -> None:
    got = posterior(Levels.of(np.array([-1])), np.array([1.0]), np.array([1.0]), np.array([1.0]))
    assert got.mean[0] == pytest.approx(0.5)
    assert got.variance[0] == pytest.approx(0.5)


@pytest.mark.parametrize("parent", [[0, 0], [-1, -1], [-1, 2, 1]])
def test_what_is_not_a_tree_is_refused(parent: list[int]) -> None:
    with pytest.raises(ValueError, match=r"tree has one node|not joined"):
        Levels.of(np.array(parent))
