"""Subset selection: a report is a set of w of the k values (Wang, Huang, Wang, Nie, Xu, Shi, Yan 2016; Ye, Barg 2018).

The set holds the holder's own value with probability p = w e^eps / (w e^eps + k - w), and is uniform otherwise; w is
k / (e^eps + 1), rounded, and at least 1 (then it is grr). Privacy: eps-LDP, the worst likelihood ratio of a set is
p (k - w) / ((1 - p) w). Another value is in it with probability q = ((w - 1) p + w (1 - p)) / (k - 1).
Noise: no worse than grr and oue for any k and epsilon. Totals are correlated (every report adds w to their sum), so sums
of totals need `linear_variance`.

A report is stored as packed bits, uint8 [ceil(k / 8)], as in `unary`, with w of them set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.errors import ConfigError, DataError
from ldptree.oracles.coins import WORD, checked_epsilon, exp, log_up, threshold_above
from ldptree.oracles.oracle import Influence, Oracle, checked_thresholds
from ldptree.oracles.unary import count_bits
from ldptree.oracles.words import Words

# cells of the table of holders and values that is filled at once: they stay in the cache
_BLOCK = 2**20


@dataclass(frozen=True)
class SubsetSelection(Oracle):
    """Subset selection with P(own value in the set) = own / 2^64. Reports: uint8 [n, ceil(k/8)].

    Raises:
        ConfigError: not 1 <= size < k, or the own value is no likelier in the set than another.
    """

    name: ClassVar[str] = "ss"

    size: int
    own: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.size < self.k:
            raise ConfigError(f"ss: a set of {self.size} of {self.k} values; it must have 1 to k - 1")
        if not self.size * WORD < self.own * self.k < self.k * WORD:
            raise ConfigError(
                f"ss: the own threshold must be above 2^64 size / k and below 2^64, found {self.own} (epsilon too small?)"
            )

    @classmethod
    def for_budget(cls, epsilon: float, k: int) -> Self:
        """The oracle over k values that spends at most epsilon."""
        e = exp(checked_epsilon(epsilon))
        best = (Decimal(k) / (e + 1)).to_integral_value(rounding=ROUND_HALF_EVEN)
        size = min(max(int(best), 1), max(k - 1, 1))
        oracle = cls(k, size, WORD - threshold_above(Decimal(k - size), size * e + k - size))
        while oracle.epsilon > epsilon:  # only where rounding up the logarithm passed the claim
            oracle = cls(k, size, oracle.own - 1)
        return oracle

    @classmethod
    def from_thresholds(cls, k: int, thresholds: Mapping[str, int]) -> Self:
        """The oracle with these integers."""
        return cls(k, *checked_thresholds(cls.name, thresholds, ("size", "own")))

    @property
    def thresholds(self) -> dict[str, int]:
        """The integers that define it: the size of a set, and the coin of the own value."""
        return {"size": self.size, "own": self.own}

    @cached_property
    def p(self) -> float:
        """P(a report supports its holder's value)."""
        return float(Fraction(self.own, WORD))

    @cached_property
    def q(self) -> float:
        """P(a report supports another given value)."""
        return float((self.size - Fraction(self.own, WORD)) / (self.k - 1))

    @cached_property
    def gap(self) -> float:
        """p - q, from the integers."""
        return float((Fraction(self.own * self.k, WORD) - self.size) / (self.k - 1))

    @cached_property
    def epsilon(self) -> float:
        """The epsilon of the integers, rounded up."""
        return log_up(Fraction(self.own * (self.k - self.size), (WORD - self.own) * self.size))

    @property
    def report_bytes(self) -> int:
        """k bits, in whole bytes."""
        return -(-self.k // 8)

    def randomize(self, values: NDArray[np.int64], words: Words) -> NDArray[np.uint8]:
        """A coin a holder for the own value, the rest of the set uniform: packed bits, uint8 [n, ceil(k/8)]."""
        values = self._checked(values)
        reports = np.empty((values.size, self.report_bytes), dtype=np.uint8)
        step = max(1, _BLOCK // self.k)
        for start in range(0, values.size, step):
            block = values[start : start + step]
            has_own = words.block(block.size) < np.uint64(self.own)
            sets = self._others(~has_own, words)
            # Chosen among the k - 1 others: those from the own value on stand one place higher.
            place = np.arange(self.k)
            source = place[None, :] - (place[None, :] > block[:, None])
            source[source == self.k - 1] = 0  # the own value is the last one: overwritten next
            bits = np.take_along_axis(sets, source, axis=1)
            bits[np.arange(block.size), block] = has_own
            reports[start : start + step] = np.packbits(bits, axis=1, bitorder="little")
        return reports

    def _others(self, has_one_more: NDArray[np.bool_], words: Words) -> NDArray[np.bool_]:
        """Uniform subsets of k - 1 values, of size - 1 of them, or of size: bool [n, k - 1] (Floyd's algorithm)."""
        n, m = has_one_more.size, self.k - 1
        chosen = np.zeros((n, m), dtype=bool)
        for last in range(m - self.size, m):
            rows = np.flatnonzero(has_one_more) if last == m - self.size else np.arange(n)
            drawn = words.below(last + 1, rows.size).astype(np.int64)
            drawn[chosen[rows, drawn]] = last
            chosen[rows, drawn] = True
        return chosen

    def aggregate(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """How many sets hold each value, int64 [k]."""
        reports = np.asarray(reports)
        counts = count_bits(self.name, reports, self.k)
        if not (np.bitwise_count(reports).sum(axis=1) == self.size).all():
            raise DataError(
                f"ss: a report is no set of {self.size} values; it was made under another protocol"
            )
        return counts

    def sample_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Report by report: the values of a set are not independent, and no closed form is known (a simulation device)."""
        values = np.repeat(np.arange(self.k), np.asarray(counts, dtype=np.int64))
        words = Words.seeded(np.random.SeedSequence(generator.integers(2**63, size=4).tolist()))
        totals = np.zeros(self.k, dtype=np.int64)
        step = max(1, 64 * _BLOCK // self.k)
        for start in range(0, values.size, step):
            totals += self.aggregate(self.randomize(values[start : start + step], words))
        return totals

    def variance_of_sums(
        self,
        *,
        weights: ArrayLike,
        squares: ArrayLike,
        weighted: ArrayLike,
        weighted_squares: ArrayLike,
        n: int,
    ) -> NDArray[np.float64]:
        """Exact, covariances between values included."""
        # A holder with value v adds a_v (with probability p) and a simple random sample of the others, whose sum has mean
        # s S / m and mean square s Q / m + s (s - 1) / (m (m - 1)) (S^2 - Q), for s of m values with sums S of a, Q of a^2.
        a1, a2, w1, w2 = (
            np.asarray(a, dtype=np.float64) for a in (weights, squares, weighted, weighted_squares)
        )
        p, w, m = self.p, self.size, self.k - 1
        cross, sums, others = a1 * w1 - w2, n * a1**2 - 2 * a1 * w1 + w2, n * a2 - w2

        def sampled(s: int) -> NDArray[np.float64]:
            pairs = s * (s - 1) / (m * (m - 1)) if s > 1 else 0.0
            return s / m * others + pairs * (sums - others)

        square = p * (w2 + 2 * (w - 1) / m * cross + sampled(w - 1)) + (1 - p) * sampled(w)
        mean = p**2 * w2 + 2 * p * (w - p) / m * cross + ((w - p) / m) ** 2 * sums
        variance: NDArray[np.float64] = (square - mean) / self.gap**2
        return variance

    def influence(self, n: int) -> Influence:
        """One report supports w values: it can raise as many totals, and lower as many others."""
        return self._influence(n, totals_at_once=min(2 * self.size, self.k))
