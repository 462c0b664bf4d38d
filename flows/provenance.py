"""What a work folder holds and why: `ldptree explain` and `ldptree gc`. Artifacts are written elsewhere; only `gc`
deletes them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from flows.index import STARTED, write_index
from ldptree.errors import ConfigError
from schemas.manifest import ZONES, Manifest, Record
from schemas.named_files import BUCKETS, NO_SUCH_FOLDER, folder_fault, shown_path
from storage import warehouse
from storage.formats import read_stamped
from storage.ledger.campaigns import Campaign
from storage.ledger.seal import check_state
from storage.objects.addresses import bucket_address, refuse_bucket
from storage.store import Store

NEVER_COLLECTED = ("campaigns", "faults", "ledger", "released_checks")
"""Folders of a zone that `gc` leaves alone."""
_ARTIFACT = re.compile(
    r"[0-9a-f]{16}|[0-9a-f]{32}(?:-[a-z_]+)?(?:-[0-9a-f]{16})?|[0-9a-f]{40}(?:\.part)?|\.(?:aside|copy)-[0-9a-f]+"
)
"""How the store names what it writes two folders below the work folder; what is called otherwise is not ours to delete."""
_FORMER_ROUND_STEPS = ("ask", "publish")
"""What earlier versions called partition and aggregate of a conversation in rounds, and "answer" its perturb."""
_RUN = re.compile(r".*-\d{8}-\d{6}-\d{6}|run-\d+")
_OF_A_RUN = ("records.json", "run.json", "report.html")
_OF_A_WORK_FOLDER = (
    ".in-use",
    "holders/secret",
    "holders/seal",
    "holders/released_checks",
    "prefect",
    "runs",
)


@contextlib.contextmanager
def in_use(work: Path, *, alone: bool = False) -> Iterator[None]:
    """Hold the work folder: runs share it, `gc` needs it alone. Raises ConfigError where a run is going on."""
    with (work / ".in-use").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
        except BlockingIOError:
            raise ConfigError(f"{work}: a run is going on here. Collect garbage when it is done.") from None
        yield


def explain_artifact(work: Path, name: str) -> str:
    """Where an artifact came from, step by step back to its sources. Raises ConfigError, ArtifactCorrupt."""
    store = _existing(work)
    check_state(store)
    name = name.rstrip("/")
    places = {name, str(Path(name).absolute()), store.objects.where(name)}
    known: dict[str, tuple[Record, str, Manifest]] = {}
    for record in _whole_records(store).values():
        for part, manifest in record.parts.items():
            known.setdefault(manifest.digest, (record, part, manifest))
    if (of_run := _in_run(store, places)) is not None:
        name, places = of_run, {store.objects.where(of_run)}
    found = {
        m.digest: m for _, _, m in known.values() if m.digest.startswith(name) or places & _places(store, m)
    }
    if not found:
        is_elsewhere = name.startswith(BUCKETS) and bucket_address(work) is None
        remedy = (
            "Name the bucket's too, with --work" if is_elsewhere else "Paths are as a run's --json shows them"
        )
        raise ConfigError(
            f"{name}: no artifact of the work folder {shown_path(work)} has that path or digest. {remedy}."
        )
    if len(found) > 1:
        raise ConfigError(
            f"{name}: {len(found)} artifacts fit: {', '.join(m.path for m in list(found.values())[:5])}. Say more."
        )
    (manifest,) = found.values()
    condition = store.condition(manifest)
    lines = [
        f"{manifest.path}",
        f"  digest {manifest.digest}",
        f"  zone {manifest.zone}; {len(manifest.files)} files, {manifest.rows:,} rows",
    ]
    lines.append(
        "  it is what was written"
        if condition == "present"
        else f"  but it is {condition}: the next run makes it anew"
    )
    _tell(manifest, known, lines, depth=1, seen=set())
    if condition != "present":
        lines.insert(0, f"{condition}:")
    return "\n".join(lines)


def collect_garbage(work: Path, *, keep: int, dry_run: bool) -> str:
    """Delete the artifacts that none of the newest `keep` runs refers to, copies of kept runs, and what killed runs left. Says
    what went. Raises ConfigError.
    """
    refuse_bucket(work, "ldptree gc")
    store = _existing(work)
    with in_use(store.root, alone=True):
        kept = newest_runs(store, keep)
        gone = [run for run in _runs(store) if run not in kept]
        records: set[str] = set()
        for run in kept:
            records |= _records_of(store, run)
        check_state(store)
        protected = _protected(store)
        everything = _whole_records(store)
        behind = _behind_answers(everything)
        standing = _with_sources(everything.keys() & records, everything) | {
            name
            for name, record in everything.items()
            if _is_release(record)
            or name in behind
            or (record.parts and all(_unit(m) in protected for m in record.parts.values()))
        }
        protected |= {_unit(m) for name in standing for m in everything[name].parts.values()}
        started = sorted(p for p in (store.root / STARTED).glob("*.json") if _RUN.fullmatch(p.stem))
        doomed = [*gone, *started, *map(store.objects.path, sorted(everything.keys() - standing))]
        recorded = {_unit(m) for record in everything.values() for m in record.parts.values()}
        for zone in ZONES:
            for folder in store.zone(zone).glob("*/*"):
                if folder.parts[-2] in NEVER_COLLECTED or not _ARTIFACT.fullmatch(folder.name):
                    continue
                units = folder.rglob("*") if folder.parts[-2] == "reports" else [folder]
                doomed += [
                    unit
                    for unit in units
                    if (name := unit.relative_to(store.root).as_posix()) not in protected
                    and (unit == folder or unit.is_file())
                    and (name in recorded or not _is_drawn_once(unit))
                ]
        size = sum(_size(path) for path in doomed)
        if not dry_run:
            _delete(doomed)
            if (gone or started) and (store.root / "index.html").exists():
                write_index(store)
            if gone and (store.zone("curator") / warehouse.NAME).exists():
                with contextlib.suppress(Exception):  # of damaged totals, say: the next run builds it anew
                    warehouse.build(store, warehouse.all_runs(store))
    verb = "would go" if dry_run else "gone"
    return f"{len(doomed)} files and folders {verb}, {size / 1e6:.1f} MB; {len(kept)} runs kept"


def newest_runs(store: Store, keep: int) -> list[Path]:
    """The folders of the newest runs. Of several runs that found the same artifacts only the newest counts: the others are its
    copies. Raises ArtifactCorrupt.
    """
    kept: dict[frozenset[str], Path] = {}
    for run in reversed(_runs(store)):
        if len(kept) < keep:
            kept.setdefault(frozenset(_records_of(store, run) or {run.name}), run)
    return list(kept.values())


def _runs(store: Store) -> list[Path]:
    """The folders of all runs, oldest first."""
    folders = [p for p in (store.root / "runs").glob("*") if p.is_dir() and _is_run(p)]
    return sorted(folders, key=lambda p: (p.stat().st_mtime, p.name))


def _is_run(folder: Path) -> bool:
    """Whether a run made this folder, which may have been killed before it wrote anything there."""
    return _RUN.fullmatch(folder.name) is not None or any((folder / name).exists() for name in _OF_A_RUN)


def _delete(paths: Sequence[Path]) -> None:
    """Delete files and folders. Raises ConfigError, once all others are gone, where some cannot be."""
    standing: list[OSError] = []
    for path in paths:
        try:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        except FileNotFoundError:
            pass
        except OSError as fault:
            standing.append(fault)
    if standing:
        others = f" and {len(standing) - 1:,} more" if standing[1:] else ""
        raise ConfigError(
            f"{standing[0].filename}{others}: cannot be deleted ({os.strerror(standing[0].errno or 0)}); all else that no "
            "kept run refers to is gone. Give this user the right to write there, and run the same command."
        )


def _is_release(record: Record) -> bool:
    """Whether holders answered with noise that cannot be drawn again: without the record they would be asked once more."""
    return record.step in ("perturb", "answer") and not record.facts.get("seeded", False)


def _is_drawn_once(path: Path) -> bool:
    """Whether a file holds reports of a release: a run that was killed before it recorded them goes on with these."""
    if "reports" not in path.parts or path.suffix != ".parquet":
        return False
    try:
        return b"simulation" not in (pq.read_schema(path).metadata or {})
    except (OSError, pa.ArrowException):
        return True


def _behind_answers(everything: Mapping[str, Record]) -> set[str]:
    """Records without which nothing can be learned from a release's answers: questions, what was shown, earlier transcripts.

    What these were made of at the holders', their rows, can be made again from the raw files.
    """
    makers = {m.digest: name for name, record in everything.items() for m in record.parts.values()}
    released = [
        record
        for record in everything.values()
        if _is_release(record) and any("question" in m.made_by.inputs for m in record.parts.values())
    ]
    todo = [makers[d] for r in released for d in _inputs(r) if d in makers]
    found: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            if everything[name].step in ("partition", "aggregate", *_FORMER_ROUND_STEPS):
                todo += [makers[d] for d in _inputs(everything[name]) if d in makers]
    return found


def _inputs(record: Record) -> list[str]:
    return [digest for manifest in record.parts.values() for digest in manifest.made_by.inputs.values()]


def _existing(work: Path) -> Store:
    if bucket_address(work) is not None:
        return Store(work)
    if (fault := folder_fault(work)) is not None:
        fault = "no such work folder" if fault == NO_SUCH_FOLDER else fault
        raise ConfigError(f"{shown_path(work)}: {fault}. Name it with --work.")
    if not _is_work_folder(work):
        raise ConfigError(
            f"{shown_path(work)}: no work folder, as no run was ever made in it. Name one with --work."
        )
    return Store(work)


def _is_work_folder(path: Path) -> bool:
    """Whether a run, or what is left of one, was ever here."""
    return any((path / name).exists() for name in _OF_A_WORK_FOLDER) or any(
        entry.name == "seal" or _ARTIFACT.fullmatch(entry.stem)
        for zone in ZONES
        for entry in (path / zone).glob("*/*")
    )


def _protected(store: Store) -> set[str]:
    """Paths that no garbage collection may touch: what campaigns published and received."""
    paths: set[str] = set()
    for folder in store.objects.folders("curator/campaigns"):
        campaign = Campaign(store, folder.rpartition("/")[2])
        frozen = campaign.frozen()
        if frozen is not None:
            paths.add(frozen.protocol.path)
        paths |= {_unit(report) for report in campaign.reports()}
    return paths


def _whole_records(store: Store) -> dict[str, Record]:
    """Every record of the store, by its name. Raises ArtifactCorrupt on a damaged one: what it refers to is not known."""
    return {name: store.whole_record(name) for name in store.all_record_names()}


def _records_of(store: Store, run: Path) -> set[str]:
    """The records that a run refers to; none of one that was stopped. Raises ArtifactCorrupt."""
    name, remedy = (
        f"runs/{run.name}/records.json",
        f"Delete {run}, if you do not need what the run refers to.",
    )
    try:
        content = json.loads(store.objects.get(name))
    except (OSError, ValueError):
        content = None
    if isinstance(content, list):  # as versions without formats wrote it
        return set(content)
    try:
        return set(read_stamped(store.objects, name, "records", remedy)["records"])
    except FileNotFoundError:
        return set()


def _with_sources(wanted: set[str], everything: Mapping[str, Record]) -> set[str]:
    """Those records, and the records of all that went into their artifacts."""
    makers = {m.digest: name for name, record in everything.items() for m in record.parts.values()}
    found, todo = set(wanted), list(wanted)
    while todo:
        for manifest in everything[todo.pop()].parts.values():
            new = {makers[d] for d in manifest.made_by.inputs.values() if d in makers} - found
            found |= new
            todo += new
    return found


def _unit(manifest: Manifest) -> str:
    """The path that `gc` keeps or deletes: a folder of its own, or the one file of a shard's reports."""
    return (
        f"{manifest.path}/{manifest.files[0].name}" if "/reports/" in f"/{manifest.path}/" else manifest.path
    )


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(f.stat().st_size for f in files if f.is_file())


def _places(store: Store, manifest: Manifest) -> set[str]:
    """Where an artifact and its files are: paths, or addresses in a bucket."""
    files = [entry.name for entry in manifest.files]
    if not manifest.path:  # raw files of one's own
        return set(files)
    names = [manifest.path, *(f"{manifest.path}/{name}" for name in files)]
    return {store.objects.where(name) for name in names}


def _in_run(store: Store, places: Iterable[str]) -> str | None:
    """The artifact that a file of a run's folder, or the folder itself, is a copy of; None for another place."""
    runs = store.objects.where("runs") + "/"
    within = next((place.removeprefix(runs) for place in places if place.startswith(runs)), "")
    if not within:
        return None
    folder, _, file = within.partition("/")
    try:
        steps = read_stamped(store.objects, f"runs/{folder}/run.json", "run", "Restore it from a copy.")[
            "steps"
        ]
    except (FileNotFoundError, KeyError):
        return None
    made_by = {
        "report.html": ("report", "report_shown"),
        "protocol.json": ("partition",),
        "questions.json": ("aggregate", "publish"),
    }.get(file, ("prune", "learn"))
    return next((str(step["artifact"]) for step in steps if step["name"] in made_by), None)


def _what_is_left(step: str) -> str:
    """In words, what a step of this or an earlier version leaves."""
    from flows import pipeline  # noqa: F401 - with every step
    from tasks.step import REGISTERED

    return REGISTERED[step].step.says if step in REGISTERED else step


def _tell(
    manifest: Manifest,
    known: dict[str, tuple[Record, str, Manifest]],
    lines: list[str],
    *,
    depth: int,
    seen: set[str],
) -> None:
    made = manifest.made_by
    pad = "  " * depth
    lines.append(f"{pad}made by {made.step} (version {made.version}): {_what_is_left(made.step)}")
    for key, value in made.parameters.items():
        text = json.dumps(value, ensure_ascii=False)
        lines.append(f"{pad}  with {key} = {text if len(text) <= 100 else text[:97] + '...'}")
    for name, digest in made.inputs.items():
        origin = known.get(digest)
        where = origin[2].path if origin else "outside of this store"
        lines.append(f"{pad}  from {name}: {where or 'raw files'} ({digest[:12]})")
        if origin and digest not in seen:
            seen.add(digest)
            _tell(origin[2], known, lines, depth=depth + 2, seen=seen)
