"""Write a corrected model as one SELECT in DuckDB, with the public answer, the correction, and both together.

A CASE a node would take DuckDB long to plan where a forest has 100,000 nodes. So all trees stand in lists, read once, and a row
walks down each of them by looking up its node, as it does in `Ensemble.predict`. Inner nodes are 1, 2, ..., leaves -1, -2, ...;
the children of node n are at 2 n - 1 and 2 n.

Values are added in the order of the trees, in double precision, as `predict` adds them: with an identity link every answer is
the model's to the last bit. Logistic and softmax go through DuckDB's exp, and numpy adds more than seven odds in another order:
shares are then within `TOLERANCE` of the model's, and a class is another one only where two shares are that close.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ldptree.encoding import Encoding, Feature, Level, NumericFeature
from ldptree.inference.shares import half_width
from ldptree.models.ensemble import LEAF, Ensemble
from ldptree.models.export.sql import (
    CELL,
    OWN_COLUMNS,
    cell_of,
    labels_of,
    level_of,
    listed,
    literal,
    names_of,
    pick,
    quote,
    typed,
)
from ldptree.partition.raw import RawTree

Floats: TypeAlias = NDArray[np.float64]
Columns: TypeAlias = list[tuple[str, str]]
"""Names, each with the expression that it stands for."""

TOLERANCE = 1e-12

ROW, LEAVES = "ldptree x", "ldptree leaves"
COLUMN, THRESHOLD, CHILD = "ldptree column", "ldptree threshold", "ldptree child"
ROOT, STEP = "ldptree root", "ldptree step"
_A_LINE = 24
"""Numbers of a list that stand on one line of text."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Parts:
    """A corrected model, as text is made of it.

    Attributes:
        tree: the collection tree.
        base: the public model, on encoded rows.
        columns: the raw columns that are read.
        classes: the C labels, class 1 the positive one where there are two; none for a number.
        default: float64 [M], the public part of the answer to a row without a cell.
        correction, sd: float64 [cells, M], what is added, and how unsure that is.
        stumps: two halves, and what is added in cell 1 besides and taken away in cell 0.
        hidden: float64 [2, cells, M], how much further below and above it may be.
        rows: float64 [cells + 1], public rows and reports behind each cell, and behind a row without one.
        least_of_public: the part of a public share that no correction takes away.
        ends: within which numbers stay; None: anywhere.
    """

    tree: RawTree
    base: Ensemble
    columns: Sequence[str]
    classes: tuple[Level, ...]
    default: Floats
    correction: Floats
    stumps: Sequence[tuple[RawTree, float]]
    sd: Floats
    hidden: Floats
    rows: Floats
    least_of_public: float
    ends: tuple[float, float] | None = None

    def within(self, number: str) -> str:
        """A number, moved to the end that it is beyond."""
        if self.ends is None:
            return number
        low, high = map(literal, self.ends)
        return f"greatest(least({number}, {high}), {low})"


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
        text = f"{name} AS (\n  SELECT {kept},\n         {_named(columns)}\n  FROM {source}\n)"
        return Stages((*self.texts, text), name)


def to_sql(model: Parts, *, about: str, table: str, level: float) -> str:
    """A SELECT over `table` that returns its columns and both parts of the model's answer to each row.

    Added columns, of numbers: `prediction`, `mean_lower` and `mean_upper` (as `CorrectedModel.interval`: of the correction with
    probability `level`, without the public model's own error within a cell), `public_prediction`, `correction` and
    `correction_sd`. Of classes: `prediction`, for each class `probability_CLASS`, `lower_CLASS` and `upper_CLASS` (likewise, of
    its share before over two shares are made to add up to 1), `public_prediction` and `public_probability_CLASS`; and
    `correction_CLASS` and `correction_sd_CLASS`, of two classes for
    the positive one alone. A row without a cell, where a value is missing that no rule fills, gets the default
    from both parts, as in `CorrectedModel.predict_parts`. NULL and NaN are missing. The table may have further columns of
    any name; one that is named like an added column stands before it, under the same name.

    Args:
        model: the model's parts.
        about: what the first line says.
        table: the table's or view's name, one identifier.
        level: of the intervals.

    Raises:
        ConfigError: `level` is not between 0 and 1.
    """
    names = names_of(model.columns)
    stages = Stages((f"typed AS (\n  {typed(model.tree.encoding, names, table)}\n)",), "typed")
    halves = [(_nth("half", k), cell_of(tree, names)) for k, (tree, _) in enumerate(model.stumps)]
    stages = stages.then("placed", [(CELL, cell_of(model.tree, names)), *halves])
    stages, public = _answered(stages, model.base, model.tree.encoding, names)
    if len(model.classes) == 2 and len(public) == 2:
        public = public[1:]
    stages = stages.then("parted", _parts(model, public, half_width(level)))
    corrected = [(_nth("corrected", m), _together(model, m)) for m in range(len(public))]
    stages = stages.then("corrected", corrected)
    if model.classes:
        n_classes = len(model.classes)
        stages = stages.then("cut", _cut(len(public))).then("divided", _divided(len(public), n_classes))
        stages = stages.then("raised", _raised(model)).then("shared", _shares(n_classes))
    output = _of_classes(model) if model.classes else _of_numbers(model)
    ctes = ",\n".join(stages.texts)
    return (
        f"-- {about}; at most {len(names)} columns are read.\n"
        f"WITH {ctes}\nSELECT {OWN_COLUMNS},\n         {_named(output)}\nFROM {stages.last}"
    )


def _parts(model: Parts, public: list[str], half: float) -> Columns:
    """Write `CorrectedModel.predict_parts`, with both parts of the outputs, the doubt, and how far below and above the
    ends of the interval are, by `half` times the doubt and what is hidden.
    """
    columns: Columns = []
    beside = "".join(
        f" + CASE {quote(_nth('half', k))} WHEN 1 THEN {literal(shift)} WHEN 0 THEN {literal(-shift)} ELSE 0e0 END"
        for k, (_, shift) in enumerate(model.stumps)
    )
    for m, output in enumerate(public):
        default = literal(float(model.default[m]))
        sd, below, above = (np.append(each[:, m], each[:, m].max()) for each in (model.sd, *model.hidden))
        columns += [
            (
                _nth("public", m),
                model.within(f"CASE WHEN {quote(CELL)} IS NULL THEN {default} ELSE {output} END"),
            ),
            (_nth("correction", m), _pick(np.append(model.correction[:, m], 0.0)) + beside),
            (_nth("sd", m), _pick(sd)),
            (_nth("below", m), _pick(half * sd + below)),
            (_nth("above", m), _pick(half * sd + above)),
        ]
    return columns


def _together(model: Parts, output: int) -> str:
    """`Prediction.corrected`."""
    public, added = quote(_nth("public", output)), quote(_nth("correction", output))
    if not model.classes:
        return model.within(f"{public} + {added}")
    least = literal(model.least_of_public)
    return f"greatest(least({public} + {added}, 1e0 - {least} * (1e0 - {public})), {least} * {public})"


def _cut(n_outputs: int) -> Columns:
    """Both parts' outputs and the interval's ends, cut to a share's range."""
    columns: Columns = []
    for m in range(n_outputs):
        corrected, below, above = (quote(_nth(name, m)) for name in ("corrected", "below", "above"))
        ends = {
            "cut public": quote(_nth("public", m)),
            "cut corrected": corrected,
            "low": f"{corrected} - {below}",
            "high": f"{corrected} + {above}",
        }
        columns += [(_nth(name, m), f"greatest(least({end}, 1e0), 0e0)") for name, end in ends.items()]
    return columns


def _divided(n_outputs: int, n_classes: int) -> Columns:
    """`corrected.shares_of` of both parts."""
    columns: Columns = []
    for part in ("corrected", "public"):
        kept = [quote(_nth(f"cut {part}", m)) for m in range(n_outputs)]
        if n_outputs == 1:
            shares = [f"1e0 - {kept[0]}", kept[0]]
        else:
            total, even = f"({' + '.join(kept)})", literal(1.0 / n_classes)
            shares = [f"CASE WHEN {total} > 0 THEN {each} / {total} ELSE {even} END" for each in kept]
        columns += [(_nth(f"divided {part}", k), share) for k, share in enumerate(shares)]
    return columns


def _raised(model: Parts) -> Columns:
    """The larger one of each share and the least that it is (`shares.raised`)."""
    n_classes = len(model.classes)
    least = _pick(1.0 / (np.maximum(model.rows, 1.0) + n_classes))
    return [
        (_nth(f"raised {part}", k), f"greatest({quote(_nth(f'divided {part}', k))}, {least})")
        for part in ("corrected", "public")
        for k in range(n_classes)
    ]


def _shares(n_classes: int) -> Columns:
    """Chances that add up to 1, of both parts."""
    columns: Columns = []
    for part in ("corrected", "public"):
        kept = [quote(_nth(f"raised {part}", k)) for k in range(n_classes)]
        total = f"({' + '.join(kept)})"
        columns += [(_nth(f"{part} share", k), f"{each} / {total}") for k, each in enumerate(kept)]
    return columns


def _of_numbers(model: Parts) -> Columns:
    """The columns that are handed out where the label is a number."""
    corrected, below, above = (quote(_nth(name, 0)) for name in ("corrected", "below", "above"))
    return [
        ("prediction", corrected),
        ("mean_lower", model.within(f"{corrected} - {below}")),
        ("mean_upper", model.within(f"{corrected} + {above}")),
        ("public_prediction", quote(_nth("public", 0))),
        ("correction", quote(_nth("correction", 0))),
        ("correction_sd", quote(_nth("sd", 0))),
    ]


def _of_classes(model: Parts) -> Columns:
    """The columns that are handed out where the label is a class."""
    is_two = len(model.classes) == 2
    low, high = ([quote(_nth(end, m)) for m in range(len(model.default))] for end in ("low", "high"))
    if is_two:
        low, high = [f"1e0 - {high[0]}", *low], [f"1e0 - {low[0]}", *high]
    columns: Columns = [("prediction", _decided(model, "corrected"))]
    for k, name in enumerate(model.classes):
        share = quote(_nth("corrected share", k))
        columns += [(f"probability_{name}", share), (f"lower_{name}", low[k]), (f"upper_{name}", high[k])]
    columns.append(("public_prediction", _decided(model, "public")))
    for k, name in enumerate(model.classes):
        columns.append((f"public_probability_{name}", quote(_nth("public share", k))))
    for m, name in enumerate(model.classes[1:] if is_two else model.classes):
        columns += [
            (f"correction_{name}", quote(_nth("correction", m))),
            (f"correction_sd_{name}", quote(_nth("sd", m))),
        ]
    return columns


def _decided(model: Parts, part: str) -> str:
    """The class with the largest share, the first of several."""
    shares = ", ".join(quote(_nth(f"{part} share", k)) for k in range(len(model.classes)))
    return f"[{', '.join(labels_of(model.classes))}][list_position([{shares}], greatest({shares}))]"


def _pick(values: Floats) -> str:
    return pick([literal(float(v)) for v in values])


def _answered(
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
    lists, sums = _lists(trees, used), [(_nth("sum", j), _sum(trees, j)) for j in range(trees.n_outputs)]
    columns, answers = _linked(trees, [quote(name) for name, _ in sums])
    made = replace(before, texts=(*before.texts, f"trees AS MATERIALIZED (\n  SELECT {_named(lists)}\n)"))
    made = made.then("encoded", [(ROW, _row(encoding, used, names))])
    made = made.then("walked", [(LEAVES, _WALK)], beside="trees")
    made = made.then("added", sums, dropped=[ROW, LEAVES, *(name for name, _ in lists)])
    return (made.then("linked", columns) if columns else made), answers


def _named(columns: Columns) -> str:
    """Expressions with their names, for a SELECT."""
    return ",\n         ".join(f"{expression} AS {quote(name)}" for name, expression in columns)


def _row(encoding: Encoding, used: NDArray[np.int32], names: Mapping[str, str]) -> str:
    """The encoded columns that some tree tests, as a list of doubles; NULL where no rule fills a missing value."""
    places = [(feature, place) for feature in encoding.features for place in range(len(feature.names))]
    tested = [places[j] for j in used]
    values = [_encoded(feature, place, quote(names[feature.column])) for feature, place in tested]
    return f"CAST([{', '.join(values)}] AS DOUBLE[])"


def _encoded(feature: Feature, place: int, x: str) -> str:
    """Return one encoded column of a feature, whose typed copy is x, as `Encoding.encode` rounds it to float32."""
    if isinstance(feature, NumericFeature):
        if place == 1:
            return f"CAST({x} IS NULL AS DOUBLE)"
        return _scaled(feature, x if feature.fill is None else f"COALESCE({x}, {literal(feature.fill)})")
    if place == len(feature.levels):
        return f"CAST({x} IS NULL AS DOUBLE)"
    test = f"{x} = {level_of(feature, place)}"
    if feature.fill is None and not feature.missing_level:
        return f"CAST({test} AS DOUBLE)"
    return f"CAST(COALESCE({test}, {literal(place == feature.fill)}) AS DOUBLE)"


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
        *((_nth("value", j), _list(trees.value[is_leaf, j], "DOUBLE")) for j in range(trees.n_outputs)),
    ]


def _list(numbers: NDArray[Any], kind: str) -> str:
    """Write numbers as one text that DuckDB reads as a list, which is much faster than so many literals."""
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
    """Return the next node of a row; a leaf leads to itself."""
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
    values = f'list_transform({quote(LEAVES)}, lambda "ldptree leaf": {quote(_nth("value", output))}[-"ldptree leaf"])'
    start = literal(float(trees.offset[output]))
    return f'list_reduce({values}, lambda "ldptree so far", "ldptree value": "ldptree so far" + "ldptree value", {start})'


def _linked(trees: Ensemble, sums: Sequence[str]) -> tuple[Columns, list[str]]:
    """Apply the link to sums, and return columns that are needed and, of them, the answers."""
    if trees.link == "logistic":
        share = f"1e0 / (1e0 + exp(-greatest(least({sums[0]}, 700e0), -700e0)))"
        return [(_nth("linked", 1), share)], [f"1e0 - {quote(_nth('linked', 1))}", quote(_nth("linked", 1))]
    if trees.link == "softmax":
        columns = [
            (_nth("linked", j), f"exp({each} - greatest({', '.join(sums)}))") for j, each in enumerate(sums)
        ]
        odds = [quote(name) for name, _ in columns]
        return columns, [f"{each} / ({' + '.join(odds)})" for each in odds]
    return [], list(sums)


def _nth(name: str, number: int) -> str:
    """The name of a column that goes again at the end."""
    return f"ldptree {name} {number}"
