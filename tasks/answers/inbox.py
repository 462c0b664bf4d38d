"""receive: the valid reports of one closed segment of an inbox, read once, however many runs there are; collect: the sums of all
segments, each report once. The curator's, who sees reports only.

A segment ends in .jsonl and holds one report a line. It is whole when it has that name: a file that is being written has another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ldptree.errors import ConfigError, DataError
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


def _is_closed(name: str) -> bool:
    """Return whether a segment has this name; one that is no text in UTF-8 has none that programs agree on."""
    return name.endswith(LINES) and name.isprintable()


def _names_in(inbox: str) -> list[str]:
    if inbox.startswith(BUCKETS):
        return find_objects(f"{inbox.rstrip('/')}/*")
    folder = Path(inbox).absolute()
    if (fault := folder_fault(folder)) is not None:
        raise ConfigError(
            f"collection.inbox: {shown_path(inbox)}: {fault}. Make the folder where reports arrive."
        )
    return sorted(str(path) for path in folder.iterdir() if path.is_file())


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


@step(
    "receive", version="1", home="curator", retries=2, order=12, says="valid reports of a segment of an inbox"
)
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


@step("collect", version="1", home="curator", retries=2, order=13, says="raw sums of all reports of an inbox")
def collect(draft: Draft, *, question: Manifest, reports: Sequence[Manifest]) -> Mapping[str, Any]:
    """Write the sums of the valid reports of all segments ("sums", as `add`), of each id the first, and count the others."""
    store, sums = draft.store, RawSums.none(read_protocol(draft.store, question))
    with ReportLines.opened() as lines:
        lines.add_written([path for manifest in reports for path in store.files(manifest)])
        add_each_once(lines, sums)
        repeated = lines.count_faults()
    write_sums(draft, sums)
    draft.count("sums", "raw.npy", sums.n_private)
    return {"n_private": sums.n_private, "rejected": repeated}
