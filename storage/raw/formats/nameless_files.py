"""A file without a name: what was unpacked or written anew of a raw file lies on the disk and in no folder, and is gone with
the process, however that ends. Nobody else can open it.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO


@dataclass(frozen=True)
class NamelessFile:
    """An open file that was deleted when it was made. It is there as long as this object."""

    stream: IO[bytes] = field(default_factory=tempfile.TemporaryFile)

    @property
    def place(self) -> Path:
        """A path by which this process opens it, as often as it likes."""
        self.stream.flush()
        return Path(f"/dev/fd/{self.stream.fileno()}")
