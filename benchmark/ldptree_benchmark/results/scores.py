"""The scores of a suite, with a row for each cell, and the tables made of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ldptree_benchmark.learners import reads_of
from ldptree_benchmark.suite import COLUMNS, Column, Suite

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One score, or why there is none.

    Attributes:
        epsilon: None of a learner that needs no reports; its score stands beside every epsilon.
        candidate: the settings that were tried, of a suite with --paper; {} otherwise.
        score: nan where it failed; then `reason` says why.
        process_peak_mib: largest memory of the process by then.
        columns: what else was measured of what was learned.
        parts: what the error is made of, of a method that was asked for that.
    """

    dataset: str
    method: str
    candidate: dict[str, Any]
    epsilon: float | None
    repetition: int
    score: float
    seconds: float
    process_peak_mib: float
    reason: str = ""
    columns: Mapping[Column, float] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)


SCHEMA: dict[str, type[pl.DataType]] = {
    "suite": pl.String,
    "set": pl.String,
    "method": pl.String,
    "learner": pl.String,
    "reads": pl.String,
    "parameters": pl.String,
    "epsilon": pl.Float64,
    "repetition": pl.Int64,
    "seed": pl.Int64,
    "measure": pl.String,
    "score": pl.Float64,
    "seconds": pl.Float64,
    "process_peak_mib": pl.Float64,
    "parts": pl.String,
    "version": pl.String,
    "reason": pl.String,
    **dict.fromkeys(COLUMNS, pl.Float64),
}
"""Columns of the tidy table."""


def tidy_table(suite: Suite, cells: Sequence[Cell], version: str) -> pl.DataFrame:
    """A row a cell."""
    rows = []
    for cell in cells:
        method = suite.methods[cell.method]
        parameters = json.dumps({**method.settings, **cell.candidate}, sort_keys=True)
        rows.append(
            (
                suite.name, cell.dataset, cell.method, method.learner, reads_of(method), parameters,
                cell.epsilon, cell.repetition, suite.seed, suite.measure, cell.score, cell.seconds, cell.process_peak_mib,
                json.dumps(dict(cell.parts)) if cell.parts else None, version, cell.reason,
                *(cell.columns.get(column) for column in COLUMNS),
            )
        )  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@dataclass(frozen=True, eq=False)
class Tried:
    """One candidate of a method on one set at one epsilon.

    Attributes:
        candidate: its settings; {} without --paper.
        scores: float64 [repetitions], nan where it failed.
        columns, parts: of each repetition.
    """

    candidate: dict[str, Any]
    scores: Floats
    columns: list[Mapping[Column, float]] = field(default_factory=list)
    parts: list[Mapping[str, float]] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """Over the repetitions that have a score; nan where none has."""
        return float(np.nanmean(self.scores)) if not np.isnan(self.scores).all() else math.nan

    @property
    def mean_parts(self) -> dict[str, float]:
        """Over repetitions."""
        names = dict.fromkeys(name for part in self.parts for name in part)
        return {name: float(np.mean([part[name] for part in self.parts if name in part])) for name in names}


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of a suite, nan where a cell failed or was left out.

    Attributes:
        values: float64 [sets, methods, epsilons, repetitions]; a method without reports has the same at every epsilon.
        best: by (set, method, epsilon): what was best on test rows, of a suite with --paper, or all that there is.
        tried: and everything that was tried.
        columns: float64 [sets, methods, epsilons], the mean over repetitions of what else was measured; nan where it was not.
    """

    suite: Suite
    values: Floats
    best: dict[tuple[str, str, float], Tried]
    tried: dict[tuple[str, str, float], list[Tried]]
    columns: dict[Column, Floats]

    @classmethod
    def of(cls, suite: Suite, cells: Sequence[Cell]) -> Scores:
        """From cells; of several candidates of a method the best by its mean score on TEST rows, as the papers choose."""
        sets, methods, epsilons = suite.sets, tuple(suite.methods), suite.epsilons
        by_place: dict[tuple[str, str, float], dict[str, Tried]] = {}
        for cell in cells:
            for epsilon in epsilons if cell.epsilon is None else (cell.epsilon,):
                if epsilon not in epsilons:
                    continue
                tried = by_place.setdefault((cell.dataset, cell.method, epsilon), {}).setdefault(
                    json.dumps(cell.candidate, sort_keys=True),
                    Tried(cell.candidate, np.full(suite.repetitions, np.nan)),
                )
                tried.scores[cell.repetition] = cell.score
                tried.columns.append(cell.columns)
                tried.parts.append(cell.parts)
        values = np.full((len(sets), len(methods), len(epsilons), suite.repetitions), np.nan)
        columns = {column: np.full(values.shape[:3], np.nan) for column in COLUMNS}
        best, sign = {}, 1.0 if suite.measure == "accuracy" else -1.0
        for (dataset, method, epsilon), candidates in by_place.items():
            whole = [candidate for candidate in candidates.values() if not math.isnan(candidate.mean)]
            winner = max(whole or [*candidates.values()][:1], key=lambda candidate: sign * candidate.mean)
            place = sets.index(dataset), methods.index(method), epsilons.index(epsilon)
            values[place] = winner.scores
            for column, means in columns.items():
                means[place] = np.mean([each.get(column, np.nan) for each in winner.columns])
            best[dataset, method, epsilon] = winner
        tried_by_place = {place: [*each.values()] for place, each in by_place.items()}
        return cls(suite, values, best, tried_by_place, columns)

    @property
    def sign(self) -> int:
        """1 where a larger score is better, -1 where a smaller one is."""
        return 1 if self.suite.measure == "accuracy" else -1

    @property
    def means(self) -> Floats:
        """float64 [sets, methods, epsilons], over repetitions; nan where one failed."""
        return np.asarray(self.values.mean(axis=3))

    def mean_of(self, dataset: str, method: str, epsilon: float) -> float:
        """One of `means`."""
        suite = self.suite
        place = suite.sets.index(dataset), [*suite.methods].index(method), suite.epsilons.index(epsilon)
        return float(self.means[place])

    @property
    def is_scored(self) -> NDArray[np.bool_]:
        """Return which methods have a score, bool [methods], as one without any takes nothing from the others."""
        return np.asarray(~np.isnan(self.means).all(axis=(0, 2)), dtype=np.bool_)

    @property
    def is_whole(self) -> NDArray[np.bool_]:
        """Return the sets where every method that has a score anywhere has one, bool [sets]."""
        return np.asarray(~np.isnan(self.means[:, self.is_scored]).any(axis=(1, 2)), dtype=np.bool_)

    @property
    def errors(self) -> Floats:
        """Standard errors of `means`; nan of one repetition."""
        n = self.values.shape[3]
        if n < 2:
            return np.full(self.values.shape[:3], np.nan)
        return np.asarray(self.values.std(axis=3, ddof=1) / np.sqrt(n))

    def average_sets(self, chosen: NDArray[np.bool_] | None = None, measure: str = "score") -> Floats:
        """float64 [methods, epsilons], the mean over these sets; of scores over those of `relative_to`, where the suite names it.

        `chosen`: bool [sets]; None: all. `measure`: one of `COLUMNS`, or scores.
        """
        column = self.columns.get(measure)  # type: ignore[call-overload]
        means = self.means if column is None else column
        means = means if chosen is None else means[chosen]
        if self.suite.relative_to is not None and column is None:
            means = means / means[:, [[*self.suite.methods].index(self.suite.relative_to)]]
        return np.asarray(means.mean(axis=0)) if len(means) else np.full(means.shape[1:], np.nan)
