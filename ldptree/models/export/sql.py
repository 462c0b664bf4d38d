"""A tree's answers as one SELECT that scores a table inside DuckDB, row for row as a model's `predict` does.

What lives here: text, of one tree. What does not: a public model of many trees (`corrected_sql`, made of the pieces here), and
running it; nothing here connects to a database.

The table has the raw columns under their own names. Every name and every text from data is quoted. Numbers
are written with an exponent, which DuckDB reads as double precision, not as a decimal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from ldptree.encoding import CategoricalFeature, Encoding, Feature, Level, NumericFeature
from ldptree.partition.raw import LEFT, STOP, RawTree

CELL = "ldptree cell"
_OWN = "ldptree own "
"""Prefix of the table's own column names until the end, so that none is taken for one of ours."""
OWN_COLUMNS = rf"COLUMNS('(?s)^{_OWN}(.*)$') AS '\1'"
"""The table's own columns, under their own names again."""


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


def to_sql(
    tree: RawTree,
    answers: Sequence[tuple[str, list[str]]],
    *,
    columns: Sequence[str],
    drops_outside: bool,
    about: str,
    table: str,
) -> str:
    """A SELECT over `table` that returns its columns and the answers to each row.

    NULL and NaN are missing. The table may have further columns of any name; one that is named like an added column stands before
    it, under the same name.

    Args:
        tree: the tree.
        answers: of each added column the name and its literal for each cell, and last for rows without one.
        columns: the raw columns that are read.
        drops_outside: whether a row outside the public range has no cell.
        about: what the first line says.
        table: the table's or view's name, one identifier.
    """
    names = names_of(columns)
    added = ",\n       ".join(f"{pick(values)} AS {quote(name)}" for name, values in answers)
    cell = cell_of(tree, names, drops_outside=drops_outside)
    return (
        f"-- {about}; at most {len(names)} columns are read.\n"
        f"WITH typed AS (\n  {typed(tree.encoding, names, table)}\n),\nplaced AS (\n"
        f"  SELECT *, {cell} AS {quote(CELL)}\n  FROM typed\n)\n"
        f"SELECT {OWN_COLUMNS},\n       {added}\nFROM placed"
    )


def names_of(columns: Iterable[str]) -> dict[str, str]:
    """For each raw column the name of its typed copy."""
    return {column: f"ldptree {j}" for j, column in enumerate(columns)}


def listed(names: Iterable[str]) -> str:
    """Identifiers with commas between them."""
    return ", ".join(quote(name) for name in names)


def typed(encoding: Encoding, names: Mapping[str, str], table: str) -> str:
    """Return a SELECT of the table's own columns, set apart, and typed copies of `names`, NULL where missing."""
    features = [f for f in encoding.features if f.column in names]
    copies = ",\n         ".join(
        f"{typed_value(f, quote(f.column))} AS {quote(names[f.column])}" for f in features
    )
    return (
        f"SELECT COLUMNS(*) AS '{_OWN}\\0'{',' if copies else ''}\n         {copies}\n  FROM {quote(table)}"
    )


def typed_value(feature: Feature, column: str) -> str:
    """Return the raw column, an SQL expression, in the type that its tests compare, NULL where missing."""
    kind = kind_of(feature)
    if kind == "DOUBLE":
        return f"NULLIF(CAST({_without_underscores(column)} AS DOUBLE), CAST('nan' AS DOUBLE))"
    if kind == "BOOLEAN":  # to a cast, NaN is as true as any number that is not 0
        missing = f"TRY_CAST({column} AS DOUBLE) = CAST('nan' AS DOUBLE)"
        return f"CASE WHEN {missing} THEN NULL ELSE CAST({column} AS BOOLEAN) END"
    return f"CAST({column} AS VARCHAR)"


def _without_underscores(column: str) -> str:
    """The column; a text with an underscore ends the query, as a cast alone reads 1_000 as 1000, and a run that reads
    rows reads it as no number. Of other types the test costs nothing: DuckDB folds `typeof` before it reads a row.
    """
    is_text = f"(typeof({column}) = 'VARCHAR' OR starts_with(typeof({column}), 'ENUM'))"
    has_one = f"contains(CAST({column} AS VARCHAR), '_')"
    return f"CASE WHEN {is_text} AND {has_one} THEN error('a text with an underscore is no number') ELSE {column} END"


def kind_of(feature: Feature) -> str:
    """Return the SQL type of a feature's typed copy, which is DOUBLE, BOOLEAN or VARCHAR."""
    if isinstance(feature, NumericFeature):
        return "DOUBLE"
    if all(isinstance(level, bool) for level in feature.levels):
        return "BOOLEAN"
    is_text = any(isinstance(level, str | bool) or _loses_digits(level) for level in feature.levels)
    return "VARCHAR" if is_text else "DOUBLE"


def _loses_digits(level: Level) -> bool:
    return isinstance(level, int) and abs(level) > 2**53


def levels_of(feature: CategoricalFeature) -> list[Level]:
    """The levels as values of the type that the column's typed copy has."""
    return [str(level) for level in feature.levels] if kind_of(feature) == "VARCHAR" else list(feature.levels)


def level_of(feature: CategoricalFeature, index: int) -> str:
    """A level as a literal of the type that its column's typed copy has."""
    return literal(levels_of(feature)[index])


def cell_of(tree: RawTree, names: Mapping[str, str], *, drops_outside: bool = False) -> str:
    """The cell of a row as an expression over typed copies, NULL where it has none.

    Args:
        tree: the tree.
        names: of the typed copies; the tree's columns and those without a rule are in it, with `drops_outside` every numeric one.
        drops_outside: whether a row outside the public range has no cell.
    """
    reasons = [f"{quote(names[c])} IS NULL" for c in tree.encoding.columns_without_rule]
    if drops_outside:
        for feature in tree.encoding.features:
            if isinstance(feature, NumericFeature):
                x = quote(names[feature.column])
                reasons.append(f"{x} < {literal(feature.minimum)} OR {x} > {literal(feature.maximum)}")
    cell = _tree(tree, names)
    return f"CASE WHEN {' OR '.join(reasons)} THEN NULL ELSE {cell} END" if reasons else cell


def _tree(tree: RawTree, names: Mapping[str, str]) -> str:
    """Write the walk down the tree as nested CASEs. Without recursion, no depth is too deep to write."""
    partition = tree.partition
    text: list[str] = []
    todo: list[str | int] = [0]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            text.append(item)
        elif partition.feature[item] < 0:
            text.append(str(partition.cell_of_node[item]))
        else:
            goes_left, goes_right = _tests(tree, item, names)
            left, right = int(partition.left[item]), int(partition.right[item])
            text.append(f"CASE WHEN {goes_left} THEN ")
            todo += [" END", right, f" WHEN {goes_right} THEN ", left]
    return "".join(text)


def _tests(tree: RawTree, node: int, names: Mapping[str, str]) -> tuple[str, str]:
    """When a row goes left, and, after that, when it goes right."""
    feature = tree.encoding.features[tree.column[node]]
    x, level, threshold = quote(names[feature.column]), int(tree.level[node]), float(tree.threshold[node])
    there = f"{x} IS NOT NULL"
    if level >= 0 and isinstance(feature, CategoricalFeature):
        left = f"{x} <> {level_of(feature, level)}"
    elif math.isnan(threshold):
        left = "FALSE"
    elif threshold == math.inf:
        left = there
    else:
        left = f"{x} <= {literal(threshold)}"
    if tree.missing[node] == LEFT:
        left = f"{x} IS NULL OR {left}"
    return left, there if tree.missing[node] in (LEFT, STOP) else "TRUE"


def labels_of(classes: Sequence[Level]) -> list[str]:
    """Return classes as literals of one type, which is text if they are of several."""
    as_text = len({type(c) for c in classes}) > 1
    return [literal(str(c) if as_text else c) for c in classes]


def pick(values: list[str]) -> str:
    """The element of a constant list that belongs to the row's cell; the last where it has none."""
    return f"[{', '.join(values)}][COALESCE({quote(CELL)}, {len(values) - 1}) + 1]"
