"""The released model of HistOfTree, with a value for every cell of a product partition, and its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import DataError
from ldptree.limits import check_spent
from ldptree.models.curves import MOST_PEOPLE
from ldptree.models.description import (
    Cell,
    Condition,
    Description,
    Estimate,
    Evidence,
    Names,
    Statement,
    average_below,
    build_tree,
    find_conditions,
    name_columns,
    name_level,
    share_below,
)
from ldptree.models.effects import columns_of
from ldptree.partition.product import Product
from ldptree.partition.raw import RawTree
from ldptree.partition.tree import LEAF
from ldptree.serialize import Document

if TYPE_CHECKING:
    from ldptree.partition.tree import Partition

Floats = NDArray[np.float64]
_ARRAYS = ("value", "count", "count_sd")
AT_ONCE = 2**22
"""Holders times cells that are written out at a time."""
FEWEST_ROWS, MOST_ROWS_BY_CELLS = 50, 2**27
"""Rows that averages are taken over; rows times cells."""
SIGNIFICANT = 2.0
"""A count that is so many standard deviations of its noise."""
DEEPEST, MOST_CELLS = 7, 400


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class HistOfTreeModel(Document):
    """Read-only; arrays have one entry a cell.

    Attributes:
        encoding: how a raw row becomes a point of [0, 1]^d.
        partition: the cells.
        value: float64 [cells], what is predicted (eq. 9), in the label's unit.
        count: float64 [cells], the unbiased number of holders, the denominator; negative where the noise is.
        count_sd: float64 [cells], standard deviation of its noise in an empty cell; 0 where the count is exact.
        low, high: the range that labels were clipped to.
        label, mechanism: how label and cell were sent; no mechanism where cells depend on nothing protected.
        mask_release: what was sent of the masks.
        epsilon: what each holder spent at most, over both questions.
        n_holders: who answered.

    Raises:
        DataError: the parts do not fit together.
    """

    ESTIMATOR: ClassVar[str] = "histoftree"
    KINDS: ClassVar[tuple[str, ...]] = ("ldptree histoftree model",)

    encoding: Encoding
    partition: Product
    value: Floats
    count: Floats
    count_sd: Floats
    low: float
    high: float
    label: str
    mechanism: str | None
    mask_release: str
    epsilon: float
    n_holders: int

    def __post_init__(self) -> None:
        check_spent("model", self.epsilon, n_holders=self.n_holders)
        columns = max((int(self.partition.tree.feature.max()), *self.partition.histogram.features))
        if columns >= self.encoding.n_encoded:
            raise DataError("model: the partition looks at a column that the encoding does not have")
        for name in _ARRAYS:
            array: Floats = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != (self.partition.n_cells,) or not np.isfinite(array).all():
                raise DataError(f"model: {name} must be {self.partition.n_cells} finite numbers")
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __str__(self) -> str:
        return (
            f"{type(self).__name__} of {len(self.encoding.columns)} features, by {self.n_holders:,} holders at epsilon "
            f"{self.epsilon:g}: {self.partition.n_cells:,} cells"
        )

    def _repr_html_(self) -> str:
        """Return its line, and its answer along each feature, for a notebook."""
        from ldptree.models.curves import draw_alone

        scaled = Encoding(tuple(NumericFeature(name, 0.0, 1.0) for name in self.encoding.names))
        return draw_alone(str(self), replace(self, encoding=scaled), self.encoding)

    def cells(self, raw: Floats) -> NDArray[np.int64]:
        """The cell of each raw row [n, columns], int64 [n]; DataError for other columns or a missing value."""
        encoded = self.encoding.encode(raw)
        if np.isnan(encoded).any():
            raise DataError(
                "rows to predict: a value is missing; fill it from public knowledge, or drop the row"
            )
        return self.partition.apply(encoded.astype(np.float64))

    def predict(self, raw: Floats) -> Floats:
        """Labels, float64 [n]; arguments and errors as `cells`."""
        return np.asarray(self.value[self.cells(raw)])

    @property
    def shares(self) -> Floats:
        """Return cells' estimated shares of the holders, float64 [cells], adding up to 1. Negative ones are 0."""
        held: Floats = np.maximum(self.count, 0.0)
        total = held.sum()
        return held / total if total > 0 else np.full(held.size, 1.0 / held.size)

    @property
    def is_significant(self) -> NDArray[np.bool_]:
        """Cells whose count stands out of its noise, bool [cells]."""
        return np.asarray(self.count > SIGNIFICANT * self.count_sd)

    @property
    def most_rows(self) -> int:
        """Number of rows that averages are taken over."""
        return int(np.clip(MOST_ROWS_BY_CELLS // self.partition.n_cells, FEWEST_ROWS, MOST_PEOPLE))

    def draw_rows(
        self,
        values: Floats,
        protects: NDArray[np.bool_],
        one_hot: Sequence[tuple[int, ...]] = (),
        *,
        seed: int = 0,
    ) -> Floats:
        """Complete rows that stand for the holders, float64 [n, d] in [0, 1], by what is shown and this model alone.

        What holders show is as it is. For what they protect a cell is drawn by the released counts among those they could be
        in; the middle of that cell along the feature stands for it.

        Args:
            values: float64 [n, d], what is shown; not looked at where it is protected.
            protects: bool [n, d].
            one_hot: columns of which at most one is 1; cells say that already.
            seed: of the draws.
        """
        rng, product = np.random.default_rng(seed), self.partition
        size = max(1, AT_ONCE // product.n_cells)
        cells = np.concatenate(
            [
                _draw_cells(self, values[at : at + size], protects[at : at + size], rng)
                for at in range(0, len(values), size)
            ]
        )
        bins, leaves = np.divmod(cells, product.tree.n_leaves)
        histogram = product.histogram
        inside = _find_middles(product.tree, values.shape[1])[leaves]
        digits = bins[:, None] // histogram.places % histogram.bins
        inside[:, list(histogram.features)] = (digits + 0.5) / histogram.bins
        return np.where(protects, inside, values)

    def find_cuts(self, rows: Floats, column: int) -> tuple[Floats, bool]:
        """Ends of the stretches along an encoded column, in [0, 1], and that the model is constant within each."""
        histogram, tree = self.partition.histogram, self.partition.tree
        if column in histogram.features:
            return np.arange(histogram.bins + 1) / histogram.bins, False
        cuts = np.unique(tree.threshold[tree.feature == column])
        return np.array([0.0, *cuts[(cuts > 0) & (cuts < 1)], 1.0]), False

    def is_noise(self, rows: Floats) -> Floats:
        """Return float64 [n], 1 for rows whose answer is that of a cell within its noise, otherwise 0."""
        return np.asarray(~self.is_significant[self.cells(rows)], dtype=np.float64)

    def describe(self, encoding: Encoding, target: str, evidence: Evidence) -> Description:
        """Describe the model in numbers; `encoding` is of raw rows."""
        return describe_histogram(self, encoding, target, evidence)


def _draw_cells(
    model: HistOfTreeModel, values: Floats, protects: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.int64]:
    """A cell each, int64 [m], by the shares of the cells that are possible; evenly where these are all 0."""
    possible = model.partition.candidates(values, protects).matrix()
    weights = possible * model.shares
    empty = weights.sum(axis=1) <= 0
    weights[empty] = possible[empty]
    ends = np.cumsum(weights, axis=1)
    return np.asarray((ends <= (rng.random(len(ends)) * ends[:, -1])[:, None]).sum(axis=1), dtype=np.int64)


def _find_middles(tree: Partition, d: int) -> Floats:
    """The middle of each leaf's box in [0, 1]^d, float64 [leaves, d]."""
    low, high = np.zeros((tree.n_nodes, d)), np.ones((tree.n_nodes, d))
    for node in range(1, tree.n_nodes):  # parents come first
        above = tree.parent[node]
        low[node], high[node] = low[above], high[above]
        feature, threshold = tree.feature[above], tree.threshold[above]
        if tree.left[above] == node:
            high[node, feature] = min(high[node, feature], threshold)
        else:
            low[node, feature] = max(low[node, feature], threshold)
    middles: Floats = (low + high)[tree.feature == LEAF] / 2
    return middles


def describe_histogram(
    model: HistOfTreeModel, encoding: Encoding, target: str, evidence: Evidence
) -> Description:
    """The tree with the average over each leaf's histogram, and the cells that hold most people."""
    product = model.partition
    tree, names = product.tree, evidence.names
    raw = RawTree.of(tree, encoding)
    shares, values = _by_leaf(model.shares, product), _by_leaf(model.value, product)
    of_leaf = (np.maximum(shares, 1e-9) * values).sum(axis=0) / np.maximum(shares, 1e-9).sum(axis=0)
    average = average_below(tree, shares.sum(axis=0), of_leaf[:, None])[:, 0]
    held = share_below(tree, shares.sum(axis=0))
    is_significant = _by_leaf(model.is_significant, product)
    leaves = tree.leaves
    order = np.argsort(-shares.ravel(), kind="stable")[:MOST_CELLS]
    root = build_tree(
        tree,
        raw,
        names,
        held,
        [[Estimate(value=float(average[node]))] for node in range(tree.n_nodes)],
        deepest=DEEPEST,
    )
    cells = tuple(
        Cell(
            path=(
                *find_conditions(tree, raw, int(leaves[at % tree.n_leaves]), names),
                *_find_bins(product, encoding, names, at // tree.n_leaves),
            ),
            share=float(shares.ravel()[at]),
            rests_on="private" if is_significant.ravel()[at] else "noise",
            estimates=(Estimate(value=float(values.ravel()[at])),),
        )
        for at in np.sort(order).tolist()
    )
    columns = name_columns(encoding)
    binned = ", ".join(columns[j] for j in product.histogram.features)
    shown = evidence.shown
    answers = model.predict(np.where(shown.protects, 0.5, shown.values))
    return Description(
        figure="number",
        predicts=(float(answers.min()), float(answers.max())),
        outputs=(target,),
        tree=None if product.n_cells == 1 else root,
        cells=cells,
        statements=(
            Statement(
                kind="partition",
                about=binned,
                figures={
                    "bins": float(product.histogram.bins),
                    "depth": float(tree.max_depth),
                    "cells": float(product.n_cells),
                },
            ),
        ),
    )


def _find_bins(product: Product, encoding: Encoding, names: Names, cell: int) -> tuple[Condition, ...]:
    """Return the bins of a cell of the histogram, one condition a feature."""
    histogram = product.histogram
    columns = [(j, place) for j, group in enumerate(columns_of(encoding)) for place in range(len(group))]
    digits = cell // histogram.places % histogram.bins
    return tuple(
        _find_bin(encoding, *columns[column], int(digit), histogram.bins, names)
        for column, digit in zip(histogram.features, digits, strict=True)
    )


def _find_bin(encoding: Encoding, at: int, place: int, digit: int, bins: int, names: Names) -> Condition:
    feature = encoding.features[at]
    if not isinstance(feature, NumericFeature) or place > 0:
        # a mark is 0 or 1, the lowest bin or the highest; where it is not known, the middle
        if 0 < digit < bins - 1:
            return Condition(column=feature.column)
        return find_mark(encoding, at, place, names, is_so=digit > 0)
    width = feature.maximum - feature.minimum
    low, high = (feature.minimum + k / bins * width for k in (digit, digit + 1))
    return Condition(
        column=feature.column,
        low=None if digit == 0 else low,
        high=None if digit == bins - 1 and digit > 0 else high,
        is_about=True,
    )


def find_mark(encoding: Encoding, at: int, place: int, names: Names, *, is_so: bool = True) -> Condition:
    """Return the condition on its raw column that an encoded column of 0 or 1 stands for."""
    feature = encoding.features[at]
    if isinstance(feature, NumericFeature) or place >= len(feature.levels):
        return Condition(column=feature.column, is_not=not is_so)
    level = name_level(feature.column, feature.levels[place], names)
    return Condition(column=feature.column, levels=(level,), is_not=not is_so)


def _by_leaf(per_cell: NDArray[Any], product: Product) -> NDArray[Any]:
    return per_cell.reshape(product.histogram.n_cells, product.tree.n_leaves)
