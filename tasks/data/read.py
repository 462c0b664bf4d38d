"""read: raw files to typed Parquet, streamed, each row into its own zone. Some of the files of a run, or all of them.

How files are opened is in `storage.raw.raw_files`, how a value becomes a typed one in `storage.raw.typed_rows`, what happens to
those that do not in `storage.raw.bad_rows`; what is decided beforehand in `tasks.data.ingest_plan`.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import DataError
from schemas.dataset import RESERVED, DatasetSpec
from schemas.manifest import Manifest
from storage.digests import Hasher
from storage.holders.row_digests import RowDigests
from storage.raw import raw_files
from storage.raw.bad_rows import FaultList, Kinds
from storage.raw.column_types import ColumnTypes
from storage.raw.pieces import Piece
from storage.raw.public_rows import booleans
from storage.raw.raw_files import RawFile
from storage.raw.row_groups import RowGroupWriter
from storage.raw.typed_rows import ASKED, BAD
from storage.store import Draft
from tasks.data.ingest_plan import IngestPlan, RowRules, inspect_files
from tasks.step import step

LABELS_LISTED = 100
"""Distinct labels of public rows that are kept to be told of."""


@dataclass(frozen=True, kw_only=True)
class ZoneFile:
    """One Parquet file of a zone and its rows."""

    name: str
    rows: int


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


@dataclass
class FilesRead:
    """What was read of some files: the Parquet files of each zone (public or not), the digest of the raw file of each private
    one, and what was counted on the way, of public rows by column, of all by zone.
    """

    parts: dict[bool, list[ZoneFile]] = field(default_factory=lambda: {True: [], False: []})
    sources: dict[str, str] = field(default_factory=dict)
    bad: Counter[bool] = field(default_factory=Counter)
    left_out: Counter[bool] = field(default_factory=Counter)
    present: Counter[str] = field(default_factory=Counter)
    labels: set[Any] = field(default_factory=set)
    n_rows: int = 0
    kinds: Kinds = field(default_factory=Counter)

    def __iadd__(self, other: FilesRead) -> Self:
        """Those of other files, which come after these."""
        for is_public, files in other.parts.items():
            self.parts[is_public] += files
        for mine, theirs in (
            (self.bad, other.bad),
            (self.left_out, other.left_out),
            (self.present, other.present),
            (self.kinds, other.kinds),
        ):
            mine.update(theirs)  # type: ignore[arg-type]
        self.sources |= other.sources
        self.labels |= other.labels
        self.n_rows += other.n_rows
        return self

    def to_json(self) -> bytes:
        """As `from_json` reads it: what is counted by zone or kind as pairs."""
        return json.dumps(
            {
                "parts": [
                    [zone, file.name, file.rows] for zone, files in self.parts.items() for file in files
                ],
                "sources": self.sources,
                "bad": [*self.bad.items()],
                "left_out": [*self.left_out.items()],
                "present": [*self.present.items()],
                "labels": [*self.labels],
                "n_rows": self.n_rows,
                "kinds": [[*kind, n] for kind, n in self.kinds.items()],
            }
        ).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        """What `to_json` wrote."""
        content = json.loads(text)
        read = cls(sources=content["sources"], labels={*content["labels"]}, n_rows=content["n_rows"])
        for zone, name, rows in content["parts"]:
            read.parts[zone].append(ZoneFile(name=name, rows=rows))
        for name in ("bad", "left_out", "present"):
            getattr(read, name).update(dict(content[name]))
        read.kinds.update({(column, kind): n for column, kind, n in content["kinds"]})
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
        shutil.rmtree(folder / "quarantine", ignore_errors=True)


def _write(plan: IngestPlan, zones: ZoneFolders) -> FilesRead:
    """Stream every file into its zones."""
    read, faults, row_digests = FilesRead(), FaultList(zones.faults), zones.row_digests
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
                beside = row_digests.running(connection, file) if row_digests else nullcontext()
                with beside as digests:
                    try:
                        with connection.cursor() as cursor:
                            _write_rows(plan, index, file, cursor, writers, read, faults)
                    finally:
                        for writer in writers.values():
                            writer.close()
                    if digests and writers[False].n_rows:
                        digests.write(zones.holders / name)
            for is_public, writer in writers.items():
                if writer.n_rows:
                    read.parts[is_public].append(ZoneFile(name=name, rows=writer.n_rows))
            if writers[False].n_rows:
                read.sources[name] = Hasher().of_file(whole.path) if piece is None else piece.source
    return read


def _part_name(index: int, piece: Piece | None) -> str:
    """The Parquet file of the rows of file `index`, or of a piece of it: in the order of its rows."""
    return f"part-{index:04d}.parquet" if piece is None else f"part-{index:04d}-{piece.number:06d}.parquet"


def raw_file_of(part: str) -> str:
    """What the names of all Parquet files of one raw file begin with."""
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
    """Stream file `index`, or a piece of it. Raises DataError at its first bad row, unless bad rows are quarantined."""
    query, stops = plan.query, plan.spec.on_bad_rows == "stop"
    bad = plan.bad_rows(index, file, writers[False].path.name, faults)
    group = raw_files.batch_rows(len(query.kept))
    first_row, n_bad = file.first_row, 0
    try:
        typed = raw_files.stream(connection, query.rows(file, skip_bad_lines=bad.skip_bad_lines), file, group)
        with closing(typed) as batches:
            for batch in batches:
                rows = np.arange(first_row, first_row + batch.num_rows)
                first_row += batch.num_rows
                n_bad += _divide(plan, index, batch, rows, writers, read)
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
    if file.rows is not None and first_row != file.rows[1]:
        raise DataError(f"{file.name}: {raw_files.CHANGED}.")
    if n_bad:
        read.kinds += bad.quarantine(connection, {zone: w.path.parent for zone, w in writers.items()})
    if bad.skip_bad_lines:
        lines = raw_files.rejected_lines(connection)
        read.kinds += bad.quarantine_lines(lines, writers[False].path.parent)
        read.bad[False] += len(lines)
        first_row += len(lines)
    read.n_rows += first_row - file.first_row


def _divide(
    plan: IngestPlan,
    index: int,
    batch: Any,
    rows: NDArray[np.int64],
    writers: dict[bool, RowGroupWriter],
    read: FilesRead,
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
        read.bad[zone] += int(np.count_nonzero(is_bad & in_zone))
        read.left_out[zone] += int(np.count_nonzero(is_left_out & in_zone))
        if zone:
            _count_public(chosen, plan.spec.target, read)
    return int(np.count_nonzero(is_bad))


def _count_public(public: Any, target: str, read: FilesRead) -> None:
    import pyarrow.compute as pc

    for name in public.column_names:
        read.present[name] += public.num_rows - public.column(name).null_count
    if len(read.labels) < LABELS_LISTED:
        read.labels.update(pc.unique(public.column(target)).to_pylist()[:LABELS_LISTED])


def zones_of(draft: Draft, dataset: DatasetSpec) -> ZoneFolders:
    """The folders of a step that reads rows."""
    store, place = draft.store, draft.place
    return ZoneFolders(
        public=draft.folder("public", "public"),
        holders=draft.folder("private", "holders"),
        faults=store.zone("holders") / "faults" / f"{place.step}-{place.key[:12]}.txt",
        row_digests=RowDigests(
            draft.folder("rows", "holders"), store.hasher("holders"), dataset.on_bad_rows == "quarantine"
        ),
    )


@step("read", version="1", home="holders", says="typed rows of some of the raw files")
def read(
    draft: Draft,
    *,
    raw: Manifest,
    first: int,
    is_public: bool,
    rules: RowRules,
    settled: Mapping[str, Any],
    piece: Manifest | None = None,
) -> None:
    """Write the rows of a part of the raw files ("public", "private", "rows", as `ingest`), and what was counted ("counts").

    `raw`: that part, of which the first file has the number `first`; `is_public`: files that the public rule names; `settled`:
    what `types` told; `piece`: where the part is one of the pieces of a file that `types` has cut.
    """
    files = inspect_files(rules.dataset, draft.store.files(raw), is_whole=piece is None)
    n_mixed = first if is_public else first + len(files)
    known = ColumnTypes(types=settled["types"], left_out=settled["left_out"])
    plan = IngestPlan.of(rules, files, n_mixed, numeric=settled["numeric"], known=known, first=first)
    if piece is not None:
        (path,) = draft.store.files(piece)
        plan = plan.in_pieces({first: [Piece.from_json(path.read_text())]})
    zones = zones_of(draft, rules.dataset)
    found = read_files(plan, zones)
    for is_in_public, part in ((True, "public"), (False, "private")):
        for file in found.parts[is_in_public]:
            draft.count(part, file.name, file.rows)
    (draft.folder("counts") / "counts.json").write_bytes(found.to_json())
