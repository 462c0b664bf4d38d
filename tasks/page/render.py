"""The page itself: facts and words poured into the template, and the short version of it in markdown, of either kind.

What is shown of a large model is chosen here, so that a page stays small whatever the model's size.
"""

from __future__ import annotations

from tasks.page import charts, finding, regression, rounds, words
from tasks.page import numbers as n
from tasks.page.facts import AnyFacts, Facts, NumberFacts, RoundsFacts
from tasks.page.run_words import left_out, table_title
from tasks.page.sheet import DRAWN_CELLS, TABLED_CELLS, by_share, poured, summary

DRAWN_CLASSES = 20


def render(facts: AnyFacts) -> str:
    """The run's page: one HTML file that loads nothing, with everything from data escaped."""
    if isinstance(facts, RoundsFacts):
        return rounds.render(facts)
    return regression.render(facts) if isinstance(facts, NumberFacts) else _render(facts)


def summary_markdown(facts: AnyFacts) -> str:
    """The finding, the scores, the privacy and the steps as markdown, with everything from data escaped."""
    if isinstance(facts, RoundsFacts):
        return rounds.summary_markdown(facts)
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
        score_axis=charts.score_axis(facts.scores) if facts.ours else None,
        score_tick=lambda value: n.percent(value, 0),
        figure=lambda score: n.percent(score.accuracy),
        others={
            key: title
            for key, title in words.METRICS.items()
            if key != "accuracy" and any(key in score.metrics for score in facts.scores)
        },
        confusions=[score for score in facts.scores if 0 < len(score.confusion) <= DRAWN_CLASSES],
        bins_axis=None,
        notes=any(score.note for score in facts.scores),
        shown=cells[:DRAWN_CELLS],
        left=left_out(facts, cells[DRAWN_CELLS:]),
        any_public=any(cell.public_margin is not None for cell in cells[:DRAWN_CELLS]),
        cell_axis=charts.cell_axis(cells[:DRAWN_CELLS]) if cells else None,
        margin_tick=lambda value: words.belief(value, facts),
        tabled=cells[:TABLED_CELLS],
        table_title=table_title(facts, min(len(cells), TABLED_CELLS)),
        differs=any(words.difference(cell) for cell in cells[:TABLED_CELLS]),
    )
