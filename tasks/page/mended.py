"""The page of a run that mends a public model: facts and words poured into the template, and its short version in markdown.

What is said is in `mended_words`, `mended_answers` and `mended_finding`, what is drawn in `mended_picture`; where facts come
from, in `mended_learned`.
"""

from __future__ import annotations

from typing import Any

from tasks.page import mended_answers, mended_finding, mended_picture, mended_words, number_words, words
from tasks.page import numbers as n
from tasks.page.class_score import ScoreFacts
from tasks.page.mended_facts import CellMendFacts, MendedCell, MendedFacts, MendFacts
from tasks.page.number_facts import NumberScore
from tasks.page.run_words import left_out, table_title
from tasks.page.scored import digits, of_classes, of_numbers, ticks
from tasks.page.sheet import DRAWN_CELLS, TABLED_CELLS, by_share, drawn_open, poured, summary

DRAWN_ROWS = 24
"""Ends of the tree that are drawn: the largest; what lies below one that is not opened is drawn together."""


def render(facts: MendedFacts) -> str:
    """The run's page: one HTML file that loads nothing, with everything from data escaped."""
    cells = by_share(facts.cells)
    return poured(
        facts,
        "corrections.html.j2",
        words=mended_words,
        finding=mended_finding,
        **_scores(facts),
        **_tree(facts),
        **_answers(facts, cells),
        tabled=cells[:TABLED_CELLS],
        table_title=table_title(facts, min(len(cells), TABLED_CELLS)),
        mended=mended_picture,
        both=mended_answers,
    )


def summary_markdown(facts: MendedFacts) -> str:
    """The finding, the scores, the privacy and the steps as markdown, with everything from data escaped."""
    of_number = facts.label == "number"
    places = digits([score for score in facts.scores if isinstance(score, NumberScore)])
    return summary(
        facts,
        finding=mended_finding,
        scores=facts.scores,
        chief="mean squared error" if of_number else "accuracy",
        figure=lambda score: n.fixed(score.figure, places) if of_number else n.percent(score.figure),
        interval=lambda score: (
            number_words.interval(score.interval, places) if of_number else words.interval(score.interval)
        ),
    )


def _scores(facts: MendedFacts) -> dict[str, Any]:
    if facts.label == "class":
        return of_classes([score for score in facts.scores if isinstance(score, ScoreFacts)])
    return of_numbers([score for score in facts.scores if isinstance(score, NumberScore)], facts.bins)


def _tree(facts: MendedFacts) -> dict[str, Any]:
    """The tree as rows, and the axis of the corrections."""
    assert facts.tree is not None
    opened = drawn_open(facts.tree, 2 * DRAWN_ROWS - 1)
    rows = mended_picture.rows_of(facts.tree, lambda node: id(node) in opened)
    unit = mended_words.in_unit(1.0, facts)
    overall = overall_of(facts) if facts.n_cells > 1 else []
    drawn: list[tuple[MendFacts, tuple[float, float] | None]] = [
        (row.node.outputs[row.node.shown], mended_words.alone_of(row.node, facts)) for row in rows
    ]
    axis = mended_picture.correction_axis(
        [*drawn, *((facts.tree.outputs[output], None) for output in overall)], unit, facts.residual_range
    )
    return {
        "rows": rows,
        "unit": unit,
        "overall": overall,
        "mend_axis": axis,
        "mend_tick": lambda value: n.fixed(value, _places(axis.step), signed=True),
    }


def overall_of(facts: MendedFacts) -> list[int]:
    """The outputs whose average over everybody is drawn: the clearest."""
    assert facts.tree is not None
    mends = facts.tree.outputs
    return sorted(range(len(mends)), key=lambda output: -mends[output].strength)[:DRAWN_CELLS]


def _whole(facts: MendedFacts) -> MendedCell:
    """All private people as if they were one cell."""
    assert facts.tree is not None
    outputs = []
    for mend, usual, corrected in zip(facts.tree.outputs, facts.usual, facts.usual_corrected, strict=True):
        outputs.append(
            CellMendFacts(correction=mend.correction, sd=mend.sd, public=usual, corrected=corrected)
        )
    return MendedCell(
        path=(),
        share_private=1.0,
        share_public=1.0,
        evidence="private",
        people=facts.n_private,
        outputs=tuple(outputs),
        test=mended_answers.whole_test(facts),
    )


def _places(step: float) -> int:
    return max(len(f"{step:.9f}".rstrip("0").split(".")[1]), 0)


def _answers(facts: MendedFacts, cells: list[MendedCell]) -> dict[str, Any]:
    """Both models' answers over everybody, and in the largest cells."""
    shown = cells[:DRAWN_CELLS]
    if facts.usual and facts.n_cells > 1:
        shown = [_whole(facts), *shown]
    is_share = facts.label == "class"
    axis = None if facts.is_zero else mended_picture.answer_axis(shown, is_share=is_share)
    tick = ticks(axis)
    return {
        "shown": shown,
        "left": left_out(facts, cells[DRAWN_CELLS:]),
        "answer_axis": axis,
        "answer_tick": (lambda value: n.percent(value, 0)) if is_share else tick,
        "is_tested": any(cell.test is not None for cell in facts.cells),
    }
