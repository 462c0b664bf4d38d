"""Randomised response on the cell's bits, and the label apart (LPDT eq. 3, HistOfTree eqs 5 and 8).

Each bit of the one-hot of the cell (L of them, and one for no cell) is kept with probability e^(eps/4) / (1 + e^(eps/4)):
two holders differ in at most two bits, so the bits are eps / 2-LDP. The label takes the other half. The papers' real label
gets Laplace noise; one of C classes is better sent by generalised randomised response at eps / 2. A holder who is outside
has the bit of no cell, and a label drawn at random.

With U^_j = (bit_j - q) / (p - q) and Y^_c = (1{label = c} - q_y) / (p_y - q_y), independent given the holder,
N~_{j,c} = sum over holders of U^_j Y^_c. Its exact variance is in `linear_variance`.
Raw sums: how many reports have bit j and label c ((L + 1) C of them), then how many have label c (C).
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

from ldptree.coins import WORD, Words, checked_epsilon, rounded_up
from ldptree.errors import ConfigError
from ldptree.mechanisms.description import Form, MechanismDescription, PoisoningBound
from ldptree.mechanisms.mechanism import Mechanism, checked_thresholds
from ldptree.mechanisms.oracles.grr import Grr
from ldptree.mechanisms.oracles.unary import Sue

_BLOCK = 2**22


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """Reports are uint8 [n, 4 + ceil((L + 1) / 8)] with the label as uint32, then the bits.

    Attributes:
        bits: symmetric coins over L + 1 values, the last one for "no cell", whose bit is not looked at.
        label: generalised randomised response over the C classes.

    Raises:
        ConfigError: the alphabets are not L + 1 and C.
    """

    name: ClassVar[str] = "randomized_response"
    form: ClassVar[Form] = "bits and label"

    bits: Sue
    label: Grr

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.bits.k, self.label.k) != (self.n_cells + 1, self.n_classes):
            raise ConfigError(
                f"randomized_response: coins for {self.bits.k} bits and {self.label.k} labels; "
                f"{self.n_cells + 1} and {self.n_classes} are needed"
            )

    @classmethod
    def for_budget(cls, epsilon: float, n_cells: int, n_classes: int) -> Self:
        """Half of epsilon for the bits, half for the label."""
        half = checked_epsilon(epsilon) / 2
        return cls(n_cells, n_classes, Sue.for_values(half, n_cells + 1), Grr.for_values(half, n_classes))

    @classmethod
    def from_thresholds(cls, n_cells: int, n_classes: int, thresholds: Mapping[str, int]) -> Self:
        """The mechanism with these integers."""
        other, lie = checked_thresholds(cls.name, thresholds, ("bit_other", "label_lie"))
        return cls(
            n_cells,
            n_classes,
            Sue.of_values(n_cells + 1, own=WORD - other, other=other),
            Grr.of_values(n_classes, lie=lie),
        )

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
    def report_bytes(self) -> int:
        """A label and L + 1 bits."""
        return 4 + self.bits.report_bytes

    @property
    def raw_size(self) -> int:
        """(L + 1) C + C."""
        return (self.n_cells + 2) * self.n_classes

    def randomize(self, values: NDArray[np.int64], words: Words) -> NDArray[np.uint8]:
        """Return bits and label, with separate coins, uint8 [n, report_bytes]."""
        values = self.checked(values)
        cells, labels = np.divmod(values, self.n_classes)
        outside = np.flatnonzero(cells == self.n_cells)
        labels[outside] = words.below(self.n_classes, outside.size)
        reports = np.empty((values.size, self.report_bytes), dtype=np.uint8)
        step = max(1, _BLOCK // self.report_bytes)
        for start in range(0, values.size, step):
            block = slice(start, start + step)
            reports[block, :4] = self.label.pack(self.label.randomize(labels[block], words))
            reports[block, 4:] = self.bits.randomize(cells[block], words)
        return reports

    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """A label that is declared, and no bit past the last."""
        labels = self.label.unpack(np.ascontiguousarray(reports[:, :4]))
        return self.label.is_valid(labels) & self.bits.is_valid(np.ascontiguousarray(reports[:, 4:]))

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
        labels = self.label.unpack(np.ascontiguousarray(reports[:, :4]))
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
        """Labels that add up to n, and no bit more often than the label it came with."""
        if raw.shape != (self.raw_size,) or not np.issubdtype(raw.dtype, np.integer) or raw.min() < 0:
            return False
        bits, with_label = self._parts(raw)
        return bool(with_label.sum() == n and (bits <= with_label).all())

    def unbias(self, raw: NDArray[Any], n: int) -> NDArray[np.float64]:
        """The sums of U^_j Y^_c, and last of U^ of "no cell"."""
        bits, with_label = self._parts(np.asarray(raw, dtype=np.float64))
        supported = bits - self.bits.q * with_label  # sum of bit - q over reports with label c
        products = (supported - self.label.q * supported.sum(axis=1, keepdims=True)) / self.label.gap
        return np.append(products[:-1].ravel(), supported[-1].sum()) / self.bits.gap

    def _parts(self, raw: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Bits [L + 1, C] and labels [C]."""
        return raw[: -self.n_classes].reshape(self.n_cells + 1, self.n_classes), raw[-self.n_classes :]

    def linear_variance(self, weights: ArrayLike, counts: ArrayLike) -> Any:
        """Exact, covariances through the shared label included."""
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
        """Return the exact variance, by `linear_variance` with the same weights in every cell of a group."""
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

    def _squares(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """E (sum_c a_jc Y^_c)^2 for a holder with each label, [L, C, m], and for one outside, [L, m]."""
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
