"""What a raw file is, by its first bytes, whatever it is called."""

from __future__ import annotations

import codecs
import gzip
import os
import re
import zlib
from pathlib import Path
from typing import BinaryIO, Literal

from ldptree.errors import DataError
from schemas.named_files import A_FOLDER, read_fault, shown_path

Kind = Literal["parquet", "text", "gzip", "arff", "zip", "workbook"]
"""gzip: a text that is packed. zip: an archive that is no workbook."""

LONGEST_PREAMBLE = 64 << 10
"""Bytes that tell a file's format."""
PARQUET = b"PAR1"
_GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
_WORKBOOK_PARTS = ("xl/workbook.xml", "xl/workbook.bin", "content.xml")
"""Of Excel (xlsx, xlsm; xlsb) and of OpenDocument."""
_OTHER_FORMATS = {
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"BZh": "bzip2-compressed. Unpack it, or use gzip",
    b"\xfd7zXZ": "xz-compressed. Unpack it, or use gzip",
    b"\x28\xb5\x2f\xfd": "zstd-compressed. Unpack it, or use gzip",
    b"Rar!": "a rar archive. Unpack it",
    b"7z\xbc\xaf": "a 7z archive. Unpack it",
    b"<": "HTML or XML, perhaps a web page saved in place of the data",
    b"{": "JSON. Convert it to CSV or Parquet",
    b"[{": "JSON. Convert it to CSV or Parquet",
}
_ARFF = re.compile(rb"(?:\s*%[^\n]*\n|\s*\n)*\s*@relation\b", re.IGNORECASE)


def file_kind(path: Path, name: str = "") -> Kind:
    """What a file is; `name`: what messages call it. Raises DataError where its first bytes say that it cannot be read."""
    if (fault := read_fault(path)) is not None:
        glob = f', or a glob such as "{path.name}/*.csv"' if fault == A_FOLDER else ""
        raise DataError(f"{shown_path(path)}: {fault}. Name a file{glob}.")
    name = name or path.name
    start = _first_bytes(path)
    if not start:
        raise DataError(f"{name}: the file is empty (0 bytes). Name only files that have rows.")
    if start.startswith(PARQUET) or name.lower().endswith(".parquet"):
        return "parquet"
    if start.startswith(_ZIP):
        return "workbook" if _is_workbook(path) else "zip"
    if start.startswith(_OLD_WORKBOOK):
        return "workbook"
    for magic, what in _OTHER_FORMATS.items():
        if start.removeprefix(codecs.BOM_UTF8).startswith(magic):
            raise DataError(f"{name}: not a table: it is {what}.")
    is_gzipped = start.startswith(_GZIP)
    if _ARFF.match((_first_unpacked(path) if is_gzipped else start).removeprefix(codecs.BOM_UTF8)):
        return "arff"
    return "gzip" if is_gzipped else "text"


def open_text(path: Path) -> BinaryIO:
    """The bytes of a text file, unpacked where it is gzipped. Raises OSError."""
    with path.open("rb") as stream:
        is_gzipped = stream.read(len(_GZIP)) == _GZIP
    return gzip.open(path, "rb") if is_gzipped else path.open("rb")  # type: ignore[return-value]


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(LONGEST_PREAMBLE)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({os.strerror(error.errno or 0)}).") from None


def _first_unpacked(path: Path) -> bytes:
    """The first bytes in a gzip; of a damaged one none, for that is told where all of it is read."""
    try:
        with gzip.open(path, "rb") as stream:
            return stream.read(LONGEST_PREAMBLE)
    except (OSError, EOFError, zlib.error):
        return b""


def _is_workbook(path: Path) -> bool:
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            return not {*archive.namelist()}.isdisjoint(_WORKBOOK_PARTS)
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        return path.suffix.lower() in (".xlsx", ".xlsm", ".xlsb", ".ods")
