"""Unary encoding, where a report is k bits, each flipped apart (Wang, Blocki, Li, Jha 2017).

The holder's own bit is 1 with probability p, each other bit with probability q, independently. Optimised
(oue): p = 1/2, q = 1 / (e^eps + 1). Symmetric (sue, the basic RAPPOR of Erlingsson, Pihur, Korolova 2014):
p = e^(eps/2) / (e^(eps/2) + 1), q = 1 - p; never better than oue, and here to compare with.
Privacy: eps-LDP, the worst likelihood ratio is p (1 - q) / (q (1 - p)).
Noise variance of one total: n q (1 - q) / (p - q)^2 + c_k (1 - p - q) / (p - q), totals are independent of each
other. For oue the first part is 4 n e^eps / (e^eps - 1)^2, the second c_k; for sue they are
n e^(eps/2) / (e^(eps/2) - 1)^2 and 0.

A report is packed bits (`packed`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldptree.coins import WORD, Words, checked_epsilon, exp, log_up, threshold_above
from ldptree.compiled import compiled
from ldptree.errors import ConfigError
from ldptree.mechanisms.mechanism import Form, PoisoningBound, checked_thresholds
from ldptree.mechanisms.oracles.packed import PackedBits

# words drawn at once: half a megabyte, which stays in the cache
_BLOCK = 2**16
# digits that are drawn for every lane of 64 bits: all of them are decided after about log2(64) + 4/3 digits
_COMMON_DIGITS = 7
# words that a lane takes on average
_WORDS_A_LANE = 8.0


@dataclass(frozen=True)
class Unary(PackedBits):
    """Unary encoding with P(own bit) = own / 2^64 and P(another bit) = other / 2^64. Reports are uint8 [n, ceil(k/8)].

    Raises:
        ConfigError: not 1 <= other < own < 2^64.
    """

    form: ClassVar[Form] = "bits"

    own: int
    other: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.other < self.own < WORD:
            raise ConfigError(
                f"{self.name}: thresholds must be 1 <= other < own < 2^64, found {self.other} and {self.own} "
                "(epsilon too small?)"
            )

    @classmethod
    def for_budget(cls, epsilon: float, n_cells: int, n_classes: int) -> Self:
        """The oracle that spends at most epsilon."""
        own, other = cls._thresholds_for(checked_epsilon(epsilon))
        oracle = cls(n_cells, n_classes, own, other)
        while oracle.epsilon > epsilon:  # only where rounding up the logarithm passed the claim
            oracle = cls(n_cells, n_classes, own, oracle.other + 1)
        return oracle

    @classmethod
    def _thresholds_for(cls, epsilon: float) -> tuple[int, int]:
        """own and other, rounded towards more privacy."""
        raise NotImplementedError

    @classmethod
    def from_thresholds(cls, n_cells: int, n_classes: int, thresholds: Mapping[str, int]) -> Self:
        """The oracle with these integers."""
        return cls(n_cells, n_classes, *checked_thresholds(cls.name, thresholds, ("own", "other")))

    @property
    def thresholds(self) -> dict[str, int]:
        """The integers that define it."""
        return {"own": self.own, "other": self.other}

    @cached_property
    def p(self) -> float:
        """P(a report supports its holder's value)."""
        return float(Fraction(self.own, WORD))

    @cached_property
    def q(self) -> float:
        """P(a report supports another given value)."""
        return float(Fraction(self.other, WORD))

    @cached_property
    def gap(self) -> float:
        """p - q, from the integers."""
        return float(Fraction(self.own - self.other, WORD))

    @cached_property
    def epsilon(self) -> float:
        """The epsilon of the integers, rounded up."""
        return log_up(Fraction(self.own * (WORD - self.other), self.other * (WORD - self.own)))

    @property
    def min_entropy(self) -> float:
        """Each bit is as it most often is."""
        own, other = (min(t, WORD - t) / WORD for t in (self.own, self.other))
        return -(math.log1p(-own) + (self.k - 1) * math.log1p(-other)) / math.log(2)

    def randomize(self, values: NDArray[np.int64], words: Words) -> NDArray[np.uint8]:
        """Draw k coins for each holder, 64 at a time, as packed bits, uint8 [n, ceil(k/8)]."""
        values = self.checked(values)
        reports = np.empty((values.size, self.report_bytes), dtype=np.uint8)
        digits = _digits(self.other)
        n_lanes = -(-self.k // 64)
        # a report begins only where words are left for the longest it can need: whether a report is begun
        # must not depend on its own coins
        longest = 1 + 64 * n_lanes
        done = 0
        while done < values.size:
            expected = int(1.1 * (values.size - done) * (1 + n_lanes * _WORDS_A_LANE))
            block = words.block(min(expected, _BLOCK) + longest)
            done = _draw_reports(values, self.k, np.uint64(self.own), digits, block, longest, reports, done)
        return reports

    @property
    def _honest(self) -> str:
        return f"bits of {self.k} values, none set past them"

    @property
    def law_size(self) -> int:
        """2^k."""
        return int(2**self.k)

    def law(self, value: int) -> dict[bytes, Fraction]:
        """2^k reports."""
        bits = np.array(list(product((0, 1), repeat=self.k)), dtype=np.uint8)
        ones = [Fraction(self.own if j == value else self.other, WORD) for j in range(self.k)]
        return {
            output.tobytes(): math.prod(
                (p if bit else 1 - p for p, bit in zip(ones, row, strict=True)), start=Fraction(1)
            )
            for row, output in zip(bits, np.packbits(bits, axis=1, bitorder="little"), strict=True)
        }

    def sample_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw two binomials for each value, of the own bits and of the others (a simulation device)."""
        counts = np.asarray(counts, dtype=np.int64)
        totals: NDArray[np.int64] = generator.binomial(counts, self.p) + generator.binomial(
            counts.sum() - counts, self.q
        )
        return totals

    def poisoning_bound(self, n: int) -> PoisoningBound:
        """A dishonest report may set every bit, and so shift every total at once."""
        return self._bound_of_one(n, totals_at_once=self.k)


@dataclass(frozen=True)
class Oue(Unary):
    """Optimised unary encoding, where the own bit is a fair coin."""

    name: ClassVar[str] = "oue"

    @classmethod
    def _thresholds_for(cls, epsilon: float) -> tuple[int, int]:
        return WORD // 2, threshold_above(Decimal(1), exp(epsilon) + 1)


@dataclass(frozen=True)
class Sue(Unary):
    """Symmetric unary encoding, where every bit is flipped with the same probability."""

    name: ClassVar[str] = "sue"

    @classmethod
    def _thresholds_for(cls, epsilon: float) -> tuple[int, int]:
        other = threshold_above(Decimal(1), exp(Decimal(epsilon) / 2) + 1)
        return WORD - other, other


def _digits(threshold: int) -> NDArray[np.uint64]:
    """Return the 64 binary digits of threshold / 2^64 after the point, each as a word of equal bits, uint64 [64]."""
    return np.array([(threshold >> (63 - i) & 1) * (WORD - 1) for i in range(64)], dtype=np.uint64)


@compiled
def _draw_reports(values, k, own, digits, words, longest, reports, start):  # type: ignore[no-untyped-def]
    """Fill reports from row `start` on, while the words suffice; the row to go on with.

    64 bits are drawn side by side: word i holds the i-th binary digit of 64 uniform numbers, and each number
    is compared with the threshold digit by digit until none of the 64 is undecided. First digits are drawn
    for all lanes at once: nearly every lane needs them, and the loop over lanes becomes vector instructions.
    """
    zero = np.uint64(0)
    unit = np.uint64(1)
    byte = np.uint64(255)
    n_bytes = reports.shape[1]
    n_lanes = (k + 63) // 64
    bits = np.empty(n_lanes, dtype=np.uint64)
    undecided = np.empty(n_lanes, dtype=np.uint64)
    at = 0
    row = start
    while row < values.size and at + longest <= words.size:
        own_bit = words[at] < own
        at += 1
        bits[:] = zero
        undecided[:] = ~zero
        for i in range(_COMMON_DIGITS):
            digit = digits[i]
            drawn = words[at : at + n_lanes]
            for lane in range(n_lanes):
                bits[lane] |= undecided[lane] & digit & ~drawn[lane]
                undecided[lane] &= ~(drawn[lane] ^ digit)
            at += n_lanes
        for lane in range(n_lanes):
            i = _COMMON_DIGITS
            while undecided[lane] != zero and i < 64:
                bits[lane] |= undecided[lane] & digits[i] & ~words[at]
                undecided[lane] &= ~(words[at] ^ digits[i])
                at += 1
                i += 1
        place = unit << np.uint64(values[row] & 63)
        bits[values[row] >> 6] &= ~place
        if own_bit:
            bits[values[row] >> 6] |= place
        bits[n_lanes - 1] &= ~zero >> np.uint64(64 * n_lanes - k)
        for i in range(n_bytes):
            reports[row, i] = np.uint8((bits[i >> 3] >> np.uint64(8 * (i & 7))) & byte)
        row += 1
    return row
