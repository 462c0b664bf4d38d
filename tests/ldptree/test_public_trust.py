"""Public cells that were chosen for the labels of the same rows are trusted as far as rows held out say, and intervals hold what
they claim.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from first_fast import first_fast

from ldptree.estimators import LPCTClassifier
from ldptree.inference.public_trust import INFLATIONS, class_variance_inflation
from ldptree.partition import grow_partition

HOW = {"depth": 4, "n_classes": 2, "min_samples_leaf": 3, "seed": 0}


def trust(X, y, kind="cart", n_classes=2):
    X = X.astype(np.float32)
    return class_variance_inflation(
        kind, X, y, n_classes, partial(grow_partition, kind=kind, **(HOW | {"n_classes": n_classes}))
    )


def test_a_tree_that_fits_chance_is_trusted_less_than_one_that_fits_a_law():
    rng = np.random.default_rng(0)
    X = rng.random((400, 3))
    chance = rng.integers(0, 2, 400)
    law = (X[:, 0] > 0.5).astype(np.int64)
    assert trust(X, law) == 1.0
    assert trust(X, chance) >= 8.0
    assert trust(X, chance + 2 * law, n_classes=4) in INFLATIONS


def test_cells_that_were_chosen_for_no_label_are_taken_at_their_word():
    rng = np.random.default_rng(1)
    X = rng.random((400, 3))
    assert trust(X, rng.integers(0, 2, 400), kind="max-edge") == 1.0
    assert trust(X[:9], rng.integers(0, 2, 9)) == 1.0  # too few for folds


def people(run, n_private, public_share):
    """Chance of class 1 a line in the first feature; `public_share` of public ones."""
    rng = np.random.default_rng(run)
    X = rng.random((500 + n_private, 2))
    is_public = np.arange(len(X)) < 500
    truth = 0.3 + 0.4 * X[:, 0]
    y = (rng.random(len(X)) < np.where(is_public, public_share(X[:, 0]), truth)).astype(np.int64)
    return X, y, is_public, truth


def held(run, epsilon, public_share, **settings):
    """The share of private people whose interval of 90 % holds the true margin of their cell; and of those it decides for, which
    are a share, the share it decides for the wrong class.
    """
    X, y, is_public, truth = people(run, 10_000, public_share)
    fitted = LPCTClassifier(epsilon, random_state=run, **settings).fit(X, y, public=is_public)
    cells, size = fitted.model_.cells(X[~is_public]), fitted.partition_.n_leaves
    sums = np.bincount(cells, weights=truth[~is_public], minlength=size)
    margin = (sums / np.maximum(np.bincount(cells, minlength=size), 1) - 0.5)[cells]
    low, high = fitted.margin_interval(X[~is_public])
    decided = (low > 0) | (high < 0)
    return (
        np.mean((low <= margin) & (margin <= high)),
        np.sum(decided & ((low > 0) != (margin > 0))),
        decided.sum(),
    )


@pytest.mark.parametrize("epsilon", first_fast(0.5, 2.0))
def test_intervals_hold_what_they_claim_where_public_and_private_people_are_alike(epsilon):
    found = [held(run, epsilon, lambda x: 0.3 + 0.4 * x)[0] for run in range(8)]
    assert np.mean(found) > 0.9


@pytest.mark.parametrize("partition", first_fast("cart", "max-edge"))
def test_where_reports_cannot_tell_whether_people_differ_intervals_leave_it_open(partition):
    """The public rows say the contrary of the truth, and eps .5 does not show it: few are decided for."""
    found = np.array([held(run, 0.5, lambda x: 0.7 - 0.4 * x, partition=partition)[1:] for run in range(8)])
    n_wrong, n_decided = found.sum(axis=0)
    assert n_wrong < 0.05 * 8 * 10_000
    assert n_decided < 0.3 * 8 * 10_000


def test_no_difference_is_seen_between_people_who_are_alike():
    for run in range(4):
        X, y, is_public, _ = people(run, 100_000, lambda x: 0.3 + 0.4 * x)
        model = LPCTClassifier(4.0, random_state=run).fit(X, y, public=is_public).model_
        assert not model.discrepancy.any()
        assert not model.discrepancy_sd.any()
