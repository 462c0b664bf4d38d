"""Make the bytes of a file, and the names in a folder, outlast a loss of power."""

from __future__ import annotations

import os
from pathlib import Path


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
