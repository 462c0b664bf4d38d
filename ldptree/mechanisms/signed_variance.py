"""The noise of signed subsets: what reports' probabilities are, and the exact variance of a sum of unbiased totals.

What a report is stands in `signed_subset`, whose letters these are.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ldptree.coins import WORD
from ldptree.mechanisms.oracles.subset import SubsetSelection


@dataclass(frozen=True)
class Law:
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
    def of(cls, elements: SubsetSelection) -> Law:
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
class Sums:
    """What the variance of a sum is made of. A cell in the set adds x, and +-y for its class; x is the weight of the cell's
    count over the gap, y that of its difference over the lean (0 of the cell "outside").

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


def variance_of(law: Law, sums: Sums) -> NDArray[np.float64]:
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
