"""Subset selection, where a report is w of the k values (Wang, Huang, Wang, Nie, Xu, Shi, Yan 2016; Ye, Barg 2018).

The set holds the holder's own value with probability p = w e^eps / (w e^eps + k - w), and is uniform otherwise; w is
k / (e^eps + 1), rounded, and at least 1 (then it is grr). Privacy: eps-LDP, the worst likelihood ratio of a set is
p (k - w) / ((1 - p) w). Another value is in it with probability q = ((w - 1) p + w (1 - p)) / (k - 1).
Noise: no worse than grr and oue for any k and epsilon. Totals are correlated (every report adds w to their sum), so sums
of totals need `linear_variance`.

A report is packed bits (`packed`), w of them set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.coins import WORD, Words, checked_epsilon, exp, log_up, threshold_above
from ldptree.compiled import compiled
from ldptree.errors import ConfigError
from ldptree.mechanisms.mechanism import Form, PoisoningBound, checked_thresholds
from ldptree.mechanisms.oracles.packed import PackedBits
from ldptree.mechanisms.oracles.set_sums import is_cheaper, sample_others

# words drawn at once: half a megabyte, which stays in the cache
_BLOCK = 2**16


@dataclass(frozen=True)
class SubsetSelection(PackedBits):
    """Subset selection with P(own value in the set) = own / 2^64. Reports are uint8 [n, ceil(k/8)].

    Raises:
        ConfigError: not 1 <= size < k, or the own value is no likelier in the set than another.
    """

    name: ClassVar[str] = "ss"
    form: ClassVar[Form] = "set"

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
    def for_budget(cls, epsilon: float, n_cells: int, n_classes: int) -> Self:
        """The oracle that spends at most epsilon."""
        e = exp(checked_epsilon(epsilon))
        k = n_cells * n_classes + 1
        best = (Decimal(k) / (e + 1)).to_integral_value(rounding=ROUND_HALF_EVEN)
        return cls.of_size(epsilon, n_cells, n_classes, min(max(int(best), 1), max(k - 1, 1)))

    @classmethod
    def of_size(cls, epsilon: float, n_cells: int, n_classes: int, size: int) -> Self:
        """The same with sets of this size."""
        e = exp(checked_epsilon(epsilon))
        others = n_cells * n_classes + 1 - size
        oracle = cls(n_cells, n_classes, size, WORD - threshold_above(Decimal(others), size * e + others))
        while oracle.epsilon > epsilon:  # only where rounding up the logarithm passed the claim
            oracle = cls(n_cells, n_classes, size, oracle.own - 1)
        return oracle

    @classmethod
    def from_thresholds(cls, n_cells: int, n_classes: int, thresholds: Mapping[str, int]) -> Self:
        """The oracle with these integers."""
        return cls(n_cells, n_classes, *checked_thresholds(cls.name, thresholds, ("size", "own")))

    @property
    def thresholds(self) -> dict[str, int]:
        """Return the integers that define it, the size of a set and the coin of the own value."""
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
    def ratio(self) -> Fraction:
        """Return the exact ratio of the chances of a set with the holder's value and without, always finite."""
        return Fraction(self.own * (self.k - self.size), (WORD - self.own) * self.size)

    @cached_property
    def epsilon(self) -> float:
        """The epsilon of the integers, rounded up."""
        return log_up(self.ratio)

    @property
    def min_entropy(self) -> float:
        """A set with the own value is the likeliest."""
        sets_with_own = log_comb(self.k - 1, self.size - 1)
        return (sets_with_own - math.log(self.own / WORD)) / math.log(2)

    def randomize(self, values: NDArray[np.int64], words: Words) -> NDArray[np.uint8]:
        """Draw a coin for each own value, and the rest of the set uniformly, as bits, uint8 [n, ceil(k/8)]."""
        values = self.checked(values)
        reports = np.zeros((values.size, *self.report_shape), dtype=np.uint8)
        ranges = np.arange(self.k - self.size, self.k, dtype=np.uint64)
        step = max(1, _BLOCK // self.size)
        for start in range(0, values.size, step):
            block = values[start : start + step]
            has_own = words.block(block.size) < np.uint64(self.own)
            drawn = words.below(ranges, block.size).astype(np.int64)
            _fill_sets(block, self.k, has_own, drawn, reports[start : start + step])
        return reports

    def sample_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Value by value, or report by report where that is less work."""
        counts = np.asarray(counts, dtype=np.int64)
        if not is_cheaper(self.k, self.size, int(counts.sum())):
            return super().sample_totals(counts, generator)
        has_own = generator.binomial(counts, self.own / WORD)
        return has_own + sample_others(has_own, counts - has_own, self.size, generator)

    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """A set has w values, and no bit past k."""
        valid: NDArray[np.bool_] = super().is_valid(reports)
        valid &= np.bitwise_count(reports).sum(axis=1) == self.size
        return valid

    @property
    def _honest(self) -> str:
        return f"a set of {self.size} of {self.k} values, no bit past them"

    @property
    def form_size(self) -> int:
        """Values in a set."""
        return self.size

    @property
    def n_supported(self) -> int:
        """The values of a set."""
        return self.size

    @property
    def law_size(self) -> int:
        """The sets of w of k values."""
        return math.comb(self.k, self.size)

    def law(self, value: int) -> dict[bytes, Fraction]:
        """All sets of w values."""
        own = Fraction(self.own, WORD)
        with_own, without = (
            own / math.comb(self.k - 1, self.size - 1),
            (1 - own) / math.comb(self.k - 1, self.size),
        )
        sets = np.array(list(combinations(range(self.k), self.size)))
        bits = np.zeros((sets.shape[0], self.k), dtype=np.uint8)
        np.put_along_axis(bits, sets, 1, axis=1)
        return {
            output.tobytes(): with_own if row[value] else without
            for row, output in zip(bits, np.packbits(bits, axis=1, bitorder="little"), strict=True)
        }

    def variance_of_sums(
        self,
        *,
        weights: ArrayLike,
        squares: ArrayLike,
        weighted: ArrayLike,
        weighted_squares: ArrayLike,
        n: float,
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

    def poisoning_bound(self, n: int) -> PoisoningBound:
        """Bound one report's effect. It supports w values, and so raises w totals and lowers as many others."""
        return self._bound_of_one(n, totals_at_once=min(2 * self.size, self.k))


def log_comb(n: int, k: int) -> float:
    """The logarithm of the number of sets of k of n."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


@compiled
def _fill_sets(values, k, has_own, drawn, reports):  # type: ignore[no-untyped-def]
    """Set the bits of each set, uniform among the k - 1 others (Floyd's algorithm), and of the own value if it is in.

    drawn [n, size] holds the algorithm's draws, column i below k - size + i; a set with its own value needs one less.
    """
    size = drawn.shape[1]
    for row in range(values.size):
        own = values[row]
        for i in range(1 if has_own[row] else 0, size):
            # the others from the own value on stand one place higher
            place = drawn[row, i]
            place += place >= own
            if reports[row, place >> 3] >> (place & 7) & 1:
                place = k - 1 - size + i
                place += place >= own
            reports[row, place >> 3] |= np.uint8(1 << (place & 7))
        if has_own[row]:
            reports[row, own >> 3] |= np.uint8(1 << (own & 7))
