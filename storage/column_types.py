"""The type of each raw column: declared, the file's own, or told from what public rows hold. No private row has a say.

How a type reads a raw value is in `typed_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from schemas.dataset import ColumnType, DatasetSpec
from storage import raw_files
from storage.public_rows import PublicRows
from storage.raw_files import RawFile
from storage.typed_rows import Evidence, check_is_predicate, gather_evidence


def column_types(
    spec: DatasetSpec,
    files: Sequence[RawFile],
    public: PublicRows,
    read: Sequence[str],
    rule_columns: Sequence[str],
) -> dict[str, ColumnType]:
    """The type of each column in `read`: declared, else the Parquet's own, else told from its public values.

    The columns of the public rule are public whole, so all their values count. Raises ConfigError where the rule
    is no predicate over them.
    """
    known: dict[str, ColumnType] = {}
    for column in read:
        declared, family = _declared_type(spec, column), files[0].family(column)
        if declared is not None:
            known[column] = declared
        elif family is not None and family != "text":
            known[column] = family
        elif column in spec.ranges:
            known[column] = "number"
        elif column == spec.holder_column:
            # An identifier is a name: as a number it could lose digits, and two people become one.
            known[column] = "text"
    in_rule = [column for column in rule_columns if column not in known]
    for column, evidence in _evidence(files, in_rule, None, {}).items():
        known[column] = evidence.verdict() or "text"
    if spec.rule.predicate is not None:
        check_is_predicate(spec.rule.predicate, {c: known[c] for c in rule_columns}, "dataset.public")
    unknown = [column for column in read if column not in known]
    rule_types = {column: known[column] for column in rule_columns}
    numeric = set(spec.features(read, rule_columns)) - set(spec.categorical)
    for column, evidence in _evidence(files, unknown, public, rule_types).items():
        verdict = evidence.verdict(is_category=column in spec.categorical) or "text"
        # A numeric feature that is whole in the public rows may well not be in private ones.
        known[column] = "number" if verdict == "integer" and column in numeric else verdict
    return {column: known[column] for column in read}


def _declared_type(spec: DatasetSpec, column: str) -> ColumnType | None:
    """What the spec says of a column, in `types` or by the values it lists; None where it says nothing."""
    if column in spec.types:
        return spec.types[column]
    values: tuple[Any, ...] = spec.levels.get(column, ())
    if column == spec.target:
        values = spec.classes or ((spec.positive,) if isinstance(spec.positive, str) else values)
    kinds = {type(value) for value in values}
    by_python: dict[type, ColumnType] = {str: "text", int: "integer", float: "number", bool: "boolean"}
    if len(kinds) > 1:
        return "number" if kinds == {int, float} else "text"
    return by_python[kinds.pop()] if kinds else None


def _evidence(
    files: Sequence[RawFile],
    columns: Sequence[str],
    public: PublicRows | None,
    rule_types: Mapping[str, ColumnType],
) -> dict[str, Evidence]:
    """What the values of each column look like: of all rows, or of public ones."""
    total = {column: Evidence() for column in columns}
    if not columns:
        return total
    with raw_files.connect(files) as connection:
        for index, file in enumerate(files):
            rows = raw_files.batch_rows(len(columns))
            if public is None:
                everything = file.select(columns, columns, skip_bad_lines=file.kind == "csv")
                batches: Iterator[Any] = raw_files.stream(connection.cursor(), everything, file, rows)
            else:
                batches = public.raw_batches(connection.cursor(), file, index, columns, rule_types)
            for batch in batches:
                for column, found in gather_evidence(batch, file.nulls).items():
                    total[column] += found
    return total
