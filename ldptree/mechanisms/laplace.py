"""Laplace noise on cell and label (LPCT eqs 5 and 6), with U~ = U + (4 / eps) Lap and V~ = V + (4 / eps) Lap.

A numeric label sends A = (t - 1/2) U in place of V, t = 0 .. 1 its place in its range: U~ = U + 2 / (rho eps) Lap and A~ = A +
1 / ((1 - rho) eps) Lap. Two holders' U differ by at most 2 in L1, their A by at most 1; with rho = 1/2 the noise of U has scale
4 / eps, that of A times the range 2 M has scale 4 M / eps (LPDT eq. 4's, in every cell).

A SIMULATION DEVICE, here to compare with the paper. Noise in floating point leaks: some outputs can be reached from one
input only (Mironov 2012), for one bit 4 / 8 / 15 / 45 % of them at epsilon 0.5 / 1 / 2 / 8. No protocol for real clients
can be made with it; `discrete_laplace` is the same mechanism on the integers, without the leak.

Noise variance of one number: 2 (4 / eps)^2 = 32 / eps^2 a holder; of a cell's margin: 40 / eps^2. Of a number: 8 / (rho eps)^2
for a cell's count, 2 / ((1 - rho) eps)^2 for A. In real arithmetic both are epsilon-LDP.
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
from ldptree.mechanisms.mechanism import (
    STEPS,
    MechanismDescription,
    NumberReport,
    PoisoningBound,
    checked_rho,
    checked_thresholds,
)

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
            raise ConfigError(f"{self.name}: epsilon is {self.billionths} billionths; it must be at least 1")

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
    def scales(self) -> NDArray[np.float64]:
        """4 / epsilon for each number of a cell, float64 [C]."""
        return np.full(self.n_classes, 4 / self.epsilon)

    @property
    def noise_variances(self) -> NDArray[np.float64]:
        """Twice the square of each scale."""
        variances: NDArray[np.float64] = 2 * self.scales**2
        return variances

    def randomize(self, values: NDArray[np.int64], words: Words) -> NDArray[np.float64]:
        """Return indicators and noise, float64 [n, L C]."""
        return self.noisy(values, words, np.float64)

    def draw_noise(self, n: int, words: Words) -> NDArray[np.float64]:
        """A random sign and an exponential, as everybody draws it."""
        drawn = words.block(n * self.raw_size).reshape(n, -1)
        uniform = ((drawn >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
        sign = 1.0 - 2.0 * (drawn & np.uint64(1)).astype(np.float64)
        noise: NDArray[np.float64] = -np.repeat(self.scales, self.n_cells) * sign * np.log(uniform)
        return noise

    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Every finite number can be sent."""
        return np.asarray(np.isfinite(reports).all(axis=1))

    def aggregate(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        """The sums of each number, float64 [L C]."""
        reports = np.asarray(reports)
        if reports.ndim != 2 or reports.shape[1] != self.raw_size or not self.is_valid(reports).all():
            raise DataError(
                f"{self.name}: reports are finite numbers [n, {self.raw_size}], found shape {reports.shape}"
            )
        sums: NDArray[np.float64] = reports.sum(axis=0, dtype=np.float64)
        return sums

    def sample_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.float64]:
        """The sum of n Laplace variables is scale (G1 - G2), both Gamma(n, 1)."""
        n, size = float(np.sum(counts)), self.raw_size
        noise = generator.gamma(n, size=size) - generator.gamma(n, size=size) if n else np.zeros(size)
        totals: NDArray[np.float64] = self.true_sums(counts) + np.repeat(self.scales, self.n_cells) * noise
        return totals

    def can_be_sum(self, raw: NDArray[Any], n: int) -> bool:
        """Any finite numbers can, of anybody."""
        return bool(raw.shape == (self.raw_size,) and np.isfinite(raw).all() and (n > 0 or not raw.any()))

    def poisoning_bound(self, n: int) -> PoisoningBound:
        """Return an infinite bound, as a number may be anything."""
        return PoisoningBound(one=math.inf, one_percent=math.inf, totals_at_once=self.k)


@dataclass(frozen=True)
class NumberLaplace(NumberReport, Laplace):
    """Reports are float64 [n, 2 L] with U~, then A~.

    Attributes:
        share_billionths: rho, in billionths.

    Raises:
        ConfigError: it is not between 0 and 1.
    """

    name: ClassVar[str] = "number_laplace"

    share_billionths: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.share_billionths < _UNIT:
            raise ConfigError(
                f"{self.name}: rho is {self.share_billionths} billionths; it must be between 0 and 1"
            )

    @classmethod
    def for_budget(
        cls, epsilon: float, n_cells: int, n_classes: int = 2, *, rho: float = 0.5, steps: int = STEPS
    ) -> Self:
        """A share rho of epsilon for U, the rest for A."""
        billionths, share = int(checked_epsilon(epsilon) * _UNIT), int(checked_rho(rho) * _UNIT)
        return cls(n_cells, n_classes, billionths, steps, share)

    def at_epsilon(self, epsilon: float) -> Self:
        """The same shares of epsilon for U and for A."""
        rho = self.share_billionths / _UNIT
        return type(self).for_budget(epsilon, self.n_cells, self.n_classes, rho=rho, steps=self.steps)

    @classmethod
    def from_thresholds(cls, n_cells: int, n_classes: int, thresholds: Mapping[str, int]) -> Self:
        """The mechanism with these integers."""
        names = ("billionths", "steps", "share_billionths")
        return cls(n_cells, n_classes, *checked_thresholds(cls.name, thresholds, names))

    @property
    def thresholds(self) -> dict[str, int]:
        """Epsilon and rho in billionths, the steps of the label's range."""
        share = {"share_billionths": self.share_billionths, "steps": self.steps}
        return super().thresholds | share

    @property
    def scales(self) -> NDArray[np.float64]:
        """Of the noise of one number of U and of A, float64 [2]."""
        rho = self.share_billionths / _UNIT
        return np.array([2 / (rho * self.epsilon), 1 / ((1 - rho) * self.epsilon)])

    def indicators(self, values: NDArray[np.int64]) -> NDArray[np.float64]:
        """U and A of each holder, float64 [n, 2 L]."""
        cells, steps = self.cells_and_parts(values)
        truth = np.zeros((cells.size, self.raw_size))
        inside = np.flatnonzero(cells < self.n_cells)
        truth[inside, cells[inside]] = 1.0
        truth[inside, self.n_cells + cells[inside]] = steps[inside] / self.steps - 0.5
        return truth

    def true_sums(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Sums of U and A of holders with these counts, float64 [2 L]."""
        inside = np.asarray(counts, dtype=np.int64)[:-1].reshape(self.n_cells, self.n_levels)
        return np.concatenate([inside.sum(axis=1), inside @ (np.arange(self.n_levels) / self.steps - 0.5)])

    def _counts_by_class(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """The people at the low end and at the high end of each cell."""
        count, margin = sums
        return np.stack([count / 2 - margin, count / 2 + margin], axis=1)

    def _weights_of_numbers(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        low, high = weights[:, 0], weights[:, 1]
        return np.stack([(low + high) / 2, high - low], axis=1)

    def describe(self) -> MechanismDescription:
        """Facts of the mechanism and of one report."""
        noise_sd, label_noise_sd = (math.sqrt(variance) for variance in self.noise_variances)
        return self._description(self.raw_size, noise_sd=noise_sd, label_noise_sd=label_noise_sd)
