"""What the floating-point number mechanisms share: an epsilon, and real numbers as reports.

They are simulation devices, here to be compared with; each one's noise is in its own file.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.coins import Words, checked_epsilon
from ldptree.errors import ConfigError
from ldptree.mechanisms.numbers.number import Floats, NumberMechanism, checked_numbers


@dataclass(frozen=True)
class SimulatedNumber(NumberMechanism):
    """A mechanism whose reports are already the decoded numbers: float64 [n].

    Attributes:
        budget: the epsilon of the formula, which floating point does not keep exactly.
    """

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

    def randomize(self, numbers: ArrayLike, words: Words) -> Floats:
        """Two uniform words a holder make the noise."""
        numbers = checked_numbers(self.name, numbers)
        first, second = (_uniform(words.block(numbers.size)) for _ in range(2))
        return self._noisy(numbers, first, second)

    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Finite, and within the bound."""
        reports = self._shaped(reports)
        valid: NDArray[np.bool_] = np.isfinite(reports) & (np.abs(reports) <= self.bound * (1 + 1e-9))
        return valid

    def _decoded(self, reports: NDArray[Any]) -> Floats:
        return reports

    @abstractmethod
    def _noisy(self, numbers: Floats, first: Floats, second: Floats) -> Floats:
        """Reports, from two uniform numbers of (0, 1) a holder."""

    @property
    def bound(self) -> float:
        """Of a report; infinite unless a subclass says otherwise."""
        return math.inf


def _uniform(words: NDArray[np.uint64]) -> Floats:
    return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
