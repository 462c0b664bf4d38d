"""The memory of a client on the holder's own disk, a file of texts by key. Several processes may share it, and it
notices damage. `budget` says what the texts mean.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ldptree.errors import ConfigError, DataError, ProtocolMismatch

VERSION = 2
"""Of the file. The first was a plain object of texts, without a version or a digest; it is read too."""


class FileMemory(MutableMapping[str, str]):
    """A client's memory in a JSON file, on disk before a report is given out. Several processes and threads may use one file.

    Args:
        path: the file; made when something is first kept, readable by its owner only. A lock file stands beside it.

    Raises:
        ConfigError: the path is none, or its folder is not there.
        DataError: the file is there and is not such a memory, or was changed by something else; or it cannot be read, or
            written when a report is kept.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, str | os.PathLike):
            raise ConfigError(f"FileMemory: a {type(path).__name__} where the path of a file is needed")
        self._path = Path(path)
        if not self._path.parent.is_dir():
            raise ConfigError(f"{self._path}: there is no folder {self._path.parent}. Make it first")
        if self._path.exists() and not self._path.is_file():
            kind = "a folder" if self._path.is_dir() else "not a plain file"
            raise ConfigError(f"{self._path}: {kind}. Give the path of a file")
        self._read()

    def __getitem__(self, key: str) -> str:
        return self._read()[key]

    def __setitem__(self, key: str, value: str) -> None:
        """Keep a text. Raises ProtocolMismatch if another process kept one meanwhile, which then counts."""
        if self.setdefault(key, value) != value:
            raise ProtocolMismatch(
                f"{self._path}: another process has answered meanwhile. Ask again: its report is given out."
            )

    def setdefault(self, key: str, default: str) -> str:
        """Keep a text unless one is kept already; returns the one that is kept, whichever process it is of."""
        with self._locked():
            kept = self._read()
            if key not in kept:
                self._keep(kept | {key: default})
            return kept.get(key, default)

    def __delitem__(self, key: str) -> None:
        with self._locked():
            kept = self._read()
            del kept[key]
            self._keep(kept)

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self._path.with_name(f".{self._path.name}.lock")
        try:
            with open(os.open(lock, os.O_WRONLY | os.O_CREAT, 0o600), "w") as held:  # noqa: PTH123
                fcntl.flock(held, fcntl.LOCK_EX)
                yield
        except OSError as fault:
            raise DataError(
                f"{self._path}: nothing can be kept there ({fault.strerror}), so nothing is given out. Make its folder "
                "writable, or give another path"
            ) from None

    def _read(self) -> dict[str, str]:
        try:
            content = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as fault:
            raise DataError(f"{self._path}: cannot be read ({fault.strerror})") from None
        except (ValueError, RecursionError):
            content = None
        version = content.get("version") if isinstance(content, dict) else None
        if type(version) is int and version > VERSION:
            raise DataError(
                f"{self._path}: written by a later ldptree. Update ldptree: whoever answered before would answer twice"
            )
        kept = content
        if type(version) is int:
            kept = content["kept"] if content == _content(content.get("kept")) else None
        if not isinstance(kept, dict) or any(type(value) is not str for value in kept.values()):
            raise DataError(
                f"{self._path}: not a memory of reports, or damaged (its digest is not that of its content). If it was one, "
                "restore it from a copy: whoever answered before would answer twice."
            )
        return kept

    def _keep(self, kept: dict[str, str]) -> None:
        # One name for all, under the lock: what a crash leaves is written over by whoever keeps something next.
        aside = self._path.with_name(f".{self._path.name}.aside")
        try:
            with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:  # noqa: PTH123
                json.dump(_content(kept), file)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(self._path)
        except OSError:
            aside.unlink(missing_ok=True)
            raise
        folder = os.open(self._path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def _content(kept: Any) -> Mapping[str, Any]:
    """Return the file's content, with its digest."""
    digest = hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()
    return {"version": VERSION, "kept": kept, "digest": digest}
