"""Duchi's two outputs or the piecewise mechanism, by a coin (Wang et al., ICDE 2019, section III-C).

The piecewise mechanism with chance 1 - e^(-eps/2) where eps > .61, otherwise Duchi's; up to .61 always Duchi's. The variance is
the two variances in these shares.

A simulation device: its outputs are real numbers. For comparison with `optimal_label` only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ldptree.mechanisms.numbers.number import Floats
from ldptree.mechanisms.numbers.piecewise import Piecewise
from ldptree.mechanisms.numbers.simulated import SimulatedNumber

# where the two mechanisms' largest variances meet: the paper's eps*
_DUCHI_UP_TO = 0.61


@dataclass(frozen=True)
class Hybrid(SimulatedNumber):
    """The hybrid mechanism. Reports: float64 [n] in [-C, C], C of the piecewise mechanism."""

    name: ClassVar[str] = "hybrid"

    @property
    def piecewise_share(self) -> float:
        """The chance of the piecewise mechanism."""
        return -math.expm1(-self.budget / 2) if self.budget > _DUCHI_UP_TO else 0.0

    @property
    def bound(self) -> float:
        """The larger of the two."""
        return max(Piecewise(self.budget).bound, self._duchi)

    @property
    def _duchi(self) -> float:
        return 1.0 / math.tanh(self.budget / 2)

    def _noisy(self, numbers: Floats, first: Floats, second: Floats) -> Floats:
        share = self.piecewise_share
        is_piecewise = first < share
        # the coin's remainder is uniform again
        again = np.where(is_piecewise, first / share if share else 0.0, (first - share) / (1 - share))
        near = Piecewise(self.budget)._noisy(numbers, again, second)
        is_plus = second < 0.5 * (1 + numbers / self._duchi)
        return np.where(is_piecewise, near, np.where(is_plus, self._duchi, -self._duchi))

    def variance(self, numbers: ArrayLike) -> Floats:
        """See the module."""
        share = self.piecewise_share
        duchi: Floats = self._duchi**2 - np.asarray(numbers, dtype=np.float64) ** 2
        return share * Piecewise(self.budget).variance(numbers) + (1 - share) * duchi
