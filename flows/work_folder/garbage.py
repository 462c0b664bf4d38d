"""Delete the artifacts of a work folder that no kept run refers to, and files that are no object (`ldptree gc`).
Nothing else deletes an artifact.

Of a folder it holds the lock, and no run is going on. In a bucket other machines may be at a run, whom no lock keeps out: what is
younger than `GRACE` stays there, with all it was made of, and so do questions, by which answers are read. Everything else can be
made again: a run that was about to use something older finds it missing, and the same command makes it anew.
"""

from __future__ import annotations

import contextlib
import math
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq

from flows.work_folder.index import STARTED, write_index
from flows.work_folder.provenance import in_use, open_existing, records_of_run, whole_records
from ldptree.errors import ConfigError
from schemas.manifest import ZONES, Manifest, Record
from storage import warehouse
from storage.ledger.campaigns import campaigns_in
from storage.ledger.database import LAST
from storage.ledger.lost_parts import check_state
from storage.objects.copies import files_below, unused_raw_copies
from storage.objects.object_store import Entry
from storage.reports.published import answers_of_closed
from storage.store import ARTIFACT, Store

GRACE = timedelta(days=7)
"""What was written since stays in a bucket, by the bucket's own clock."""
NEVER_COLLECTED = "faults"
"""The folder of a zone that `gc` leaves alone."""
_RUN = re.compile(r".*-\d{8}-\d{6}-\d{6}|run-\d+")
_OF_A_RUN = ("records.json", "run.json", "page.html")


def collect_garbage(work: Path, *, keep: int, dry_run: bool) -> str:
    """Delete the artifacts that none of the newest `keep` runs refers to, copies of kept runs, and what killed runs left. Says
    what went. Raises ConfigError.
    """
    store = open_existing(work)
    with in_use(store.root, alone=True):
        garbage = _look(store, keep)
        if not dry_run:
            _delete(store, garbage)
            _write_lists(store, garbage)
    verb, kept = "would go" if dry_run else "gone", f"{garbage.n_kept} runs kept"
    if store.objects.is_shared:
        kept += f", and what was written in the last {GRACE.days} days"
    return f"{len(garbage.doomed) + len(garbage.leftovers)} files and folders {verb}, {garbage.size / 1e6:.1f} MB; {kept}"


def newest_runs(store: Store, keep: int) -> list[str]:
    """Return the names of the newest runs. Among runs with the same artifacts only the newest counts. Raises
    ArtifactCorrupt.
    """
    return _newest(store, _runs(store), keep)


def _newest(store: Store, runs: Sequence[str], keep: int) -> list[str]:
    kept: dict[frozenset[str], str] = {}
    for run in reversed(runs):
        if len(kept) < keep:
            kept.setdefault(frozenset(records_of_run(store, run) or {run}), run)
    return list(kept.values())


@dataclass(frozen=True, kw_only=True)
class _Garbage:
    """The garbage of a work folder, by name, with records before other objects and folders, and local files that are no
    object.
    """

    runs: list[str]
    started: list[str]
    records: list[str]
    artifacts: list[str]
    leftovers: list[Path]
    size: int
    n_kept: int

    @property
    def doomed(self) -> list[str]:
        return [*self.runs, *self.started, *self.records, *self.artifacts]


def _look(store: Store, keep: int) -> _Garbage:
    """Find the garbage. Where other machines write too it is looked for again until nothing was recorded meanwhile. Raises
    ArtifactCorrupt.
    """
    while True:
        seen = _written(store)
        garbage = _garbage(store, keep)
        if not store.objects.is_shared or _written(store) == seen:
            return garbage


def _written(store: Store) -> set[str]:
    """All that says that something is needed."""
    last = store.objects.get(LAST).decode() if store.objects.size(LAST) is not None else ""
    return {*store.all_record_names(), last}


def _garbage(store: Store, keep: int) -> _Garbage:
    objects = store.objects
    since = objects.now() - GRACE.total_seconds() if objects.is_shared else math.inf
    aside = objects.not_objects()  # before the objects: a copy of a later one is not among them
    listed = [entry for top in (*ZONES, "runs", STARTED) for entry in objects.entries(top, deep=True)]
    young = {entry.name for entry in listed if entry.modified > since}
    runs = _runs(store)
    newest = _newest(store, runs, keep)
    kept = [run for run in runs if run in newest or any(_is_below(name, f"runs/{run}") for name in young)]
    records = {name for run in kept for name in records_of_run(store, run)} | answers_of_closed(objects)
    check_state(store)
    everything = whole_records(store)
    received = _protected(store)
    needed = _standing(store, everything, everything.keys() & (records | young), received)
    protected = received | {_unit(m) for name in needed for m in everything[name].parts.values()}
    recorded = {_unit(m) for record in everything.values() for m in record.parts.values()}
    doomed = {
        "runs": [f"runs/{run}" for run in runs if run not in kept],
        "started": [
            entry.name
            for entry in listed
            if entry.name.rpartition("/")[0] == STARTED and _RUN.fullmatch(PurePosixPath(entry.name).stem)
        ],
        "records": sorted(everything.keys() - needed),
        "artifacts": [
            unit
            for unit in _units(store, listed)
            if unit not in protected and (unit in recorded or not _is_drawn_once(store, unit))
        ],
    }
    above = {part for name in young for part in _with_folders(name)}
    if objects.is_shared:  # what was listed later than that may be of a moment ago
        seen = {part for entry in listed for part in _with_folders(entry.name)}
        doomed = {kind: [name for name in names if name in seen] for kind, names in doomed.items()}
    doomed = {kind: [name for name in names if name not in above] for kind, names in doomed.items()}
    gone = {name for names in doomed.values() for name in names}
    going = [entry for entry in listed if not gone.isdisjoint(_with_folders(entry.name))]
    kept_copies = {entry.copy for entry in listed} - {entry.copy for entry in going}
    leftovers = [path for path in aside if path not in kept_copies] + unused_raw_copies(GRACE)
    return _Garbage(
        **doomed,
        leftovers=leftovers,
        size=sum(entry.size for entry in going) + sum(map(size_on_disk, leftovers)),
        n_kept=len(kept),
    )


def _standing(
    store: Store, everything: Mapping[str, Record], kept: Iterable[str], received: Set[str]
) -> set[str]:
    """Return the records that stay if these do. `received` is as in `_protected`."""
    behind = _behind_answers(everything)
    return _with_sources(set(kept), everything) | {
        name
        for name, record in everything.items()
        if _is_release(record)
        or name in behind
        or (store.objects.is_shared and record.step == "partition")
        or (record.parts and all(_unit(m) in received for m in record.parts.values()))
    }


def _units(store: Store, listed: Iterable[Entry]) -> Iterator[str]:
    """Return the units that go whole or not at all, such as an artifact's folder or a shard's file of reports."""
    for zone in ZONES:
        for step in store.objects.folders(zone):
            name = step.rpartition("/")[2]
            if name == NEVER_COLLECTED:
                continue
            if name == "reports":
                units = [entry.name for entry in listed if _is_below(entry.name, step)]
            else:
                files = (entry.name for entry in listed if entry.name.rpartition("/")[0] == step)
                units = [*store.objects.folders(step), *files]
            yield from (unit for unit in units if ARTIFACT.fullmatch(unit.split("/")[2]))


def _is_below(name: str, folder: str) -> bool:
    return name.startswith(f"{folder}/")


def _with_folders(name: str) -> list[str]:
    """A name, and those of the folders it is in."""
    return [name, *map(str, PurePosixPath(name).parents)]


def _runs(store: Store) -> list[str]:
    """The names of all runs, oldest first."""
    folders = [folder for folder in store.objects.folders("runs") if _is_run(store, folder)]
    when = dict(zip(folders, store.objects.at_once(store.objects.modified, folders), strict=True))
    return [
        folder.rpartition("/")[2] for folder in sorted(folders, key=lambda folder: (when[folder], folder))
    ]


def _is_run(store: Store, folder: str) -> bool:
    """Return whether a run made this folder, which may have been killed before it wrote anything there."""
    if _RUN.fullmatch(folder.rpartition("/")[2]):
        return True
    return any(store.objects.size(f"{folder}/{name}") is not None for name in _OF_A_RUN)


def _delete(store: Store, garbage: _Garbage) -> None:
    """Delete what goes. Raises ConfigError, once all others are gone, where some cannot be."""
    standing: list[OSError] = []
    acts = [partial(store.objects.withdraw, name) for name in garbage.doomed]
    for act in (*acts, *(partial(_remove, path) for path in garbage.leftovers)):
        try:
            act()
        except FileNotFoundError:
            pass
        except OSError as fault:
            standing.append(fault)
    if standing:
        others = f" and {len(standing) - 1:,} more" if standing[1:] else ""
        raise ConfigError(
            f"{standing[0].filename}{others}: cannot be deleted ({standing[0].strerror}); all else that no kept run refers to "
            "is gone. Give this user the right to write there, and run the same command."
        )


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def size_on_disk(path: Path) -> int:
    """Bytes of a file, or of all files in a folder and below it."""
    files = files_below(path) if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _write_lists(store: Store, garbage: _Garbage) -> None:
    """Write the lists of runs anew where some went."""
    if (garbage.runs or garbage.started) and store.objects.size("index.html") is not None:
        write_index(store)
    if garbage.runs and store.objects.size(f"curator/{warehouse.NAME}") is not None:
        with contextlib.suppress(Exception):  # of damaged totals, say: the next run builds it anew
            warehouse.build(store, warehouse.all_runs(store))


def _is_release(record: Record) -> bool:
    """Return whether holders answered with unseeded noise. Without the record they would be asked once more."""
    return record.step == "perturb" and not record.facts.get("seeded", False)


def _is_question(record: Record) -> bool:
    return record.step in ("partition", "aggregate")


def _is_drawn_once(store: Store, name: str) -> bool:
    """Return whether a file holds reports of a release, which a run killed before recording them continues with."""
    if "reports" not in name.split("/") or not name.endswith(".parquet"):
        return False
    try:
        return b"simulation" not in (pq.read_schema(store.objects.path(name)).metadata or {})
    except (OSError, pa.ArrowException):
        return True


def _behind_answers(everything: Mapping[str, Record]) -> set[str]:
    """Return the records that a release's answers need, such as questions, shown rows and earlier transcripts.

    What these were made of at the holders', their rows, can be made again from the raw files.
    """
    makers = {m.digest: name for name, record in everything.items() for m in record.parts.values()}
    released = [
        record
        for record in everything.values()
        if _is_release(record) and any("question" in m.made_by.inputs for m in record.parts.values())
    ]
    todo = [makers[d] for r in released for d in _inputs(r) if d in makers]
    behind: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in behind:
            behind.add(name)
            if _is_question(everything[name]):
                todo += [makers[d] for d in _inputs(everything[name]) if d in makers]
    return behind


def _inputs(record: Record) -> list[str]:
    return [digest for manifest in record.parts.values() for digest in manifest.made_by.inputs.values()]


def _protected(store: Store) -> set[str]:
    """Return the paths that a campaign published or received, which no garbage collection may touch."""
    paths: set[str] = set()
    for campaign in campaigns_in(store):
        frozen = campaign.frozen()
        if frozen is not None:
            paths.add(frozen.protocol.path)
        paths |= {_unit(report) for report in campaign.reports()}
    return paths


def _with_sources(wanted: set[str], everything: Mapping[str, Record]) -> set[str]:
    """Those records, and the records of all that went into their artifacts."""
    makers = {
        digest: name
        for name, record in everything.items()
        for manifest in record.parts.values()
        for digest in (manifest.digest, *(entry.digest for entry in manifest.files))
    }
    reached, todo = set(wanted), list(wanted)
    while todo:
        for manifest in everything[todo.pop()].parts.values():
            new = {makers[d] for d in manifest.made_by.inputs.values() if d in makers} - reached
            reached |= new
            todo += new
    return reached


def _unit(manifest: Manifest) -> str:
    """Return the path that `gc` keeps or deletes, which is an artifact's folder or the file of a shard's reports."""
    return (
        f"{manifest.path}/{manifest.files[0].name}" if "/reports/" in f"/{manifest.path}/" else manifest.path
    )
