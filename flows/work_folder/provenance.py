"""Explain what a work folder holds and why (`ldptree explain`). Artifacts are written elsewhere."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ldptree.errors import ConfigError
from schemas.manifest import MadeBy, Manifest, Record
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
        f"  zone {manifest.zone}; files: {len(manifest.files)}"
        + (f", rows: {manifest.rows:,}" if manifest.rows else ""),
    ]
    lines.append(
        "  unchanged since it was written"
        if condition == "present"
        else f"  it is {condition}: the next run makes it again"
    )
    made = manifest.made_by
    lines.append(f"  made by {made.step} (version {made.version}): {_what_is_left(made.step)}")
    lines += [f"    {key}: {words}" for key, value in made.parameters.items() if (words := _in_words(value))]
    if behind := _Lineage(known).lines([made]):
        lines += ["  from", *(f"  {line}" for line in behind)]
    if condition != "present":
        lines.insert(0, f"{condition}:")
    return "\n".join(lines)


def open_to_run(work: str | Path) -> Store:
    """The store of a work folder where a run may ask and write, which is told before anything starts. Raises LdptreeError."""
    store = Store(work)
    store.check_rights()
    check_state(store)
    return store


def open_existing(work: Path) -> Store:
    """The store of a work folder that some run has used. Raises ConfigError."""
    is_bucket = bucket_address(work) is not None
    if not is_bucket and (fault := folder_fault(work)) is not None:
        fault = "no such work folder" if fault == NO_SUCH_FOLDER else fault
        raise ConfigError(f"{shown_path(work)}: {fault}. Name it with --work.")
    store = Store(work, only_reads=True)
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
        "page.html": ("report", "report_shown"),
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


class _Lineage:
    """The steps behind an artifact, drawn as a tree: each step once, below the last one that read what it left."""

    def __init__(self, known: dict[str, tuple[Record, str, Manifest]]) -> None:
        self._known = known
        self._heights: dict[str, int] = {}
        self._drawn: set[str] = set()

    def lines(self, made: Sequence[MadeBy]) -> list[str]:
        """Return a line for each step before those that `made` something, the longest way back first."""
        steps: list[list[str]] = []
        for artifacts in sorted(self._read_by(made), key=lambda them: -max(map(self._height, them))):
            calls = {repr(self._known[each][2].made_by): each for each in reversed(artifacts)}
            new = [artifact for call, artifact in reversed(calls.items()) if call not in self._drawn]
            self._drawn.update(calls)
            if new:
                made_by = [self._known[artifact][2].made_by for artifact in new]
                more = f" and {len(artifacts) - 1} more" if len(artifacts) > 1 else ""
                line = f"{made_by[0].step} {new[0][:12]}{more}: {_what_is_left(made_by[0].step)}"
                steps.append([line, *self.lines(made_by)])
        for name, digest in sorted({read for step in made for read in step.inputs.items()}):
            if digest not in self._known:
                steps.append([f"{name} {digest[:12]}: outside of the work folder"])
        return [
            f"{_branch(row == 0, at == len(steps) - 1)}{line}"
            for at, step in enumerate(steps)
            for row, line in enumerate(step)
        ]

    def _read_by(self, made: Sequence[MadeBy]) -> list[list[str]]:
        """Return the artifacts that were read, those of the same step with the same parameters together."""
        steps: dict[str, list[str]] = {}
        for digest in dict.fromkeys(digest for step in made for digest in step.inputs.values()):
            if digest in self._known:
                origin = self._known[digest][2].made_by
                steps.setdefault(repr((origin.step, origin.parameters)), []).append(digest)
        return list(steps.values())

    def _height(self, artifact: str) -> int:
        if artifact not in self._heights:
            inputs = self._known[artifact][2].made_by.inputs.values()
            self._heights[artifact] = 1 + max(
                (self._height(each) for each in inputs if each in self._known), default=0
            )
        return self._heights[artifact]


def _branch(is_step: bool, is_last: bool) -> str:
    if is_step:
        return "└─ " if is_last else "├─ "
    return "   " if is_last else "│  "
