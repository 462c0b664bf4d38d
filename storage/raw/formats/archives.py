"""Unpack the one text in a zip archive, as far as it can be trusted."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path, PurePosixPath

from ldptree.errors import DataError
from storage.raw.formats.nameless_files import NamelessFile

BLOCK = 1 << 20
MOST_TIMES = 200
"""What is so many times larger than it is packed, and larger than `FREE`, was packed to fill a disk."""
FREE = 64 << 20


def most_unpacked(packed: int) -> int:
    """Bytes that may be packed into so many."""
    return max(FREE, MOST_TIMES * packed)


def unpack_text(path: Path) -> NamelessFile:
    """The one file in an archive; what an archiver adds for itself is none. Raises DataError."""
    unpacked, left, fault = NamelessFile(), most_unpacked(path.stat().st_size), ""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            own = [e for e in entries if not PurePosixPath(e.filename).parts[0].startswith((".", "__"))]
            if len(own) != 1:
                fault = f"a zip archive with {len(own):,} files that could be the table, and not one. Unpack it, and name one."
            else:
                with archive.open(own[0]) as stream:
                    while left >= 0 and (block := stream.read(BLOCK)):
                        left -= unpacked.stream.write(block)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError):
        fault = "encrypted, damaged, or packed in a way that cannot be read. Unpack it, or fetch it again."
    if fault or left < 0:
        raise DataError(f"{path.name}: {fault or 'unpacks to too much. Unpack it by hand if you trust it.'}")
    return unpacked
