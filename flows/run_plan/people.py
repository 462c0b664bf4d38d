"""The people and rows of a planned run, exact from steps that stand, else about right from the files.

No row is read: files are counted by their footers, or by the lengths of their first lines.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from gzip import GzipFile
from pathlib import Path
from typing import TypeVar

from flows.executors import NotComputed
from flows.pipeline import Pipeline
from tasks.data import source

Known = TypeVar("Known")

PACKED = (".zip", ".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
SAMPLE = 1 << 20
"""Bytes whose lines say how long a file's lines are."""


@dataclass(frozen=True)
class Count:
    """A number of rows, which is exact, approximate or a bound."""

    number: int
    prefix: str = ""

    def __str__(self) -> str:
        """Format the number as it is printed, such as "about 12,000"."""
        return f"{self.prefix} {self.number:,}".strip()

    def times(self, share: float) -> Count:
        """A share of it, which is never exact."""
        return Count(round(self.number * share), self.prefix or "about")


@dataclass(frozen=True, kw_only=True)
class People:
    """The rows of a run, with None for a number that is not known.

    Attributes:
        rows: of the raw files.
        public: that everybody may see.
        private: the others.
        asked: holders who report, over all questions.
        test: holders held back for the scores.
    """

    rows: Count | None
    public: Count | None
    private: Count | None
    asked: Count | None
    test: Count | None

    def read_by(self, step: str) -> Count | None:
        """Return the number of rows that a step reads."""
        by_step = {
            "source": self.rows, "types": self.public, "read": self.rows, "ingest": self.rows, "count": self.private,
            "validate": self.rows, "split": self.private, "cut": self.private, "scale": self.public,
            "partition": self.public, "show": self.asked, "perturb": self.asked, "add": self.asked,
            "receive": self.asked, "collect": self.asked,
            "aggregate": self.asked, "evaluate": self.test,
        }  # fmt: skip
        return by_step.get(step)


def count_people(run: Pipeline) -> People:
    """Count everybody from the steps that stand, else from the files."""
    public = _known(lambda: Count(run.ingested["public"].rows))
    private = _known(lambda: Count(run.ingested["private"].rows))
    rows = _count_raw(run)
    if public and private:
        rows = rows or Count(public.number + private.number)
    elif rows:
        public = _count_public(run, rows)
        private = _private_of(run, rows, public)
    share = run.config.dataset.test_fraction if run.config.evaluate else 0.0
    return People(
        rows=rows,
        public=public,
        private=private,
        asked=_known(lambda: Count(run.respondents.n_asked)) or (private and private.times(1.0 - share)),
        test=None
        if run.config.is_collection
        else _known(lambda: Count(run.held.facts["n_test"])) or (private and private.times(share)),
    )


def _known(look: Callable[[], Known]) -> Known | None:
    with suppress(NotComputed):
        return look()
    return None


def _count_raw(run: Pipeline) -> Count | None:
    data = run.config.dataset
    if not data.path:
        return None if data.rows is None else Count(data.rows)
    counts = [count_rows(path) for path in source.locate(data.path)]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return None
    return Count(
        sum(count.number for count in known), "about" if any(count.prefix for count in known) else ""
    )


def _private_of(run: Pipeline, rows: Count, public: Count | None) -> Count:
    """Count the rows that the public rule leaves private, which are all if public ones have their own file."""
    if run.config.dataset.rule.path:
        return rows.times(1.0)
    if public is None:
        return replace(rows, prefix="at most")
    return replace(rows, number=rows.number - public.number, prefix="about")


def _count_public(run: Pipeline, rows: Count) -> Count | None:
    """Count the public rows by the rule; None where only a predicate knows."""
    rule = run.config.dataset.rule
    if rule.fraction is not None:
        return rows.times(rule.fraction)
    if rule.count is not None:
        return Count(min(rule.count, rows.number))
    return count_rows(source.locate([rule.path])[0]) if rule.path else None


def count_rows(path: Path) -> Count | None:
    """Count the rows of Parquet, and about those of a text; None where a file must be unpacked, or is not what its name says."""
    if path.suffix.lower() in PACKED:
        return None
    if path.suffix == ".parquet":
        from pyarrow.parquet import read_metadata

        return Count(read_metadata(path).num_rows)
    size = path.stat().st_size
    with path.open("rb") as file:
        try:
            start = (GzipFile(fileobj=file) if path.suffix == ".gz" else file).read(SAMPLE)
        except (OSError, EOFError, zlib.error):
            return None
        read = file.tell()
    lines, header = start.count(b"\n") or 1, start.find(b"\n") + 1
    per_line = max(len(start) - header, 1) / max(lines - 1, 1)
    return Count(max(1, round((size * len(start) / max(read, 1) - header) / per_line)), "about")
