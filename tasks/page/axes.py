"""Stretches of the number line for the page's pictures: round ends, ticks, and where a value lies in percent of the width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

_EDGE = 2.0  # percent of the width kept free on either side, so that no mark is cut
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25)


@dataclass(frozen=True)
class Axis:
    """A stretch of the number line, `low` < `high`, with ticks at round numbers."""

    low: float
    high: float
    step: float

    @classmethod
    def around(cls, values: Sequence[float], *, floor: float, ceiling: float, most_ticks: int = 6) -> Self:
        """The smallest axis with round ends in [floor, ceiling] that holds what lies there of `values`."""
        inside = [min(max(value, floor), ceiling) for value in values if math.isfinite(value)] or [
            floor,
            ceiling,
        ]
        low, high = min(inside), max(inside)
        if high - low < 0.04:
            middle = (low + high) / 2
            low, high = max(middle - 0.02, floor), min(middle + 0.02, ceiling)
        step = next((s for s in _STEPS if (high - low) / s <= most_ticks - 1), _STEPS[-1])
        low = max(math.floor(low / step + 1e-9) * step, floor)
        high = min(math.ceil(high / step - 1e-9) * step, ceiling)
        return cls(low, high, step)

    @classmethod
    def over(cls, values: Sequence[float], *, most_ticks: int = 6) -> Self:
        """The smallest axis with round ends that holds every finite one of `values`, of whatever size."""
        inside = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
        low, high = _apart(min(inside), max(inside))
        step = _round_step((high - low) / (most_ticks - 1))
        return cls(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, step)

    @classmethod
    def between(cls, low: float, high: float, *, most_ticks: int = 7) -> Self:
        """The axis with just these ends, ticks at round numbers within."""
        low, high = _apart(low, high)
        return cls(low, high, _round_step((high - low) / most_ticks))

    def at(self, value: float) -> float:
        """Where a value lies, in percent of the track's width; outside values at the border."""
        inside = min(max(value, self.low), self.high)
        return _EDGE + (100 - 2 * _EDGE) * (inside - self.low) / (self.high - self.low)

    def holds(self, value: float) -> bool:
        """Whether a value lies on the axis."""
        return self.low <= value <= self.high

    @property
    def ticks(self) -> tuple[float, ...]:
        """Round numbers from end to end."""
        first = math.ceil(self.low / self.step - 1e-9)
        last = math.floor(self.high / self.step + 1e-9)
        return tuple(i * self.step for i in range(first, last + 1))


def _apart(low: float, high: float) -> tuple[float, float]:
    """Ends that differ by more than their last digits."""
    least = max(abs(low), abs(high), 1e-9) * 1e-6
    return (low, high) if high - low > least else (low - 1e3 * least, high + 1e3 * least)


def _round_step(at_least: float) -> float:
    """1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(at_least))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= at_least * (1 - 1e-9))
