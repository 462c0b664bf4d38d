"""Many trees in DuckDB: what a public model says of a row, in the words of `sql`.

What lives here: text, from a row's typed copies to the answers of `Ensemble.predict`. What does not: what is added to them, and
the SELECT around it (`corrected_sql`).

A CASE a node would take DuckDB long to plan where a forest has 100,000 nodes. So all trees stand in lists, read once, and a row
walks down each of them by looking up its node, as it does in `Ensemble.predict`. Inner nodes are 1, 2, ..., leaves -1, -2, ...;
the children of node n are at 2 n - 1 and 2 n.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ldptree.encoding import Encoding, Feature, NumericFeature
from ldptree.models.ensemble import LEAF, Ensemble
from ldptree.models.export.sql import level_of, listed, literal, quote

if TYPE_CHECKING:
    from numpy.typing import NDArray

Columns: TypeAlias = list[tuple[str, str]]
"""Names, each with the expression that it stands for."""

ROW, LEAVES = "ldptree x", "ldptree leaves"
COLUMN, THRESHOLD, CHILD = "ldptree column", "ldptree threshold", "ldptree child"
ROOT, STEP = "ldptree root", "ldptree step"
_A_LINE = 24
"""Numbers of a list that stand on one line of text."""


@dataclass(frozen=True)
class Stages:
    """CTEs, each of which reads the one before.

    Attributes:
        texts: of the CTEs, each with its name.
        last: the name of the last.
    """

    texts: tuple[str, ...]
    last: str

    def then(
        self, name: str, columns: Columns, *, dropped: Sequence[str] = (), beside: str | None = None
    ) -> Stages:
        """With one more, which adds columns to those of the last but the dropped ones, and all rows of `beside`."""
        kept = f"* EXCLUDE ({listed(dropped)})" if dropped else "*"
        source = f"{self.last} CROSS JOIN {beside}" if beside else self.last
        text = f"{name} AS (\n  SELECT {kept},\n         {named(columns)}\n  FROM {source}\n)"
        return Stages((*self.texts, text), name)


def answered(
    before: Stages, trees: Ensemble, encoding: Encoding, names: Mapping[str, str]
) -> tuple[Stages, list[str]]:
    """The answers of `trees.predict`, an expression an output, over the last of the stages that are handed back.

    Args:
        before: stages whose last has the typed copies.
        trees: the public model.
        encoding: how a row is read.
        names: of the typed copies (`sql.names_of`); those of every column that a tree tests are in it.
    """
    used = np.unique(trees.feature[trees.feature != LEAF])
    lists, sums = _lists(trees, used), [(nth("sum", j), _sum(trees, j)) for j in range(trees.n_outputs)]
    columns, answers = _linked(trees, [quote(name) for name, _ in sums])
    made = replace(before, texts=(*before.texts, f"trees AS MATERIALIZED (\n  SELECT {named(lists)}\n)"))
    made = made.then("encoded", [(ROW, _row(encoding, used, names))])
    made = made.then("walked", [(LEAVES, _WALK)], beside="trees")
    made = made.then("added", sums, dropped=[ROW, LEAVES, *(name for name, _ in lists)])
    return (made.then("linked", columns) if columns else made), answers


def named(columns: Columns) -> str:
    """Expressions with their names, for a SELECT."""
    return ",\n         ".join(f"{expression} AS {quote(name)}" for name, expression in columns)


def _row(encoding: Encoding, used: NDArray[np.int32], names: Mapping[str, str]) -> str:
    """The encoded columns that some tree tests, as a list of doubles; NULL where no rule fills a missing value."""
    places = [(feature, place) for feature in encoding.features for place in range(len(feature.names))]
    tested = [places[j] for j in used]
    values = [_encoded(feature, place, quote(names[feature.column])) for feature, place in tested]
    return f"CAST([{', '.join(values)}] AS DOUBLE[])"


def _encoded(feature: Feature, place: int, x: str) -> str:
    """One encoded column of a feature, whose typed copy is x: `Encoding.encode`, as float32 rounds it."""
    if isinstance(feature, NumericFeature):
        if place == 1:
            return f"CAST({x} IS NULL AS DOUBLE)"
        return _scaled(feature, x if feature.fill is None else f"COALESCE({x}, {literal(feature.fill)})")
    if place == len(feature.levels):
        return f"CAST({x} IS NULL AS DOUBLE)"
    found = f"{x} = {level_of(feature, place)}"
    if feature.fill is None and not feature.missing_level:
        return f"CAST({found} AS DOUBLE)"
    return f"CAST(COALESCE({found}, {literal(place == feature.fill)}) AS DOUBLE)"


def _scaled(feature: NumericFeature, x: str) -> str:
    """`ranges.scale`; clipped before it is scaled, which comes to the same and overflows nowhere."""
    low, high = feature.minimum, feature.maximum
    if low == high:
        return f"CASE WHEN {x} IS NULL THEN NULL ELSE 0e0 END"
    inside = f"CASE WHEN {x} < {literal(low)} THEN {literal(low)} WHEN {x} > {literal(high)} THEN {literal(high)} ELSE {x} END"
    if np.isinf(high - low):
        inside, low, high = f"({inside}) / 2e0", low / 2, high / 2
    return f"CAST(({inside} - {literal(low)}) / {literal(high - low)} AS FLOAT)"


def _lists(trees: Ensemble, used: NDArray[np.int32]) -> Columns:
    """The trees as lists."""
    is_leaf = trees.feature == LEAF
    inner = ~is_leaf
    place = np.where(is_leaf, -np.cumsum(is_leaf), np.cumsum(inner))
    child = np.stack([place[trees.left[inner]], place[trees.right[inner]]], axis=1)
    return [
        (COLUMN, _list(np.searchsorted(used, trees.feature[inner]) + 1, "INTEGER")),
        (THRESHOLD, _list(trees.threshold[inner], "DOUBLE")),
        (CHILD, _list(child.ravel(), "INTEGER")),
        (ROOT, _list(place[trees.roots], "INTEGER")),
        (STEP, f"CAST(range({_depth(trees)}) AS INTEGER[])"),
        *((nth("value", j), _list(trees.value[is_leaf, j], "DOUBLE")) for j in range(trees.n_outputs)),
    ]


def _list(numbers: NDArray[Any], kind: str) -> str:
    """Numbers as one text that DuckDB reads as a list: much faster than so many literals."""
    words = [repr(number) for number in numbers.tolist()]
    lines = ",\n".join(", ".join(words[start : start + _A_LINE]) for start in range(0, len(words), _A_LINE))
    return f"CAST('[{lines}]' AS {kind}[])"


def _depth(trees: Ensemble) -> int:
    """Steps that the longest walk takes."""
    steps, at = 0, trees.roots
    while (at := at[trees.feature[at] != LEAF]).size:
        at, steps = np.concatenate([trees.left[at], trees.right[at]]), steps + 1
    return steps


def _step() -> str:
    """Where a row goes from the node it is at; a leaf leads to itself."""
    node, x = quote("ldptree node"), quote(ROW)
    column, threshold, child = quote(COLUMN), quote(THRESHOLD), quote(CHILD)
    is_left = f"CAST({x}[{column}[{node}]] <= {threshold}[{node}] AS INTEGER)"
    return f"CASE WHEN {node} > 0 THEN {child}[2 * {node} - {is_left}] ELSE {node} END"


_WALK = (
    f'list_transform({quote(ROOT)}, lambda "ldptree tree": list_reduce({quote(STEP)}, '
    f'lambda "ldptree node", "ldptree turn": {_step()}, "ldptree tree"))'
)
"""The leaf of every tree that a row comes to."""


def _sum(trees: Ensemble, output: int) -> str:
    """The values of a row's leaves, added to the offset one after the other."""
    values = f'list_transform({quote(LEAVES)}, lambda "ldptree leaf": {quote(nth("value", output))}[-"ldptree leaf"])'
    start = literal(float(trees.offset[output]))
    return f'list_reduce({values}, lambda "ldptree so far", "ldptree value": "ldptree so far" + "ldptree value", {start})'


def _linked(trees: Ensemble, sums: Sequence[str]) -> tuple[Columns, list[str]]:
    """What the link makes of sums: columns that are needed, and of them the answers."""
    if trees.link == "logistic":
        share = f"1e0 / (1e0 + exp(-greatest(least({sums[0]}, 700e0), -700e0)))"
        return [(nth("linked", 1), share)], [f"1e0 - {quote(nth('linked', 1))}", quote(nth("linked", 1))]
    if trees.link == "softmax":
        columns = [
            (nth("linked", j), f"exp({each} - greatest({', '.join(sums)}))") for j, each in enumerate(sums)
        ]
        odds = [quote(name) for name, _ in columns]
        return columns, [f"{each} / ({' + '.join(odds)})" for each in odds]
    return [], list(sums)


def nth(name: str, number: int) -> str:
    """The name of a column that goes again at the end."""
    return f"ldptree {name} {number}"
