"""The least noisy report of a bounded number, from a linear programme turned into integers.

Of all mechanisms with outputs on a grid, mean u and likelihood ratios within e^eps, the one with the least variance averaged
over u ~ N(0, .35^2): minimise sum_u w_u sum_z z^2 Q(z|u) over Q with sum_z Q(z|u) = 1, sum_z z Q(z|u) = u and
q0(z) <= Q(z|u) <= e^eps q0(z), for 9 levels u of [-1, 1] and 33 outputs z of [-C, C] (in the manner of the label randomisers
of Badanidiyuru et al., NeurIPS 2023). A number between two levels is rounded at random to one of them. C is the best of
Cd, (Cd + Cp)/2, Cp and 1.5 Cp, where Cd = (e^eps + 1)/(e^eps - 1) is Duchi's and Cp = (e^(eps/2) + 1)/(e^(eps/2) - 1) the
piecewise mechanism's (Wang et al., ICDE 2019). Beyond epsilon 5 there are 33 levels and 65 outputs, as rounding between 9 would
be most of the noise; a budget above 12 is not spent beyond it. Below .02 Duchi's two outputs stand in.

The floating-point solver only says which chances lie on a bound; the chances themselves are solved from that in rational
numbers and rounded, so the same epsilon gives the same integers wherever the solver finds the same corner. A protocol carries
the integers, and no client solves anything.

Privacy: the epsilon is recomputed from the integers and never above the claim. Mean: exact at every level; between levels u
is read to within 2^-52, which bounds the bias. Variance: `variance`; over u ~ N(0, .35^2) about 3.65, .67, .083 at
epsilon 1, 2, 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.coins import WORD, Words, checked_epsilon, log_up
from ldptree.errors import ConfigError
from ldptree.mechanisms.numbers.number import Floats, NumberMechanism, checked_numbers
from ldptree.mechanisms.numbers.programme import MEAN, SCALE, Table, solved, worst_ratio

_NAMES = {"steps", "positions", "counts"}
_MOST_OUTPUTS = 255


@dataclass(frozen=True)
class OptimalLabel(NumberMechanism):
    """Level j of 2 h + 1 sends output k with chance counts[j][k] / 2^64. Reports are uint8 [n], the output's place k.

    Attributes:
        steps: an output at position s is worth s 2^30 / (h steps).
        positions: of the outputs, whole numbers in increasing order.
        counts: one row a level from u = -1 to u = 1, one integer an output; each row adds up to 2^64.

    Raises:
        ConfigError: shapes that do not fit, a position far from 0, a chance of 0, a row that does not add up, or a mean that
            is not the level's.
    """

    name: ClassVar[str] = "optimal_label"
    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.uint8)

    steps: int
    positions: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        outputs, levels = len(self.positions), len(self.counts)
        if not (2 <= outputs <= _MOST_OUTPUTS and levels % 2 == 1 and levels >= 3 and self.steps >= 1):
            raise ConfigError(f"{self.name}: {outputs} outputs, {levels} levels and {self.steps} steps")
        if max(map(abs, self.positions)) > _MOST_OUTPUTS or self.steps > WORD:
            raise ConfigError(
                f"{self.name}: positions are within {_MOST_OUTPUTS} of 0, and steps at most 2^64"
            )
        if any(b <= a for a, b in zip(self.positions, self.positions[1:], strict=False)):
            raise ConfigError(f"{self.name}: positions must be in increasing order")
        for j, row in enumerate(self.counts):
            if len(row) != outputs or min(row) < 1 or sum(row) != WORD:
                raise ConfigError(
                    f"{self.name}: level {j} is not {outputs} positive counts that add up to 2^64"
                )
            mean = sum(s * count for s, count in zip(self.positions, row, strict=True))
            if mean != (j - self.half) * self.steps * MEAN:
                raise ConfigError(f"{self.name}: the mean of level {j} is not the level")

    @classmethod
    def for_budget(cls, epsilon: float) -> Self:
        """The mechanism that spends at most epsilon."""
        table = _solved(checked_epsilon(epsilon))
        return cls(table.steps, table.positions, table.counts)

    @classmethod
    def from_thresholds(cls, thresholds: Mapping[str, Any]) -> Self:
        """The mechanism with these integers."""
        if set(thresholds) != _NAMES:
            raise ConfigError(f"{cls.name}: thresholds must be exactly {', '.join(sorted(_NAMES))}")
        steps, positions, counts = (thresholds[name] for name in ("steps", "positions", "counts"))
        rows = [positions, *counts] if isinstance(counts, list | tuple) else [counts]
        if type(steps) is not int or any(
            not isinstance(row, list | tuple) or any(type(v) is not int for v in row) for row in rows
        ):
            raise ConfigError(f"{cls.name}: steps, positions and rows of counts must be integers")
        return cls(steps, tuple(positions), tuple(tuple(row) for row in counts))

    @property
    def thresholds(self) -> dict[str, Any]:
        """The integers that define it."""
        return {
            "steps": self.steps,
            "positions": list(self.positions),
            "counts": [list(r) for r in self.counts],
        }

    @property
    def half(self) -> int:
        """Levels above 0."""
        return len(self.counts) // 2

    @cached_property
    def epsilon(self) -> float:
        """The epsilon of the integers, rounded up. Rounding between levels mixes their rows, which adds nothing."""
        return log_up(worst_ratio(self.counts))

    @cached_property
    def values(self) -> Floats:
        """Value of each output, float64 [K]."""
        return np.array([float(Fraction(s * SCALE, self.half * self.steps)) for s in self.positions])

    @property
    def bound(self) -> float:
        """Of a decoded report."""
        return float(np.abs(self.values).max())

    @cached_property
    def _ends(self) -> NDArray[np.uint64]:
        """Return each level's ends of outputs among the words, but the last, uint64 [levels, K - 1]."""
        sums = [[sum(row[: k + 1]) for k in range(len(row) - 1)] for row in self.counts]
        return np.array(sums, dtype=np.uint64)

    def randomize(self, numbers: ArrayLike, words: Words) -> NDArray[np.uint8]:
        """A coin for the level, and one for the output."""
        level, above = self._places(checked_numbers(self.name, numbers))
        level += words.block(level.size) < above
        word = words.block(level.size)
        reports = np.empty(level.size, dtype=np.uint8)
        for j in range(len(self.counts)):
            here = level == j
            reports[here] = np.searchsorted(self._ends[j], word[here], side="right")
        return reports

    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """An output has a place below their number."""
        return self._shaped(reports) < len(self.positions)

    def _decoded(self, reports: NDArray[Any]) -> Floats:
        values: Floats = self.values[reports]
        return values

    def variance(self, numbers: ArrayLike) -> Floats:
        """Of a report, its rounding between levels included."""
        numbers = np.asarray(numbers, dtype=np.float64)
        chances = np.array([[count / WORD for count in row] for row in self.counts])
        squares = chances @ self.values**2
        level, above = self._places(numbers.ravel())
        share = above / WORD
        square = (1 - share) * squares[level] + share * squares[np.minimum(level + 1, squares.size - 1)]
        variance: Floats = (square - numbers.ravel() ** 2).reshape(numbers.shape)
        return variance

    @property
    def outputs(self) -> NDArray[np.uint8]:
        """Return every report, as the places."""
        return np.arange(len(self.positions), dtype=np.uint8)

    def law(self, number: float) -> list[Fraction]:
        """The two levels' rows, mixed by the coin that chooses between them."""
        level, above = self._places(checked_numbers(self.name, [number]))
        row, share = self.counts[int(level[0])], Fraction(int(above[0]), WORD)
        upper = self.counts[min(int(level[0]) + 1, len(self.counts) - 1)]
        return [
            ((1 - share) * low + share * high) / Fraction(WORD) for low, high in zip(row, upper, strict=True)
        ]

    def _places(self, numbers: Floats) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """The level at or below each number, and how many of the 2^64 words lift it to the next."""
        place = (numbers + 1.0) * self.half
        level = np.floor(place)
        # the fraction of a float below 2^6 has at most 53 bits, so the product is exact
        above = ((place - level) * 2.0**53).astype(np.uint64) << np.uint64(11)
        return level.astype(np.int64), above


@lru_cache(maxsize=64)
def _solved(epsilon: float) -> Table:
    return solved(epsilon)
