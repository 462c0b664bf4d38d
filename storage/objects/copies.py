"""Keep copies of a bucket's objects on this machine, find and check them, and list those that nobody uses."""

from __future__ import annotations

import hashlib
import os
import time
from datetime import timedelta
from pathlib import Path

from ldptree.errors import ConfigError

RAW = "raw"
"""The folder for copies of raw files, which belong to no work folder."""
SUFFIX = ".sha256"
"""Of the file beside a copy that says what was fetched."""


def folder_of_copies(address: str, *, is_raw: bool = False) -> Path:
    """Return the folder for copies of what is at an address, or of raw files if `is_raw`."""
    folder = _cache() / RAW if is_raw else _cache()
    return folder / hashlib.sha256(address.encode()).hexdigest()[:16]


def make_folder_of_copies(root: Path) -> None:
    """Make it, for its user only. Raises ConfigError."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        root.chmod(0o700)  # copies of the holders' objects are in it
    except OSError as fault:
        raise ConfigError(
            f"{root}: cannot be made ({fault.strerror}), where copies of what is in a bucket are kept. Name another folder for "
            "such copies with XDG_CACHE_HOME."
        ) from None


def is_as_fetched(copy: Path) -> bool:
    """Return whether a copy is there, and what was fetched (`note_fetched`)."""
    try:
        return _beside(copy).read_text(errors="replace") == _digest(copy)
    except FileNotFoundError:
        return False


def note_fetched(copy: Path) -> None:
    """Keep what a copy is now."""
    _beside(copy).write_text(_digest(copy))


def unused_raw_copies(since: timedelta) -> list[Path]:
    """Return copies of raw files that no run has used for so long. A run fetches again what it needs."""
    last = time.time() - since.total_seconds()
    copies = [path for path in files_below(_cache() / RAW) if path.stat().st_mtime < last]
    return [path for path in copies if path.suffix != SUFFIX or path.with_suffix("") in copies]


def files_below(folder: Path) -> list[Path]:
    """The files in a folder and in those below it."""
    return [path for path in folder.rglob("*") if path.is_file()]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ldptree"


def _beside(copy: Path) -> Path:
    return copy.with_name(f"{copy.name}{SUFFIX}")


def _digest(copy: Path) -> str:
    with copy.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
