"""The artifact store: where each step's files live, under which key, and whether they are still what was written.

A step's artifacts are folders `<zone>/<step>/<key>/`, its record `<home zone>/<step>/<key>.json`. Everything is written
aside, fsynced and renamed: a reader sees a whole artifact or none, and of two writers the later one discards its own and reads
the winner's.
Keys and digests of the holders' and the simulation's zone are HMACs under a secret of the holders. What the files hold
is not known here.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from pydantic import ValidationError

from ldptree.errors import ConfigError
from schemas.manifest import ZONES, FileEntry, MadeBy, Manifest, Record, Zone
from schemas.named_files import NO_SUCH_FOLDER, folder_fault, make_folder, shown_path
from storage.digests import Hasher
from storage.formats import Damaged, read_stamped, stamped
from storage.holders.private_files import append_privately, close_to_others, make_private
from storage.holders.secret import secret_of

KEYED: tuple[Zone, ...] = ("holders", "simulation")
BESIDE_ZONES = ("runs", "prefect")
"""Folders of a work folder that are no zone."""
BELOW_A_FILE = f"cannot be read ({os.strerror(errno.ENOTDIR)})"
FILES_READ = ("holders/secret", ".in-use")
# A damaged folder with no valid record is replaced once a possible other writer had this long to finish its own.
WINNER_POLLS = 20
WINNER_POLL_SECONDS = 0.05
Condition = Literal["present", "missing", "damaged"]
DAMAGED_RECORD = (
    "Restore the record from a copy, or delete it: the next run makes it anew where it can be made."
)


@dataclass(frozen=True)
class ArtifactKey:
    """Where a step's record is kept and what it is derived from."""

    home: Zone
    step: str
    version: str
    key: str
    parameters: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)


class Store:
    """The work folder of a project. Raises ConfigError where the folder cannot be used."""

    def __init__(self, root: str | Path) -> None:
        """Open (and make, where it is not there) the work folder `root`."""
        check_work_folder(Path(root))
        self.root = Path(root).absolute()
        try:
            make_folder(self.root)
            probe = self.root / f".probe-{secrets.token_hex(8)}"
            probe.touch()
            probe.unlink()
            close_to_others(self.zone("holders"))
        except OSError as fault:
            reason = os.strerror(fault.errno or 0)
            raise ConfigError(
                f"work folder {shown_path(root)}: cannot be written ({reason}). Name another one with --work."
            ) from None

    def check_rights(self) -> None:
        """Raises ConfigError where a run could not write in one of its folders, or read what all steps read: told before anything
        is started or anybody asked.
        """
        for folder in (self.root / name for name in (*ZONES, *BESIDE_ZONES)):
            if (folder.exists() or folder.is_symlink()) and not folder.is_dir():
                raise ConfigError(
                    f"{folder}: no folder, and a work folder has one of this name. Move it away, or name "
                    "another work folder with --work."
                )
            _check_right(folder, os.R_OK | os.W_OK | os.X_OK)
        for name in FILES_READ:
            _check_right(self.root / name, os.R_OK)

    def zone(self, zone: Zone) -> Path:
        """The folder of a zone."""
        return self.root / zone

    def hasher(self, zone: Zone) -> Hasher:
        """Plain for what the curator may know, keyed for what stays with the holders."""
        return Hasher(secret_of(self.root)) if zone in KEYED else Hasher()

    def place(
        self,
        home: Zone,
        step: str,
        version: str,
        *,
        inputs: Mapping[str, str],
        parameters: Mapping[str, Any],
    ) -> ArtifactKey:
        """The place of a step's record: its key is the digest of step, version, inputs and parameters."""
        parts = {
            "step": step,
            "version": version,
            "inputs": dict(inputs),
            "parameters": dict(parameters),
        }
        key = self.hasher(home).of_value(parts)[:32]
        return ArtifactKey(home, step, version, key, dict(parameters), dict(inputs))

    def record_path(self, place: ArtifactKey) -> Path:
        """Where the record of `place` is, or would be."""
        return self.zone(place.home) / place.step / f"{place.key}.json"

    def find(self, place: ArtifactKey) -> Record | None:
        """The record of a step that ran before, if all its artifacts are there and match their digests."""
        record = self.read_record(self.record_path(place))
        if record is None or any(self.condition(part) != "present" for part in record.parts.values()):
            return None
        return record

    def read_record(self, path: Path) -> Record | None:
        """The record in a file, or None where it is missing or damaged. Raises ArtifactCorrupt on one of a later ldptree, OSError
        where it cannot be read.
        """
        try:
            return self.whole_record(path)
        except (FileNotFoundError, NotADirectoryError, Damaged):
            return None

    def whole_record(self, path: Path) -> Record:
        """The record in a file. Raises FileNotFoundError, ArtifactCorrupt."""
        content = read_stamped(path, "record", DAMAGED_RECORD)
        try:
            return Record.model_validate(content)
        except ValidationError:
            raise Damaged(f"{path}: damaged. {DAMAGED_RECORD}") from None

    def record_paths(self) -> Iterator[Path]:
        """Where a record of the store is."""
        for zone in ZONES:
            yield from sorted(self.zone(zone).glob("*/*.json"))

    def records(self) -> Iterator[tuple[Path, Record]]:
        """Every readable record of the store."""
        for path in self.record_paths():
            record = self.read_record(path)
            if record is not None:
                yield path, record

    def files(self, manifest: Manifest) -> list[Path]:
        """The paths of an artifact's files, in the manifest's order."""
        return [self.root / manifest.path / entry.name for entry in manifest.files]

    def file(self, manifest: Manifest, name: str) -> Path:
        """The path of one file of an artifact. Raises KeyError."""
        if all(entry.name != name for entry in manifest.files):
            raise KeyError(name)
        return self.root / manifest.path / name

    def condition(self, manifest: Manifest) -> Condition:
        """Whether an artifact is there, and is what was written. Raises OSError where that cannot be looked at."""
        hasher = self.hasher(manifest.zone)
        try:
            for path, entry in zip(self.files(manifest), manifest.files, strict=True):
                if hasher.of_file(path) != entry.digest:
                    return "damaged"
        except FileNotFoundError:
            return "missing"
        except (NotADirectoryError, IsADirectoryError):
            return "damaged"
        return "present"

    @contextlib.contextmanager
    def draft(self, place: ArtifactKey) -> Iterator[Draft]:
        """A step's output being written; it is removed again if the step fails."""
        draft = Draft(self, place)
        try:
            yield draft
        finally:
            draft.discard()

    def make_folder(self, path: Path) -> None:
        """Make a folder and those above it; in the holders' zone for the owner only."""
        path.mkdir(parents=True, exist_ok=True)
        if self._is_private(path):
            make_private(self.zone("holders"), path)

    def open_lock(self, path: Path) -> BinaryIO:
        """A file to lock, made where it is not there."""
        return append_privately(path) if self._is_private(path) else path.open("ab")

    def write_once(self, path: Path, write: Callable[[Path], object]) -> bool:
        """Write a file aside and link it to `path`; False (and nothing changed) where another was first."""
        self.make_folder(path.parent)
        aside = path.with_name(f".aside-{secrets.token_hex(8)}")
        try:
            write(aside)
            self._close(aside)
            fsync(aside)
            path.hardlink_to(aside)
        except FileExistsError:
            return False
        finally:
            aside.unlink(missing_ok=True)
        fsync(path.parent)
        return True

    def replace(self, path: Path, data: bytes) -> None:
        """Write a file whole or not at all, over what was there."""
        self.make_folder(path.parent)
        aside = path.with_name(f".aside-{secrets.token_hex(8)}")
        try:
            aside.write_bytes(data)
            self._close(aside)
            fsync(aside)
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)

    def _close(self, path: Path) -> None:
        """Let only its owner read a file of the holders' zone."""
        if self._is_private(path):
            path.chmod(0o600)

    def _is_private(self, path: Path) -> bool:
        return path.is_relative_to(self.zone("holders"))


def _check_right(path: Path, right: int) -> None:
    if path.exists() and not os.access(path, right):
        what = "read and written" if right & os.W_OK else "read"
        raise ConfigError(
            f"{path}: cannot be {what}. Give this user the right to, or name another work folder with --work."
        )


def check_work_folder(root: Path) -> None:
    """Raises ConfigError where `root` is no folder, and none can be made there; makes nothing."""
    fault = folder_fault(root)
    if fault == BELOW_A_FILE or (fault == NO_SUCH_FOLDER and not root.is_symlink()):
        fault = _making_fault(next(path for path in root.absolute().parents if _exists(path)))
    if fault is not None:
        raise ConfigError(f"work folder {shown_path(root)}: {fault}. Name another one with --work.")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _making_fault(above: Path) -> str | None:
    """Why no folder can be made in this one; None where one can."""
    if not above.is_dir():
        return "that is a file"
    if os.access(above, os.W_OK | os.X_OK):
        return None
    is_read_only = os.statvfs(above).f_flag & os.ST_RDONLY
    return f"cannot be written ({os.strerror(errno.EROFS if is_read_only else errno.EACCES)})"


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
            aside = self.store.zone(zone) / self.place.step / f".aside-{secrets.token_hex(8)}"
            self.store.make_folder(aside)
            self._folders[part] = (zone, aside)
            self._rows[part] = {}
        return self._folders[part][1]

    def count(self, part: str, name: str, rows: int) -> None:
        """State how many rows the file `name` of `part` holds."""
        self._rows[part][name] = rows

    def refer(self, part: str, manifest: Manifest) -> None:
        """Make an artifact that stands already (a report written once) a part of this step's record."""
        self._standing[part] = manifest

    def finish(self, facts: Mapping[str, Any], seconds: float) -> Record:
        """Publish: every folder to its final name, then the record; where another run was first, its record. Raises OSError."""
        try:
            parts = {part: self._publish(part) for part in self._folders} | self._standing
        except _Lost as lost:
            return lost.record
        record = Record(
            home=self.place.home,
            step=self.place.step,
            version=self.place.version,
            key=self.place.key,
            parts=parts,
            facts=dict(facts),
            seconds=round(seconds, 3),
        )
        content = stamped("record", json.loads(record.model_dump_json()), indent=1)
        self.store.replace(self.store.record_path(self.place), content)
        return record

    def discard(self) -> None:
        """Remove what was not published."""
        for _, folder in self._folders.values():
            shutil.rmtree(folder, ignore_errors=True)

    def _publish(self, part: str) -> Manifest:
        zone, aside = self._folders[part]
        names = sorted(p.relative_to(aside).as_posix() for p in aside.rglob("*") if p.is_file())
        hasher = self.store.hasher(zone)
        entries = tuple(
            FileEntry(name=name, digest=hasher.of_file(aside / name), rows=self._rows[part].get(name))
            for name in names
        )
        if zone == "holders":
            close_to_others(aside)
        for name in names:
            fsync(aside / name)
        final = aside.parent / (self.place.key if len(self._folders) == 1 else f"{self.place.key}-{part}")
        manifest = Manifest(
            zone=zone,
            path=final.relative_to(self.store.root).as_posix(),
            digest=hasher.of_value([[e.name, e.digest] for e in entries]),
            files=entries,
            made_by=MadeBy(
                step=self.place.step,
                version=self.place.version,
                parameters=self.place.parameters,
                inputs=self.place.inputs,
            ),
        )
        self._move(aside, final, manifest)
        return manifest

    def _move(self, aside: Path, final: Path, manifest: Manifest) -> None:
        try:
            aside.rename(final)
        except OSError:
            if not final.exists():
                raise
        else:
            fsync(final.parent)
            return
        if self.store.condition(manifest) == "present":
            return
        for _ in range(WINNER_POLLS):
            if (record := self.store.find(self.place)) is not None:
                raise _Lost(record)
            time.sleep(WINNER_POLL_SECONDS)
        grave = final.with_name(f".aside-{secrets.token_hex(8)}")
        with contextlib.suppress(FileNotFoundError):
            final.rename(grave)
        shutil.rmtree(grave, ignore_errors=True)
        aside.rename(final)
        fsync(final.parent)


class _Lost(Exception):  # noqa: N818 - not an error: another run wrote the same artifact first
    def __init__(self, record: Record) -> None:
        self.record = record


def fsync(path: Path) -> None:
    """Wait until a file, or the names in a folder, will outlast a loss of power. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
