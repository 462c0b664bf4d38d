"""Read workbooks in a separate program, so that a file that takes too much memory or time ends this process alone.

It reads a workbook from standard input, writes chosen sheets as CSV to a file that is open already, and answers in JSON on
standard output with the kind of fault, and the names of sheets that a message lists. Nothing of the house is imported here, so
that it starts at once.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import resource
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

MOST_MEMORY = 2 << 30
"""Memory in bytes, as a reader fills every cell up to the farthest used one, which nobody knows before."""
MOST_SECONDS = 60
"""Of a processor."""
MOST_SHEETS = 20
"""That are looked at for the only one with cells."""
EXACT = 1e15
"""A whole number up to here is written without a point."""
Answer = tuple[str, list[str]]
"""The kind of fault, "" where there is none, and names of sheets."""


def main(place: str, wanted: str) -> None:
    """Write sheets to the open file `place`. `wanted` is JSON with `sheets`, `skip`, and `has_header`."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # its memory holds private rows
    for kind, most in ((resource.RLIMIT_AS, MOST_MEMORY), (resource.RLIMIT_CPU, MOST_SECONDS)):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    with open(int(place), "w", encoding="utf-8", newline="") as text:  # noqa: PTH123 - a number
        print(json.dumps(_write_sheets(text, **json.loads(wanted))))


def _write_sheets(text: Any, *, sheets: Sequence[str], skip: int, has_header: bool) -> Answer:
    """Sheets under each other; where none is named, the only one with cells."""
    import python_calamine

    try:
        book = python_calamine.load_workbook(io.BytesIO(sys.stdin.buffer.read()))
        if any(name not in book.sheet_names for name in sheets):
            return "unknown", book.sheet_names
        if not sheets and len(book.sheet_names) > MOST_SHEETS:
            return "many", book.sheet_names
        read = [book.get_sheet_by_name(name) for name in sheets or book.sheet_names]
    except python_calamine.PasswordError:
        return "locked", []
    except MemoryError:
        return "large", []
    except BaseException:
        return "damaged", []
    chosen = read if sheets else [sheet for sheet in read if sheet.height]
    if not chosen or (not sheets and len(chosen) > 1):
        return "several" if chosen else "empty", [sheet.name for sheet in chosen]
    writer = csv.writer(text, lineterminator="\n")
    header: list[str] | None = None
    for sheet in chosen:
        rows = _rows(sheet)
        text.write("\n" * sum(1 for _ in islice(rows, skip)))
        if has_header and (own := next(rows, None)) is not None:
            if header is not None and own != header:
                return "headers", [sheet.name, chosen[0].name]
            writer.writerow(own if header is None else [])
            header = own
        for row in rows:
            writer.writerow(row if any(row) else [])
    return "", []


def _rows(sheet: Any) -> Iterator[list[str]]:
    return ([_text(cell) for cell in row] for row in sheet.iter_rows())


def _text(cell: Any) -> str:
    """A cell as text."""
    if isinstance(cell, str):
        return " ".join(cell.splitlines()) if "\n" in cell or "\r" in cell else cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < EXACT else repr(cell)
    if isinstance(cell, datetime.timedelta):
        return str(cell.total_seconds())
    return str(cell)


if __name__ == "__main__":
    main(*sys.argv[1:])
