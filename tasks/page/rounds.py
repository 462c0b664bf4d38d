"""The page of a run in rounds: facts and words poured into the template, and its short version in markdown.

What is said is in `rounds_words`, `rounds_finding` and `rounds_privacy`; where facts come from, in `tasks.report_shown`.
"""

from __future__ import annotations

from collections.abc import Callable

from tasks.page import numbers as n
from tasks.page import plots, rounds_finding, rounds_privacy, rounds_words
from tasks.page.regression import drawn_values
from tasks.page.rounds_facts import RoundsFacts, ShownNode
from tasks.page.scored import digits, of_numbers, ticks
from tasks.page.sheet import poured, summary

OPEN_LINES = 60
"""Nodes and cells of a tree that is drawn with all branches open."""


def render(facts: RoundsFacts) -> str:
    """The run's page: one HTML file that loads nothing, with everything from data escaped."""
    value_axis = plots.value_axis(facts.curves) if facts.curves else None
    return poured(
        facts,
        "told_rounds.html.j2",
        words=rounds_words,
        finding=rounds_finding,
        officer=rounds_privacy,
        **of_numbers(facts.scores, facts.bins),
        value_axis=value_axis,
        value_tick=ticks(value_axis),
        ticks=ticks,
        named=drawn_values,
        place=_placed(facts.tree),
        open_to=_open_to(facts.tree),
    )


def _open_to(tree: ShownNode | None) -> int:
    """To what depth the tree's branches stand open: all of them where that is not long."""
    return tree.depth if tree and tree.n_lines <= OPEN_LINES else 2


def _placed(tree: ShownNode | None) -> Callable[[float], float]:
    """Where a value lies between the least and the largest of the tree's cells that stand out of the noise, 0 to 1."""
    low, high = tree.span if tree else (0.0, 0.0)
    return lambda value: min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5


def summary_markdown(facts: RoundsFacts) -> str:
    """The finding, the scores, the privacy and the steps as markdown, with everything from data escaped."""
    places = digits(facts.scores)
    return summary(
        facts,
        finding=rounds_finding,
        scores=facts.scores,
        chief="mean squared error",
        figure=lambda score: n.fixed(score.figure, places),
        interval=lambda score: rounds_words.interval(score.interval, places),
        officer=rounds_privacy,
    )
