"""Laplace noise on cell and numeric label, U~ = U + 2 / (rho eps) Lap and A~ = A + 1 / ((1 - rho) eps) Lap.

U is the one-hot of the cell and A = (t - 1/2) U, t = 0 .. 1 the label's place in its range (`number_label`). Two holders' U
differ by at most 2 in L1, their A by at most 1; with rho = 1/2 the noise of U has scale 4 / eps (as LPCT eq. 5), that of A
times the range 2 M has scale 4 M / eps (LPDT eq. 4's, in every cell). In real arithmetic it is epsilon-LDP.

A SIMULATION DEVICE, here to compare with: noise in floating point leaks (Mironov 2012). No protocol for real clients can be
made with it. Noise variance of a holder: 8 / (rho eps)^2 for a cell's count, 2 / ((1 - rho) eps)^2 for A.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.coins import Words, checked_epsilon
from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms.description import Form, MechanismDescription, PoisoningBound
from ldptree.mechanisms.mechanism import checked_thresholds
from ldptree.mechanisms.number_label import STEPS, NumberLabel, checked_rho

# a protocol has integers only
_UNIT = 10**9
_BLOCK = 2**17


@dataclass(frozen=True)
class NumberLaplace(NumberLabel):
    """Reports are float64 [n, 2 L] with U~, then A~.

    Attributes:
        billionths: epsilon, in billionths.
        share_billionths: rho, in billionths.

    Raises:
        ConfigError: one of them is not positive, or rho not below 1.
    """

    name: ClassVar[str] = "number_laplace"
    form: ClassVar[Form] = "numbers"
    is_simulation_device: ClassVar[bool] = True
    dtype: ClassVar[np.dtype[Any]] = np.dtype("<f8")

    billionths: int
    share_billionths: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.billionths < 1 or not 0 < self.share_billionths < _UNIT:
            raise ConfigError(
                f"{self.name}: epsilon is {self.billionths} billionths, rho {self.share_billionths}; epsilon must be at "
                "least 1, and rho between 0 and 1"
            )

    @classmethod
    def for_budget(
        cls, epsilon: float, n_cells: int, n_classes: int = 2, *, rho: float = 0.5, steps: int = STEPS
    ) -> Self:
        """A share rho of epsilon for U, the rest for A."""
        share = int(checked_rho(rho) * _UNIT)
        return cls(n_cells, n_classes, steps, int(checked_epsilon(epsilon) * _UNIT), share)

    def at_epsilon(self, epsilon: float) -> Self:
        """The same shares of epsilon for U and for A."""
        rho = self.share_billionths / _UNIT
        return type(self).for_budget(epsilon, self.n_cells, self.n_classes, rho=rho, steps=self.steps)

    @classmethod
    def from_thresholds(cls, n_cells: int, n_classes: int, thresholds: Mapping[str, int]) -> Self:
        """The mechanism with these integers."""
        names = ("billionths", "share_billionths", "steps")
        billionths, share, steps = checked_thresholds(cls.name, thresholds, names)
        return cls(n_cells, n_classes, steps, billionths, share)

    @property
    def thresholds(self) -> dict[str, int]:
        """Epsilon and rho in billionths, the steps of the label's range."""
        return {
            "billionths": self.billionths,
            "share_billionths": self.share_billionths,
            "steps": self.steps,
        }

    @property
    def epsilon(self) -> float:
        """Epsilon in real arithmetic; in floating point it spends more."""
        return self.billionths / _UNIT

    @property
    def min_entropy(self) -> float:
        """None is claimed of noise in floating point."""
        return 0.0

    @property
    def scales(self) -> tuple[float, float]:
        """Of the noise of one number of U and of A."""
        rho = self.share_billionths / _UNIT
        return 2 / (rho * self.epsilon), 1 / ((1 - rho) * self.epsilon)

    @property
    def raw_size(self) -> int:
        """2 L."""
        return 2 * self.n_cells

    @property
    def report_bytes(self) -> int:
        """Those of 2 L numbers."""
        return 8 * self.raw_size

    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Every finite number can be sent."""
        return np.asarray(np.isfinite(reports).all(axis=1))

    def randomize(self, values: NDArray[np.int64], words: Words) -> NDArray[np.float64]:
        """Return indicators and noise, float64 [n, 2 L]."""
        cells, steps = self.cells_and_parts(values)
        L = self.n_cells
        scale = np.repeat(self.scales, L)
        reports: NDArray[np.float64] = np.zeros((cells.size, 2 * L))
        inside = np.flatnonzero(cells < L)
        reports[inside, cells[inside]] = 1.0
        reports[inside, L + cells[inside]] = steps[inside] / self.steps - 0.5
        step = max(1, _BLOCK // (2 * L))
        for start in range(0, cells.size, step):
            block = reports[start : start + step]
            drawn = words.block(block.size).reshape(block.shape)
            uniform = ((drawn >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
            block -= scale * (1.0 - 2.0 * (drawn & np.uint64(1)).astype(np.float64)) * np.log(uniform)
        return reports

    def aggregate(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        """The sums of each number, float64 [2 L]."""
        reports = np.asarray(reports)
        if reports.ndim != 2 or reports.shape[1] != self.raw_size or not self.is_valid(reports).all():
            raise DataError(
                f"{self.name}: reports are finite numbers [n, {self.raw_size}], found shape {reports.shape}"
            )
        sums: NDArray[np.float64] = reports.sum(axis=0, dtype=np.float64)
        return sums

    def sample_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.float64]:
        """The sum of n Laplace variables is scale (G1 - G2), both Gamma(n, 1)."""
        counts = np.asarray(counts, dtype=np.int64)
        n, inside = float(counts.sum()), counts[:-1].reshape(self.n_cells, self.n_levels)
        truth = np.concatenate([inside.sum(axis=1), inside @ (np.arange(self.n_levels) / self.steps - 0.5)])
        noise = (
            generator.gamma(n, size=truth.size) - generator.gamma(n, size=truth.size)
            if n
            else np.zeros(truth.size)
        )
        totals: NDArray[np.float64] = truth + np.repeat(self.scales, self.n_cells) * noise
        return totals

    def can_be_sum(self, raw: NDArray[Any], n: int) -> bool:
        """Any finite numbers can."""
        return bool(raw.shape == (self.raw_size,) and np.isfinite(raw).all())

    def unbias(self, raw: NDArray[Any], n: int) -> NDArray[np.float64]:
        """For each cell the people at the low end and at the high end, and last those outside."""
        count, margin = np.asarray(raw, dtype=np.float64).reshape(2, self.n_cells)
        ends = np.stack([count / 2 - margin, count / 2 + margin], axis=1)
        return np.append(ends.ravel(), n - count.sum())

    def linear_variance(self, weights: ArrayLike, counts: ArrayLike) -> Any:
        """Return the exact variance, as the noise does not depend on who is where."""
        a = np.asarray(weights, dtype=np.float64)
        one_sum = a.ndim == 1
        a = a.reshape(self.k, -1)
        low, high = a[:-1].reshape(self.n_cells, 2, -1).transpose(1, 0, 2)
        of_count, of_margin = (2 * scale**2 for scale in self.scales)
        each = of_count * ((low + high) / 2 - a[-1]) ** 2 + of_margin * (high - low) ** 2
        variance = float(np.sum(counts)) * each.sum(axis=0)
        return float(variance[0]) if one_sum else variance

    def cell_variance(
        self,
        class_weights: ArrayLike,
        n_cells: ArrayLike,
        inside: NDArray[np.float64],
        counts: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Exact, the same for every cell."""
        low, high = np.asarray(class_weights, dtype=np.float64)
        of_count, of_margin = (2 * scale**2 for scale in self.scales)
        of_cell = of_count * ((low + high) / 2) ** 2 + of_margin * (high - low) ** 2
        variance: NDArray[np.float64] = float(counts.sum()) * of_cell * np.asarray(n_cells, dtype=np.float64)
        return variance

    def describe(self) -> MechanismDescription:
        """Facts of the mechanism and of one report."""
        noise_sd, label_noise_sd = (math.sqrt(2) * scale for scale in self.scales)
        return self._description(self.raw_size, noise_sd=noise_sd, label_noise_sd=label_noise_sd)

    def poisoning_bound(self, n: int) -> PoisoningBound:
        """Return an infinite bound, as a number may be anything."""
        return PoisoningBound(one=math.inf, one_percent=math.inf, totals_at_once=self.k)
