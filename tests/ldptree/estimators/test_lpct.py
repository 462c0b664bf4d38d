"""LPCTClassifier: a scikit-learn classifier whose private rows are only seen through one report each."""

import math
import pickle

import numpy as np
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from ldptree.errors import ConfigError, DataError
from ldptree.estimators import LPCTClassifier
from ldptree.inference.algorithm_2 import PaperOptions
from ldptree.inference.depth import FEW_PUBLIC_ROWS, FEWEST_PUBLIC_ROWS
from ldptree.mechanisms import CHOICES
from ldptree.models import read_model
from ldptree.models.export.sql import to_sql


def people(n=3000, n_public=150, seed=0, n_classes=2):
    """Rows, labels and a mask of public rows: the label follows the quarter of the plane."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    y = ((X[:, 0] > 0.5) + 2 * (X[:, 1] > 0.5)) % n_classes
    flipped = rng.random(n) < 0.1
    y[flipped] = rng.integers(0, n_classes, flipped.sum())
    return X, y, rng.permutation(n) < n_public


@pytest.mark.parametrize("random_state", [0, None])
def test_it_is_a_scikit_learn_estimator(random_state):
    """Every check passes. scikit-learn itself skips the one of array API inputs, which needs SCIPY_ARRAY_API set, and, of an
    estimator that says it is not deterministic, the one that compares two fits.
    """
    skipped = {"check_array_api_input"} | ({"check_pipeline_consistency"} if random_state is None else set())
    for result in check_estimator(LPCTClassifier(8.0, random_state=random_state), on_fail=None, on_skip=None):
        assert result["status"] == "passed" or result["check_name"] in skipped, result


@pytest.mark.parametrize(
    ("settings", "n_public", "fewest"),
    [
        ({}, 60, FEWEST_PUBLIC_ROWS["classes"]),
        ({}, FEW_PUBLIC_ROWS - 1, 1),
        ({"partition": "max-edge"}, 60, 0),
        ({"prune": "paper"}, 60, 1),
    ],
)
def test_a_cart_has_some_public_rows_in_every_cell_but_where_they_are_few_or_the_paper_says_otherwise(
    settings, n_public, fewest
):
    X, _, public = people(3000, n_public)
    any_label = np.random.default_rng(1).integers(0, 2, len(X))
    fitted = LPCTClassifier(8.0, depth=8, random_state=1, **settings).fit(X, any_label, public=public)
    cells = fitted.partition_.apply(fitted.protocol_.encoding.encode(X[public]))
    assert np.bincount(cells, minlength=fitted.partition_.n_leaves).min() == fewest


@pytest.mark.parametrize(
    ("mechanism", "n_classes"), [(m, C) for m in CHOICES for C in (2, 4) if m != "signed_subset" or C == 2]
)
def test_it_learns_the_law_with_every_mechanism(mechanism, n_classes):
    X, y, public = people(6000, 300, n_classes=n_classes)
    fitted = LPCTClassifier(8.0, mechanism=mechanism, depth=2, random_state=1).fit(X, y, public=public)
    T, t, _ = people(2000, seed=5, n_classes=n_classes)
    assert fitted.score(T, t) > 0.85
    assert fitted.mechanism_.epsilon <= 8.0
    assert fitted.protocol_.n_classes == n_classes


def test_signed_subsets_of_four_classes_are_refused_before_anybody_reports():
    X, y, public = people(600, 60, n_classes=4)
    fitted = LPCTClassifier(1.0, mechanism="signed_subset")
    with pytest.raises(ConfigError, match=r'4 classes; it is for two\. Use mechanism = "auto"'):
        fitted.fit(X, y, public=public)
    assert len(fitted.ledger_) == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"partition": "max-edge"},
        {"partition": "random-edge"},
        {"lam": 0},
        {"lam": math.inf},
        {"lam": "auto"},
        {"prune": "variance"},
        {"prune": "none"},
        {"prune": "paper"},
        {"prune": PaperOptions(termination=False, stop_empty=False, stop_at_public=True)},
        {"lam": "auto", "prune": "none", "rule": "ratio", "mechanism": "laplace"},
        {"outside": "drop"},
        {"feature_range": (0, 1)},
        {"feature_range": ([0, 0, 0], [1, 1, 2])},
    ],
)
def test_every_variant_of_the_paper_is_a_setting(settings):
    X, y, public = people(4000, 300)
    fitted = LPCTClassifier(8.0, random_state=3, **settings).fit(X, y, public=public)
    share = fitted.predict_proba(X)
    assert fitted.score(X, y) > 0.6
    np.testing.assert_allclose(share.sum(axis=1), 1)
    np.testing.assert_array_equal(fitted.predict(X), fitted.decision_function(X) > 0)


def test_of_several_classes_the_predicted_one_has_the_largest_score():
    rng = np.random.default_rng(3)
    X, public = rng.random((3000, 2)), np.arange(3000) < 150
    y = np.where(rng.random(3000) < 0.4, rng.integers(0, 4, 3000), (4 * X[:, 0]).astype(int))
    fitted = LPCTClassifier(2.0, random_state=3).fit(X, y, public=public)
    assert (fitted.model_.estimate.argmax(axis=1) != fitted.model_.decision).any()
    scores = fitted.decision_function(X)
    np.testing.assert_array_equal(fitted.classes_[scores.argmax(axis=1)], fitted.predict(X))
    np.testing.assert_allclose(scores.sum(axis=1), 0, atol=1e-12)


def test_a_seeded_simulation_repeats_and_coins_of_the_system_do_not():
    X, y, public = people()
    one, two = (LPCTClassifier(1.0, random_state=7).fit(X, y, public=public) for _ in range(2))
    np.testing.assert_array_equal(one.totals_.counts, two.totals_.counts)
    assert one.model_.digest == two.model_.digest
    one, two = (LPCTClassifier(1.0).fit(X, y, public=public) for _ in range(2))
    assert (one.totals_.counts != two.totals_.counts).any()


def test_private_rows_change_nothing_but_the_totals():
    """Neither ranges, classes, tree, mechanism nor depth: private values ten times as large, and a label nobody declared."""
    X, y, public = people()
    one = LPCTClassifier(2.0, random_state=1).fit(X, y, public=public)
    X[~public] *= 10
    y[~public] = 1 - y[~public]
    y[-1] = 9
    two = LPCTClassifier(2.0, random_state=1).fit(X, y, public=public)
    assert one.protocol_.digest == two.protocol_.digest
    assert two.classes_.tolist() == [0, 1]
    assert (one.totals_.counts != two.totals_.counts).any()


def test_without_public_rows_the_tree_is_cut_blindly_in_the_range_that_was_given():
    X, y, _ = people()
    fitted = LPCTClassifier(4.0, depth=4, random_state=0).fit(X, y)
    assert (fitted.partition_.depth[fitted.partition_.leaves] == 4).all()
    assert fitted.model_.n_public == 0
    assert fitted.score(X, y) > 0.75
    stretched = LPCTClassifier(4.0, depth=4, feature_range=(0, 100), random_state=0).fit(100 * X, y)
    np.testing.assert_array_equal(stretched.totals_.counts, stretched.totals_.counts)
    np.testing.assert_array_equal(stretched.partition_.threshold, fitted.partition_.threshold)


def test_the_ledger_says_what_every_row_spent_on_what():
    X, y, public = people(3000, 20)
    fitted = LPCTClassifier(2.0, random_state=0).fit(X, y, public=public)
    (entry,) = fitted.ledger_.entries
    assert (entry.epsilon, len(entry.who)) == (2.0, 2980)
    assert fitted.ledger_.largest_spend().epsilon == 2.0
    # Algorithm 2 asks with one half of epsilon, and where it terminates with the other
    asked_twice = LPCTClassifier(2.0, prune="paper", random_state=0).fit(X, y, public=public)
    assert [entry.epsilon for entry in asked_twice.ledger_.entries] == [1.0, 1.0]
    assert asked_twice.protocol_.rounds == (2,)
    assert asked_twice.model_.epsilon == 2.0
    assert (asked_twice.model_.prune, asked_twice.model_.lam) == ("paper", "paper")
    once = LPCTClassifier(2.0, prune=PaperOptions(termination=False), random_state=0).fit(X, y, public=public)
    assert [entry.epsilon for entry in once.ledger_.entries] == [2.0]


def test_frames_and_texts_are_taken_as_they_are():
    pandas = pytest.importorskip("pandas")
    X, y, public = people(1000)
    words = np.array(["cash", "card"])[y]
    expected = LPCTClassifier(4.0, random_state=0).fit(X, y, public=public).predict(X)
    for frame in (pandas.DataFrame(X, columns=["a", "b", "c"]), pl.DataFrame(X, schema=["a", "b", "c"])):
        fitted = LPCTClassifier(4.0, random_state=0).fit(frame, words, public=public)
        assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
        assert fitted.model_.encoding.columns == ("a", "b", "c")
        assert set(fitted.predict(frame)) == {"cash", "card"}
    assert (np.array(["cash", "card"])[expected] == fitted.predict(frame)).mean() > 0.9


def test_public_rows_travel_through_searches_and_pipelines():
    X, y, public = people(1500)
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = LPCTClassifier(4.0, random_state=0).set_fit_request(public=True)
        scores = cross_validate(estimator, X, y, params={"public": public}, cv=3)["test_score"]
        assert scores.min() > 0.6
        search = GridSearchCV(estimator, {"depth": [1, 3]}, cv=3).fit(X, y, public=public)
        assert search.best_params_["depth"] in (1, 3)
        pipe = make_pipeline(FunctionTransformer(), estimator).fit(X, y, public=public)
        assert pipe[-1].model_.n_public == public.sum()


def test_intervals_hold_the_margin_and_widen_with_their_level():
    X, y, public = people()
    fitted = LPCTClassifier(1.0, depth=3, random_state=0).fit(X, y, public=public)
    margin = fitted.decision_function(X)
    low, high = fitted.margin_interval(X)
    lower, higher = fitted.margin_interval(X, level=0.99)
    assert ((lower < low) & (low < margin) & (margin < high) & (high < higher)).all()
    for wrong in (1.5, "a", None):
        with pytest.raises(ConfigError, match="between 0 and 1"):
            fitted.margin_interval(X, level=wrong)
    many = LPCTClassifier(4.0, random_state=0).fit(*people(n_classes=4)[:2], public=public)
    assert many.margin_interval(X)[0].shape == (3000, 4)


def test_the_model_can_be_kept_as_json_sql_or_pickle():
    X, y, public = people(800)
    fitted = LPCTClassifier(4.0, random_state=0).fit(X, y, public=public)
    again = read_model(fitted.model_.to_json())
    np.testing.assert_array_equal(fitted.classes_[again.predict(X)], fitted.predict(X))
    assert "SELECT" in to_sql(fitted.model_, "data")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    assert clone(fitted).get_params() == fitted.get_params()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epsilon": 0}, "epsilon must be a number above 0 and at most 64, got 0"),
        ({"epsilon": -1.0}, "above 0"),
        ({"epsilon": 65}, "at most 64, got 65"),
        ({"epsilon": math.nan}, "got nan"),
        ({"epsilon": "2"}, "got '2'"),
        ({"epsilon": 1e-9}, "at least 1e-06"),
        ({"epsilon": True}, "got True"),
        ({"mechanism": "ouee"}, "did you mean 'oue'"),
        ({"mechanism": "joint"}, "mechanism must be one of 'auto', 'grr'"),
        ({"partition": "max_edge"}, "did you mean 'max-edge'"),
        ({"lam": "learnt"}, "did you mean 'learned'"),
        ({"lam": -0.5}, "private alone"),
        ({"lam": math.nan}, "got nan"),
        ({"prune": "smoth"}, "did you mean 'smooth'"),
        ({"rule": "margins"}, "did you mean 'margin'"),
        ({"rule": "ratio"}, "ratio"),
        ({"rule": "ratio", "lam": "auto"}, 'prune = "none"'),
        ({"outside": "ignore"}, "outside must be one of 'clip', 'drop'"),
        ({"depth": 63}, "whole number from 0 to 62, got 63"),
        ({"depth": 2.5}, "got 2.5"),
        ({"depth": -1}, "got -1"),
        ({"depth": 40, "partition": "max-edge"}, "up to 2\\^40 cells"),
        ({"feature_range": (1, 0)}, "low must be below high, got \\(1, 0\\) for feature 0; swap them"),
        ({"feature_range": (0, math.inf)}, "finite"),
        ({"feature_range": 3}, "feature_range must be \\(low, high\\)"),
        ({"feature_range": ([0, 0], [1, 1])}, "each of 3 features"),
    ],
)
def test_a_wrong_parameter_has_one_clear_message(settings, said):
    X, y, public = people(200, 50)
    with pytest.raises(ConfigError, match=said):
        LPCTClassifier(**({"epsilon": 1.0, "random_state": 0} | settings)).fit(X, y, public=public)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda X, y, public: (X, y, np.arange(10)), "mask of True and False"),
        (lambda X, y, public: (X, y, public[:-1]), "public has shape \\(199,\\), there are 200 rows"),
        (lambda X, y, public: (X, y, public & False), "no row is public"),
        (lambda X, y, public: (X, y, public | True), "every row is public"),
        (lambda X, y, public: (X, y * 0, public), "one class only, .*Mark public rows of every class"),
        (lambda X, y, public: (X, y * ~public, public), "the public rows have one class only"),
        (lambda X, y, public: (X, y * 0, None), "y has one class only"),
        (lambda X, y, public: (X, np.full(len(y), "a"), None), "y has one class only; a classifier"),
        (lambda X, y, public: (X[0], y, public), "Expected 2D array"),
        (lambda X, y, public: (X, y[:-1], public), "inconsistent numbers of samples"),
        (lambda X, y, public: (np.where(X > 0.99, np.nan, X), y, public), "contains NaN"),
        (lambda X, y, public: (np.where(X > 0.99, np.inf, X), y, public), "infinity"),
        (lambda X, y, public: (X, y + 0.5, public), "Unknown label type"),
        (
            lambda X, y, public: (X, np.where(y, "card", None), public),
            "Input y contains NaN: labels are missing",
        ),
        (
            lambda X, y, public: (X, np.array([1, "cash"], object)[y], public),
            r"several types \(number, str\)",
        ),
    ],
)
def test_wrong_rows_have_one_clear_message(change, said):
    X, y, public = change(*people(200, 50))
    with pytest.raises(ValueError, match=said):
        LPCTClassifier(1.0, random_state=0).fit(X, y, public=public)


def test_predicting_too_early_or_with_other_columns_is_told():
    X, y, public = people(300)
    with pytest.raises(NotFittedError):
        LPCTClassifier(1.0).predict(X)
    fitted = LPCTClassifier(1.0).fit(X, y, public=public)
    with pytest.raises(ValueError, match="X has 2 features, but LPCTClassifier is expecting 3"):
        fitted.predict(X[:, :2])


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_totals_that_no_memory_holds_are_refused_with_their_size():
    X, _, _ = people(1)
    X, y = np.repeat(X, 5000, axis=0), np.arange(5000)
    with pytest.raises(
        ConfigError, match=r"1,024 cells x 5,000 classes: .* GiB; at most 3 are used, which is 919 such cells"
    ):
        LPCTClassifier(1.0, depth=10, random_state=0).fit(X, y)


def test_a_report_that_no_memory_holds_is_refused_with_its_size():
    X, y = make_classification(3000, 30, random_state=0)
    with pytest.raises(ConfigError, match=r"takes .* GiB|up to 2\^"):
        LPCTClassifier(1.0, depth=30, mechanism="laplace", random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "n_classes"),
    [
        ({"rule": "nothing"}, 2),
        ({"rule": "ratio"}, 2),
        ({"rule": "ratio", "prune": "none"}, 2),
        ({"prune": "paper"}, 3),
        ({"depth": 40, "partition": "max-edge"}, 2),
    ],
)
def test_errors_are_told_before_anything_is_spent(settings, n_classes):
    X, y, public = people(300, 80, n_classes=n_classes)
    estimator = LPCTClassifier(1.0, **settings)
    with pytest.raises(ConfigError):
        estimator.fit(X, y, public=public)
    assert not getattr(estimator, "ledger_", None) or not estimator.ledger_.entries
    with pytest.raises(DataError):
        LPCTClassifier(1.0).fit(X, y, public=public | True)


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"mechanism": "laplace"}, "mechanism"),
        ({"tune": "private", "candidates": [{}, {"mechanism": "laplace"}]}, r"candidates\[1\]: mechanism"),
    ],
)
def test_noise_that_gives_holders_away_is_for_seeded_simulations(settings, where):
    X, y, public = people(400, 100)
    with pytest.raises(ConfigError, match=f'^{where} = "laplace" is a simulation device.* set random_state$'):
        LPCTClassifier(4.0, **settings).fit(X, y, public=public)
