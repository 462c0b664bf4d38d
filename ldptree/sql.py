"""The model as one SELECT that scores a table inside DuckDB, row for row as its `predict` does.

What lives here: text. What does not: running it; nothing here connects to a database.

The table has the raw columns under their own names. Every name and every text from data is quoted. Numbers
are written with an exponent, which DuckDB reads as double precision, not as a decimal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ldptree.encoding import CategoricalFeature, Feature, Level, NumericFeature
from ldptree.partition.raw import LEFT, STOP
from ldptree.regression import RegressionModel

if TYPE_CHECKING:
    from ldptree.model import Model
    from ldptree.tree_model import TreeModel

CELL = "ldptree cell"


def quote(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: Level) -> str:
    """A text, number or truth value as an SQL literal; numbers that are not whole as double precision."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        # DuckDB keeps a text whole only up to a NUL character, so that one is spelt out.
        return " || chr(0) || ".join("'" + part.replace("'", "''") + "'" for part in value.split("\0"))
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return f"CAST('{value}' AS DOUBLE)"
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def to_sql(model: Model | RegressionModel, table: str = "data", level: float = 0.9) -> str:
    """A SELECT over `table` that returns its columns and the model's answer to each row.

    Added columns, of classes: `prediction` (a class), and for each class `probability_CLASS`, and `lower_CLASS` and
    `upper_CLASS`, the ends of the interval that holds its share with probability `level`. Of numbers: `prediction`, and
    `lower` and `upper`, those of the interval that holds the mean of its cell. A row without a cell
    gets the answer of the root, as in `predict`: a value missing that no rule fills, or with outside =
    "drop" a number outside the public range. NULL and NaN are missing.

    Args:
        model: the model.
        table: the table's or view's name, one identifier.
        level: of the intervals.

    Raises:
        ConfigError: `level` is not between 0 and 1.
    """
    names = {column: f"ldptree {j}" for j, column in enumerate(model.columns_needed)}
    features = {f.column: f for f in model.encoding.features if f.column in names}
    typed = ",\n         ".join(f"{_typed(f)} AS {quote(names[c])}" for c, f in features.items())
    made = ", ".join(quote(name) for name in (*names.values(), CELL))
    answers = ",\n       ".join(
        f"{_pick(values)} AS {quote(name)}" for name, values in _answers(model, level)
    )
    source = f"SELECT *{',' if typed else ''}\n         {typed}\n  FROM {quote(table)}"
    return (
        f"-- Scores rows by the model {model.digest[:12]} of ldptree; at most {len(names)} columns are read.\n"
        f"WITH typed AS (\n  {source}\n),\nplaced AS (\n"
        f"  SELECT *, {_cell(model, names)} AS {quote(CELL)}\n  FROM typed\n)\n"
        f"SELECT * EXCLUDE ({made}),\n       {answers}\nFROM placed"
    )


def _typed(feature: Feature) -> str:
    """The raw column as the type its tests compare, NULL where it is missing."""
    column = quote(feature.column)
    kind = "DOUBLE" if isinstance(feature, NumericFeature) else _level_type(feature.levels)
    if kind == "DOUBLE":
        return f"NULLIF(CAST({column} AS DOUBLE), CAST('nan' AS DOUBLE))"
    return f"CAST({column} AS {kind})"


def _level_type(levels: Sequence[Level]) -> str:
    if all(isinstance(level, bool) for level in levels):
        return "BOOLEAN"
    return "VARCHAR" if any(isinstance(level, str | bool) for level in levels) else "DOUBLE"


def _as_type(level: Level, kind: str) -> str:
    return literal(str(level) if kind == "VARCHAR" else level)


def _cell(model: TreeModel, names: dict[str, str]) -> str:
    """The cell of a row as an expression, NULL where it has none."""
    reasons = [f"{quote(names[c])} IS NULL" for c in model.encoding.columns_without_rule]
    if model.outside == "drop":
        for feature in model.encoding.features:
            if isinstance(feature, NumericFeature):
                x = quote(names[feature.column])
                reasons.append(f"{x} < {literal(feature.minimum)} OR {x} > {literal(feature.maximum)}")
    tree = _tree(model, names)
    return f"CASE WHEN {' OR '.join(reasons)} THEN NULL ELSE {tree} END" if reasons else tree


def _tree(model: TreeModel, names: dict[str, str]) -> str:
    """The walk down the tree as nested CASEs, written without recursion: no depth is too deep to write."""
    partition = model.partition
    text: list[str] = []
    todo: list[str | int] = [0]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            text.append(item)
        elif partition.feature[item] < 0:
            text.append(str(partition.cell_of_node[item]))
        else:
            goes_left, goes_right = _tests(model, item, names)
            left, right = int(partition.left[item]), int(partition.right[item])
            text.append(f"CASE WHEN {goes_left} THEN ")
            todo += [" END", right, f" WHEN {goes_right} THEN ", left]
    return "".join(text)


def _tests(model: TreeModel, node: int, names: dict[str, str]) -> tuple[str, str]:
    """When a row goes left, and, after that, when it goes right."""
    tree = model.raw_tree
    feature = model.encoding.features[tree.column[node]]
    x, level, threshold = quote(names[feature.column]), int(tree.level[node]), float(tree.threshold[node])
    there = f"{x} IS NOT NULL"
    if level >= 0 and isinstance(feature, CategoricalFeature):
        left = f"{x} <> {_as_type(feature.levels[level], _level_type(feature.levels))}"
    elif math.isnan(threshold):
        left = "FALSE"
    elif threshold == math.inf:
        left = there
    else:
        left = f"{x} <= {literal(threshold)}"
    if tree.missing[node] == LEFT:
        left = f"{x} IS NULL OR {left}"
    return left, there if tree.missing[node] in (LEFT, STOP) else "TRUE"


def _answers(model: Model | RegressionModel, level: float) -> Iterable[tuple[str, list[str]]]:
    """Each added column's name and its literal for each cell, and last for rows without one."""
    nodes = np.append(model.partition.leaves, 0)
    if isinstance(model, RegressionModel):
        low, high = model.value_interval(level)
        for added, numbers in (("prediction", model.value), ("lower", low), ("upper", high)):
            yield added, [literal(float(v)) for v in numbers[nodes]]
        return
    as_text = len({type(c) for c in model.classes}) > 1
    labels = [literal(str(c) if as_text else c) for c in model.classes]
    yield "prediction", [labels[k] for k in model.decision[nodes]]
    low, high = model.share_interval(level)
    for k, name in enumerate(model.classes):
        for prefix, values in (("probability", model.probability), ("lower", low), ("upper", high)):
            yield f"{prefix}_{name}", [literal(float(v)) for v in values[nodes, k]]


def _pick(values: list[str]) -> str:
    """The element of a constant list that belongs to the row's cell."""
    return f"[{', '.join(values)}][COALESCE({quote(CELL)}, {len(values) - 1}) + 1]"
