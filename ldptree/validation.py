"""Check parameters, masks, labels, X and y of an estimator or a rival. Each fault has one message with its place, what
was found, and what to do.

No message about X and y has a value in it: rows are private. Of what scikit-learn and the libraries beneath it say, only
sentences that are known to quote none are passed on, and no fault is chained to another.
"""

from __future__ import annotations

import difflib
import numbers
import re
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.errors import ConfigError, DataError, DataTypeError
from ldptree.limits import (
    check_ends,
    is_number,
    label_ends,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

MISSING_LABELS = (
    "Input y contains NaN: labels are missing. Leave out the rows without one; a private holder who has no label does not "
    "take part"
)


def one_of(parameter: str, value: object, known: Any) -> None:
    """Raises ConfigError where a parameter is none of the known names; says which is nearest."""
    if isinstance(value, str) and value in known:
        return
    near = difflib.get_close_matches(value, list(known), n=1) if isinstance(value, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    choices = ", ".join(repr(name) for name in known)
    raise ConfigError(f"{parameter} must be one of {choices}, got {value!r}{hint}")


def check_seed(random_state: Any) -> None:
    """Raises ConfigError where it is neither None, a seed nor a RandomState, which is what scikit-learn takes."""
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return
    if not is_number(random_state, whole=True) or not 0 <= random_state < 2**32:
        raise ConfigError(
            "random_state must be None, a whole number from 0 to 2**32 - 1, or a numpy.random.RandomState, got "
            f"{random_state!r}"
        )


def checked_mask(public: ArrayLike | None, n: int, X: Any) -> NDArray[np.bool_]:
    """Return a fit's mask of public rows, bool [n], all False for None, for rows `X` as given. Raises DataError."""
    if public is None:
        return np.zeros(n, dtype=bool)
    mask = read_mask(public, n, X, "X")
    if not mask.any():
        raise DataError("public: no row is public; leave it out to fit without public rows, or mark some")
    return mask


def read_mask(public: ArrayLike, n: int, X: Any, name: str) -> NDArray[np.bool_]:
    """Read a mask of public rows, bool [n]. `X` has the rows as they were given, called `name`. Raises DataError."""
    check_aligned("public", public, X, name)
    mask = _as_mask("public", public)
    if mask.dtype != bool:
        raise DataError(
            f"public must be a mask of True and False, one for each row, got {mask.dtype}; for row numbers, "
            f"write np.isin(np.arange({n}), numbers)"
        )
    if mask.shape != (n,):
        raise DataError(f"public has shape {mask.shape}, there are {n} rows; one True or False for each row")
    return mask


def check_aligned(parameter: str, mask: Any, X: Any, name: str = "X") -> None:
    """Raises DataError where a mask and rows are both of pandas and are not indexed alike, so that it may be of other rows."""
    index: Any = getattr(mask, "index", None)
    of_rows: Any = getattr(X, "index", None)
    if not (hasattr(index, "equals") and hasattr(of_rows, "equals")):
        return
    if index.equals(of_rows) or index.astype(object).equals(of_rows.astype(object)):
        return
    raise DataError(
        f"{parameter} has another index than {name}, so it may be about other rows; give {parameter}.to_numpy() where its rows "
        f"are in the order of those of {name}, as where a step of a pipeline gave {name} its index, or else sort it by {name}'s "
        "index (reindex)"
    )


def _as_mask(parameter: str, mask: ArrayLike) -> NDArray[Any]:
    """As an array. Raises DataError where it is ragged."""
    try:
        return np.asarray(mask)
    except ValueError:
        raise DataError(
            f"{parameter} is ragged: its rows are not all as long; one True or False for each value"
        ) from None


def classes_of(labels: NDArray[Any], *, are_public: bool) -> NDArray[Any]:
    """The labels there are, sorted. Raises DataError where they are fewer than 2."""
    classes = np.unique(labels)
    if classes.size < 2:
        reason = (
            f"the public rows have one class only, {classes.tolist()[0]!r}"
            if are_public
            else "y has one class only"
        )
        raise DataError(
            f"y: {reason}; a classifier needs at least 2"
            + (". Mark public rows of every class" if are_public else "")
        )
    return classes


def checked_range(feature_range: tuple[ArrayLike, ArrayLike], d: int) -> tuple[Floats, Floats]:
    """The ends of the range of each of d features. Raises ConfigError."""
    try:
        if isinstance(feature_range, str | bytes) or _may_be_pairs(feature_range):
            raise TypeError  # its characters, or its pairs, would be read as ends
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (d,)) for end in feature_range)
    except (TypeError, ValueError):
        raise ConfigError(
            f"feature_range must be (low, high), numbers or one for each of {d} features, got {feature_range!r}. Of several "
            "features give all lows, then all highs, as a tuple of two lists: ([0, 0], [1, 5])"
        ) from None
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ConfigError(f"feature_range must be finite, got {feature_range!r}")
    if wrong := np.flatnonzero(low >= high).tolist():
        j = wrong[0]
        raise ConfigError(
            f"feature_range: low must be below high, got ({low[j]:g}, {high[j]:g}) for feature {j}; swap them?"
        )
    with np.errstate(over="ignore"):
        wide = np.flatnonzero(np.isinf(high - low)).tolist()
    if wide:
        j = wide[0]
        raise ConfigError(
            f"feature_range: ({low[j]:g}, {high[j]:g}) for feature {j} is so wide that the distance of its ends is not finite; "
            "give a narrower one, or divide the feature"
        )
    return low, high


def _may_be_pairs(feature_range: Any) -> bool:
    """Return whether two rows of two may be pairs for two features. A tuple of two lists is lows and highs."""
    if [np.shape(end) for end in feature_range] != [(2,), (2,)]:
        return False
    is_documented = isinstance(feature_range, tuple) and not any(
        isinstance(end, tuple) for end in feature_range
    )
    return not is_documented and all(first < second for first, second in feature_range)


def has_missing(labels: Any) -> bool:
    """Return whether a label among them is missing, as None, NaN, or what pandas has for these."""
    return any(
        label is None
        or (isinstance(label, float | np.floating) and np.isnan(label))
        or (isinstance(label, Decimal) and label.is_nan())
        or type(label).__name__ in ("NAType", "NaTType")  # without pandas, which is no requirement
        for label in np.asarray(labels, dtype=object).ravel()
    )


def check_present(labels: Any) -> None:
    """Raises DataError where labels are missing."""
    if has_missing(labels):
        raise DataError(MISSING_LABELS)


def check_one_kind(labels: Any) -> None:
    """Raises DataError where labels are missing, or of several types, which nothing can put in order."""
    array = np.asarray(labels)
    if array.dtype == object and array.ndim == 1:
        check_present(array)
        kinds = sorted({"number" if isinstance(v, numbers.Number) else type(v).__name__ for v in array})
        if len(kinds) > 1:
            raise DataError(
                f"y: labels are of several types ({', '.join(kinds)}); make them all texts or all numbers"
            )


def check_no_dates(labels: Any) -> None:
    """Raises DataError where labels are points or lengths of time, whose unit as numbers nobody has stated."""
    array = np.asarray(labels)
    is_dated = array.dtype.kind in "mM" or (
        array.dtype == object and any(isinstance(v, date | timedelta | np.datetime64) for v in array.ravel())
    )
    if is_dated:
        raise DataError(
            "y: labels are dates or times; turn them into numbers of a unit of your own, such as days"
        )


def checked_label_range(label_range: Any, public: Floats) -> tuple[float, float]:
    """Return the range that private labels are moved into, as given, of public labels, or (-1, 1).

    Raises:
        ConfigError: the given range is none, or does not hold the public labels; or as `limits.check_ends`.
        DataError: the public labels are all equal, and no range is given.
    """
    if label_range is None:
        if not public.size:
            return -1.0, 1.0
        low, high = float(public.min()), float(public.max())
        if low == high:
            raise DataError(
                f"y: the public rows have one label only, {low:g}, so they give no range; set label_range, or mark other rows"
            )
        check_ends(low, high)
        return low, high
    low, high = label_ends(label_range)
    if public.size and (public.min() < low or public.max() > high):
        raise ConfigError(
            f"label_range ({low:g}, {high:g}) does not cover the public labels, which lie from {public.min():g} to "
            f"{public.max():g}; widen it, or leave it out to take theirs"
        )
    return low, high


def checked_number(parameter: str, value: Any, *, low: float, high: float, is_open: bool = False) -> float:
    """A number from low (or above it, where the range is open) to high. Raises ConfigError."""
    if not is_number(value) or not low <= value <= high or (is_open and value == low):
        start = f"above {low:g} and at most" if is_open else f"from {low:g} to"
        raise ConfigError(f"{parameter} must be a number {start} {high:g}, got {value!r}")
    return float(value)


def checked_count(parameter: str, value: Any, *, low: int, high: int) -> int:
    """A whole number in low .. high. Raises ConfigError."""
    if not is_number(value, whole=True) or not low <= value <= high:
        raise ConfigError(f"{parameter} must be a whole number from {low} to {high}, got {value!r}")
    return int(value)


def named_mask(protects: ArrayLike, names: Any) -> NDArray[Any]:
    """A mask as an array; the columns of a frame go by their names, where the rows' features have names too.

    Args:
        protects: an array, or a pandas or polars frame.
        names: of the features, None where they have none.

    Raises:
        DataError: a frame's columns are not the features, or rows are not all as long.
    """
    mask, columns = _as_mask("protects", protects), getattr(protects, "columns", None)
    if columns is None or names is None:
        return mask
    given, features = [str(name) for name in columns], [str(name) for name in names]
    if sorted(given) != sorted(features):
        raise DataError(
            f"protects: its columns are {', '.join(given)}, the features are {', '.join(features)}; one column for each feature"
        )
    return mask[:, [given.index(name) for name in features]]


def checked_protects(
    protects: ArrayLike | None, private_features: Any, shape: tuple[int, int], names: Any = None
) -> Mask:
    """Return the mask W, bool [n, d], of values that holders protect, given itself or as columns for all.

    Raises:
        ConfigError: both are given, or a column is not one.
        DataError: the mask is of another shape, or not boolean.
    """
    n, d = shape
    if protects is not None:
        if private_features is not None:
            raise ConfigError("private_features and protects: give one of them, columns or a mask")
        mask = named_mask(protects, names)
        if mask.dtype != bool or mask.shape != (n, d):
            raise DataError(
                f"protects is {mask.dtype} of shape {mask.shape}; one True (protected) or False for each of {n} x {d} values"
            )
        return mask
    columns = range(d) if private_features is None else private_features
    mask = np.zeros((n, d), dtype=bool)
    for column in columns:
        mask[:, checked_count("private_features: a column", column, low=0, high=d - 1)] = True
    return mask


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
    """Validate as `sklearn.utils.validation.validate_data`, and return what it returns, features as numbers [n, d].

    Labels are numbers, float64 [n], with `y_numeric`; otherwise of one type, booleans in an object array as booleans.

    Raises:
        DataError: anything that scikit-learn or a library beneath it refuses; a column holds dates; two columns have one
            name; labels are missing or of several types, or of numbers dates.
    """
    from sklearn.utils import assert_all_finite
    from sklearn.utils.validation import validate_data

    _check_table(X)
    is_numeric = settings.get("y_numeric", False)
    labels = [_checked_labels(estimator, target, is_numeric=is_numeric) for target in y]
    if (message := _badly_written(estimator, X, labels if is_numeric else [])) is not None:
        raise DataError(message)
    try:
        checked = validate_data(estimator, X, *labels, **settings)
        if not is_numeric:
            return checked
        targets = checked[1].astype(np.float64)
        assert_all_finite(targets, input_name="y")  # None and texts are numbers, or none, only now
        return checked[0], targets
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
    """Reword a fault without a value of it."""
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
    if (fault := _without_numbers(X)) is not None:
        return _no_numbers_in(*fault)
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
    """Describe the fault where a text is a number to Python only, such as "1_000", which a run would refuse too; else None."""
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
    dates = next((column for column in columns if column[1].lower().startswith(_DATES)), None)
    if dates is not None:
        of = "X" if dates[0] is None else f"X: column {dates[0]!r}"
        raise DataError(
            f"{of} holds dates ({dates[1]}), and features are numbers. Give what matters of them as numbers, such as the hour "
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
    """Return the name or number of the first column that is not of numbers, and the type of what is in it."""
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
    """Return whether values are not all of one type of numbers."""
    try:
        return np.asarray(values).dtype.kind in "OUST"
    except Exception:
        return False


def _has_python_number(values: Any) -> bool:
    """Return whether a text has an underscore or a character beyond ASCII, both of which Python takes in numbers."""
    strings = (v for v in np.asarray(values, dtype=object).ravel() if isinstance(v, str | bytes))
    texts = (v.decode("latin-1") if isinstance(v, bytes) else v for v in strings)
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


class Noisy:
    """Stands first among an estimator's bases, before the mixin of its kind and `BaseEstimator`."""

    random_state: Any

    def __sklearn_tags__(self) -> Any:
        """Tag that scores of noisy reports are poor on few rows, and never the same twice without a seed."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        for kind in (tags.classifier_tags, tags.regressor_tags):
            if kind is not None:
                kind.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags
