"""HistOfTreeRegressor: the corners it must have, what it spends, what it learns, and what it says to bad input."""

import pickle
import tracemalloc
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from ldptree.baselines.label_dt import LabelTreeRegressor
from ldptree.coins import Words
from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import AssumedRangeWarning, ConfigError, DataError
from ldptree.estimators.histoftree import HistOfTreeRegressor
from ldptree.families.family import converse, respond_in_rounds
from ldptree.families.histoftree import HistOfTree, HistOfTreeModel
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


@pytest.mark.parametrize("random_state", [0, None])
def test_it_is_a_scikit_learn_estimator(random_state):
    skipped = {"check_array_api_input"} | ({"check_pipeline_consistency"} if random_state is None else set())
    estimator = HistOfTreeRegressor(8.0, random_state=random_state)
    for result in check_estimator(estimator, on_fail=None, on_skip=None):
        assert result["status"] == "passed" or result["check_name"] in skipped, result


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


def test_with_no_private_feature_it_is_label_dt():
    """The same tree and the same numbers from the same coins, cut to the labels' range, and no second question."""
    X, y = people()
    for depth, leaf in ((1, 1), (5, 10), (8, 1)):
        settings = {"p": depth, "partition": "cart", "min_samples_leaf": leaf, "label": "laplace"}
        ours = HistOfTreeRegressor(1.0, private_features=[], random_state=3, **settings)
        theirs = LabelTreeRegressor(1.0, max_depth=depth, min_samples_leaf=leaf, random_state=3)
        uncut = theirs.fit(X, y).predict(X)
        np.testing.assert_allclose(ours.fit(X, y).predict(X), np.clip(uncut, -1, 1), rtol=1e-9, atol=1e-9)
        assert [round(e.epsilon, 12) for e in ours.ledger_.entries] == [1.0]
        assert ours.model_.mechanism is None


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

    oracle = Grr.for_budget(cells.question.epsilon, 2**D)
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


def test_names_mean_the_same_as_numbers():
    X, y = people(500)
    frame = pl.DataFrame(X, schema=["age", "b", "c", "d"])
    named = HistOfTreeRegressor(4.0, private_features=["c", "age"], t=2, p=2, random_state=0).fit(frame, y)
    plain = HistOfTreeRegressor(4.0, private_features=[2, 0], t=2, p=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(named.predict(frame), plain.predict(X))


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


def test_seeds_repeat_and_the_system_s_coins_do_not():
    X, y = people(300)
    settings = {"private_features": [0], "t": 2, "p": 2}
    a, b = (HistOfTreeRegressor(2.0, random_state=7, **settings).fit(X, y).model_.to_json() for _ in range(2))
    assert a == b
    a, b = (HistOfTreeRegressor(2.0, **settings).fit(X, y).model_.to_json() for _ in range(2))
    assert a != b


def test_predictions_stay_in_the_range_where_counts_are_noisy():
    X, y = people(200)
    fitted = HistOfTreeRegressor(0.1, t=2, label_range=(-3.0, 5.0), random_state=0).fit(X, y)
    assert (fitted.model_.count <= 0).any()
    assert fitted.model_.value.min() >= -3
    assert fitted.model_.value.max() <= 5


def test_it_is_cloned_pickled_and_its_model_stored():
    X, y = people(300)
    fitted = clone(HistOfTreeRegressor(2.0, private_features=[0], t=2, p=2, random_state=7)).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    np.testing.assert_array_equal(
        HistOfTreeModel.from_json(fitted.model_.to_json()).predict(X), fitted.predict(X)
    )


def test_potential_cells_are_never_written_out():
    """40,000 holders x 13,824 cells would be half a gigabyte of bits, 4 GB of numbers."""
    rng = np.random.default_rng(0)
    n, d = 40_000, 6
    X, protects = rng.random((n, d)), rng.random((n, d)) < 0.5
    encoding = Encoding(tuple(NumericFeature(f"x{j}", 0.0, 1.0) for j in range(d)))
    asks = HistOfTree(epsilon=8.0, encoding=encoding, low=-1.0, high=1.0, n_binned=3, bins=6, depth=6)
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
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": float("nan")}, "epsilon must be"),
        ({"epsilon": 65.0}, "epsilon must be"),
        ({"t": 0}, "t must be"),
        ({"t": 1.5}, "t must be"),
        ({"t": "many"}, "t must be"),
        ({"s": -1}, "s must be"),
        ({"s": 9}, "there are 4 features"),
        ({"p": 63}, "p must be"),
        ({"p": True}, "p must be"),
        ({"rho": 0.0}, "rho, the cell's share"),
        ({"rho": 1.0}, "rho, the cell's share"),
        ({"bias_weight": 0}, "bias_weight must be"),
        ({"t_shift": 2}, "t_shift must be"),
        ({"partition": "kart"}, "did you mean 'cart'"),
        ({"criterion": "gini"}, "criterion must be"),
        ({"mechanism": "oue"}, "mechanism must be"),
        ({"label": "gauss"}, "label must be"),
        ({"mask_release": "some"}, "mask_release must be"),
        ({"mask_release": "none"}, "give protects="),
        ({"min_samples_leaf": 0, "partition": "cart"}, "min_samples_leaf must be"),
        ({"label_range": (1.0, -1.0)}, "label_range: low must be below high"),
        ({"label_range": (0.0, float("inf"))}, "label_range must be .* two finite numbers"),
        ({"label_range": 3}, "label_range must be .* two numbers"),
        ({"feature_range": (1.0, 0.0)}, "low must be below high"),
        ({"private_features": ["age"]}, "no column names"),
        ({"private_features": "age"}, "write \\['age'\\]"),
        ({"private_features": [4]}, "from 0 to 3"),
        ({"private_features": [0.5]}, "whole number"),
        ({"private_features": [0], "t": 254, "p": 20}, "the largest that fits"),
        ({"label": "laplace"}, '"laplace" is a simulation device.*use "optimal_label", or set random_state'),
        ({"label": "piecewise"}, '"piecewise" is a simulation device'),
    ],
)
def test_wrong_parameters_are_refused_with_one_message(settings, message):
    X, y = people(50)
    with pytest.raises(ConfigError, match=message):
        HistOfTreeRegressor(**({"epsilon": 1.0} | settings)).fit(X, y)


def test_unknown_names_are_refused_with_the_nearest():
    X, y = people(50)
    frame = pl.DataFrame(X, schema=["age", "height", "c", "d"])
    with pytest.raises(ConfigError, match="did you mean 'height'"):
        HistOfTreeRegressor(1.0, private_features=["heigth"]).fit(frame, y)


@pytest.mark.parametrize(
    "protects",
    [
        np.ones((50, 3), bool),
        np.ones((49, D), bool),
        np.ones((50, D)),
        np.ones(50, bool),
        np.full((50, D), 2),
    ],
)
def test_a_wrong_mask_is_refused(protects):
    X, y = people(50)
    with pytest.raises(DataError, match=r"protects is .* of shape .*one True"):
        HistOfTreeRegressor(1.0).fit(X, y, protects=protects)


def test_a_mask_and_private_features_together_are_refused():
    X, y = people(50)
    with pytest.raises(ConfigError, match="give one of them"):
        HistOfTreeRegressor(1.0, private_features=[0]).fit(X, y, protects=np.ones((50, D), bool))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_numbers_are_refused(value):
    X, y = people(50)
    broken = X.copy()
    broken[3, 1] = value
    for rows, labels in ((broken, y), (X, np.where(np.arange(50) == 7, value, y))):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            HistOfTreeRegressor(1.0).fit(rows, labels)
    fitted = HistOfTreeRegressor(1.0, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        fitted.predict(broken)


def test_labels_in_texts_are_numbers_and_dates_are_not():
    X, y = people(300)
    labels = np.round(y, 3)
    models = [
        HistOfTreeRegressor(4.0, random_state=0).fit(X, label) for label in (labels, labels.astype(str))
    ]
    assert np.array_equal(*(model.predict(X) for model in models))
    with pytest.raises(DataError, match="dates or times"):
        HistOfTreeRegressor(4.0, random_state=0).fit(X, y.astype("datetime64[D]"))


def test_one_private_feature_is_a_list_of_one():
    X, y = people(100)
    with pytest.raises(ConfigError, match=r"write \[0\]"):
        HistOfTreeRegressor(4.0, private_features=0, random_state=0).fit(X, y)


@pytest.mark.parametrize("ends", [(-1e308, 1e308), (0, 5e-324)])
def test_a_label_range_that_floats_cannot_square_is_refused(ends):
    X, y = people(100)
    with pytest.raises(ConfigError, match="label range"):
        HistOfTreeRegressor(4.0, label_range=ends, random_state=0).fit(X, y)


@pytest.mark.parametrize("private", [[], [0]])
def test_no_noise_takes_a_prediction_out_of_the_labels_range(private):
    X, y = people(500)
    for epsilon in (1e-6, 1e-3):
        found = HistOfTreeRegressor(epsilon, private_features=private, random_state=0).fit(X, y).predict(X)
        assert found.min() >= -1
        assert found.max() <= 1
