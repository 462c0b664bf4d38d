"""Text whose fields stand apart by any number of blanks or tabs, as R and NumPy write it, or whose columns have a fixed width: as
CSV, a line for a line.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

from storage.raw.formats.kinds import open_text
from storage.raw.formats.nameless_files import NamelessFile

_FIELD = re.compile(r'"((?:[^"]|"")*)"(?!\S)|(\S+)')
"""A field may stand in double quotes; one in it is doubled."""


def write_fields(path: Path, split: Callable[[str], list[str]]) -> NamelessFile:
    """A text, of which every byte was looked at, as CSV; `split`: the fields of a line."""
    written = NamelessFile()
    text = io.TextIOWrapper(written.stream, "utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    with open_text(path) as stream, io.TextIOWrapper(stream, "utf-8-sig") as lines:
        writer.writerows(map(split, lines))
    text.detach()
    return written


def split_at_blanks(line: str) -> list[str]:
    """The fields of a line."""
    if '"' not in line:
        return line.split()
    return [plain if plain else quoted.replace('""', '"') for quoted, plain in _FIELD.findall(line)]


def split_by_widths(widths: Sequence[int]) -> Callable[[str], list[str]]:
    """What cuts a line into columns of so many characters. Blanks at its end may be missing; what stands beyond is one more."""
    places = list(pairwise(accumulate(widths, initial=0)))
    end = sum(widths)

    def split(line: str) -> list[str]:
        if not line.strip():
            return []
        beyond = line[end:].strip()
        return [line[start:stop].strip() for start, stop in places] + ([beyond] if beyond else [])

    return split
