"""A holder's reports on their own disk: the memory of `ldptree.client` that outlives a process."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path

from ldptree.errors import ConfigError, DataError, ProtocolMismatch


class FileMemory(MutableMapping[str, str]):
    """Reports kept in a JSON file, on disk before they are given out. Several processes and threads may use one file.

    Args:
        path: the file; made with the first report, readable by its owner only. A lock file stands beside it.

    Raises:
        ConfigError: the path is none, or its folder is not there.
        DataError: the file is there and is not such a memory; or it cannot be read, or written when a report is kept.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, str | os.PathLike):
            raise ConfigError(f"FileMemory: a {type(path).__name__} where the path of a file is needed")
        self._path = Path(path)
        if not self._path.parent.is_dir():
            raise ConfigError(f"{self._path}: there is no folder {self._path.parent}. Make it first")
        if self._path.is_dir():
            raise ConfigError(f"{self._path}: a folder. Give the path of a file in it")
        self._kept = self._read()

    def __getitem__(self, key: str) -> str:
        kept = self._kept = self._read()
        return kept[key]

    def __setitem__(self, key: str, value: str) -> None:
        """Keep an answer. Raises ProtocolMismatch where another process has kept one meanwhile: ask again for that one."""
        if self.setdefault(key, value) != value:
            raise ProtocolMismatch(
                f"{self._path}: another process has answered meanwhile. Ask again: its report is given out."
            )

    def setdefault(self, key: str, default: str) -> str:
        """Keep an answer unless one is kept already; returns the one that is kept, whichever process it is of."""
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
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            with self._path.with_name(f".{self._path.name}.lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as fault:
            raise DataError(
                f"{self._path}: nothing can be kept there ({fault.strerror}), so nothing is given out. Make its folder "
                "writable, or give another path"
            ) from None

    def _read(self) -> dict[str, str]:
        try:
            kept = json.loads(self._path.read_text())
        except FileNotFoundError:
            return {}
        except OSError as fault:
            raise DataError(f"{self._path}: cannot be read ({fault.strerror})") from None
        except (ValueError, RecursionError):
            kept = None
        if not isinstance(kept, dict) or any(type(value) is not str for value in kept.values()):
            raise DataError(
                f"{self._path}: not a memory of reports. If it was one, restore it from a copy: whoever answered before "
                "would answer twice."
            )
        return kept

    def _keep(self, content: dict[str, str]) -> None:
        aside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:  # noqa: PTH123
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        self._kept = content
