"""Unpack the one text in a zip archive, and check that any archive can be trusted to be unpacked at all."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from ldptree.errors import DataError
from storage.raw.formats.nameless_files import NamelessFile

ZIP = b"PK"
MOST_LISTED = 4 << 20
"""Bytes of the list of an archive's files, which is kept in memory."""
_END, _END_64 = b"PK\5\6", b"PK\6\7"
"""Begins the end of the list, and what stands 20 bytes above it where the list is longer than the former can tell."""
_SHORTEST_END = 22
_LONGEST_END = _SHORTEST_END + (1 << 16)
BLOCK = 1 << 20
MOST_UNPACKED = 4 << 30
"""Bytes that all files of an archive may have."""
MOST_TIMES = 200
"""What is so many times larger than it is packed, and larger than `FREE`, was packed to fill a disk."""
FREE = 64 << 20
DAMAGED = "truncated or damaged. Fetch or write it again."
_ENCRYPTED = 0x1


def most_unpacked(packed: int) -> int:
    """Bytes that may be packed into so many."""
    return max(FREE, MOST_TIMES * packed)


def unpack_text(path: Path) -> NamelessFile:
    """The one file in an archive; what an archiver adds for itself is none. Raises DataError."""
    with open_archive(path, path.name) as archive:
        own = [
            entry
            for entry in archive.infolist()
            if not entry.is_dir() and not PurePosixPath(entry.filename).parts[0].startswith((".", "__"))
        ]
        if len(own) != 1:
            raise DataError(
                f"{path.name}: a zip archive with {len(own)} files that could be the table, and not one. Unpack it, and name "
                "the one that is meant."
            )
        unpacked = NamelessFile()
        for block in _blocks(archive, own[0], path.name, MOST_UNPACKED):
            unpacked.stream.write(block)
    return unpacked


def check_archive(path: Path, name: str) -> None:
    """Raises DataError unless every file in an archive can be unpacked, is what was packed, and is no bomb."""
    left = MOST_UNPACKED
    with open_archive(path, name) as archive:
        for entry in archive.infolist():
            left -= sum(map(len, _blocks(archive, entry, name, left)))


@contextmanager
def open_archive(path: Path, name: str) -> Iterator[zipfile.ZipFile]:
    """An archive whose list of files is not too long. Raises DataError."""
    with path.open("rb") as stream:
        stream.seek(max(path.stat().st_size - _LONGEST_END, 0))
        end = stream.read()
    plain = len(end) - _SHORTEST_END
    place = plain if end[max(plain, 0) :].startswith(_END) else end.rfind(_END)
    is_long = int.from_bytes(end[place + 12 : place + 16], "little") > MOST_LISTED
    if place >= 0 and (is_long or end[max(place - 20, 0) : place].startswith(_END_64)):
        raise DataError(f"{name}: an archive of too many files. Unpack it, and name the table that it holds.")
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        raise DataError(f"{name}: {DAMAGED}") from None
    with archive:
        yield archive


def _blocks(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str, left: int) -> Iterator[bytes]:
    """The content of a file in an archive. Raises DataError before there is more of it than can be trusted."""
    if entry.flag_bits & _ENCRYPTED:
        raise DataError(f"{name}: encrypted. Unpack it with its password, and name what it holds.")
    most = min(left, most_unpacked(entry.compress_size))
    n_bytes, fault = 0, ""
    try:
        with archive.open(entry) as stream:
            while block := stream.read(BLOCK):
                n_bytes += len(block)
                if n_bytes > most:
                    fault = f"unpacks to more than {most >> 20:,} MiB. Unpack it by hand if you trust it."
                    break
                yield block
    except NotImplementedError:
        fault = "packed in a way that cannot be read. Pack it anew, or unpack it."
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError):
        fault = DAMAGED
    if fault:
        raise DataError(f"{name}: {fault}")
