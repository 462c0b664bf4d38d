"""A result of a page of docs/measured, as data from which `docs/write_measured.py` writes it."""

from __future__ import annotations

import csv
import datetime
import io
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What was measured, today and on this machine.

    Attributes:
        title: of its section.
        command: that takes it.
        note: what a reader must know before the tables.
        finding: what they show, measured too.
        claims: what was claimed before, and whether it held.
        tables: the title of each, "" without one, and its rows, the first of heads.
    """

    title: str
    command: str
    note: str = ""
    finding: str = ""
    claims: Sequence[tuple[str, bool]] = ()
    tables: Sequence[tuple[str, Sequence[Sequence[str]]]] = field(default=())

    def __str__(self) -> str:
        """TOML."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield from ("[[results]]", f"title = {_quoted(self.title)}")
        yield f"date = {datetime.datetime.now(datetime.UTC).date().isoformat()}"
        yield from (f"cores = {_quoted(f'{os.cpu_count()} cores')}", f"command = {_quoted(self.command)}")
        yield from (f"{key} = {_quoted(text)}" for key in ("note", "finding") if (text := getattr(self, key)))
        for says, held in self.claims:
            yield from ("", "[[results.claims]]", f"says = {_quoted(says)}", f"held = {json.dumps(held)}")
        for title, rows in self.tables:
            table = io.StringIO()
            csv.writer(table, lineterminator="\n").writerows(rows)
            titled = [f"title = {_quoted(title)}"] if title else []
            yield from ("", "[[results.tables]]", *titled, f"csv = '''\n{table.getvalue()}'''")


def _quoted(text: str) -> str:
    return json.dumps(" ".join(text.split()), ensure_ascii=False)
