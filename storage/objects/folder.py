"""The object store in a folder: an object is a file, and its name the file's path in the folder.

An object is written aside, fsynced, and linked or renamed to its name. Those of the holders' zone are for their owner only.
"""

from __future__ import annotations

import errno
import fcntl
import filecmp
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ldptree.errors import ConfigError
from schemas.manifest import ZONES
from schemas.named_files import NO_SUCH_FOLDER, folder_fault, make_folder, shown_path
from storage.holders.private_files import FILE, append_privately, close_to_others, make_private
from storage.objects.drawn_once import publish_once
from storage.objects.lasting import fsync, make_to_last
from storage.objects.object_store import NOTHING, Entry, T, Write

PRIVATE = "holders"
"""The folder whose objects are for their owner only."""
BESIDE_ZONES = ("runs", "prefect")
"""Folders of a work folder that are no zone."""
_LEFT = re.compile(r"\.(?:aside|copy)-[0-9a-f]+")
"""How what is being written is called."""
BELOW_A_FILE = f"cannot be read ({os.strerror(errno.ENOTDIR)})"
FILES_READ = ("holders/secret", ".in-use")


class FolderObjects:
    """The objects of a work folder. Raises ConfigError where the folder cannot be used."""

    is_shared = False

    def __init__(self, root: str | Path) -> None:
        """Open (and make, where it is not there) the folder `root`."""
        check_work_folder(Path(root))
        self.root = Path(root).absolute()
        try:
            make_folder(self.root)
            probe = self.root / f".probe-{secrets.token_hex(8)}"
            probe.touch()
            probe.unlink()
            close_to_others(self.root / PRIVATE)
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

    def get(self, name: str) -> bytes:
        """The bytes of a file. Raises FileNotFoundError."""
        return self.path(name).read_bytes()

    def size(self, name: str) -> int | None:
        """The size of a file, None where there is none."""
        try:
            return self.path(name).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def at_once(self, act: Callable[[str], T], names: Sequence[str]) -> list[T]:
        """What `act` gives for each file, in order."""
        return [act(name) for name in names]

    def entries(self, folder: str, *, deep: bool = False) -> Iterator[Entry]:
        """The files of a folder, of those below it too if `deep`, by name; none whose name begins with a dot."""
        return iter(sorted(self._walk(folder, deep=deep), key=lambda entry: entry.name))

    def folders(self, folder: str) -> list[str]:
        """The names of the folders right below a folder, in order."""
        return sorted(f"{folder}/{entry.name}".lstrip("/") for entry in self._scan(folder) if entry.is_dir())

    def create(self, name: str, data: bytes) -> bool:
        """Write a file aside and link it to its name; False (and nothing changed) where another was first."""
        path = self.path(name)
        with self._written_aside(name, data) as aside:
            try:
                path.hardlink_to(aside)
            except FileExistsError:
                return False
        fsync(path.parent)
        return True

    def draw(self, name: str, write: Write) -> bool:
        """Write a file that has no name before it is whole; False (and nothing changed) where another was first."""
        path = self.path(name)
        self.make_folder(_folder_of(name))
        return publish_once(path, write, lambda: self._draft_of(name))

    def put(self, name: str, data: bytes) -> None:
        """Write a file whole or not at all, over what was there."""
        path = self.path(name)
        with self._written_aside(name, data) as aside:
            aside.replace(path)
        fsync(path.parent)

    def change(self, name: str, make: Callable[[bytes | None], bytes]) -> None:
        """Write what `make` makes of a file's bytes; who changes a file of the same folder meanwhile waits at its `.lock`."""
        with self._open_lock(self.make_folder(_folder_of(name)) / ".lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                old = self.get(name)
            except FileNotFoundError:
                old = None
            if (new := make(old)) != old:
                self.put(name, new)

    def delete(self, name: str) -> None:
        """Remove a file; one that is not there is passed over."""
        self.path(name).unlink(missing_ok=True)

    def withdraw(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        path = self.path(name)
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def not_objects(self) -> list[Path]:
        """What killed runs were writing, beside artifacts and reports."""
        beside = [path for zone in ZONES for path in self.path(zone).glob("*/*")]
        within = [path for zone in ZONES for path in self.path(zone).glob("reports/*/**/*")]
        return sorted({path for path in (*beside, *within) if _LEFT.fullmatch(path.name)})

    def modified(self, folder: str) -> float:
        """When a name in a folder was written last."""
        return self.path(folder).stat().st_mtime

    def now(self) -> float:
        """This machine's clock."""
        return time.time()

    def settle(self, folder: str) -> None:
        """Fsync a folder: another process may have given a file its name, and not have come to that yet."""
        fsync(self.path(folder))

    def draft_folder(self, folder: str) -> Path:
        """A new folder beside what it will be published as, by a name that no listing has."""
        return self.make_folder(f"{folder}/.aside-{secrets.token_hex(8)}")

    def publish(self, draft: Path, name: str, standing: Mapping[str, str] = NOTHING) -> None:
        """Fsync all that is in a folder, and rename it to its name; where another was first, replace what is damaged there.

        Objects that stand are linked, not copied.
        """
        for below, other in standing.items():
            (draft / below).parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):  # of two adopted artifacts with the same file
                (draft / below).hardlink_to(self.path(other))
        if self._is_private(draft):
            close_to_others(draft)
        for path in (*draft.rglob("*"), draft):
            fsync(path)
        final = self.path(name)
        try:
            draft.rename(final)
        except OSError:
            if not final.exists():
                raise
            _replace_damaged(draft, final)
        fsync(final.parent)

    def path(self, name: str) -> Path:
        """The file of an object."""
        return self.root / name

    def whole_path(self, name: str, is_whole: Callable[[Path], bool]) -> Path | None:
        """The file of an object that `is_whole`; None of one that is damaged."""
        path = self.path(name)
        return path if is_whole(path) else None

    def where(self, name: str) -> str:
        """The path of an object."""
        return str(self.path(name))

    def make_folder(self, name: str) -> Path:
        """Make a folder and those above it, to last; in the holders' zone for the owner only."""
        folder = self.path(name)
        make_to_last(folder)
        if self._is_private(folder):
            make_private(self.root / PRIVATE, folder)
        return folder

    @contextmanager
    def _written_aside(self, name: str, data: bytes) -> Iterator[Path]:
        """A file in the same folder with these bytes, fsynced; gone afterwards, unless it was renamed."""
        aside = self.make_folder(_folder_of(name)) / f".aside-{secrets.token_hex(8)}"
        try:
            aside.write_bytes(data)
            if self._is_private(aside):
                aside.chmod(FILE)
            fsync(aside)
            yield aside
        finally:
            aside.unlink(missing_ok=True)

    def _draft_of(self, name: str) -> Path:
        """Where an object is drafted that cannot be without a name: with the holders, by a name that says nothing."""
        return self.make_folder(f"{PRIVATE}/drafts") / hashlib.sha256(name.encode()).hexdigest()[:40]

    def _open_lock(self, path: Path) -> BinaryIO:
        return append_privately(path) if self._is_private(path) else path.open("ab")

    def _walk(self, folder: str, *, deep: bool) -> Iterator[Entry]:
        for entry in self._scan(folder):
            name = f"{folder}/{entry.name}".lstrip("/")
            if not entry.is_dir():
                with suppress(FileNotFoundError):  # of another run, which has just moved it
                    found = entry.stat()
                    yield Entry(name, found.st_size, found.st_mtime)
            elif deep:
                yield from self._walk(name, deep=True)

    def _scan(self, folder: str) -> list[os.DirEntry[str]]:
        """What is in a folder; nothing of what is being written."""
        try:
            with os.scandir(self.path(folder)) as entries:
                return [entry for entry in entries if not entry.name.startswith(".")]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _is_private(self, path: Path) -> bool:
        return path.is_relative_to(self.root / PRIVATE)


def _replace_damaged(draft: Path, final: Path) -> None:
    """Make a folder hold what `draft` does, a file at a time: one that is whole is there all the time. Removes the draft."""
    for source in sorted((draft, *draft.rglob("*"))):
        target = final / source.relative_to(draft)
        if source.is_dir() and not target.is_dir():
            target.unlink(missing_ok=True)
            make_to_last(target)
        elif source.is_file() and not (target.is_file() and filecmp.cmp(source, target, shallow=False)):
            if target.is_dir():
                shutil.rmtree(target)
            source.replace(target)
        if not source.is_dir():
            fsync(target.parent)
    shutil.rmtree(draft)


def _folder_of(name: str) -> str:
    return name.rpartition("/")[0]


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
