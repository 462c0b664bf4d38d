"""What every estimator promises, over one table of them: conventions of scikit-learn, seeds, ledgers, messages, warnings."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from estimator_cases import (
    CASES,
    N_PUBLIC,
    NUMERIC,
    OF_PUBLIC_FEATURES,
    OF_PUBLIC_ROWS,
    RANGED,
    N,
    fitted,
    text_of,
)
from first_fast import first_fast
from notebook_html import read_shown
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from ldptree.errors import AssumedRangeWarning, ConfigError, DataError
from ldptree.estimators import PublicRangeScaler

pytestmark = [
    pytest.mark.filterwarnings("ignore::ldptree.errors.AssumedRangeWarning"),
    pytest.mark.usefixtures("few_trees"),
]


@pytest.mark.parametrize("name", CASES)
def test_a_notebook_shows_parameters_and_once_fitted_what_was_learned(name):
    assert "sk-estimator" in CASES[name].make()._repr_html_()
    found = fitted(name)
    assert found._repr_html_() == found._repr_mimebundle_()["text/html"]
    shown = read_shown(found._repr_html_())
    assert f"{type(found.model_).__name__} of " in shown
    assert "at epsilon 4" in shown
    assert repr(found) in shown
    assert "x0" in shown.partition(str(found.model_))[2]


@pytest.mark.parametrize("name", CASES)
def test_printed_it_is_its_parameters_and_once_fitted_its_model(name):
    made, found = CASES[name].make(), fitted(name)
    assert str(made) == repr(made) == repr(found)
    assert str(found) == f"{found!r}\n{found.model_}"


ALIKE = [name for name in CASES if name not in ("lpct", "histoftree")]
"""They take and check rows as these two do, which have public rows and public features: checked with the slow tests."""


@pytest.mark.parametrize(
    "name", first_fast(*CASES, "scaler", fast=[n for n in (*CASES, "scaler") if n not in ALIKE])
)
def test_it_is_a_scikit_learn_estimator(name):
    """Every check passes; scikit-learn itself skips the one of array API inputs."""
    if name == "scaler":
        estimator = PublicRangeScaler()
    else:
        changes = {"private_features": []} if name in OF_PUBLIC_FEATURES else {"random_state": 0}
        estimator = CASES[name].make(8.0, **changes)
    for result in check_estimator(estimator, on_fail=None, on_skip=None):
        assert result["status"] == "passed" or result["check_name"] == "check_array_api_input", result


@pytest.mark.parametrize("name", CASES)
def test_its_tags_are_honest(name):
    """Poor scores on few rows; and two fits differ unless they are seeded."""
    tags = CASES[name].make().__sklearn_tags__()
    assert (tags.classifier_tags if CASES[name].is_class else tags.regressor_tags).poor_score
    assert not tags.non_deterministic
    assert CASES[name].make(random_state=None).__sklearn_tags__().non_deterministic


@pytest.mark.parametrize("name", CASES)
def test_a_seed_repeats_and_the_operating_systems_coins_do_not(name):
    case = CASES[name]
    assert text_of(case.fit()) == text_of(fitted(name))
    assert text_of(case.fit(random_state=None)) != text_of(case.fit(random_state=None))


@pytest.mark.parametrize("name", CASES)
def test_it_is_cloned_and_pickled_and_its_model_is_kept_as_text(name):
    X, _, _ = CASES[name].rows(1)
    found = fitted(name)
    assert clone(found).get_params() == found.get_params()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).predict(X), found.predict(X))
    again = type(found.model_).from_json(text_of(found))
    assert again.to_json() == text_of(found)
    if not CASES[name].is_class:
        np.testing.assert_array_equal(again.predict(X), found.predict(X))


@pytest.mark.parametrize("name", CASES)
def test_predicting_too_early_or_with_other_columns_is_an_error(name):
    with pytest.raises(NotFittedError):
        CASES[name].make().predict(np.zeros((2, 3)))
    kind = CASES[name].kind.__name__
    with pytest.raises(DataError, match=f"X has 2 features, but {kind} is expecting 3"):
        fitted(name).predict(np.zeros((2, 2)))
    with pytest.raises(DataError, match="infinity"):
        fitted(name).predict(np.full((2, 3), np.inf))


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_argument_of_a_fit_names_the_class_that_was_called(name):
    case = CASES[name]
    X, y, _ = case.rows()
    with pytest.raises(
        TypeError, match=rf"^{case.kind.__name__}[.]fit\(\) got an unexpected keyword argument 'who'"
    ):
        case.make().fit(X, y, who=None)


@pytest.mark.parametrize("name", CASES)
def test_a_refused_fit_leaves_an_estimator_unfitted_and_no_earlier_model(name):
    """Refused for its parameters, for its labels, and for what is protected or public: the latest that a fit can be."""
    X, y, besides = CASES[name].rows()
    mask = {"public": np.ones(N, bool)} if name in OF_PUBLIC_ROWS else {"protects": np.ones((N, 2), bool)}
    found = CASES[name].fit()
    assert found.predict(X).shape == (N,)
    for labels, masks, settings in [
        (y, besides, {"epsilon": 65.0}),
        (np.where(y == y[0], np.nan, y), besides, {}),
        (y, mask, {}),
    ]:
        for estimator in (CASES[name].make(), clone(found), pickle.loads(pickle.dumps(found))):
            with pytest.raises((ConfigError, DataError)):
                estimator.set_params(**settings).fit(X, labels, **masks)
            with pytest.raises(NotFittedError, match="not fitted yet"):
                estimator.predict(X)
            assert "sk-estimator" in estimator._repr_html_()


@pytest.mark.parametrize("name", CASES)
def test_frames_are_taken_as_they_are_and_columns_keep_their_names(name):
    X, y, besides = CASES[name].rows()
    texts = np.array(["card", "cash"])[y] if CASES[name].is_class else y
    frames = [pl.DataFrame(X, schema=["label", "b", "c"]), pd.DataFrame(X, columns=["label", "b", "c"])]
    for frame in frames if name in ("lpct", "histoftree") else frames[1:]:
        found = CASES[name].make().fit(frame, texts, **besides)
        assert found.feature_names_in_.tolist() == ["label", "b", "c"]
        assert found.predict(frame).shape == (N,)
        if name in OF_PUBLIC_ROWS:
            protocol = found.protocol_ if hasattr(found, "protocol_") else found.protocols_[0]
            assert protocol.encoding.columns == ("label", "b", "c")
            assert protocol.target == "label_"
    plain = fitted(name).predict(X)
    if CASES[name].is_class:
        assert set(found.predict(frame)) <= {"card", "cash"}
        plain = np.array(["card", "cash"])[plain]
    # with another name of a column the coins are others, and so is the noise
    assert name in OF_PUBLIC_ROWS or (found.predict(frame) == plain).all()


@pytest.mark.parametrize("name", OF_PUBLIC_FEATURES)
def test_columns_go_by_name_as_by_number(name):
    X, y, _ = CASES[name].rows()
    frame = pl.DataFrame(X, schema=["age", "b", "c"])
    named = CASES[name].make(private_features=["age"]).fit(frame, y)
    np.testing.assert_array_equal(named.predict(frame), fitted(name).predict(X))
    mask = np.tile([True, False, False], (N, 1))
    by_mask = CASES[name].make(private_features=None).fit(X, y, protects=mask)
    np.testing.assert_array_equal(by_mask.predict(X), fitted(name).predict(X))
    with pytest.raises(ConfigError, match="did you mean 'age'"):
        CASES[name].make(private_features=["aje"]).fit(frame, y)


@pytest.mark.parametrize("name", OF_PUBLIC_ROWS)
def test_public_rows_travel_through_searches_and_pipelines(name):
    X, y, besides = CASES[name].rows()
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = CASES[name].make(8.0).set_fit_request(public=True)
        search = GridSearchCV(estimator, {"depth": [1, 2]}, cv=2, error_score="raise").fit(X, y, **besides)
        assert search.best_params_["depth"] in (1, 2)
        assert search.cv_results_["split1_test_score"].min() > 0.3
        pipe = make_pipeline(
            PublicRangeScaler().set_fit_request(public=True), FunctionTransformer(), estimator
        ).fit(X, y, **besides)
        assert pipe[-1].model_.n_public == N_PUBLIC


@pytest.mark.parametrize("name", CASES)
def test_every_row_spends_epsilon_at_most_and_the_ledger_lists_on_what(name):
    found = fitted(name)
    spent = found.ledger_.largest_spend()
    assert spent.epsilon <= 4.0 + 1e-9
    assert spent.epsilon == pytest.approx(4.0, abs=1e-6)
    holders = [entry.who.hashes for entry in found.ledger_.entries if hasattr(entry.who, "hashes")]
    assert "tuning_" not in vars(found) or (found.tuning_ is None) == ("tuned" not in name)
    if name == "histoftree":  # two questions to everybody
        assert [len(who) for who in holders] == [N, N]
    elif holders:
        assert np.unique(np.concatenate(holders)).size == sum(map(len, holders)) == N
    else:
        places = sorted((entry.who.start, entry.who.stop) for entry in found.ledger_.entries)
        assert [a for a, _ in places[1:]] == [b for _, b in places[:-1]]
        assert (places[0][0], places[-1][1]) == (0, N - N_PUBLIC)
    assert all(entry.about for entry in found.ledger_.entries)


def published(found):
    """Everything that holders are shown before they report."""
    if hasattr(found, "protocol_"):
        return [found.protocol_.digest]
    if hasattr(found, "protocols_"):
        return [found.base_.ensemble.digest, found.plan_.range, *(p.digest for p in found.protocols_)]
    return (found.answers_ if hasattr(found, "answers_") else found.rounds_)[0].question.to_json()


@pytest.mark.parametrize("name", CASES)
def test_private_rows_change_nothing_but_the_totals(name):
    """Neither ranges, classes, base, tree, mechanism nor depth: rows permuted; poisoned; with a label that nobody declared."""
    X, y, besides = CASES[name].rows()
    private, columns = (~besides["public"], [0, 1, 2]) if besides else (np.ones(N, bool), [0])
    at, order = np.ix_(private, columns), np.random.default_rng(3).permutation(private.sum())
    for change in ("permuted", "poisoned"):
        rows, labels = X.copy(), y.copy()
        if change == "permuted":
            rows[at], labels[private] = X[at][order], y[private][order]
        else:
            rows[at] = 1e6 * X[at] - 7
            labels[private] = 99 if besides or name in NUMERIC else 1 - y
        other = CASES[name].make().fit(rows, labels, **besides)
        assert published(other) == published(fitted(name))
    assert text_of(other) != text_of(fitted(name))


@pytest.mark.parametrize("name", CASES)
def test_predictions_and_intervals_stay_where_they_belong(name):
    X, _, _ = CASES[name].rows(2)
    found = fitted(name)
    interval = getattr(found, "mean_interval", None) or getattr(found, "margin_interval", None)
    if interval is None:
        return
    low, high = interval(X)
    lower, higher = interval(X, level=0.99)
    middle = found.predict(X) if name in NUMERIC else found.decision_function(X)
    assert ((lower <= low) & (low <= middle) & (middle <= high) & (high <= higher)).all()
    assert ((higher - lower) > (high - low)).any()
    for wrong in (1.5, "a", None):
        with pytest.raises(ConfigError, match="between 0 and 1"):
            interval(X, level=wrong)


@pytest.mark.parametrize("name", RANGED)
def test_labels_beyond_their_range_count_as_its_ends_and_no_noise_takes_a_prediction_out_of_it(name):
    X, y, besides = CASES[name].rows()
    private = ~besides.get("public", np.zeros(N, bool))
    ends = (0.0, 2.1) if besides else (0.5, 1.5)
    beyond = np.where(private & (y > 1.2), 1e9, np.where(private & (y < 0.8), -1e9, y))
    clipped = np.clip(beyond, *ends)
    # of public features the rest beside a surface is cut, so that an end is not as far out as what lies beyond it
    as_far = np.where(np.abs(beyond) > 9, 7 * beyond, beyond) if name == "public_features" else clipped
    one, other = (CASES[name].make(label_range=ends).fit(X, labels, **besides) for labels in (beyond, as_far))
    assert text_of(one) == text_of(other)
    assert "tuned" not in name or one.tuning_.error.tolist() == other.tuning_.error.tolist()
    for epsilon in (0.1, 0.1 if "tuned" in name else 1e-6):
        found = CASES[name].make(epsilon, label_range=ends).fit(X, clipped, **besides).predict(X)
        assert ((ends[0] <= found) & (found <= ends[1])).all()


@pytest.mark.parametrize("name", RANGED)
def test_a_range_of_labels_may_be_an_array(name):
    pair, array = (CASES[name].fit(label_range=ends) for ends in ((-3, 5), np.array([-3, 5])))
    assert text_of(pair) == text_of(array)


# ranges: no estimator assumes one, or cuts off what everybody sees, without a warning; no private value has a say in it

ALL_RANGES = {**CASES, "scaler": None}
ROWS = np.random.default_rng(3).random((120, 2)) * [40.0, 3.0]


def fit_ranges(name, X=ROWS, **how):
    """Fit with everything private unless `public` is given; the texts of the warnings of ranges."""
    case = CASES.get(name)
    besides = {"public": how.pop("public")} if "public" in how else {}
    everything = {"private_features": [0, 1]} if name in OF_PUBLIC_FEATURES else {}
    estimator = PublicRangeScaler(**how) if case is None else case.make(1.0, **everything, **how)
    y = (ROWS[:, 0] > 20).astype(int) if case is None or case.is_class else ROWS[:, 0] / 2
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        estimator.fit(X, y, **besides)
    assert all(one.filename == __file__ for one in found if one.category is AssumedRangeWarning)
    return [str(one.message) for one in found if one.category is AssumedRangeWarning]


@pytest.mark.parametrize("name", ALL_RANGES)
def test_a_range_that_nobody_stated_is_warned_of_with_the_columns_and_the_remedy(name):
    messages = fit_ranges(name)
    about = "feature_range: no public row tells the range of x0, x1, so"
    assert any(one.startswith(about) and "Give feature_range = (low, high)" in one for one in messages)
    labels = [
        one.partition(":")[0] for one in messages if one.startswith(("label_range:", "residual_range:"))
    ]
    expected = CASES[name].label_range if name in CASES else None
    assert labels == ([expected] if expected else [])


@pytest.mark.parametrize("name", ALL_RANGES)
def test_ranges_that_are_stated_are_not_warned_of(name):
    parameter = CASES[name].label_range if name in CASES else None
    stated = {parameter: 20.0 if parameter == "residual_range" else (0, 20)} if parameter else {}
    assert fit_ranges(name, feature_range=(0, [40, 3]), **stated) == []


@pytest.mark.parametrize("name", [*OF_PUBLIC_ROWS, "scaler"])
def test_the_range_of_public_rows_needs_no_warning_and_one_that_cuts_them_off_says_what_share(name):
    public = np.arange(len(ROWS)) < 40
    assert fit_ranges(name, public=public) == []
    (message,) = fit_ranges(name, feature_range=(0, [10, 3]), public=public)
    assert f"x0 ({100 * (ROWS[:40, 0] > 10).mean():.1f} %)" in message
    assert "x1" not in message


@pytest.mark.parametrize("name", ALL_RANGES)
def test_what_is_warned_of_does_not_depend_on_private_rows(name):
    assert fit_ranges(name, ROWS / [40.0, 3.0]) == fit_ranges(name, ROWS * 1e6)


# a range of two finite ends whose distance is not finite: no feature can be divided by it

WIDE = pd.DataFrame({"much": np.linspace(0, 1, 60), "more": np.linspace(-1, 1, 60) * 1e308})
WIDE_PUBLIC = np.arange(60) % 3 != 1


def wide(name):
    return PublicRangeScaler() if name == "scaler" else CASES[name].make()


@pytest.mark.parametrize("name", ALL_RANGES)
def test_a_setting_of_a_range_that_is_too_wide_is_refused(name):
    one = wide(name).set_params(feature_range=([0, -1e308], [1, 1e308]))
    message = r"feature_range: \(-1e\+308, 1e\+308\) for feature 1 is so wide .* a narrower one"
    with pytest.raises(ConfigError, match=message):
        one.fit(WIDE / 2, np.arange(60) % 2)


@pytest.mark.parametrize("name", [name for name in ALL_RANGES if name != "histoftree"])
@pytest.mark.parametrize("named", [True, False])
def test_public_values_that_are_too_far_apart_are_refused_with_their_column(name, named):
    besides = {} if name in OF_PUBLIC_FEATURES else {"public": WIDE_PUBLIC}
    message = r'column ".*": public values go from -1e\+308 to 1e\+308, so far apart'
    with pytest.raises(DataError, match=message) as fault:
        wide(name).fit(WIDE if named else WIDE.to_numpy(), np.arange(60) % 2, **besides)
    assert ('"more"' in str(fault.value)) == named


@pytest.mark.parametrize("name", [*OF_PUBLIC_ROWS, "scaler"])
def test_private_values_that_are_too_far_apart_have_no_say(name):
    rows = WIDE.copy()
    rows.loc[WIDE_PUBLIC, "more"] = rows.loc[WIDE_PUBLIC, "much"]
    wide(name).fit(rows, np.arange(60) % 2, public=WIDE_PUBLIC)
