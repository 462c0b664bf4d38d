"""Randomised response within the cells a holder could be in: unbiased, private, and nothing outside them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from seeded_words import words

from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms.masked import MASKED, MaskedGrr
from ldptree.partition.product import Histogram, Product
from ldptree.partition.tree import Partition

TREE = Partition.of([1, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1])
PRODUCT = Product(Histogram((0,), 2), TREE)
K = PRODUCT.n_cells


def seen(row, protects):
    return PRODUCT.candidates(np.array([row], float), np.array([protects]))


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("protects", [(False, False), (True, False), (False, True), (True, True)])
def test_no_report_tells_two_potential_cells_apart_by_more_than_e_to_the_epsilon(name, epsilon, protects):
    """Every output and pair of inputs, in rational numbers."""
    mechanism = MASKED[name](epsilon, K)
    candidates = seen((0.2, 0.7), protects)
    cells = np.flatnonzero(candidates.matrix()[0])
    laws = [mechanism.law(int(cell), candidates) for cell in cells]
    assert all(sum(law.values()) == 1 and law.keys() == laws[0].keys() for law in laws)
    worst = max(Fraction(a[report], b[report]) for a in laws for b in laws for report in a)
    assert worst <= math.exp(epsilon) * (1 + 1e-9)
    if cells.size > 1:
        assert worst >= math.exp(epsilon) * (1 - 1e-9)


@pytest.mark.parametrize("name", MASKED)
def test_sums_are_unbiased_and_nothing_is_said_outside_the_potential_cells(name):
    """z of every cell below 5 (all of 8: false alarms below 1e-5), seed fixed; noise as stated."""
    rng = np.random.default_rng(0)
    n, runs = 400, 300
    X, protects = rng.random((n, 2)), rng.random((n, 2)) < 0.5
    weights = np.stack([rng.normal(size=n), np.ones(n)], axis=1)
    candidates = PRODUCT.candidates(X, protects)
    cells = PRODUCT.apply(X)
    mechanism = MASKED[name](1.5, K)
    coins = words(1)
    found = []
    for _ in range(runs):
        reports = mechanism.randomize(cells, candidates, coins)
        assert mechanism.is_valid(reports).all()
        assert mechanism.fit(reports, candidates).all()
        found.append(mechanism.sums(reports, candidates, weights))
    truth = np.stack([np.bincount(cells, w, minlength=K) for w in weights.T])
    z = (np.mean(found, axis=0) - truth) / (np.std(found, axis=0) / math.sqrt(runs))
    assert np.abs(z).max() < 5
    alone = mechanism.noise(candidates)
    others = ~np.eye(K, dtype=bool)[cells] & candidates.matrix()
    own = np.var(found, axis=0)[1] - alone @ others
    # what is left is the noise of the holders' own cells, of the size of a coin's for each of them
    assert (np.abs(own) < 0.5 * np.var(found, axis=0)[1] + 60).all()


def test_grr_sends_a_single_potential_cell_as_it_is_and_draws_no_coin_for_it():
    X = np.random.default_rng(0).random((50, 2))
    candidates = PRODUCT.candidates(X, np.zeros((50, 2), dtype=bool))

    class NoCoins:
        def block(self, n):
            raise AssertionError("a coin was drawn")

    mechanism = MaskedGrr(1.0, K)
    reports = mechanism.randomize(PRODUCT.apply(X), candidates, NoCoins())
    counts = mechanism.sums(reports, candidates, np.ones((50, 1)))
    np.testing.assert_array_equal(counts[0], np.bincount(PRODUCT.apply(X), minlength=K))
    assert not mechanism.noise(candidates).any()


@pytest.mark.parametrize("name", MASKED)
def test_a_cell_that_contradicts_what_is_shown_is_refused(name):
    mechanism = MASKED[name](1.0, K)
    candidates = seen((0.2, 0.7), (False, False))
    other = (int(PRODUCT.apply(np.array([[0.2, 0.7]]))[0]) + 1) % K
    with pytest.raises(DataError, match="not among those"):
        mechanism.randomize(np.array([other]), candidates, words(0))
    everywhere = seen((0.2, 0.7), (True, True))
    forged = np.concatenate([mechanism.randomize(np.array([c]), everywhere, words(c)) for c in range(K)])
    fits = mechanism.fit(forged, PRODUCT.candidates(np.full((K, 2), 0.9), np.zeros((K, 2), bool)))
    assert not fits.all()
    with pytest.raises(DataError, match="reports are uint8"):
        mechanism.is_valid(np.zeros((2, 99), np.uint8))


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize(("epsilon", "n_cells"), [(0.0, 4), (math.inf, 4), (math.nan, 4), (1.0, 1)])
def test_impossible_budgets_and_sizes_are_refused(name, epsilon, n_cells):
    with pytest.raises(ConfigError):
        MASKED[name](epsilon, n_cells)
