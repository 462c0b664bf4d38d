"""Ingest: raw files to typed Parquet, streamed, each row into its own zone.

The pure part: paths in, Parquet and a summary out. How files are opened is in `storage.raw_files`, how raw columns
become typed ones in `storage.typed_rows`. Types, ranges and the choice of what is kept come from the spec or from
public rows; no private row has a say in them.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import ConfigError, DataError
from schemas.dataset import RESERVED, ColumnType, DatasetSpec, TypedColumn
from schemas.manifest import Manifest
from schemas.rules import PublicRule
from storage import raw_files, typed_rows
from storage.digests import Hasher
from storage.raw_files import RawFile
from storage.sql import check_predicate, near, quote, shown
from storage.store import Draft
from storage.typed_rows import ASKED, BAD, FAULT_COLUMN, FAULT_KIND, FAULT_VALUE, PUBLIC, TypedQuery
from tasks.checkpoint import step

FAULTS_LISTED = 1000
COLUMNS_LISTED = 10
_MASK = (1 << 64) - 1

_REMEDIES = {
    "not a number": 'Correct it, or declare the column a text (types = {{"{column}" = "text"}}).',
    "not an integer": 'Correct it, or declare the column a number (types = {{"{column}" = "number"}}).',
    "not true or false": 'Correct it, or declare the column a text (types = {{"{column}" = "text"}}).',
    typed_rows.LABEL_MISSING: "Fill it in, or leave such rows out with where = '\"{column}\" IS NOT NULL'.",
    typed_rows.HOLDER_MISSING: "Every row needs its holder. Fill it in.",
    typed_rows.TOO_WIDE: "Correct it, or widen ranges.",
}


@dataclass(frozen=True, kw_only=True)
class ZoneFile:
    """One Parquet file of a zone and its rows."""

    name: str
    rows: int


@dataclass(frozen=True, kw_only=True)
class Ingested:
    """What ingest wrote. Counts of private bad rows belong to the holders' zone and are not to be shown."""

    columns: tuple[TypedColumn, ...]
    """All columns but `_row`, in the order of the Parquet files."""
    rule_columns: tuple[str, ...]
    public: tuple[ZoneFile, ...]
    private: tuple[ZoneFile, ...]
    bad_public: int = 0
    bad_private: int = 0
    left_out_public: int = 0
    left_out_private: int = 0

    @property
    def n_public(self) -> int:
        """Rows in the public zone."""
        return sum(file.rows for file in self.public)

    @property
    def n_private(self) -> int:
        """Rows in the holders' zone."""
        return sum(file.rows for file in self.private)


def ingest_files(
    spec: DatasetSpec,
    paths: Sequence[Path],
    *,
    public_dir: Path,
    holders_dir: Path,
    seed: int,
    public_paths: Sequence[Path] = (),
    faults: Path | None = None,
) -> Ingested:
    """Read `paths` (and `public_paths`, where the public rule names a second file) into typed Parquet by zone.

    File i of both lists, taken together in order, becomes `part-{i:04d}.parquet` in each folder where it has rows:
    the kept columns and `_row`, the number of the row in its file. Row groups, and so the bytes, depend on the
    input alone. Quarantined rows go to `quarantine/` in their zone's folder; details of private faults go to
    `faults` (default: faults.txt in `holders_dir`) and nowhere else. `seed` is public.

    Raises ConfigError (a rule that is not one, or names no column) and DataError (what is wrong with the files);
    then neither folder has a Parquet file from this call.
    """
    rule = spec.rule
    if (rule.kind == "file") != bool(public_paths):
        raise ConfigError(f"dataset.public: {rule} and the public files given do not go together")
    files = [
        raw_files.inspect(Path(path), delimiter=spec.delimiter, columns=spec.columns, nulls=spec.nulls)
        for path in [*paths, *public_paths]
    ]
    raw_files.same_columns(files)
    plan = _Plan.of(spec, files, len(paths), seed)
    faults = faults or holders_dir / "faults.txt"
    faults.unlink(missing_ok=True)
    try:
        return _write(plan, public_dir, holders_dir, faults)
    except BaseException:
        for folder in (public_dir, holders_dir):
            for part in folder.glob("part-*.parquet"):
                part.unlink()
            shutil.rmtree(folder / "quarantine", ignore_errors=True)
        raise


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """Everything that is decided before the first row is written."""

    spec: DatasetSpec
    files: Sequence[RawFile]
    n_mixed: int
    """Files whose rows the rule divides; those after them are public whole (rule kind "file")."""
    seed: int
    query: TypedQuery
    rule_columns: tuple[str, ...]

    @staticmethod
    def of(spec: DatasetSpec, files: Sequence[RawFile], n_mixed: int, seed: int) -> _Plan:
        """Names and rules checked against the header, types declared or told from public rows."""
        columns = files[0].columns
        _check_columns(spec, files[0])
        rule = spec.rule
        rule_columns = check_predicate(rule.predicate, columns, "dataset.public") if rule.predicate else ()
        needed = dict.fromkeys(rule_columns)
        if spec.where is not None:
            needed |= dict.fromkeys(check_predicate(spec.where, columns, "dataset.where"))
        for name, text in spec.derive.items():
            needed |= dict.fromkeys(check_predicate(text, columns, f"dataset.derive.{name}"))
        dropped = set(spec.drop)
        kept = [column for column in columns if column not in dropped]
        read = [column for column in columns if column in needed or column not in dropped]
        unusable = [column for column in read if any(file.family(column) is None for file in files)]
        if unusable:
            raise DataError(
                f"{files[0].name}: {shown(unusable)}: lists, structs and bytes cannot be used. Add to dataset.drop."
            )
        types = _types(spec, files, n_mixed, seed, read, rule_columns)
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
        )
        return _Plan(
            spec=spec, files=files, n_mixed=n_mixed, seed=seed, query=query, rule_columns=rule_columns
        )

    def is_public(self, index: int, batch: Any, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows of a batch of file `index`, with the numbers `rows`, are public. NULL is private."""
        if self.spec.rule.kind == "predicate":
            return _bools(batch.column(PUBLIC), missing=False)
        return _by_number(self.spec.rule, index, self.n_mixed, rows, self.seed)


def _check_columns(spec: DatasetSpec, file: RawFile) -> None:
    """Raises DataError, with all of them, where the spec names columns that are not there."""
    known = {*file.columns, *spec.derive}
    missing = [
        f'dataset.{key}: no column "{name}"{near(name, file.columns)}'
        for key, names in spec.named_columns().items()
        for name in names
        if name not in known
    ]
    if missing:
        raise DataError(f"{file.name}: {'; '.join(missing)}. Columns: {shown(file.columns)}.")
    taken = {column.lower() for column in file.columns}
    again = [name for name in spec.derive if name.lower() in taken]
    if again:
        raise ConfigError(
            f"dataset.derive: {shown(again)}: the file has a column of this name. Choose a new one."
        )
    if not spec.features(file.columns + tuple(spec.derive)):
        raise DataError(f"{file.name}: no features: the target is the only column that is left.")


def _types(
    spec: DatasetSpec,
    files: Sequence[RawFile],
    n_mixed: int,
    seed: int,
    read: Sequence[str],
    rule_columns: Sequence[str],
) -> dict[str, ColumnType]:
    """The type of each column in `read`: declared, else the Parquet's own, else told from its public values.

    The columns of the public rule are public whole, so all their values count.
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
    for column, evidence in _evidence(files, in_rule, None).items():
        known[column] = evidence.verdict() or "text"
    if spec.rule.predicate is not None:
        typed_rows.check_is_predicate(
            spec.rule.predicate, {c: known[c] for c in rule_columns}, "dataset.public"
        )
    unknown = [column for column in read if column not in known]
    public = _PublicRows(spec.rule, n_mixed, seed, {column: known[column] for column in rule_columns})
    numeric = set(spec.features(read, rule_columns)) - set(spec.categorical)
    for column, evidence in _evidence(files, unknown, public).items():
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


@dataclass(frozen=True)
class _PublicRows:
    """Where the raw values of public rows come from, before the types of all columns are known."""

    rule: PublicRule
    n_mixed: int
    seed: int
    rule_types: dict[str, ColumnType]

    def batches(self, file: RawFile, index: int, columns: Sequence[str]) -> Iterator[Any]:
        """Raw `columns` of the public rows of file `index`, as Arrow record batches."""
        if (self.rule.kind == "file" and index < self.n_mixed) or (self.rule.kind == "first" and index > 0):
            return
        query = file.select(columns, columns, skip_bad_lines=file.kind == "csv")
        if self.rule.kind == "predicate":
            query = self._filtered(file, columns)
        elif self.rule.kind == "first":
            query = f"{query} LIMIT {self.rule.count}"
        first_row = 0
        for batch in _raw_batches(file, query, len(columns)):
            if self.rule.kind == "random":
                rows = np.arange(first_row, first_row + batch.num_rows)
                first_row += batch.num_rows
                yield batch.filter(_by_number(self.rule, index, self.n_mixed, rows, self.seed))
            else:
                yield batch

    def _filtered(self, file: RawFile, columns: Sequence[str]) -> str:
        """The rows for which the predicate is true: it sees its columns typed, we want all of them raw."""
        raw = [f"{raw_files.INTERNAL}_raw_{i}" for i in range(len(columns))]
        rule_raw = [f"{raw_files.INTERNAL}_rule_{i}" for i in range(len(self.rule_types))]
        source = file.select(
            [*columns, *self.rule_types], [*raw, *rule_raw], skip_bad_lines=file.kind == "csv"
        )
        typed = "".join(
            f", {typed_rows.typed_sql(file, column, quote(alias), kind)} AS {quote(column)}"
            for alias, (column, kind) in zip(rule_raw, self.rule_types.items(), strict=True)
        )
        named = ", ".join(
            f"{quote(alias)} AS {quote(column)}" for alias, column in zip(raw, columns, strict=True)
        )
        return f"SELECT {named} FROM (SELECT *{typed} FROM ({source})) WHERE TRY(({self.rule.predicate}\n))"


def _raw_batches(file: RawFile, query: str, n_columns: int) -> Iterator[Any]:
    with raw_files.connect([file]) as connection:
        yield from raw_files.stream(connection, query, file, raw_files.batch_rows(n_columns))


def _evidence(
    files: Sequence[RawFile], columns: Sequence[str], public: _PublicRows | None
) -> dict[str, typed_rows.Evidence]:
    """What the values of each column look like: of all rows, or of public ones."""
    total = {column: typed_rows.Evidence() for column in columns}
    if not columns:
        return total
    for index, file in enumerate(files):
        everything = file.select(columns, columns, skip_bad_lines=file.kind == "csv")
        for batch in (
            _raw_batches(file, everything, len(columns))
            if public is None
            else public.batches(file, index, columns)
        ):
            for column, found in typed_rows.gather_evidence(batch, file.nulls).items():
                total[column] += found
    return total


@dataclass
class _Tally:
    """What has been counted on the way, of public rows by column; counts of rows by zone."""

    bad: Counter[bool] = field(default_factory=Counter)
    left_out: Counter[bool] = field(default_factory=Counter)
    present: Counter[str] = field(default_factory=Counter)
    labels: set[Any] = field(default_factory=set)
    n_rows: int = 0
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)


def _write(plan: _Plan, public_dir: Path, holders_dir: Path, faults: Path) -> Ingested:
    """Stream every file into its zones, then check what only the end can tell."""
    tally = _Tally()
    parts: dict[bool, list[ZoneFile]] = {True: [], False: []}
    for folder in (public_dir, holders_dir):
        folder.mkdir(parents=True, exist_ok=True)
    for index in range(len(plan.files)):
        name = f"part-{index:04d}.parquet"
        writers = {
            is_public: _ZoneWriter(folder / name)
            for is_public, folder in ((True, public_dir), (False, holders_dir))
        }
        try:
            _write_file(plan, index, writers, tally, faults)
        finally:
            for writer in writers.values():
                writer.close()
        for is_public, writer in writers.items():
            if writer.n_rows:
                parts[is_public].append(ZoneFile(name=name, rows=writer.n_rows))
    _check_whole(plan, tally, parts, faults)
    return Ingested(
        columns=plan.query.kept,
        rule_columns=plan.rule_columns,
        public=tuple(parts[True]),
        private=tuple(parts[False]),
        bad_public=tally.bad[True],
        bad_private=tally.bad[False],
        left_out_public=tally.left_out[True],
        left_out_private=tally.left_out[False],
    )


def _write_file(
    plan: _Plan, index: int, writers: dict[bool, _ZoneWriter], tally: _Tally, faults: Path
) -> None:
    """Stream one file. Raises DataError at its first bad row, unless bad rows are quarantined."""
    file, query, stops = plan.files[index], plan.query, plan.spec.on_bad_rows == "stop"
    skips = not stops and file.kind == "csv"
    group = raw_files.batch_rows(len(query.kept))
    first_row, n_bad = 0, 0
    with raw_files.connect([file]) as connection:
        try:
            typed = raw_files.stream(connection, query.rows(file, skip_bad_lines=skips), file, group)
            with closing(typed) as batches:
                for batch in batches:
                    rows = np.arange(first_row, first_row + batch.num_rows)
                    first_row += batch.num_rows
                    n_bad += _divide(plan, index, batch, rows, writers, tally)
                    if stops and n_bad:
                        break
        except DataError as error:
            lines = _rejected(file)
            _note_lines(faults, file, lines)
            where = f" (details in {faults})" if lines else ""
            raise DataError(f'{error}{where}. Correct the file, or set on_bad_rows = "quarantine".') from None
        if stops and n_bad:
            raise DataError(_bad_rows_message(plan, index, connection, faults))
        if n_bad:
            _quarantine(
                plan, index, connection, {z: w.path.parent for z, w in writers.items()}, tally, faults
            )
        if skips:
            lines = raw_files.rejected_lines(connection)
            _quarantine_lines(file, index, lines, writers[False].path.parent, tally, faults)
            first_row += len(lines)
    tally.n_rows += first_row


def _divide(
    plan: _Plan,
    index: int,
    batch: Any,
    rows: NDArray[np.int64],
    writers: dict[bool, _ZoneWriter],
    tally: _Tally,
) -> int:
    """Send each row of a batch to its zone; returns how many were bad."""
    import pyarrow as pa

    is_public = plan.is_public(index, batch, rows)
    # A row that is certainly not asked may hold anything; one of which that cannot be told may not.
    is_bad = _bools(batch.column(BAD), missing=True) & _bools(batch.column(ASKED), missing=True)
    is_left_out = ~is_bad & ~_bools(batch.column(ASKED), missing=False)
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
    if len(tally.labels) < 2:
        tally.labels.update(pc.unique(public.column(target)).to_pylist()[:2])


def _check_whole(plan: _Plan, tally: _Tally, parts: dict[bool, list[ZoneFile]], faults: Path) -> None:
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
        raise DataError(
            f"no public rows by the rule {spec.public!r}{read_as}: the tree is grown on them. Check dataset.public."
        )
    if not parts[False]:
        raise DataError(
            f"no private rows: the rule {spec.public!r} makes every row public. Check dataset.public."
        )
    if len(tally.labels) < 2:
        raise DataError(
            f'column "{spec.target}" (the target) has a single value in the public rows: {tally.labels.pop()!r}. '
            "A tree needs at least two; choose another dataset.public."
        )
    features = spec.features([column.name for column in plan.query.kept], plan.rule_columns)
    if not features:
        raise DataError("no features are left besides the target, the rule's columns and what is dropped.")
    empty = [name for name in features if tally.present[name] == 0]
    if empty:
        raise DataError(
            f"every public value is missing in {shown(empty)}: nothing is known of its range. Add to dataset.drop."
        )


def _bad_rows_message(plan: _Plan, index: int, connection: Any, faults: Path) -> str:
    """What is wrong with a file's rows: kinds by column; line, value and count of public rows alone."""
    file = plan.files[index]
    found: Counter[tuple[bool, str, str]] = Counter()
    examples: dict[tuple[str, str], tuple[int, str]] = {}
    listed = 0
    for batch, is_public in _bad_rows(plan, index, connection):
        for zone, row, column, kind, value in zip(
            is_public.tolist(), *(batch.column(n).to_pylist() for n in (RESERVED, FAULT_COLUMN, FAULT_KIND, FAULT_VALUE)),
            strict=True,
        ):  # fmt: skip
            found[zone, column, kind] += 1
            if zone:
                examples.setdefault((column, kind), (row, value))
            elif listed < FAULTS_LISTED:
                listed += 1
                _note(faults, file.name, f"row {row + 1}", column, kind, value)
    pairs = list(dict.fromkeys((column, kind) for _, column, kind in found))
    said = []
    for column, kind in pairs[:COLUMNS_LISTED]:
        parts = []
        if (column, kind) in examples:
            row, value = examples[column, kind]
            line = raw_files.line_of_row(file, row)
            where = f"row {row + 1}" if line is None else f"line {line}"
            count = found[True, column, kind]
            rows = "1 public row" if count == 1 else f"{count} public rows, first"
            parts.append(f"{rows} at {where}" + ("" if value is None else f": {value[:60]!r}"))
        if (False, column, kind) in found:
            parts.append(f"private rows (details in {faults})")
        said.append(f'column "{column}": {kind} in {" and ".join(parts)}')
    if len(pairs) > COLUMNS_LISTED:
        said.append(f"and so on, {len(pairs)} columns in all")
    column, kind = pairs[0]
    remedy = _REMEDIES[kind].format(column=column)
    return f'{file.name}, {"; ".join(said)}. {remedy} Or set on_bad_rows = "quarantine".'


def _bad_rows(plan: _Plan, index: int, connection: Any) -> Iterator[tuple[Any, NDArray[np.bool_]]]:
    """The bad rows of a file, with their first fault and raw text; which of them are public."""
    file = plan.files[index]
    skips = plan.spec.on_bad_rows == "quarantine" and file.kind == "csv"
    query = plan.query.faults(file, skip_bad_lines=skips)
    for batch in raw_files.stream(connection, query, file, raw_files.batch_rows(len(plan.query.types))):
        is_meant = _bools(batch.column(ASKED), missing=True)
        chosen = batch.filter(is_meant)
        rows = chosen.column(RESERVED).to_numpy()
        yield chosen, plan.is_public(index, chosen, rows)


def _quarantine(
    plan: _Plan, index: int, connection: Any, folders: dict[bool, Path], tally: _Tally, faults: Path
) -> None:
    """Write the bad rows of a file, as raw text with their first fault, into their zones."""
    file = plan.files[index]
    hidden = {FAULT_COLUMN: "_column", FAULT_KIND: "_kind"}
    writers = {
        zone: _ZoneWriter(folder / "quarantine" / f"part-{index:04d}.parquet")
        for zone, folder in folders.items()
    }
    listed = 0
    try:
        for batch, is_public in _bad_rows(plan, index, connection):
            columns = [RESERVED, *hidden, *plan.query.types]
            table = _table(batch, columns).rename_columns([hidden.get(name, name) for name in columns])
            for zone, writer in writers.items():
                writer.write(table.filter(is_public == zone))
            values = [
                batch.column(name).to_pylist() for name in (RESERVED, FAULT_COLUMN, FAULT_KIND, FAULT_VALUE)
            ]
            for zone, row, column, kind, value in zip(is_public.tolist(), *values, strict=True):
                tally.kinds[column, kind] += 1
                if not zone and listed < FAULTS_LISTED:
                    listed += 1
                    _note(faults, file.name, f"row {row + 1}", column, kind, value)
    finally:
        for writer in writers.values():
            writer.close()


def _quarantine_lines(
    file: RawFile,
    index: int,
    lines: Sequence[tuple[int, str, str]],
    folder: Path,
    tally: _Tally,
    faults: Path,
) -> None:
    """Write lines that are no rows into the holders' zone: whose they are cannot be told, so they are private."""
    import pyarrow as pa

    if not lines:
        return
    numbers, kinds, texts = (list(column) for column in zip(*lines, strict=True))
    writer = _ZoneWriter(folder / "quarantine" / f"lines-{index:04d}.parquet")
    writer.write(pa.table({"_line": pa.array(numbers, pa.int64()), "_kind": kinds, "_text": texts}))
    writer.close()
    _note_lines(faults, file, lines)
    tally.bad[False] += len(lines)
    tally.kinds.update(("", kind) for kind in kinds)


def _rejected(file: RawFile) -> list[tuple[int, str, str]]:
    """The first lines of a CSV that cannot be parsed, after a read that had to stop."""
    if file.kind != "csv":
        return []
    with raw_files.connect([file]) as connection:
        everything = file.select(file.columns, file.columns, skip_bad_lines=True)
        try:
            raw_files.guarded(
                lambda: connection.execute(f"SELECT count(*) FROM ({everything})").fetchall(), file
            )
        except DataError:
            return []
        return raw_files.rejected_lines(connection, FAULTS_LISTED)


def _note_lines(faults: Path, file: RawFile, lines: Sequence[tuple[int, str, str]]) -> None:
    for line, kind, text in lines[:FAULTS_LISTED]:
        _note(faults, file.name, f"line {line}", "", kind, text)


def _note(faults: Path, *cells: str | None) -> None:
    """One line more in the holders' list of faults, tab-separated."""
    faults.parent.mkdir(parents=True, exist_ok=True)
    with faults.open("a", encoding="utf-8") as stream:
        stream.write("\t".join(" ".join((cell or "").split()) for cell in cells) + "\n")


class _ZoneWriter:
    """One Parquet file in row groups of a fixed size, made when its first row comes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_rows = 0
        self._waiting: list[Any] = []
        self._n_waiting = 0
        self._writer: Any = None

    def write(self, table: Any) -> None:
        """Take rows in; write every row group that is full."""
        if not table.num_rows:
            return
        self._waiting.append(table)
        self._n_waiting += table.num_rows
        self.n_rows += table.num_rows
        size = raw_files.batch_rows(table.num_columns)
        while self._n_waiting >= size:
            self._flush(size)

    def close(self) -> None:
        """Write what is left, and the footer."""
        if self._n_waiting:
            self._flush(self._n_waiting)
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _flush(self, size: int) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        whole = pa.concat_tables(self._waiting)
        group, rest = whole.slice(0, size).combine_chunks(), whole.slice(size)
        self._waiting, self._n_waiting = ([rest], rest.num_rows) if rest.num_rows else ([], 0)
        if self._writer is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = parquet.ParquetWriter(
                self.path,
                group.schema,
                compression="zstd",
                use_dictionary=[name for name in group.column_names if name != RESERVED],
                column_encoding={RESERVED: "DELTA_BINARY_PACKED"} if RESERVED in group.column_names else None,
                store_schema=False,
            )
        self._writer.write_table(group, row_group_size=size)


def _table(batch: Any, columns: Sequence[str]) -> Any:
    import pyarrow as pa

    return pa.table([batch.column(name) for name in columns], names=list(columns))


def _bools(column: Any, *, missing: bool) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = column.fill_null(missing).to_numpy(zero_copy_only=False)
    return mask


def _by_number(
    rule: PublicRule, index: int, n_mixed: int, rows: NDArray[np.int64], seed: int
) -> NDArray[np.bool_]:
    """Which rows are public by their number alone: the rules "random", "first" and "file"."""
    if rule.kind == "file":
        return np.full(len(rows), index >= n_mixed)
    if rule.count is not None:
        return (rows < rule.count) & (index == 0)
    threshold = np.uint64(int((rule.fraction or 0.0) * 2.0**64))
    key = _mix(np.array([seed & _MASK], dtype=np.uint64))
    key = _mix(key ^ np.uint64(index))
    mask: NDArray[np.bool_] = _mix(key + rows.astype(np.uint64)) < threshold
    return mask


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The output function of splitmix64 (Steele, Lea and Flood, 2014): a stable hash of 64 bits."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


@step("ingest", version="1", home="holders")
def ingest(
    draft: Draft, *, raw: Manifest, public_raw: Manifest | None, dataset: DatasetSpec, seed: int
) -> dict[str, Any]:
    """Write the typed rows of each zone ("public", "private"); the private part says which raw file each came from."""
    store = draft.store
    paths = store.files(raw)
    public_dir, holders_dir = draft.folder("public", "public"), draft.folder("private", "holders")
    found = ingest_files(
        dataset,
        paths,
        public_dir=public_dir,
        holders_dir=holders_dir,
        seed=seed,
        public_paths=store.files(public_raw) if public_raw else (),
        faults=store.zone("holders") / "faults" / f"ingest-{draft.place.key[:12]}.txt",
    )
    for part, files in (("public", found.public), ("private", found.private)):
        for file in files:
            draft.count(part, file.name, file.rows)
    plain = Hasher()
    sources = {file.name: plain.of_file(paths[int(file.name[5:9])]) for file in found.private}
    (holders_dir / "sources.json").write_text(json.dumps(sources))
    columns = [column.name for column in found.columns]
    return {
        "columns": [[column.name, column.type, column.storage] for column in found.columns],
        "types": {column.name: column.type for column in found.columns if column.name not in dataset.derive},
        "features": list(dataset.features(columns, found.rule_columns)),
        "rule_columns": list(found.rule_columns),
        "bad_public": found.bad_public,
        "left_out_public": found.left_out_public,
    }
