"""The page of a run in rounds: facts and words poured into the template, and its short version in markdown.

What is said is in `rounds_words`, `rounds_finding` and `rounds_privacy`; where facts come from, in `tasks.report_shown`.
"""

from __future__ import annotations

from tasks.page import charts, plots, rounds_finding, rounds_privacy, rounds_words
from tasks.page import numbers as n
from tasks.page.regression import digits, ticks
from tasks.page.rounds_facts import RoundsFacts
from tasks.page.sheet import poured, summary


def render(facts: RoundsFacts) -> str:
    """The run's page: one HTML file that loads nothing, with everything from data escaped."""
    scores, places = facts.scores, digits(facts)
    score_axis = charts.error_axis(scores) if scores else None
    bins_axis = plots.bins_axis(facts.bins) if facts.bins else None
    return poured(
        facts,
        "told_rounds.html.j2",
        words=rounds_words,
        finding=rounds_finding,
        officer=rounds_privacy,
        score_axis=score_axis,
        score_tick=ticks(score_axis),
        figure=lambda score: rounds_words.figure(score, places),
        others={
            key: title
            for key, title in rounds_words.METRICS.items()
            if key != "mse" and any(key in score.metrics for score in scores)
        },
        confusions=[],
        notes=False,
        bins_axis=bins_axis,
        bins_tick=ticks(bins_axis),
    )


def summary_markdown(facts: RoundsFacts) -> str:
    """The finding, the scores, the privacy and the steps as markdown, with everything from data escaped."""
    places = digits(facts)
    return summary(
        facts,
        finding=rounds_finding,
        scores=facts.scores,
        chief="mean squared error",
        figure=lambda score: n.fixed(score.figure, places),
        interval=lambda score: rounds_words.interval(score.interval, places),
        officer=rounds_privacy,
    )
