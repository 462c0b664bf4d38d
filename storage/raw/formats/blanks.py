"""Text whose fields stand apart by any number of blanks or tabs, as R and NumPy write it and columns of a fixed width look: as
CSV, a line for a line.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from storage.raw.formats.kinds import open_text
from storage.raw.formats.nameless_files import NamelessFile

_FIELD = re.compile(r'"((?:[^"]|"")*)"(?!\S)|(\S+)')
"""A field may stand in double quotes; one in it is doubled."""


def write_blanks(path: Path) -> NamelessFile:
    """A text, of which every byte was looked at, as CSV."""
    written = NamelessFile()
    text = io.TextIOWrapper(written.stream, "utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    with open_text(path) as stream, io.TextIOWrapper(stream, "utf-8-sig") as lines:
        writer.writerows(map(split_at_blanks, lines))
    text.detach()
    return written


def split_at_blanks(line: str) -> list[str]:
    """The fields of a line."""
    if '"' not in line:
        return line.split()
    return [plain if plain else quoted.replace('""', '"') for quoted, plain in _FIELD.findall(line)]
