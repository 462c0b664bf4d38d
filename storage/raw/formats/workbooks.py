"""Write sheets of workbooks (xls, xlsx, xlsm and xlsb of Excel; OpenDocument's ods) as CSV, each cell as text.

A number has all its digits, a date is 2024-05-31 or 2024-05-31 09:00:00, a formula is its value, an error of one is missing.
A line break in a cell becomes a blank, so that lines count rows of the sheet. The sheets are read by a process of its own
(`sheets`), as a small file may ask for any amount of memory.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ldptree.errors import DataError
from storage.raw.formats import sheets as reader
from storage.raw.formats.nameless_files import NamelessFile
from storage.sql import list_columns

MOST_BYTES = 256 << 20
"""Largest size in bytes of a workbook, which is read whole."""
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
"""What Office calls the content of a workbook with a password."""
_LOCKED = "encrypted. Open it with its password and save it without one."
_DAMAGED = "no workbook, or truncated or damaged. Fetch or write it again, or unpack it."
_TOO_LARGE = (
    f"takes more than {reader.MOST_MEMORY >> 30} GiB of memory to read, perhaps for a single cell far from the others. "
    "Save the sheet as CSV."
)
_TOO_SLOW = f"takes more than {reader.MOST_SECONDS} seconds of a processor to read. Save the sheet as CSV."
_OUT_OF_MEMORY = b"memory allocation of"
"""What Rust says before it ends a process."""


def write_sheets(
    path: Path, name: str, sheets: Sequence[str], *, skip: int, has_header: bool
) -> NamelessFile:
    """Write sheets, or else the only one with cells, as one CSV. `name` is what messages call the workbook.

    The first `skip` rows of each sheet are left blank, and the header of all but the first. Raises DataError.
    """
    if (size := path.stat().st_size) > MOST_BYTES:
        raise DataError(f"{name}: {size >> 20:,} MiB are too much for a workbook. Save the sheet as CSV.")
    if _ENCRYPTED in path.read_bytes():
        raise DataError(f"{name}: {_LOCKED}")
    written = NamelessFile()
    place = written.stream.fileno()
    wanted = json.dumps({"sheets": list(sheets), "skip": skip, "has_header": has_header})
    with path.open("rb") as content:
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-P", reader.__file__, str(place), wanted],
            stdin=content,
            capture_output=True,
            pass_fds=(place,),
            check=False,
        )
    if done.returncode == -signal.SIGXCPU:
        raise DataError(f"{name}: {_TOO_SLOW}")
    if done.returncode:
        is_too_large = done.returncode < 0 or _OUT_OF_MEMORY in done.stderr or b"MemoryError" in done.stderr
        raise DataError(f"{name}: {_TOO_LARGE if is_too_large else _DAMAGED}")
    kind, named = json.loads(done.stdout)
    if kind:
        raise DataError(f"{name}: {_in_words(kind, named, sheets)}")
    return written


def _in_words(kind: str, named: Sequence[str], sheets: Sequence[str]) -> str:
    """The fault that a reader of sheets answered with."""
    match kind:
        case "unknown":
            unknown = [sheet for sheet in sheets if sheet not in named]
            return f"dataset.sheet: no sheet {list_columns(unknown)}. It has {list_columns(named)}."
        case "empty":
            return "the workbook is empty: none of its sheets has cells."
        case "many":
            return (
                f"{len(named):,} sheets ({list_columns(named)}). "
                "Say in dataset.sheet (or with init --sheet) which one is meant."
            )
        case "several":
            return (
                f"{len(named)} sheets have cells ({list_columns(named)}). "
                "Say in dataset.sheet (or with init --sheet) which one is meant."
            )
        case "headers":
            return (
                f'sheet "{named[0]}" has another header than "{named[1]}". Name sheets of the same columns.'
            )
    return {"locked": _LOCKED, "large": _TOO_LARGE}.get(kind, _DAMAGED)
