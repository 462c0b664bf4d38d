"""What a user gets wrong is said where it is, with a remedy, alike by every estimator, and with no value of a private row."""

from __future__ import annotations

import importlib
import sys
import traceback
from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from estimator_cases import CASES, NUMERIC
from sklearn.base import clone
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

from ldptree import estimators
from ldptree.errors import DataError
from ldptree.estimators import LPCTClassifier, LPDTRegressor, PublicRangeScaler
from ldptree.validation import check_aligned, check_seed, named_mask

N = 40
NUMBERS = np.linspace(0, 1, N)
DAYS = pd.date_range("2020-01-01", periods=N)
BY_NAME = {name: case.make(1.0) for name, case in CASES.items() if "tuned" not in name}
ESTIMATORS = list(BY_NAME.values())
ALL = [*ESTIMATORS, PublicRangeScaler()]
REGRESSORS = [BY_NAME[name] for name in NUMERIC if name in BY_NAME]
CLASSIFIERS = [BY_NAME[name] for name in BY_NAME if name not in NUMERIC]
SECRET = "Alice 987654321"


def refused(X, estimator=ESTIMATORS[0]):
    with pytest.raises(DataError) as fault:
        estimator.fit(X, (NUMBERS > 0.5).astype(int))
    return str(fault.value)


def test_estimators_without_scikit_learn_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r'pip install "ldptree\[estimators\]"'):
        importlib.reload(estimators)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_every_estimator_says_which_column_has_what_and_what_to_do(estimator):
    table = pd.DataFrame({"much": NUMBERS, "when": DAYS})
    assert "column 'when' holds dates (datetime64[" in refused(table, estimator)
    table["when"] = np.where(NUMBERS > 0.9, np.nan, NUMBERS)
    said = refused(table, estimator)
    assert said.startswith(f"Input X contains NaN (column 'when'): {type(estimator).__name__} takes no")
    assert "medians of the public rows" in said
    assert "HistGradientBoosting" not in said


@pytest.mark.parametrize(
    "column",
    [DAYS, DAYS.tz_localize("UTC"), DAYS.to_period("D"), DAYS - DAYS[0]],
    ids=["dates", "with a zone", "periods", "spans"],
)
@pytest.mark.parametrize("beside", [True, False])
def test_dates_of_every_kind_are_refused_alone_and_beside_numbers(column, beside):
    table = pd.DataFrame({"when": column} | ({"much": NUMBERS} if beside else {}))
    assert "X: column 'when' holds dates" in refused(table)


def test_dates_are_refused_in_other_tables_and_arrays():
    days = DAYS.to_numpy()
    assert "column 'when' holds dates" in refused(pl.DataFrame({"much": NUMBERS, "when": days}))
    assert "X holds dates (datetime64[" in refused(days[:, None])


def test_a_column_of_words_is_named_and_no_word_is_told():
    words = pd.DataFrame({"much": NUMBERS, "who": ["Smith", "Jones"] * (N // 2)})
    for table in (words, words.astype({"who": "category"}), pl.DataFrame(words.to_dict("list"))):
        said = refused(table)
        assert "column 'who' holds what is no number" in said
        assert "Smith" not in said


@pytest.mark.parametrize("make", [np.array, list, pd.DataFrame, lambda rows: pl.DataFrame(np.array(rows))])
def test_a_text_that_only_python_reads_as_a_number_is_refused(make):
    rows = [["0.5", str(x)] for x in NUMBERS]
    ESTIMATORS[0].fit(make(rows), (NUMBERS > 0.5).astype(int), public=NUMBERS < 0.8)
    for text in ("1_000", "1.0_1", "\uff11\uff10", "\u00a05"):
        rows[30][1] = text
        said = refused(make(rows))
        assert "holds what is no number" in said
        assert "1'" in said or "1 " in said
        assert text not in said


@pytest.mark.parametrize("text", ["1_000", "\uff11\uff10"])
@pytest.mark.parametrize("estimator", REGRESSORS, ids=lambda e: type(e).__name__)
def test_nor_is_such_a_text_a_label_that_is_a_number(text, estimator):
    labels = [str(x) for x in NUMBERS]
    labels[3] = text
    for y in (labels, np.array(labels), np.array(labels, dtype=object)):
        with pytest.raises(DataError, match="y: labels hold what is no number") as fault:
            estimator.fit(NUMBERS[:, None], y)
        assert text not in str(fault.value)


def test_a_missing_value_of_an_array_is_found_by_the_columns_number():
    rows = np.stack([NUMBERS, np.where(NUMBERS > 0.9, np.nan, NUMBERS)], axis=1)
    assert refused(rows).startswith("Input X contains NaN (column 1):")
    with pytest.raises(DataError, match=r"Input X contains NaN \(column 1\)"):
        LPDTRegressor(1.0).fit(rows[:30], NUMBERS[:30]).predict(rows)


def with_secret(kind):
    """Rows [N, 2] of one holder whose second value is private and no number."""
    rows = np.stack([NUMBERS, NUMBERS], axis=1).astype(object)
    rows[30, 1] = {SECRET: 1} if kind == "dict" else 9.87654321j if kind == "complex" else SECRET
    if kind == "ragged":
        return [*rows[:, :1].tolist(), rows[30].tolist()][-N:]
    return {
        "str": lambda: rows.astype(str),
        "bytes": lambda: rows.astype(bytes),
        "list": rows.tolist,
        "complex": lambda: rows.astype(complex),
        "frame": lambda: pd.DataFrame(rows),
        "one-dimensional": lambda: np.full(N, 0.987654321),
        "scalar": lambda: np.float64(0.987654321),
    }.get(kind, lambda: rows)()


KINDS = ["object", "str", "bytes", "list", "dict", "complex", "frame", "ragged", "one-dimensional", "scalar"]


def tells_nothing(fault):
    words = "".join(traceback.format_exception(fault))
    assert "Alice" not in words
    assert "98765" not in words
    assert fault.__cause__ is None
    assert fault.__context__ is None


MISSING = (None, "nan", "inf", np.inf)


@pytest.mark.parametrize("estimator", REGRESSORS, ids=lambda e: type(e).__name__)
def test_a_missing_label_in_an_object_array_is_refused_as_in_one_of_numbers(estimator):
    """A report of it would tell that it is missing, with certainty."""
    for missing in MISSING:
        y = NUMBERS.astype(object)
        y[N // 2] = missing
        with pytest.raises(DataError, match=r"Input y contains (NaN|infinity)"):
            estimator.fit(NUMBERS[:, None], y)


@pytest.mark.parametrize(
    "column",
    [
        np.array([0.0, 1.0, np.nan, 1.0] * 10),
        np.array([0, 1, None, 1] * 10, dtype=object),
        np.array([False, True, np.nan, True] * 10, dtype=object),
        pd.Series([0, 1, None, 1] * 10, dtype="Int64"),
        pd.Series([0, 1, pd.NaT, 1] * 10, dtype=object),
        pl.Series([0, 1, None, 1] * 10),
        pd.DataFrame({"y": pd.Series([0, 1, None, 1] * 10, dtype="Int64")}),
        *(
            kind
            for missing in (None, np.nan, np.float32("nan"), pd.NA)
            for words in [pd.Series(["no", "yes", missing, "yes"] * 10, dtype=object)]
            for kind in (
                words,
                words.to_numpy(),
                words.tolist(),
                words.astype("category"),
                words.astype("string"),
            )
        ),
        pl.Series(["no", "yes", None, "yes"] * 10),
        [None] * N,
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_missing_labels_of_every_kind_are_told_with_what_to_do(column):
    of_words = any(
        isinstance(label, str) or label is pd.NaT for label in np.asarray(column, dtype=object).flat
    )
    for estimator in ESTIMATORS:
        if of_words and "Classifier" not in type(estimator).__name__:
            continue
        with pytest.raises(DataError) as fault:
            estimator.fit(NUMBERS[:, None], column)
        assert str(fault.value) == (
            "Input y contains NaN: labels are missing. Leave out the rows without one; a private holder who has no label "
            "does not take part"
        )
        tells_nothing(fault.value)


@pytest.mark.parametrize("estimator", ALL, ids=lambda e: type(e).__name__)
def test_no_message_and_no_traceback_quotes_a_private_row(estimator):
    for kind in KINDS:
        with pytest.raises(DataError) as fault:
            estimator.fit(with_secret(kind), (NUMBERS > 0.5).astype(int))
        tells_nothing(fault.value)
        if kind in ("object", "str", "bytes", "list", "dict"):
            found = kind if kind in ("dict", "bytes") else "str"
            assert f"X: column 1 holds what is no number ({found}" in str(fault.value)


@pytest.mark.parametrize("kind", KINDS)
def test_nor_does_a_prediction_or_a_transformation(kind):
    rows = np.stack([NUMBERS, NUMBERS], axis=1)
    tree = LPCTClassifier(1.0, depth=1).fit(rows, (NUMBERS > 0.5).astype(int))
    for ask in (tree.predict, PublicRangeScaler().fit(rows).transform):
        with pytest.raises(DataError) as fault:
            ask(with_secret(kind))
        tells_nothing(fault.value)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_nor_is_a_private_label_quoted(estimator):
    takes_texts = "Classifier" in type(estimator).__name__  # as classes
    for kind in (object, bytes, complex) if takes_texts else (object, bytes, complex, str):
        labels = NUMBERS.astype(object)
        labels[30] = 9.87654321j if kind is complex else SECRET
        with pytest.raises(DataError) as fault:
            estimator.fit(np.stack([NUMBERS, NUMBERS], axis=1), labels.astype(kind))
        tells_nothing(fault.value)


def test_the_one_class_of_private_labels_is_not_told():
    rows = np.stack([NUMBERS, NUMBERS], axis=1)
    for estimator in CLASSIFIERS:
        with pytest.raises(DataError, match="y has one class only") as fault:
            estimator.fit(rows, np.full(N, SECRET))
        tells_nothing(fault.value)


def test_two_columns_of_one_name_are_named():
    table = pd.DataFrame(np.stack([NUMBERS, NUMBERS, NUMBERS], axis=1), columns=["a", "b", "a"])
    assert "2 columns are named 'a'" in refused(table)


@pytest.mark.parametrize("estimator", CLASSIFIERS[:2], ids=lambda e: type(e).__name__)
def test_a_private_label_that_is_no_class_is_outside_and_stops_nobody(estimator):
    public = np.arange(N) % 2 == 0
    rows, labels = np.stack([NUMBERS, NUMBERS], axis=1), (NUMBERS > 0.5).astype(float)
    for other in (2.0, 0.5):
        labels[31] = other
        assert estimator.fit(rows, labels, public=public).classes_.tolist() == [0.0, 1.0]
        with pytest.raises(DataError, match="Unknown label type: continuous"):
            estimator.fit(rows, np.where(labels == 0, 0.5, labels), public=public)


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda e: type(e).__name__)
def test_booleans_and_numbers_in_an_object_array_are_labels(estimator):
    rows = np.stack([NUMBERS, NUMBERS], axis=1)
    for labels, kind in ((NUMBERS > 0.5, "b"), ((NUMBERS > 0.5).astype(int), "i")):
        assert estimator.fit(rows, labels.astype(object)).classes_.dtype.kind == kind


NAMES = ("a", "b", "c")
COLUMNS = {"c": [False, False], "b": [False, True], "a": [True, True]}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_mask_are_found_by_name(frame):
    np.testing.assert_array_equal(
        named_mask(frame(COLUMNS), NAMES), [[True, False, False], [True, True, False]]
    )


def test_a_mask_of_other_features_is_refused():
    with pytest.raises(DataError, match="its columns are a, b, the features are a, b, c"):
        named_mask(pd.DataFrame({"a": [True], "b": [True]}), NAMES)


def test_an_array_is_taken_as_it_is():
    np.testing.assert_array_equal(named_mask([[True, False]], NAMES), [[True, False]])


X = pd.DataFrame({"a": np.linspace(0, 1, 60), "b": np.linspace(0, 1, 60) ** 2}, index=range(100, 160))
Y = pd.Series((X["a"] * 10).astype(int) % 2)
PUBLIC = pd.Series(np.arange(60) % 3 != 1, index=X.index)
PROTECTS = pd.DataFrame({"b": PUBLIC, "a": PUBLIC})


@pytest.mark.parametrize("estimator", ALL, ids=lambda e: type(e).__name__)
def test_a_mask_of_other_rows_is_refused_with_how_to_align_it(estimator):
    """By position it would be another holder's: a private row would be taken for a public one."""
    name = "public" if "public" in signature(estimator.fit).parameters else "protects"
    mask = PUBLIC if name == "public" else PROTECTS
    estimator = clone(estimator)
    if name == "protects":
        estimator.set_params(private_features=None)
    said = rf"^{name} has another index than X, .* give {name}\.to_numpy\(\) where .* or else sort it by X's index"
    for other in (mask[::-1], mask.reset_index(drop=True)):
        with pytest.raises(DataError, match=said):
            estimator.fit(X, Y, **{name: other})
    estimator.fit(X, Y, **{name: mask[::-1].reindex(X.index)})


def test_an_index_of_another_type_is_the_same_index():
    for kind in ("Int64", "int32", "float64", object):
        check_aligned("public", PUBLIC, X.set_axis(X.index.astype(kind)))


def test_what_has_no_index_goes_by_position():
    for mask in (PUBLIC.to_numpy(), PUBLIC.tolist(), pl.Series(PUBLIC.to_numpy()), None):
        check_aligned("public", mask, X)
    for rows in (X.to_numpy(), X.to_numpy().tolist(), pl.DataFrame(X.to_dict("list"))):
        check_aligned("public", PUBLIC, rows)


def test_folds_keep_a_mask_beside_its_rows():
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(
            PublicRangeScaler().set_fit_request(public=True).set_output(transform="pandas"),
            LPCTClassifier(8.0, random_state=0).set_fit_request(public=True),
        )
        scores = cross_validate(pipe, X, Y, params={"public": PUBLIC}, cv=3, error_score="raise")
        assert len(scores["test_score"]) == 3


@pytest.mark.parametrize("right", [None, 0, 2**32 - 1, np.int64(3), np.uint32(3), np.random.RandomState(1)])
def test_what_scikit_learn_takes_is_taken(right):
    check_seed(right)
