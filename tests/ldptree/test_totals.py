"""Totals: unbiased, rolled up without loss, with the exact noise of every linear form."""

import numpy as np
import pytest
from seeded_words import words as seeded

from ldptree.errors import DataError
from ldptree.mechanisms import CHOICES, mechanism_for
from ldptree.protocol.totals import Totals

NAMES = CHOICES[1:]
CLASSES = [(name, C) for name in NAMES for C in (2, 3) if name != "signed_subset" or C == 2]


def made(name, n_cells=4, n_classes=2, n=4000, epsilon=2.0, seed=1):
    """True counts [k], the mechanism, and totals of one round."""
    mechanism = mechanism_for(name, epsilon, n_cells, n_classes)
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, rng.dirichlet(np.ones(mechanism.k)))
    values = np.repeat(np.arange(mechanism.k), counts)
    raw = mechanism.aggregate(mechanism.randomize(values, seeded(seed)))
    return counts, mechanism, Totals.from_raw(raw, mechanism=mechanism, n_private=n, depth=2)


@pytest.mark.parametrize("name", NAMES)
def test_totals_are_the_unbiased_counts_by_cell_and_class(name):
    counts, mechanism, totals = made(name)
    spread = np.sqrt(mechanism.linear_variance(np.eye(mechanism.k), counts))
    error = np.append(totals.counts.ravel(), totals.outside) - counts
    assert (np.abs(error) < 5 * spread).all()
    np.testing.assert_allclose(totals.cell_counts, totals.counts.sum(axis=1))


@pytest.mark.parametrize(("name", "n_classes"), CLASSES)
def test_margin_and_count_variances_are_those_of_their_linear_forms(name, n_classes):
    _, _, totals = made(name, n_classes=n_classes)
    for cell in range(4):
        weights = np.zeros((4, n_classes))
        weights[cell] = 1
        assert totals.count_variance[cell] == pytest.approx(totals.variance(weights))
        weights[cell] = np.eye(n_classes)[0] - 1 / n_classes
        assert totals.cell_variance(weights[cell])[cell] == pytest.approx(totals.variance(weights))


@pytest.mark.parametrize("name", NAMES)
def test_the_estimated_variance_is_near_the_true_one(name):
    counts, mechanism, totals = made(name, n=40_000)
    weights = np.random.default_rng(3).normal(size=(4, 2))
    truth = mechanism.linear_variance(np.append(weights.ravel(), 0), counts)
    assert totals.variance(weights) == pytest.approx(truth, rel=0.05)


def test_totals_of_another_shape_are_refused():
    mechanism = mechanism_for("grr", 1.0, 4, 2)
    with pytest.raises(DataError, match="shape"):
        Totals(np.zeros((5, 2)), 10, mechanism, depth=2)
    totals = Totals(np.zeros((4, 2)), 10, mechanism, depth=2)
    with pytest.raises(DataError, match="weights"):
        totals.variance(np.zeros((2, 4)))
