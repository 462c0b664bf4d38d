"""The page itself: facts and words poured into the template, and the short version of it in markdown, of any kind.

What is shown of a large model is chosen here, so that a page stays small whatever the model's size.
"""

from __future__ import annotations

from tasks.page import charts, finding, mended, regression, rounds, words
from tasks.page import numbers as n
from tasks.page.facts import AnyFacts, Facts, MendedFacts, NumberFacts, RoundsFacts
from tasks.page.run_words import left_out, table_title
from tasks.page.scored import of_classes
from tasks.page.sheet import DRAWN_CELLS, TABLED_CELLS, by_share, poured, summary


def render(facts: AnyFacts) -> str:
    """The run's page: one HTML file that loads nothing, with everything from data escaped."""
    if isinstance(facts, RoundsFacts):
        return rounds.render(facts)
    if isinstance(facts, MendedFacts):
        return mended.render(facts)
    return regression.render(facts) if isinstance(facts, NumberFacts) else _render(facts)


def summary_markdown(facts: AnyFacts) -> str:
    """The finding, the scores, the privacy and the steps as markdown, with everything from data escaped."""
    if isinstance(facts, RoundsFacts):
        return rounds.summary_markdown(facts)
    if isinstance(facts, MendedFacts):
        return mended.summary_markdown(facts)
    if isinstance(facts, NumberFacts):
        return regression.summary_markdown(facts)
    return summary(
        facts,
        finding=finding,
        scores=facts.scores,
        chief="accuracy",
        figure=lambda score: n.percent(score.figure),
        interval=lambda score: words.interval(score.interval),
    )


def _render(facts: Facts) -> str:
    cells = by_share(facts.cells)
    return poured(
        facts,
        "cells.html.j2",
        words=words,
        finding=finding,
        **of_classes(facts.scores),
        shown=cells[:DRAWN_CELLS],
        left=left_out(facts, cells[DRAWN_CELLS:]),
        any_public=any(cell.public_margin is not None for cell in cells[:DRAWN_CELLS]),
        cell_axis=charts.cell_axis(cells[:DRAWN_CELLS]) if cells else None,
        margin_tick=lambda value: words.belief(value, facts),
        tabled=cells[:TABLED_CELLS],
        table_title=table_title(facts, min(len(cells), TABLED_CELLS)),
        differs=any(words.difference(cell) for cell in cells[:TABLED_CELLS]),
    )
