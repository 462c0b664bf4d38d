"""The object store in a folder, where an object is a file and its name the file's path in the folder.

An object is written aside, fsynced, and linked or renamed to its name. Those of the holders' side are for their owner only.

Files of reports are each drawn at most once, after any crash and whatever their owner does to them. A draft lies in the holders'
zone under a name that is known before it is drawn, and stays there until the holders have recorded that they answered; until then
the same draft is published again, and none is drawn anew. What is drawn is decided in `tasks.perturb`.
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
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ldptree.errors import ArtifactCorrupt, ConfigError
from schemas.manifest import ZONES
from schemas.named_files import NO_SUCH_FOLDER, folder_fault, make_folder, shown_path
from storage.objects.object_store import Entry, T, Write
from storage.private_files import FILE, append_privately, close_to_others, fsync, make_private, make_to_last

PRIVATE = ("holders", "simulation", "runs", "index.html", "prefect")
"""Objects for their owner only. A simulation's scores and pages come from rows that nobody asked."""
BESIDE_ZONES = ("runs", "prefect")
"""Folders of a work folder that are no zone."""
WRITTEN = (*ZONES, "runs", "started")
"""Folders below which objects are written."""
DRAFTS = "holders/drafts"
_LEFT = re.compile(r"\.(?:aside|copy|probe)-[0-9a-f]+")
"""How what is being written is called."""
BELOW_A_FILE = f"cannot be read ({os.strerror(errno.ENOTDIR)})"
FILES_READ = ("holders/secret", ".in-use")


class FolderObjects:
    """The objects of a work folder. Raises ConfigError where the folder cannot be used."""

    is_shared = False

    def __init__(self, root: str | Path, *, only_reads: bool = False) -> None:
        """Open the folder `root`; make it where it is not there, unless one `only_reads`, as also on a disk of that kind."""
        check_folder(Path(root))
        self.root = Path(root).absolute()
        if only_reads and (not self.root.exists() or os.statvfs(self.root).f_flag & os.ST_RDONLY):
            return
        try:
            make_folder(self.root)
            probe = self.root / f".probe-{secrets.token_hex(8)}"
            probe.touch()
            probe.unlink(missing_ok=True)  # of another run, which deletes what killed ones left
            for name in PRIVATE:
                close_to_others(self.root / name)
        except OSError as fault:
            reason = os.strerror(fault.errno or 0)
            raise ConfigError(
                f"work folder {shown_path(root)}: cannot be written ({reason}). Name another one with --work."
            ) from None

    def check_rights(self) -> None:
        """Raise ConfigError if a run could not write in one of its folders, or read what all steps read, before
        anything is started or anybody asked.
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
        """The bytes of a file. Raises FileNotFoundError, and ArtifactCorrupt of what is no file: a pipe would never end."""
        path = self.path(name)
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ArtifactCorrupt(
                    f"{path}: no file. Move it away; the same command continues from there."
                )
            return file.read()

    def size(self, name: str) -> int | None:
        """The size of a file, None where there is none."""
        try:
            return self.path(name).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def at_once(self, act: Callable[[str], T], names: Sequence[str]) -> list[T]:
        """Call `act` for each file, in order."""
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
        """Draft a file in the holders' zone and give it its name; False (and nothing changed) where it has that name already."""
        self.make_folder(_folder_of(name))
        return publish_once(self.path(name), write, self._draft_of(name))

    def forget_draft(self, name: str) -> None:
        """Remove the draft of what was drawn, once its holders have recorded it."""
        self._draft_of(name).unlink(missing_ok=True)

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
        """Return what killed runs were writing."""
        return sorted(_half_written(self.root))

    def modified(self, folder: str) -> float:
        """When a name in a folder was written last."""
        return self.path(folder).stat().st_mtime

    def now(self) -> float:
        """This machine's clock."""
        return time.time()

    def draft_folder(self, folder: str) -> Path:
        """A new folder beside what it will be published as, by a name that no listing has."""
        return self.make_folder(f"{folder}/.aside-{secrets.token_hex(8)}")

    def publish(self, draft: Path, name: str) -> None:
        """Fsync all that is in a folder, and rename it to its name; where another was first, replace what is damaged there."""
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
        if (top := self._private_folder(folder)) is not None:
            make_private(top, folder)
        return folder

    @contextmanager
    def _written_aside(self, name: str, data: bytes) -> Iterator[Path]:
        """A file in the same folder with these bytes, fsynced; gone afterwards, unless it was renamed."""
        aside = self.make_folder(_folder_of(name)) / f".aside-{secrets.token_hex(8)}"
        try:
            aside.write_bytes(data)
            if self._is_private(self.path(name)):
                aside.chmod(FILE)
            fsync(aside)
            yield aside
        finally:
            aside.unlink(missing_ok=True)

    def _draft_of(self, name: str) -> Path:
        """Return the path of an object's draft, with the holders, by a name that says nothing and that no listing has."""
        return self.make_folder(DRAFTS) / f".draft-{hashlib.sha256(name.encode()).hexdigest()[:40]}"

    def _open_lock(self, path: Path) -> BinaryIO:
        return append_privately(path) if self._is_private(path) else path.open("ab")

    def _walk(self, folder: str, *, deep: bool) -> Iterator[Entry]:
        for entry in self._scan(folder):
            name = f"{folder}/{entry.name}".lstrip("/")
            if not entry.is_dir():
                with suppress(FileNotFoundError):  # of another run, which has just moved it
                    stat = entry.stat()
                    yield Entry(name, stat.st_size, stat.st_mtime)
            elif deep:
                yield from self._walk(name, deep=True)

    def _scan(self, folder: str) -> list[os.DirEntry[str]]:
        """List a folder; nothing of what is being written."""
        try:
            with os.scandir(self.path(folder)) as entries:
                return [entry for entry in entries if not entry.name.startswith(".")]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _is_private(self, path: Path) -> bool:
        return self._private_folder(path) is not None

    def _private_folder(self, path: Path) -> Path | None:
        """Return the folder for its owner only that a path is in, None where it is in none."""
        return next((top for name in PRIVATE if path.is_relative_to(top := self.root / name)), None)


def delete_half_written(root: Path) -> None:
    """Delete what killed runs were writing in a work folder, which nobody else may be writing in; not what cannot be deleted."""
    for path in _half_written(root):
        with suppress(OSError):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _half_written(root: Path) -> Iterator[Path]:
    yield from (path for path in root.glob(".*-*") if _LEFT.fullmatch(path.name))
    yield from (root / DRAFTS).glob("*.part")  # a whole draft is of a draw that stands
    for top in WRITTEN:
        for place, folders, files in os.walk(root / top):
            yield from (Path(place, name) for name in (*folders, *files) if _LEFT.fullmatch(name))
            folders[:] = [name for name in folders if not _LEFT.fullmatch(name)]


def _replace_damaged(draft: Path, final: Path) -> None:
    """Make a folder equal to `draft`, file by file, while each whole file stays in place. Removes the draft."""
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


def check_folder(
    root: Path, what: str = "work folder", remedy: str = "Name another one with --work."
) -> None:
    """Raises ConfigError where `root` is no folder, and none can be made there; makes nothing."""
    fault = folder_fault(root)
    if fault == BELOW_A_FILE or (fault == NO_SUCH_FOLDER and not root.is_symlink()):
        fault = _making_fault(next(path for path in root.absolute().parents if _exists(path)))
    if fault is not None:
        raise ConfigError(f"{what} {shown_path(root)}: {fault}. {remedy}")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _making_fault(above: Path) -> str | None:
    """Say why no folder can be made in this one; None where one can."""
    if not above.is_dir():
        return "that is a file"
    if os.access(above, os.W_OK | os.X_OK):
        return None
    is_read_only = os.statvfs(above).f_flag & os.ST_RDONLY
    return f"cannot be written ({os.strerror(errno.EROFS if is_read_only else errno.EACCES)})"


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def publish_once(path: Path, write: Write, draft: Path) -> bool:
    """Give what `write` draws the name `path`; False (and nothing changed) where it has that name already.

    One at a time, as the name of a draft is the same for everybody.

    Raises:
        ArtifactCorrupt: another file stands at `path` than the one that was drawn.
        OSError: it cannot be written.
    """
    with append_privately(draft.parent / ".lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_first = not path.exists()
        if is_first and not draft.exists():
            _write_draft(draft, write)
        if is_first:
            _publish_copy(draft, path)
        elif draft.exists() and not filecmp.cmp(draft, path, shallow=False):
            raise ArtifactCorrupt(
                f"{path}: not the reports that its holders drew. Nothing was drawn again. Find out who wrote to the curator's "
                "zone, and delete the file: the next run publishes the reports that were drawn."
            )
    fsync(path.parent)
    return is_first


def _write_draft(draft: Path, write: Write) -> None:
    """Write a draft that bears its name once it is whole; what a killed process left of one is written over."""
    part = draft.with_suffix(".part")
    try:
        with part.open("wb") as file:
            part.chmod(FILE)
            write(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(draft)
    finally:
        part.unlink(missing_ok=True)
    fsync(draft.parent)


def _publish_copy(draft: Path, path: Path) -> None:
    """Publish a copy of a whole draft, so that its owner may change the copy while the draft stays as drawn."""
    copy = path.with_name(f".copy-{path.stem}")
    shutil.copyfile(draft, copy)
    fsync(copy)
    copy.replace(path)
