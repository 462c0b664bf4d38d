"""A disk that forgets what was not synced when the power goes: a real folder, and beside it what of it would last.

Bytes last once their file was synced, and a name once its folder was; what is synced keeps the names of the folders above it, as
journals do. Of everything else a loss of power keeps a part by chance.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from contextlib import contextmanager
from pathlib import Path

from simulation.schedule import Crash
from storage.objects.folder import FolderObjects

FAULTS = ("kill", "stall", "power", "error", "clock")
CHANGES = ("link", "replace", "rename", "mkdir", "unlink", "rmdir")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EMFILE)


class Disk:
    """The disk of one machine, with `root` as its work folder."""

    SAID = ("no space left on the disk", *map(os.strerror, ERRORS))
    """What is said where the disk failed."""

    def __init__(self, root: Path, schedule) -> None:
        self.root, self.schedule = root, schedule
        self.clock = 1_000_000_000.0
        self.failures = 0
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}

    def lasts(self, name: str) -> bool:
        """Whether a file, as it is now, would be there after a loss of power."""
        at = self.root
        for part in name.split("/"):
            found = at / part
            if not found.exists() or self._names.get(_number(at), {}).get(part) != _number(found):
                return False
            at = found
        return self._bytes.get(_number(at)) == at.read_bytes()

    @contextmanager
    def without(self, name: str):
        """The disk with a file less."""
        away = self.root.with_name(f"{self.root.name}-away")
        (self.root / name).rename(away)
        yield
        away.rename(self.root / name)

    def sync(self, descriptor: int, path: Path) -> None:
        """What fsync of the file or folder that is open as `descriptor` does."""
        if not path.is_relative_to(self.root):
            return
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            with os.scandir(path) as entries:
                self._names[found.st_ino] = {entry.name: entry.inode() for entry in entries}
        else:
            self._bytes[found.st_ino] = Path(f"/proc/self/fd/{descriptor}").read_bytes()
            path = path.parent
        while path != self.root:
            self._names.setdefault(_number(path.parent), {})[path.name] = _number(path)
            path = path.parent

    def lose_power(self) -> None:
        """Keep what lasts, and of the rest what chance keeps."""
        where = {_number(path): path for path in [self.root, *self.root.rglob("*")]}
        kept = self._after_loss(_number(self.root), where)
        database = {path: path.read_bytes() for path in self.root.glob("holders/holders.db*")}
        for path in self.root.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self._bytes.clear()
        self._names.clear()
        _write(self.root, kept)
        for path, content in database.items():  # SQLite makes what it commits last
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        for path in [self.root, *self.root.rglob("*")]:
            descriptor = os.open(path, os.O_RDONLY)
            self.sync(descriptor, path)
            os.close(descriptor)

    def _after_loss(self, folder: int, where):
        kept = {}
        known = self._names.get(folder, {})
        here = {path.name: _number(path) for path in where[folder].iterdir()} if folder in where else {}
        for name in sorted(known.keys() | here.keys()):
            one = self._choose(here.get(name), known.get(name))
            if one is None:
                continue
            if one in self._names or (one in where and where[one].is_dir()):
                kept[name] = self._after_loss(one, where)
            else:
                now = where[one].read_bytes() if one in where else self._bytes[one]
                synced = self._bytes.get(one, b"")
                kept[name] = (
                    now if now == synced else self.schedule.random.choice([synced, now, now[: len(now) // 2]])
                )
        return kept

    def _choose(self, here, known):
        if known is not None and known not in self._names and known not in self._bytes and here != known:
            known = None  # never synced itself, and gone
        return here if here == known else self.schedule.random.choice([here, known])

    @contextmanager
    def patched(self, patch):
        """Every call that changes the disk, or looks at it, is a step."""
        for name in CHANGES:
            patch.setattr(os, name, self._as_step(name, getattr(os, name)))
        patch.setattr(os, "fsync", self._fsync)
        patch.setattr(fcntl, "flock", self._flock(fcntl.flock))
        patch.setattr(Path, "write_bytes", self._write_bytes(Path.write_bytes))
        for name in ("get", "size", "_scan"):
            patch.setattr(FolderObjects, name, self._as_step("look", getattr(FolderObjects, name), ()))
        yield

    def _step(self, what: str, on=(), fitting=("error",)) -> None:
        fault = self.schedule.reach((what, *on), ("power", "clock", *fitting))
        if fault == "clock":
            self.clock += self.schedule.random.choice([-1, 1]) * 10 ** self.schedule.random.randint(1, 7)
        if fault == "power":
            self.schedule.kill_all(self.lose_power)
            raise Crash
        if fault == "error":
            self.failures += 1
            number = self.schedule.random.choice(ERRORS)
            raise OSError(number, os.strerror(number), str(self.root))

    def _as_step(self, what, call, fitting=("error",)):
        def step(*args, **options):
            self._step(what, args, fitting)
            return call(*args, **options)

        return step

    def _fsync(self, descriptor):
        path = Path(str(Path(f"/proc/self/fd/{descriptor}").readlink()).removesuffix(" (deleted)"))
        self._step("fsync", [path])
        self.sync(descriptor, path)

    def _write_bytes(self, write):
        def in_halves(path, data):
            self._step("write", [path])
            write(path, data[: len(data) // 2])
            self._step("write the rest of", [path])
            return write(path, data)

        return in_halves

    def _flock(self, lock):
        def flock(file, how):
            if not how & fcntl.LOCK_NB:  # a look whether somebody else is there is no step of its own
                self._step("flock", fitting=())
            while True:
                try:
                    return lock(file, how | fcntl.LOCK_NB)
                except BlockingIOError:
                    if how & fcntl.LOCK_NB or not self.schedule.is_acting:
                        raise
                self.schedule.give_way()

        return flock


def _write(folder: Path, kept) -> None:
    for name, content in kept.items():
        path = folder / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.mkdir()
            _write(path, content)


def _number(path: Path) -> int:
    return path.stat(follow_symlinks=False).st_ino
