"""The part of a page that shows scores: what its templates need, of classes and of numbers, whatever else the page says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tasks.page import charts, number_words, plots, words
from tasks.page import numbers as n
from tasks.page.axes import Axis
from tasks.page.class_score import ScoreFacts
from tasks.page.number_facts import BinFacts, NumberScore

DRAWN_CLASSES = 20


def of_classes(scores: Sequence[ScoreFacts]) -> dict[str, Any]:
    """What the templates of the scores need where the label is a class."""
    return {
        "chief": words.CHIEF,
        "score_axis": charts.score_axis(scores) if scores else None,
        "score_tick": lambda value: n.percent(value, 0),
        "figure": lambda score: n.percent(score.accuracy),
        "others": _others(scores, words.METRICS, words.CHIEF),
        "confusions": [score for score in scores if 0 < len(score.confusion) <= DRAWN_CLASSES],
        "notes": any(score.note for score in scores),
        "bins_axis": None,
    }


def of_numbers(scores: Sequence[NumberScore], bins: Sequence[BinFacts]) -> dict[str, Any]:
    """The same where it is a number."""
    places = digits(scores)
    score_axis = charts.error_axis(scores) if scores else None
    bins_axis = plots.bins_axis(bins) if bins else None
    return {
        "chief": number_words.CHIEF,
        "score_axis": score_axis,
        "score_tick": ticks(score_axis),
        "figure": lambda score: number_words.figure(score, places),
        "others": _others(scores, number_words.METRICS, "mse"),
        "confusions": [],
        "notes": False,
        "bins_axis": bins_axis,
        "bins_tick": ticks(bins_axis),
    }


def _others(
    scores: Sequence[ScoreFacts] | Sequence[NumberScore], titles: dict[str, str], chief: str
) -> dict[str, str]:
    """Further figures that some model has, with their titles."""
    return {
        key: title
        for key, title in titles.items()
        if key != chief and any(key in score.metrics for score in scores)
    }


def digits(scores: Sequence[NumberScore]) -> int:
    """Decimals that leave the smallest mean squared error three figures."""
    return n.digits_of(min((score.figure for score in scores if score.figure > 0), default=1.0))


def ticks(axis: Axis | None) -> Callable[[float], str]:
    """How an axis labels its ticks."""
    step = 1.0 if axis is None else axis.step
    return lambda value: n.tick(value, step)
