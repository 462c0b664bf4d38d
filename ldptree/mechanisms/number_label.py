"""The shared form of reports of a numeric label, as one of many equally spaced levels, with two totals a cell.

A label y in [low, high] is rounded at random to one of S + 1 levels (`Protocol.values`), so that its mean is exact; with S =
256 that adds at most (high - low)^2 / 2^18 of variance, which is nothing beside the noise. With t = 0 .. 1 the level over
S, cell j has the totals N~_j1 = sum of t, N~_j0 = U~_j - N~_j1: as many people at the two ends of the range as give the same
count and the same sum. Which noise is added is in the mechanism's own file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import ConfigError
from ldptree.mechanisms.mechanism import Mechanism

STEPS = 256
MOST_STEPS = 2**16


@dataclass(frozen=True)
class NumberLabel(Mechanism):
    """A report of a cell and a number.

    Attributes:
        steps: S, from one end of the label's range to the other, at least 1.

    Raises:
        ConfigError: the classes are not the two ends of a range, or S is not in 1 .. 2^16.
    """

    steps: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_classes != 2 or not 1 <= self.steps <= MOST_STEPS:
            raise ConfigError(
                f"{self.name}: {self.n_classes} ends and {self.steps} steps; a range has 2 ends, and 1 to "
                f"{MOST_STEPS:,} steps between them"
            )

    @property
    def n_levels(self) -> int:
        """S + 1."""
        return self.steps + 1

    def cells_and_parts(self, values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Cell (L for "outside") and steps above the low end, each int64 [n]; "outside" has half of them."""
        cells, steps = np.divmod(self.checked(values), self.n_levels)
        steps[cells == self.n_cells] = self.steps // 2
        return cells, steps


def checked_rho(rho: float) -> float:
    """The share of epsilon that the cell gets.

    Raises:
        ConfigError: it is not between 0 and 1.
    """
    if not 0 < rho < 1:
        raise ConfigError(f"rho = {rho}: the share of epsilon that the cell gets lies between 0 and 1")
    return float(rho)
