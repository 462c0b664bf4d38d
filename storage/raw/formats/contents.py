"""The table in a raw file, as something that is read as it stands: a CSV, also gzipped, or a Parquet."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ldptree.errors import DataError
from storage.raw.formats.archives import unpack_table
from storage.raw.formats.arff import write_arff
from storage.raw.formats.blanks import split_at_blanks, split_by_widths, write_fields
from storage.raw.formats.kinds import file_kind, open_text
from storage.raw.formats.nameless_files import NamelessFile
from storage.raw.formats.workbooks import write_sheets

BLANKS = " "
"""The delimiter of a text whose fields stand apart by any number of blanks."""
BLOCK = 4 << 20
TIDY_COPY = "or use the tidy copy that `ldptree init FILE --target COLUMN` writes"
"""What also helps where a text is not as a run reads it."""
NOT_UTF_8 = (
    "not UTF-8 text. Convert it, for example with: iconv -f cp1252 -t utf-8 (Windows-1252 is what spreadsheets write; "
    f"Latin-1 is a part of it), save it as UTF-8, {TIDY_COPY}."
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
    """What is read of a raw file.

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
    delimiter: str | None = None,
    skip: int = 0,
    sheets: Sequence[str] = (),
    widths: Sequence[int] = (),
    has_header: bool = True,
    is_whole: bool = True,
) -> Content:
    """The table in a file: unpacked, and written as CSV where it is in another format.

    Args:
        path: the file.
        delimiter: what divides a text; " " is any number of blanks.
        skip: lines of a text or rows of a sheet above the header.
        sheets: of a workbook.
        widths: characters of each column of a text, where they are fixed.
        has_header: whether a header is expected, which an ARFF always has.
        is_whole: whether every byte of a text is looked at, and not only the first ones.

    Raises:
        DataError: the file is missing, empty, in another format, or damaged.
    """
    name, kind, place = path.name, file_kind(path), path
    written = None
    if kind == "zip":
        inner, written = unpack_table(path, name)
        place, name = written.place, f"{name} ({Path(inner).name})"
        kind = file_kind(place, name)
        if kind == "zip":
            raise DataError(f"{name}: a zip in a zip. Unpack it.")
    if sheets and kind != "workbook":
        raise DataError(
            f"{name}: no workbook, so that it has no sheets. Leave dataset.sheet (or --sheet) out."
        )
    if kind == "workbook":
        written = write_sheets(place, name, sheets, skip=skip, has_header=has_header)
        return Content(kind="text", place=written.place, written=written, delimiter=",")
    if kind == "parquet":
        return Content(kind=kind, place=place, written=written)
    check_text(place, name, blocks=None if is_whole else 1)
    if kind == "arff":
        if skip or not has_header:
            raise DataError(f"{name}: an ARFF names its columns. Leave dataset.columns and dataset.skip out.")
        written = write_arff(place, name)
    elif widths:
        written = write_fields(place, split_by_widths(widths))
    elif delimiter == BLANKS:
        written = write_fields(place, split_at_blanks)
    else:
        return Content(kind=kind, place=place, written=written, skip=skip)
    return Content(kind="text", place=written.place, written=written, delimiter=",", skip=skip)


def check_text(path: Path, name: str, *, blocks: int | None = None) -> None:
    """Read a whole text once, or its first `blocks`: UTF-8, no NUL, something in it; a gzip to its end. Raises DataError."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_blank = True
    fault = ""
    n_read = 0
    try:
        with open_text(path) as stream:
            while block := stream.read(BLOCK):
                if not n_read and (wide := _wide_encoding(block)):
                    or_save = f"save it as UTF-8, {TIDY_COPY}" if wide == "UTF-16" else "or save it as UTF-8"
                    fault = f"{wide} text. Convert it, for example with: iconv -f {wide.lower()} -t utf-8, {or_save}."
                    break
                if b"\0" in block:
                    fault = "has a NUL byte in it: not a text file, or a damaged one. Take it out, or name another file."
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


def _wide_encoding(start: bytes) -> str:
    """UTF-16 or UTF-32, by its mark; or, of a text without one, UTF-16 by every second byte being NUL. Else ''."""
    for mark, name in _WIDE_MARKS.items():
        if start.startswith(mark):
            return name
    first = start[: 1 << 12]
    for offset, name in ((1, "UTF-16LE"), (0, "UTF-16BE")):
        if len(first) > 8 and not any(first[offset::2]) and all(first[1 - offset :: 2]):
            return name
    return ""
