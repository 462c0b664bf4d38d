"""The page of a run whose label is a number: facts and words poured into the template, and its short version in markdown.

What both kinds of page have is in `sheet`; what is said, in `number_words` and `number_finding`; where facts come from, in
`number_learned`.
"""

from __future__ import annotations

from tasks.page import charts, number_finding, number_words, plots
from tasks.page import numbers as n
from tasks.page.number_facts import CurveFacts, NumberFacts, PieceFacts
from tasks.page.run_words import left_out, table_title
from tasks.page.scored import digits, of_numbers, ticks
from tasks.page.sheet import DRAWN_CELLS, TABLED_CELLS, by_share, poured, summary

DRAWN_VALUES = 12
"""Values of a category that are drawn of a curve: the largest and the smallest."""


def render(facts: NumberFacts) -> str:
    """The run's page: one HTML file that loads nothing, with everything from data escaped."""
    cells = by_share(facts.cells)
    shown = cells[:DRAWN_CELLS]
    cell_axis = charts.number_axis(shown) if shown else None
    value_axis = plots.value_axis(facts.curves) if facts.curves else None
    return poured(
        facts,
        "numbers.html.j2",
        words=number_words,
        finding=number_finding,
        **of_numbers(facts.scores, facts.bins),
        shown=shown,
        left=left_out(facts, cells[DRAWN_CELLS:]),
        any_public=any(cell.public is not None for cell in shown),
        cell_axis=cell_axis,
        cell_tick=ticks(cell_axis),
        value_axis=value_axis,
        value_tick=ticks(value_axis),
        ticks=ticks,
        named=drawn_values,
        tabled=cells[:TABLED_CELLS],
        table_title=table_title(facts, min(len(cells), TABLED_CELLS)),
        differs=any(number_words.difference(cell, facts) for cell in cells[:TABLED_CELLS]),
    )


def summary_markdown(facts: NumberFacts) -> str:
    """The finding, the scores, the privacy and the steps as markdown, with everything from data escaped."""
    places = digits(facts.scores)
    return summary(
        facts,
        finding=number_finding,
        scores=facts.scores,
        chief="mean squared error",
        figure=lambda score: n.fixed(score.figure, places),
        interval=lambda score: number_words.interval(score.interval, places),
    )


def drawn_values(curve: CurveFacts) -> list[PieceFacts]:
    """The pieces with a name that are drawn, the largest value first."""
    pieces = sorted(curve.named, key=lambda piece: -piece.value)
    if len(pieces) <= DRAWN_VALUES:
        return pieces
    half = DRAWN_VALUES // 2
    return pieces[:half] + pieces[-half:]
