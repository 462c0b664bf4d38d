"""The public description of the features, which turns a raw row into a point of [0, 1]^d.

Everything here comes from public rows or from the specification: ranges, levels, what stands in for a missing
value. A number is scaled by its public range, the public sample's minimum and maximum (LPCT section 4.3, Theorem 5): nothing
private moves it.

A *raw matrix* is float64 [n, columns]: a numeric column as it is (NaN = missing), a categorical column as the
index into its `levels` (-1 = a level that is not listed, NaN = missing).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree import serialize
from ldptree.errors import DataError

Level: TypeAlias = str | int | float | bool
MissingRule: TypeAlias = Literal["drop", "median", "level"]


@dataclass(frozen=True)
class NumericFeature:
    """A number, scaled by its public range (LPCT Theorem 5).

    Attributes:
        column: raw column name.
        minimum, maximum: public range, finite.
        fill: stands in for a missing value (a public median); None = a row without it cannot be encoded.
        indicator: a second encoded column that is 1 where the value is missing; needs `fill`.

    Raises:
        DataError: the range or the fill is not finite, or the fill is absent with an indicator.
    """

    kind: ClassVar[str] = "numeric"

    column: str
    minimum: float
    maximum: float
    fill: float | None = None
    indicator: bool = False

    def __post_init__(self) -> None:
        numbers = [self.minimum, self.maximum] + ([] if self.fill is None else [self.fill])
        if not all(math.isfinite(v) for v in numbers) or self.minimum > self.maximum:
            raise DataError(
                f'column "{self.column}": minimum, maximum and fill must be finite, '
                "and minimum at most maximum"
            )
        if self.indicator and self.fill is None:
            raise DataError(f'column "{self.column}": a missing-value indicator needs a fill beside it')
        # 1 and 1.0 are one range and must have one digest
        for name in ("minimum", "maximum", "fill"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, float(value))

    @classmethod
    def from_public(cls, column: str, values: ArrayLike, *, missing: MissingRule = "drop") -> Self:
        """The feature as the public values, float [n] with NaN for missing, describe it.

        `missing`: "drop" (such rows are not encoded), "median" (of the public values), "level" (median and
        indicator).

        Raises:
            DataError: no public value is present, or one is infinite.
        """
        low, high = public_range(values, column)
        fill = None if missing == "drop" else float(np.nanmedian(np.asarray(values, dtype=np.float64)))
        return cls(column, low, high, fill, indicator=missing == "level")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (self.column, f"{self.column} is missing") if self.indicator else (self.column,)

    @property
    def has_rule(self) -> bool:
        """True if a missing value can be encoded."""
        return self.fill is not None

    def encode_into(self, raw: NDArray[np.float64], out: NDArray[np.float32]) -> None:
        """Write the encoded columns of raw values [n] into out, float32 [n, len(names)]."""
        is_missing = np.isnan(raw)
        out[:, 0] = scale(raw, self.minimum, self.maximum)
        if self.fill is not None:
            out[is_missing, 0] = scale(self.fill, self.minimum, self.maximum)
        if self.indicator:
            out[:, 1] = is_missing


@dataclass(frozen=True)
class CategoricalFeature:
    """A category, one-hot over its levels; a level that is not listed is all zeros.

    Attributes:
        column: raw column name.
        levels: the levels, from public rows or the specification.
        fill: index of the level that stands in for a missing value (the most frequent public one).
        missing_level: missing is a level of its own, the last encoded column. Without either, a row with the
            value missing cannot be encoded.

    Raises:
        DataError: no level, a level twice, a level that is not a finite plain value, fill out of range, or both rules.
    """

    kind: ClassVar[str] = "categorical"

    column: str
    levels: tuple[Level, ...]
    fill: int | None = None
    missing_level: bool = False

    def __post_init__(self) -> None:
        where = f'column "{self.column}"'
        if not self.levels:
            raise DataError(f"{where}: a category needs at least one level; drop the column")
        if any(
            not isinstance(v, str | int | float) or (isinstance(v, float) and not math.isfinite(v))
            for v in self.levels
        ):
            raise DataError(f"{where}: levels must be texts, finite numbers or booleans")
        if len(set(self.levels)) != len(self.levels):
            raise DataError(f"{where}: a level is listed twice")
        if self.fill is not None and (self.missing_level or not 0 <= self.fill < len(self.levels)):
            raise DataError(
                f"{where}: fill must be the index of a level, and not together with missing_level"
            )

    @classmethod
    def from_public(
        cls, column: str, levels: tuple[Level, ...], indices: ArrayLike, *, missing: MissingRule = "drop"
    ) -> Self:
        """The feature with these levels; `indices`, float [n], are the public rows' places in them.

        `missing`: "drop" (such rows are not encoded), "median" (the most frequent public level; of equals the
        first), "level" (a level of its own).

        Raises:
            DataError: as the class; or "median" is asked for and no public value is present.
        """
        if missing != "median":
            return cls(column, levels, missing_level=missing == "level")
        present = np.asarray(indices, dtype=np.float64)
        present = present[present >= 0].astype(np.int64)
        if not present.size:
            raise DataError(f'column "{column}": every public value is missing; drop the column')
        return cls(column, levels, fill=int(np.bincount(present, minlength=len(levels)).argmax()))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        of_levels = tuple(f"{self.column} = {level}" for level in self.levels)
        return (*of_levels, f"{self.column} is missing") if self.missing_level else of_levels

    @property
    def has_rule(self) -> bool:
        """True if a missing value can be encoded."""
        return self.fill is not None or self.missing_level

    def encode_into(self, raw: NDArray[np.float64], out: NDArray[np.float32]) -> None:
        """Write the encoded columns of raw indices [n] into out, float32 [n, len(names)]."""
        is_missing = np.isnan(raw)
        n_levels = len(self.levels)
        out[:] = 0.0
        is_listed = (raw >= 0) & (raw < n_levels) & (raw == np.floor(raw))
        index = np.where(is_listed, raw, -1).astype(np.int64)
        if self.fill is not None:
            index[is_missing] = self.fill
        elif self.missing_level:
            out[is_missing, n_levels] = 1.0
        else:
            out[is_missing] = np.nan
        rows = np.flatnonzero(index >= 0)
        out[rows, index[rows]] = 1.0


Feature: TypeAlias = NumericFeature | CategoricalFeature


@dataclass(frozen=True)
class Encoding:
    """All features in order; one feature a raw column.

    Raises:
        DataError: no feature, or a column twice.
    """

    features: tuple[Feature, ...]

    def __post_init__(self) -> None:
        if not self.features:
            raise DataError("encoding: there is no feature left to learn from")
        if len(set(self.columns)) != len(self.columns):
            raise DataError("encoding: a column is listed twice")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Return the raw column names in the order of a raw matrix's columns."""
        return tuple(feature.column for feature in self.features)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Encoded column names, in order, such as "trip_miles" and "company = Flash Cab"."""
        return tuple(name for feature in self.features for name in feature.names)

    @property
    def n_encoded(self) -> int:
        """d, the number of encoded columns."""
        return len(self.names)

    def encode(self, raw: NDArray[np.float64]) -> NDArray[np.float32]:
        """The points of [0, 1]^d, float32 [n, d], of a raw matrix [n, columns]; values are clipped to the range.

        Where a value is missing and no rule fills it, its encoded columns are NaN (see `encodable`).

        Raises:
            DataError: the matrix has another number of columns.
        """
        raw = _checked(raw, self.columns)
        out = np.empty((raw.shape[0], self.n_encoded), dtype=np.float32)
        start = 0
        for j, feature in enumerate(self.features):
            end = start + len(feature.names)
            feature.encode_into(raw[:, j], out[:, start:end])
            start = end
        return out

    @cached_property
    def columns_without_rule(self) -> tuple[str, ...]:
        """Raw columns where a missing value leaves the row without a code."""
        return tuple(f.column for f in self.features if not f.has_rule)

    def encodable(self, raw: NDArray[np.float64], columns: Sequence[str] | None = None) -> NDArray[np.bool_]:
        """Return bool [n], False where a value is missing and no rule fills it.

        `columns` names the columns of raw, where they are not all of the encoding's; those absent count as there.
        """
        names = self.columns if columns is None else tuple(columns)
        raw = _checked(raw, names)
        place = {name: j for j, name in enumerate(names)}
        is_encodable = np.ones(raw.shape[0], dtype=np.bool_)
        for column in self.columns_without_rule:
            if column in place:
                is_encodable &= ~np.isnan(raw[:, place[column]])
        return is_encodable

    def is_outside(self, raw: NDArray[np.float64], columns: Sequence[str] | None = None) -> NDArray[np.bool_]:
        """Return bool [n], True where a numeric value lies outside its public range (a missing value does not).

        `columns` names the columns of raw, where they are not all of the encoding's; those absent count as inside.
        """
        names = self.columns if columns is None else tuple(columns)
        raw = _checked(raw, names)
        place = {name: j for j, name in enumerate(names)}
        outside = np.zeros(raw.shape[0], dtype=np.bool_)
        for feature in self.features:
            if isinstance(feature, NumericFeature) and feature.column in place:
                x = raw[:, place[feature.column]]
                outside |= (x < feature.minimum) | (x > feature.maximum)
        return outside

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON."""
        return serialize.digest_of(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Plain values, from which `from_json` makes an equal encoding."""
        return {
            "features": [{"kind": feature.kind, **serialize.to_plain(feature)} for feature in self.features]
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The encoding `to_json` wrote.

        Raises:
            DataError: a field is absent, unknown or of another type, or a feature is impossible.
        """
        if (
            not isinstance(data, Mapping)
            or set(data) != {"features"}
            or not isinstance(data["features"], list)
        ):
            raise DataError("encoding: expected exactly one field, features, a list")
        return cls(tuple(_read_feature(item) for item in data["features"]))


def _read_feature(data: object) -> Feature:
    kinds = {kind.kind: kind for kind in (NumericFeature, CategoricalFeature)}
    if not isinstance(data, Mapping) or data.get("kind") not in tuple(kinds):
        raise DataError("encoding: a feature's kind must be numeric or categorical")
    fields = {name: value for name, value in data.items() if name != "kind"}
    feature: Feature = serialize.of_plain(
        kinds[data["kind"]], fields, of=f"encoding: a {data['kind']} feature"
    )
    return feature


def _checked(raw: NDArray[np.float64], columns: Sequence[str]) -> NDArray[np.float64]:
    raw = np.asarray(raw, dtype=np.float64)
    if raw.ndim != 2 or raw.shape[1] != len(columns):
        raise DataError(f"raw rows have shape {raw.shape}, expected [n, {len(columns)}]")
    return raw


def public_range(values: ArrayLike, column: str) -> tuple[float, float]:
    """Smallest and largest of a public column, float [n], missing values (NaN) left out.

    Raises:
        DataError: every value is missing, or one is infinite; or as `check_widths`.
    """
    present = np.asarray(values, dtype=np.float64)
    present = present[~np.isnan(present)]
    if not present.size:
        raise DataError(
            f'column "{column}": every public value is missing; drop the column, or give its range'
        )
    low, high = float(present.min()), float(present.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise DataError(f'column "{column}": a public value is infinite; correct or drop the row')
    check_widths([low], [high], [column])
    return low, high


def check_widths(low: ArrayLike, high: ArrayLike, columns: Iterable[object]) -> None:
    """Raises DataError where the distance of a public column's ends, float [d], is no float."""
    for column, start, end in zip(columns, np.asarray(low).tolist(), np.asarray(high).tolist(), strict=True):
        if math.isinf(end - start):
            raise DataError(
                f'column "{column}": public values go from {start:g} to {end:g}, so far apart that their distance is not '
                "finite; correct or drop such rows, or divide the column"
            )


def scale(x: ArrayLike, minimum: float, maximum: float) -> NDArray[np.float32]:
    """`(x - minimum) / (maximum - minimum)`, clipped to [0, 1]; float32 of x's shape.

    A constant column (minimum = maximum) becomes 0. Missing values (NaN) stay missing. Never decreasing in x.
    """
    x = np.asarray(x, dtype=np.float64)
    if minimum == maximum:
        return np.where(np.isnan(x), np.nan, 0.0).astype(np.float32)
    with np.errstate(over="ignore"):
        if math.isinf(maximum - minimum):  # the span of two finite floats can overflow: halve everything
            x, minimum, maximum = x / 2, minimum / 2, maximum / 2
        scaled = (x - minimum) / (maximum - minimum)
    return np.clip(scaled, 0.0, 1.0).astype(np.float32)


@lru_cache(maxsize=2**16)
def largest_raw(threshold: float, minimum: float, maximum: float) -> float:
    """The largest raw value whose scaled value is at most `threshold` (float64, compared with the float32
    scaled value).

    Thus `x <= largest_raw(t, a, b)` exactly where `scale(x, a, b) <= t`, for every float64 x. `inf` where
    every value qualifies, `-inf` where none does (then not even -inf qualifies: test `threshold < 0` apart).
    """
    if threshold < 0:
        return -math.inf
    if threshold >= 1 or minimum == maximum:
        return math.inf
    # scale is never decreasing, so bisect over float64 in its own order
    low, high = _rank(minimum), _rank(maximum)  # scaled 0 and 1: low qualifies, high does not
    # half of the steps are saved by looking first where real arithmetic puts the threshold
    span = maximum - minimum
    for guess in (minimum + (threshold - 2**-22) * span, minimum + (threshold + 2**-22) * span):
        if minimum < guess < maximum:
            if _scaled(guess, minimum, maximum) <= threshold:
                low = max(low, _rank(guess))
            else:
                high = min(high, _rank(guess))
    while high - low > 1:
        middle = (low + high) // 2
        if _scaled(_unrank(middle), minimum, maximum) <= threshold:
            low = middle
        else:
            high = middle
    return _unrank(low)


def _scaled(x: float, minimum: float, maximum: float) -> float:
    """Scale one value as `scale` does, with the same arithmetic in plain floats, which is many times quicker."""
    if math.isinf(maximum - minimum):
        x, minimum, maximum = x / 2, minimum / 2, maximum / 2
    scaled = min(max((x - minimum) / (maximum - minimum), 0.0), 1.0)
    as_float32: float = struct.unpack("<f", struct.pack("<f", scaled))[0]
    return as_float32


def _rank(x: float) -> int:
    """The place of a float among all floats, in their order; both zeros have one place."""
    bits: int = struct.unpack("<q", struct.pack("<d", x))[0]
    return bits if bits >= 0 else -(bits & (2**63 - 1))


def _unrank(rank: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<q", abs(rank)))[0]
    return value if rank >= 0 else -value
