"""Write the page of a suite, one HTML file that loads nothing, with the parts of a run's page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ldptree_benchmark.results.scores import Cell
from ldptree_benchmark.results.tables import (
    Facts,
    format_score,
    tabulate_columns,
    tabulate_failures,
    tabulate_parts,
    tabulate_picked,
    tabulate_printed,
    tabulate_scores,
    tabulate_sets,
    tabulate_summary,
    tabulate_tests,
)
from tasks.page.charts import Axis
from tasks.page.render import fill

TEMPLATE = Path(__file__).with_name("benchmark.html.j2")
COLOURS, DASHES = 6, 3
"""By which a picture tells lines apart."""
FLAT = 0.01
"""Height of the picture around a score if all scores are the same."""


@dataclass(frozen=True)
class Line:
    """A method's scores over epsilon, with title, style, and points (place of the epsilon, height) in percent."""

    title: str
    style: str
    points: tuple[tuple[float, float, str], ...]

    @property
    def path(self) -> str:
        """For a polyline in a box of 100 by 100."""
        return " ".join(f"{x:.2f},{y:.2f}" for x, y, _ in self.points)


@dataclass(frozen=True)
class Picture:
    """Scores against epsilon on one set."""

    dataset: str
    axis: Axis
    lines: tuple[Line, ...]


def render_benchmark(facts: Facts, cells: Sequence[Cell], made: str) -> str:
    """Return the page of a suite. `made` says by what, when, and how long it took."""
    suite = facts.scores.suite
    return fill(
        TEMPLATE.name,
        text=TEMPLATE.read_text(encoding="utf-8"),
        made=made,
        picked=tabulate_picked(facts),
        suite=suite,
        headline=say_headline(facts, cells),
        facts=facts,
        pictures=draw_pictures(facts),
        legend=[(title, style_of(method)) for method, title in enumerate(facts.titles)],
        summary=tabulate_summary(facts),
        tables=[*tabulate_scores(facts), *tabulate_columns(facts)],
        tests=tabulate_tests(facts),
        printed=tabulate_printed(facts),
        parts=tabulate_parts(facts),
        sets=tabulate_sets(facts),
        failures=tabulate_failures(cells),
    )


def say_headline(facts: Facts, cells: Sequence[Cell]) -> str:
    """What came out, in a sentence."""
    failed = sum(bool(cell.reason) for cell in cells)
    without = f", {failed:,} of them without a score" if failed else ""
    held = sum(claim.held is True for claim in facts.claims)
    claims = f" {held} of {len(facts.claims)} claims held." if facts.claims else ""
    suite = facts.scores.suite
    return f"{len(suite.methods)} methods on {len(suite.sets)} sets: {len(cells):,} cells{without}.{claims}"


def style_of(method: int) -> str:
    """Return the classes of a method's line, for its colour and its dashes."""
    return f"c{method % COLOURS} d{method // COLOURS % DASHES}"


def draw_pictures(facts: Facts) -> list[Picture]:
    """A picture a set that has scores."""
    suite, means = facts.scores.suite, facts.scores.means
    pictures = []
    for number, dataset in enumerate(suite.sets):
        values = [float(value) for value in means[number].ravel() if math.isfinite(value)]
        if not values:
            continue
        around = [max(values) * (1 + FLAT), min(values) * (1 - FLAT)] if max(values) == min(values) else []
        axis, places = Axis.of(values + around), len(suite.epsilons)
        lines = []
        for method, title in enumerate(facts.titles):
            points = []
            for place, epsilon in enumerate(suite.epsilons):
                value = float(means[number, method, place])
                if math.isfinite(value):
                    x = 6 + 88 * place / max(places - 1, 1) if places > 1 else 50.0
                    y = 100 - float(axis.at(value)[:-1])
                    points.append((x, y, f"{title}, epsilon {epsilon:g}: {format_score(facts, value)}"))
            if points:
                lines.append(Line(title, style_of(method), tuple(points)))
        pictures.append(Picture(dataset, axis, tuple(lines)))
    return pictures
