"""HistOfTreeRegressor: what it learns, the corners it must have, and what leaves a holder."""

import tracemalloc
import warnings

import numpy as np
import polars as pl
import pytest
from seeded_words import words

from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import AssumedRangeWarning
from ldptree.estimators.histoftree import HistOfTreeRegressor
from ldptree.families.family import converse, respond_in_rounds
from ldptree.families.histoftree import HistOfTree
from ldptree.mechanisms.oracles.grr import Grr
from ldptree.partition.masked import grow_masked_tree
from ldptree.partition.max_edge import grow_max_edge
from ldptree.protocol.question import PublicView

D = 4


def people(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, D))
    y = np.clip(1.5 * (X[:, 0] > 0.5) + X[:, 1] - 1.2 + 0.1 * rng.standard_normal(n), -1, 1)
    return X, y


def some_mask(n=2000, share=0.4, seed=9):
    return np.random.default_rng(seed).random((n, D)) < share


@pytest.mark.parametrize(
    ("mechanism", "partition", "label"),
    [
        ("grr", "max-edge", "laplace"),
        ("grr", "cart", "optimal_label"),
        ("randomized_response", "max-edge", "optimal_label"),
        ("randomized_response", "cart", "laplace"),
    ],
)
def test_it_learns_what_private_and_public_features_say(mechanism, partition, label):
    """A constant leaves .36; the step on the private feature alone explains .28 of it."""
    X, y = people(6000)
    T, t = people(2000, 1)
    settings = {"mechanism": mechanism, "partition": partition, "label": label, "random_state": 1}
    for protects in (np.tile(np.arange(D) == 0, (6000, 1)), some_mask(6000, 0.3)):
        fitted = HistOfTreeRegressor(16.0, s=1, t=2, p=3, min_samples_leaf=20, **settings).fit(
            X, y, protects=protects
        )
        assert np.mean((fitted.predict(T) - t) ** 2) < 0.12
        assert fitted.model_.label == label
        assert fitted.model_.mechanism == mechanism


# corners


def test_with_everything_protected_it_is_a_plain_ldp_histogram():
    """No tree; every potential set is all of t^d cells; and the counts are those of grr over them."""
    X, y = people()
    settings = {"t": 2, "random_state": 4, "rho": 0.6}
    fitted = HistOfTreeRegressor(3.0, **settings).fit(X, y)
    by_mask = HistOfTreeRegressor(3.0, **settings).fit(X, y, protects=np.ones(X.shape, dtype=bool))
    assert by_mask.model_.to_json() == fitted.model_.to_json()
    model = fitted.model_
    assert model.partition.histogram.features == (0, 1, 2, 3)
    assert model.partition.tree.n_leaves == 1
    assert model.partition.n_cells == 2**D
    cells = fitted.answers_[1]
    assert (
        cells.question.partition.candidates(np.zeros(X.shape), np.ones(X.shape, bool)).sizes == 2**D
    ).all()
    oracle = Grr.for_values(cells.question.epsilon, 2**D)
    reports = cells.reports.view("<u4")[:, 0]
    assert cells.question.epsilon == pytest.approx(1.8)
    np.testing.assert_allclose(model.count, oracle.unbias(np.bincount(reports, minlength=2**D), 2000))


@pytest.mark.parametrize("partition", ["max-edge", "cart"])
def test_with_everything_or_nothing_protected_the_setting_is_lpdts(partition):
    """The partition is grown on the rows that show everything, with their noisy labels; theirs are the exact cells."""
    X, y = people()
    protects = np.repeat(np.arange(2000)[:, None] < 1500, D, axis=1)
    fitted = HistOfTreeRegressor(2.0, s=0, p=4, partition=partition, random_state=5).fit(
        X, y, protects=protects
    )
    labels, cells = fitted.answers_
    public = labels.question.decode(labels.reports)[1500:]
    tree = cells.question.partition.tree
    if partition == "max-edge":
        rows = X[1500:].astype(np.float32)
        assert (
            tree.digest
            == grow_max_edge(
                rows, public, depth=4, n_classes=0, criterion="variance", min_samples_leaf=1
            ).digest
        )
    else:
        nobody = np.zeros((500, D), dtype=bool)
        alone = grow_masked_tree(X[1500:], nobody, public, features=range(D), depth=4, splits="cart")
        assert tree.digest == alone.digest
    sizes = cells.question.partition.candidates(X, protects).sizes
    assert set(sizes[:1500]) == {tree.n_leaves}
    assert set(sizes[1500:]) == {1}
    np.testing.assert_array_equal(
        cells.reports.view("<u4")[1500:, 0], tree.apply(X[1500:].astype(np.float32))
    )


def test_aligned_features_are_the_binned_ones():
    X, y = people()
    fitted = HistOfTreeRegressor(4.0, private_features=[2, 0], t=3, p=3, random_state=0).fit(X, y)
    assert fitted.shape_.n_binned == 2
    assert fitted.model_.partition.histogram.features == (0, 2)
    assert set(fitted.model_.partition.tree.feature.tolist()) <= {-1, 1, 3}


def test_values_shown_beyond_the_range_are_warned_of_by_name_and_protected_ones_never():
    """Whether there is a warning is seen by everybody, so that no protected value has a say in it."""
    X, y = people(300)
    X = pl.DataFrame(X * [40, 1, 1, 40], schema=["age", "b", "c", "income"])
    settings = {"label": "optimal_label", "label_range": (-1, 1), "random_state": 0}
    with pytest.warns(UserWarning, match="values that are shown lie beyond it.* of age, income. Give"):
        HistOfTreeRegressor(2.0, private_features=["c"], **settings).fit(X, y)
    mask = np.tile([True, False, False, True], (300, 1))
    quiet = [
        ({"private_features": ["age", "income"]}, None, "age, income"),
        ({}, mask, "age, income"),
        ({"private_features": ["b"], "feature_range": (0, [40, 1, 1, 40])}, None, None),
        ({"mask_release": "cells"}, ~mask, "age, b, c, income"),
        ({"mask_release": "none"}, ~mask, "age, b, c, income"),
    ]
    for changes, protects, assumed in quiet:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            HistOfTreeRegressor(2.0, **settings, **changes).fit(X, y, protects=protects)
        expected = [] if assumed is None else [f"no public row tells the range of {assumed}, so"]
        assert [one.category for one in told] == [AssumedRangeWarning] * len(expected)
        assert all(part in str(one.message) for part, one in zip(expected, told, strict=True))


# what leaves a holder


@pytest.mark.parametrize("release", ["cells", "none"])
def test_a_hidden_mask_and_what_is_shown_never_reach_the_curator(release):
    X, y = people()
    protects = some_mask()
    fitted = HistOfTreeRegressor(6.0, s=1, t=2, p=3, mask_release=release, random_state=2).fit(
        X, y, protects=protects
    )
    blind = HistOfTree.fit(
        fitted._family(D, None), PublicView(np.zeros(X.shape), np.ones(X.shape, dtype=bool)), fitted.answers_
    )
    assert blind.to_json() == fitted.model_.to_json()
    other = HistOfTreeRegressor(6.0, s=1, t=2, p=3, mask_release=release, random_state=2).fit(
        X, y, protects=~protects
    )
    same = [
        np.array_equal(a.reports, b.reports) for a, b in zip(fitted.answers_, other.answers_, strict=True)
    ]
    assert same == [True, release == "none"]
    assert np.isfinite(fitted.predict(X)).all()


def test_potential_cells_are_never_written_out():
    """40,000 holders x 13,824 cells would be half a gigabyte of bits, 4 GB of numbers."""
    rng = np.random.default_rng(0)
    n, d = 40_000, 6
    X, protects = rng.random((n, d)), rng.random((n, d)) < 0.5
    encoding = Encoding(tuple(NumericFeature(f"x{j}", 0.0, 1.0) for j in range(d)))
    asks = HistOfTree(epsilon=8.0, encoding=encoding, low=-1.0, high=1.0, s=3, t=6, p=6)
    shown = PublicView.of(X, protects)
    coins = words(0)
    tracemalloc.start()
    answer = respond_in_rounds(
        shown, lambda q, who: q.randomize(X[who], np.sin(X[who, 0]), protects[who], coins)
    )
    model, _ = converse(asks, shown, answer)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.partition.n_cells == 6**3 * 2**6
    assert peak < 150e6
