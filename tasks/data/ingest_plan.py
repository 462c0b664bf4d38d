"""Plan the reading of raw files, by checking names and rules and finding types and who is public.

Types, ranges and the choice of what is kept come from the spec or from public rows; no private row has a say in them. How rows
are read by it is in `tasks.data.read`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import SkipValidation

from ldptree.errors import ConfigError, DataError
from schemas.dataset import FEW_CLASSES, DatasetSpec, TypedColumn
from schemas.families import estimators_for
from schemas.manifest import Arguments
from storage.raw import raw_files, typed_rows
from storage.raw.bad_rows import BadRows, FaultList
from storage.raw.column_types import ColumnTypes, UsedColumns, column_types
from storage.raw.pieces import Piece, cut
from storage.raw.public_rows import PublicSelection, booleans, draw_holders
from storage.raw.raw_files import RawFile
from storage.raw.typed_rows import PUBLIC, SELECTED, TypedQuery
from storage.sql import check_predicate, list_columns, quote, suggest_name


def inspect_files(spec: DatasetSpec, paths: Sequence[Path], *, is_whole: bool = True) -> list[RawFile]:
    """Inspect the raw files of `spec`, by every byte if `is_whole`, else by the first ones. Raises DataError."""
    return [
        raw_files.inspect(
            path,
            delimiter=spec.delimiter,
            columns=spec.columns,
            nulls=spec.nulls,
            missing=spec.missing,
            encoding=spec.encoding,
            timezone=spec.timezone,
            skip=spec.skip,
            sheets=spec.sheet,
            is_whole=is_whole,
        )
        for path in paths
    ]


class RowRules(Arguments):
    """The rules of a run that decide how each row is read.

    seed           public.
    protected      the label, and columns that some holder keeps to themselves, where others are public.
    every_feature  that so are all features.
    all_public     that no row is private, as people answer elsewhere.
    """

    dataset: SkipValidation[DatasetSpec]  # checked when it was read; one without words would not pass again
    seed: int
    protected: tuple[str, ...] = ()
    every_feature: bool = False
    all_public: bool = False


def plan_ingest(
    rules: RowRules, files: Sequence[RawFile], n_mixed: int, *, numeric: bool | None
) -> IngestPlan:
    """Decide what public rows tell of all files. `numeric` is whether the target is a number, None leaves it open.

    Raises ConfigError, DataError.
    """
    plan = IngestPlan.of(rules, files, n_mixed, numeric=bool(numeric))
    if numeric is None and label_kind(plan.query, plan.files, plan.public) == "number":
        plan = IngestPlan.of(rules, files, n_mixed, numeric=True)
    return plan


@dataclass(frozen=True, kw_only=True)
class IngestPlan:
    """Everything that is decided before the first row is written."""

    spec: DatasetSpec
    files: Sequence[RawFile]
    public: PublicSelection
    query: TypedQuery
    rule_columns: tuple[str, ...]
    found_types: ColumnTypes
    first: int = 0
    """The number of the first file, where there are others before it."""
    pieces: Mapping[int, Sequence[Piece]] = field(default_factory=dict)
    """The pieces to read here, by the number of their file, for files that are read in pieces."""

    @staticmethod
    def of(
        rules: RowRules,
        files: Sequence[RawFile],
        n_mixed: int,
        *,
        numeric: bool,
        known: ColumnTypes | None = None,
        first: int = 0,
    ) -> IngestPlan:
        """Names and rules checked against the header, types declared or told from public rows.

        `n_mixed`: files whose rows the public rule divides; those after them are public whole. `known`: the types, where they
        were told before; `first`: the number of the first of `files`, of which some may be read elsewhere.
        """
        spec, columns = rules.dataset, files[0].columns
        _check_columns(spec, files[0])
        has_own_type = spec.target not in columns or spec.target in spec.types
        if numeric:
            spec = _with_numeric_target(spec, files)
        rule = spec.rule
        rule_columns = check_predicate(rule.predicate, columns, "dataset.public") if rule.predicate else ()
        chosen_by = check_predicate(spec.where, columns, "dataset.where") if spec.where is not None else ()
        made_of = {
            name: check_predicate(text, columns, f"dataset.derive.{name}")
            for name, text in spec.derive.items()
        }
        needed = dict.fromkeys(
            [*rule_columns, *chosen_by, *(used for each in made_of.values() for used in each)]
        )
        _check_protected(rules, spec, columns, rule_columns, chosen_by, made_of)
        dropped = set(spec.drop)
        kept = [column for column in columns if column not in dropped]
        read = [column for column in columns if column in needed or column not in dropped]
        raw_files.check_count(files[0], len(read))
        unusable = [column for column in read if any(file.family(column) is None for file in files)]
        if unusable:
            raise DataError(
                f"{files[0].name}: {list_columns(unusable)}: lists, structs and bytes cannot be used. Add to dataset.drop."
            )
        if rule.kind == "random" and spec.holder_column in columns:
            rule = draw_holders(rule, spec.holder, rules.seed)
        public = PublicSelection(rule=rule, n_mixed=n_mixed, seed=rules.seed)
        found_types = known or column_types(
            spec,
            files,
            public,
            UsedColumns(
                read=read,
                in_rule=rule_columns,
                in_where=chosen_by,
                derived_from={used for each in made_of.values() for used in each},
                protected=rules.protected,
                is_numeric_target=numeric and not has_own_type,
            ),
        )
        if found_types.left_out:
            spec = spec.model_copy(update={"drop": (*spec.drop, *found_types.left_out)})
            _check_protected(rules, spec, columns, rule_columns, chosen_by, made_of)
            _check_features_left(spec, files[0], rule_columns, found_types)
            kept = [column for column in kept if column not in found_types.left_out]
        types = {
            c: kind for c, kind in found_types.types.items() if c in needed or c not in found_types.left_out
        }
        derive = {name: text for name, text in spec.derive.items() if name not in spec.drop}
        typed = {column: types[column] for column in kept} | {
            name: spec.types.get(name) or typed_rows.derived_type(text, types, f"dataset.derive.{name}")
            for name, text in derive.items()
        }
        if spec.where is not None:
            typed_rows.check_is_predicate(spec.where, types, "dataset.where")
        query = TypedQuery(
            types=types,
            derive=derive,
            kept=tuple(
                TypedColumn(
                    name=name, type=kind, storage=typed_rows.storage_type(kind, spec.ranges.get(name))
                )
                for name, kind in typed.items()
            ),
            target=spec.target,
            holder=spec.holder_column,
            public=rule.predicate,
            where=spec.where,
            numeric=numeric,
        )
        return IngestPlan(
            spec=spec,
            files=files,
            public=public,
            query=query,
            rule_columns=rule_columns,
            found_types=found_types,
            first=first,
        )

    def in_pieces(self, pieces: Mapping[int, Sequence[Piece]]) -> IngestPlan:
        """The same, with these files read in pieces."""
        return replace(self, pieces=pieces)

    def file(self, index: int) -> RawFile:
        """The file of this number."""
        return self.files[index - self.first]

    def bad_rows(self, index: int, piece: RawFile, name: str, faults: FaultList) -> BadRows:
        """The bad rows of what is read of file `index`, whose other rows are kept as `name`."""
        file = self.file(index)
        return BadRows(
            file=file,
            piece=piece,
            name=name,
            index=index,
            query=self.query,
            public=self.public,
            faults=faults,
            skip_bad_lines=self.spec.on_bad_rows == "quarantine" and file.kind == "csv",
        )


def cut_files(files: Sequence[RawFile], most_bytes: int) -> dict[int, list[Piece]]:
    """The pieces of each large Parquet file, by its number. Raises OSError."""
    pieces_of = {index: cut(file, most_bytes) for index, file in enumerate(files)}
    return {index: pieces for index, pieces in pieces_of.items() if pieces}


def _check_protected(
    rules: RowRules,
    spec: DatasetSpec,
    columns: Sequence[str],
    rule_columns: Sequence[str],
    chosen_by: Sequence[str],
    made_of: Mapping[str, Sequence[str]],
) -> None:
    """Raises ConfigError where something that everybody sees would be made of what holders protect."""
    hidden = ProtectedColumns.of(
        spec,
        columns,
        rule_columns=rule_columns,
        made_of=made_of,
        declared=rules.protected,
        every_feature=rules.every_feature,
    )
    hidden.check_not_revealed("dataset.public", rule_columns, "who is public")
    hidden.check_not_revealed("dataset.where", chosen_by, "who takes part")
    for name, used in made_of.items():
        if name != spec.target and name not in spec.drop:
            check_no_leak(name, used, rule_columns, spec.target)
            if name not in hidden.names:
                hidden.check_not_revealed(
                    f"dataset.derive.{name}",
                    used,
                    f'"{name}", which everybody sees,',
                    ", or protect what is made of it too",
                )


def _check_features_left(
    spec: DatasetSpec, file: RawFile, rule_columns: Sequence[str], found_types: ColumnTypes
) -> None:
    """Raises DataError where no column is left to learn from."""
    if not spec.features([*file.columns, *spec.derive], rule_columns):
        why = "; ".join(f"{column}: {reason}" for column, reason in found_types.left_out.items())
        raise DataError(
            f"{file.name}: no features are left. What public rows show of the columns: {why}. "
            'Declare one that you want all the same, as in dataset.types = {age = "integer"}, or derive new ones.'
        )


def _with_numeric_target(spec: DatasetSpec, files: Sequence[RawFile]) -> DatasetSpec:
    """The specification with its target declared a number. Raises DataError where a file has its own, other type."""
    for file in files:
        # A text may hold numbers; true and false would be read as 1 and 0, which nobody asked for.
        if spec.target in file.columns and file.family(spec.target) == "boolean":
            raise DataError(
                f'{file.name}, column "{spec.target}" (the target): true and false are not numbers. Choose another '
                f"dataset.target. For a label of classes set model.estimator to {' or '.join(estimators_for('class'))}, and "
                'dataset.label = "class".'
            )
    return spec.model_copy(update={"types": {spec.target: "number"} | spec.types})


def _is_header(spec: DatasetSpec, file: RawFile) -> bool:
    """Return whether the first line is surely a header and no row, as it has a column that was named."""
    if spec.columns or any(name in file.columns for names in spec.named_columns().values() for name in names):
        return True
    if spec.rule.predicate is None:
        return False
    try:
        check_predicate(spec.rule.predicate, file.columns, "dataset.public")
    except ConfigError:
        return False
    return True


def _check_columns(spec: DatasetSpec, file: RawFile) -> None:
    """Raises DataError, with all of them, where the spec names columns that are not there."""
    known = {*file.columns, *spec.derive}
    missing = [
        f'dataset.{key}: no column "{name}"{suggest_name(name, file.columns)}'
        for key, names in spec.named_columns().items()
        for name in names
        if name not in known
    ]
    if missing:
        remedy = (
            f"Columns: {list_columns(file.columns)}."
            if _is_header(spec, file)
            else "No column that was named is there: has the file a header? If it has none, name them in dataset.columns."
        )
        raise DataError(f"{file.name}: {'; '.join(missing)}. {remedy}")
    taken = {column.lower() for column in file.columns}
    again = [name for name in spec.derive if name.lower() in taken]
    if again:
        raise ConfigError(
            f"dataset.derive: {list_columns(again)}: the file has a column of this name. Choose a new one."
        )
    if not spec.features(file.columns + tuple(spec.derive)):
        raise DataError(f"{file.name}: no features: the target is the only column that is left.")


LabelKind = Literal["class", "number"]


def label_kind(query: TypedQuery, files: Sequence[RawFile], public: PublicSelection) -> LabelKind:
    """A class where the target is text, boolean, or has few different whole values among the public rows; else a number."""
    (target,) = (column for column in query.kept if column.name == query.target)
    if target.type not in ("integer", "number"):
        return "class"
    distinct: set[Any] = set()
    with raw_files.connect(files) as connection:
        for index, file in enumerate(files):
            columns = ", ".join(map(quote, (query.target, PUBLIC, SELECTED)))
            text = f"SELECT {columns} FROM ({query.rows(file, skip_bad_lines=file.kind == 'csv')})"
            first = 0
            with closing(
                raw_files.stream(connection.cursor(), text, file, raw_files.batch_rows(3))
            ) as batches:
                for batch in batches:
                    rows = np.arange(first, first + batch.num_rows)
                    first += batch.num_rows
                    chosen = public.among(index, batch, rows) & booleans(batch.column(SELECTED), missing=True)
                    values = batch.column(query.target).filter(chosen).drop_null().unique().to_pylist()
                    distinct.update(values)
                    if len(distinct) > FEW_CLASSES or any(value % 1 for value in distinct):
                        return "number"
    return "class"


@dataclass(frozen=True)
class ProtectedColumns:
    """The columns that holders protect, as spelled in the data. `every_feature` if their mask is not released."""

    names: frozenset[str] = frozenset()
    every_feature: bool = False

    @staticmethod
    def of(
        spec: DatasetSpec,
        columns: Sequence[str],
        *,
        rule_columns: Sequence[str],
        made_of: Mapping[str, Sequence[str]],
        declared: Sequence[str],
        every_feature: bool = False,
    ) -> ProtectedColumns:
        """Return what is `declared`, with `every_feature` all features of `columns` too, and what these are made of.

        `made_of`: the columns that each derived one uses. One that is shown all the same is not protected by what is made of it.
        """
        features = spec.features([*columns, *made_of], rule_columns)
        names = {*declared, *(features if every_feature else ())}
        shown = set(features) - names
        sources = {used for name in names for used in made_of.get(name, ()) if used not in shown}
        return ProtectedColumns(frozenset(names | sources), every_feature)

    def check_not_revealed(self, where: str, used: Sequence[str], what: str, remedy: str = "") -> None:
        """Raises ConfigError where something that everybody sees would tell of a value that holders protect."""
        for column in used:
            if column in self.names:
                why = "model.mask_release" if self.every_feature else "features"
                raise ConfigError(
                    f'{where}: uses "{column}", which holders protect ({why}), and {what} would tell of it. '
                    f"Leave it out{remedy}."
                )


def check_no_leak(name: str, used: Sequence[str], rule_columns: Sequence[str], target: str) -> None:
    """Raises ConfigError where a derived feature would be made of the label, or of what tells public rows from private."""
    for column in used:
        if column == target or column in rule_columns:
            what = "the target" if column == target else "a column of the rule dataset.public"
            raise ConfigError(
                f'dataset.derive.{name}: uses "{column}", {what}: no feature may be made of it.'
            )
