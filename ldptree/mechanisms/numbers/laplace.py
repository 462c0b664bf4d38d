"""A number with Laplace noise (Dwork et al. 2006), as HistOfTree, ParDT and LabelDT report a label.

z = u + (2/eps) Lap(1), as u varies by 2 at most. Variance 8/eps^2 whatever u is.

A simulation device: floating-point noise leaks (Mironov 2012), so no holder may send one. For comparison with papers only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ldptree.mechanisms.numbers.number import Floats
from ldptree.mechanisms.numbers.simulated import SimulatedNumber


@dataclass(frozen=True)
class LaplaceNumber(SimulatedNumber):
    """u + (2/eps) Lap(1). Reports: float64 [n]."""

    name: ClassVar[str] = "laplace"

    def _noisy(self, numbers: Floats, first: Floats, second: Floats) -> Floats:
        noise: Floats = np.log(first) - np.log(second)
        return numbers + 2.0 / self.budget * noise

    def variance(self, numbers: ArrayLike) -> Floats:
        """8/eps^2."""
        return np.full(np.shape(numbers), 8.0 / self.budget**2)
