"""A forest and a straight line side by side, as trees: the public model for labels that are numbers.

What lives here: the linear part, how much of it is taken, and all of it as one list of trees. What does not: the forests
themselves, and the size in a protocol (`public_fit`).

    f = (1 - w) F + w (L + G)

F is a forest on the labels, L a ridge regression, G a forest on what L leaves; w in [0, 1] is least squares on answers to rows of
other folds. L is a sum of one function a column with at most 2 `STEPS` steps, so that it is trees as well: what carries, checks,
runs and exports a forest does so here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.models.ensemble import LEAF, Ensemble, rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Rows = NDArray[np.float32]
    Tree = tuple[NDArray[np.int64], Floats, NDArray[np.int64], NDArray[np.int64], Floats]
    Grow = Callable[[Rows, Floats, int], Ensemble]

STEPS = 32
"""Steps of a column: as many at equal distances, as many with equally many public rows."""
FOLDS = 5
TREES_OF_A_FOLD = 40
FEWEST_ROWS = 2 * FOLDS
"""Public rows below which there is a forest alone."""
PENALTIES = tuple(float(v) for v in np.logspace(-4, 2, 13))
"""Ridge penalties in public rows, for columns of variance 1; the best by leaving one row out is taken."""


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
        found = [_steps(column.astype(np.float64)) for column in X.T]
        return cls(tuple(f[0] for f in found), tuple(f[1] for f in found))

    def __call__(self, X: Rows) -> Floats:
        """float64 [n, d] of encoded rows."""
        pairs = zip(X.T, self.limits, self.values, strict=True)
        return np.stack([v[np.searchsorted(limits, x.astype(np.float64))] for x, limits, v in pairs], axis=1)


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
        from sklearn.linear_model import RidgeCV

        stairs = StepTransform.of(X)
        Z = stairs(X)
        middle, spread = Z.mean(axis=0), Z.std(axis=0)
        unit = np.where(spread > 0, spread, np.inf)
        ridge = RidgeCV(alphas=[len(y) * p for p in PENALTIES]).fit((Z - middle) / unit, y)
        slope: Floats = ridge.coef_ / unit
        return cls(stairs, slope, float(ridge.intercept_ - middle @ slope))

    def __call__(self, X: Rows) -> Floats:
        """float64 [n] of encoded rows [n, d]."""
        return self.offset + self.stairs(X) @ self.slope

    def trees(self, weight: float) -> list[Tree]:
        """One tree for each column that is used, its values times `weight`."""
        steps = zip(self.stairs.limits, self.stairs.values, self.slope, strict=True)
        return [
            _tree(column, limits, weight * slope * values)
            for column, (limits, values, slope) in enumerate(steps)
            if limits.size and slope
        ]


def _tree(column: int, limits: Floats, values: Floats) -> Tree:
    """The balanced tree of a function with limits.size + 1 steps of one column: parents before children."""
    feature: list[int] = []
    threshold: list[float] = []
    children: tuple[list[int], list[int]] = ([], [])
    value: list[list[float]] = []
    todo = [(0, values.size, -1, 0)]
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
        value.append([float(values[low]) if is_leaf else 0.0])
        if not is_leaf:
            todo += [(middle, high, node, 1), (low, middle, node, 0)]
    left, right = (np.array(ids) for ids in children)
    return np.array(feature), np.array(threshold), left, right, np.array(value)


@dataclass(frozen=True, eq=False)
class BlendWeight:
    """How much of the linear part is taken.

    Attributes:
        weight: w.
        errors: float64 [n], label less the answer of a blend that the row had no part in but for w.
    """

    weight: float
    errors: Floats


def weigh(X: Rows, y: Floats, grow: Grow) -> BlendWeight:
    """w by least squares on rows of other folds; the same rows, the same w.

    Args:
        X, y: encoded public rows [n, d] and labels [n], n at least `FEWEST_ROWS`.
        grow: a forest of so many trees on rows and labels.
    """
    fold = np.random.default_rng(0).permutation(len(y)) % FOLDS
    plain, bent = np.empty(len(y)), np.empty(len(y))
    for k in range(FOLDS):
        is_in = fold != k
        rows, labels, others = X[is_in], y[is_in], X[~is_in]
        linear = Linear.fit(rows, labels)
        plain[~is_in] = grow(rows, labels, TREES_OF_A_FOLD).predict(others)[:, 0]
        rest = grow(rows, labels - linear(rows), TREES_OF_A_FOLD).predict(others)[:, 0]
        bent[~is_in] = linear(others) + rest
    apart = bent - plain
    size = float(apart @ apart)
    weight = float(np.clip(apart @ (y - plain) / size, 0.0, 1.0)) if size > 0 else 0.0
    return BlendWeight(weight, y - plain - weight * apart)


def blended(X: Rows, y: Floats, weight: float, n_trees: int, grow: Grow) -> Ensemble:
    """The blend on encoded public rows, with n_trees trees of forests in all."""
    if weight == 0.0:
        return grow(X, y, n_trees)
    linear = Linear.fit(X, y)
    half = n_trees if weight == 1.0 else n_trees // 2
    parts = [(weight, grow(X, y - linear(X), half))]
    if weight < 1.0:
        parts.insert(0, (1.0 - weight, grow(X, y, n_trees - half)))
    offset = np.array([weight * linear.offset])
    trees = linear.trees(weight)
    line = [Ensemble.of_trees(trees, np.zeros(1))] if trees else []
    return _side_by_side([*parts, *((1.0, part) for part in line)], offset)


def _side_by_side(parts: Sequence[tuple[float, Ensemble]], offset: Floats) -> Ensemble:
    """All trees of the parts, values times the part's weight and rounded again."""
    starts = np.cumsum([0, *(part.n_nodes for _, part in parts)])

    def moved(name: str) -> NDArray[np.int32]:
        ids = [
            np.where(getattr(p, name) < 0, LEAF, getattr(p, name) + s)
            for (_, p), s in zip(parts, starts, strict=False)
        ]
        return np.concatenate(ids).astype(np.int32)

    return Ensemble(
        feature=np.concatenate([part.feature for _, part in parts]),
        threshold=np.concatenate([part.threshold for _, part in parts]),
        left=moved("left"),
        right=moved("right"),
        value=np.concatenate([rounded(weight * part.value) for weight, part in parts]),
        roots=moved("roots"),
        offset=rounded(offset + sum(weight * part.offset for weight, part in parts)),
    )
