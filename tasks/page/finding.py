"""The finding on classes: the page's heading, and the paragraph under it, each true of the run at hand.

A sentence that compares two models rests on the paired interval of their difference where the facts carry
one, else on the intervals of each, which is more cautious. "Nothing gained" and "worse" are findings too.
"""

from __future__ import annotations

from collections.abc import Mapping

from tasks.page import numbers as n
from tasks.page.basic_facts import DiscrepancyFacts
from tasks.page.facts import Facts
from tasks.page.model_facts import ModelScore
from tasks.page.run_facts import RunFacts
from tasks.page.run_finding import (
    LOUD,
    Tile,
    Verdict,
    against_reference,
    failed_headline,
    failed_lead,
    report_kind,
    tags,
    tiles,
    told_apart,
    verdict,
)
from tasks.page.run_words import rows_of


def headline(facts: Facts) -> str:
    """The finding in one sentence with its figures."""
    if facts.failure is not None:
        return failed_headline(facts)
    reports = n.plural(facts.n_private, "private report", "private reports")
    at = f"at {n.epsilon(facts.epsilon)}"
    public = facts.baseline("public_only")
    on = f" on {rows_of(facts)}"
    if facts.ours is None:
        tree = f"a tree with {n.plural(facts.n_cells, 'cell', 'cells')}"
        return f"From {reports}{on} {at}, {tree} now predicts {facts.target}."
    ours = n.percent(facts.ours.accuracy)
    if public is None:
        return f"{reports}{on} {at} give a tree that is right {ours} of the time."
    before, ours = told_apart(public.accuracy, facts.ours.accuracy, n.percent)
    found = verdict(facts, public)
    if found == "better":
        lift = "lifts" if facts.n_private == 1 else "lift"
        return f"{reports}{on} {at} {lift} the public model from {before} to {ours}."
    if found == "worse":
        make = "makes" if facts.n_private == 1 else "make"
        return f"{reports}{on} {at} {make} the public model worse: {ours} right, down from {before}."
    add = "adds" if facts.n_private == 1 else "add"
    if before == ours:
        return (
            f"{reports}{on} {at} {add} nothing that the public rows did not say already: "
            f"{ours} right with or without them."
        )
    return (
        f"{reports}{on} {at} {add} nothing measurable to the public model: "
        f"{before} right without them, {ours} with them."
    )


def lead(facts: Facts) -> list[str]:
    """The paragraph under the finding: who differs from whom, what is left to gain, what is against it."""
    if facts.failure is not None:
        return failed_lead(facts)
    said = [_decisions(facts)] if facts.ours is None else []
    difference = discrepancy(facts)
    if difference:
        said.append(difference)
    if facts.ours is None:
        said.append(
            "How accurate the tree is, this run does not know: "
            "no private row was held back, so there is no score here."
        )
        return said
    return said + comparisons(facts, facts.ours)


def _decisions(facts: Facts) -> str:
    shares = dict.fromkeys(facts.classes, 0.0)
    tally = dict.fromkeys(facts.classes, 0)
    for cell in facts.cells:
        shares[cell.decision] = shares.get(cell.decision, 0.0) + cell.share_private
        tally[cell.decision] = tally.get(cell.decision, 0) + 1
    parts = [
        f"“{name}” in {n.count(tally[name])} ({n.share(min(shares[name], 1.0))} of private {facts.nouns})"
        for name in sorted(tally, key=lambda name: -tally[name])[:4]
        if tally[name]
    ]
    if facts.n_cells == 1:
        return f"It has one cell and says “{facts.cells[0].decision}” for every {facts.noun}."
    return f"Of its {n.count(facts.n_cells)} cells it says {n.listed(parts)}."


RIVALS = {"public_only": "the same tree", "public_tree": "a tree of its own", "public_forest": "a forest"}


def comparisons(facts: RunFacts, ours: ModelScore, names: Mapping[str, str] = RIVALS) -> list[str]:
    """How the model does beside those without private reports, without noise and without privacy.

    `names`: what the models that need no private report are called.
    """
    said = []
    rivals = [score for key in names if (score := facts.baseline(key))]
    best = max(rivals, key=lambda score: score.figure, default=None)
    if best is not None:
        said.append(_rival(facts, ours, best, names[best.key]))
    majority = facts.baseline("majority")
    if majority is not None and verdict(facts, majority) != "better":
        said.append(
            f"Always giving the most frequent answer of the public rows is right {n.percent(majority.figure)} of the time"
            f"{against_reference(facts, majority)}"
        )
    noiseless, limit = facts.baseline("no_noise"), facts.baseline("non_private")
    if noiseless is not None and noiseless.figure > ours.figure:
        said.append(f"The noise costs {n.points(noiseless.figure - ours.figure)} points.")
    if limit is not None and limit.figure > ours.figure:
        said.append(
            f"A tree that reads the private {facts.nouns} themselves gets {n.percent(limit.figure)}, "
            f"{n.points(limit.figure - ours.figure)} points more."
        )
    return said


def _rival(facts: RunFacts, ours: ModelScore, best: ModelScore, what: str) -> str:
    """What the best model that needs no private report has to say for itself."""
    figure = n.percent(best.figure)
    against = verdict(facts, best)
    if against == "better":
        return f"No model from public rows alone does as well: the best of them, {what}, gets {figure}."
    if against == "worse":
        return f"But {what} from public rows alone does better, with no private report: {figure}."
    return (
        f"The best model from public rows alone, {what}, gets {figure}: "
        "too near to say on these test rows which of the two is better."
    )


def discrepancy(facts: Facts) -> str:
    """How far private people differ from the public rows; "" where that was not asked."""
    found = facts.discrepancy
    if found is None:
        return ""
    if not found.is_found:
        return (
            f"The reports give no reason to think that private {facts.nouns} differ from the public ones, "
            f"so public rows are trusted as they are.{_hidden(facts, found)}"
        )
    if facts.positive is None:
        return (
            f"Private {facts.nouns} differ from the public ones, and the model corrects for it cell by cell."
        )
    known = [cell.discrepancy for cell in facts.cells if cell.discrepancy is not None]
    if known and found.varies:
        ends = (n.points(end, signed=True) for end in (min(known), max(known)))
        spread, average = f", {' to '.join(ends)} depending on the cell", " on average"
    else:
        spread, average = ", about equally everywhere", ""
    if abs(found.mean) < 2 * found.sd:
        return (
            f"On average no difference between private {facts.nouns} and the public ones can be told: "
            f"{n.points(found.mean, signed=True)} points {n.error(found.sd)} of “{facts.positive}”{spread}."
        )
    more = "more" if found.mean >= 0 else "less"
    return (
        f"Private {facts.nouns} are {more} often “{facts.positive}” than the public rows say, "
        f"by {n.points(found.mean)} points {n.error(found.sd)}{average}{spread}."
    )


def _hidden(facts: Facts, found: DiscrepancyFacts) -> str:
    """How large a difference the noise could hide on average: two standard deviations."""
    if facts.positive is None or found.sd <= 0:
        return ""
    return (
        f" That is no proof that they are alike: the noise could hide a difference of {n.points(2 * found.sd)} points of "
        f"“{facts.positive}” on average."
    )


__all__ = [
    "LOUD",
    "Tile",
    "Verdict",
    "comparisons",
    "discrepancy",
    "headline",
    "lead",
    "report_kind",
    "tags",
    "tiles",
    "verdict",
]
