"""HistOfTreeRegressor: the corners it must have, what it spends, what it learns, and what it says to bad input."""

import tracemalloc
import warnings

import numpy as np
import polars as pl
import pytest

from ldptree.coins import Words
from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import AssumedRangeWarning, ConfigError
from ldptree.estimators.histoftree import HistOfTreeRegressor
from ldptree.families.family import converse, respond_in_rounds
from ldptree.families.histoftree import HistOfTree
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


@pytest.mark.parametrize("mechanism", ["grr", "randomized_response"])
@pytest.mark.parametrize("partition", ["max-edge", "cart"])
@pytest.mark.parametrize("label", ["laplace", "optimal_label"])
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
    """No tree; every potential set is all of t^d cells; and the numbers are those of grr over them."""
    X, y = people()
    settings = {"t": 2, "random_state": 4, "rho": 0.6}
    fitted = HistOfTreeRegressor(3.0, **settings).fit(X, y)
    by_mask = HistOfTreeRegressor(3.0, **settings).fit(X, y, protects=np.ones(X.shape, dtype=bool))
    assert by_mask.model_.to_json() == fitted.model_.to_json()
    model = fitted.model_
    assert model.partition.histogram.features == (0, 1, 2, 3)
    assert model.partition.tree.n_leaves == 1
    assert model.partition.n_cells == 2**D
    labels, cells = fitted.answers_
    assert (
        cells.question.partition.candidates(np.zeros(X.shape), np.ones(X.shape, bool)).sizes == 2**D
    ).all()
    from ldptree.mechanisms.oracles.grr import Grr

    oracle = Grr.for_values(cells.question.epsilon, 2**D)
    reports = cells.reports.view("<u4")[:, 0]
    assert cells.question.epsilon == pytest.approx(1.8)
    np.testing.assert_allclose(model.count, oracle.unbias(np.bincount(reports, minlength=2**D), 2000))
    noisy = labels.question.decode(labels.reports) - labels.question.decode(labels.reports).mean()
    above = (np.bincount(reports, noisy, minlength=2**D) - oracle.q * noisy.sum()) / oracle.gap
    middle = labels.question.decode(labels.reports).mean()
    np.testing.assert_allclose(model.value, np.clip(middle + above / model.count, -1, 1))


def test_what_is_protected_moves_nothing_but_the_reports():
    """All private: rows may be exchanged for others in the same cells and the transcript stays."""
    X, y = people()
    moved = np.where(X < 0.5, X / 2, 1 - (1 - X) / 2)
    a, b = (
        HistOfTreeRegressor(3.0, t=2, random_state=4).fit(rows, y).model_.to_json() for rows in (X, moved)
    )
    assert a == b


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
        from ldptree.partition.masked import grow_masked_tree

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


# what it spends, and what leaves a holder


def test_the_ledger_has_two_questions_whose_sum_is_epsilon():
    X, y = people(300)
    fitted = HistOfTreeRegressor(2.0, p=2, s=1, t=2, rho=0.3, label="optimal_label").fit(
        X, y, protects=some_mask(300)
    )
    spent = fitted.ledger_.largest_spend()
    assert [about.split(":")[0] for about, _ in spent.on] == ["round 1", "round 2"]
    assert spent.epsilon <= 2.0 + 1e-9
    assert spent.epsilon == pytest.approx(2.0, abs=1e-6)
    assert spent.on[1][1] == pytest.approx(0.6)


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


def test_predictions_stay_in_the_range_where_counts_are_noisy():
    X, y = people(200)
    fitted = HistOfTreeRegressor(0.1, t=2, label_range=(-3.0, 5.0), random_state=0).fit(X, y)
    assert (fitted.model_.count <= 0).any()
    assert fitted.model_.value.min() >= -3
    assert fitted.model_.value.max() <= 5


def test_potential_cells_are_never_written_out():
    """40,000 holders x 13,824 cells would be half a gigabyte of bits, 4 GB of numbers."""
    rng = np.random.default_rng(0)
    n, d = 40_000, 6
    X, protects = rng.random((n, d)), rng.random((n, d)) < 0.5
    encoding = Encoding(tuple(NumericFeature(f"x{j}", 0.0, 1.0) for j in range(d)))
    asks = HistOfTree(epsilon=8.0, encoding=encoding, low=-1.0, high=1.0, s=3, t=6, p=6)
    shown = PublicView.of(X, protects)
    words = Words.seeded(np.random.SeedSequence(0))
    tracemalloc.start()
    answer = respond_in_rounds(
        shown, lambda q, who: q.randomize(X[who], np.sin(X[who, 0]), protects[who], words)
    )
    model, _ = converse(asks, shown, answer)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.partition.n_cells == 6**3 * 2**6
    assert peak < 150e6


# bad input


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"t": 0}, "t must be"),
        ({"t": 1.5}, "t must be"),
        ({"t": "many"}, "t must be"),
        ({"s": -1}, "s must be"),
        ({"s": 9}, "there are 4 features"),
        ({"p": 63}, "p must be"),
        ({"p": True}, "p must be"),
        ({"rho": 0.0}, "rho must be a number above 0 and below 1"),
        ({"rho": 1.0}, "rho must be a number above 0 and below 1"),
        ({"bias_weight": 0}, "bias_weight must be"),
        ({"t_shift": 2}, "t_shift must be"),
        ({"partition": "kart"}, "did you mean 'cart'"),
        ({"criterion": "gini"}, "criterion must be"),
        ({"mechanism": "oue"}, "mechanism must be"),
        ({"label": "gauss"}, "label must be"),
        ({"mask_release": "some"}, "mask_release must be"),
        ({"mask_release": "none"}, "give protects="),
        ({"min_samples_leaf": 0, "partition": "cart"}, "min_samples_leaf: 0 is for"),
        ({"private_features": [0], "t": 254, "p": 20}, "the largest that fits"),
        ({"label": "laplace"}, '"laplace" is a simulation device.*use "optimal_label", or set random_state'),
    ],
)
def test_wrong_parameters_are_refused_with_one_message(settings, message):
    X, y = people(50)
    with pytest.raises(ConfigError, match=message):
        HistOfTreeRegressor(**({"epsilon": 1.0} | settings)).fit(X, y)


@pytest.mark.parametrize("private", [[], [0]])
def test_no_noise_takes_a_prediction_out_of_the_labels_range(private):
    X, y = people(500)
    for epsilon in (1e-6, 1e-3):
        found = HistOfTreeRegressor(epsilon, private_features=private, random_state=0).fit(X, y).predict(X)
        assert found.min() >= -1
        assert found.max() <= 1
