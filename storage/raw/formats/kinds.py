"""Tell the kind of a raw file by its first bytes, whatever it is called."""

from __future__ import annotations

import codecs
import gzip
import os
from pathlib import Path
from typing import BinaryIO, Literal

from ldptree.errors import DataError
from schemas.named_files import A_FOLDER, read_fault, shown_path
from storage.raw.formats.archives import open_archive

Kind = Literal["parquet", "text", "gzip", "zip", "workbook"]
"""The kind of a file. "gzip" is a packed text, and "zip" an archive that is no workbook."""

LONGEST_PREAMBLE = 4 << 10
"""Bytes that tell a file's format."""
PARQUET = b"PAR1"
_GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
_WORKBOOK_PARTS = ("xl/workbook.xml", "xl/workbook.bin", "content.xml")
"""Of Excel (xlsx, xlsm; xlsb) and of OpenDocument."""
_MARKUP = (b"<", b"{", b"[{")
"""How HTML, XML and JSON begin."""


def file_kind(path: Path, name: str = "") -> Kind:
    """Return the kind of a file. `name` is what messages call it. Raises DataError if its first bytes say that it
    cannot be read.
    """
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
    if start.removeprefix(codecs.BOM_UTF8).startswith(_MARKUP):
        raise DataError(f"{name}: HTML, XML or JSON, and no table. Convert it to CSV or Parquet.")
    return "gzip" if start.startswith(_GZIP) else "text"


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


def _is_workbook(path: Path) -> bool:
    """Return whether an archive holds the parts of a workbook, or is called one and cannot be opened."""
    try:
        with open_archive(path, path.name) as archive:
            return not {*archive.namelist()}.isdisjoint(_WORKBOOK_PARTS)
    except DataError:
        return path.suffix.lower() in (".xlsx", ".xlsm", ".xlsb", ".ods")
