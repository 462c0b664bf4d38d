"""What a user of an estimator or a rival can get wrong, each with one message: what, what was found, what to do."""

from __future__ import annotations

import difflib
import numbers
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.errors import ConfigError, DataError
from ldptree.limits import (
    MAX_DEPTH,
    MAX_EPSILON,
    MIN_EPSILON,
    check_ends,
    check_epsilon,
    check_weight,
    is_number,
)

if TYPE_CHECKING:
    from collections.abc import Container

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

MISSING_LABELS = (
    "Input y contains NaN: labels are missing. Leave out the rows without one; a private holder who has no label does not "
    "take part"
)


def checked_budget(epsilon: Any) -> float:
    """The budget of each private row. Raises ConfigError."""
    check_epsilon(epsilon)
    return float(epsilon)


def checked_epsilon(epsilon: Any) -> float:
    """The budget of a private row. Raises ConfigError."""
    if not is_number(epsilon) or not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        raise ConfigError(
            f"epsilon must be a number from {MIN_EPSILON:g} to {MAX_EPSILON:g}, got {epsilon!r}"
        )
    return float(epsilon)


def check_depth(depth: Any) -> None:
    """Raises ConfigError where it is neither "auto" nor a depth."""
    if depth != "auto" and not (is_number(depth, whole=True) and 0 <= depth <= MAX_DEPTH):
        raise ConfigError(f'depth must be "auto" or a whole number from 0 to {MAX_DEPTH}, got {depth!r}')


def check_lam(lam: Any) -> None:
    """Raises ConfigError where it is neither "learned", "auto" nor a weight."""
    if isinstance(lam, str):
        one_of("lam", lam, ("learned", "auto"), "or a number from 0 to infinity")
    else:
        check_weight(lam)


def one_of(parameter: str, value: object, known: Any, more: str = "") -> None:
    """Raises ConfigError where a parameter is none of the known names; says which is nearest."""
    if isinstance(value, str) and value in known:
        return
    near = difflib.get_close_matches(value, list(known), n=1) if isinstance(value, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    choices = ", ".join(repr(name) for name in known)
    raise ConfigError(
        f"{parameter} must be one of {choices}{f', {more}' if more else ''}, got {value!r}{hint}"
    )


def check_seed(random_state: Any) -> None:
    """Raises ConfigError where it is neither None, a seed nor a RandomState, which is what scikit-learn takes."""
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return
    if not is_number(random_state, whole=True) or not 0 <= random_state < 2**32:
        raise ConfigError(
            "random_state must be None, a whole number from 0 to 2**32 - 1, or a numpy.random.RandomState, got "
            f"{random_state!r}"
        )


def check_simulated(
    parameter: str, noise: str, random_state: Any, *, devices: Container[str], instead: str
) -> None:
    """Raises ConfigError where a report that gives holders away, one of `devices`, is asked of anybody but a simulation's."""
    if noise in devices and random_state is None:
        raise ConfigError(
            f'{parameter} = "{noise}" is a simulation device, its floating-point noise gives holders away; use '
            f'"{instead}", or set random_state'
        )


def checked_mask(public: ArrayLike | None, n: int, X: Any) -> NDArray[np.bool_]:
    """The mask of public rows, bool [n]; all False for None. `X`: the rows as they were given. Raises DataError."""
    if public is None:
        return np.zeros(n, dtype=bool)
    check_aligned("public", public, X)
    mask = _as_mask("public", public)
    if mask.dtype != bool:
        raise DataError(
            f"public must be a mask of True and False, one for each row, got {mask.dtype}; for row numbers, "
            "write np.isin(np.arange(len(y)), numbers)"
        )
    if mask.shape != (n,):
        raise DataError(f"public has shape {mask.shape}, there are {n} rows; one True or False for each row")
    if not mask.any():
        raise DataError("public: no row is public; leave it out to fit without public rows, or mark some")
    return mask


def check_aligned(parameter: str, mask: Any, X: Any) -> None:
    """Raises DataError where a mask and rows are both of pandas and are not indexed alike, so that it may be of other rows."""
    index: Any = getattr(mask, "index", None)
    of_rows: Any = getattr(X, "index", None)
    if not (hasattr(index, "equals") and hasattr(of_rows, "equals")):
        return
    if index.equals(of_rows) or index.astype(object).equals(of_rows.astype(object)):
        return
    raise DataError(
        f"{parameter} has another index than X, so it may be about other rows; give {parameter}.to_numpy() where its rows are in "
        "the order of those of X, as where a step of a pipeline gave X its index, or else sort it by X's index (reindex)"
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
        found = (
            f"the public rows have one class only, {classes.tolist()[0]!r}"
            if are_public
            else "y has one class only"
        )
        raise DataError(
            f"y: {found}; a classifier needs at least 2"
            + (". Mark public rows of every class" if are_public else "")
        )
    return classes


def checked_range(feature_range: tuple[ArrayLike, ArrayLike], d: int) -> tuple[Floats, Floats]:
    """The ends of the range of each of d features. Raises ConfigError."""
    try:
        if isinstance(feature_range, str | bytes):
            raise TypeError  # its characters would be read as ends
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (d,)) for end in feature_range)
    except (TypeError, ValueError):
        raise ConfigError(
            f"feature_range must be (low, high), numbers or one for each of {d} features, got {feature_range!r}"
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


def has_missing(labels: Any) -> bool:
    """Whether something among them stands for no label: None, NaN, or what pandas has for these."""
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
    """The range that private labels are moved into: the one given, or that of the public labels, or (-1, 1).

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


def label_ends(label_range: Any) -> tuple[float, float]:
    """The ends of a range of labels that is given, low below high. Raises ConfigError."""
    try:
        low, high = label_range
    except (TypeError, ValueError):
        raise ConfigError(f"label_range must be (low, high), two numbers, got {label_range!r}") from None
    if not (is_number(low) and is_number(high)):
        raise ConfigError(f"label_range must be (low, high), two finite numbers, got {label_range!r}")
    if low >= high:
        raise ConfigError(f"label_range: low must be below high, got ({low:g}, {high:g}); swap them?")
    check_ends(float(low), float(high))
    return float(low), float(high)


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
    """The mask W, bool [n, d], of the values each holder protects: given itself, or the same columns for everybody.

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
