"""Ingest: raw files to typed Parquet, each row in its own zone; of one machine, or put together from what several have read.

What is decided beforehand is in `tasks.data.ingest_plan`, how rows are read in `tasks.data.read`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ldptree.errors import ConfigError, DataError
from schemas.dataset import ColumnType, TypedColumn
from schemas.manifest import Manifest, Record
from storage.holders.holder_names import type_of_names
from storage.raw import raw_files
from storage.raw.bad_rows import COLUMNS_LISTED, FaultList
from storage.raw.column_types import ColumnTypes
from storage.sql import check_predicate, list_columns
from storage.store import Draft
from tasks.data import source
from tasks.data.ingest_plan import IngestPlan, RowRules, cut_files, inspect_files, settle
from tasks.data.label_kind import LabelKind
from tasks.data.read import FilesRead, ZoneFile, ZoneFolders, clear_zones, read_files, zones_of
from tasks.step import NO_PARTS, NotInKey, step


@dataclass(frozen=True, kw_only=True)
class IngestResult:
    """What ingest wrote. Counts of private bad rows belong to the holders' zone and are not to be shown."""

    columns: tuple[TypedColumn, ...]
    """All columns but `_row`, in the order of the Parquet files."""
    rule_columns: tuple[str, ...]
    public: tuple[ZoneFile, ...]
    private: tuple[ZoneFile, ...]
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The digest of the raw file that each private file came from."""
    label: LabelKind = "class"
    bad_public: int = 0
    bad_private: int = 0
    left_out_public: int = 0
    left_out_private: int = 0
    columns_left_out: dict[str, str] = field(default_factory=dict)
    """Raw columns that are no features although nobody dropped them, with what public rows show them to be."""
    types: dict[str, ColumnType] = field(default_factory=dict)
    """The type of every raw column that is kept or left out."""
    derived_from: dict[str, ColumnType] = field(default_factory=dict)
    """The type of every raw column that others are derived from."""

    @property
    def n_public(self) -> int:
        """Rows in the public zone."""
        return sum(file.rows for file in self.public)

    @property
    def n_private(self) -> int:
        """Rows in the holders' zone."""
        return sum(file.rows for file in self.private)


def ingest_files(
    rules: RowRules,
    paths: Sequence[Path],
    zones: ZoneFolders,
    *,
    public_paths: Sequence[Path] = (),
    numeric: bool | None = False,
) -> IngestResult:
    """Read `paths` (and `public_paths`, where the public rule names a second file) into typed Parquet by zone.

    File i of both lists, taken together in order, becomes `part-{i:04d}.parquet` in each folder where it has rows, and piece j of
    a large one `part-{i:04d}-{j:06d}.parquet`: the kept columns and `_row`, the number of the row in its file. Row groups, and so
    the bytes, depend on the input alone. Quarantined rows go to `quarantine/` in their zone's folder; details of private faults
    go to `zones.faults` and nowhere else. `numeric`: the target is a number, and kept as one; None: as public rows tell
    (`tasks.data.label_kind`).

    Raises ConfigError (a rule that is not one, or names no column) and DataError (what is wrong with the files);
    then neither folder has a Parquet file from this call.
    """
    rule = rules.dataset.rule
    if (rule.kind == "file") != bool(public_paths):
        raise ConfigError(f"dataset.public: {rule} and the public files given do not go together")
    files = inspect_files(rules.dataset, [*paths, *public_paths])
    raw_files.same_columns(files)
    plan = settle(rules, files, len(paths), numeric=numeric)
    read = read_files(plan.in_pieces(cut_files(rules.dataset, files, source.PART_BYTES)), zones)
    try:
        return result_of(plan, read, FaultList(zones.faults))
    except BaseException:
        clear_zones(zones)
        raise


def result_of(plan: IngestPlan, read: FilesRead, faults: FaultList) -> IngestResult:
    """What all files came to. Raises DataError where that is not enough to learn from, or too much of it is bad."""
    _check_whole(plan, read, faults)
    return IngestResult(
        columns=plan.query.kept,
        rule_columns=plan.rule_columns,
        label="number" if plan.query.numeric else "class",
        public=tuple(read.parts[True]),
        private=tuple(read.parts[False]),
        sources=read.sources,
        bad_public=read.bad[True],
        bad_private=read.bad[False],
        left_out_public=read.left_out[True],
        left_out_private=read.left_out[False],
        columns_left_out=plan.found_types.left_out,
        types={
            column: plan.found_types.types[column]
            for column in plan.found_types.types
            if column in plan.found_types.left_out or column not in plan.spec.drop
        },
        derived_from={
            column: plan.query.types[column]
            for name, text in plan.query.derive.items()
            for column in check_predicate(text, plan.files[0].columns, f"dataset.derive.{name}")
        },
    )


def _check_whole(plan: IngestPlan, read: FilesRead, faults: FaultList) -> None:
    """What can be said only of the whole. Raises DataError."""
    spec, parts = plan.spec, read.parts
    n_bad = read.bad.total()
    if n_bad > spec.max_bad_fraction * read.n_rows:
        kinds = "; ".join(f'column "{c}": {k}' if c else k for c, k in list(read.kinds)[:COLUMNS_LISTED])
        raise DataError(
            f"more than max_bad_fraction = {spec.max_bad_fraction:g} of the rows are bad ({kinds}; details in {faults}). "
            "Correct the files or the declared types, or raise max_bad_fraction."
        )
    if not parts[True]:
        types = {column: plan.query.types[column] for column in plan.rule_columns}
        read_as = f", with {', '.join(f'{c} read as {k}' for c, k in types.items())}" if types else ""
        if read.left_out[True]:
            raise DataError(
                f"no public rows: dataset.where = {spec.where!r} leaves out every row that the rule {spec.public!r} makes public."
            )
        raise DataError(
            f"no public rows by the rule {spec.public!r}{read_as}: the tree is grown on them. Check dataset.public."
        )
    if not parts[False]:
        asked = "" if spec.where is None else f", or dataset.where = {spec.where!r} leaves out all others"
        raise DataError(
            f"no private rows: the rule {spec.public!r} makes every row public{asked}. Check dataset.public."
        )
    stated = read.labels - {None}
    if len(stated) < 2:
        has = (
            f"a single value in the public rows: {stated.pop()!r}" if stated else "no value in any public row"
        )
        raise DataError(
            f'column "{spec.target}" (the target) has {has}. Nothing can be learned from it: choose another dataset.target, or '
            "another dataset.public."
        )
    labels = sorted(str(label) for label in stated)
    if spec.classes and not {str(value) for value in spec.classes} & set(labels):
        raise DataError(
            f'dataset.classes: no public row has one of them in "{spec.target}", where there is {list_columns(labels)}.'
        )
    features = spec.features([column.name for column in plan.query.kept], plan.rule_columns)
    if not features:
        raise DataError("no features are left besides the target, the rule's columns and what is dropped.")
    empty = [name for name in features if read.present[name] == 0]
    if empty:
        raise DataError(
            f"every public value is missing in {list_columns(empty)}: nothing is known of its range. Add to dataset.drop."
        )


@step("types", version="3", home="holders", says="what each column is, from public rows")
def types(
    draft: Draft,
    *,
    raw: Manifest,
    public_raw: Manifest | None,
    rules: RowRules,
    numeric: bool | None = False,
) -> dict[str, Any]:
    """Tell, where several machines read the files, what public rows decide of all of them; called as `ingest`. Write where
    large files are cut ("pieces", a file each: `FILE-PIECE.json`), of which every byte of a text was looked at.
    """
    paths = draft.store.files(raw)
    public_paths = draft.store.files(public_raw) if public_raw else []
    files = inspect_files(rules.dataset, [*paths, *public_paths], is_whole=False)
    raw_files.same_columns(files)
    for index, pieces in cut_files(rules.dataset, files, source.PART_BYTES).items():
        raw_files.check_whole(files[index])
        for piece in pieces:
            name = f"{index:04d}-{piece.number:06d}.json"
            (draft.folder("pieces") / name).write_text(piece.to_json())
    plan = settle(rules, files, len(paths), numeric=numeric)
    found = plan.found_types
    return {"numeric": plan.query.numeric, "types": found.types, "left_out": found.left_out}


@step("ingest", version="4", home="holders", order=1, says="typed Parquet, each zone apart")
def ingest(
    draft: Draft,
    *,
    raw: Manifest,
    public_raw: Manifest | None,
    rules: RowRules,
    numeric: bool | None = False,
    parts: NotInKey = NO_PARTS,
) -> dict[str, Any]:
    """Write the typed rows of each zone ("public", "private"), and who each private row is ("rows"); the private part says
    which raw file each came from.

    `numeric`: the label is a number; None: as public rows tell. `parts`: what `types` told, and the records of `read`, of all
    files in their order, where others have read them; the artifact is the same.
    """
    store, dataset = draft.store, rules.dataset
    if parts.value is not None:
        found = _put_together(draft, rules, raw, *parts.value)
    else:
        found = ingest_files(
            rules,
            store.files(raw),
            zones_of(draft, dataset),
            public_paths=store.files(public_raw) if public_raw else (),
            numeric=numeric,
        )
        for part, files in (("public", found.public), ("private", found.private)):
            for file in files:
                draft.count(part, file.name, file.rows)
    (draft.folder("private") / "sources.json").write_text(json.dumps(found.sources))
    columns = [column.name for column in found.columns]
    names = {column.name: type_of_names(column.type) for column in found.columns}
    return {
        "columns": [[column.name, column.type, column.storage] for column in found.columns],
        "types": found.types,
        "derived_from": found.derived_from,
        "features": list(dataset.features(columns, found.rule_columns)),
        "rule_columns": list(found.rule_columns),
        "label": found.label,
        "bad_public": found.bad_public,
        "left_out_public": found.left_out_public,
        "columns_left_out": found.columns_left_out,
        **({} if dataset.holder_column is None else {"holder_type": names[dataset.holder]}),
    }


def _put_together(
    draft: Draft, rules: RowRules, raw: Manifest, settled: Mapping[str, Any], records: Sequence[Record]
) -> IngestResult:
    """What others have read, as if it were read here."""
    known = ColumnTypes(types=settled["types"], left_out=settled["left_out"])
    header = inspect_files(rules.dataset, [draft.store.file(raw, raw.files[0].name)], is_whole=False)
    plan = IngestPlan.of(rules, header, len(raw.files), numeric=settled["numeric"], known=known)
    read = FilesRead()
    for record in records:
        read += FilesRead.from_json(draft.store.file(record["counts"], "counts.json").read_bytes())
        for part in ("public", "private", "rows"):
            draft.adopt(part, record[part])
    return result_of(plan, read, FaultList(draft.store.zone("holders") / "faults"))
