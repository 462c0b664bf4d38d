"""Looking for values in everything that a run leaves: decoded tables, databases, pages, logs, plain bytes."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq


@dataclass(frozen=True)
class Canary:
    """A value that must not leave: as people, programs and processors write it."""

    name: str
    value: float | str

    @cached_property
    def spelled(self) -> re.Pattern[str]:
        """How it may be spelled; a number with or without its fraction, separators or an exponent.

        Digits inside of others are not the number: among the identifiers and times of day in a database any seven are
        found now and then.
        """
        if isinstance(self.value, str):
            return re.compile(re.escape(self.value.lower()))
        whole = int(self.value)
        mantissa, exponent = f"{self.value:e}".split("e")
        return re.compile(
            rf"(?<![0-9a-f.])(?:{whole}|{whole:,})(?![0-9a-f])"
            rf"|{re.escape(mantissa[:7])}[0-9]*e[+]?0*{int(exponent)}(?![0-9])"
        )

    @property
    def binary(self) -> tuple[bytes, ...]:
        """A number as it stands in memory."""
        if isinstance(self.value, str):
            return (self.value.encode("utf-16-le"),)
        return (struct.pack("<d", self.value), struct.pack("<f", self.value))

    def is_in(self, content: Any) -> bool:
        """Whether text, bytes or a cell of a table holds it."""
        if isinstance(content, bytes):
            return any(b in content for b in self.binary) or self.is_in(content.decode("utf-8", "replace"))
        if isinstance(content, float | int) and isinstance(self.value, float):
            return abs(content - self.value) < 1.0
        return self.spelled.search(str(content).lower()) is not None


def found(canaries: tuple[Canary, ...], *places: Path) -> dict[str, set[str]]:
    """Canary to the names of the files, in these folders and below, that hold it."""
    holding: dict[str, set[str]] = {canary.name: set() for canary in canaries}
    for place in places:
        for path in [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file()):
            cells = list(_contents(path))
            for canary in canaries:
                if canary.is_in(path.name) or any(canary.is_in(cell) for cell in cells):
                    holding[canary.name].add(path.name)
    return holding


def _contents(path: Path) -> Iterator[Any]:
    """The bytes of a file, and every value of one that holds tables."""
    content = path.read_bytes()
    yield content
    if content[:4] == b"PAR1":
        table = pq.read_table(path)
        yield str(table.schema)
        for column in table.columns:
            yield from column.unique().to_pylist()
    elif content[:16] == b"SQLite format 3\0":
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            names = [
                row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            ]
            for name in names:
                for row in database.execute(f'SELECT * FROM "{name}"'):
                    yield from row
    elif content[8:12] == b"DUCK":
        with duckdb.connect(str(path), read_only=True) as warehouse:
            for schema, name in warehouse.execute(
                "SELECT schema_name, table_name FROM duckdb_tables()"
            ).fetchall():
                for row in warehouse.execute(f'FROM "{schema}"."{name}"').fetchall():
                    yield from row
