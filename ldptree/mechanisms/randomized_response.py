"""Randomised response on the cell's bits, and the label apart (LPDT eqs 3 and 4, HistOfTree eqs 5 and 8).

Each bit of the one-hot of the cell (L of them, and one for no cell) is kept with probability e^(rho eps / 2) / (1 + e^(rho
eps / 2)): two holders differ in at most two bits, so the bits are rho eps-LDP, and the label takes the rest. rho is 1/2
(eq. 3), or for a number another share, as in LPDT's appendix D.1, which prints one probability twice: it is meant as here.

One of C classes is sent by generalised randomised response, which is better than the papers' Laplace noise. A holder who is
outside has the bit of no cell, and a label drawn at random. A number gets Laplace noise of scale (high - low) / ((1 - rho)
eps), 2 M / ((1 - rho) eps) in the paper's range [-M, M]; here on the integers, in steps of the range, drawn exactly
(`coins.draw_laplace`), so that it does not leak through floating point; outside is the middle of the range.

With U^_j = (bit_j - q) / (p - q) and Y^_c = (1{label = c} - q_y) / (p_y - q_y), or of a noisy number T^ over S the two ends Y^_1
= T^ and Y^_0 = 1 - T^: independent given the holder, N~_{j,c} = sum over holders of U^_j Y^_c (eq. 5's numerator), and the
Y^_c of a holder add up to 1. The exact variance is in `linear_variance`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
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
    check_rate,
    checked_epsilon,
    draw_laplace,
    furthest_laplace,
    laplace_min_entropy,
    laplace_variance,
    rounded_up,
)
from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms.mechanism import (
    STEPS,
    Form,
    Mechanism,
    MechanismDescription,
    NumberReport,
    PoisoningBound,
    checked_rho,
    checked_thresholds,
)
from ldptree.mechanisms.oracles.grr import Grr
from ldptree.mechanisms.oracles.unary import Sue

# bits that are unpacked or drawn at once
_BLOCK = 2**22


@dataclass(frozen=True)
class BitsAndLabel(Mechanism):
    """Reports are uint8 [n, 4 + ceil((L + 1) / 8)] with the label in four bytes, then the bits.

    Attributes:
        bits: symmetric coins over L + 1 values, the last one for "no cell", whose bit is not looked at.

    Raises:
        ConfigError: the bits are not L + 1.
    """

    bits: Sue

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bits.k != self.n_cells + 1:
            raise ConfigError(f"{self.name}: coins for {self.bits.k} bits, {self.n_cells + 1} are needed")

    @abstractmethod
    def _cells_and_labels(self, values: NDArray[np.int64], words: Words) -> tuple[NDArray[Any], NDArray[Any]]:
        """Cell (L for "outside") and true label of each holder, each int64 [n]."""

    @abstractmethod
    def _sent_labels(self, labels: NDArray[np.int64], words: Words) -> NDArray[np.uint8]:
        """Labels as they are sent, uint8 [n, 4]."""

    @abstractmethod
    def _valid_labels(self, reports: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Return which reports have a label that can be sent, bool [n]."""

    @abstractmethod
    def _squares(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """E (sum_c a_jc Y^_c)^2 for a holder with each label, [L, C, m], and for one outside, [L, m]."""

    @property
    def report_bytes(self) -> int:
        """A label and L + 1 bits."""
        return 4 + self.bits.report_bytes

    def randomize(self, values: NDArray[np.int64], words: Words) -> NDArray[np.uint8]:
        """Return bits and label, with separate coins, uint8 [n, report_bytes]."""
        cells, labels = self._cells_and_labels(self.checked(values), words)
        reports = np.empty((cells.size, self.report_bytes), dtype=np.uint8)
        step = max(1, _BLOCK // self.report_bytes)
        for start in range(0, cells.size, step):
            block = slice(start, start + step)
            reports[block, :4] = self._sent_labels(labels[block], words)
            reports[block, 4:] = self.bits.randomize(cells[block], words)
        return reports

    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """A label that can be sent, and no bit past the last."""
        return self._valid_labels(reports) & self.bits.is_valid(np.ascontiguousarray(reports[:, 4:]))

    def linear_variance(self, weights: ArrayLike, counts: ArrayLike) -> Any:
        """Exact, covariances through the shared label included. Of a number: exact where all labels lie at the ends of the
        range, as counts [k] say; otherwise an upper bound, by less than what the square of a label in [0, 1] falls short of it.
        """
        a = np.asarray(weights, dtype=np.float64)
        one_sum = a.ndim == 1
        a = a.reshape(self.k, -1)
        n = np.asarray(counts, dtype=np.float64)
        inside = n[:-1].reshape(self.n_cells, self.n_classes)
        weights_of = a[:-1].reshape(self.n_cells, self.n_classes, -1)
        squares, squares_outside = self._squares(weights_of)
        # sum_c Y^_c is 1, so "no cell" carries its weight whatever the label
        labels = inside.sum(axis=0)
        others = np.einsum("c,jcm->m", labels, squares) + n[-1] * squares_outside.sum(axis=0)
        others = others + n.sum() * a[-1] ** 2
        own = np.einsum("jc,jcm->m", inside, squares - weights_of**2)
        variance = self._bit_variance * others + own
        return float(variance[0]) if one_sum else variance

    def cell_variance(
        self,
        class_weights: ArrayLike,
        n_cells: ArrayLike,
        inside: NDArray[np.float64],
        counts: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """As `linear_variance`, with the same weights in every cell of a group, whose cells share the label."""
        a = np.asarray(class_weights, dtype=np.float64)
        squares, squares_outside = (s[0, ..., 0] for s in self._squares(a[None, :, None]))
        labels = counts[:-1].reshape(self.n_cells, self.n_classes).sum(axis=0)
        others = float(labels @ squares + counts[-1] * squares_outside)
        own: NDArray[np.float64] = inside @ (squares - a**2)
        return self._bit_variance * others * np.asarray(n_cells, dtype=np.float64) + own

    @property
    def _bit_variance(self) -> float:
        """Of U^_j, whatever the bit."""
        return self.bits.q * (1 - self.bits.q) / self.bits.gap**2


@dataclass(frozen=True)
class RandomizedResponse(BitsAndLabel):
    """The label is one of C classes, as uint32.

    Raw sums: how many reports have bit j and label c ((L + 1) C of them), then how many have label c (C).

    Attributes:
        label: generalised randomised response over the C classes.

    Raises:
        ConfigError: they are not C.
    """

    name: ClassVar[str] = "randomized_response"
    form: ClassVar[Form] = "bits and label"

    label: Grr

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.label.k != self.n_classes:
            raise ConfigError(f"{self.name}: coins for {self.label.k} labels, {self.n_classes} are needed")

    @classmethod
    def for_budget(cls, epsilon: float, n_cells: int, n_classes: int) -> Self:
        """Half of epsilon for the bits, half for the label."""
        half = checked_epsilon(epsilon) / 2
        return cls(n_cells, n_classes, Sue.for_values(half, n_cells + 1), Grr.for_values(half, n_classes))

    @classmethod
    def from_thresholds(cls, n_cells: int, n_classes: int, thresholds: Mapping[str, int]) -> Self:
        """The mechanism with these integers."""
        other, lie = checked_thresholds(cls.name, thresholds, ("bit_other", "label_lie"))
        bits = Sue.of_values(n_cells + 1, own=WORD - other, other=other)
        return cls(n_cells, n_classes, bits, Grr.of_values(n_classes, lie=lie))

    @property
    def thresholds(self) -> dict[str, int]:
        """The coins of a bit that is not the holder's own, and of a label that lies."""
        return {"bit_other": self.bits.other, "label_lie": self.label.lie}

    @cached_property
    def epsilon(self) -> float:
        """Both halves together, rounded up."""
        return rounded_up(Fraction(self.bits.epsilon) + Fraction(self.label.epsilon))

    @property
    def min_entropy(self) -> float:
        """Of the bits and of the label."""
        return self.bits.min_entropy + self.label.min_entropy

    @property
    def raw_size(self) -> int:
        """(L + 1) C + C."""
        return (self.n_cells + 2) * self.n_classes

    def _cells_and_labels(self, values: NDArray[np.int64], words: Words) -> tuple[NDArray[Any], NDArray[Any]]:
        cells, labels = np.divmod(values, self.n_classes)
        outside = np.flatnonzero(cells == self.n_cells)
        labels[outside] = words.below(self.n_classes, outside.size)
        return cells, labels

    def _sent_labels(self, labels: NDArray[np.int64], words: Words) -> NDArray[np.uint8]:
        return self.label.pack(self.label.randomize(labels, words))

    def _valid_labels(self, reports: NDArray[np.uint8]) -> NDArray[np.bool_]:
        return self.label.is_valid(self._labels(reports))

    def _labels(self, reports: NDArray[np.uint8]) -> NDArray[Any]:
        return self.label.unpack(np.ascontiguousarray(reports[:, :4]))

    @property
    def law_size(self) -> int:
        """Bits and labels."""
        return self.bits.law_size * self.label.law_size

    def law(self, value: int) -> dict[bytes, Fraction]:
        """Return P(packed report | value) for every report, from the integers in use, for few cells."""
        cell, label = divmod(value, self.n_classes)
        labels = range(self.n_classes) if cell == self.n_cells else (label,)
        sent = [self.label.law(true_label) for true_label in labels]
        of_label = {output: sum(law[output] for law in sent) / len(sent) for output in sent[0]}
        of_bits = self.bits.law(cell)
        return {a + b: Fraction(p * q) for a, p in of_label.items() for b, q in of_bits.items()}

    def aggregate(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """Count the reports that have bit j and label c, int64 [(L + 1) C], then those that have label c, [C]."""
        reports = self.unpack(np.asarray(reports))
        labels = self._labels(reports)
        with_label = self.label.aggregate(labels)
        by_label = [self.bits.aggregate(reports[labels == c, 4:]) for c in range(self.n_classes)]
        return np.concatenate([np.stack(by_label, axis=1).ravel(), with_label])

    def sample_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Labels flip by a multinomial a value, then the bits of those with one label are independent binomials."""
        counts = np.asarray(counts, dtype=np.int64)
        law = self.label.q + self.label.gap * np.eye(self.n_classes)
        inside = generator.multinomial(counts[:-1].reshape(self.n_cells, self.n_classes), law).sum(axis=1)
        outside = generator.multinomial(counts[-1], np.full(self.n_classes, 1 / self.n_classes))
        own = np.vstack([inside, outside])
        with_label = own.sum(axis=0)
        bits = generator.binomial(own, self.bits.p) + generator.binomial(with_label - own, self.bits.q)
        return np.concatenate([bits.ravel(), with_label])

    def can_be_sum(self, raw: NDArray[Any], n: int) -> bool:
        """Labels of n reports, and no bit more often than the label it came with."""
        if raw.shape != (self.raw_size,):
            return False
        bits, with_label = self._parts(raw)
        is_given = self.label.can_be_sum(with_label, n) and bits.min() >= 0
        return bool(is_given and (bits <= with_label).all())

    def _parts(self, raw: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Bits [L + 1, C] and labels [C]."""
        return raw[: -self.n_classes].reshape(self.n_cells + 1, self.n_classes), raw[-self.n_classes :]

    def unbias(self, raw: NDArray[Any], n: int) -> NDArray[np.float64]:
        """The sums of U^_j Y^_c, and last of U^ of "no cell"."""
        bits, with_label = self._parts(np.asarray(raw, dtype=np.float64))
        supported = bits - self.bits.q * with_label  # sum of bit - q over reports with label c
        products = (supported - self.label.q * supported.sum(axis=1, keepdims=True)) / self.label.gap
        return np.append(products[:-1].ravel(), supported[-1].sum()) / self.bits.gap

    def _squares(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        sent = (weights - self.label.q * weights.sum(axis=1, keepdims=True)) / self.label.gap
        total = (sent**2).sum(axis=1)
        return self.label.q * total[:, None] + self.label.gap * sent**2, total / self.n_classes

    def describe(self) -> MechanismDescription:
        """Facts of the mechanism and of one report."""
        return self._description(self.bits.k, p=self.bits.p, q=self.bits.q, label_p=self.label.p)

    def poisoning_bound(self, n: int) -> PoisoningBound:
        """From the largest to the smallest U^_j Y^_c; all bits can be set at once."""
        q, q_label = self.bits.q, self.label.q
        low = max((1 - q) * q_label, q * (1 - q_label))
        shift = ((1 - q) * (1 - q_label) + low) / (self.bits.gap * self.label.gap)
        return PoisoningBound(one=shift, one_percent=math.ceil(n / 100) * shift, totals_at_once=self.k)


@dataclass(frozen=True)
class NumberResponse(NumberReport, BitsAndLabel):
    """The label is a number in steps of its range, with noise, as int32.

    T^ is shared by all cells, so its sums have no closed form: `sample_totals` draws reports.
    Raw sums: of bits (L + 1), of bits times noisy labels (L + 1), of noisy labels (1).

    Attributes:
        rate: of the label's noise, a step, times 2^32.

    Raises:
        ConfigError: the rate is too small or too large.
    """

    name: ClassVar[str] = "number_response"
    form: ClassVar[Form] = "bits and number"

    rate: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rate(self.name, self.rate)

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
        return cls(n_cells, n_classes, bits, steps, int(left * RATE_UNIT / max(steps, 1)))

    def at_epsilon(self, epsilon: float) -> Self:
        """The same shares of epsilon for the bits and for the label."""
        rho = self.bits.epsilon / self.epsilon
        return type(self).for_budget(epsilon, self.n_cells, self.n_classes, rho=rho, steps=self.steps)

    @classmethod
    def from_thresholds(cls, n_cells: int, n_classes: int, thresholds: Mapping[str, int]) -> Self:
        """The mechanism with these integers."""
        other, rate, steps = checked_thresholds(cls.name, thresholds, ("bit_other", "rate", "steps"))
        return cls(n_cells, n_classes, Sue.of_values(n_cells + 1, own=WORD - other, other=other), steps, rate)

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
    def raw_size(self) -> int:
        """2 (L + 1) + 1."""
        return 2 * (self.n_cells + 1) + 1

    def _cells_and_labels(self, values: NDArray[np.int64], words: Words) -> tuple[NDArray[Any], NDArray[Any]]:
        return self.cells_and_parts(values)

    def _sent_labels(self, labels: NDArray[np.int64], words: Words) -> NDArray[np.uint8]:
        noisy = labels + draw_laplace(self.rate, labels.size, words)
        noisy = np.clip(noisy, -self.bound, self.steps + self.bound)
        sent: NDArray[np.uint8] = noisy.astype("<i4")[:, None].view(np.uint8)
        return sent

    def _valid_labels(self, reports: NDArray[np.uint8]) -> NDArray[np.bool_]:
        labels = _numbers(reports)
        return np.asarray((labels >= -self.bound) & (labels <= self.steps + self.bound))

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
            sums += self._sums(bits.astype(bool), _numbers(block).astype(np.int64))
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
        """Bits of n reports, and for each bit a sum of labels that those with it can have, and one of those without it."""
        n_bits = self.n_cells + 1
        if raw.shape != (self.raw_size,) or not self.bits.can_be_sum(raw[:n_bits], n):
            return False
        exact = raw.astype(object)  # a stated n may be so large that products of it do not fit into 64 bits
        bits, with_bit, labels = exact[:n_bits], exact[n_bits:-1], exact[-1]
        return all(
            (-m * self.bound <= sums).all() and (sums <= m * (self.steps + self.bound)).all()
            for m, sums in ((bits, with_bit), (n - bits, labels - with_bit))
        )

    def unbias(self, raw: NDArray[Any], n: int) -> NDArray[np.float64]:
        """For each cell the people at the low end and at the high end, and last those outside."""
        sums = np.asarray(raw, dtype=np.float64)
        bits, products = sums[: self.n_cells + 1], sums[self.n_cells + 1 : -1] / self.steps
        count = (bits - self.bits.q * n) / self.bits.gap
        high = (products - self.bits.q * sums[-1] / self.steps) / self.bits.gap
        return np.append(np.stack([count - high, high], axis=1)[:-1].ravel(), count[-1])

    def _squares(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        squares = weights**2 + self.label_variance * (weights[:, 1:] - weights[:, :1]) ** 2
        # holders outside send the middle of the range
        return squares, squares.mean(axis=1)

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


def _numbers(reports: NDArray[np.uint8]) -> NDArray[np.int32]:
    return np.ascontiguousarray(reports[:, :4]).view("<i4")[:, 0]
