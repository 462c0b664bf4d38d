"""Discrete Laplace noise on cell and label, by LPCT eqs 5 and 6 on the integers, with P(noise = x) ~ exp(-r |x|).

With r = eps / 4 it is epsilon-LDP by the same argument as the paper's: the likelihoods of a number under indicators 0 and
1 differ by at most e^r, and two holders differ in at most four numbers. r is a whole number of 2^-32ths, so the stated
epsilon 4 r is a rational number, rounded up. The noise is drawn exactly, from integers alone (Canonne, Kamath, Steinke
2020, algorithms 1 and 2), so nothing leaks through floating point.

Noise variance of one number: 2 a / (1 - a)^2 a holder, a = e^-r; of a cell's margin A: 5 / 4 of it, about 40 / eps^2.
A number is moved to the nearest one in -B .. B + 1, which costs no privacy; B = 44.4 / r is so far out that one noise in
2^64 meets it. The bound is what a dishonest holder can send.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldptree.coins import (
    RATE_UNIT,
    Words,
    check_rate,
    checked_epsilon,
    draw_laplace,
    furthest_laplace,
    laplace_min_entropy,
    laplace_variance,
    rounded_up,
)
from ldptree.errors import DataError
from ldptree.mechanisms.additive import Additive
from ldptree.mechanisms.mechanism import PoisoningBound, checked_thresholds


@dataclass(frozen=True)
class DiscreteLaplace(Additive):
    """Reports are int32 [n, L C].

    Attributes:
        rate: r 2^32, at least 1.

    Raises:
        ConfigError: the rate is not in 1 .. 2^40.
    """

    name: ClassVar[str] = "discrete_laplace"
    dtype: ClassVar[np.dtype[Any]] = np.dtype("<i4")

    rate: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rate(self.name, self.rate)

    @classmethod
    def for_budget(cls, epsilon: float, n_cells: int, n_classes: int) -> Self:
        """Noise of rate epsilon / 4, rounded down."""
        return cls(n_cells, n_classes, int(Fraction(checked_epsilon(epsilon)) * RATE_UNIT / 4))

    @classmethod
    def from_thresholds(cls, n_cells: int, n_classes: int, thresholds: Mapping[str, int]) -> Self:
        """The mechanism with this rate."""
        return cls(n_cells, n_classes, *checked_thresholds(cls.name, thresholds, ("rate",)))

    @property
    def thresholds(self) -> dict[str, int]:
        """The rate of the noise, times 2^32."""
        return {"rate": self.rate}

    @property
    def epsilon(self) -> float:
        """4 r, exact or rounded up."""
        return rounded_up(Fraction(4 * self.rate, RATE_UNIT))

    @property
    def min_entropy(self) -> float:
        """Of the noise of each number."""
        return self.raw_size * laplace_min_entropy(self.rate)

    @property
    def bound(self) -> int:
        """Return B, where noise is cut off."""
        return furthest_laplace(self.rate)

    @property
    def noise_variances(self) -> NDArray[np.float64]:
        """2 a / (1 - a)^2 with a = e^-r."""
        return np.full(self.n_classes, laplace_variance(self.rate))

    def randomize(self, values: NDArray[np.int64], words: Words) -> NDArray[np.int32]:
        """Return indicators and noise, cut off at the bound, int32 [n, L C]."""
        return self.noisy(values, words, np.int32)

    def noisy(self, values: NDArray[np.int64], words: Words, dtype: type) -> NDArray[Any]:
        """As `Additive.noisy`, within the bound."""
        noisy = super().noisy(values, words, np.int64)
        return np.asarray(np.clip(noisy, -self.bound, self.bound + 1), dtype=dtype)

    def draw_noise(self, n: int, words: Words) -> NDArray[np.int64]:
        """Exact discrete Laplace variables, int64 [n, L C]."""
        return draw_laplace(self.rate, n * self.raw_size, words).reshape(n, -1)

    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Every number is in -B .. B + 1."""
        return np.asarray(((reports >= -self.bound) & (reports <= self.bound + 1)).all(axis=1))

    def aggregate(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """The sums of each number, int64 [L C]."""
        reports = np.asarray(reports)
        if reports.ndim != 2 or reports.shape[1] != self.raw_size or reports.dtype != np.int32:
            raise DataError(
                f"discrete_laplace: reports are int32 [n, {self.raw_size}], found {reports.dtype} of shape {reports.shape}"
            )
        if not self.is_valid(reports).all():
            raise DataError(
                f"discrete_laplace: a number is outside {-self.bound} .. {self.bound + 1}; "
                "it was made under another protocol"
            )
        sums: NDArray[np.int64] = reports.sum(axis=0, dtype=np.int64)
        return sums

    def sample_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """The sum of n discrete Laplace variables is the difference of two NegativeBinomial(n, 1 - a)."""
        n, size = int(np.sum(counts)), self.raw_size
        if not n:
            return np.zeros(size, dtype=np.int64)
        success = -math.expm1(-self.rate / RATE_UNIT)
        noise = generator.negative_binomial(n, success, size) - generator.negative_binomial(n, success, size)
        totals: NDArray[np.int64] = self.true_sums(counts) + noise
        return totals

    def can_be_sum(self, raw: NDArray[Any], n: int) -> bool:
        """Whole numbers, n times as far out as one report's at most."""
        is_whole = raw.shape == (self.raw_size,) and np.issubdtype(raw.dtype, np.integer)
        return bool(is_whole and raw.min() >= -n * self.bound and raw.max() <= n * (self.bound + 1))

    def poisoning_bound(self, n: int) -> PoisoningBound:
        """Every number of a report can lie at its bound, and the count of class 0 in a cell is made of C of them.

        The number of holders in no cell is made of L: it moves by L (2 B + 1), and decides nothing but how many count.
        """
        shift = float(self.n_classes * (2 * self.bound + 1))
        return PoisoningBound(one=shift, one_percent=math.ceil(n / 100) * shift, totals_at_once=self.k - 1)
