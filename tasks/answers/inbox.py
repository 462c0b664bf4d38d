"""receive: the valid reports of one closed segment of an inbox, read once, however many runs there are; collect: the sums of all
segments, each report once, or sums that came from elsewhere. The curator's, who sees reports only.

A segment ends in .jsonl and holds one report a line. It is whole when it has that name: a file that is being written has another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ldptree.errors import ConfigError, DataError, ProtocolMismatch
from ldptree.protocol.totals import RawSums
from schemas.manifest import FileEntry, MadeBy, Manifest
from schemas.named_files import BUCKETS, folder_fault, shown_path
from storage.objects.addresses import find_objects, unchanged_file
from storage.reports.lines import ReportLines
from storage.reports.shards import LINES
from storage.store import Draft, Store
from tasks.answers.add import write_sums
from tasks.answers.receive import add_each_once, read_valid
from tasks.artifacts import read_protocol
from tasks.step import step

OPEN = ".part"
"""Ends the name of a segment that is being written."""
MOST_SEGMENTS = 10_000
"""Files in an inbox at most, as each run looks at each of them."""
CHANGED = "changed while it was read. Close a segment by renaming it to *.jsonl, and write no more to it; then run again."


def list_segments(store: Store, inbox: str) -> tuple[list[Manifest], list[str]]:
    """The closed segments of an inbox by name, each as an artifact that stands outside of the store, and the names of other files
    that are no open segments. Raises ConfigError where there is no such folder, DataError where a segment cannot be read.
    """
    try:
        names = _names_in(inbox)
        segments = [_segment(store, name) for name in names if _is_closed(name)]
    except OSError as fault:
        raise DataError(
            f"collection.inbox: {shown_path(fault.filename or inbox)}: cannot be read ({fault.strerror})."
        ) from None
    others = [name for name in names if not _is_closed(name) and not name.endswith(OPEN)]
    return segments, [name.encode(errors="backslashreplace").decode() for name in others]


def find_totals(store: Store, name: str) -> list[Manifest]:
    """The file of totals as an artifact that stands outside of the store; none where it is not there yet. Raises DataError where
    it cannot be read.
    """
    try:
        is_there = bool(find_objects(name)) if name.startswith(BUCKETS) else Path(name).exists()
        return [_segment(store, name)] if is_there else []
    except OSError as fault:
        raise DataError(
            f"collection.totals: {shown_path(name)}: cannot be read ({fault.strerror})."
        ) from None


def _is_closed(name: str) -> bool:
    """Return whether a segment has this name; one that is no text in UTF-8 has none that programs agree on."""
    return name.endswith(LINES) and name.isprintable()


def _names_in(inbox: str) -> list[str]:
    if inbox.startswith(BUCKETS):
        names = find_objects(f"{inbox.rstrip('/')}/*")
    elif (fault := folder_fault(folder := Path(inbox).absolute())) is not None:
        raise ConfigError(
            f"collection.inbox: {shown_path(inbox)}: {fault}. Make the folder where reports arrive."
        )
    else:
        with os.scandir(folder) as files:
            names = sorted(islice((file.path for file in files if file.is_file()), MOST_SEGMENTS + 1))
    if len(names) > MOST_SEGMENTS:
        raise DataError(
            f"collection.inbox: {shown_path(inbox)}: holds more than {MOST_SEGMENTS:,} files. Nothing was read. Put the lines of "
            "many into one, as cat does, and take those away; an id that is there twice counts once."
        )
    return names


def _segment(store: Store, name: str) -> Manifest:
    hasher = store.hasher("curator")
    entry = FileEntry(name=name, digest=hasher.of_file(unchanged_file(name)))
    return Manifest(
        zone="curator",
        path="",
        digest=entry.digest,
        files=(entry,),
        made_by=MadeBy(step="inbox", version="1", parameters={}, inputs={}),
    )


@step("receive", version="2", home="curator", retries=2, says="valid reports of a segment of an inbox")
def receive(draft: Draft, *, question: Manifest, segment: Manifest) -> Mapping[str, Any]:
    """Write the valid reports of a segment ("reports": `reports.parquet`, an id as often as it stands there), and count what else
    there is. Raises DataError where the segment is not what it was when the run began.
    """
    store, protocol = draft.store, read_protocol(draft.store, question)
    with ReportLines.opened() as lines:
        read_valid(lines, store.files(segment), protocol)
        n = lines.write(draft.folder("reports") / "reports.parquet")
        rejected, refused = lines.count_faults(), next(iter(lines.refused.values()), "")
    draft.count("reports", "reports.parquet", n)
    if store.condition(segment) != "present":
        raise DataError(f"{shown_path(segment.files[0].name)}: {CHANGED}")
    return {"n_valid": n, "rejected": rejected, "refused": refused}


def add_totals(path: Path, sums: RawSums) -> None:
    """Add the sums in a file, as `ldptree aggregate` writes `raw.parquet`.

    Raises ProtocolMismatch where they are of another protocol, DataError where the file holds no sums, or none that people gave.
    """
    where, protocol = f"collection.totals: {path.name}", sums.protocol
    try:
        with pq.ParquetFile(path) as file:
            stated = file.schema_arrow.metadata or {}
            if stated.get(b"protocol", b"").decode() != protocol.digest:
                raise ProtocolMismatch(f"{where}: says of another protocol, or of none, that it answers it.")
            if file.metadata.num_rows != sums.raw.size:
                raise ValueError
            column = file.read(["raw"]).column("raw")
        is_whole = pa.types.is_integer(column.type) and not column.null_count
        holders = json.loads(stated.get(b"holders_of_outputs", b"[%s]" % stated[b"n_private"]))
        n_reports = np.array(holders, dtype=np.int64)
        raw = column.cast("int64").to_numpy().reshape(sums.raw.shape)
        is_given = is_whole and n_reports.shape == sums.n_reports.shape and bool((n_reports >= 0).all())
        given = zip(raw, n_reports, strict=True)
        is_given = is_given and all(protocol.mechanism.can_be_sum(part, int(n)) for part, n in given)
    except (OSError, pa.ArrowException, KeyError, ValueError, OverflowError, TypeError, RecursionError):
        raise DataError(
            f"{where}: not the sums of this question, as `ldptree aggregate` writes raw.parquet."
        ) from None
    if not is_given:
        raise DataError(f"{where}: sums that so many people cannot have given. Nothing was learned.")
    sums.raw += raw
    sums.n_reports += n_reports


@step("collect", version="1", home="curator", retries=2, says="raw sums of all reports of an inbox")
def collect(
    draft: Draft, *, question: Manifest, reports: Sequence[Manifest], totals: Sequence[Manifest] = ()
) -> Mapping[str, Any]:
    """Write the sums of the valid reports of all segments ("sums", as `add`), of each id the first, and count the others. Or
    write the sums in files of totals. Raises DataError where these are not what they were when the run began.
    """
    store, sums = draft.store, RawSums.none(read_protocol(draft.store, question))
    with ReportLines.opened() as lines:
        lines.add_written([path for manifest in reports for path in store.files(manifest)])
        add_each_once(lines, sums)
        repeated = lines.count_faults()
    for manifest in totals:
        for path in store.files(manifest):
            add_totals(path, sums)
        if store.condition(manifest) != "present":
            raise DataError(f"{shown_path(manifest.files[0].name)}: changed while it was read; run again.")
    write_sums(draft, sums)
    draft.count("sums", "raw.npy", sums.n_private)
    return {"n_private": sums.n_private, "rejected": repeated}
