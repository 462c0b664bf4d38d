"""Close a zone's files to all but their owner, whatever the umask, and make them outlast a loss of power.

Folders have mode 0700, files 0600.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

FOLDER, FILE = 0o700, 0o600


def close_to_others(folder: Path) -> None:
    """Give a folder and all below it, or a file, to its owner only; what is not there is passed over. Raises OSError."""
    with suppress(FileNotFoundError):  # of another run, which has just moved it
        _set_mode(folder, FOLDER if folder.is_dir() else FILE)
    for place, folders, files in os.walk(folder):
        for name in folders + files:
            with suppress(FileNotFoundError):
                _set_mode(Path(place, name), FOLDER if name in folders else FILE)


def make_private(zone: Path, folder: Path) -> None:
    """Give every folder from `zone` down to `folder` to its owner only. Raises OSError."""
    while folder.is_relative_to(zone):
        _set_mode(folder, FOLDER)
        folder = folder.parent


def append_privately(path: Path) -> BinaryIO:
    """A file open to append to, made for its owner only where it is not there. Raises OSError."""
    stream = os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, FILE), "ab")
    _set_mode(path, FILE)
    return stream


def _set_mode(path: Path, mode: int) -> None:
    current = path.lstat().st_mode
    if not stat.S_ISLNK(current) and stat.S_IMODE(current) != mode:
        path.chmod(mode)


def fsync(path: Path) -> None:
    """Wait until a file, or the names in a folder, will outlast a loss of power. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_to_last(folder: Path) -> None:
    """Make a folder and those above it, and wait until their names will outlast a loss of power. Raises OSError."""
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(exist_ok=True)
        fsync(missing.parent)
