"""The straight line beside a smoothed tree, from public rows: a second public model, and what those rows say of the difference.

What lives here: the fit, and what asking about it is expected to bring. What does not: the value that is published (`slope`),
whether it is asked about (`correction_plan`), and what reports then say (`correction_slope`). No private row is looked at.

Public rows have answers of models that they had no part in, from the same folds for line and tree: g_q. The clip c is the 98 %
quantile of |g_q|, the middle m their median.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from ldptree.encoding import scale
from ldptree.inference.discrepancy import NATS_PER_COMPONENT
from ldptree.models.ensemble import Ensemble
from ldptree.partition.label_unit import centre_of
from ldptree.public_models.blend import FEWEST_ROWS, FOLDS, Linear
from ldptree.public_models.slope import Slope

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Rows = NDArray[np.float32]

KEPT = 0.98
"""Share of public rows whose difference is not clipped."""
TAUS = (0.0, 0.05, 0.5)
"""What the variance of b may be, beside what public rows leave unknown of it."""
SIDE_ROWS = 2.0
"""The mean of g in a cell counts that of its side of the middle as so many rows."""


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownSlope:
    """A slope that may be asked about, and what public rows say of it.

    Attributes:
        published: what is published where it is asked about.
        apart: float64 [n], g of the public rows by models that they had no part in, clipped.
        errors: float64 [n], their labels less the answer of such a tree.
    """

    published: Slope
    apart: Floats
    errors: Floats

    @cached_property
    def column(self) -> Rows:
        """float32 [n], g as it is encoded."""
        return scale(self.apart, -self.published.half, self.published.half)

    @property
    def middle(self) -> float:
        """m, as g is encoded."""
        return float(np.median(self.column))

    @property
    def expected(self) -> float:
        """How much of g the public rows would have added to the tree: least squares on their errors."""
        return float(self.apart @ self.errors / (self.apart @ self.apart))

    @property
    def variance(self) -> float:
        """Of that figure."""
        return float(np.mean(self.errors**2) / (self.apart @ self.apart))

    def answering_as(self, slope: Slope) -> Self:
        """The same with the slope that was published before."""
        return type(self)(
            published=slope, apart=np.clip(self.apart, -slope.half, slope.half), errors=self.errors
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class PlannedSlope:
    """A slope that is asked about: every cell of the collection tree is cut once more, by the column after the last encoded one.

    Attributes:
        published: what is published of it.
        column: which that is.
        centre: float64 [L], mean of g over the public rows of a cell, drawn to that of its side of the middle.
        variance: what public rows leave unknown of b, the multiple of g that private people have to be given.
        drop: how much of the public model's error b is expected to take away, were private people like public ones.
    """

    published: Slope
    column: int
    centre: Floats
    variance: float
    drop: float

    @classmethod
    def of(cls, known: KnownSlope, column: int, cells: NDArray[np.int64], noise: Floats) -> Self:
        """Of what public rows say.

        Args:
            known: the slope.
            column: the one that g is, as encoded.
            cells: int [n], of the public rows; 2 j and 2 j + 1 are the sides of what was one cell.
            noise: float64 [L], variance with which the mean residual of a cell will be seen.
        """
        count = np.bincount(cells, minlength=noise.size)
        side = np.bincount(cells % 2, known.apart, 2) / np.maximum(np.bincount(cells % 2, minlength=2), 1)
        total = np.bincount(cells, known.apart, noise.size) + SIDE_ROWS * np.tile(side, noise.size // 2)
        centre: Floats = total / (count + SIDE_ROWS)
        return cls(
            published=known.published,
            column=column,
            centre=centre,
            variance=known.variance,
            drop=_drop(known, float(np.sum(centre**2 / noise))),
        )


def fit(X: Rows, y: Floats, tree_errors: Floats) -> KnownSlope | None:
    """The line beside a smoothed tree; None where rows are too few, or line and tree never differ.

    Args:
        X, y: encoded public rows [n, d] and labels [n].
        tree_errors: float64 [n], label less the answer of a tree that the row had no part in (`SmoothedTree.residuals`).
    """
    if len(y) < FEWEST_ROWS or len(tree_errors) != len(y):
        return None
    centre = centre_of(y)
    y = y - centre
    line = Linear.fit(X, y)
    trees = line.trees(1.0)
    apart = tree_errors - (y - _held_out(X, y))
    half = float(np.quantile(np.abs(apart), KEPT))
    if not trees or not half > 0:
        return None
    summed = Ensemble.of_trees(trees, np.array([line.offset]))
    published = Slope(trees=replace(summed, offset=summed.offset + centre), half=half)
    found = KnownSlope(published=published, apart=np.clip(apart, -half, half), errors=tree_errors)
    return found if 0.0 < found.middle < 1.0 else None


def of_published(slope: Slope, base: Ensemble, X: Rows, errors: Floats) -> KnownSlope | None:
    """What public rows say of a slope that was published before, where they give none of their own; None without any."""
    apart = slope.apart(base, X) if len(X) == len(errors) else np.empty(0)
    return KnownSlope(published=slope, apart=apart, errors=errors) if np.any(apart) else None


def _held_out(X: Rows, y: Floats) -> Floats:
    """Answers of lines that the row had no part in, from the folds of `public_tree`."""
    fold = np.random.default_rng(0).permutation(len(y)) % FOLDS
    found = np.empty(len(y))
    for k in range(FOLDS):
        is_in = fold != k
        found[~is_in] = Linear.fit(X[is_in], y[is_in])(X[~is_in])
    return found


def _drop(known: KnownSlope, strength: float) -> float:
    """What b is expected to take away where private people are like public ones; nothing where reports would not show it.

    With strength h, reports say b with variance 1 / h. Under the process that they are expected to speak for, b is drawn to 0 by
    1 - B h / (1 + B h); no process with B > s^2 is chosen where the gain does not pay for the component.
    """
    square, best = (known.expected * strength) ** 2 + strength, (0.0, 0.0)
    for tau in TAUS[1:]:
        free = (known.variance + tau) * strength
        gain = 0.5 * (free / strength * square / (1.0 + free) - np.log1p(free)) - NATS_PER_COMPONENT
        left = (known.expected / (1.0 + free)) ** 2 + (free / (1.0 + free)) ** 2 / strength
        best = max(best, (float(gain), float(np.mean(known.apart**2) * (known.expected**2 - left))))
    return best[1]
