"""Laplace noise on cell and label (LPCT eqs 5 and 6), with U~ = U + (4 / eps) Lap and V~ = V + (4 / eps) Lap.

A SIMULATION DEVICE, here to compare with the paper. Noise in floating point leaks: some outputs can be reached from one
input only (Mironov 2012), for one bit 4 / 8 / 15 / 45 % of them at epsilon 0.5 / 1 / 2 / 8. No protocol for real clients
can be made with it; `discrete_laplace` is the same mechanism on the integers, without the leak.

Noise variance of one number: 2 (4 / eps)^2 = 32 / eps^2 a holder; of a cell's margin A: 40 / eps^2. In real arithmetic
it is epsilon-LDP.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldptree.coins import Words, checked_epsilon
from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms.additive import Additive
from ldptree.mechanisms.description import PoisoningBound
from ldptree.mechanisms.mechanism import checked_thresholds

# epsilon is kept in billionths: a protocol has integers only
_UNIT = 10**9


@dataclass(frozen=True)
class Laplace(Additive):
    """Reports are float64 [n, L C].

    Attributes:
        billionths: epsilon, in billionths.

    Raises:
        ConfigError: it is not positive.
    """

    name: ClassVar[str] = "laplace"
    dtype: ClassVar[np.dtype[Any]] = np.dtype("<f8")
    is_simulation_device: ClassVar[bool] = True

    billionths: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.billionths < 1:
            raise ConfigError(f"laplace: epsilon is {self.billionths} billionths; it must be at least 1")

    @classmethod
    def for_budget(cls, epsilon: float, n_cells: int, n_classes: int) -> Self:
        """Noise of scale 4 / epsilon in every number."""
        return cls(n_cells, n_classes, int(checked_epsilon(epsilon) * _UNIT))

    @classmethod
    def from_thresholds(cls, n_cells: int, n_classes: int, thresholds: Mapping[str, int]) -> Self:
        """The mechanism with this epsilon."""
        return cls(n_cells, n_classes, *checked_thresholds(cls.name, thresholds, ("billionths",)))

    @property
    def thresholds(self) -> dict[str, int]:
        """Epsilon, in billionths."""
        return {"billionths": self.billionths}

    @property
    def epsilon(self) -> float:
        """Epsilon in real arithmetic; in floating point it spends more."""
        return self.billionths / _UNIT

    @property
    def min_entropy(self) -> float:
        """None is claimed of noise in floating point."""
        return 0.0

    @property
    def scale(self) -> float:
        """4 / epsilon."""
        return 4 / self.epsilon

    @property
    def noise_variance(self) -> float:
        """32 / epsilon^2."""
        return 2 * self.scale**2

    def randomize(self, values: NDArray[np.int64], words: Words) -> NDArray[np.float64]:
        """Return indicators and noise, float64 [n, L C]."""
        return self.noisy(values, words, np.float64)

    def draw_noise(self, n: int, words: Words) -> NDArray[np.float64]:
        """A random sign and an exponential, as everybody draws it."""
        drawn = words.block(n)
        uniform = ((drawn >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
        sign = 1.0 - 2.0 * (drawn & np.uint64(1)).astype(np.float64)
        noise: NDArray[np.float64] = -self.scale * sign * np.log(uniform)
        return noise

    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Every finite number can be sent."""
        return np.asarray(np.isfinite(reports).all(axis=1))

    def aggregate(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        """The sums of each number, float64 [L C]."""
        reports = np.asarray(reports)
        if reports.ndim != 2 or reports.shape[1] != self.raw_size or not self.is_valid(reports).all():
            raise DataError(
                f"laplace: reports are finite numbers [n, {self.raw_size}], found shape {reports.shape}"
            )
        sums: NDArray[np.float64] = reports.sum(axis=0, dtype=np.float64)
        return sums

    def sample_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.float64]:
        """The sum of n Laplace variables is scale (G1 - G2), both Gamma(n, 1)."""
        n, size = float(np.sum(counts)), self.raw_size
        noise = generator.gamma(n, size=size) - generator.gamma(n, size=size) if n else np.zeros(size)
        totals: NDArray[np.float64] = self.true_sums(counts) + self.scale * noise
        return totals

    def can_be_sum(self, raw: NDArray[Any], n: int) -> bool:
        """Any finite numbers can."""
        return bool(raw.shape == (self.raw_size,) and np.isfinite(raw).all())

    def poisoning_bound(self, n: int) -> PoisoningBound:
        """Return an infinite bound, as a number may be anything."""
        return PoisoningBound(one=math.inf, one_percent=math.inf, totals_at_once=self.k)
