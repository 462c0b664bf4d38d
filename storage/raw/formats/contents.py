"""The kind of a raw file, told by its first bytes whatever it is called, and the table in it as a run can read it, in a CSV,
also gzipped, or a Parquet.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from ldptree.errors import DataError
from schemas.named_files import A_FOLDER, read_fault, shown_path
from storage.raw.formats.archives import most_unpacked, unpack_text
from storage.raw.formats.nameless_files import NamelessFile
from storage.raw.formats.workbooks import write_sheets

Kind = Literal["parquet", "text", "gzip", "zip", "workbook"]
"""The kind of a file. "gzip" is a packed text, and "zip" an archive that is called so: what workbooks are packed in, too."""

LONGEST_START = 4 << 10
"""Bytes that tell a file's format."""
PARQUET = b"PAR1"
_GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
_MARKUP = (b"<", b"{", b"[{")
"""How HTML, XML and JSON begin."""


def file_kind(path: Path) -> Kind:
    """Return the kind of a file. Raises DataError if its first bytes say that it cannot be read."""
    if (fault := read_fault(path)) is not None:
        glob = f', or a glob such as "{path.name}/*.csv"' if fault == A_FOLDER else ""
        raise DataError(f"{shown_path(path)}: {fault}. Name a file{glob}.")
    name = path.name
    start = _first_bytes(path)
    if not start:
        raise DataError(f"{name}: the file is empty (0 bytes). Name only files that have rows.")
    if start.startswith(PARQUET) or name.lower().endswith(".parquet"):
        return "parquet"
    if start.startswith(_ZIP):
        return "zip" if name.lower().endswith(".zip") else "workbook"
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
            return stream.read(LONGEST_START)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({os.strerror(error.errno or 0)}).") from None


BLOCK = 4 << 20
LONGEST_PREAMBLE = 64 << 10
"""Bytes in which an ARFF is recognised."""
NOT_UTF_8 = (
    'not UTF-8 text. Set dataset.encoding, such as "windows-1252", which is what spreadsheets write, or "utf-16" '
    "(`ldptree init` tells which), or save it as UTF-8."
)
# The longer marks first: that of UTF-16 begins that of UTF-32.
_WIDE_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


@dataclass(frozen=True, kw_only=True)
class Content:
    """The content of a raw file, ready to be read.

    Attributes:
        kind: what it is, after whatever it was packed in.
        place: where it is opened: the file itself, or one without a name.
        written: the file without a name, which is there as long as this object.
        delimiter: of a text that was written anew.
        skip: lines above the header that are still to be left out.
    """

    kind: Literal["parquet", "text", "gzip"]
    place: Path
    written: NamelessFile | None = None
    delimiter: str | None = None
    skip: int = 0


def read_content(
    path: Path,
    *,
    skip: int = 0,
    sheets: Sequence[str] = (),
    has_header: bool = True,
    is_whole: bool = True,
    encoding: str | None = None,
) -> Content:
    """Return the table in a file, after unpacking it and writing a workbook as CSV, or a text as UTF-8.

    Args:
        path: the file.
        skip: lines of a text or rows of a sheet above the header.
        sheets: of a workbook.
        has_header: whether a header is expected.
        is_whole: whether every byte of a text is looked at, and not only the first ones.
        encoding: of a text that is not UTF-8.

    Raises:
        DataError: the file is missing, empty, in another format, or damaged.
    """
    kind, place = file_kind(path), path
    written = None
    if sheets and kind != "workbook":
        raise DataError(
            f"{path.name}: no workbook, so that it has no sheets. Leave dataset.sheet (or --sheet) out."
        )
    if kind == "workbook":
        written = write_sheets(path, path.name, sheets, skip=skip, has_header=has_header)
        return Content(kind="text", place=written.place, written=written, delimiter=",")
    if kind == "parquet":
        return Content(kind=kind, place=place)
    if kind == "zip":
        written = unpack_text(path)
        kind, place = "text", written.place
    if encoding and not is_utf_8(place):
        written = _decode(place, path.name, encoding)
        kind, place = "text", written.place
    check_text(place, path.name, blocks=None if is_whole else 1)
    if not skip:
        check_preamble(place, path.name)
    return Content(kind=kind, place=place, written=written, skip=skip)


def is_utf_8(path: Path) -> bool:
    """Return whether a file is a text that is read without an encoding."""
    try:
        check_text(path, path.name)
    except DataError:
        return False
    return True


def _decode(path: Path, name: str, encoding: str) -> NamelessFile:
    """Write a text as UTF-8. Raises DataError."""
    written, left = NamelessFile(), most_unpacked(path.stat().st_size)
    try:
        with open_text(path) as stream, io.TextIOWrapper(stream, encoding, "replace", newline="") as text:
            while block := text.read(BLOCK):
                if (left := left - len(block)) < 0:
                    raise DataError(f"{name}: unpacks to more than 200 times its size.")
                written.stream.write(block.removeprefix("\ufeff").encode())
    except UnicodeError:
        raise DataError(f"{name}: not {encoding} text. Set another dataset.encoding.") from None
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{name}: the gzip file is truncated or damaged. Fetch or write it again.") from None
    return written


def check_preamble(path: Path, name: str) -> None:
    """Raise DataError if a text is an ARFF by its first line that is no remark."""
    with suppress(OSError, EOFError, zlib.error), open_text(path) as stream:
        start = stream.read(LONGEST_PREAMBLE).removeprefix(codecs.BOM_UTF8)
        lines = (line.lstrip() for line in start.splitlines())
        if next((n for n in lines if n and not n.startswith(b"%")), b"")[:9].lower() == b"@relation":
            raise DataError(
                f"{name}: an ARFF file, which ldptree does not read. Convert it to CSV, for instance with scipy.io.arff; or "
                "give its number of lines up to @data as dataset.skip, and the names of its attributes as dataset.columns."
            )


def check_text(path: Path, name: str, *, blocks: int | None = None) -> None:
    """Check a whole text once, or its first `blocks`, for UTF-8, no NUL, content, a gzip's end. Raises DataError."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_blank = True
    fault = ""
    n_read, left = 0, most_unpacked(path.stat().st_size)
    try:
        with open_text(path) as stream:
            while block := stream.read(BLOCK):
                wide = next((name for mark, name in _WIDE_MARKS.items() if block.startswith(mark)), "")
                if not n_read and wide:
                    fault = f'{wide} text. Set dataset.encoding = "{wide.lower()}", or save it as UTF-8.'
                    break
                if b"\0" in block:
                    fault = (
                        "has a NUL byte in it, as UTF-16 has without a mark (set dataset.encoding, such as "
                        '"utf-16-le"), or a damaged text, or no text. What is read is CSV (also gzipped), Parquet and '
                        "workbooks: unpack or convert it."
                    )
                    break
                if (left := left - len(block)) < 0:
                    fault = "unpacks to more than 200 times its size. Unpack it by hand if you trust it."
                    break
                if not block.isascii() or decoder.getstate()[0]:
                    decoder.decode(block)
                is_blank = is_blank and not block.strip()
                n_read += 1
                if n_read == blocks:
                    return
            else:
                decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        fault = NOT_UTF_8
    except (EOFError, zlib.error, gzip.BadGzipFile):
        fault = "the gzip file is truncated or damaged. Fetch or write it again."
    except OSError as error:
        fault = f"cannot be read ({error.strerror})."
    if not fault and is_blank:
        fault = "the file is empty: nothing but blank lines."
    if fault:
        raise DataError(f"{name}: {fault}")
