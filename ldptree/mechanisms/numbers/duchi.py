"""Report one of two numbers (Duchi, Jordan and Wainwright 2018), with the least noise for two outputs.

u is rounded at random to +-1, and the sign kept with chance e^eps/(e^eps + 1); the report is worth +-C,
C = (e^eps + 1)/(e^eps - 1).
Privacy: eps-LDP by the coin's integer. Variance C^2 - u^2. Bias: at most 2^-52, from reading u.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.coins import WORD, Words, checked_epsilon, exp, log_up, threshold_above
from ldptree.errors import ConfigError
from ldptree.mechanisms.mechanism import checked_thresholds
from ldptree.mechanisms.numbers.number import Floats, NumberMechanism, checked_numbers


@dataclass(frozen=True)
class Duchi(NumberMechanism):
    """The sign is turned round with chance flip / 2^64. Reports are uint8 [n], 1 for plus.

    Raises:
        ConfigError: not 0 < flip < 2^63.
    """

    name: ClassVar[str] = "duchi"
    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.uint8)

    flip: int

    def __post_init__(self) -> None:
        if not 0 < self.flip < WORD // 2:
            raise ConfigError(
                f"{self.name}: flip must be in 1 .. 2^63 - 1, found {self.flip} (epsilon too small?)"
            )

    @classmethod
    def for_budget(cls, epsilon: float) -> Self:
        """The mechanism that spends at most epsilon."""
        e = exp(checked_epsilon(epsilon))
        mechanism = cls(threshold_above(1 / e, 1 + 1 / e))
        while mechanism.epsilon > epsilon:  # only where rounding up the logarithm passed the claim
            mechanism = cls(mechanism.flip + 1)
        return mechanism

    @classmethod
    def from_thresholds(cls, thresholds: Mapping[str, Any]) -> Self:
        """The mechanism with this integer."""
        return cls(*checked_thresholds(cls.name, thresholds, ("flip",)))

    @property
    def thresholds(self) -> dict[str, Any]:
        """The coin's integer."""
        return {"flip": self.flip}

    @property
    def epsilon(self) -> float:
        """Of the coin, rounded up."""
        return log_up(Fraction(WORD - self.flip, self.flip))

    @property
    def bound(self) -> float:
        """C."""
        return float(Fraction(WORD, WORD - 2 * self.flip))

    def randomize(self, numbers: ArrayLike, words: Words) -> NDArray[np.uint8]:
        """A coin for the sign, and one for the lie."""
        above = _words_above(checked_numbers(self.name, numbers))
        is_plus = words.block(above.size) >> np.uint64(11) < above
        is_plus ^= words.block(above.size) < np.uint64(self.flip)
        return is_plus.astype(np.uint8)

    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """0 or 1."""
        return self._shaped(reports) < 2

    def _decoded(self, reports: NDArray[Any]) -> Floats:
        return np.where(reports == 1, self.bound, -self.bound)

    def variance(self, numbers: ArrayLike) -> Floats:
        """C^2 - u^2."""
        variance: Floats = self.bound**2 - np.asarray(numbers, dtype=np.float64) ** 2
        return variance

    @property
    def outputs(self) -> NDArray[np.uint8]:
        """Minus and plus."""
        return np.arange(2, dtype=np.uint8)

    def law(self, number: float) -> list[Fraction]:
        """Of minus and plus."""
        plus = Fraction(int(_words_above(checked_numbers(self.name, [number]))[0]), 2**53)
        lie = Fraction(self.flip, WORD)
        chance = plus * (1 - lie) + (1 - plus) * lie
        return [1 - chance, chance]


def _words_above(numbers: Floats) -> NDArray[np.uint64]:
    """Of 2^53 words, how many make it +1."""
    return ((numbers + 1.0) * 2.0**52).astype(np.uint64)
