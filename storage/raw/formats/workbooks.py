"""Workbooks (Excel's xls, xlsx, xlsm and xlsb; OpenDocument's ods): sheets as CSV, a line a row, each cell as text.

A number has all its digits, a date is 2024-05-31 or 2024-05-31 09:00:00, a formula is its value, an error of one is missing.
A line break in a cell becomes a blank, so that lines count rows of the sheet.
"""

from __future__ import annotations

import csv
import datetime
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import Any

from ldptree.errors import DataError
from storage.raw.formats.archives import check_archive
from storage.raw.formats.nameless_files import NamelessFile
from storage.sql import list_columns

MOST_BYTES = 256 << 20
"""Of a workbook: it is read whole."""
_ZIP = b"PK"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
"""What Office calls the content of a workbook with a password."""
_LOCKED = "encrypted. Open it with its password and save it without one."
_DAMAGED = "truncated or damaged. Fetch or write it again."
_EXACT = 1e15
"""A whole number up to here is written without a point."""
_ONE_AT_A_TIME = Lock()
"""Of those who move a process's standard error."""


def write_sheets(
    path: Path, name: str, sheets: Sequence[str], *, skip: int, has_header: bool
) -> NamelessFile:
    """Sheets under each other as CSV; where none is named, the only one with cells. `name`: what messages call the workbook.

    The first `skip` rows of each sheet are left blank, and the header of all but the first. Raises DataError.
    """
    book = _open(path, name)
    cells = _chosen(book, sheets, name)
    written = NamelessFile()
    text = io.TextIOWrapper(written.stream, "utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    header: list[str] | None = None
    for sheet in cells:
        rows = _rows(sheet)
        text.write("\n" * sum(1 for _ in islice(rows, skip)))
        if has_header and (own := next(rows, None)) is not None:
            if header is not None and own != header:
                raise DataError(
                    f'{name}: sheet "{sheet.name}" has another header than "{cells[0].name}". Name sheets of the same columns.'
                )
            writer.writerow(own if header is None else [])
            header = own
        for row in rows:
            writer.writerow(row if any(row) else [])
    text.detach()
    return written


def _open(path: Path, name: str) -> Any:
    """The workbook. Raises DataError."""
    import python_calamine

    if (size := path.stat().st_size) > MOST_BYTES:
        raise DataError(f"{name}: {size >> 20:,} MiB are too much for a workbook. Save the sheet as CSV.")
    content = path.read_bytes()
    fault = _DAMAGED
    if content.startswith(_ZIP):
        check_archive(path, name)
    elif _ENCRYPTED in content:
        raise DataError(f"{name}: {_LOCKED}")
    try:
        with _panics_unseen():
            return python_calamine.load_workbook(io.BytesIO(content))
    except python_calamine.PasswordError:
        fault = _LOCKED
    except BaseException as error:
        _pass_on(error)
    raise DataError(f"{name}: {fault}")


def _chosen(book: Any, named: Sequence[str], name: str) -> list[Any]:
    """The sheets that are named, or the only one with cells. Raises DataError."""
    if unknown := [sheet for sheet in named if sheet not in book.sheet_names]:
        raise DataError(
            f"{name}: dataset.sheet: no sheet {list_columns(unknown)}. It has {list_columns(book.sheet_names)}."
        )
    found = []
    try:
        with _panics_unseen():
            found = [book.get_sheet_by_name(sheet) for sheet in named or book.sheet_names]
    except BaseException as error:
        _pass_on(error)
        raise DataError(f"{name}: {_DAMAGED}") from None
    filled = [sheet for sheet in found if sheet.height]
    if named or len(filled) == 1:
        return found if named else filled
    if not filled:
        raise DataError(f"{name}: the workbook is empty: none of its sheets has cells.")
    raise DataError(
        f"{name}: {len(filled)} sheets have cells ({list_columns([sheet.name for sheet in filled])}). "
        "Say in dataset.sheet (or with init --sheet) which one is meant."
    )


def _rows(sheet: Any) -> Iterator[list[str]]:
    return ([_text(cell) for cell in row] for row in sheet.iter_rows())


def _text(cell: Any) -> str:
    """A cell as text."""
    if isinstance(cell, str):
        return " ".join(cell.splitlines()) if "\n" in cell or "\r" in cell else cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < _EXACT else repr(cell)
    if isinstance(cell, datetime.timedelta):
        return str(cell.total_seconds())
    return str(cell)


@contextmanager
def _panics_unseen() -> Iterator[None]:
    """What is written to standard error here is shown behind it, unless it fails: a broken workbook makes its reader panic."""
    with _ONE_AT_A_TIME, TemporaryFile() as aside:
        sys.stderr.flush()
        shown = os.dup(2)
        os.dup2(aside.fileno(), 2)
        try:
            yield
            aside.seek(0)
            os.write(shown, aside.read())
        finally:
            os.dup2(shown, 2)
            os.close(shown)


def _pass_on(error: BaseException) -> None:
    """Raise what is no fault of a workbook; what a broken one makes of its reader is not even an Exception."""
    if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError)):
        raise error
