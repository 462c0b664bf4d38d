"""Write a file without a name, for what was unpacked or rewritten of a raw file. It is on the disk but in no folder,
nobody else can open it, and it is gone with the process, however that ends. On a system without such files (not Linux),
it has a name, only its owner may read it, and it is gone when it is closed.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

IS_OPENED_BY_NUMBER = sys.platform == "linux"
"""Elsewhere a second opening of a number goes on where the first one is."""


def _open() -> IO[bytes]:
    return tempfile.TemporaryFile() if IS_OPENED_BY_NUMBER else tempfile.NamedTemporaryFile()


@dataclass(frozen=True)
class NamelessFile:
    """An open file that is there as long as this object."""

    stream: IO[bytes] = field(default_factory=_open)

    @property
    def place(self) -> Path:
        """A path by which this process opens it, as often as it likes."""
        self.stream.flush()
        return Path(f"/dev/fd/{self.stream.fileno()}" if IS_OPENED_BY_NUMBER else self.stream.name)
