"""LPDT's report (eqs 3 and 4), by randomised response on the cell's bits, with the label apart in Laplace noise.

Each bit of the one-hot of the cell (L of them, and one for no cell) is kept with probability e^(rho eps / 2) / (1 + e^(rho
eps / 2)): two holders differ in at most two bits, so the bits are rho eps-LDP. The label gets Laplace noise of scale
(high - low) / ((1 - rho) eps), 2 M / ((1 - rho) eps) in the paper's range [-M, M]; here on the integers, in steps of the
range (`number_label`), drawn exactly (`coins.draw_laplace`), so that it does not leak through floating point. rho = 1/2 is the
paper's eq. 3, another the split of its appendix D.1, which prints one probability twice: it is meant as here.

With U^_j = (bit_j - q) / (1 - 2 q) and T^ the noisy label over S, N~_j1 = sum of T^ U^_j (eq. 5's numerator) and
N~_j0 = sum of U^_j less that. T^ is shared by all cells, so its sums have no closed form: `sample_totals` draws reports.
Raw sums: of bits (L + 1), of bits times noisy labels (L + 1), of noisy labels (1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.coins import (
    RATE_UNIT,
    SMALLEST_RATE,
    WORD,
    Words,
    checked_epsilon,
    draw_laplace,
    furthest_laplace,
    laplace_min_entropy,
    laplace_variance,
    rounded_up,
)
from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms.description import Form, MechanismDescription, PoisoningBound
from ldptree.mechanisms.mechanism import checked_thresholds
from ldptree.mechanisms.number_label import STEPS, NumberLabel, checked_rho
from ldptree.mechanisms.oracles.unary import Sue

# bits that are unpacked or drawn at once
_BLOCK = 2**22


@dataclass(frozen=True)
class NumberResponse(NumberLabel):
    """Reports are uint8 [n, 4 + ceil((L + 1) / 8)] with the noisy label in steps as int32, then the bits.

    Attributes:
        bits: symmetric coins over L + 1 values, the last one for "no cell".
        rate: of the label's noise, a step, times 2^32.

    Raises:
        ConfigError: the bits are not L + 1, or the rate is too small or too large.
    """

    name: ClassVar[str] = "number_response"
    form: ClassVar[Form] = "bits and number"

    bits: Sue
    rate: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bits.k != self.n_cells + 1:
            raise ConfigError(f"{self.name}: coins for {self.bits.k} bits, {self.n_cells + 1} are needed")
        if not SMALLEST_RATE <= self.rate <= 2**40:
            raise ConfigError(
                f"{self.name}: the rate must be in {SMALLEST_RATE} .. 2^40, found {self.rate} "
                "(epsilon too small or too large?)"
            )

    @classmethod
    def for_budget(
        cls, epsilon: float, n_cells: int, n_classes: int = 2, *, rho: float = 0.5, steps: int = STEPS
    ) -> Self:
        """A share rho of epsilon for the bits, the rest for the label; fewer steps where epsilon is so small that as many would
        not fit into 32 bits with their noise (below 1e-5 at 256 steps).
        """
        checked_rho(rho)
        whole = Fraction(checked_epsilon(epsilon))
        bits = Sue.for_values(float(whole * Fraction(rho)), n_cells + 1)
        left = whole - Fraction(bits.epsilon)
        most = max(1, int(left * RATE_UNIT / SMALLEST_RATE))
        steps = min(steps, most) if steps > 0 else steps
        return cls(n_cells, n_classes, steps, bits, int(left * RATE_UNIT / max(steps, 1)))

    def at_epsilon(self, epsilon: float) -> Self:
        """The same shares of epsilon for the bits and for the label."""
        rho = self.bits.epsilon / self.epsilon
        return type(self).for_budget(epsilon, self.n_cells, self.n_classes, rho=rho, steps=self.steps)

    @classmethod
    def from_thresholds(cls, n_cells: int, n_classes: int, thresholds: Mapping[str, int]) -> Self:
        """The mechanism with these integers."""
        other, rate, steps = checked_thresholds(cls.name, thresholds, ("bit_other", "rate", "steps"))
        return cls(n_cells, n_classes, steps, Sue.of_values(n_cells + 1, own=WORD - other, other=other), rate)

    @property
    def thresholds(self) -> dict[str, int]:
        """The coin of a bit that is not the holder's own, the rate of the label's noise, the steps of its range."""
        return {"bit_other": self.bits.other, "rate": self.rate, "steps": self.steps}

    @cached_property
    def epsilon(self) -> float:
        """Of the bits, and rate times steps of the label; rounded up."""
        return rounded_up(Fraction(self.bits.epsilon) + Fraction(self.steps * self.rate, RATE_UNIT))

    @property
    def bound(self) -> int:
        """A noisy label lies in -bound .. steps + bound."""
        return furthest_laplace(self.rate)

    @property
    def label_variance(self) -> float:
        """Noise variance of T^, in ranges squared."""
        return laplace_variance(self.rate) / self.steps**2

    @property
    def min_entropy(self) -> float:
        """Of the bits and of the label's noise."""
        return self.bits.min_entropy + laplace_min_entropy(self.rate)

    @property
    def report_bytes(self) -> int:
        """A number and L + 1 bits."""
        return 4 + self.bits.report_bytes

    @property
    def raw_size(self) -> int:
        """2 (L + 1) + 1."""
        return 2 * (self.n_cells + 1) + 1

    def randomize(self, values: NDArray[np.int64], words: Words) -> NDArray[np.uint8]:
        """Return bits and label, with separate coins, uint8 [n, report_bytes]."""
        cells, steps = self.cells_and_parts(values)
        reports = np.empty((values.size, self.report_bytes), dtype=np.uint8)
        step = max(1, _BLOCK // self.report_bytes)
        for start in range(0, values.size, step):
            block = slice(start, start + step)
            noisy = steps[block] + draw_laplace(self.rate, steps[block].size, words)
            noisy = np.clip(noisy, -self.bound, self.steps + self.bound)
            reports[block, :4] = noisy.astype("<i4")[:, None].view(np.uint8)
            reports[block, 4:] = self.bits.randomize(cells[block], words)
        return reports

    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """A label within the bound, and no bit past the last."""
        labels = _labels(reports)
        within = (labels >= -self.bound) & (labels <= self.steps + self.bound)
        return np.asarray(within & self.bits.is_valid(np.ascontiguousarray(reports[:, 4:])))

    def aggregate(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """Sums of bits, of bits times labels in steps, and of labels, int64 [raw_size]."""
        reports = self.unpack(np.asarray(reports))
        if not self.is_valid(reports).all():
            raise DataError(
                f"{self.name}: a label is outside {-self.bound} .. {self.steps + self.bound}, or a bit is set past the "
                "last; it was made under another protocol"
            )
        sums = self.no_reports()
        step = max(1, _BLOCK // (self.n_cells + 1))
        for start in range(0, len(reports), step):
            block = reports[start : start + step]
            bits = np.unpackbits(block[:, 4:], axis=1, count=self.n_cells + 1, bitorder="little")
            sums += self._sums(bits.astype(bool), _labels(block).astype(np.int64))
        return sums

    def _sums(self, bits: NDArray[np.bool_], labels: NDArray[np.int64]) -> NDArray[np.int64]:
        # In double precision sums of whole numbers are exact below 2^53: 2^22 labels below 2^31.
        products = np.rint(labels.astype(np.float64) @ bits.astype(np.float64)).astype(np.int64)
        return np.concatenate([bits.sum(axis=0, dtype=np.int64), products, [labels.sum()]])

    def sample_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Reports drawn in blocks with numpy's samplers, and summed."""
        counts = np.asarray(counts, dtype=np.int64)
        values = np.repeat(np.arange(self.n_values), counts)
        success, L = -math.expm1(-self.rate / RATE_UNIT), self.n_cells
        sums = self.no_reports()
        step = max(1, _BLOCK // (L + 1))
        for start in range(0, values.size, step):
            cells, steps = self.cells_and_parts(values[start : start + step])
            noise = generator.geometric(success, cells.size) - generator.geometric(success, cells.size)
            bits = generator.random((cells.size, L + 1)) < self.bits.q
            bits[np.arange(cells.size), cells] = generator.random(cells.size) < self.bits.p
            labels = np.clip(steps + noise, -self.bound, self.steps + self.bound)
            sums += self._sums(bits, labels)
        return sums

    def can_be_sum(self, raw: NDArray[Any], n: int) -> bool:
        """No bit more often than n, no sum further out than n labels."""
        if raw.shape != (self.raw_size,) or not np.issubdtype(raw.dtype, np.integer):
            return False
        bits, sums = raw[: self.n_cells + 1], raw[self.n_cells + 1 :]
        is_counted = bits.min() >= 0 and bits.max() <= n
        return bool(
            is_counted and sums.min() >= -n * self.bound and sums.max() <= n * (self.steps + self.bound)
        )

    def unbias(self, raw: NDArray[Any], n: int) -> NDArray[np.float64]:
        """For each cell the people at the low end and at the high end, and last those outside."""
        sums = np.asarray(raw, dtype=np.float64)
        bits, products = sums[: self.n_cells + 1], sums[self.n_cells + 1 : -1] / self.steps
        count = (bits - self.bits.q * n) / self.bits.gap
        high = (products - self.bits.q * sums[-1] / self.steps) / self.bits.gap
        return np.append(np.stack([count - high, high], axis=1)[:-1].ravel(), count[-1])

    def linear_variance(self, weights: ArrayLike, counts: ArrayLike) -> Any:
        """Exact where all labels lie at the ends of the range, as counts [k] say; otherwise an upper bound, by less than
        what the square of a label in [0, 1] falls short of the label.
        """
        a = np.asarray(weights, dtype=np.float64)
        one_sum = a.ndim == 1
        a = a.reshape(self.k, -1)
        n = np.asarray(counts, dtype=np.float64)
        inside = n[:-1].reshape(self.n_cells, 2)
        low, high = a[:-1].reshape(self.n_cells, 2, -1).transpose(1, 0, 2)
        slope = high - low
        # holders outside send the middle of the range
        at_low, at_high = inside.sum(axis=0) + n[-1] / 2
        squares = at_low * low**2 + at_high * high**2 + n.sum() * self.label_variance * slope**2
        variance = self._bit_variance * (squares.sum(axis=0) + n.sum() * a[-1] ** 2)
        variance = variance + self.label_variance * np.einsum("jc,jm->m", inside, slope**2)
        return float(variance[0]) if one_sum else variance

    def cell_variance(
        self,
        class_weights: ArrayLike,
        n_cells: ArrayLike,
        inside: NDArray[np.float64],
        counts: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """As `linear_variance`, with the same weights in every cell of a group; T^ is shared by the cells of a group."""
        low, high = np.asarray(class_weights, dtype=np.float64)
        n, slope = float(counts.sum()), high - low
        at_low, at_high = counts[:-1].reshape(self.n_cells, 2).sum(axis=0) + counts[-1] / 2
        of_cell = at_low * low**2 + at_high * high**2 + n * self.label_variance * slope**2
        own: NDArray[np.float64] = self.label_variance * slope**2 * inside.sum(axis=1)
        variance: NDArray[np.float64] = (
            self._bit_variance * of_cell * np.asarray(n_cells, dtype=np.float64) + own
        )
        return variance

    @property
    def _bit_variance(self) -> float:
        """Of U^_j, whatever the bit."""
        return self.bits.q * (1 - self.bits.q) / self.bits.gap**2

    def describe(self) -> MechanismDescription:
        """Facts of the mechanism and of one report."""
        label_noise_sd = math.sqrt(self.label_variance)
        return self._description(self.bits.k, p=self.bits.p, q=self.bits.q, label_noise_sd=label_noise_sd)

    def poisoning_bound(self, n: int) -> PoisoningBound:
        """Compare a label at its bound and all bits with the other bound and the same bits, or no bit."""
        beyond = self.bound / self.steps
        bit, no_bit = (1 - self.bits.q) / self.bits.gap, self.bits.q / self.bits.gap
        shift = (1 + beyond) * bit + max(beyond * bit, (1 + beyond) * no_bit)
        return PoisoningBound(one=shift, one_percent=math.ceil(n / 100) * shift, totals_at_once=self.k - 1)


def _labels(reports: NDArray[np.uint8]) -> NDArray[np.int32]:
    return np.ascontiguousarray(reports[:, :4]).view("<i4")[:, 0]
