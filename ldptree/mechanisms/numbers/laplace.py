"""A number with Laplace noise (Dwork et al. 2006), as HistOfTree, ParDT and LabelDT report a label.

z = u + (2/eps) Lap(1), as u varies by 2 at most. Variance 8/eps^2 whatever u is.

A simulation device: floating-point noise leaks (Mironov 2012), so no holder may send one. For comparison with papers only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.coins import Words, checked_epsilon
from ldptree.errors import ConfigError
from ldptree.mechanisms.numbers.number import Floats, NumberMechanism, checked_numbers


@dataclass(frozen=True)
class LaplaceNumber(NumberMechanism):
    """u + (2/eps) Lap(1). Reports are already the decoded numbers, float64 [n].

    Attributes:
        budget: the epsilon of the formula, which floating point does not keep exactly.
    """

    name: ClassVar[str] = "laplace"
    is_simulation_device: ClassVar[bool] = True
    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.float64)

    budget: float

    def __post_init__(self) -> None:
        checked_epsilon(self.budget)

    @classmethod
    def for_budget(cls, epsilon: float) -> Self:
        """The mechanism that spends epsilon."""
        return cls(checked_epsilon(epsilon))

    @classmethod
    def from_thresholds(cls, thresholds: Mapping[str, Any]) -> Self:
        """The mechanism with this epsilon."""
        if set(thresholds) != {"epsilon"} or type(thresholds["epsilon"]) not in (int, float):
            raise ConfigError(f'{cls.name}: thresholds must be exactly the number "epsilon"')
        try:
            return cls(float(thresholds["epsilon"]))
        except OverflowError:
            raise ConfigError(f"{cls.name}: epsilon is too large for a float") from None

    @property
    def thresholds(self) -> dict[str, Any]:
        """The epsilon."""
        return {"epsilon": self.budget}

    @property
    def epsilon(self) -> float:
        """The epsilon of the formula."""
        return self.budget

    @property
    def bound(self) -> float:
        """Infinite."""
        return math.inf

    def randomize(self, numbers: ArrayLike, words: Words) -> Floats:
        """Two uniform words a holder make the noise."""
        numbers = checked_numbers(self.name, numbers)
        first, second = (_uniform(words.block(numbers.size)) for _ in range(2))
        noise: Floats = np.log(first) - np.log(second)
        return numbers + 2.0 / self.budget * noise

    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Finite."""
        valid: NDArray[np.bool_] = np.isfinite(self._shaped(reports))
        return valid

    def _decoded(self, reports: NDArray[Any]) -> Floats:
        return reports

    def variance(self, numbers: ArrayLike) -> Floats:
        """8/eps^2."""
        return np.full(np.shape(numbers), 8.0 / self.budget**2)


def _uniform(words: NDArray[np.uint64]) -> Floats:
    """Numbers of (0, 1), float64 [n]."""
    return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
