"""A released model described in numbers, with its tree, its cells, curves along features, and other findings.

Every model has `describe(evidence) -> Description`. A description has no sentence and no layout; figures are in the label's unit,
shares run from 0 to 1, and every one of them is post-processing of what the model and its totals say already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ldptree.encoding import Encoding, NumericFeature
from ldptree.models.effects import Piece

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.partition.raw import RawTree
    from ldptree.partition.tree import Partition

    Floats = NDArray[np.float64]

Figure = Literal["share", "number", "correction"]
"""Estimates of a description, which are shares of classes, a number, or what is added to a public model."""
Basis = Literal["private", "public", "both", "neighbours", "noise"]
"""Evidence for an estimate. "neighbours" are other cells, "noise" means a count within its own noise."""
Names = Mapping[str, Mapping[str, str]]
"""Of a column, what its codes are called."""
CLEAR = 2.0
"""Standard deviations from 0 at which an estimate has a direction."""
SLIGHT = 0.1
"""What is hidden is no end of its own up to this part of the error."""
EMPTY = 1e-9
"""Least share of a cell that the noise left with none, as its parent needs an average."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The evidence that a model is described beside, which is public artifacts and the totals that it was fitted on.

    Attributes:
        names: what codes of columns are called.
        totals: of the question, or of each output's.
        asked: the partition that reports were asked about.
        public_counts: int [cells, classes], public rows, where the label is a class.
        public: what public rows say of a public model that is corrected.
        rows: float32 [n, d], the public rows, encoded.
        shown: what everybody can see, where some features are public.
        along: strengths and curves, where they were taken beforehand.
        label_range: ends of the labels; None where the model knows them.
    """

    names: Names = field(default_factory=dict)
    totals: Sequence[Any] = ()
    asked: Partition | None = None
    public_counts: NDArray[np.int64] | None = None
    public: Any = None
    rows: NDArray[np.float32] | None = None
    shown: Any = None
    along: Any = None
    label_range: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A figure and its standard deviation; None where it is not known.

    `below` and `above`: how much further than that the truth may be, where clipping hides it.
    """

    value: float
    sd: float | None = None
    below: float = 0.0
    above: float = 0.0

    @property
    def is_clear(self) -> bool:
        """Return whether its sign is known, as it is not 0 and at least `CLEAR` standard deviations from it."""
        return self.value != 0 and self.sd is not None and abs(self.value) >= CLEAR * self.sd

    @property
    def ends(self) -> tuple[float, float]:
        """Return the ends of the interval that holds the truth, as far as it is known. They are `error` to each side,
        else `CLEAR` standard deviations and what is hidden there.
        """
        if self.error is not None:
            return self.value - self.error, self.value + self.error
        reach = CLEAR * (self.sd or 0.0)
        return self.value - reach - self.below, self.value + reach + self.above

    @property
    def error(self) -> float | None:
        """Distance of either end; None where that is not known, or more to one side by over a tenth."""
        if self.sd is None or max(self.below, self.above) > SLIGHT * CLEAR * self.sd:
            return None
        return CLEAR * self.sd + max(self.below, self.above)

    @property
    def strength(self) -> float:
        """Standard deviations from 0; 0 where the figure is 0."""
        return 0.0 if self.value == 0 else abs(self.value) / max(self.sd or 0.0, 1e-300)


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A condition on one column, for a stretch of numbers, levels that it has or has not, or whether it is known.

    Attributes:
        column: the raw column.
        low, high: numbers above low up to high; None where the stretch has no such end.
        levels: what its value is called.
        is_not: whether it is none of the levels; with no level, whether the value is known.
        is_about: whether the ends are rounded.
    """

    column: str
    low: float | None = None
    high: float | None = None
    levels: tuple[str, ...] = ()
    is_not: bool = False
    is_about: bool = False


class Estimated:
    """Something with an estimate for each output of the model."""

    estimates: tuple[Estimate, ...]

    @property
    def clearest(self) -> int:
        """The first output whose estimate is furthest from 0 in standard deviations."""
        outputs = range(len(self.estimates))
        return max(outputs, key=lambda output: (self.estimates[output].strength, -output))

    @property
    def is_clear(self) -> bool:
        """True if that estimate is clear."""
        return self.estimates[self.clearest].is_clear


@dataclass(frozen=True, kw_only=True)
class Cell(Estimated):
    """One cell, with one estimate for each output of the model.

    Attributes:
        path: the conditions that lead to it.
        share, public_share: of the private people (estimated) and of the public rows, 0 to 1.
        rests_on: what the estimates chiefly rest on.
        private_weight: share of the evidence that private reports bring; None where it is not defined.
        estimates: what is believed: shares of classes, a number, or corrections.
        reports: the same by the reports of this cell alone; None where they say nothing.
        public: the same by the public rows of this cell alone, or what the public model says there; None without any.
        differences: private less public, where that was learned; None of an output where none was found.
        answers: the corrected model's mean answer over the public rows.
        decision: the class that is predicted; "" where the label is a number.
    """

    path: tuple[Condition, ...]
    share: float
    rests_on: Basis
    estimates: tuple[Estimate, ...]
    public_share: float | None = None
    private_weight: float | None = None
    reports: tuple[Estimate | None, ...] = ()
    public: tuple[Estimate | None, ...] = ()
    differences: tuple[Estimate | None, ...] = ()
    answers: tuple[float, ...] = ()
    decision: str = ""


@dataclass(frozen=True, kw_only=True)
class Node(Estimated):
    """One node of the tree; the root holds the others.

    Attributes:
        conditions: what leads here from the parent; () at the root.
        cells: cells at or below it.
        share: estimated share of the private people below.
        estimates: as of a cell; at an inner node averages over the people below.
        cell: its place among the cells; None where it is none of them.
        decision: as of a cell.
        children: two, or none.
    """

    conditions: tuple[Condition, ...]
    cells: int
    share: float
    estimates: tuple[Estimate, ...]
    cell: int | None = None
    decision: str = ""
    children: tuple[Node, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """Values of a column that the model takes alike, and its answer there.

    Attributes:
        name: what a category's value is called; "" for a stretch of numbers.
        low, high: ends of the stretch; None for a category's value.
        value, sd: the answer averaged over the other columns, and its standard deviation.
        public: the same of public rows alone.
    """

    name: str
    low: float | None
    high: float | None
    value: float
    sd: float | None = None
    public: float | None = None


@dataclass(frozen=True, kw_only=True)
class CurveLine:
    """The model's answer along one column (partial dependence).

    Attributes:
        column: the raw column.
        strength: its share of the variance of the answers.
        points: stretches from low to high, then categories.
        is_smooth: whether the answer varies within stretches, so that it is read at their middles.
        in_noise: the largest share, over the points, of averaged answers that rest on counts within their noise.
    """

    column: str
    strength: float
    points: tuple[CurvePoint, ...]
    is_smooth: bool = False
    in_noise: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One more finding, with its kind, its subject, and its figures by name.

    Statements of a kind have the same figures: together they are a table.
    """

    kind: str
    about: str = ""
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Description:
    """All that a page knows of a model.

    Attributes:
        figure: what the estimates are.
        outputs: what each estimate is of: classes, or the label's column.
        tree: its root; None where the model is none.
        cells: in the tree's order.
        curves: along the strongest columns, the strongest first.
        statements: other findings.
        differences: of each output, private less public over all private people; () where it was not learned.
        is_found: whether the reports speak for a difference; None where that was not asked.
        is_particular: whether it is of private people in particular; None where that is not known.
        chance_alike: how likely it would be found so were it of everybody; None where that is not known.
        chance: how likely noise alone would differ so much; None where it is not known.
        says: the model's own line on what it found.
        spread: a typical difference between two labels, where the label is a number.
        predicts: the least and the largest answer over what is shown; () where that is not known.
    """

    figure: Figure
    outputs: tuple[str, ...]
    tree: Node | None = None
    cells: tuple[Cell, ...] = ()
    curves: tuple[CurveLine, ...] = ()
    statements: tuple[Statement, ...] = ()
    differences: tuple[Estimate, ...] = ()
    is_found: bool | None = None
    is_particular: bool | None = None
    chance_alike: float | None = None
    chance: float | None = None
    says: str = ""
    spread: float = 1.0
    predicts: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError where cells and outputs do not fit each other."""
        if any(len(cell.estimates) != len(self.outputs) for cell in self.cells):
            raise ValueError(f"every cell needs one estimate for each of the outputs {self.outputs}")

    def of_kind(self, kind: str) -> tuple[Statement, ...]:
        """The statements of a kind."""
        return tuple(statement for statement in self.statements if statement.kind == kind)


def name_level(column: str, value: object, names: Names) -> str:
    """Name a value of a column."""
    return names.get(column, {}).get(str(value), str(value))


def name_piece(column: str, piece: Piece, names: Names) -> str:
    """Name a piece of a curve; "" for a stretch of numbers."""
    if piece.is_missing:
        return "missing"
    if piece.is_other:
        return "any other"
    return "" if piece.level is None else name_level(column, piece.level, names)


def find_conditions(
    tree: Partition, raw: RawTree, node: int, names: Names, *, only_last: bool = False
) -> tuple[Condition, ...]:
    """The conditions that lead to a node from the root, or from its parent (`only_last`), merged column by column.

    Of two known levels what is not one is called the other.
    """
    numbers: dict[str, tuple[float | None, float | None]] = {}
    levels: dict[str, str] = {}
    excluded: dict[str, list[str]] = {}
    other: dict[str, str] = {}
    known: dict[str, bool] = {}
    order: dict[str, None] = {}
    while (above := int(tree.parent[node])) >= 0:
        is_left = int(tree.left[above]) == node
        feature = raw.encoding.features[raw.column[above]]
        column = feature.column
        order = {column: None} | order
        threshold = float(raw.threshold[above])
        if raw.level[above] >= 0 and not isinstance(feature, NumericFeature):
            level = name_level(column, feature.levels[raw.level[above]], names)
            if is_left:
                excluded.setdefault(column, []).append(level)
                if len(feature.levels) == 2 and not feature.missing_level:
                    other[column] = name_level(column, feature.levels[1 - raw.level[above]], names)
            else:
                levels.setdefault(column, level)
        elif np.isfinite(threshold):
            low, high = numbers.get(column, (None, None))
            if is_left:
                high = threshold if high is None else min(high, threshold)
            else:
                low = threshold if low is None else max(low, threshold)
            numbers[column] = low, high
        else:
            known.setdefault(column, bool(np.isposinf(threshold) == is_left))
        node = above
        if only_last:
            break
    conditions: list[Condition] = []
    for column in order:
        if column in numbers:
            low, high = numbers[column]
            conditions.append(Condition(column=column, low=low, high=high))
        if column in levels:
            conditions.append(Condition(column=column, levels=(levels[column],)))
        elif column in other and len(excluded[column]) == 1:
            conditions.append(Condition(column=column, levels=(other[column],)))
        elif column in excluded:
            conditions.append(Condition(column=column, levels=tuple(excluded[column]), is_not=True))
        if column in known:
            conditions.append(Condition(column=column, is_not=known[column]))
    return tuple(conditions)


def share_below(tree: Partition, counts: ArrayLike) -> Floats:
    """Share of all people below each node, [nodes], from noisy counts [cells] made non-negative; 1 at the root."""
    held = np.maximum(np.asarray(counts, dtype=np.float64), 0.0)
    total = held.sum()
    per_cell = held / total if total > 0 else np.full(tree.n_leaves, 1 / tree.n_leaves)
    cells, nodes = tree.paths()
    return np.bincount(nodes, weights=per_cell[cells], minlength=tree.n_nodes).astype(np.float64)


def average_below(tree: Partition, weights: Floats, values: Floats) -> Floats:
    """Averages [nodes, M] of the values [cells, M] of the cells below each node, by weights [cells]."""
    cells, nodes = tree.paths()
    held = np.maximum(weights, EMPTY)
    total = np.bincount(nodes, weights=held[cells], minlength=tree.n_nodes)
    sums = [np.bincount(nodes, weights=(held * column)[cells], minlength=tree.n_nodes) for column in values.T]
    return np.asarray(np.stack(sums, axis=1) / total[:, None])


def build_tree(
    tree: Partition,
    raw: RawTree,
    names: Names,
    shares: Floats,
    estimates: Sequence[Sequence[Estimate]],
    decisions: Sequence[str] = (),
    deepest: int | None = None,
) -> Node:
    """The root of a tree from shares [nodes] and estimates of every node; below `deepest` nothing is described."""
    below = np.bincount(tree.paths()[1], minlength=tree.n_nodes)
    places = {int(node): cell for cell, node in enumerate(tree.leaves)}
    made: dict[int, Node] = {}
    for node in np.argsort(-tree.depth, kind="stable").tolist():
        is_end = node in places or (deepest is not None and tree.depth[node] >= deepest)
        children = () if is_end else (int(tree.left[node]), int(tree.right[node]))
        made[node] = Node(
            conditions=() if node == 0 else find_conditions(tree, raw, node, names, only_last=True),
            cells=int(below[node]),
            share=float(shares[node]),
            estimates=tuple(estimates[node]),
            cell=places.get(node),
            decision=decisions[node] if decisions else "",
            children=tuple(made[child] for child in children),
        )
    return made[0]


def describe_strengths(strengths: Mapping[str, float]) -> tuple[Statement, ...]:
    """Describe the strength of every raw column, the strongest first, by its share of the variance of the answers.
    Return nothing if they are all alike.
    """
    if not any(strengths.values()):
        return ()
    strongest = sorted(strengths.items(), key=lambda pair: -pair[1])
    return tuple(Statement(kind="strength", about=name, figures={"part": part}) for name, part in strongest)


def name_columns(encoding: Encoding) -> list[str]:
    """Name each encoded column, such as "size", or "kind is wild"."""
    texts = []
    for feature in encoding.features:
        column = feature.column.replace("_", " ")
        for name in feature.names:
            level = name.removeprefix(feature.column).lstrip(" =:_")
            is_mark = not isinstance(feature, NumericFeature) and bool(level)
            texts.append(f"{column} is {level}" if is_mark else column)
    return texts
