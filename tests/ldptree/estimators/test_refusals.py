"""What an estimator refuses, before anybody reports: one table of parameters, and of rows, labels and masks."""

from __future__ import annotations

import re

import numpy as np
import pytest
from estimator_cases import CASES, NUMERIC, OF_PUBLIC_FEATURES, OF_PUBLIC_ROWS, RANGED, N, fitted, text_of
from wrong_settings import WRONG_SETTINGS

from ldptree.errors import ConfigError, DataError

pytestmark = [
    pytest.mark.filterwarnings("ignore::ldptree.errors.AssumedRangeWarning"),
    pytest.mark.usefixtures("few_trees"),
]


EVERY, TREES = tuple(CASES), ("lpct", "lpdt")
LAPLACE = '= "laplace" is a simulation device.* set random_state$'


def shown(value):
    """A pattern of it; of an object without its address."""
    return (
        re.escape(repr(value))
        if isinstance(value, int | float | str | list)
        else r"Generator\(PCG64\) at \w+"
    )


WRONG_PARAMETERS = [
    (EVERY, {"epsilon": 0}, "^epsilon must be"),
    (EVERY, {"epsilon": -1.0}, "^epsilon must be"),
    (EVERY, {"epsilon": 65}, "64, got 65"),
    (EVERY, {"epsilon": np.nan}, "got nan"),
    (EVERY, {"epsilon": "2"}, "got '2'"),
    (EVERY, {"epsilon": 1e-9}, "1e-06"),
    (EVERY, {"epsilon": True}, "got True"),
    (EVERY, {"feature_range": (1, 0)}, r"low must be below high, got \(1, 0\) for feature 0; swap them"),
    (EVERY, {"feature_range": (0, np.inf)}, "finite"),
    (EVERY, {"feature_range": 3}, r"feature_range must be \(low, high\)"),
    (EVERY, {"feature_range": "01"}, "feature_range must be"),
    (EVERY, {"feature_range": ([0, 0], [1, 1])}, "each of 3 features"),
    *(
        (EVERY, {"random_state": wrong}, rf"^random_state must be None, a whole number from 0 to .*got {shown(wrong)}$")
        for wrong in (-1, 2**32, 2**40, 10**400, 0.5, "x", True, np.nan, [1, 2], np.random.default_rng(0))
    ),
    (RANGED, {"label_range": (-1.7e308, 1.7e308)}, "label.range"),
    (RANGED, {"label_range": (0, 5e-324)}, "label.range"),
    (TREES, {"mechanism": "ouee"}, "did you mean 'oue'"),
    (TREES, {"mechanism": "randomised_response"}, "did you mean 'randomized_response'"),
    (TREES, {"mechanism": "joint"}, "mechanism must be 'auto', 'grr'"),
    (TREES, {"outside": "ignore"}, "outside must be 'clip' or 'drop'"),
    (TREES, {"mechanism": "laplace", "random_state": None}, f"^mechanism {LAPLACE}"),
    (TREES, {"candidates": [{}, {"mechanism": "laplace"}], "random_state": None}, rf"^candidates\[1\]: mechanism {LAPLACE}"),
    (TREES, {"candidates": {"depth": 1}}, "a list of dicts"),
    (TREES, {"candidates": [{"depth": 1}]}, "1 of them; there must be 2 to 64"),
    (TREES, {"candidates": [{}, {"depths": 1}]}, r"candidates\[1\]: a parameter must be one of .* did you mean 'depth'"),
    (TREES, {"candidates": [{}, {"epsilon": 1}]}, r"candidates\[1\]: a parameter must be one of"),
    (TREES, {"candidates": [{}, {"depth": -1}]}, r"candidates\[1\]: depth must be"),
    (TREES, {"candidates": [{"lam": "great"}, {}]}, r"candidates\[0\]: lam must be 'learned', 'auto' or a number"),
    (TREES, {"candidates": [{"rule": "ratio"}, {}]}, r"candidates\[0\]: .*ratio"),
    (("lpct",), {"candidates": [{}, {"prune": "paper"}]}, "asks holders twice"),
    (("lpct, tuned",), {"prune": "paper"}, "asks holders twice"),
    (("lpct, tuned", "lpdt, tuned"), {"validation_share": 0}, "validation_share must be a number above 0 and below 1, got 0"),
    (("lpct, tuned", "lpdt, tuned"), {"validation_share": True}, "validation_share must be"),
    (("lpct, tuned", "lpdt, tuned"), {"validation_share": 1.5}, "validation_share must be"),
    (("lpdt",), {"mechanism": "number_response"}, "mechanism must be 'auto', 'grr'"),
    (("lpdt",), {"label_range": (1.0, 1.2)}, "does not cover the public labels, which lie from .*; widen it"),
    (("correction, a number",), {"mechanism": "laplace"}, "is not for a residual"),
    (("correction, a number",), {"max_protocol_bytes": 200}, "leave no room for a public model"),
    (("correction, a number",), {"max_protocol_bytes": 1000}, "bytes in a protocol"),
    (("histoftree",), {"s": 9}, "there are 3 features"),
    (("histoftree",), {"mask_release": "none"}, "give protects="),
    (("histoftree",), {"t": 254, "p": 20}, "the largest that fits"),
    (("histoftree",), {"label": "laplace", "random_state": None}, 'simulation device.*use "optimal_label", or set random_state'),
    (("public_features", "public_features, classes"), {"private_features": None}, "neither of private_features"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [(name, settings, message) for names, settings, message in WRONG_PARAMETERS for name in names]
    + [
        (name, settings, f"^{key}:? .*{re.escape(said)}")
        for family, settings, key, said in WRONG_SETTINGS
        for name in CASES
        if name.split(",")[0] == family and set(settings) <= set(CASES[name].make().get_params())
    ],
)
def test_a_wrong_parameter_has_one_clear_message(name, settings, message):
    X, y, besides = CASES[name].rows()
    estimator = CASES[name].make(**settings)
    with pytest.raises(ConfigError, match=message):
        estimator.fit(X, y, **besides)
    assert not getattr(estimator, "ledger_", None) or not estimator.ledger_.entries


WRONG_ROWS = [
    (lambda X, y: (X[0], y), "Expected 2D array"),
    (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
    (lambda X, y: (np.where(X > 0.99, np.nan, X), y), "contains NaN"),
    (lambda X, y: (np.where(X > 0.99, np.inf, X), y), "infinity"),
    (lambda X, y: (X, np.where(X[:, 0] > 0.9, np.nan, y)), "contains NaN"),
    (lambda X, y: (X, np.where(X[:, 0] > 0.9, None, y)), "labels are missing"),
    (lambda X, y: (X[:0], y[:0]), "0 sample"),
]


@pytest.mark.parametrize("name", CASES)
def test_wrong_rows_have_one_clear_message(name):
    X, y, besides = CASES[name].rows()
    for change, message in WRONG_ROWS:
        with pytest.raises(ValueError, match=message):
            CASES[name].make().fit(*change(X, y), **besides)


@pytest.mark.parametrize("name", NUMERIC)
def test_labels_in_texts_are_numbers_and_dates_and_other_texts_are_not(name):
    X, y, besides = CASES[name].rows()
    assert text_of(CASES[name].make().fit(X, y.astype(str), **besides)) == text_of(fitted(name))
    for dates in (
        (1000 * y).astype("datetime64[D]"),
        (1000 * y).astype("timedelta64[s]"),
        (1000 * y).astype("datetime64[D]").astype(object),
    ):
        with pytest.raises(DataError, match="dates or times"):
            CASES[name].make().fit(X, dates, **besides)
    with pytest.raises(DataError, match="labels hold what is no number"):
        CASES[name].make().fit(X, np.array(["a"] * N, object), **besides)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.is_class])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: y * 0, "one class only"),
        (lambda y: np.full(N, "a"), "one class only"),
        (lambda y: y + 0.5, "Unknown label type"),
        (lambda y: np.array([1, "cash"], object)[y], r"several types \(number, str\)"),
    ],
)
def test_labels_that_are_no_classes_have_one_clear_message(name, change, message):
    X, y, besides = CASES[name].rows()
    with pytest.raises(DataError, match=message):
        CASES[name].make().fit(X, change(y), **besides)


@pytest.mark.parametrize("name", OF_PUBLIC_ROWS)
@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.arange(10), "mask of True and False"),
        (np.ones(N - 1, bool), rf"public has shape \({N - 1},\), there are {N} rows"),
        (np.zeros(N, bool), "no row is public"),
        (np.ones(N, bool), "every row is public, so nobody is left"),
    ],
)
def test_a_wrong_mask_of_rows_has_one_clear_message(name, mask, message):
    X, y, _ = CASES[name].rows()
    with pytest.raises(DataError, match=message):
        CASES[name].make().fit(X, y, public=mask)


@pytest.mark.parametrize("name", OF_PUBLIC_FEATURES)
@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((N, 2), bool), rf"protects is bool of shape \({N}, 2\); one True"),
        (np.ones((N - 1, 3), bool), r"protects is .* of shape .*one True"),
        (np.ones(N, bool), r"protects is .* of shape .*one True"),
        (np.ones((N, 3)), "protects is float64 of shape .*one True"),
        (np.full((N, 3), 2), "protects is int64 of shape .*one True"),
        ([[True], [False, True]], "protects is ragged: its rows are not all as long"),
    ],
)
def test_a_wrong_mask_of_values_has_one_clear_message(name, mask, message):
    X, y, _ = CASES[name].rows()
    with pytest.raises(DataError, match=message):
        CASES[name].make(private_features=None).fit(X, y, protects=mask)


@pytest.mark.parametrize("name", OF_PUBLIC_FEATURES)
@pytest.mark.parametrize(
    ("private", "message"),
    [
        (["age"], "is a name, and X has no column names; give numbers"),
        ("age", r"must be a list of columns, got 'age'; write \['age'\]"),
        (0, r"write \[0\]"),
        ([3], "3 is no column; give a name, or a whole number from 0 to 2"),
        ([-1], "is no column"),
        ([0.5], "is no column"),
        ([True], "is no column"),
    ],
)
def test_wrong_private_features_have_one_clear_message(name, private, message):
    X, y, _ = CASES[name].rows()
    with pytest.raises(ConfigError, match=f"private_features.*{message}"):
        CASES[name].make(private_features=private).fit(X, y)


@pytest.mark.parametrize("name", OF_PUBLIC_FEATURES)
def test_a_mask_beside_private_features_is_refused(name):
    X, y, _ = CASES[name].rows()
    with pytest.raises(ConfigError, match=r"private_features.* protects.*give (one|exactly)"):
        CASES[name].make().fit(X, y, protects=np.ones((N, 3), bool))
