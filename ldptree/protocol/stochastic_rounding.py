"""Round a number stochastically to one of its two neighbours among equally spaced levels, with an exact mean.

This happens before a mechanism sees the label, and privacy holds for whatever it is rounded to: so these coins need not be exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ldptree.limits import check_order

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.coins import Words


def label_levels(low: float, high: float, n_levels: int) -> tuple[float, ...]:
    """n_levels >= 2 equally spaced numbers from low to high.

    Raises:
        ConfigError: low is not below high, or one of them or their distance is not finite.
    """
    check_order(low, high)
    return (float(low), *np.linspace(low, high, n_levels)[1:-1].tolist(), float(high))


def round_at_random(
    labels: ArrayLike, low: float, high: float, n_levels: int, words: Words
) -> NDArray[np.int64]:
    """Return the level of each label, int64 [n], of two neighbours the upper as often as it is near. -1 for NaN.

    A label out of range is moved to its end.

    Args:
        labels: float [n], in the label's own unit.
        low, high: ends of the range.
        n_levels: levels from one to the other.
        words: coins, one word a label.
    """
    y = np.asarray(labels, dtype=np.float64)
    is_missing = np.isnan(y)
    place = (np.clip(np.where(is_missing, low, y), low, high) - low) / (high - low) * (n_levels - 1)
    below = np.minimum(np.floor(place), n_levels - 2)
    uniform = (words.block(y.size) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    levels = (below + (uniform < place - below)).astype(np.int64)
    return np.where(is_missing, -1, levels)


def expected_shares(labels: ArrayLike, low: float, high: float, n_levels: int) -> NDArray[np.float64]:
    """Return the share of labels rounded to each level, on average over the coins, float64 [n_levels]."""
    y = np.clip(np.asarray(labels, dtype=np.float64), low, high)
    place = (y - low) / (high - low) * (n_levels - 1)
    below = np.minimum(np.floor(place), n_levels - 2).astype(np.int64)
    above = np.bincount(below + 1, weights=place - below, minlength=n_levels)
    shares: NDArray[np.float64] = (
        above + np.bincount(below, weights=1 - place + below, minlength=n_levels)
    ) / y.size
    return shares
