"""A ridge regression whose columns are stairs, so that it is a list of trees like any other public model.

    L(x) = offset + sum_j slope_j s_j(x_j)

s_j has at most 2 `STEPS` steps: what carries, checks, runs and exports a forest does so here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.models.ensemble import LEAF
from ldptree.rounding import round_digits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Rows = NDArray[np.float32]
    Tree = tuple[NDArray[np.int64], Floats, NDArray[np.int64], NDArray[np.int64], Floats]

STEPS = 32
"""Steps of a column, as many at equal distances, as many with equally many public rows."""
PENALTIES = tuple(float(v) for v in np.logspace(-4, 2, 7))
"""Ridge penalties in public rows, for columns of variance 1; the best by leaving one row out is taken."""
MOST_LEFT_OUT = 5_000
"""Rows that the penalty is chosen by where there are more."""


@dataclass(frozen=True, eq=False)
class StepTransform:
    """Columns whose values are replaced by one value a step.

    Attributes:
        limits: of each column, ascending: step k holds limits[k - 1] < x <= limits[k].
        values: of each column, one a step: the mean of its public rows, or its middle where there are none.
    """

    limits: tuple[Floats, ...]
    values: tuple[Floats, ...]

    @classmethod
    def of(cls, X: Rows) -> StepTransform:
        """Of encoded public rows [n, d], n >= 1; a column with one value has one step."""
        steps = [_steps(column.astype(np.float64)) for column in X.T]
        return cls(tuple(f[0] for f in steps), tuple(f[1] for f in steps))

    def __call__(self, X: Rows) -> Floats:
        """float64 [n, d] of encoded rows."""
        transformed = np.empty(X.shape, dtype=np.float64)  # many rows are not held twice
        for j, (limits, values) in enumerate(zip(self.limits, self.values, strict=True)):
            transformed[:, j] = values[np.searchsorted(limits, X[:, j].astype(np.float64))]
        return transformed


def _draw(n: int) -> NDArray[np.int64]:
    """`MOST_LEFT_OUT` of n rows, the same each time."""
    return np.sort(np.random.default_rng(0).choice(n, MOST_LEFT_OUT, replace=False))


def _steps(x: Floats) -> tuple[Floats, Floats]:
    """Limits and values of one column. Limits lie between values that occur, where an encoded row cannot touch them."""
    seen = np.unique(x)
    between = (seen[1:] + seen[:-1]) / 2
    parts = np.arange(1, STEPS) / STEPS
    wanted = np.concatenate([np.quantile(x, parts), seen[0] + parts * (seen[-1] - seen[0])])
    limits = np.unique(between[np.searchsorted(between, wanted[wanted < between.max(initial=-np.inf)])])
    step = np.searchsorted(limits, x)
    return limits, np.bincount(step, x, limits.size + 1) / np.bincount(step, minlength=limits.size + 1)


@dataclass(frozen=True, eq=False)
class Linear:
    """A ridge regression on stairs.

    Attributes:
        stairs: of the columns.
        slope: float64 [d], 0 for a column with one value.
        offset: the answer where all values are 0.
    """

    stairs: StepTransform
    slope: Floats
    offset: float

    @classmethod
    def fit(cls, X: Rows, y: Floats) -> Linear:
        """On encoded public rows [n, d] with labels [n], n >= 2."""
        from sklearn.linear_model import Ridge, RidgeCV
        from threadpoolctl import threadpool_limits

        stairs = StepTransform.of(X)
        Z = stairs(X)
        middle, spread = Z.mean(axis=0), Z.std(axis=0)
        Z -= middle
        Z /= np.where(spread > 0, spread, np.inf)
        some = slice(None) if len(y) <= MOST_LEFT_OUT else _draw(len(y))
        with threadpool_limits(1, "blas"):  # more threads cost more than they save
            ridge = RidgeCV(alphas=[len(y[some]) * p for p in PENALTIES]).fit(Z[some], y[some])
            if len(y) > MOST_LEFT_OUT:
                ridge = Ridge(alpha=ridge.alpha_ / MOST_LEFT_OUT * len(y), copy_X=False).fit(Z, y)
        unit = np.where(spread > 0, spread, np.inf)
        slope = round_digits(ridge.coef_ / unit)
        return cls(stairs, slope, float(round_digits(ridge.intercept_ - middle @ slope)))

    def __call__(self, X: Rows) -> Floats:
        """float64 [n] of encoded rows [n, d]."""
        return self.offset + self.stairs(X) @ self.slope

    def trees(self) -> list[Tree]:
        """One tree for each column that is used."""
        steps = zip(self.stairs.limits, self.stairs.values, self.slope, strict=True)
        return [
            tree_of_steps(column, limits, (slope * values)[:, None])
            for column, (limits, values, slope) in enumerate(steps)
            if limits.size and slope
        ]


def tree_of_steps(column: int, limits: Floats, values: Floats) -> Tree:
    """Return the balanced tree of a function of one column, parents before children; values [limits.size + 1, outputs]."""
    feature: list[int] = []
    threshold: list[float] = []
    children: tuple[list[int], list[int]] = ([], [])
    value: list[Floats] = []
    todo = [(0, len(values), -1, 0)]
    while todo:
        low, high, parent, side = todo.pop()
        node, middle = len(feature), (low + high) // 2
        if parent >= 0:
            children[side][parent] = node
        is_leaf = high - low == 1
        feature.append(LEAF if is_leaf else column)
        threshold.append(0.0 if is_leaf else float(limits[middle - 1]))
        for ids in children:
            ids.append(LEAF)
        value.append(values[low] if is_leaf else np.zeros_like(values[low]))
        if not is_leaf:
            todo += [(middle, high, node, 1), (low, middle, node, 0)]
    left, right = (np.array(ids) for ids in children)
    return np.array(feature), np.array(threshold), left, right, np.array(value)
