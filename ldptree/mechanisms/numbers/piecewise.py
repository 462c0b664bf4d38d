"""A number near the true one, mostly (Wang, Xiao, Yang, Zhao, Hui, Shin, Shin and Yu, ICDE 2019, algorithm 2).

With C = (e^(eps/2) + 1)/(e^(eps/2) - 1) the report is uniform on [l, l + C - 1], l = (C + 1) u/2 - (C - 1)/2, with chance
e^(eps/2)/(e^(eps/2) + 1), otherwise uniform on the rest of [-C, C]. Variance
u^2/(e^(eps/2) - 1) + (e^(eps/2) + 3)/(3 (e^(eps/2) - 1)^2).

A simulation device: its outputs are real numbers. For comparison with `optimal_label` only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ldptree.mechanisms.numbers.number import Floats
from ldptree.mechanisms.numbers.simulated import SimulatedNumber


@dataclass(frozen=True)
class Piecewise(SimulatedNumber):
    """The piecewise mechanism. Reports: float64 [n] in [-C, C]."""

    name: ClassVar[str] = "piecewise"

    @property
    def bound(self) -> float:
        """C."""
        return 1.0 + 2.0 / math.expm1(self.budget / 2)

    def _noisy(self, numbers: Floats, first: Floats, second: Floats) -> Floats:
        c = self.bound
        low = (c + 1) / 2 * numbers - (c - 1) / 2
        is_near = first < 1 / (1 + math.exp(-self.budget / 2))
        far = second * (c + 1) - c
        far += np.where(far > low, c - 1, 0.0)
        return np.where(is_near, low + second * (c - 1), far)

    def variance(self, numbers: ArrayLike) -> Floats:
        """See the module."""
        e = math.expm1(self.budget / 2)
        variance: Floats = np.asarray(numbers, dtype=np.float64) ** 2 / e + (e + 4) / (3 * e**2)
        return variance
