"""The public range of a column: min-max scaling, and thresholds put back into raw units.

LPCT section 4.3, Theorem 5: the range is the public sample's minimum and maximum; nothing private moves it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.errors import DataError


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
        raise DataError(f'column "{column}": a public value is infinite; mend or drop the row')
    check_widths([low], [high], [column])
    return low, high


def check_widths(low: ArrayLike, high: ArrayLike, columns: Iterable[object]) -> None:
    """Raises DataError where the distance of a public column's ends, float [d], is no float."""
    for column, one, other in zip(columns, np.asarray(low).tolist(), np.asarray(high).tolist(), strict=True):
        if math.isinf(other - one):
            raise DataError(
                f'column "{column}": public values go from {one:g} to {other:g}, so far apart that their distance is not '
                "finite; mend or drop such rows, or divide the column"
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
    """`scale` of one value, the same arithmetic in plain floats: many times quicker for a single one."""
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
