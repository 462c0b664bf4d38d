"""read: a part of the raw files to typed Parquet, streamed, each row into its own zone.

How files are opened is in `storage.raw.raw_files`, how a value becomes a typed one in `storage.raw.typed_rows`, what happens to
those that do not in `storage.raw.bad_rows`; what is decided beforehand in `tasks.data.ingest_plan`.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import DataError
from schemas.dataset import ROW_NUMBER, TypedColumn
from schemas.manifest import Manifest
from storage.digests import Hasher
from storage.raw import raw_files
from storage.raw.bad_rows import FaultList, RowGroupWriter
from storage.raw.column_types import ColumnTypes
from storage.raw.pieces import Piece
from storage.raw.public_rows import booleans
from storage.raw.raw_files import RawFile
from storage.raw.typed_rows import BAD, NAMELESS, SELECTED
from storage.store import Draft
from tasks.data.ingest_plan import IngestPlan, RowRules, inspect_files
from tasks.step import step

READ_AS = "read_as"
"""The fact of `types` that is the type of every raw column that is read."""
LABELS_LISTED = 100
"""Distinct labels of public rows that are kept to be told of."""


@dataclass(frozen=True, kw_only=True)
class ZoneFile:
    """One Parquet file of a zone and its rows."""

    name: str
    rows: int


@dataclass(frozen=True, kw_only=True)
class ZoneFolders:
    """The folders for the rows of each zone.

    Attributes:
        public, holders: the folders of typed rows.
        faults: the file with details of private faults.
    """

    public: Path
    holders: Path
    faults: Path


@dataclass
class FilesRead:
    """The result of reading some files. It has the Parquet files of each zone (public or not), the digest of each
    private raw file, and counts of public rows that are bad, left out, or have a value in a column.
    """

    parts: dict[bool, list[ZoneFile]] = field(default_factory=lambda: {True: [], False: []})
    sources: dict[str, str] = field(default_factory=dict)
    bad: int = 0
    left_out: int = 0
    present: Counter[str] = field(default_factory=Counter)
    labels: set[Any] = field(default_factory=set)

    def __iadd__(self, other: FilesRead) -> Self:
        """Those of other files, which come after these."""
        for is_public, files in other.parts.items():
            self.parts[is_public] += files
        self.bad += other.bad
        self.left_out += other.left_out
        self.present.update(other.present)
        self.sources |= other.sources
        self.labels |= other.labels
        return self

    def to_json(self) -> bytes:
        """As `from_json` reads it."""
        return json.dumps(
            {
                "parts": [
                    [zone, file.name, file.rows] for zone, files in self.parts.items() for file in files
                ],
                "sources": self.sources,
                "bad": self.bad,
                "left_out": self.left_out,
                "present": self.present,
                "labels": [*self.labels],
            }
        ).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        """Read what `to_json` wrote."""
        content = json.loads(text)
        parts = content.pop("parts")
        changes = {"present": Counter(content["present"]), "labels": {*content["labels"]}}
        read = cls(**content | changes)
        for zone, name, rows in parts:
            read.parts[zone].append(ZoneFile(name=name, rows=rows))
        return read


def read_files(plan: IngestPlan, zones: ZoneFolders) -> FilesRead:
    """Stream the files of a plan into their zones. Raises as `write_zones`."""
    zones.faults.unlink(missing_ok=True)
    try:
        return _write(plan, zones)
    except BaseException:
        clear_zones(zones)
        raise


def clear_zones(zones: ZoneFolders) -> None:
    """Take away what was written."""
    for folder in (zones.public, zones.holders):
        for part in folder.glob("part-*.parquet"):
            part.unlink()
    shutil.rmtree(zones.public / "quarantine", ignore_errors=True)


def _write(plan: IngestPlan, zones: ZoneFolders) -> FilesRead:
    """Stream every file into its zones."""
    read, faults = FilesRead(), FaultList(zones.faults)
    for folder in (zones.public, zones.holders):
        folder.mkdir(parents=True, exist_ok=True)
    for index, whole in enumerate(plan.files, start=plan.first):
        for piece in plan.pieces.get(index, [None]):
            name = _part_name(index, piece)
            file = whole if piece is None else piece.open(whole)
            writers = {
                is_public: RowGroupWriter(folder / name)
                for is_public, folder in ((True, zones.public), (False, zones.holders))
            }
            with raw_files.connect([whole, file]) as connection:
                try:
                    with connection.cursor() as cursor:
                        _write_rows(plan, index, file, cursor, writers, read, faults)
                finally:
                    for writer in writers.values():
                        writer.close()
            for is_public, writer in writers.items():
                if writer.n_rows:
                    read.parts[is_public].append(ZoneFile(name=name, rows=writer.n_rows))
            if writers[False].n_rows:
                read.sources[name] = Hasher().of_file(whole.path) if piece is None else piece.source
    return read


def _part_name(index: int, piece: Piece | None) -> str:
    """Return the Parquet file for the rows of file `index` or a piece of it. Names sort in the order of the rows."""
    return f"part-{index:04d}.parquet" if piece is None else f"part-{index:04d}-{piece.number:06d}.parquet"


def raw_file_of(part: str) -> str:
    """Return the beginning that the names of all Parquet files of one raw file have."""
    return "-".join(Path(part).stem.split("-")[:2])


def _write_rows(
    plan: IngestPlan,
    index: int,
    file: RawFile,
    connection: Any,
    writers: dict[bool, RowGroupWriter],
    read: FilesRead,
    faults: FaultList,
) -> None:
    """Stream file `index`, or a piece of it; private lines that could not be split come last of its rows.

    Raises DataError at the first bad public row, or private one without a holder, unless bad rows are quarantined.
    """
    query, stops = plan.query, plan.spec.on_bad_rows == "stop"
    bad = plan.bad_rows(index, file, writers[False].path.name, faults)
    group = raw_files.batch_rows(len(query.kept))
    first_row, has_bad, must_stop = file.first_row, False, False
    try:
        typed = raw_files.stream(connection, query.rows(file, skip_bad_lines=bad.skip_bad_lines), file, group)
        with closing(typed) as batches:
            for batch in batches:
                rows = np.arange(first_row, first_row + batch.num_rows)
                first_row += batch.num_rows
                is_bad, is_lost = _divide(plan, index, batch, rows, writers, read)
                has_bad, must_stop = has_bad or is_bad, stops and is_lost
                if must_stop:
                    break
    except DataError as error:
        lines = bad.rejected_lines()
        faults.note_lines(file, lines)
        where = f" (details in {faults})" if lines else ""
        # What a Parquet file holds has its types already: one that cannot be read is damaged as a whole.
        remedy = ', or set on_bad_rows = "quarantine"' if file.kind == "csv" else ", or write it anew"
        raise DataError(f"{error}{where}. Correct the file{remedy}.") from None
    if must_stop:
        raise DataError(bad.message(connection))
    if file.rows is not None and first_row != file.rows[1]:
        raise DataError(f"{file.name}: {raw_files.CHANGED}.")
    if has_bad:
        bad.note(connection, writers[True].path.parent)
    lines = raw_files.rejected_lines(connection) if bad.skip_bad_lines else []
    faults.note_lines(file, lines)
    if any(kind == raw_files.OPEN_QUOTE for _, kind, _ in lines):
        raise DataError(
            f"{file.name}: {raw_files.OPEN_QUOTE}, so nobody knows where the rows below it begin (details in {faults}). "
            "Close it, or double it within a field."
        )
    if plan.public.is_whole(index):
        read.bad += len(lines)
    elif query.holder is None:  # else nobody who could be asked
        writers[False].write(_unread_rows(query.kept, first_row, len(lines)))


def _divide(
    plan: IngestPlan,
    index: int,
    batch: Any,
    rows: NDArray[np.int64],
    writers: dict[bool, RowGroupWriter],
    read: FilesRead,
) -> tuple[bool, bool]:
    """Send each row of a batch to its zone; return whether any was bad, and whether any of these cannot be kept."""
    import pyarrow as pa

    is_public = plan.public.among(index, batch, rows)
    is_asked, is_bad = (
        booleans(batch.column(SELECTED), missing=False),
        booleans(batch.column(BAD), missing=True),
    )
    # A public row that `where` excludes may be bad; where `where` cannot be evaluated, a bad one is an error. A bad private row
    # is still asked, so that the number of reports says nothing about values.
    is_lost = is_bad & np.where(
        is_public,
        booleans(batch.column(SELECTED), missing=True),
        is_asked & booleans(batch.column(NAMELESS), missing=True),
    )
    is_kept = is_asked & ~is_lost
    names = [column.name for column in plan.query.kept]
    table = pa.table([batch.column(name) for name in names], names=names)
    # The number of a public row would tell how many lines above it are rows.
    public = table.filter(pa.array(is_kept & is_public))
    private = table.append_column(ROW_NUMBER, pa.array(rows)).filter(pa.array(is_kept & ~is_public))
    writers[True].write(public)
    writers[False].write(_blank(private, is_bad[is_kept & ~is_public], plan.query.target))
    read.bad += int(np.count_nonzero(is_lost & is_public))
    read.left_out += int(np.count_nonzero(is_public & ~is_lost & ~is_asked))
    _count_public(public, plan.spec.target, read)
    return bool((is_bad & (is_asked | is_lost)).any()), bool(is_lost.any())


def _blank(private: Any, is_bad: NDArray[np.bool_], target: str) -> Any:
    """Private rows, of which bad ones have no label, and so report "outside", and no number that is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_bad.any():
        return private
    for place, kept in enumerate(private.schema):
        column, gone = private.column(place), pa.array(is_bad)
        if kept.name != target:
            if not pa.types.is_floating(kept.type):
                continue
            gone = pc.and_(gone, pc.fill_null(pc.invert(pc.is_finite(column)), False))
        private = private.set_column(place, kept, pc.if_else(gone, pa.scalar(None, kept.type), column))
    return private


def _unread_rows(columns: Sequence[TypedColumn], first: int, n: int) -> Any:
    """So many private rows of which nothing but their number, from `first` on, is known."""
    import pyarrow as pa

    nothing = {column.name: pa.nulls(n, pa.type_for_alias(column.storage)) for column in columns}
    return pa.table(nothing | {ROW_NUMBER: pa.array(np.arange(first, first + n))})


def _count_public(public: Any, target: str, read: FilesRead) -> None:
    import pyarrow.compute as pc

    for name in public.column_names:
        read.present[name] += public.num_rows - public.column(name).null_count
    if len(read.labels) < LABELS_LISTED:
        read.labels.update(pc.unique(public.column(target)).to_pylist()[:LABELS_LISTED])


def zones_of(draft: Draft) -> ZoneFolders:
    """The folders of a step that reads rows."""
    store, place = draft.store, draft.place
    return ZoneFolders(
        public=draft.folder("public", "public"),
        holders=draft.folder("private", "holders"),
        faults=store.zone("holders") / "faults" / f"{place.step}-{place.key[:12]}.txt",
    )


@step("read", version="4", home="holders", says="typed Parquet, each zone apart")
def read(
    draft: Draft,
    *,
    raw: Manifest,
    first: int,
    is_public: bool,
    rules: RowRules,
    typed: Mapping[str, Any],
    piece: Manifest | None = None,
) -> None:
    """Write the typed rows of a part of the raw files ("public", "private"), and what was counted ("counts").

    `raw`: that part, of which the first file has the number `first`; `is_public`: files that the public rule names; `typed`: what
    `types` told; `piece`: where the part is one of the pieces of a file that `types` has cut.
    """
    files = inspect_files(
        rules.dataset, draft.store.files(raw), is_whole=False
    )  # `types` looked at every byte
    n_mixed = first if is_public else first + len(files)
    known = ColumnTypes(types=typed[READ_AS], left_out=typed["columns_left_out"])
    is_number = typed["label"] == "number"
    plan = IngestPlan.of(rules, files, n_mixed, numeric=is_number, known=known, first=first)
    if piece is not None:
        (path,) = draft.store.files(piece)
        plan = plan.in_pieces({first: [Piece.from_json(path.read_text())]})
    zones = zones_of(draft)
    done = read_files(plan, zones)
    for is_in_public, part in ((True, "public"), (False, "private")):
        for file in done.parts[is_in_public]:
            draft.count(part, file.name, file.rows)
    (draft.folder("counts") / "counts.json").write_bytes(done.to_json())
