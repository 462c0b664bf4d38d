"""The finding of a correction: where the public model is wrong on private people, by how much and how surely, or that nothing was
found. Each sentence is true of the run.

A direction is said of what lies further than 2 standard deviations from 0; a sentence that compares two models rests on the
paired interval of their difference.
"""

from __future__ import annotations

from tasks.page import finding, number_finding
from tasks.page import numbers as n
from tasks.page.mended_facts import MendedCell, MendedFacts
from tasks.page.mended_words import (
    direction,
    errs,
    measure,
    sentence,
    signed,
    size,
    slope_sentence,
    slope_size,
)
from tasks.page.run_finding import LOUD, failed_headline, failed_lead, tags, tiles, told_apart, verdict
from tasks.page.run_words import cell_label, rows_of

MOST_PLACES = 2
"""Cells that the paragraph under the heading names."""
EVEN = 0.25
"""Parts of the average that a correction may be off it where it is said to be about the same everywhere."""
RIVALS = {"public_tree": "a tree of its own", "public_forest": "a forest"}


def headline(facts: MendedFacts) -> str:
    """The finding in a sentence or two with its figures."""
    if facts.failure is not None:
        return failed_headline(facts)
    reports = n.plural(facts.n_private, "private report", "private reports")
    one = facts.n_private == 1
    if facts.is_nothing:
        return (
            f"{reports} on {rows_of(facts)} at {n.epsilon(facts.epsilon)} {'finds' if one else 'find'} nothing wrong with the "
            f"public model beyond {'its' if one else 'their'} noise."
        )
    found = _found(facts)
    return f"{found} {_worth(facts, reports)}" if found else _unclear(facts, reports)


def _found(facts: MendedFacts) -> str:
    """Which way the public model is wrong, where that is clear; "" where it is nowhere."""
    assert facts.tree is not None
    on = f"private {rows_of(facts)}"
    average = facts.tree.outputs[0]
    if len(facts.outputs) == 1 and average.is_clear:
        by = "by" if facts.n_cells == 1 or _is_even(facts) else "on average by"
        return f"On {on} the public model {errs(facts)} {direction(average, 0, facts)}, {by} {size(average, facts)}."
    if _is_line(facts):
        return f"Private {rows_of(facts)} {slope_sentence(facts.slope)}." if facts.slope else ""
    peak = _peaks(facts)[:1]
    if not peak:
        return ""
    where = "" if not peak[0].path else f" where {cell_label(peak[0], facts, most=3)},"
    mend = peak[0].outputs[peak[0].shown]
    return (
        f"On {on}{where} the public model {errs(facts)} {direction(mend, peak[0].shown, facts)}, "
        f"by {size(mend, facts)}."
    )


def _is_line(facts: MendedFacts) -> bool:
    """Whether a straight line is the finding: where it is clear and the average over everybody is not."""
    assert facts.tree is not None
    return facts.slope is not None and facts.slope.is_clear and not facts.tree.outputs[0].is_clear


def _worth(facts: MendedFacts, reports: str) -> str:
    """What correcting that brings."""
    at = f"{reports} at {n.epsilon(facts.epsilon)}"
    one = facts.n_private == 1
    public = facts.baseline("public_only")
    if facts.ours is None or public is None:
        return f"{at} {'corrects' if one else 'correct'} it."
    found = verdict(facts, public)
    if facts.label == "class":
        before, ours = told_apart(public.figure, facts.ours.figure, n.percent)
        if found == "better":
            return f"{at} {'lifts' if one else 'lift'} it from {before} to {ours}."
        what, often = "is right", " of the time"
    else:
        before, ours = number_finding.two_errors(public, facts.ours)
        if found == "better":
            return f"{at} {'cuts' if one else 'cut'} its mean squared error from {before} to {ours}."
        what, often = "has a mean squared error of", ""
    if found == "worse":
        return f"But corrected by {at} it {what} {ours}{often}, which is worse than the {before} before."
    if before == ours:
        return f"Corrected by {at} it {what} {ours}{often}, as before."
    return f"Corrected by {at} it {what} {ours}{often}, before {before}: not measurably better."


def _unclear(facts: MendedFacts, reports: str) -> str:
    """The heading where the reports differ from the public model, but nowhere clearly."""
    one = facts.n_private == 1
    return (
        f"{reports} on {rows_of(facts)} at {n.epsilon(facts.epsilon)} {'differs' if one else 'differ'} from the public model "
        f"more than noise alone would, but "
        + ("not so that any correction is worth it." if facts.is_zero else "in no place clearly.")
    )


def lead(facts: MendedFacts) -> list[str]:
    """The paragraph under the finding: where else, how much on average, what it is worth, what is against it."""
    if facts.failure is not None:
        return failed_lead(facts)
    said = [nothing(facts)] if facts.is_nothing else [*_places(facts), *_line(facts), *_overall(facts)]
    if facts.ours is None:
        said.append(
            "How good the model is, this run does not know: no private row was held back, so there is no score here."
        )
        return said
    if facts.label == "number":
        return said + number_finding.comparisons(facts, facts.ours)
    if facts.is_nothing:
        said += _alike(facts)
    public = facts.baseline("public_only")
    is_ahead = public is not None and verdict(facts, public) == "better"
    names = {"public_only": "the public model itself"} | RIVALS if is_ahead else RIVALS
    return said + finding.comparisons(facts, facts.ours, names)


def nothing(facts: MendedFacts) -> str:
    """The one line where nothing was found."""
    where = "Overall" if facts.n_cells == 1 else f"In {n.count(facts.n_cells)} kinds of {facts.noun}"
    chance = n.percent(facts.chance, 0)
    said = f"{where} the reports differ from the public model no more than noise alone would make them (chance {chance})"
    if facts.is_zero:
        return f"{said}, so nothing is added to it: it is released as it is."
    largest = max(
        (mend for cell in facts.cells for mend in cell.outputs), key=lambda mend: abs(mend.correction)
    )
    unit = measure(facts).unit
    beside = (
        ""
        if facts.slope is None
        else f" on average over a kind, and {slope_size(facts.slope)} of where a straight line differs from the tree"
    )
    return (
        f"{said}: within noise of nothing. What is added all the same is {signed(largest, facts)}"
        f"{n.FIXED + unit if unit else ''} at most{beside}."
    )


def _alike(facts: MendedFacts) -> list[str]:
    """Both accuracies where the heading does not have them."""
    public = facts.baseline("public_only")
    if facts.ours is None or public is None:
        return []
    before, ours = told_apart(public.figure, facts.ours.figure, n.percent)
    if before == ours:
        return [f"It is right {ours} of the time, with or without the reports."]
    return [f"It is right {before} of the time without the reports and {ours} with them."]


def _places(facts: MendedFacts) -> list[str]:
    """The cells where the public model is most clearly wrong, but for one in the heading."""
    peaks = _peaks(facts)
    if facts.n_cells == 1 or not peaks:
        return []
    assert facts.tree is not None
    average = facts.tree.outputs[0]
    is_line = _is_line(facts)
    in_heading = 0 if (len(facts.outputs) == 1 and average.is_clear) or is_line else 1
    if not in_heading and not is_line and _is_even(facts):
        if facts.is_shared:
            return [
                f"The reports do not tell kinds of {facts.noun} apart: the correction is the same everywhere."
            ]
        return ["That is about equally so everywhere."]
    told, whole_known = peaks[in_heading:MOST_PLACES], len(facts.outputs) == 1 and not is_line
    is_first = not (in_heading or is_line)
    said = [
        f"{'Furthest beyond its noise where' if is_first and not i else 'Where'} {cell_label(cell, facts, most=4)}: "
        f"{_short(cell, facts) if whole_known else sentence(cell.outputs[cell.shown], cell.shown, facts)}."
        for i, cell in enumerate(told)
    ]
    left = len(peaks) - in_heading - len(told)
    if left > 0:
        places = "1 more kind" if left == 1 else f"{n.count(left)} more kinds"
        said.append(f"In {places} of {facts.noun} a correction stands clear of its noise.")
    return said


def _line(facts: MendedFacts) -> list[str]:
    """The straight line, where it is clear and not in the heading."""
    if facts.slope is None or not facts.slope.is_clear or _is_line(facts):
        return []
    return [f"Beside that, private {facts.nouns} {slope_sentence(facts.slope)}."]


def _short(cell: MendedCell, facts: MendedFacts) -> str:
    """What was found in a cell: "“cash” too often, by 11.0 points ± 2.0"."""
    mend = cell.outputs[0]
    return f"{direction(mend, 0, facts)}, by {size(mend, facts)}"


def _overall(facts: MendedFacts) -> list[str]:
    """The public model against the corrected one over all private people, in answers."""
    if facts.tree is None or not facts.usual or facts.is_zero:
        return []
    added = facts.tree.outputs
    if facts.label == "number":
        before, after = (facts.measure.value(v) for v in (facts.usual[0], facts.usual_corrected[0]))
        if before == after:
            return []
        where = (
            " where the straight line lies as for public ones" if facts.slope and facts.slope.is_found else ""
        )
        return [
            f"Over all private {facts.nouns} the public model predicts {before} on average, corrected {after}{where}."
        ]
    told = sorted(range(len(added)), key=lambda k: -abs(added[k].correction))[:3]
    parts = []
    for k in told:
        said = told_apart(facts.usual[k], facts.usual_corrected[k], n.percent, first=0)
        if said[0] != said[1]:
            parts.append(f"{said[0]} “{facts.outputs[k]}”, corrected {said[1]}")
    return [f"Over all private {facts.nouns} the public model says {'; '.join(parts)}."] if parts else []


def _peaks(facts: MendedFacts) -> list[MendedCell]:
    """Cells whose correction is clear, that furthest from 0 beyond its error first."""
    clear = [cell for cell in facts.cells if cell.outputs[cell.shown].is_clear]

    def beyond(cell: MendedCell) -> tuple[float, float]:
        mend = cell.outputs[cell.shown]
        return abs(mend.correction) - 2 * mend.sd, cell.share_private

    return sorted(clear, key=beyond, reverse=True)


def _is_even(facts: MendedFacts) -> bool:
    """Whether the corrections of the one output are about the same in all cells."""
    assert facts.tree is not None
    average = facts.tree.outputs[0].correction
    return all(abs(cell.outputs[0].correction - average) <= EVEN * abs(average) for cell in facts.cells)


__all__ = ["LOUD", "headline", "lead", "nothing", "tags", "tiles"]
