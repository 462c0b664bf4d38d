"""Write a suite's tidy Parquet file, its HTML page, and the file from which pages of the docs are written."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ldptree_benchmark.results.claims import Checked, check_claims
from ldptree_benchmark.results.measured import Measured
from ldptree_benchmark.results.page import render_benchmark
from ldptree_benchmark.results.scores import Cell, Scores, tidy_table
from ldptree_benchmark.results.tables import (
    Facts,
    Sets,
    tabulate_columns,
    tabulate_parts,
    tabulate_printed,
    tabulate_scores,
    tabulate_sets,
    tabulate_summary,
)
from ldptree_benchmark.suite import Suite
from schemas.named_files import make_folder, written_whole


@dataclass(frozen=True, kw_only=True)
class Making:
    """The making of a suite's scores, with the command, its seconds, and the tasks that were done before."""

    command: str
    seconds: float
    tasks: int
    n_reused: int = 0

    @property
    def took(self) -> str:
        """Return the time in words, such as "in 3.2 minutes, 20 of 60 tasks had been done before"."""
        before = f", {self.n_reused:,} of {self.tasks:,} tasks had been done before" if self.n_reused else ""
        return f"in {max(self.seconds / 60, 0.1):.1f} minutes{before}"

    def __str__(self) -> str:
        """What made it, on what, and when."""
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        return f"{self.command} on {os.cpu_count()} cores, {self.took}, {today}"


def write_report(
    folder: Path,
    suite: Suite,
    cells: Sequence[Cell],
    sets: Sets,
    *,
    printed: Mapping[str, Any] | None,
    is_paper: bool,
    making: Making,
) -> dict[str, Any]:
    """Write results.parquet, results.toml and results.html; returns what `ldptree benchmark --json` prints."""
    make_folder(folder)
    scores = Scores.of(suite, cells)
    facts = Facts(
        scores=scores,
        sets=sets,
        claims=tuple(check_claims(scores, printed, is_paper=is_paper)),
        printed=printed,
        is_paper=is_paper,
    )
    made_by = f"ldptree {version('ldptree')}, numpy {np.__version__}, scikit-learn {version('scikit-learn')}"
    table = tidy_table(suite, cells, made_by)
    page = folder / "results.html"
    with written_whole(folder / "results.parquet", "results") as aside:
        table.write_parquet(aside)
    with written_whole(page, "results") as aside:
        aside.write_text(render_benchmark(facts, cells, f"{making}, with {made_by}"), encoding="utf-8")
    with written_whole(folder / "results.toml", "results") as aside:
        aside.write_text(describe_for_docs(facts, cells, making), encoding="utf-8")
    failed = [cell for cell in cells if cell.reason]
    averages = scores.average_sets(scores.is_whole)
    without = [name for name, is_scored in zip(suite.methods, scores.is_scored, strict=True) if not is_scored]
    return {
        "suite": suite.name,
        "measure": suite.measure,
        "relative_to": suite.relative_to,
        "picked_on_test_rows": is_paper,
        "cells": len(cells),
        "failed": len(failed),
        "reasons": sorted({cell.reason for cell in failed}),
        "methods_without_a_score": without,
        "leaks": {name: leaks for name in suite.sets if (leaks := facts.say_leaks(name))},
        "claims": [_claim(claim) for claim in facts.claims],
        "scores": {
            method: {
                f"{epsilon:g}": _plain(float(value))
                for epsilon, value in zip(suite.epsilons, averages[number], strict=True)
            }
            for number, method in enumerate(suite.methods)
        },
        "results": str(folder / "results.parquet"),
        "page": str(page),
    }


def describe_for_docs(facts: Facts, cells: Sequence[Cell], making: Making) -> str:
    """One result of a page of docs/measured, as `docs/write_measured.py` reads it."""
    suite = facts.scores.suite
    learning = sum(cell.seconds for cell in cells if not math.isnan(cell.seconds))
    picked = " Candidates were picked on TEST rows, as the paper did." if facts.is_paper else ""
    note = (
        f"{suite.about.strip()}{picked} {suite.repetitions} repetitions, {len(cells):,} scores; "
        f"{learning:,.0f} seconds of learning {making.took}."
    )
    tables = (
        tabulate_summary(facts),
        *tabulate_scores(facts),
        *tabulate_columns(facts),
        *tabulate_printed(facts),
        *tabulate_parts(facts),
        tabulate_sets(facts),
    )
    claims = [
        (f"{claim.says} ({'not measured' if claim.held is None else claim.shown})", bool(claim.held))
        for claim in facts.claims
    ]
    return str(
        Measured(
            title=suite.title,
            command=making.command,
            note=note,
            claims=claims,
            tables=[(table.title, (table.heads, *table.rows)) for table in tables],
        )
    )


def _claim(claim: Checked) -> dict[str, Any]:
    return {"says": claim.says, "held": claim.held, "found": claim.shown}


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value
