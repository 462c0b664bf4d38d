"""Signed subsets for two classes, where a report is a set of w cells, each with one sign, which is the class.

Subset selection (`oracles.subset`; Wang et al. 2016, Ye and Barg 2018) among the 2 M elements (cell, class) of M = L + 1
cells, the last one "outside", but only sets that never hold both classes of a cell: what a tree decides by is the
difference of the two, and a set with both says nothing about it. A holder who is outside has that cell, and a class drawn
at random.

With probability P = w e^eps / (w e^eps + 2 M - w) the set has the holder's own element, and is otherwise uniform among all
signed sets that do not: with probability w / (2 M - w) it then has the own cell with the other class. The other cells of
a set are uniform, their classes fair coins. Privacy: eps-LDP, the worst likelihood ratio of a set is
P (2 M - w) / ((1 - P) w), as in subset selection; `epsilon` is that of the integers, rounded up.

With A = P(own cell, other class) = (1 - P) w / (2 M - w) and q = (w - P - A) / (M - 1) = P(another given cell), T_j and
D_j the sums over reports of 1 and of +-1 for class 1 or 0 where cell j is in the set, unbiased are the difference
D_j / (P - A) of the classes and the count (T_j - q n) / (P + A - q). Per holder, where nobody is, they have variance
q / (P - A)^2 and q (1 - q) / (P + A - q)^2, without covariance. w makes least the first plus a tenth of the second: w = M
would make the first smaller yet at small epsilon, and lose the count.

Raw sums: how many reports hold each element, 2 M of them. Cells share one size of set, so sums need `linear_variance`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.coins import WORD, Words, checked_epsilon, exp
from ldptree.compiled import compiled
from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms.mechanism import (
    Form,
    Mechanism,
    MechanismDescription,
    PoisoningBound,
    checked_thresholds,
)
from ldptree.mechanisms.oracles.set_sums import is_cheaper, sample_others
from ldptree.mechanisms.oracles.subset import SubsetSelection, log_comb

# what a count's variance weighs beside a difference's, when the size of a set is chosen
_COUNT_WEIGHT = Fraction(1, 10)
# words drawn at once, and reports held at once while totals are sampled
_BLOCK, _DRAWN_BYTES = 2**16, 2**23


@dataclass(frozen=True)
class SignedSubset(Mechanism):
    """Reports are packed bits over the 2 M elements cell * 2 + class, uint8 [n, ceil(2 M / 8)], w of them set.

    Attributes:
        elements: the integers, those of subset selection among 2 M elements: w, and the coin of the own one.

    Raises:
        ConfigError: not two classes, not 2 M elements, or not 1 <= w <= M - 1.
    """

    name: ClassVar[str] = "signed_subset"
    for_classes: ClassVar[int | None] = 2
    form: ClassVar[Form] = "signed set"
    carries_residuals: ClassVar[bool] = True
    sums_values: ClassVar[bool] = True

    elements: SubsetSelection

    def __post_init__(self) -> None:
        if self.n_classes != self.for_classes:
            raise ConfigError(
                f'signed_subset: {self.n_classes} classes; it is for two. Use mechanism = "auto", which is for any number'
            )
        super().__post_init__()
        if self.elements.k != 2 * self.n_places:
            raise ConfigError(
                f"signed_subset: coins for {self.elements.k} elements; {2 * self.n_places} are needed"
            )
        if self.elements.size >= self.n_places:
            raise ConfigError(
                f"signed_subset: a set of {self.elements.size} of {self.n_places} cells; it must have 1 to one less"
            )

    @classmethod
    def for_budget(cls, epsilon: float, n_cells: int, n_classes: int) -> Self:
        """Sets of the size that suits this epsilon and so many cells best (module text)."""
        size = best_size(checked_epsilon(epsilon), n_cells + 1)
        return cls(n_cells, n_classes, SubsetSelection.of_size(epsilon, 2 * n_cells + 1, 1, size))

    @classmethod
    def from_thresholds(cls, n_cells: int, n_classes: int, thresholds: Mapping[str, int]) -> Self:
        """The mechanism with these integers."""
        size, own = checked_thresholds(cls.name, thresholds, ("size", "own"))
        return cls(n_cells, n_classes, SubsetSelection.of_values(2 * (n_cells + 1), size=size, own=own))

    @property
    def thresholds(self) -> dict[str, int]:
        """The size of a set, and the coin of the own element."""
        return self.elements.thresholds

    @property
    def epsilon(self) -> float:
        """That of subset selection with the same integers."""
        return self.elements.epsilon

    @property
    def n_places(self) -> int:
        """Return M, the number of cells and "outside"."""
        return self.n_cells + 1

    @property
    def p(self) -> float:
        """Return P + A, the chance that the own cell is in the set."""
        return self._law.own_cell

    @property
    def q(self) -> float:
        """That another given cell is."""
        return self._law.q

    @property
    def label_p(self) -> float:
        """Return P / (P + A), the chance that the own cell has its own class, if it is in the set."""
        return (1 + self._law.lean / self._law.own_cell) / 2

    @property
    def min_entropy(self) -> float:
        """Return the bits of the likeliest set, with the own element, other cells, and a class for each."""
        size = self.elements.size
        sets_with_own = log_comb(self.n_places - 1, size - 1) / math.log(2) + size - 1
        return sets_with_own - math.log2(self.elements.own / WORD)

    @property
    def report_bytes(self) -> int:
        """2 M bits, in whole bytes."""
        return self.elements.report_bytes

    @property
    def raw_size(self) -> int:
        """One count an element."""
        return self.elements.k

    def randomize(self, values: NDArray[np.int64], words: Words) -> NDArray[np.uint8]:
        """Draw coins for the own element and for its cell's other class, and the rest uniformly, as bits."""
        cells, labels = np.divmod(self.checked(values), 2)
        outside = np.flatnonzero(cells == self.n_cells)
        labels[outside] = words.below(2, outside.size)
        size, m = self.elements.size, self.n_places
        reports = np.zeros((cells.size, self.report_bytes), dtype=np.uint8)
        ranges = np.arange(m - size, m, dtype=np.uint64)
        step = max(1, _BLOCK // size)
        for start in range(0, cells.size, step):
            block = slice(start, start + step)
            n = cells[block].size
            has_own = words.block(n) < np.uint64(self.elements.own)
            has_other = words.below(2 * m - size, n) < np.uint64(size)
            drawn = words.below(ranges, n).astype(np.int64)
            coins = words.block(n * -(-size // 64)).reshape(n, -1)
            label = np.where(has_own, labels[block], np.where(has_other, 1 - labels[block], -1))
            _fill_sets(cells[block], label, m, drawn, coins, reports[block])
        return reports

    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """w elements, no bit past them, and no cell with both classes."""
        return self.elements.is_valid(reports) & ~_has_both(reports)

    @property
    def law_size(self) -> int:
        """The signed sets of w of M cells."""
        return math.comb(self.n_places, self.elements.size) << self.elements.size

    def law(self, value: int) -> dict[bytes, Fraction]:
        """Return P(packed report | value) for every signed set, from the integers in use, for few cells."""
        is_outside = value == 2 * self.n_cells
        size, m = self.elements.size, self.n_places
        n_with = math.comb(m - 1, size - 1) * 2 ** (size - 1)
        own = Fraction(self.elements.own, WORD)
        with_own, without = own / n_with, (1 - own) / (self.law_size - n_with)
        if is_outside:  # either class, half the time
            with_own = (with_own + without) / 2
        cells = np.array(list(combinations(range(m), size)))
        classes = np.array(list(product(range(2), repeat=size)))
        sets = (2 * cells[:, None] + classes).reshape(-1, size)
        bits = np.zeros((sets.shape[0], 2 * m), dtype=np.uint8)
        np.put_along_axis(bits, sets, 1, axis=1)
        is_likely = np.asarray(bits[:, value : None if is_outside else value + 1].any(axis=1))
        packed = np.packbits(bits, axis=1, bitorder="little")
        return {
            output.tobytes(): with_own if likely else without
            for output, likely in zip(packed, is_likely, strict=True)
        }

    def aggregate(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """Count the reports that hold each element, int64 [2 M]."""
        reports = self.unpack(reports)
        both = _has_both(reports)
        if both.any():
            raise DataError(
                f"signed_subset: report {int(np.argmax(both)) + 1} of {both.size} holds both classes of a cell, which no "
                "honest holder sends. It was made under another protocol, or forged"
            )
        return self.elements.aggregate(reports)

    def sample_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Element by element, or report by report where that is less work."""
        counts = np.asarray(counts, dtype=np.int64)
        size, m = self.elements.size, self.n_places
        if not is_cheaper(m, size, int(counts.sum())):
            return self._sample_reports(counts, generator)
        outside = generator.binomial(counts[-1], 0.5)
        held = np.append(counts[:-1], [counts[-1] - outside, outside])
        has_own = generator.binomial(held, self.elements.own / WORD)
        has_other = generator.binomial(held - has_own, size / (2 * m - size))
        totals = has_own + has_other.reshape(-1, 2)[:, ::-1].ravel()
        others = sample_others(
            totals.reshape(-1, 2).sum(axis=1),
            (held - has_own - has_other).reshape(-1, 2).sum(axis=1),
            size,
            generator,
        )
        ones = generator.binomial(others, 0.5)
        return np.asarray(totals + np.stack([others - ones, ones], axis=1).ravel())

    def _sample_reports(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        values = np.repeat(np.arange(self.k), counts)
        words = Words.seeded(np.random.SeedSequence(generator.integers(2**63, size=4).tolist()))
        totals = self.no_reports()
        step = max(1, _DRAWN_BYTES // self.report_bytes)
        for start in range(0, values.size, step):
            totals += self.aggregate(self.randomize(values[start : start + step], words))
        return totals

    def can_be_sum(self, raw: NDArray[Any], n: int) -> bool:
        """As of sets of w elements, and no cell in more than n of them."""
        return bool(self.elements.can_be_sum(raw, n) and raw.reshape(-1, 2).sum(axis=1).max() <= n)

    def unbias(self, raw: NDArray[Any], n: int) -> NDArray[np.float64]:
        """Counts of each cell and class, from count and difference; last the holders outside."""
        zero, other = np.asarray(raw, dtype=np.float64).reshape(-1, 2).T
        count = (zero + other - n * self._law.q) / self._law.gap
        difference = (other - zero) / self._law.lean
        classes = np.stack([count - difference, count + difference], axis=1) / 2
        return np.append(classes[:-1].ravel(), count[-1])

    def linear_variance(self, weights: ArrayLike, counts: ArrayLike) -> Any:
        """Exact, covariances included."""
        a = np.asarray(weights, dtype=np.float64)
        one_sum = a.ndim == 1
        a, n = a.reshape(self.k, -1), np.asarray(counts, dtype=np.float64)
        zero, other = a[:-1].reshape(self.n_cells, 2, -1).transpose(1, 0, 2)
        x = np.vstack([(other + zero) / 2, a[-1:]]) / self._law.gap
        y = (other - zero) / (2 * self._law.lean)
        inside = n[:-1].reshape(self.n_cells, 2)
        holders, lead = np.append(inside.sum(axis=1), n[-1]), inside[:, 1] - inside[:, 0]
        sums = _Sums(
            n=float(n.sum()),
            x=x.sum(axis=0),
            xx=(x**2).sum(axis=0),
            yy=(y**2).sum(axis=0),
            of_x=holders @ x,
            of_xx=holders @ x**2,
            of_yy=holders[:-1] @ y**2,
            of_y=lead @ y,
            of_xy=lead @ (x[:-1] * y),
        )
        variance = _variance_of(self._law, sums)
        return float(variance[0]) if one_sum else variance

    def cell_variance(
        self,
        class_weights: ArrayLike,
        n_cells: ArrayLike,
        inside: NDArray[np.float64],
        counts: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the exact variance, by `linear_variance` with the same weights in every cell of a group."""
        zero, other = np.asarray(class_weights, dtype=np.float64)
        x, y = (other + zero) / (2 * self._law.gap), (other - zero) / (2 * self._law.lean)
        sizes = np.asarray(n_cells, dtype=np.float64)
        holders, lead = inside.sum(axis=1), inside[:, 1] - inside[:, 0]
        sums = _Sums(
            n=float(counts.sum()),
            x=sizes * x,
            xx=sizes * x**2,
            yy=sizes * y**2,
            of_x=holders * x,
            of_xx=holders * x**2,
            of_yy=holders * y**2,
            of_y=lead * y,
            of_xy=lead * x * y,
        )
        return _variance_of(self._law, sums)

    @cached_property
    def _law(self) -> _Law:
        return _Law.of(self.elements)

    def describe(self) -> MechanismDescription:
        """Facts of the mechanism and of one report."""
        return self._description(self.elements.size, p=self.p, q=self.q, label_p=self.label_p)

    def poisoning_bound(self, n: int) -> PoisoningBound:
        """Compare a report with a cell and class and one without it. w cells are in either, and they may all differ.

        The number of holders outside moves by more, 1 / (P + A - q), and decides nothing but how many count.
        """
        shift = (1 / self._law.gap + 1 / self._law.lean) / 2
        size, m = self.elements.size, self.n_places
        at_once = min(2 * size, 2 * (m - size), self.n_cells)
        return PoisoningBound(one=shift, one_percent=math.ceil(n / 100) * shift, totals_at_once=at_once)


def best_size(epsilon: float, m: int) -> int:
    """Return w of 1 .. m - 1 with least variance of a difference and a tenth of a count's, in an empty cell.

    No private row is looked at. Rational numbers, so that every machine finds the same; the cost falls, then rises, so
    halving finds its least (the least of equals).
    """
    e = Fraction(exp(epsilon))
    a = e - 1

    def cost(w: int) -> Fraction:
        # with P, A and q written out, times (m - 1) a^2
        d = w * a + 2 * m
        others = d - e - 1
        count = others * (d * (m - 1 - w) + w * (e + 1)) * (m - 1) / (w * (m - w) ** 2)
        return d * others / w + _COUNT_WEIGHT * count

    low, high = 1, m - 1
    while low < high:
        middle = (low + high) // 2
        if cost(middle) <= cost(middle + 1):
            high = middle
        else:
            low = middle + 1
    return low


def _has_both(reports: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which reports hold both classes of a cell, bool [n], which are neighbours in a byte."""
    has_both: NDArray[np.bool_] = (reports & (reports >> 1) & np.uint8(0x55)).any(axis=1)
    return has_both


@compiled
def _fill_sets(cells, labels, m, drawn, coins, reports):  # type: ignore[no-untyped-def]
    """Set the bits of each set, of the own cell with this class (none for -1), and of the others by Floyd's algorithm.

    drawn [n, size] holds the algorithm's draws among the m - 1 other cells, column i below m - size + i; a set with its
    own cell needs one less. The class of column i is bit i % 64 of word i // 64 of coins, uint64 [n, ceil(size / 64)].
    """
    size = drawn.shape[1]
    for row in range(cells.size):
        own = cells[row]
        has_own = labels[row] >= 0
        for i in range(1 if has_own else 0, size):
            # the others from the own cell on stand one place higher
            place = drawn[row, i]
            place += place >= own
            if reports[row, place >> 2] >> (2 * (place & 3)) & 3:
                place = m - 1 - size + i
                place += place >= own
            label = np.int64((coins[row, i >> 6] >> np.uint64(i & 63)) & np.uint64(1))
            reports[row, place >> 2] |= np.uint8(1 << (2 * (place & 3) + label))
        if has_own:
            reports[row, own >> 2] |= np.uint8(1 << (2 * (own & 3) + labels[row]))


@dataclass(frozen=True)
class _Law:
    """Probabilities of a report, from the integers.

    Attributes:
        own_cell: P + A, that the own cell is in the set.
        q: that another given cell is.
        pairs: that two other given cells are; 0 where there are no two.
        excess: pairs - q^2.
        lean: P - A, the mean of the own cell's sign, 0 where it is not in the set.
        gap: P + A - q.
        missing: (1 - P - A) / (M - 1): q is so much more than it were if every set had the own cell.
    """

    own_cell: float
    q: float
    pairs: float
    excess: float
    lean: float
    gap: float
    missing: float

    @classmethod
    def of(cls, elements: SubsetSelection) -> _Law:
        """Of signed sets with these integers."""
        size, m = elements.size, elements.k // 2
        own = Fraction(elements.own, WORD)
        other = (1 - own) * Fraction(size, 2 * m - size)
        cell = own + other
        q = (size - cell) / (m - 1)
        pairs = Fraction(0)
        if m > 2:
            pairs = (cell * (size - 1) * (size - 2) + (1 - cell) * size * (size - 1)) / ((m - 1) * (m - 2))
        exact = (cell, q, pairs, pairs - q**2, own - other, cell - q, (1 - cell) / (m - 1))
        return cls(*map(float, exact))


@dataclass(frozen=True)
class _Sums:
    """The terms of the variance of a sum. A cell in the set adds x, and +-y for its class; x is the weight of the cell's count
    over the gap, y that of its difference over the lean (0 of the cell "outside").

    Attributes:
        n: holders.
        x, xx, yy: sums over cells of x, x^2, y^2.
        of_x, of_xx, of_yy: the same over holders, each with the x and y of their cell.
        of_y, of_xy: over holders of +-y and +-x y, plus for class 1.
    """

    n: float
    x: NDArray[np.float64]
    xx: NDArray[np.float64]
    yy: NDArray[np.float64]
    of_x: NDArray[np.float64]
    of_xx: NDArray[np.float64]
    of_yy: NDArray[np.float64]
    of_y: NDArray[np.float64]
    of_xy: NDArray[np.float64]


def _variance_of(law: _Law, sums: _Sums) -> NDArray[np.float64]:
    """Exact variance of the sum of all reports, for many sums at once.

    One report of a holder of class +-1 in cell j has, with b = P + A, g = P - A, and X, XX, YY the sums of x, x^2, y^2 over
    the other cells, which are a simple random sample with fair signs,
    b (1 - b) x_j^2 + (b - g^2) y_j^2 +- 2 g (1 - b) x_j y_j of its own cell, q (XX + YY) - pairs XX + (pairs - q^2) X^2 of
    the others, and -2 (1 - b) / (M - 1) (b x_j +- g y_j) X of the two together.
    """
    s, b, g = sums, law.own_cell, law.lean
    own = b * (1 - b) * s.of_xx + (b - g**2) * s.of_yy + 2 * g * (1 - b) * s.of_xy
    xx, yy = s.n * s.xx - s.of_xx, s.n * s.yy - s.of_yy
    others = law.q * (xx + yy) - law.pairs * xx + law.excess * (s.n * s.x**2 - 2 * s.x * s.of_x + s.of_xx)
    together = -2 * law.missing * (b * (s.of_x * s.x - s.of_xx) + g * (s.of_y * s.x - s.of_xy))
    variance: NDArray[np.float64] = own + others + together
    return variance
