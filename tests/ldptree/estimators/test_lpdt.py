"""LPDTRegressor: a scikit-learn regressor whose private rows are only seen through one report each."""

import math
import pickle

import numpy as np
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from ldptree.errors import ConfigError, DataError
from ldptree.estimators import LPDTRegressor
from ldptree.mechanisms import CHOICES
from ldptree.models import read_model


def people(n=2000, n_public=150, seed=0):
    """Rows, labels from 0 to 4 and a mask of public rows: the label follows the quarter of the plane."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    y = 1.0 * (X[:, 0] > 0.5) + 2.0 * (X[:, 1] > 0.5) + rng.random(n)
    return X, y, rng.permutation(n) < n_public


@pytest.mark.parametrize("random_state", [0, None])
def test_it_is_a_scikit_learn_estimator(random_state):
    """Every check passes. scikit-learn itself skips the one of array API inputs, which needs SCIPY_ARRAY_API set, and, of an
    estimator that says it is not deterministic, the one that compares two fits.
    """
    skipped = {"check_array_api_input"} | ({"check_pipeline_consistency"} if random_state is None else set())
    for result in check_estimator(LPDTRegressor(8.0, random_state=random_state), on_fail=None, on_skip=None):
        assert result["status"] == "passed" or result["check_name"] in skipped, result


def test_its_tags_are_honest():
    """Poor scores on few rows; and two fits differ unless they are seeded."""
    assert LPDTRegressor(1.0).__sklearn_tags__().regressor_tags.poor_score
    assert LPDTRegressor(1.0).__sklearn_tags__().non_deterministic
    assert not LPDTRegressor(1.0, random_state=0).__sklearn_tags__().non_deterministic


@pytest.mark.parametrize("mechanism", CHOICES)
def test_it_learns_the_law_with_every_mechanism(mechanism):
    X, y, public = people(6000, 100)
    fitted = LPDTRegressor(8.0, mechanism=mechanism, depth=2, random_state=1).fit(X, y, public=public)
    T, t, _ = people(2000, seed=5)
    assert fitted.score(T, t) > 0.85
    assert fitted.mechanism_.epsilon <= 8.0
    assert fitted.protocol_.numeric
    assert fitted.protocol_.simulation == (mechanism == "laplace")


@pytest.mark.parametrize(
    "settings",
    [
        {"partition": "max-edge"},
        {"partition": "random-edge", "depth": 6},
        {"lam": 0},
        {"lam": math.inf},
        {"lam": "auto"},
        {"prune": "fallback"},
        {"prune": "none", "lam": 1.0},
        {"outside": "drop"},
        {"feature_range": (0, 1)},
        {"min_samples_leaf": 30},
        {"label_range": (-5.0, 9.0)},
        {
            "mechanism": "randomized_response",
            "lam": 0,
            "prune": "none",
            "rule": "ratio",
            "rho": 0.7,
            "depth": 2,
        },
    ],
)
def test_every_variant_of_the_paper_is_a_setting(settings):
    X, y, public = people(6000, 100)
    fitted = LPDTRegressor(8.0, random_state=3, **settings).fit(X, y, public=public)
    found = fitted.predict(X)
    low, high = fitted.label_range_
    assert fitted.score(X, y) > 0.5
    assert ((low <= found) & (found <= high)).all()


def test_a_seeded_simulation_repeats_and_coins_of_the_system_do_not():
    X, y, public = people()
    one, two = (LPDTRegressor(1.0, random_state=7).fit(X, y, public=public) for _ in range(2))
    np.testing.assert_array_equal(one.totals_.counts, two.totals_.counts)
    assert one.model_.digest == two.model_.digest
    one, two = (LPDTRegressor(1.0).fit(X, y, public=public) for _ in range(2))
    assert (one.totals_.counts != two.totals_.counts).any()


def test_private_rows_change_nothing_but_the_totals():
    """Neither ranges, tree, levels, mechanism nor depth: private values ten times as large, and labels out of range."""
    X, y, public = people()
    one = LPDTRegressor(2.0, random_state=1).fit(X, y, public=public)
    X[~public] *= 10
    y[~public] = 100 - 7 * y[~public]
    two = LPDTRegressor(2.0, random_state=1).fit(X, y, public=public)
    assert one.protocol_.digest == two.protocol_.digest
    assert two.label_range_ == (y[public].min(), y[public].max())
    assert (one.totals_.counts != two.totals_.counts).any()


def test_private_labels_are_moved_into_the_range_of_the_public_ones():
    X, y, public = people()
    beyond = np.where(public, y, np.where(y > 2, 1e9, -1e9))
    ends = np.where(public, y, np.where(y > 2, y[public].max(), y[public].min()))
    one, two = (LPDTRegressor(2.0, random_state=1).fit(X, labels, public=public) for labels in (beyond, ends))
    assert one.model_.digest == two.model_.digest


def test_without_public_rows_the_tree_is_cut_blindly_and_labels_lie_in_the_range_that_was_given():
    X, y, _ = people(6000)
    fitted = LPDTRegressor(4.0, depth=4, random_state=0).fit(X, y / 2 - 1)
    assert fitted.label_range_ == (-1.0, 1.0)
    assert (fitted.partition_.depth[fitted.partition_.leaves] == 4).all()
    assert fitted.model_.n_public == 0
    assert fitted.score(X, y / 2 - 1) > 0.6
    edges = LPDTRegressor(4.0, depth=4, partition="max-edge", random_state=0).fit(X, y / 2 - 1)
    np.testing.assert_array_equal(edges.partition_.threshold, fitted.partition_.threshold)
    known = LPDTRegressor(4.0, depth=4, label_range=(0, 4), random_state=0).fit(X, y)
    assert known.label_range_ == (0.0, 4.0)
    assert known.score(X, y) > 0.6


def test_the_ledger_says_what_every_row_spent_on_what():
    X, y, public = people(1000, 20)
    fitted = LPDTRegressor(2.0, random_state=0).fit(X, y, public=public)
    (entry,) = fitted.ledger_.entries
    assert (entry.epsilon, len(entry.who)) == (2.0, 980)
    assert fitted.ledger_.largest_spend().epsilon == 2.0


def test_frames_are_taken_as_they_are():
    pandas = pytest.importorskip("pandas")
    X, y, public = people(800)
    expected = LPDTRegressor(4.0, random_state=0).fit(X, y, public=public).model_
    for frame in (pandas.DataFrame(X, columns=["a", "b", "c"]), pl.DataFrame(X, schema=["a", "b", "c"])):
        fitted = LPDTRegressor(4.0, random_state=0).fit(frame, y, public=public)
        assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
        assert fitted.model_.encoding.columns == ("a", "b", "c")
        assert fitted.predict(frame).shape == (800,)
        np.testing.assert_array_equal(fitted.partition_.threshold, expected.partition.threshold)


def test_a_feature_that_is_called_label_is_told_from_the_label():
    X, y, public = people(300)
    fitted = LPDTRegressor(4.0, random_state=0).fit(pl.DataFrame(X, schema=["label", "b", "c"]), y, public)
    assert fitted.protocol_.target == "label_"


def test_public_rows_travel_through_searches_and_pipelines():
    X, y, public = people(900)
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = LPDTRegressor(4.0, random_state=0).set_fit_request(public=True)
        scores = cross_validate(estimator, X, y, params={"public": public}, cv=3)["test_score"]
        assert scores.min() > 0.5
        pipe = make_pipeline(FunctionTransformer(), estimator).fit(X, y, public=public)
        assert pipe[-1].model_.n_public == public.sum()


def test_intervals_hold_the_prediction_and_widen_with_their_level():
    X, y, public = people()
    fitted = LPDTRegressor(1.0, depth=3, random_state=0).fit(X, y, public=public)
    found = fitted.predict(X)
    low, high = fitted.predict_interval(X)
    lower, higher = fitted.predict_interval(X, level=0.99)
    assert ((lower <= low) & (low <= found) & (found <= high) & (high <= higher)).all()
    assert ((higher - lower) > (high - low)).any()
    for wrong in (1.5, "a", None):
        with pytest.raises(ConfigError, match="between 0 and 1"):
            fitted.predict_interval(X, level=wrong)


def test_the_model_can_be_kept_as_json_or_pickle():
    X, y, public = people(500)
    fitted = LPDTRegressor(4.0, random_state=0).fit(X, y, public=public)
    again = read_model(fitted.model_.to_json())
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    assert clone(fitted).get_params() == fitted.get_params()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epsilon": 0}, "epsilon must be a number above 0 and at most 64, got 0"),
        ({"epsilon": 65}, "at most 64, got 65"),
        ({"epsilon": math.nan}, "got nan"),
        ({"epsilon": "2"}, "got '2'"),
        ({"epsilon": 1e-9}, "at least 1e-06"),
        ({"mechanism": "randomised_response"}, "did you mean 'randomized_response'"),
        ({"mechanism": "number_response"}, "mechanism must be one of 'auto', 'grr'"),
        ({"partition": "max_edge"}, "did you mean 'max-edge'"),
        ({"lam": "learnt"}, "did you mean 'learned'"),
        ({"lam": -0.5}, "private alone"),
        ({"prune": "variance"}, "prune must be one of 'smooth', 'fallback', 'none'"),
        ({"prune": "falback"}, "did you mean 'fallback'"),
        ({"rule": "margins"}, "did you mean 'margin'"),
        ({"rule": "ratio", "lam": 0}, 'prune = "none"'),
        ({"rule": "ratio", "prune": "none"}, "fixed lam"),
        ({"outside": "ignore"}, "outside must be one of 'clip', 'drop'"),
        ({"depth": 63}, "whole number from 0 to 62, got 63"),
        ({"depth": 2.5}, "got 2.5"),
        ({"min_samples_leaf": 0}, "whole number from 1, got 0"),
        ({"min_samples_leaf": 1.5}, "got 1.5"),
        ({"rho": 0}, "rho"),
        ({"rho": 1}, "between 0 and 1"),
        ({"rho": "half"}, "rho must be a number between 0 and 1, got 'half'"),
        ({"feature_range": (1, 0)}, r"low must be below high, got \(1, 0\) for feature 0; swap them"),
        ({"feature_range": 3}, r"feature_range must be \(low, high\)"),
        ({"label_range": (9, -9)}, r"label_range: low must be below high, got \(9, -9\); swap them"),
        ({"label_range": (0, 0)}, "low must be below high"),
        ({"label_range": (1.0, 2.0)}, "does not cover the public labels, which lie from .*; widen it"),
        ({"label_range": (0, math.inf)}, "two finite numbers"),
        ({"label_range": 4}, r"label_range must be \(low, high\), two numbers, got 4"),
        ({"label_range": (0, 1, 2)}, "two numbers"),
        ({"label_range": ("a", "b")}, "two finite numbers"),
        ({"label_range": (-1.7e308, 1.7e308)}, "so far apart"),
    ],
)
def test_a_wrong_parameter_has_one_clear_message(settings, said):
    X, y, public = people(200, 50)
    estimator = LPDTRegressor(**({"epsilon": 1.0, "random_state": 0} | settings))
    with pytest.raises(ConfigError, match=said):
        estimator.fit(X, y, public=public)
    assert not getattr(estimator, "ledger_", None) or not estimator.ledger_.entries


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda X, y, public: (X, y, np.arange(10)), "mask of True and False"),
        (lambda X, y, public: (X, y, public[:-1]), r"public has shape \(199,\), there are 200 rows"),
        (lambda X, y, public: (X, y, public & False), "no row is public"),
        (lambda X, y, public: (X, y, public | True), "every row is public, so nobody is left"),
        (lambda X, y, public: (X, y * ~public, public), "one label only, 0, so they give no range"),
        (lambda X, y, public: (X[0], y, public), "Expected 2D array"),
        (lambda X, y, public: (X, y[:-1], public), "inconsistent numbers of samples"),
        (lambda X, y, public: (np.where(X > 0.99, np.nan, X), y, public), "contains NaN"),
        (lambda X, y, public: (np.where(X > 0.99, np.inf, X), y, public), "infinity"),
        (lambda X, y, public: (X, np.where(y > 3, np.nan, y), public), "contains NaN"),
        (lambda X, y, public: (X, np.array(["a"] * 200, object), public), "labels hold what is no number"),
        (lambda X, y, public: (X[:0], y[:0], None), "0 sample"),
    ],
)
def test_wrong_rows_have_one_clear_message(change, said):
    X, y, public = change(*people(200, 50))
    with pytest.raises(ValueError, match=said):
        LPDTRegressor(1.0, random_state=0).fit(X, y, public=public)


def test_predicting_too_early_or_with_other_columns_is_told():
    X, y, public = people(300)
    with pytest.raises(NotFittedError):
        LPDTRegressor(1.0).predict(X)
    fitted = LPDTRegressor(1.0).fit(X, y, public=public)
    with pytest.raises(ValueError, match="X has 2 features, but LPDTRegressor is expecting 3"):
        fitted.predict(X[:, :2])


def test_a_single_public_row_gives_no_range_unless_one_is_given():
    X, y, _ = people(100)
    public = np.arange(100) == 0
    with pytest.raises(DataError, match="no range; set label_range"):
        LPDTRegressor(1.0).fit(X, y, public=public)
    fitted = LPDTRegressor(1.0, label_range=(0, 4), feature_range=(0, 1)).fit(X, y, public=public)
    assert np.isfinite(fitted.predict(X)).all()


@pytest.mark.parametrize("power", [-50, -180, 180])
def test_the_unit_of_the_label_does_not_matter(power):
    """A power of two rounds nothing, so the tree is the same (scikit-learn's own stops at an absolute variance)."""
    X, y, public = people(600)
    trees = [
        LPDTRegressor(4.0, random_state=0).fit(X, label, public=public).partition_
        for label in (y, np.ldexp(y, power))
    ]
    assert trees[0].n_leaves > 1
    assert trees[0].to_json() == trees[1].to_json()


@pytest.mark.parametrize("scale", [1e200, 1e-200])
@pytest.mark.parametrize("tune", [None, "private"])
def test_labels_whose_squares_are_no_floats_are_refused(scale, tune):
    X, y, public = people(400)
    with pytest.raises(ConfigError, match="another unit"):
        LPDTRegressor(4.0, tune=tune, random_state=0).fit(X, y * scale, public=public)
    with pytest.raises(ConfigError, match="another unit"):
        LPDTRegressor(4.0, label_range=(0, 5e-324), tune=tune, random_state=0).fit(X, y)


def test_dates_are_no_labels():
    X, y, public = people(400)
    for dates in (
        y.astype("datetime64[D]"),
        y.astype("timedelta64[s]"),
        y.astype("datetime64[D]").astype(object),
    ):
        with pytest.raises(DataError, match="dates or times"):
            LPDTRegressor(4.0, random_state=0).fit(X, dates, public=public)


def test_a_feature_range_in_a_text_is_refused():
    X, y, _ = people(400)
    with pytest.raises(ConfigError, match="feature_range must be"):
        LPDTRegressor(4.0, feature_range="01", random_state=0).fit(X, y)


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
        LPDTRegressor(4.0, **settings).fit(X, y, public=public)
