"""ARFF, the format of Weka, as CSV: a line for a line, those above its rows blank but the last, which becomes the header.

Of its attributes the names are taken; what their values are is told as of any text. Sparse rows and relational attributes are
refused.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from ldptree.errors import DataError
from storage.raw.formats.kinds import open_text
from storage.raw.formats.nameless_files import NamelessFile

_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s{]+))\s*(.*)""", re.IGNORECASE
)
_QUOTED = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^,\t]*))\s*(?:[,\t]|$)""")
_ESCAPED = re.compile(r"\\(.)")


def write_arff(path: Path, name: str) -> NamelessFile:
    """An ARFF, of which every byte was looked at, as CSV; `name`: what messages call it. Raises DataError."""
    written = NamelessFile()
    text = io.TextIOWrapper(written.stream, "utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    with open_text(path) as stream, io.TextIOWrapper(stream, "utf-8-sig") as lines:
        writer.writerow(_read_names(lines, text, name))
        for line in lines:
            row = line.strip()
            if row.startswith("{"):
                raise DataError(
                    f"{name}: a sparse ARFF cannot be read. Convert it to a dense one, or to CSV."
                )
            writer.writerow([] if row.startswith("%") or not row else _fields(row))
    text.detach()
    return written


def _read_names(lines: Iterator[str], text: io.TextIOWrapper, name: str) -> list[str]:
    """The names of the attributes; reads up to the line @data, and writes a blank line for each before it."""
    names: list[str] = []
    for number, line in enumerate(lines, start=1):
        words = line.strip()
        if words.lower().startswith("@data"):
            if not names:
                raise DataError(f"{name}: the ARFF names no attribute. Write it whole, or as CSV.")
            return names
        if words.lower().startswith("@attribute"):
            match = _ATTRIBUTE.fullmatch(words)
            if match is None or match[4].lower().startswith("relational"):
                raise DataError(
                    f"{name}, line {number}: an attribute that cannot be read. Convert the file to CSV."
                )
            names.append(_first(match[1], match[2], match[3]))
        text.write("\n")
    raise DataError(f"{name}: the ARFF has no @data: truncated, or a header alone.")


def _fields(row: str) -> list[str]:
    """The values of a row: divided by commas or tabs, in single or double quotes where they hold either."""
    if "'" not in row and '"' not in row:
        return [value.strip() for value in re.split(r"[,\t]", row)]
    found, place = [], 0
    while place <= len(row):
        match = _QUOTED.match(row, place)
        if match is None:
            return [row]  # no row: too few fields
        found.append(_first(match[1], match[2], match[3]))
        if match.end() == len(row) and not row.endswith((",", "\t")):
            break
        place = match.end()
    return found


def _first(single: str | None, double: str | None, plain: str | None) -> str:
    quoted = single if single is not None else double
    return (plain or "").strip() if quoted is None else _ESCAPED.sub(r"\1", quoted)
