"""The artifact store, which knows the place and key of each step's files and checks that they are still as written.

A step's artifacts are folders `<zone>/<step>/<key>-<digest>/`, its record is `<home zone>/<step>/<key>.json`, which is
written once they stand: a reader sees a whole artifact or none. As the digest is of what they hold, two writers meet in one
folder with the same bytes only. Of all records of a key the first one stands: who comes later reads that one, and `gc` takes
what it wrote.
Keys and digests of the holders' and the simulation's zone are HMACs under a secret of the holders. What the files hold
is not known here.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from ldptree.errors import ConfigError
from schemas.manifest import ZONES, FileEntry, MadeBy, Manifest, Record, Zone
from storage.digests import Hasher
from storage.formats import Damaged, read_stamped, stamped
from storage.holders.secret import has_secret, secret_of
from storage.objects.addresses import bucket_address, local_file, open_objects, unchanged_file

KEYED: tuple[Zone, ...] = ("holders", "simulation")
ARTIFACT = re.compile(r"[0-9a-f]{16}|[0-9a-f]{32}(?:-[a-z_]+)?(?:-[0-9a-f]{16})?|[0-9a-f]{40}(?:\.part)?")
"""How what is written two folders below the work folder is called; what is called otherwise is not ours to delete."""
Condition = Literal["present", "missing", "damaged"]
DAMAGED_RECORD = (
    "Restore the record from a copy, or delete it: the next run makes it anew where it can be made."
)


@dataclass(frozen=True)
class ArtifactKey:
    """The place of a step's record, and what it is derived from."""

    home: Zone
    step: str
    version: str
    key: str
    parameters: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)


class Store:
    """The work folder of a project. Raises ConfigError where the folder cannot be used."""

    def __init__(self, work: str | Path, *, only_reads: bool = False) -> None:
        """Open the work folder `work`, a path or the address of a bucket; make it if it is not there, unless one `only_reads`."""
        self.objects = open_objects(work, only_reads=only_reads)
        self.root = self.objects.root

    def __reduce__(self) -> Any:
        """In another process it is opened there, on another machine with that machine's rights, where it is the same folder."""
        return _opened_elsewhere, (self.work, self.hasher("holders").of_value("of this work folder"))

    @property
    def work(self) -> str:
        """Argument that opens another store of the same work folder."""
        return self.objects.where("")

    def check_rights(self) -> None:
        """Raise ConfigError if a run could not write in one of its folders, or read what all steps read, before
        anything is started or anybody asked.
        """
        self.objects.check_rights()

    def zone(self, zone: Zone) -> Path:
        """The folder of a zone."""
        return self.root / zone

    def hasher(self, zone: Zone) -> Hasher:
        """Plain for what the curator may know, keyed for what stays with the holders."""
        return Hasher(secret_of(self.objects)) if zone in KEYED else Hasher()

    def place(
        self,
        home: Zone,
        step: str,
        version: str,
        *,
        inputs: Mapping[str, str],
        parameters: Mapping[str, Any],
    ) -> ArtifactKey:
        """Return the place of a step's record, whose key is the digest of step, version, inputs and parameters."""
        parts = {
            "step": step,
            "version": version,
            "inputs": dict(inputs),
            "parameters": dict(parameters),
        }
        key = self.hasher(home).of_value(parts)[:32]
        return ArtifactKey(home, step, version, key, dict(parameters), dict(inputs))

    def record_name(self, place: ArtifactKey) -> str:
        """The name of the record of `place`."""
        return f"{place.home}/{place.step}/{place.key}.json"

    def has_record(self, place: ArtifactKey) -> bool:
        """Return whether a step left a record, readable or not."""
        return self.objects.size(self.record_name(place)) is not None

    def find(self, place: ArtifactKey) -> Record | None:
        """The record of a step that ran before, if all its artifacts are there and match their digests."""
        record = self.read_record(self.record_name(place))
        if record is None or any(self.condition(part) != "present" for part in record.parts.values()):
            return None
        return record

    def read_record(self, name: str) -> Record | None:
        """The record of this name, or None where it is missing or damaged. Raises ArtifactCorrupt on one of a later ldptree."""
        try:
            return self.whole_record(name)
        except (FileNotFoundError, NotADirectoryError, Damaged):
            return None

    def whole_record(self, name: str) -> Record:
        """The record of this name. Raises FileNotFoundError, ArtifactCorrupt."""
        content = read_stamped(self.objects, name, "record", DAMAGED_RECORD)
        try:
            return Record.model_validate(content)
        except ValidationError:
            raise Damaged(f"{self.objects.where(name)}: damaged. {DAMAGED_RECORD}") from None

    def record_names(self, zone: Zone, step: str) -> Iterator[str]:
        """The names of the records of one step that are kept in a zone."""
        names = (entry.name for entry in self.objects.entries(f"{zone}/{step}"))
        yield from (name for name in names if name.endswith(".json"))

    def all_record_names(self) -> Iterator[str]:
        """The name of every record of the store."""
        for zone in ZONES:
            for folder in self.objects.folders(zone):
                yield from self.record_names(zone, folder.split("/")[-1])

    def records(self) -> Iterator[tuple[str, Record]]:
        """Every readable record of the store, by its name."""
        for name in self.all_record_names():
            record = self.read_record(name)
            if record is not None:
                yield name, record

    def files(self, manifest: Manifest) -> list[Path]:
        """The paths of an artifact's files, in the manifest's order."""
        return [self._path(manifest, entry) for entry in manifest.files]

    def file(self, manifest: Manifest, name: str) -> Path:
        """The path of one file of an artifact. Raises KeyError."""
        entry = next((entry for entry in manifest.files if entry.name == name), None)
        if entry is None:
            raise KeyError(name)
        return self._path(manifest, entry)

    def _path(self, manifest: Manifest, entry: FileEntry) -> Path:
        # Raw files of one's own are in no store: their names are their paths, or addresses.
        return self.objects.path(manifest.name_of(entry)) if manifest.path else local_file(entry.name)

    def gather(self, shards: Sequence[Manifest]) -> Manifest:
        """Return what the shards of a step left as one artifact, its files in the order of their names; nothing is written."""
        first = shards[0]
        if len(shards) == 1:
            return first
        files = sorted(
            (
                entry.model_copy(update={"folder": entry.folder or shard.path})
                for shard in shards
                for entry in shard.files
            ),
            key=lambda entry: entry.name,
        )
        return Manifest(
            zone=first.zone,
            path=first.path.rpartition("/")[0],
            digest=self.hasher(first.zone).of_value([[entry.name, entry.digest] for entry in files]),
            files=tuple(files),
            made_by=first.made_by,
            shards=tuple(shard.digest for shard in shards),
        )

    def condition(self, manifest: Manifest) -> Condition:
        """Return whether an artifact is there, and is what was written. Raises OSError where that cannot be looked at."""
        hasher = self.hasher(manifest.zone)
        try:
            if not all(self._is_whole(manifest, entry, hasher) for entry in manifest.files):
                return "damaged"
        except FileNotFoundError:
            return "missing"
        except (NotADirectoryError, IsADirectoryError):
            return "damaged"
        return "present"

    def _is_whole(self, manifest: Manifest, entry: FileEntry, hasher: Hasher) -> bool:
        def is_whole(path: Path) -> bool:
            return hasher.of_file(path) == entry.digest

        if not manifest.path:
            return is_whole(unchanged_file(entry.name))
        return self.objects.whole_path(manifest.name_of(entry), is_whole) is not None

    @contextlib.contextmanager
    def draft(self, place: ArtifactKey) -> Iterator[Draft]:
        """A step's output being written; it is removed again if the step fails."""
        draft = Draft(self, place)
        try:
            yield draft
        finally:
            draft.discard()


def _opened_elsewhere(work: str, mark: str) -> Store:
    """Open the work folder of another process. Raises ConfigError where this machine has another one under its name: who was
    asked would not be known there.
    """
    is_there = bucket_address(work) is not None or Path(work).is_dir()
    store = Store(work) if is_there else None
    is_same = store is not None and has_secret(store.objects)
    if store is None or not is_same or store.hasher("holders").of_value("of this work folder") != mark:
        raise ConfigError(
            f"{socket.gethostname()} has not the run's work folder {work}. Name one that all machines have, as s3://bucket/prefix."
        )
    return store


class Draft:
    """Folders being filled by one step. `finish` publishes them and the record; `discard` leaves nothing behind."""

    def __init__(self, store: Store, place: ArtifactKey) -> None:
        """A draft for `place`."""
        self.store = store
        self.place = place
        self._folders: dict[str, tuple[Zone, Path]] = {}
        self._rows: dict[str, dict[str, int]] = {}
        self._standing: dict[str, Manifest] = {}

    def folder(self, part: str, zone: Zone | None = None) -> Path:
        """The folder to write the artifact `part` in (made on first call); `zone` defaults to the step's home."""
        if part not in self._folders:
            zone = zone or self.place.home
            self._folders[part] = (zone, self.store.objects.draft_folder(f"{zone}/{self.place.step}"))
            self._rows[part] = {}
        return self._folders[part][1]

    def count(self, part: str, name: str, rows: int) -> None:
        """State how many rows the file `name` of `part` holds."""
        self._rows[part][name] = rows

    def refer(self, part: str, manifest: Manifest) -> None:
        """Make an artifact that stands already (a report written once) a part of this step's record."""
        self._standing[part] = manifest

    def finish(self, facts: Mapping[str, Any], seconds: float) -> Record:
        """Publish every folder, then the record. If another run was first, return its record. Raises OSError."""
        record = Record(
            home=self.place.home,
            step=self.place.step,
            version=self.place.version,
            key=self.place.key,
            parts={part: self._publish(part) for part in self._folders} | self._standing,
            facts=dict(facts),
            seconds=round(seconds, 3),
        )
        return self._keep(record)

    def discard(self) -> None:
        """Remove what was not published."""
        for _, folder in self._folders.values():
            shutil.rmtree(folder, ignore_errors=True)

    def _publish(self, part: str) -> Manifest:
        zone, draft = self._folders[part]
        names = [p.relative_to(draft).as_posix() for p in draft.rglob("*") if p.is_file()]
        hasher = self.store.hasher(zone)
        entries = tuple(
            FileEntry(name=name, digest=hasher.of_file(draft / name), rows=self._rows[part].get(name))
            for name in sorted(names)
        )
        place = self.place
        digest = hasher.of_value([[e.name, e.digest] for e in entries])
        manifest = Manifest(
            zone=zone,
            path=self._path_of(zone, part, digest),
            digest=digest,
            files=entries,
            made_by=MadeBy(
                step=place.step, version=place.version, parameters=place.parameters, inputs=place.inputs
            ),
        )
        self.store.objects.publish(draft, manifest.path)
        return manifest

    def _path_of(self, zone: Zone, part: str, digest: str) -> str:
        which = f"-{part}" if len(self._folders) > 1 else ""
        return f"{zone}/{self.place.step}/{self.place.key}{which}-{digest[:16]}"

    def _keep(self, record: Record) -> Record:
        """Write a record and return it, unless one stands whose artifacts are whole, which is returned then."""
        objects, name = self.store.objects, self.store.record_name(self.place)
        content = stamped("record", json.loads(record.model_dump_json()))
        while not objects.create(name, content):
            with contextlib.suppress(FileNotFoundError):
                if (standing := objects.get(name)) == content:
                    break
                if (manifest := self.store.find(self.place)) is not None:
                    return manifest
                objects.change(name, partial(_instead_of, standing, content))
        return record


def _instead_of(useless: bytes, content: bytes, present: bytes | None) -> bytes:
    """Return `content`, unless another run replaced the useless record, whose worth is not known yet."""
    return content if present in (None, useless) else present
