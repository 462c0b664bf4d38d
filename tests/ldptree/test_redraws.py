"""Holders that a simulation knows: their true sums, and reports drawn again."""

from __future__ import annotations

import numpy as np
import pytest
from base_examples import protocol_of as base_protocol
from seeded_words import words

from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import DataError
from ldptree.families.tree_fit import fit_regression
from ldptree.families.tree_public import PublicLabels
from ldptree.mechanisms import CHOICES, number_mechanism_for
from ldptree.partition.tree import Partition
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.stochastic_rounding import label_levels
from ldptree.protocol.totals import Totals
from ldptree.simulate.redraws import KnownHolders, KnownResiduals

TREE = Partition.of([0, -1, -1], [0.5, 0.0, 0.0], [1, -1, -1], [2, -1, -1])
LOW, HIGH = -1.0, 9.0


def protocol_of(choice="oue", epsilon=2.0, n_levels=4):
    mechanism = number_mechanism_for(choice, epsilon, 2, n_levels)
    return Protocol(
        encoding=Encoding((NumericFeature("x", 0.0, 1.0),)),
        partition=TREE,
        target="y",
        classes=label_levels(LOW, HIGH, mechanism.n_classes),
        positive=None,
        mechanism=mechanism,
        epsilon=epsilon,
        simulation=mechanism.is_simulation_device,
        numeric=True,
    )


def people(n, seed=3):
    """A third on the right, labels beyond the range now and then, one in fifty without a place or a label."""
    rng = np.random.default_rng(seed)
    x, y = rng.random(n) ** 2, rng.normal(5, 4, n)
    x[::50], y[1::50] = np.nan, np.nan
    return x[:, None], y


def known(protocol, x, y):
    halves = np.array_split(np.arange(len(y)), 2)
    return KnownHolders.of(
        protocol, [(protocol.values(x[at], y[at], words=words(1)), y[at]) for at in halves]
    )


def test_true_sums_are_of_labels_moved_into_the_range():
    x, y = people(1000)
    count, total = known(protocol_of(), x, y).sums()
    there = ~np.isnan(x[:, 0]) & ~np.isnan(y)
    right = x[there, 0] > 0.5
    moved = np.clip(y[there], LOW, HIGH)
    assert count.tolist() == [np.sum(~right), np.sum(right)]
    assert total == pytest.approx([moved[~right].sum(), moved[right].sum()], rel=1e-6)


@pytest.mark.parametrize("choice", CHOICES)
def test_reports_drawn_again_are_right_on_average(choice):
    """The mean of 300 draws lies within 5 of its standard errors: missed with a chance below 1e-5 over all mechanisms."""
    protocol, (x, y) = protocol_of(choice), people(2000)
    holders = known(protocol, x, y)
    count, total = holders.sums()
    drawn = [holders.drawn_again(words(2, k)) for k in range(300)]
    assert {t.n_private for t in drawn} == {2000}
    ends = np.array(protocol.classes)
    sums = np.array([[*t.cell_counts, *(t.counts @ ends)] for t in drawn])
    error = (sums.mean(axis=0) - [*count, *total]) / (sums.std(axis=0) / np.sqrt(len(drawn)))
    assert np.abs(error).max() < 5


def test_another_number_is_another_draw_and_the_same_one_the_same():
    holders = known(protocol_of(), *people(500))
    one, again, other = (holders.drawn_again(words(4, k)).counts for k in (1, 1, 2))
    assert (one == again).all()
    assert (one != other).any()


@pytest.mark.parametrize("kind", ["three classes, drawn", "number"])
def test_a_models_errors_are_reported_again_of_each_output_apart(kind):
    """The mean residual of 200 draws of each output is that of everybody, to 5 standard errors: missed once in 100,000."""
    protocol = base_protocol(kind, epsilon=6.0)
    rng, m = np.random.default_rng(1), protocol.n_outputs
    cells, residuals = rng.integers(-1, 3, 900).astype(np.int32), rng.uniform(-0.9, 0.6, (900, m))
    residuals[:, 0] += 0.3
    residuals[::40] = np.nan
    holders = KnownResiduals(protocol, cells, residuals.astype(np.float32))
    assert holders.usable.tolist() == ((cells >= 0) & ~np.isnan(residuals[:, 0])).tolist()
    drawn = [holders.drawn_again(words(6, k)) for k in range(200)]
    assert all(len(totals) == m and sum(t.n_private for t in totals) == 900 for totals in drawn)
    ends = np.array(protocol.classes)
    sums = np.array([[(t.counts @ ends).sum() for t in totals] for totals in drawn])
    truth = residuals[holders.usable].sum(axis=0) / m
    error = (sums.mean(axis=0) - truth) / (sums.std(axis=0) / np.sqrt(200))
    assert np.abs(error).max() < 5
    assert len({totals[-1].counts.tobytes() for totals in drawn}) == 200


def test_the_noise_of_each_output_is_another_one(monkeypatch):
    """As many on each output, all with one value: what differs is noise alone."""
    monkeypatch.setattr(Protocol, "draw_outputs", lambda self, n, words: np.arange(n) % 3)
    protocol = base_protocol("three classes, drawn")
    holders = KnownResiduals(protocol, np.zeros(300, np.int32), np.zeros((300, 3), np.float32))
    one, other, third = (totals.counts for totals in holders.drawn_again(words(7)))
    assert (one != other).any()
    assert (other != third).any()


def public_labels():
    return PublicLabels(
        count=np.array([30.0, 20.0]), total=np.array([90.0, 120.0]), mean=4.2, sd=3.0, residual_variance=8.0
    )


def fit_without_noise(people, sums, **settings):
    protocol = protocol_of()
    depth = protocol.partition.max_depth
    true = Totals.exact_numbers(people, sums, mechanism=protocol.mechanism, depth=depth)
    return fit_regression(protocol, true, public_labels(), **settings)


def test_without_noise_the_model_is_what_huge_budgets_learn():
    x, y = people(4000)
    there = ~np.isnan(x[:, 0]) & ~np.isnan(y)
    x, y = x[there], y[there]
    exact = fit_without_noise(*known(protocol_of(), x, y).sums())
    rich = known(protocol_of("grr", epsilon=40.0, n_levels=1001), x, y)
    learned = fit_regression(rich.protocol, rich.drawn_again(words(5)), public_labels())
    np.testing.assert_allclose(exact.estimate, learned.estimate, atol=0.005)
    assert exact.n_private == len(y)


def test_with_public_rows_alone_private_people_are_of_no_matter():
    args = {"lam": np.inf, "prune": "none"}
    one = fit_without_noise([10, 90], [0, 90], **args)
    other = fit_without_noise([70, 30], [500, -9], **args)
    np.testing.assert_array_equal(one.estimate[TREE.leaves, 0], [3.0, 6.0])
    np.testing.assert_array_equal(one.estimate, other.estimate)


def test_sums_of_another_tree_are_refused():
    with pytest.raises(DataError, match="of 2 cells"):
        fit_without_noise(np.ones(3), np.ones(3))
    with pytest.raises(DataError, match="nobody reported"):
        fit_without_noise(np.zeros(2), np.zeros(2))
