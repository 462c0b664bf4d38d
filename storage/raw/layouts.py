"""Tell how a raw text is laid out, in the keys of a configuration by which a run reads it: its encoding, the delimiter, the lines
above its first row or its header, and names of columns where a single line has none that can be read.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, takewhile
from pathlib import Path

from ldptree.errors import DataError
from storage.raw.formats.contents import BLOCK, is_utf_8, open_text
from storage.raw.raw_files import DELIMITERS

MOST_READ, LAST_BYTES = 256 << 10, 4 << 10
"""Bytes of the beginning and of the end of a text from which the layout is told."""
LOOKED_AT = 60
"""Records from which the layout is told."""
MOST_TITLES = 8
ALIKE = 0.8
"""The share of records that must have as many fields as the most."""
_WIDE = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_ENDS = re.compile(r"\r\n|\n|\r")
_TOTALS = re.compile(
    r"((grand|over-?all|sub) ?)?totals?|sum|average|mean|gesamt(summe)?|insgesamt|summe|somme|suma",
    re.IGNORECASE,
)
"""What a line of totals begins with."""
_NUMBER = re.compile(r"[-+]?(?:[0-9]++(?:[.,][0-9]++)?|[.,][0-9]++)(?:[eE][-+]?[0-9]++)?")
_AMOUNT = re.compile(r"[$€£]? ?[-+]?([0-9]{1,3}([,.' ][0-9]{3})+|[0-9]+)([.,][0-9]+)? ?[%$€£]?")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The layout of a text.

    Attributes:
        encoding: of a text that is not UTF-8.
        delimiter: what stands between fields.
        skip: lines above the header, or above the first row where `columns` are named.
        columns: names, where the file has no line with a name for each column.
        has_header: whether there are names in the file.
    """

    encoding: str | None = None
    delimiter: str
    skip: int = 0
    columns: tuple[str, ...] = ()
    has_header: bool = True


def read_layout(path: Path, name: str, target: str) -> Layout | None:
    """Return the layout of a text, which is plain or gzipped and called `name` in messages; None of what is no text.

    A line that has the name of the `target` is a header. Raises DataError where no keys make a table of it; OSError, EOFError.
    """
    start, end = _read_ends(path)
    wide = next((name for mark, name in _WIDE.items() if start.startswith(mark)), None)
    encoding = "utf-16" if wide else None if is_utf_8(path) else "windows-1252"
    if b"\0" in start and not wide:
        return None
    codec = wide or encoding or "utf-8"
    text = start.decode(codec, errors="replace" if codec == encoding else "ignore").removeprefix("\ufeff")
    tail = end.decode(codec, errors="ignore").removeprefix("\n")  # of a \r\n
    text = text[: text.rfind("\n") + 1] or text if len(start) == MOST_READ else text
    try:
        delimiter = _delimiter(text)
        records = [*islice(_records(text, delimiter), LOOKED_AT)]
        if not records:
            return None
        n_fields = _count_fields(records)
        words = records[0][0].split()
        if n_fields == 1 and (_is_split_at_blanks(text) or (len(words) > 1 and target in words)):
            raise DataError(
                f"{name}: its fields stand apart by blanks. Write it with commas; or give it one column (dataset.columns = "
                '"line") and take the fields out of it in dataset.derive.'
            )
        rest = tail[tail.find("\n") + 1 :] if len(start) == MOST_READ else text
        _check_totals(name, [*_records(rest, delimiter)], n_fields)
        skip, columns, has_header = _find_names(name, text, records, n_fields, delimiter, target)
    except csv.Error:
        return None
    return Layout(
        encoding=encoding,
        delimiter=delimiter,
        skip=skip,
        columns=columns,
        has_header=has_header,
    )


def _read_ends(path: Path) -> tuple[bytes, bytes]:
    """Return the first and the last bytes of a text."""
    start, end = b"", b""
    with open_text(path) as stream:
        while block := stream.read(BLOCK):
            start = start or block[:MOST_READ]
            end = (end + block)[-LAST_BYTES:]
    return start, end


def _check_totals(name: str, rows: Sequence[list[str]], n_fields: int) -> None:
    """Raises DataError where the last records are none of a table."""
    is_none = [_is_total(row) or (n_fields > 2 and _is_remark(row)) for row in rows[MOST_TITLES:]]
    n_below = sum(1 for _ in takewhile(bool, reversed(is_none)))
    if 0 < n_below == sum(is_none):
        lines, them = ("1 line", "it") if n_below == 1 else (f"{n_below} lines", "them")
        raise DataError(f"{name}: {lines} of totals or remarks below its rows. Delete {them}.")


def _find_names(
    name: str, text: str, records: Sequence[list[str]], n_fields: int, delimiter: str, target: str
) -> tuple[int, tuple[str, ...], bool]:
    """Return the lines to skip, names to give, and whether there is a header."""
    typical = sorted(map(_filled, records))[len(records) // 2]
    place = next(
        (
            index
            for index, record in enumerate(records[: MOST_TITLES + 1])
            if (len(record) == n_fields or _lacks_name(record, n_fields))
            and (_filled(record) >= 0.6 * typical or target in map(str.strip, record))
            and not (
                record[0].startswith("# ") and not holds_values(records[min(index + 1, len(records) - 1)])
            )
        ),
        0,
    )
    names, rows = [cell.strip() for cell in records[place]], records[place + 1 :]
    is_title = len(records[0]) == 1 or records[0][0].startswith("#")
    if len(records[0]) != n_fields and not (is_title or _lacks_name(records[0], n_fields) or target in names):
        raise DataError(
            f"{name}: its first line has {len(records[0])} fields, and most of its lines have {n_fields}. Is a name missing, or "
            "does a value hold what stands between fields, without quotes around it?"
        )
    if holds_values(names) and (target not in names or _NUMBER.fullmatch(target)):
        place = place if is_title else 0
        named = tuple(f"column_{index + 1}" for index in range(n_fields))
        return _line_of(text, delimiter, place), named, False
    n_below = _count_subheaders(rows)
    if n_below and "" in names and len(rows[0]) == len(names):
        names = _join_names(names, rows[0])
    above = [cell.strip() for cell in records[place - 1]] if place else []
    is_grouped = len(above) == len(names) and sum(a > "" == b for a, b in pairwise(above)) > 1
    if is_grouped:
        joined = _join_names(above, names)
        names = [name if name == target else new for name, new in zip(names, joined, strict=True)]
    if lacks_name := _lacks_name(names, n_fields):
        is_first = any(record[-1].strip() for record in rows if len(record) == n_fields)
        names = ["row", *names] if is_first else [*names, ""]
    is_broken = any(_ENDS.search(cell) for cell in names)
    if n_below or lacks_name or is_broken or is_grouped or len({*map(str.lower, names)}) < len(names):
        given = tuple(cell or f"unnamed_{index + 1}" for index, cell in enumerate(deduplicate_names(names)))
        return _line_of(text, delimiter, place + 1 + n_below), given, True
    return _line_of(text, delimiter, place) if place else 0, (), True


def _is_total(record: Sequence[str]) -> bool:
    first = next((cell for cell in record if cell.strip()), "")
    return _TOTALS.fullmatch(first.strip().rstrip(" :")) is not None


def _is_remark(record: Sequence[str]) -> bool:
    """Return whether only the first field is filled, and it is no number."""
    return bool(record[0].strip()) and _is_single(record) and not _NUMBER.fullmatch(record[0].strip())


def _is_single(record: Sequence[str]) -> bool:
    """Return whether one field is filled; looks no further than at the second that is."""
    filled = (cell for cell in record if cell.strip())
    return next(filled, None) is not None and next(filled, None) is None


def holds_values(fields: Sequence[str]) -> bool:
    """Return whether a first line holds values, as a third of its fields are amounts or numbers in no sequence."""
    cells = [field.strip() for field in fields]
    numbers = [cell for cell in cells if _NUMBER.fullmatch(cell) or _AMOUNT.fullmatch(cell)]
    counted = [[str(first + index) for index in range(len(numbers))] for first in (0, 1)]
    return len(numbers) >= max(len(fields) / 3, 1) and not (len(numbers) > 1 and numbers in counted)


def _lacks_name(record: Sequence[str], n_fields: int) -> bool:
    """Return whether a record is a header as R writes it, which has one field less than a row, and only names."""
    return len(record) == n_fields - 1 > 1 and _filled(record) == len(record) and not holds_values(record)


def deduplicate_names(names: Sequence[str]) -> list[str]:
    """The names, with the number of its column behind one that stands there before."""
    given, taken = [_ENDS.sub(" ", name) for name in names], set[str]()
    for index, name in enumerate(given):
        new = name
        while name and new.lower() in taken:
            new = f"{new}_{index + 1}"
        taken.add(new.lower())
        given[index] = new
    return given


def _delimiter(text: str) -> str:
    """The delimiter that splits most records alike, and the first of them into most fields."""

    def fit(mark: str) -> tuple[int, int, int]:
        records = [*islice(_records(text, mark), LOOKED_AT)]
        n_fields, n_names = _fit(records), len(records[0]) if records else 0
        is_remark = n_fields < 2 or records[0][0].startswith("# ")
        return 1 if is_remark else n_names, n_fields if n_fields > 1 else 0, n_names

    return max(DELIMITERS, key=fit)


def _is_split_at_blanks(text: str) -> bool:
    """Return whether the fields of a text are separated by any number of blanks, as most of them are numbers."""
    records = [line.split() for line in islice(filter(str.strip, io.StringIO(text)), LOOKED_AT)]
    numbers = sum(_NUMBER.fullmatch(cell) is not None for record in records for cell in record)
    return _fit(records) > 1 and numbers > sum(map(len, records)) / 2


def _fit(records: Sequence[Sequence[str]]) -> int:
    """Fields of a record, where most records have as many; else 0."""
    if not records:
        return 0
    width = _commonest_length(records)
    return width if sum(len(record) == width for record in records) >= ALIKE * len(records) else 0


def _records(text: str, delimiter: str) -> Iterator[list[str]]:
    """The records that are not blank. Raises csv.Error."""
    records = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    return (record for record in records if any(map(str.strip, record)))


def _line_of(text: str, delimiter: str, place: int) -> int:
    """Count the lines above the record of this number, from 0, that is not blank."""
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=delimiter)
    above, number = 0, 0
    for record in reader:
        if any(cell.strip() for cell in record):
            if number == place:
                break
            number += 1
        above = reader.line_num
    return above


def _count_fields(records: Sequence[Sequence[str]]) -> int:
    """Count the fields of a row, as in most records, without empty ones at their end that the header does not have."""
    most = _commonest_length(records)
    width = max(
        (index + 1 for record in records for index, cell in enumerate(record) if cell.strip()), default=0
    )
    return width if 1 < width < most and any(len(record) == width for record in records) else most


def _commonest_length(records: Sequence[Sequence[str]]) -> int:
    return Counter(map(len, records)).most_common(1)[0][0]


def _filled(record: Sequence[str]) -> int:
    return sum(bool(cell.strip()) for cell in record)


def _count_subheaders(rows: Sequence[Sequence[str]]) -> int:
    """Count the records below the header that are headers too, such as units, or what a survey writes below its questions."""
    return sum(
        1
        for _ in takewhile(
            lambda index: _is_subheader(rows[index], rows[index + 1 :]), range(min(2, len(rows)))
        )
    )


def _is_subheader(record: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a record holds texts that none of the rows has, though columns of these hold numbers or repeat."""
    n_telling = 0
    for index, cell in enumerate(map(str.strip, record)):
        below = [row[index].strip() for row in rows if index < len(row) and row[index].strip()]
        if {*below} == {cell}:
            continue  # a box to tick, which is marked by its own name
        if cell and (_NUMBER.fullmatch(cell) or cell in below):
            return False
        n_numbers = sum(_NUMBER.fullmatch(value) is not None for value in below)
        n_telling += (
            bool(cell)
            and len(below) > 1
            and (n_numbers >= 0.9 * len(below) or len({*below}) <= len(below) / 2)
        )
    return n_telling > 1


def _join_names(names: Sequence[str], below: Sequence[str]) -> list[str]:
    """Return the names of a header whose cells are merged: beside a blank each has what stands below it, too."""
    joined, last = [], ""
    for index, name in enumerate(names):
        last = name or last
        is_merged = not name or (index + 1 < len(names) and not names[index + 1])
        joined.append(" ".join(filter(None, (last, below[index].strip()))) if is_merged else name)
    return joined
