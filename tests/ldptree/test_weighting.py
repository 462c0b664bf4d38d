"""What is believed: public rows are trusted where the reports agree with them, and no further."""

from __future__ import annotations

import math

import numpy as np
import pytest
from example_models import complete_tree

from ldptree.inference import model_uncertainty
from ldptree.inference.discrepancy import ALIKE, NATS_PER_COMPONENT, ROOT_GRID, STEP_GRID, DiscrepancyPrior
from ldptree.inference.pruning import prune_nothing, smooth_tree
from ldptree.inference.weighting import (
    Evidence,
    automatic_lam,
    cell_masses,
    gather_class_evidence,
    public_shares,
    weigh_evidence,
)


def evidence(
    private_share: np.ndarray,
    public_share: np.ndarray,
    *,
    n_private: int = 20_000,
    n_public: int = 4_000,
    noise: float = 200.0,
    seed: int = 0,
) -> Evidence:
    """Cells equally full; class 1 has these shares among private and public people; noise variance of a margin."""
    rng = np.random.default_rng(seed)
    cells = private_share.size
    private = rng.multinomial(n_private, np.stack([1 - private_share, private_share], 1).ravel() / cells)
    public = rng.multinomial(n_public, np.stack([1 - public_share, public_share], 1).ravel() / cells)
    noisy = private + rng.normal(0.0, math.sqrt(2 * noise), 2 * cells)
    return gather_class_evidence(
        complete_tree(int(math.log2(cells))),
        private=noisy.reshape(cells, 2),
        margin_noise=np.full(cells, noise),
        mass_noise=np.full(cells, 4 * noise),
        public=public.reshape(cells, 2),
        n_private=n_private,
        class_index=1,
    )


SHARES = np.random.default_rng(99).uniform(0.2, 0.8, 32)


@pytest.mark.parametrize("seed", range(6))
def test_people_who_are_alike_are_found_alike(seed: int) -> None:
    # A false alarm needs 3 nats from noise; none in these six draws.
    weighted = weigh_evidence(evidence(SHARES, SHARES, seed=seed), "learned")
    assert weighted.prior == ALIKE
    np.testing.assert_array_equal(weighted.discrepancy, 0.0)
    np.testing.assert_array_equal(weighted.discrepancy_variance, 0.0)


def test_a_constant_shift_is_found_and_removed() -> None:
    found = evidence(SHARES, SHARES - 0.15)
    learned, trusting = weigh_evidence(found, "learned"), weigh_evidence(found, "auto")
    truth, at = SHARES - 0.5, found.cell_nodes
    assert learned.discrepancy[0] == pytest.approx(0.15, abs=0.04)
    assert np.mean((learned.theta[at] - truth) ** 2) < 0.5 * np.mean((trusting.theta[at] - truth) ** 2)


def test_a_shift_of_one_half_of_the_tree_is_found_there_only() -> None:
    shifted = np.where(np.arange(32) < 16, SHARES, SHARES - 0.2)
    weighted = weigh_evidence(evidence(SHARES, shifted, noise=50.0), "learned")
    left, right = weighted.discrepancy[1], weighted.discrepancy[2]
    assert abs(left) < 0.06
    assert right == pytest.approx(0.2, abs=0.06)


def test_the_stated_variance_is_the_error_that_occurs() -> None:
    z = []
    for seed in range(60):
        found = evidence(SHARES, SHARES - 0.1, seed=seed)
        weighted = weigh_evidence(found, "learned")
        at = found.cell_nodes
        z.append((weighted.theta[at] - (SHARES - 0.5)) / np.sqrt(weighted.variance[at]))
    # 1,920 errors: the mean square of correct standard scores is 1; masses are estimated and margins bounded by 1/4.
    assert 0.75 < np.mean(np.square(z)) < 1.25


def test_lam_0_ignores_the_public_rows_and_infinity_the_reports() -> None:
    found, other = evidence(SHARES, SHARES, seed=1), evidence(SHARES, 1 - SHARES, seed=1)
    at = found.cell_nodes
    private, public = weigh_evidence(found, 0), weigh_evidence(found, math.inf)
    np.testing.assert_allclose(private.theta, found.private_margin / found.private_mass)
    np.testing.assert_array_equal(np.sign(weigh_evidence(other, 0).theta), np.sign(other.private_margin))
    np.testing.assert_allclose(public.theta[at], found.public_margin[at] / found.public_mass[at])
    assert set(private.private_share) == {1.0}
    assert set(public.private_share) == {0.0}


def test_a_cell_without_public_rows_rests_on_its_reports() -> None:
    found = evidence(SHARES, SHARES, n_public=20)
    empty = found.cell_nodes[found.public_mass[found.cell_nodes] == 0]
    assert empty.size
    for lam in ("learned", "auto", 1.0):
        weighted = weigh_evidence(found, lam)
        np.testing.assert_allclose(weighted.theta[empty], (found.private_margin / found.private_mass)[empty])
        np.testing.assert_allclose(weighted.private_share[empty], 1.0)
        assert np.isfinite(weighted.variance).all()
    nothing = weigh_evidence(found, math.inf)
    np.testing.assert_array_equal(nothing.theta[empty], 0.0)
    assert np.isinf(nothing.variance[empty]).all()


def test_masses_are_positive_and_follow_the_counts_only_as_far_as_they_are_sure() -> None:
    rng = np.random.default_rng(0)
    public, truth = np.full(64, 10.0), rng.choice([100.0, 900.0], 64)
    n = int(truth.sum())
    sure = cell_masses(truth, np.zeros(64), public, n)
    np.testing.assert_allclose(sure, truth, rtol=0.05)
    noise = np.full(64, 1e8)
    unsure = cell_masses(truth + rng.normal(0, 1e4, 64), noise, public, n)
    assert np.all(unsure >= 1)
    assert np.std(unsure) < 0.6 * np.std(truth + rng.normal(0, 1e4, 64))


def test_an_empty_cell_is_a_sign_of_few_people_only_where_public_rows_are_many() -> None:
    rng = np.random.default_rng(1)
    few = public_shares(rng.multinomial(50, np.full(256, 1 / 256)).astype(float))
    assert few.min() > 0.6 / 256
    uneven = rng.dirichlet(np.full(64, 0.3))
    counts = rng.multinomial(20_000, uneven).astype(float)
    np.testing.assert_allclose(public_shares(counts), counts / 20_000, atol=0.001)
    np.testing.assert_allclose(public_shares(np.zeros(8)), 1 / 8)
    for counts in (np.array([7.0]), np.array([0.0, 3e6]), rng.integers(0, 9, 40).astype(float)):
        shares = public_shares(counts)
        assert shares.min() > 0
        assert shares.sum() == pytest.approx(1.0)


def test_the_automatic_lam_is_the_inverse_variance_weight() -> None:
    # 16 cells of 625 people; margin variance of a cell n v_A + n / (4 L), of as many public rows n / (4 L).
    n, cells, noise = 10_000, 16, 1.84
    assert automatic_lam(cells, noise) == pytest.approx((n * noise + n / (4 * cells)) / (n / (4 * cells)))
    found = evidence(SHARES, SHARES)
    assert weigh_evidence(found, "auto").lam == pytest.approx(automatic_lam(32, 200.0 / 20_000))


@pytest.mark.parametrize("lam", [1e154, 1e200, 1e308])
@pytest.mark.parametrize("rule", ["margin", "ratio"])
def test_a_huge_lam_is_as_good_as_public_rows_alone(lam: float, rule: str) -> None:
    found = evidence(SHARES, SHARES)
    huge, alone = weigh_evidence(found, lam, rule), weigh_evidence(found, math.inf, rule)
    assert (found.public_mass > 0).all()
    np.testing.assert_allclose(huge.theta, alone.theta, atol=1e-12)
    np.testing.assert_allclose(huge.variance, alone.variance)


def test_of_many_processes_some_at_a_time_leave_the_doubt_that_all_at_once_do(monkeypatch) -> None:
    found = evidence(SHARES, np.flip(SHARES))
    weighted = weigh_evidence(found, "learned")
    for rule in (smooth_tree, prune_nothing):
        pruned = rule(found, weighted)
        monkeypatch.setattr(model_uncertainty, "VALUES_AT_ONCE", 2**20)
        at_once = model_uncertainty.model_uncertainty(found, weighted, pruned, rule)
        monkeypatch.setattr(model_uncertainty, "VALUES_AT_ONCE", 2 * pruned.theta.size)
        by_two = model_uncertainty.model_uncertainty(found, weighted, pruned, rule)
        np.testing.assert_allclose(by_two.of_nodes, at_once.of_nodes)
        assert by_two.of_mean == pytest.approx(at_once.of_mean)


def test_each_component_of_the_discrepancy_costs_its_nats() -> None:
    assert NATS_PER_COMPONENT == 3.0
    assert (0.0 in ROOT_GRID, 0.0 in STEP_GRID) == (True, True)
    assert ALIKE.n_components == 0
    prior = DiscrepancyPrior(root=0.02, step=0.006, decay=0.5)
    assert prior.n_components == 2
    np.testing.assert_allclose(prior.innovation(3), [0.02, 0.006, 0.003, 0.0015])


def test_more_classes_are_weighed_around_even_shares() -> None:
    rng = np.random.default_rng(0)
    private = rng.multinomial(9_000, [0.5, 0.3, 0.2], 4).astype(float)
    for k, share in enumerate((0.5, 0.3, 0.2)):
        found = gather_class_evidence(
            complete_tree(2),
            private=private,
            margin_noise=np.full(4, 10.0),
            mass_noise=np.full(4, 30.0),
            public=rng.multinomial(50, [0.5, 0.3, 0.2], 4),
            n_private=36_000,
            class_index=k,
        )
        np.testing.assert_allclose(weigh_evidence(found, "learned").theta, share - 1 / 3, atol=0.03)
