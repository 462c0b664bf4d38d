"""Ingest: raw files to typed Parquet, streamed, each row into its own zone.

The pure part: paths in, Parquet and a summary out. How files are opened is in `storage.raw.raw_files`, which type a column
has in `storage.raw.column_types`, how a raw value becomes a typed one in `storage.raw.typed_rows`, what happens to rows that do
not in `storage.raw.bad_rows`. Types, ranges and the choice of what is kept come from the spec or from public rows; no
private row has a say in them.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import ConfigError, DataError
from schemas.dataset import RESERVED, ColumnType, DatasetSpec, TypedColumn
from schemas.families import estimators_for
from schemas.manifest import Manifest
from storage.digests import Hasher
from storage.holders.holder_names import type_of_names
from storage.holders.row_digests import RowDigests
from storage.raw import raw_files, typed_rows
from storage.raw.bad_rows import COLUMNS_LISTED, BadRows, FaultList, Kinds
from storage.raw.column_types import ColumnTypes, UsedColumns, column_types
from storage.raw.public_rows import PublicRows, booleans
from storage.raw.raw_files import RawFile
from storage.raw.row_groups import RowGroupWriter
from storage.raw.typed_rows import ASKED, BAD, TypedQuery
from storage.sql import check_predicate, list_columns, suggest_name
from storage.store import Draft
from tasks.data.label_kind import LabelKind, label_kind
from tasks.data.protected_columns import ProtectedColumns, check_no_leak
from tasks.step import step

LABELS_LISTED = 100
"""Distinct labels of public rows that are kept to be told of."""


@dataclass(frozen=True, kw_only=True)
class ZoneFile:
    """One Parquet file of a zone and its rows."""

    name: str
    rows: int


@dataclass(frozen=True, kw_only=True)
class IngestResult:
    """What ingest wrote. Counts of private bad rows belong to the holders' zone and are not to be shown."""

    columns: tuple[TypedColumn, ...]
    """All columns but `_row`, in the order of the Parquet files."""
    rule_columns: tuple[str, ...]
    public: tuple[ZoneFile, ...]
    private: tuple[ZoneFile, ...]
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


@dataclass(frozen=True, kw_only=True)
class ZoneFolders:
    """Where the rows of each zone go.

    Attributes:
        public, holders: the folders of typed rows.
        faults: the file with details of private faults.
        row_digests: keeps who each row of the private Parquet files is.
    """

    public: Path
    holders: Path
    faults: Path
    row_digests: RowDigests | None = None


def ingest_files(
    spec: DatasetSpec,
    paths: Sequence[Path],
    zones: ZoneFolders,
    *,
    seed: int,
    public_paths: Sequence[Path] = (),
    numeric: bool | None = False,
    protected: Sequence[str] = (),
    every_feature: bool = False,
) -> IngestResult:
    """Read `paths` (and `public_paths`, where the public rule names a second file) into typed Parquet by zone.

    File i of both lists, taken together in order, becomes `part-{i:04d}.parquet` in each folder where it has rows:
    the kept columns and `_row`, the number of the row in its file. Row groups, and so the bytes, depend on the
    input alone. Quarantined rows go to `quarantine/` in their zone's folder; details of private faults go to
    `zones.faults` and nowhere else. `seed` is public. `numeric`: the target is a number, and kept as one; None: as public rows
    tell (`tasks.data.label_kind`). `protected`: the label, and columns that some holder keeps to themselves, where others are
    public. `every_feature`: that so are all features.

    Raises ConfigError (a rule that is not one, or names no column) and DataError (what is wrong with the files);
    then neither folder has a Parquet file from this call.
    """
    rule = spec.rule
    if (rule.kind == "file") != bool(public_paths):
        raise ConfigError(f"dataset.public: {rule} and the public files given do not go together")
    files = [
        raw_files.inspect(
            Path(path),
            delimiter=spec.delimiter,
            columns=spec.columns,
            nulls=spec.nulls,
            skip=spec.skip,
            sheets=spec.sheet,
        )
        for path in [*paths, *public_paths]
    ]
    raw_files.same_columns(files)
    make = partial(
        IngestPlan.of, spec, files, len(paths), seed, protected=protected, every_feature=every_feature
    )
    plan = make(numeric=bool(numeric))
    if numeric is None and label_kind(plan.query, plan.files, plan.public) == "number":
        plan = make(numeric=True)
    zones.faults.unlink(missing_ok=True)
    try:
        return _write(plan, zones)
    except BaseException:
        for folder in (zones.public, zones.holders):
            for part in folder.glob("part-*.parquet"):
                part.unlink()
            shutil.rmtree(folder / "quarantine", ignore_errors=True)
        raise


@dataclass(frozen=True, kw_only=True)
class IngestPlan:
    """Everything that is decided before the first row is written."""

    spec: DatasetSpec
    files: Sequence[RawFile]
    public: PublicRows
    query: TypedQuery
    rule_columns: tuple[str, ...]
    found_types: ColumnTypes

    @staticmethod
    def of(
        spec: DatasetSpec,
        files: Sequence[RawFile],
        n_mixed: int,
        seed: int,
        *,
        numeric: bool,
        protected: Sequence[str] = (),
        every_feature: bool = False,
    ) -> IngestPlan:
        """Names and rules checked against the header, types declared or told from public rows."""
        columns = files[0].columns
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
        _check_protected(
            spec, columns, rule_columns, chosen_by, made_of, protected=protected, every_feature=every_feature
        )
        dropped = set(spec.drop)
        kept = [column for column in columns if column not in dropped]
        read = [column for column in columns if column in needed or column not in dropped]
        raw_files.check_count(files[0], len(read))
        unusable = [column for column in read if any(file.family(column) is None for file in files)]
        if unusable:
            raise DataError(
                f"{files[0].name}: {list_columns(unusable)}: lists, structs and bytes cannot be used. Add to dataset.drop."
            )
        public = PublicRows(rule=rule, n_mixed=n_mixed, seed=seed)
        found_types = column_types(
            spec,
            files,
            public,
            UsedColumns(
                read=read,
                in_rule=rule_columns,
                in_where=chosen_by,
                derived_from={used for each in made_of.values() for used in each},
                protected=protected,
                is_numeric_target=numeric and not has_own_type,
            ),
        )
        if found_types.left_out:
            spec = spec.model_copy(update={"drop": (*spec.drop, *found_types.left_out)})
            _check_protected(
                spec,
                columns,
                rule_columns,
                chosen_by,
                made_of,
                protected=protected,
                every_feature=every_feature,
            )
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
        )

    def bad_rows(self, index: int, faults: FaultList) -> BadRows:
        """The bad rows of file `index`."""
        file = self.files[index]
        return BadRows(
            file=file,
            index=index,
            query=self.query,
            public=self.public,
            faults=faults,
            skip_bad_lines=self.spec.on_bad_rows == "quarantine" and file.kind == "csv",
        )


def _check_protected(
    spec: DatasetSpec,
    columns: Sequence[str],
    rule_columns: Sequence[str],
    chosen_by: Sequence[str],
    made_of: Mapping[str, Sequence[str]],
    *,
    protected: Sequence[str],
    every_feature: bool,
) -> None:
    """Raises ConfigError where something that everybody sees would be made of what holders protect."""
    hidden = ProtectedColumns.of(
        spec,
        columns,
        rule_columns=rule_columns,
        made_of=made_of,
        declared=protected,
        every_feature=every_feature,
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
    """Whether the first line is a header beyond doubt, and no row: a column that was named is in it."""
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


@dataclass
class _Tally:
    """What has been counted on the way, of public rows by column; counts of rows by zone."""

    bad: Counter[bool] = field(default_factory=Counter)
    left_out: Counter[bool] = field(default_factory=Counter)
    present: Counter[str] = field(default_factory=Counter)
    labels: set[Any] = field(default_factory=set)
    n_rows: int = 0
    kinds: Kinds = field(default_factory=Counter)


def _write(plan: IngestPlan, zones: ZoneFolders) -> IngestResult:
    """Stream every file into its zones, then check what only the end can tell."""
    tally, faults, row_digests = _Tally(), FaultList(zones.faults), zones.row_digests
    parts: dict[bool, list[ZoneFile]] = {True: [], False: []}
    for folder in (zones.public, zones.holders):
        folder.mkdir(parents=True, exist_ok=True)
    with raw_files.connect(plan.files) as connection:
        for index in range(len(plan.files)):
            name = f"part-{index:04d}.parquet"
            writers = {
                is_public: RowGroupWriter(folder / name)
                for is_public, folder in ((True, zones.public), (False, zones.holders))
            }
            beside = row_digests.running(connection, plan.files[index]) if row_digests else nullcontext()
            with beside as digests:
                try:
                    with connection.cursor() as cursor:
                        _write_file(plan, index, cursor, writers, tally, faults)
                finally:
                    for writer in writers.values():
                        writer.close()
                if digests and writers[False].n_rows:
                    digests.write(zones.holders / name)
            for is_public, writer in writers.items():
                if writer.n_rows:
                    parts[is_public].append(ZoneFile(name=name, rows=writer.n_rows))
    _check_whole(plan, tally, parts, faults)
    return IngestResult(
        columns=plan.query.kept,
        rule_columns=plan.rule_columns,
        label="number" if plan.query.numeric else "class",
        public=tuple(parts[True]),
        private=tuple(parts[False]),
        bad_public=tally.bad[True],
        bad_private=tally.bad[False],
        left_out_public=tally.left_out[True],
        left_out_private=tally.left_out[False],
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


def _write_file(
    plan: IngestPlan,
    index: int,
    connection: Any,
    writers: dict[bool, RowGroupWriter],
    tally: _Tally,
    faults: FaultList,
) -> None:
    """Stream one file. Raises DataError at its first bad row, unless bad rows are quarantined."""
    file, query, stops = plan.files[index], plan.query, plan.spec.on_bad_rows == "stop"
    bad = plan.bad_rows(index, faults)
    group = raw_files.batch_rows(len(query.kept))
    first_row, n_bad = 0, 0
    try:
        typed = raw_files.stream(connection, query.rows(file, skip_bad_lines=bad.skip_bad_lines), file, group)
        with closing(typed) as batches:
            for batch in batches:
                rows = np.arange(first_row, first_row + batch.num_rows)
                first_row += batch.num_rows
                n_bad += _divide(plan, index, batch, rows, writers, tally)
                if stops and n_bad:
                    break
    except DataError as error:
        lines = bad.rejected_lines()
        faults.note_lines(file, lines)
        where = f" (details in {faults})" if lines else ""
        # What a Parquet file holds has its types already: one that cannot be read is damaged as a whole.
        remedy = ', or set on_bad_rows = "quarantine"' if file.kind == "csv" else ", or write it anew"
        raise DataError(f"{error}{where}. Correct the file{remedy}.") from None
    if stops and n_bad:
        raise DataError(bad.message(connection))
    if n_bad:
        tally.kinds += bad.quarantine(connection, {zone: w.path.parent for zone, w in writers.items()})
    if bad.skip_bad_lines:
        lines = raw_files.rejected_lines(connection)
        tally.kinds += bad.quarantine_lines(lines, writers[False].path.parent)
        tally.bad[False] += len(lines)
        first_row += len(lines)
    tally.n_rows += first_row


def _divide(
    plan: IngestPlan,
    index: int,
    batch: Any,
    rows: NDArray[np.int64],
    writers: dict[bool, RowGroupWriter],
    tally: _Tally,
) -> int:
    """Send each row of a batch to its zone; returns how many were bad."""
    import pyarrow as pa

    is_public = plan.public.among(index, batch, rows)
    # A row that is certainly not asked may hold anything; one of which that cannot be told may not.
    is_bad = booleans(batch.column(BAD), missing=True) & booleans(batch.column(ASKED), missing=True)
    is_left_out = ~is_bad & ~booleans(batch.column(ASKED), missing=False)
    is_kept = ~is_bad & ~is_left_out
    names = [column.name for column in plan.query.kept]
    table = pa.table([batch.column(name) for name in names], names=names).append_column(
        RESERVED, pa.array(rows)
    )
    for zone, writer in writers.items():
        in_zone = is_public == zone
        chosen = table.filter(pa.array(is_kept & in_zone))
        writer.write(chosen)
        tally.bad[zone] += int(np.count_nonzero(is_bad & in_zone))
        tally.left_out[zone] += int(np.count_nonzero(is_left_out & in_zone))
        if zone:
            _tally_public(chosen, plan.spec.target, tally)
    return int(np.count_nonzero(is_bad))


def _tally_public(public: Any, target: str, tally: _Tally) -> None:
    import pyarrow.compute as pc

    for name in public.column_names:
        tally.present[name] += public.num_rows - public.column(name).null_count
    if len(tally.labels) < LABELS_LISTED:
        tally.labels.update(pc.unique(public.column(target)).to_pylist()[:LABELS_LISTED])


def _check_whole(
    plan: IngestPlan, tally: _Tally, parts: dict[bool, list[ZoneFile]], faults: FaultList
) -> None:
    """What can be said only of the whole. Raises DataError."""
    spec = plan.spec
    n_bad = tally.bad.total()
    if n_bad > spec.max_bad_fraction * tally.n_rows:
        kinds = "; ".join(f'column "{c}": {k}' if c else k for c, k in list(tally.kinds)[:COLUMNS_LISTED])
        raise DataError(
            f"more than max_bad_fraction = {spec.max_bad_fraction:g} of the rows are bad ({kinds}; details in {faults}). "
            "Correct the files or the declared types, or raise max_bad_fraction."
        )
    if not parts[True]:
        types = {column: plan.query.types[column] for column in plan.rule_columns}
        read_as = f", with {', '.join(f'{c} read as {k}' for c, k in types.items())}" if types else ""
        if tally.left_out[True]:
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
    stated = tally.labels - {None}
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
    empty = [name for name in features if tally.present[name] == 0]
    if empty:
        raise DataError(
            f"every public value is missing in {list_columns(empty)}: nothing is known of its range. Add to dataset.drop."
        )


@step("ingest", version="3", home="holders", order=1, says="typed Parquet, each zone apart")
def ingest(
    draft: Draft,
    *,
    raw: Manifest,
    public_raw: Manifest | None,
    dataset: DatasetSpec,
    seed: int,
    numeric: bool | None = False,
    protected: Sequence[str] = (),
    every_feature: bool = False,
) -> dict[str, Any]:
    """Write the typed rows of each zone ("public", "private"), and who each private row is ("rows"); the private part says
    which raw file each came from.

    `numeric`: the label is a number; None: as public rows tell. `protected`: the label, and columns that some holder keeps to
    themselves, where others are public. `every_feature`: that so are all features.
    """
    store = draft.store
    paths = store.files(raw)
    public_dir, holders_dir = draft.folder("public", "public"), draft.folder("private", "holders")
    zones = ZoneFolders(
        public=public_dir,
        holders=holders_dir,
        faults=store.zone("holders") / "faults" / f"ingest-{draft.place.key[:12]}.txt",
        row_digests=RowDigests(
            draft.folder("rows", "holders"), store.hasher("holders"), dataset.on_bad_rows == "quarantine"
        ),
    )
    found = ingest_files(
        dataset,
        paths,
        zones,
        seed=seed,
        public_paths=store.files(public_raw) if public_raw else (),
        protected=protected,
        every_feature=every_feature,
        numeric=numeric,
    )
    for part, files in (("public", found.public), ("private", found.private)):
        for file in files:
            draft.count(part, file.name, file.rows)
    plain = Hasher()
    sources = {file.name: plain.of_file(paths[int(file.name[5:9])]) for file in found.private}
    (holders_dir / "sources.json").write_text(json.dumps(sources))
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
