"""The X and y that an estimator is given: scikit-learn's own checks, and where they say nothing that helps here, which column
it is and what to do.

No message has a value in it: rows are private. Of what scikit-learn and the libraries beneath it say, only sentences that are
known to quote none are passed on, and no fault is chained to another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import validate_data

from ldptree.errors import DataError, DataTypeError
from ldptree.parameters import MISSING_LABELS, check_no_dates, check_one_kind, check_present, has_missing

_DATES = ("date", "time", "duration", "period")
"""How the types of dates and spans of time begin, in pandas, Polars, Arrow and numpy."""

_WITHOUT_VALUES = re.compile(
    r"Input [Xy] contains |X has \d+ features|Found array with |Found input variables with inconsistent numbers of samples|"
    r"The feature names should match|Feature names are only supported|y should be a 1d array, got an array of shape|"
    r"Sparse data was passed for X|Expected a 2-dimensional container|.{,80} requires y to be passed",
    re.DOTALL,
)
"""Of scikit-learn's messages those that tell shapes, types and names of columns only."""


def validated(estimator: Any, X: Any, *y: Any, **settings: Any) -> Any:
    """What `sklearn.utils.validation.validate_data` returns of the same, features as numbers [n, d].

    Labels are numbers, float64 [n], with `y_numeric`; otherwise of one type, booleans in an object array as booleans.

    Raises:
        DataError: anything that scikit-learn or a library beneath it refuses; a column holds dates; two columns have one
            name; labels are missing or of several types, or of numbers dates.
    """
    _check_table(X)
    is_numeric = settings.get("y_numeric", False)
    labels = [_checked_labels(estimator, one, is_numeric=is_numeric) for one in y]
    if (message := _badly_written(estimator, X, labels if is_numeric else [])) is not None:
        raise DataError(message)
    try:
        found = validate_data(estimator, X, *labels, **settings)
        if not is_numeric:
            return found
        numbers = found[1].astype(np.float64)
        assert_all_finite(numbers, input_name="y")  # None and texts are numbers, or none, only now
        return found[0], numbers
    except Exception as fault:
        message, is_type = str(fault), isinstance(fault, TypeError)
    # Outside of the handler, so that not even the context of what is raised leads to the fault.
    raise (DataTypeError if is_type else DataError)(_reworded(estimator, X, labels, message))


def check_class_labels(labels: Any) -> None:
    """Raises DataError where labels, an array [n] that is public or declared, are no classes."""
    if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        raise DataError(
            "Unknown label type: continuous. y has numbers that are not whole, which are no classes; use a regressor, or "
            "make them texts"
        )
    if labels.dtype.kind not in "biufU" and not all(isinstance(label, str) for label in labels):
        raise DataError(
            f"Unknown label type: y holds {_type_of(labels[0])}; labels are texts, numbers or booleans"
        )


def _reworded(estimator: Any, X: Any, y: Any, message: str) -> str:
    """What is wrong, without a value of it."""
    name = type(estimator).__name__
    if message.startswith("Input X contains NaN"):
        return (
            f"Input X contains NaN{_missing(X)}: {name} takes no missing values. Put in values that no "
            "private row decides, such as the medians of the public rows: "
            'SimpleImputer(strategy="median").fit(X[public]).transform(X)'
        )
    if message.startswith("Input y contains NaN"):
        return MISSING_LABELS
    if _WITHOUT_VALUES.match(message):
        return message
    if message.startswith("Complex data not supported"):
        return "Complex data not supported: X or y holds complex numbers; give their parts as columns of their own"
    if message.startswith("Expected 2D array"):
        return (
            "Expected 2D array [n, d] for X, got one of another shape. Reshape your data: X.reshape(-1, 1) if there is one "
            "feature, X.reshape(1, -1) if there is one row"
        )
    if (found := _without_numbers(X)) is not None:
        return _no_numbers_in(*found)
    for labels in y:
        if has_missing(labels):
            return MISSING_LABELS
        if (kind := _no_number(labels)) is not None:
            return f"y: labels hold what is no number ({kind}); {name} takes labels that are numbers"
    return (
        f"X ({_type_of(X)}) is no table of numbers [n, d], with as many numbers in each row, or y does not fit to it. Give "
        "numpy arrays, or a pandas or polars frame"
    )


def _no_numbers_in(column: str, kind: str) -> str:
    return (
        f"X: column {column} holds what is no number ({kind}); each argument must be a number or the string of a "
        "number. Leave the column out, or encode it by levels that are public, as OneHotEncoder(categories=[[...]]) does"
    )


def _badly_written(estimator: Any, X: Any, y: Sequence[Any]) -> str | None:
    """What is wrong where a text is a number to Python only, such as "1_000", which a run would refuse too; else None."""
    for name, column in _columns_of_objects(X):
        if _has_python_number(column):
            return _no_numbers_in(name, "a text that is not written in plain digits")
    for labels in y:
        if _is_of_objects(labels) and _has_python_number(labels):
            return (
                "y: labels hold what is no number (a text that is not written in plain digits); "
                f"{type(estimator).__name__} takes labels that are numbers"
            )
    return None


def _checked_labels(estimator: Any, y: Any, *, is_numeric: bool) -> Any:
    """Labels as they are, but booleans and numbers in an object array as an array of their own type."""
    try:
        array = np.asarray(y)
    except Exception:
        array = None
    if array is None:
        raise DataError(
            f"y ({_type_of(y)}) is no array of labels [n]; give {type(estimator).__name__} one label a row"
        )
    if is_numeric:
        check_no_dates(array)
        return y
    if array.dtype.kind == "U" and not hasattr(y, "dtype"):
        check_present(np.asarray(y, dtype=object))  # in `array` a NaN beside texts is a text
    check_one_kind(array)
    if array.dtype == object and array.ndim == 1 and array.size and not isinstance(array[0], str):
        plain = np.asarray(array.tolist())
        return plain if plain.dtype.kind in "biuf" and plain.shape == array.shape else y
    return y


def _check_table(X: Any) -> None:
    if hasattr(X, "collect_schema") and not hasattr(X, "to_numpy"):
        raise DataError("X is a lazy frame, whose rows are not there yet; give X.collect()")
    columns = _columns(X)
    names = [name for name, _ in columns]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise DataError(f"X: {names.count(twice)} columns are named {twice!r}; give each a name of its own")
    found = next((one for one in columns if one[1].lower().startswith(_DATES)), None)
    if found is not None:
        of = "X" if found[0] is None else f"X: column {found[0]!r}"
        raise DataError(
            f"{of} holds dates ({found[1]}), and features are numbers. Give what matters of them as numbers, such as the hour "
            "or the days since a fixed date"
        )


def _columns(X: Any) -> list[tuple[Any, str]]:
    """The name and the type of each column of a table; of an array its type, under no name."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        return [(name, str(kind)) for name, kind in zip(X.columns, X.dtypes, strict=True)]
    return [(None, str(X.dtype))] if hasattr(X, "dtype") else []


def _missing(X: Any) -> str:
    """' (column ...)', the first one with a missing value; '' where it cannot be told."""
    try:
        column = int(np.isnan(np.asarray(X, dtype=np.float64)).any(axis=0).argmax())
    except (TypeError, ValueError):
        return ""
    return f" (column {X.columns[column]!r})" if hasattr(X, "columns") else f" (column {column})"


def _without_numbers(X: Any) -> tuple[str, str] | None:
    """The first column that is not of numbers: its name or number, and the type of what is in it."""
    for name, column in _named_columns(X):
        if (kind := _no_number(column)) is not None:
            return name, kind
    return None


def _named_columns(X: Any) -> list[tuple[str, Any]]:
    """Each column with its name, or its number where it has none; none of what is no table."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        return [(repr(name), X[name]) for name in X.columns]
    try:
        table = np.asarray(X, dtype=object)
    except Exception:
        return []
    return [(str(j), column) for j, column in enumerate(table.T)] if table.ndim == 2 else []


def _columns_of_objects(X: Any) -> list[tuple[str, Any]]:
    """The named columns that may hold texts."""
    if not hasattr(X, "columns") and not _is_of_objects(X):
        return []
    return [(name, column) for name, column in _named_columns(X) if _is_of_objects(column)]


def _is_of_objects(values: Any) -> bool:
    """Whether values are not all of one type of numbers."""
    try:
        return np.asarray(values).dtype.kind in "OUST"
    except Exception:
        return False


def _has_python_number(values: Any) -> bool:
    """Whether a text has an underscore or a character beyond ASCII, both of which Python takes in numbers."""
    found = (v for v in np.asarray(values, dtype=object).ravel() if isinstance(v, str | bytes))
    texts = (v.decode("latin-1") if isinstance(v, bytes) else v for v in found)
    return any(not text.isascii() or "_" in text for text in texts)


def _no_number(column: Any) -> str | None:
    """The type of the first value that is no number of float64, None where all are."""
    try:
        np.asarray(column, dtype=np.float64)
    except Exception:
        for value in np.asarray(column, dtype=object).ravel():
            try:
                float(value)
            except Exception:
                return _type_of(value)
        return "of several types"
    return None


def _type_of(value: Any) -> str:
    return type(value).__name__
