"""Recognise the layout of a raw text, with its delimiter, its header, and the lines above it and below its rows.

Told from the first lines of a text, and then from all that are looked at. A layout that a run cannot read can be written anew
(`tidy_records`).
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from storage.raw.raw_files import DELIMITERS

RARE_DELIMITERS = ("^", "~", ":")
"""Tried where none of the usual ones splits most lines alike."""
LOOKED_AT = 60
"""Records from which the layout is told."""
MOST_TITLES = 8
ALIKE = 0.8
"""The share of records that must have as many fields as the most."""
_ENDS = re.compile(r"\r\n|\n|\r")
_TOTALS = re.compile(
    r"((grand|over-?all|sub) ?)?totals?|sum|average|mean|gesamt(summe)?|insgesamt|summe|somme|suma|totale|totaal",
    re.IGNORECASE,
)
"""What a line of totals begins with."""
_NUMBER = re.compile(r"[-+]?(?:[0-9]++(?:[.,][0-9]++)?|[.,][0-9]++)(?:[eE][-+]?[0-9]++)?")
_AMOUNT = re.compile(r"[$€£]? ?[-+]?([0-9]{1,3}([,.' ][0-9]{3})+|[0-9]+)([.,][0-9]+)? ?[%$€£]?")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The layout of a text.

    Attributes:
        delimiter: what stands between fields.
        default: the delimiter that splits the first line into most fields, which a run takes.
        n_fields: of a row.
        header: the fields of the header as they stand; () where there is none.
        n_first: of the first line.
        n_titles: records above the header, or above the first row, that are neither.
        n_above: lines above it, blank ones too.
        n_below: records below the last row, which hold totals or a remark.
        n_subheaders: records below the header that are no rows: units, or headers once more.
        lacks_name: whether the header has a field less than a row: the name of the first column, or of the last one.
        repeats_header: whether the header stands again between the rows.
        ends: how records end.
    """

    delimiter: str
    default: str
    n_fields: int
    n_first: int = 0
    header: tuple[str, ...] = ()
    n_titles: int = 0
    n_above: int = 0
    n_below: int = 0
    n_subheaders: int = 0
    lacks_name: bool = False
    repeats_header: bool = False
    ends: frozenset[str] = frozenset()

    @property
    def oddities(self) -> tuple[str, ...]:
        """Say what a run cannot read."""
        above = "1 line" if self.n_above == 1 else f"{self.n_above} lines"
        below = "1 line" if self.n_below == 1 else f"{self.n_below} lines"
        oddities = {
            f"{above} above its header": self.n_titles > 0,
            f"{below} of totals or remarks below its rows": self.n_below > 0,
            "a second header below the first": self.n_subheaders == 1,
            f"{self.n_subheaders} more headers below the first": self.n_subheaders > 1,
            "its header again between its rows": self.repeats_header,
            "a name too few in its header": self.lacks_name,
            "lines that end in different ways": len(self.ends) > 1,
            "a line break in its header": any(_ENDS.search(name) for name in self.header),
            "columns of the same name": len(set(map(str.lower, self.header))) < len(self.header),
        }
        return tuple(what for what, is_so in oddities.items() if is_so)


def recognise_layout(text: str, end: str, default: str, name: str) -> Layout:
    """The layout of a text, by its first lines and its end.

    `default`: the delimiter that splits the first line into most fields. `name`: of a column; a line that has it is a header.

    Raises csv.Error where the quotes do not follow the rules.
    """
    delimiter = _delimiter(text, default)
    records = _first(text, delimiter, LOOKED_AT)
    if not records:
        return Layout(delimiter=default, default=default, n_fields=0)
    n_fields, n_first = _count_fields(records), len(records[0])
    # Only the last characters are surely no part of a field in quotes.
    end = end if '"' not in text + end else end[len(end.rstrip("\r\n")) :]
    ends = frozenset(_ENDS.findall(end)).union(ending for _, ending in _records_and_ends(text, delimiter)) - {
        ""
    }
    typical = sorted(map(_filled, records))[len(records) // 2]
    place = next(
        (
            index
            for index, (record, below) in enumerate(
                zip(records[: MOST_TITLES + 1], [*records[1:], []], strict=False)
            )
            if (len(record) == n_fields or _lacks_name(record, n_fields))
            and (_filled(record) >= 0.6 * typical or name in map(str.strip, record))
            and not _is_comment(record, below)
        ),
        0,
    )
    lacks_name = _lacks_name(records[place], n_fields)
    names = tuple(cell.strip() for cell in records[place])
    is_named = name in names and not _NUMBER.fullmatch(name)
    if holds_values(names) and not is_named:
        n_titles = place if len(records[0]) == 1 or records[0][0].startswith("#") else 0
        return Layout(
            delimiter=delimiter,
            default=default,
            n_fields=n_fields,
            n_first=n_first,
            n_titles=n_titles,
            n_above=_line_of(text, delimiter, n_titles),
            ends=ends,
        )
    rows = records[place + 1 :]
    repeats_header = any(tuple(cell.strip() for cell in record) == names for record in rows)
    n_subheaders = _count_subheaders(rows)
    if n_subheaders and "" in names and len(rows[0]) == len(names):
        names = _join_names(names, rows[0])
    if lacks_name:
        is_first = any(record[-1].strip() for record in rows if len(record) == n_fields)
        names = ("row", *names) if is_first else (*names, "")
    return Layout(
        delimiter=delimiter,
        default=default,
        n_fields=n_fields,
        n_first=n_first,
        header=names,
        n_titles=place,
        n_above=_line_of(text, delimiter, place),
        lacks_name=lacks_name,
        ends=ends,
        n_subheaders=n_subheaders,
        repeats_header=repeats_header,
    )


def refine_layout(layout: Layout, parts: Sequence[str], *, has_end: bool) -> Layout:
    """The layout, with what any of the rows that are looked at may show: `parts` of the text; `has_end`: the last is its end."""
    ends, header = set(layout.ends), list(layout.header)
    repeats_header = layout.repeats_header
    rows: list[list[str]] = []
    try:
        for part in parts:
            for record, end in _records_and_ends(part, layout.delimiter):
                ends.add(end)
                if any(cell.strip() for cell in record):
                    rows.append(record)
    except csv.Error:
        return layout
    first_row = layout.n_titles + bool(header) + layout.n_subheaders
    rows = rows[first_row:]
    again = [row for row in rows if header and row[0].strip() == header[0]]
    return replace(
        layout,
        ends=frozenset(ends - {""}),
        repeats_header=repeats_header or any([cell.strip() for cell in row] == header for row in again),
        n_below=_count_below(rows, layout.n_fields) if has_end else 0,
    )


def _count_below(rows: Sequence[Sequence[str]], n_fields: int) -> int:
    """Records at the end that begin with a word for a total or hold one remark, where no other record does so."""
    is_none = [_is_total(row) or (n_fields > 2 and _is_remark(row)) for row in rows]
    n_below = sum(1 for _ in takewhile(bool, reversed(is_none)))
    return n_below if 0 < n_below == sum(is_none) else 0


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


def split_records(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """The records of lines, blank ones left out. Raises csv.Error."""
    reader = csv.reader(lines, delimiter=delimiter)
    return (
        record for record in reader if record and (record[0].strip() or any(cell.strip() for cell in record))
    )


def tidy_records(records: Iterable[list[str]], layout: Layout) -> Iterator[list[str]]:
    """The header, with names that tell columns apart, and the rows, without what stands above."""
    if layout.header:
        yield deduplicate_names(layout.header)
    first_row = layout.n_titles + bool(layout.header) + layout.n_subheaders
    yield from tidy_rows(islice(records, first_row, None), layout)


def tidy_rows(records: Iterable[list[str]], layout: Layout) -> Iterator[list[str]]:
    """Yield the rows without titles, repeated headers, totals at the end and superfluous empty fields.

    Rows with too few or too many fields stay as they are: they are faults, and ingest says so.
    """
    header, n_fields = list(layout.header), layout.n_fields
    again = [header[1:], header[:-1]] if layout.lacks_name else [header]
    starts = {cells[0] for cells in again if cells}
    totals: list[list[str]] = []
    for record in records:
        first = record[0].strip()
        if first in starts and [cell.strip() for cell in record] in again:
            continue
        # Most records are seen at a glance to be none of these.
        has_ends = len(record) > 1 and first and record[-1].strip()
        if n_fields > 2 and not has_ends and _is_single(record):
            continue
        if layout.n_below and not first[:1].isdigit() and _is_total(record):
            totals.append(record)
            continue
        if totals:
            yield from totals
            totals.clear()
        is_longer = len(record) > n_fields and not any(cell.strip() for cell in record[n_fields:])
        yield record[:n_fields] if is_longer else record


def _lacks_name(record: Sequence[str], n_fields: int) -> bool:
    """Return whether a record is a header as R writes it, which has one field less than a row, and only names."""
    return len(record) == n_fields - 1 > 1 and _filled(record) == len(record) and not holds_values(record)


def _is_comment(record: Sequence[str], below: Sequence[str]) -> bool:
    """Return whether a record is a remark and not a header after "# " as NumPy writes it, which stands above values."""
    return record[0].startswith("# ") and not holds_values(below)


def deduplicate_names(names: Sequence[str]) -> list[str]:
    """The names, with a number behind those that stand there before."""
    names = [_ENDS.sub(" ", name) for name in names]
    unique: list[str] = []
    taken = {name.lower() for name in names}
    numbers: dict[str, int] = {}
    for name in names:
        new, key = name, name.lower()
        while name and key in numbers and (new == name or new.lower() in taken):
            new = f"{name}_{numbers[key]}"
            numbers[key] += 1
        taken.add(new.lower())
        numbers.setdefault(new.lower(), 2)
        unique.append(new)
    return unique


def _delimiter(text: str, default: str) -> str:
    """The delimiter that splits most records alike; the default where it does, and splits the first record, too."""
    split = {mark: _first(text, mark, LOOKED_AT) for mark in (default, *DELIMITERS)}
    fits = {mark: _fit(records) for mark, records in split.items()}
    if fits[default] > 1 and len(split[default][0]) > 1 and not split[default][0][0].startswith("# "):
        return default
    best = max(fits, key=lambda mark: fits[mark])
    if fits[best] > 1:
        return best
    for mark in RARE_DELIMITERS:
        records = _first(text, mark, LOOKED_AT)
        if records and len(records[0]) == _fit(records) > 1:
            return mark
    return default


def is_split_at_blanks(text: str) -> bool:
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


def _records_and_ends(text: str, delimiter: str) -> Iterator[tuple[list[str], str]]:
    """The records of a text, blank ones too, and how the last line of each ends. Raises csv.Error."""
    last = ""

    def keep(line: str) -> str:
        nonlocal last
        last = line
        return line

    lines = map(keep, io.StringIO(text, newline=""))
    for record in csv.reader(lines, delimiter=delimiter):
        yield record, last[len(last.rstrip("\r\n")) :]


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


def _first(text: str, delimiter: str, n: int) -> list[list[str]]:
    """The first records."""
    records = []
    for record in split_records(io.StringIO(text, newline=""), delimiter):
        records.append(record)
        if len(records) == n:
            break
    return records


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


def _join_names(names: Sequence[str], below: Sequence[str]) -> tuple[str, ...]:
    """Return the names of a header whose cells are merged: beside a blank each has what stands below it, too."""
    joined, last = [], ""
    for index, name in enumerate(names):
        last = name or last
        is_merged = not name or (index + 1 < len(names) and not names[index + 1])
        joined.append(" ".join(filter(None, (last, below[index].strip()))) if is_merged else name)
    return tuple(joined)
