"""Explain what a work folder holds and why (`ldptree explain`). Artifacts are written elsewhere."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ldptree.errors import ConfigError
from schemas.manifest import Manifest, Record
from schemas.named_files import BUCKETS, NO_SUCH_FOLDER, folder_fault, shown_path
from storage.formats import read_stamped
from storage.holders.secret import SECRET
from storage.ledger.connections import DATABASE
from storage.ledger.database import LAST
from storage.ledger.lost_parts import check_state
from storage.objects.addresses import bucket_address
from storage.objects.folder import delete_half_written
from storage.store import Store

MOST_SHOWN = 200
"""Characters of a step's parameter that are printed."""
_OF_A_WORK_FOLDER = (
    ".in-use",
    SECRET,
    DATABASE,
    LAST,
)


@contextlib.contextmanager
def in_use(work: Path, *, alone: bool = False) -> Iterator[None]:
    """Hold the work folder, shared among runs or alone for `gc`. Raises ConfigError where a run is going on.

    The first of several runs deletes what killed ones were writing, before any other can begin to write.
    """
    with (work / ".in-use").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if alone:
                raise ConfigError(
                    f"{work}: a run is going on here. Collect garbage when it is done."
                ) from None
            fcntl.flock(lock, fcntl.LOCK_SH)
        else:
            if not alone:  # `gc` says what it deletes
                delete_half_written(work)
                fcntl.flock(lock, fcntl.LOCK_SH)
        yield


def explain_artifact(work: Path, name: str) -> str:
    """Explain where an artifact came from, step by step back to its sources. Raises ConfigError, ArtifactCorrupt."""
    store = open_existing(work)
    check_state(store)
    name = name.rstrip("/")
    places = {name, str(Path(name).absolute()), store.objects.where(name)}
    run, artifact = _in_run(store, places)
    if artifact:
        name, places = artifact, {store.objects.where(artifact)}
    own = records_of_run(store, run) if artifact else set()
    records = whole_records(store)
    known: dict[str, tuple[Record, str, Manifest]] = {}
    # The same bytes may come from several files, as public rows do that two data sets share.
    for at in sorted(records, key=lambda at: at not in own):
        for part, manifest in records[at].parts.items():
            for digest in (
                manifest.digest,
                *(entry.digest for entry in manifest.files),
            ):  # some steps read one file
                known.setdefault(digest, (records[at], part, manifest))
    matches = {
        m.digest: m for _, _, m in known.values() if m.digest.startswith(name) or places & _places(store, m)
    }
    if not matches:
        is_elsewhere = name.startswith(BUCKETS) and bucket_address(work) is None
        remedy = (
            "Name the bucket's too, with --work" if is_elsewhere else "Paths are as a run's --json shows them"
        )
        raise ConfigError(
            f"{name}: no artifact of the work folder {shown_path(work)} has that path or digest. {remedy}."
        )
    if len(matches) > 1:
        raise ConfigError(
            f"{name}: {len(matches)} artifacts fit: {', '.join(m.path for m in list(matches.values())[:5])}. Say more."
        )
    (manifest,) = matches.values()
    condition = store.condition(manifest)
    lines = [
        f"{manifest.path}",
        f"  digest {manifest.digest}",
        f"  zone {manifest.zone}; {len(manifest.files)} files, {manifest.rows:,} rows",
    ]
    lines.append(
        "  unchanged since it was written"
        if condition == "present"
        else f"  it is {condition}: the next run makes it again"
    )
    _tell(manifest, known, lines, depth=1, seen=set())
    if condition != "present":
        lines.insert(0, f"{condition}:")
    return "\n".join(lines)


def open_existing(work: Path) -> Store:
    """The store of a work folder that some run has used. Raises ConfigError."""
    is_bucket = bucket_address(work) is not None
    if not is_bucket and (fault := folder_fault(work)) is not None:
        fault = "no such work folder" if fault == NO_SUCH_FOLDER else fault
        raise ConfigError(f"{shown_path(work)}: {fault}. Name it with --work.")
    store = Store(work)
    if not _is_used(store):
        raise ConfigError(
            f"{shown_path(work)}: no work folder, as no run was ever made in it. Name one with --work."
        )
    return store


def _is_used(store: Store) -> bool:
    """Return whether a run left traces here, as other projects too have folders called "runs" and "public"."""
    known = any(store.objects.size(name) is not None for name in _OF_A_WORK_FOLDER)
    return known or any(True for _ in store.records())


def whole_records(store: Store) -> dict[str, Record]:
    """Return every record of the store by name. Raises ArtifactCorrupt, as a damaged record may refer to anything."""
    return {name: store.whole_record(name) for name in store.all_record_names()}


def records_of_run(store: Store, run: str) -> set[str]:
    """The records that a run refers to; none of one that was stopped. Raises ArtifactCorrupt."""
    name = f"runs/{run}/records.json"
    remedy = f"Delete {store.objects.where(f'runs/{run}')}, if you do not need what the run refers to."
    try:
        return set(read_stamped(store.objects, name, "records", remedy)["records"])
    except FileNotFoundError:
        return set()


def _places(store: Store, manifest: Manifest) -> set[str]:
    """Return the paths of an artifact and its files, or their addresses in a bucket."""
    files = [entry.name for entry in manifest.files]
    if not manifest.path:  # raw files of one's own
        return set(files)
    names = [manifest.path, *(f"{manifest.path}/{name}" for name in files)]
    return {store.objects.where(name) for name in names}


def _in_run(store: Store, places: Iterable[str]) -> tuple[str, str]:
    """The run in whose folder a file is, or whose folder it is, and the artifact it is a copy of; "" for another place."""
    runs = store.objects.where("runs") + "/"
    within = next((place.removeprefix(runs) for place in places if place.startswith(runs)), "")
    if not within:
        return "", ""
    folder, _, file = within.partition("/")
    try:
        steps = read_stamped(store.objects, f"runs/{folder}/run.json", "run", "Restore it from a copy.")[
            "steps"
        ]
    except (FileNotFoundError, KeyError):
        return folder, ""
    made_by = {
        "report.html": ("report", "report_shown"),
        "protocol.json": ("partition",),
        "questions.json": ("aggregate",),
    }.get(file, ("prune",))
    return folder, next((str(step["artifact"]) for step in steps if step["name"] in made_by), "")


def _what_is_left(step: str) -> str:
    """Say in words what a step leaves."""
    from flows import pipeline  # noqa: F401 - with every step
    from tasks.step import REGISTERED

    return REGISTERED[step].step.says if step in REGISTERED else step


def _in_words(value: Any) -> str:
    """A parameter without what it leaves open, at most `MOST_SHOWN` characters of it; "" where it says nothing."""
    if isinstance(value, dict):
        text = ", ".join(f"{key} {part}" for key, item in value.items() if (part := _in_words(item)))
    elif isinstance(value, list):
        text = ", ".join(part for item in value if (part := _in_words(item)))
    elif isinstance(value, bool):
        text = "yes" if value else "no"
    else:
        text = "" if value is None else str(value)
    if len(text) <= MOST_SHOWN:
        return text
    cut = text[:MOST_SHOWN]
    return f"{cut.rpartition(', ')[0] or cut}, and more"


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
    if repr(made) in seen:
        lines.append(f"{pad}made by {made.step}, as above")
        return
    seen.add(repr(made))
    lines.append(f"{pad}made by {made.step} (version {made.version}): {_what_is_left(made.step)}")
    lines += [
        f"{pad}  {key}: {words}" for key, value in made.parameters.items() if (words := _in_words(value))
    ]
    for name, digest in made.inputs.items():
        origin = known.get(digest)
        where = origin[2].path if origin else "outside of this store"
        lines.append(f"{pad}  from {name}: {where or 'raw files'} ({digest[:12]})")
        if origin and digest not in seen:
            seen.add(digest)
            _tell(origin[2], known, lines, depth=depth + 2, seen=seen)
