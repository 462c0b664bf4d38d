"""How large the steps of a planned run are, and how long they take: what is known exactly, and what is only expected.

No row is read: files are counted by their footers, or by the lengths of their first lines.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from gzip import GzipFile
from pathlib import Path
from typing import Any, TypeVar

from flows.conversation import Round
from flows.execute import NotComputed
from flows.pipeline import Pipeline
from flows.run_plan.look import Look
from ldptree.errors import ArtifactCorrupt
from ldptree.families.correction_plan import MAX_CELLS
from ldptree.inference.depth import MAX_DEPTH
from schemas.config import RunConfig
from schemas.manifest import Record
from storage.formats import read_stamped
from storage.objects.object_store import ObjectStore
from tasks.data import source

Known = TypeVar("Known")

PACKED = (".zip", ".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
SAMPLE = 1 << 20
"""Bytes whose lines say how long a file's lines are."""
MOST_RUNS = 20
"""Earlier runs that are asked how long a step took, the newest first."""


@dataclass(frozen=True)
class Count:
    """A number of rows, bytes or cells: exact, or about right, or a bound."""

    number: int
    prefix: str = ""

    def __str__(self) -> str:
        """As it is printed: "about 12,000"."""
        return f"{self.prefix} {self.number:,}".strip()

    def times(self, share: float) -> Count:
        """A share of it, which is never exact."""
        return Count(round(self.number * share), self.prefix or "about")


@dataclass(frozen=True)
class Size:
    """What is expected of one step; None: not known.

    rows     that it reads.
    cells    of the partition.
    bytes    of raw files, or of everybody's reports.
    seconds  that it takes; None where it stands.
    """

    rows: Count | None = None
    cells: Count | None = None
    bytes: Count | None = None
    seconds: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: the number, or null. What is not exact is named."""
        counts = {"rows": self.rows, "cells": self.cells, "bytes": self.bytes}
        return {
            **{name: None if one is None else one.number for name, one in counts.items()},
            "seconds": None if self.seconds is None else float(f"{self.seconds:.2g}"),
            "not_exact": [name for name, one in counts.items() if one is not None and one.prefix],
        }


@dataclass(frozen=True)
class Usual:
    """Seconds of a step where no earlier run says: on two cores, by the trips of the quickstart and of configs/taxi.toml."""

    fixed: float
    per_million: float = 0.0
    """Rows that it reads."""


USUAL = {
    "source": Usual(0.2, 3.7),
    "ingest": Usual(0.3, 3.0),
    "validate": Usual(1.0, 0.5),
    "split": Usual(0.2, 0.3),
    "scale": Usual(0.1, 5.0),
    "show": Usual(0.2, 2.0),
    "partition": Usual(1.0, 10.0),
    "perturb": Usual(2.0, 5.0),
    "aggregate": Usual(0.3, 1.0),
    "prune": Usual(0.5),
    "evaluate": Usual(1.0, 10.0),
    "report": Usual(1.5),
}
USUAL_OF_A_CORRECTION = {"partition": Usual(10.0, 300.0), "evaluate": Usual(1.0, 100.0)}
"""Which fits a public model, and asks it for every held-back row."""
FEWEST_PUBLIC = 0.1
"""The share of rows that counts as public where only a predicate knows."""


@dataclass(frozen=True, kw_only=True)
class People:
    """Rows of a run, as far as they are known."""

    rows: Count | None
    public: Count | None
    private: Count | None
    asked: Count | None
    test: Count | None

    def read_by(self, step: str) -> Count | None:
        """The rows that a step reads."""
        by_step = {
            "source": self.rows, "ingest": self.rows, "validate": self.rows, "split": self.private,
            "scale": self.public, "partition": self.public, "show": self.asked, "perturb": self.asked,
            "aggregate": self.asked, "evaluate": self.test,
        }  # fmt: skip
        return by_step.get(step)


def expect_sizes(look: Look, run: Pipeline) -> list[Size]:
    """Of every line of the plan."""
    people = count_people(run)
    earlier = [] if look.store is None else _earlier_runs(look.store.objects)
    rounds = run.conversation.rounds
    seen: Counter[str] = Counter()
    sizes = []
    for line in look.lines:
        name = line["name"]
        number = seen[name]
        seen[name] += 1
        asked = (
            rounds[number] if name in ("partition", "perturb", "aggregate") and number < len(rounds) else None
        )
        size = _size_of(name, people, run, asked)
        if line["state"] in ("compute", "depends"):
            size = replace(size, seconds=_seconds(name, people, run.config, earlier))
        sizes.append(size)
    return sizes


def count_people(run: Pipeline) -> People:
    """Everybody, from the steps that stand, else from the files."""
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
        asked=_known(lambda: Count(run.held.facts["n_private"])) or (private and private.times(1.0 - share)),
        test=_known(lambda: Count(run.held.facts["n_test"])) or (private and private.times(share)),
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
    known = [one for one in counts if one is not None]
    if len(known) < len(counts):
        return None
    return Count(sum(one.number for one in known), "about" if any(one.prefix for one in known) else "")


def _private_of(run: Pipeline, rows: Count, public: Count | None) -> Count:
    """What the public rule leaves of the rows of `dataset.path`: all where the public ones are in a file of their own."""
    if run.config.dataset.rule.path:
        return rows.times(1.0)
    if public is None:
        return replace(rows, prefix="at most")
    return replace(rows, number=rows.number - public.number, prefix="about")


def _count_public(run: Pipeline, rows: Count) -> Count | None:
    """By the public rule; None where only a predicate knows."""
    rule = run.config.dataset.rule
    if rule.fraction is not None:
        return rows.times(rule.fraction)
    if rule.count is not None:
        return Count(min(rule.count, rows.number))
    return count_rows(source.locate([rule.path])[0]) if rule.path else None


def count_rows(path: Path) -> Count | None:
    """Rows of a Parquet file, about those of a text; None of what must be unpacked, or is not what its name says."""
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


def _size_of(name: str, people: People, run: Pipeline, asked: Round | None) -> Size:
    rows = people.read_by(name)
    if name in ("source", "ingest"):
        data = run.config.dataset
        n_bytes = sum(path.stat().st_size for path in source.locate(data.path)) if data.path else 0
        return Size(rows, bytes=Count(n_bytes) if n_bytes else None)
    if asked is None:
        return Size(rows)
    facts: Mapping[str, Any] = asked.asked.facts if isinstance(asked.asked, Record) else {}
    found = _known(lambda: [*asked.reports]) or []
    if name != "partition" and found:
        rows = Count(sum(record.facts["n_reports"] for record in found))
    elif name != "partition" and rows and facts.get("asks_a_part"):
        rows = replace(rows, prefix="at most")
    cells = (
        Count(facts["cells"])
        if "cells" in facts
        else _most_cells(run.config, people.read_by("partition") or _guess_public(people))
    )
    a_report = facts.get("report_bytes")
    return Size(
        rows,
        cells=cells if name == "partition" else None,
        bytes=Count(a_report * rows.number, rows.prefix) if a_report and rows and name == "perturb" else None,
    )


def _guess_public(people: People) -> Count:
    """Where only a predicate knows."""
    return (people.rows or Count(0)).times(FEWEST_PUBLIC)


def _most_cells(config: RunConfig, public: Count) -> Count | None:
    """Of one tree, before it is grown; None where several questions are asked."""
    if config.model.in_rounds:
        return None
    depth = config.model.settings.get("depth")
    learner, _ = config.model.choose("class", public.number, config.privacy.mechanism)
    most = MAX_CELLS if learner.is_correction else 2**MAX_DEPTH
    return Count(min(2**depth, most) if isinstance(depth, int) else most, "at most")


def _seconds(name: str, people: People, config: RunConfig, earlier: list[Mapping[str, Any]]) -> float:
    """By the newest run that computed the step, else by what is usual; in proportion to the rows."""
    rows = people.read_by(name) or _guess_public(people)
    usual = usual_seconds(name, rows.number, config)
    for run in earlier:
        took = sum(
            step["seconds"] for step in run["steps"] if step["name"] == name and step["state"] == "computed"
        )
        if took and (run["estimator"] == config.model.estimator or name not in USUAL_OF_A_CORRECTION):
            then = People(
                rows=Count(run["n_private"] + run["n_public"] + (run["n_test"] or 0)),
                public=Count(run["n_public"]),
                private=Count(run["n_private"] + (run["n_test"] or 0)),
                asked=Count(run["n_private"]),
                test=Count(run["n_test"] or 0),
            )
            return float(took) * usual / usual_seconds(name, (then.read_by(name) or rows).number, config)
    return usual


def usual_seconds(name: str, rows: int, config: RunConfig) -> float:
    """On two cores."""
    usual = USUAL.get(name, Usual(0.5))
    if config.model.is_correction:
        usual = USUAL_OF_A_CORRECTION.get(name, usual)
    return usual.fixed + usual.per_million * rows / 1e6


def _earlier_runs(objects: ObjectStore) -> list[Mapping[str, Any]]:
    """What the newest runs of the work folder left; those that cannot be read are left out."""
    folders = sorted(objects.folders("runs"), key=lambda folder: folder[-22:], reverse=True)
    found: list[Mapping[str, Any]] = []
    for folder in folders[:MOST_RUNS]:
        with suppress(FileNotFoundError, ArtifactCorrupt):
            found.append(read_stamped(objects, f"{folder}/run.json", "run", ""))
    return found
