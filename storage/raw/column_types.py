"""Choose each raw column's type as declared, by the file, or from public rows. No private row has a say.

How a type reads a raw value is in `typed_rows`; what public values are taken for, in `recognition`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.dataset import ColumnType, DatasetSpec
from storage.raw import raw_files
from storage.raw.public_rows import PublicSelection, PublicValues, gather
from storage.raw.raw_files import RawFile
from storage.raw.recognition.columns import recognise, refusal
from storage.raw.recognition.findings import Finding, name_apart
from storage.raw.typed_rows import check_is_predicate


@dataclass(frozen=True, kw_only=True)
class UsedColumns:
    """The raw columns that a configuration uses, by name."""

    read: Sequence[str]
    """All that are read."""
    in_rule: Sequence[str] = ()
    """In the rule of who is public."""
    in_where: Sequence[str] = ()
    derived_from: Collection[str] = ()
    """In an expression of `derive`."""
    protected: Collection[str] = ()
    """Features named as what holders protect, which are never left out."""
    is_numeric_target: bool = False
    """Whether the target must be a number, and has no type of its own."""


@dataclass(frozen=True, kw_only=True)
class ColumnTypes:
    """The type of each column that is read, and which of them are no features, with what is the matter with them."""

    types: dict[str, ColumnType]
    left_out: dict[str, str] = field(default_factory=dict)


def column_types(
    spec: DatasetSpec, files: Sequence[RawFile], public: PublicSelection, used: UsedColumns
) -> ColumnTypes:
    """Return the type of each column read, as declared, as in the Parquet, or from its public values.

    The columns of the public rule are public whole, so all their values count. A column that nobody declared is looked at
    before it becomes a feature (`recognition`).

    Raises:
        ConfigError: the rule is no predicate over its columns.
        DataError: columns hold numbers or dates that must be read first.
    """
    known: dict[str, ColumnType] = {}
    for column in used.read:
        declared, family = _declared_type(spec, column), files[0].family(column)
        if column == spec.holder_column:
            continue  # a name has types of its own
        if declared is not None:
            known[column] = declared
        elif family is not None and family != "text":
            known[column] = family
        elif column in spec.ranges:
            known[column] = "number"
    with raw_files.connect(files) as connection:
        return _types_from_values(spec, files, connection, public, used, known)


def _types_from_values(
    spec: DatasetSpec,
    files: Sequence[RawFile],
    connection: Any,
    public: PublicSelection,
    used: UsedColumns,
    known: dict[str, ColumnType],
) -> ColumnTypes:
    """`column_types`, where some types are known already."""
    rule_types = column_types_of_rule(spec, files, connection, used.in_rule, known)
    known |= rule_types
    if public.rule.kind != spec.rule.kind:  # holders are drawn by their names, whatever their type
        rule_types = {spec.holder: "text"}
    doubtful = _doubtful(spec, files[0], used)
    if spec.holder_column in used.read:
        from storage.holders.holder_names import name_type  # with the ledger

        known[spec.holder] = name_type(spec, files, connection, public, rule_types)
    unknown = [column for column in used.read if column not in known or column in doubtful]
    numeric = set(spec.features(used.read, used.in_rule)) - set(spec.categorical)
    findings: dict[str, Finding] = {}
    values = _gathered(connection, files, unknown, public, rule_types)
    for column, evidence in values.evidence.items():
        if column in doubtful and (finding := recognise(values.sample(column))) is not None:
            findings[column] = finding
        verdict = evidence.verdict(is_category=column in spec.categorical) or "text"
        # A numeric feature that is whole in the public rows may well not be in private ones.
        known.setdefault(column, "number" if verdict == "integer" and column in numeric else verdict)
    return _types_after_findings(spec, files[0], used, known, findings)


def column_types_of_rule(
    spec: DatasetSpec,
    files: Sequence[RawFile],
    connection: Any,
    in_rule: Sequence[str],
    known: Mapping[str, ColumnType],
) -> dict[str, ColumnType]:
    """Return the type of each column of the public rule, as known or told from all its values, which are public.

    Raises ConfigError where the rule is no predicate over them.
    """
    types = {column: known[column] for column in in_rule if column in known}
    unknown = [column for column in in_rule if column not in known]
    for column, evidence in _gathered(connection, files, unknown, None, {}).evidence.items():
        types[column] = evidence.verdict() or "text"
    if spec.rule.predicate is not None:
        check_is_predicate(spec.rule.predicate, types, "dataset.public")
    return {column: types[column] for column in in_rule}


def _doubtful(spec: DatasetSpec, file: RawFile, used: UsedColumns) -> set[str]:
    """Return the undeclared columns to inspect among features, sources of derived ones, and a numeric target."""
    asked = {*spec.features(used.read, used.in_rule), *used.derived_from}
    declared = {*spec.types, *spec.levels, *spec.categorical, *spec.ranges, *used.in_rule}
    doubtful = {column for column in asked - declared if file.family(column) != "boolean"}
    return doubtful | ({spec.target} if used.is_numeric_target else set())


def _types_after_findings(
    spec: DatasetSpec,
    file: RawFile,
    used: UsedColumns,
    known: dict[str, ColumnType],
    findings: Mapping[str, Finding],
) -> ColumnTypes:
    """Return the types that findings leave. Raises DataError where something must be read first, and nobody said how."""
    features = set(spec.features(used.read, used.in_rule))
    to_read: list[Finding] = []
    left_out: dict[str, str] = {}
    for column, finding in findings.items():
        is_text = file.family(column) == "text"
        if finding.is_code:
            known[column] = "text"
        elif finding.readings and column in used.derived_from:
            if known[column] != "integer" and is_text:
                known[column] = "integer" if known[column] == "number" and finding.is_whole else "text"
            if column in features:
                left_out[column] = "only what dataset.derive makes of it is used"
        elif finding.readings:
            to_read.append(finding)
        elif column in features and column not in used.protected:
            left_out[column] = finding.sentence
            if column not in {*used.derived_from, *used.in_where}:
                known[column] = "text"  # of which no value is a fault
    if to_read:
        raise refusal(file.name, name_apart(to_read, {*file.columns, *spec.derive}), spec.target)
    return ColumnTypes(types={column: known[column] for column in used.read}, left_out=left_out)


def _declared_type(spec: DatasetSpec, column: str) -> ColumnType | None:
    """Return the type that the spec declares for a column, in `types` or by the values it lists; None where it says nothing."""
    if column in spec.types or column == spec.weight:
        return spec.types.get(column, "number")
    values: tuple[Any, ...] = spec.levels.get(column, ())
    if column == spec.target:
        values = spec.classes or ((spec.positive,) if isinstance(spec.positive, str) else values)
    kinds = {type(value) for value in values}
    by_python: dict[type, ColumnType] = {str: "text", int: "integer", float: "number", bool: "boolean"}
    if len(kinds) > 1:
        return "number" if kinds == {int, float} else "text"
    return by_python[kinds.pop()] if kinds else None


def _gathered(
    connection: Any,
    files: Sequence[RawFile],
    columns: Sequence[str],
    public: PublicSelection | None,
    rule_types: Mapping[str, ColumnType],
) -> PublicValues:
    """Gather what the values of each column look like, in all rows or in public ones."""
    if not columns:
        return PublicValues(())

    def batches() -> Iterator[tuple[Any, Sequence[str]]]:
        for index, file in enumerate(files):
            rows = raw_files.batch_rows(len(columns))
            if public is None:
                everything = file.select(columns, columns, skip_bad_lines=file.kind == "csv")
                stream: Iterator[Any] = raw_files.stream(connection.cursor(), everything, file, rows)
            else:
                stream = public.raw_batches(connection.cursor(), file, index, columns, rule_types)
            for batch in stream:
                yield batch, file.nulls

    return gather(columns, batches())
