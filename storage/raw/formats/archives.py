"""Zip archives: the one table that an archive holds, unpacked; and whether any archive can be trusted to be unpacked at all."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from ldptree.errors import DataError
from schemas.dataset import FILE_SUFFIXES
from storage.raw.formats.nameless_files import NamelessFile

BLOCK = 1 << 20
MOST_UNPACKED = 4 << 30
"""Bytes that an archive's table may have."""
MOST_TIMES = 200
"""A file that is so many times larger than it is packed, and larger than `FREE`, was packed to fill a disk."""
FREE = 64 << 20
LISTED = 5
_ENCRYPTED = 0x1


def unpack_table(path: Path, name: str) -> tuple[str, NamelessFile]:
    """The name and the content of the one table in an archive; `name`: what messages call the archive.

    Raises DataError where there is none or more than one, or it cannot be unpacked.
    """
    with _opened(path, name) as archive:
        entry = _table_in(archive, name)
        unpacked = NamelessFile()
        for block in _blocks(archive, entry, name):
            unpacked.stream.write(block)
    return entry.filename, unpacked


def check_archive(path: Path, name: str) -> None:
    """Raises DataError unless every file in an archive can be unpacked, is what was packed, and is no bomb."""
    with _opened(path, name) as archive:
        for entry in archive.infolist():
            for _ in _blocks(archive, entry, name):
                pass


def _opened(path: Path, name: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        pass
    raise DataError(f"{name}: truncated or damaged. Fetch or write it again.")


def _table_in(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """The one file that may be a table; what an archiver adds for itself is none."""
    own = [
        entry
        for entry in archive.infolist()
        if not entry.is_dir() and not any(part.startswith((".", "__")) for part in Path(entry.filename).parts)
    ]
    tables = [entry for entry in own if entry.filename.lower().endswith(FILE_SUFFIXES)]
    if len(tables) == 1:
        return tables[0]
    if not tables:
        raise DataError(f"{name}: holds no table ({_listed(own)}). Name a file that is one.")
    raise DataError(
        f"{name}: holds {len(tables)} tables ({_listed(tables)}). Unpack it, and name one of them."
    )


def _listed(entries: Sequence[zipfile.ZipInfo]) -> str:
    names = [entry.filename for entry in entries[:LISTED]]
    return ", ".join(names + ["and so on"] * (len(entries) > LISTED)) or "it is empty"


def _blocks(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> Iterator[bytes]:
    """The content of a file in an archive. Raises DataError before there is more of it than can be trusted."""
    if entry.flag_bits & _ENCRYPTED:
        raise DataError(f"{name}: encrypted. Unpack it with its password, and name what it holds.")
    most = min(MOST_UNPACKED, max(FREE, MOST_TIMES * entry.compress_size))
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
        fault = "truncated or damaged. Fetch or write it again."
    if fault:
        raise DataError(f"{name}: {fault}")
