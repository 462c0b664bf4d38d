"""The tables of a suite, for methods over sets, sets at each epsilon, sets' facts, paired tests, and papers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldptree.models import LEVEL as LEVEL_OF_INTERVALS
from ldptree_benchmark.learners import LEARNERS, reads_of
from ldptree_benchmark.results.claims import Checked, comparable_score, printed_score
from ldptree_benchmark.results.ranks import (
    LEVEL,
    chance_of_splits,
    compare,
    critical_difference,
    rank_methods,
)
from ldptree_benchmark.results.scores import Cell, Scores
from ldptree_benchmark.suite import Column
from tasks.page.findings import Table

LEAST_COPIES = 0.005
"""Share of the held-back rows from which copies elsewhere are reported beside scores."""


@dataclass(frozen=True)
class Sets:
    """Facts of each data set from `check_leaks`, and why a set is not there."""

    leaks: Mapping[str, Mapping[str, Any]]
    missing: Mapping[str, str]


@dataclass(frozen=True, eq=False, kw_only=True)
class Facts:
    """Everything that a suite's page says.

    Attributes:
        printed: the paper's table beside it, if the suite names one.
        is_paper: whether candidates were picked on test rows.
    """

    scores: Scores
    sets: Sets
    claims: tuple[Checked, ...]
    printed: Mapping[str, Any] | None
    is_paper: bool

    @property
    def reference(self) -> int:
        """The first method of the suite, with which the others are compared."""
        return 0

    @property
    def titles(self) -> tuple[str, ...]:
        """Of the methods."""
        methods = self.scores.suite.methods.values()
        return tuple(method.title or LEARNERS[method.learner].title for method in methods)

    def say_leaks(self, dataset: str) -> str:
        """What makes its scores look better than they are; "" where nothing is known to."""
        leak = self.sets.leaks.get(dataset, {})
        leaks = []
        if leak.get("copies", 0.0) >= LEAST_COPIES:
            leaks.append(f"{100 * leak['copies']:.0f} % copies")
        if leak.get("decides"):
            leaks.append(f"{leak['decides']} decides the label")
        return ", ".join(leaks)

    def name_set(self, dataset: str) -> str:
        """With its leaks."""
        leaks = self.say_leaks(dataset)
        return f"{dataset} ({leaks})" if leaks else dataset


def format_score(facts: Facts, value: float, error: float = math.nan) -> str:
    """Write a score with its standard error, an accuracy in per cent or an error with three digits."""
    if math.isnan(value):
        return "–"
    if facts.scores.suite.measure == "accuracy":
        return f"{100 * value:.1f}" + ("" if math.isnan(error) else f" ± {100 * error:.1f}")
    return f"{value:.3g}" + ("" if math.isnan(error) else f" ± {error:.1g}")


def format_average(facts: Facts, value: float) -> str:
    """A mean over sets."""
    if facts.scores.suite.relative_to is None:
        return format_score(facts, value)
    return "–" if math.isnan(value) else f"{value:.3f}"


def tabulate_summary(facts: Facts) -> Table:
    """Return each method over all sets, with the mean score at each epsilon, and the sum of its ranks."""
    scores, suite = facts.scores, facts.scores.suite
    whole = scores.is_whole
    means, averages = scores.means[whole], scores.average_sets(whole)
    ranks = [
        rank_methods(means[:, scores.is_scored, e], scores.sign).sum(axis=0)
        for e in range(len(suite.epsilons))
    ]
    rows = []
    for number, (name, title) in enumerate(zip(suite.methods, facts.titles, strict=True)):
        column = averages[number]
        place = int(scores.is_scored[:number].sum())
        is_ranked = len(means) and scores.is_scored[number]
        sums = [f"{rank[place]:g}" if is_ranked else "–" for rank in ranks]
        reads = reads_of(suite.methods[name])
        rows.append((title, reads, *(format_average(facts, float(value)) for value in column), *sums))
    heads = [f"eps {epsilon:g}" for epsilon in suite.epsilons]
    average = "Mean" if suite.relative_to is None else f"Mean of the score over that of {suite.relative_to}"
    return Table(
        f"{average} over {int(whole.sum())} of {len(suite.sets)} sets (those where every method has a score), and rank sums",
        ("method", "learns from", *heads, *(f"rank sum, {head}" for head in heads)),
        tuple(rows),
        marked=(facts.reference,),
    )


def tabulate_scores(facts: Facts) -> list[Table]:
    """Return tables by epsilon of methods by sets, mean and standard error, in brackets a set's best private one."""
    scores, suite = facts.scores, facts.scores.suite
    keeps = np.array([reads_of(method) in ("reports", "public rows") for method in suite.methods.values()])
    tables = []
    for place, epsilon in enumerate(suite.epsilons):
        columns = []
        for means, errors in zip(scores.means[:, :, place], scores.errors[:, :, place], strict=True):
            order = np.where(keeps & ~np.isnan(means), scores.sign * means, -np.inf)
            cells = [format_score(facts, m, e) for m, e in zip(means, errors, strict=True)]
            if np.isfinite(order).any():
                cells = [f"[{c}]" if o == order.max() else c for c, o in zip(cells, order, strict=True)]
            columns.append(cells)
        rows = tuple(zip(facts.titles, *columns, strict=True))
        title = f"Epsilon {epsilon:g}: mean ± standard error, [best that keeps privacy]"
        tables.append(Table(title, ("method", *map(facts.name_set, suite.sets)), rows))
    return tables


def tabulate_tests(facts: Facts) -> list[Table]:
    """Return tables by epsilon, of all methods against the first over sets, and how many sets differ by themselves."""
    scores, suite = facts.scores, facts.scores.suite
    tables, names = [], [*suite.methods]
    for place, epsilon in enumerate(suite.epsilons):
        rows = []
        comparisons = compare(scores.means[:, :, place], names, facts.reference, scores.sign)
        for comparison in comparisons:
            away = (
                scores.values[:, facts.reference, place]
                - scores.values[:, names.index(comparison.method), place]
            )
            shares = [suite.split_of(name).test for name in suite.sets]
            chances = [chance_of_splits(each, share) for each, share in zip(away, shares, strict=True)]
            surely = sum(chance < LEVEL for chance in chances)
            chance = "too few sets" if math.isnan(comparison.chance) else f"{comparison.chance:.2g}"
            title = facts.titles[names.index(comparison.method)]
            rows.append(
                (
                    title,
                    format_difference(facts, comparison.difference),
                    f"{comparison.wins} : {comparison.losses}",
                    chance,
                    f"{surely}",
                )
            )
        n_sets = int((~np.isnan(scores.means[:, :, place]).any(axis=1)).sum())
        title = f"Epsilon {epsilon:g}: {facts.titles[facts.reference]} against the others"
        if n_sets and len(names) > 1:
            apart = critical_difference(len(names), n_sets)
            title += f"; average ranks nearer than {apart:.2f} are not told apart (Nemenyi)"
        heads = (
            "method",
            "mean difference",
            "sets won : lost",
            "chance (Wilcoxon, Holm)",
            f"sets that differ by themselves (level {LEVEL:g})",
        )
        tables.append(Table(title, heads, tuple(rows)))
    return tables


def format_difference(facts: Facts, value: float) -> str:
    """A difference in the sense of better."""
    if math.isnan(value):
        return "–"
    if facts.scores.suite.measure == "accuracy":
        return f"{round(100 * value, 1) + 0.0:+.1f} points"
    return f"{value + 0.0:+.3g}"


def tabulate_sets(facts: Facts) -> Table:
    """Sizes of the first repetition, and what makes scores look better than they are."""
    rows: list[tuple[str, ...]] = []
    for dataset in facts.scores.suite.sets:
        leak = facts.sets.leaks.get(dataset)
        if leak is None:
            rows.append((dataset, *"––––––", facts.sets.missing.get(dataset, "")))
            continue
        sizes = [f"{size:,}" for size in leak["parts"]]
        copies = [f"{100 * leak[which]:.1f} %" for which in ("copies", "public_copies")]
        rows.append((dataset, *sizes, f"{leak['features']:,}", *copies, leak["decides"] or "none"))
    heads = (
        "set",
        "public",
        "private",
        "held back",
        "features",
        "held-back rows with a copy elsewhere",
        "public rows with a copy among private ones",
        "a feature that decides the label",
    )
    return Table("Data sets", heads, tuple(rows))


def tabulate_printed(facts: Facts) -> list[Table]:
    """Return a table for each epsilon that the paper has, with its figure, ours, and the difference."""
    suite, printed = facts.scores.suite, facts.printed
    if suite.printed is None or printed is None:
        return []
    tables, names = [], [*suite.methods]
    for epsilon in suite.epsilons:
        lines = printed["epsilon"].get(f"{epsilon:g}")
        if lines is None:
            continue
        rows = []
        for dataset, theirs in suite.printed.datasets.items():
            if theirs not in lines or dataset not in suite.sets:
                continue
            for method, column in suite.printed.methods.items():
                if method not in names:
                    continue
                figure = printed_score(suite, printed, dataset, method, epsilon)
                if math.isnan(figure):
                    continue
                ours = comparable_score(facts.scores, dataset, method, epsilon)
                rows.append(
                    (dataset, facts.titles[names.index(method)], column, format_score(facts, figure),
                     format_score(facts, ours), format_difference(facts, facts.scores.sign * (ours - figure)))
                )  # fmt: skip
        heads = ("set", "method", "in the paper", "printed", "here", "difference, more is better")
        tables.append(Table(f"{printed['source']}, epsilon {epsilon:g}", heads, tuple(rows)))
    return tables


def tabulate_columns(facts: Facts) -> list[Table]:
    """Return a table for each column that a claim reads, with its mean, for sets and methods that have it."""
    scores, suite, tables = facts.scores, facts.scores.suite, []
    titles: dict[Column, str] = {
        "alarm": "How often reports are said to contradict public rows",
        "covered": f"Share of held-back rows in whose cell the interval of {100 * LEVEL_OF_INTERVALS:g} % holds the mean",
    }
    for column, title in titles.items():
        means = scores.columns[column]
        if not any(column in claim.columns for claim in facts.claims):
            continue
        rows = tuple(
            (dataset, method, *("–" if math.isnan(value) else f"{value:.2f}" for value in line))
            for dataset, lines in zip(suite.sets, means, strict=True)
            for method, line in zip(facts.titles, lines, strict=True)
            if np.isfinite(line).any()
        )
        tables.append(Table(title, ("set", "method", *(f"eps {e:g}" for e in suite.epsilons)), rows))
    return tables


def tabulate_parts(facts: Facts) -> list[Table]:
    """Return tables by epsilon of errors' parts, by methods that can tell, for the best or all candidates."""
    suite, tables = facts.scores.suite, []
    for epsilon in suite.epsilons:
        rows, names = [], dict[str, None]()
        for dataset in suite.sets:
            for (method, asked), title in zip(suite.methods.items(), facts.titles, strict=True):
                place = dataset, method, epsilon
                if asked.parts == "none" or place not in facts.scores.best:
                    continue
                best = facts.scores.best[place]
                for tried in facts.scores.tried[place] if asked.parts == "all" else [best]:
                    shown = f"{tried.mean:.3g}"
                    shown = f"[{shown}]" if asked.parts == "all" and tried is best else shown
                    rows.append((dataset, title, format_settings(tried.candidate), shown, tried.mean_parts))
                    names.update(dict.fromkeys(tried.mean_parts))
        if names:
            lines = tuple(
                (*head, *(_format_part(parts.get(name, math.nan)) for name in names)) for *head, parts in rows
            )
            heads = ("set", "method", "settings", "error", *names)
            tables.append(Table(f"What the error is made of at epsilon {epsilon:g}, [best]", heads, lines))
    return tables


def tabulate_picked(facts: Facts) -> Table:
    """Return, with --paper, the settings of each method with candidates that were best on test rows."""
    suite = facts.scores.suite
    rows = [
        (
            dataset,
            title,
            *(format_settings(facts.scores.best[dataset, name, e].candidate) for e in suite.epsilons),
        )
        for dataset in suite.sets
        for (name, method), title in zip(suite.methods.items(), facts.titles, strict=True)
        if facts.is_paper and method.candidates and (dataset, name, suite.epsilons[0]) in facts.scores.best
    ]
    heads = ("set", "method", *(f"eps {e:g}" for e in suite.epsilons))
    return Table("What was picked on the rows that are scored", heads, tuple(rows))


def _format_part(value: float) -> str:
    """What is nothing but rounding is 0."""
    return "–" if math.isnan(value) else f"{0.0 if abs(value) < 1e-12 else value:.3g}"


def format_settings(settings: Mapping[str, Any]) -> str:
    """Such as "t = 2, p = 4"."""
    shown = {name: f"{value:g}" if isinstance(value, float) else value for name, value in settings.items()}
    return ", ".join(f"{name} = {value}" for name, value in shown.items())


def tabulate_failures(cells: Sequence[Cell]) -> Table:
    """Each reason once, and how many cells it stopped."""
    reasons: dict[tuple[str, str, str], int] = {}
    for cell in cells:
        if cell.reason:
            place = cell.dataset, cell.method, cell.reason
            reasons[place] = reasons.get(place, 0) + 1
    rows = tuple((*place, f"{n}") for place, n in reasons.items())
    return Table("Cells without a score", ("set", "method", "reason", "cells"), rows)
