"""The finding: the page's heading, the paragraph and figures under it, each true of the run at hand.

A sentence that compares two models rests on the paired interval of their difference where the facts carry
one, else on the intervals of each, which is more cautious. "Nothing gained" and "worse" are findings too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tasks.page import numbers as n
from tasks.page.facts import Facts, ScoreFacts
from tasks.page.words import rows_of

Verdict = Literal["better", "worse", "level"]

LOUD = ("simulated data", "seeded noise: protects nobody", "sums drawn: no report written")


@dataclass(frozen=True, kw_only=True)
class Tile:
    """One figure of the strip under the finding."""

    figure: str
    label: str


def verdict(facts: Facts, other: ScoreFacts) -> Verdict:
    """Whether ours is better or worse than `other` beyond what the choice of test rows explains."""
    assert facts.ours is not None
    ours, low, high = facts.ours, 0.0, 0.0
    if other.lead is not None:
        low, high = other.lead.low, other.lead.high
    elif ours.interval is not None and other.interval is not None:
        low, high = ours.interval.low - other.interval.high, ours.interval.high - other.interval.low
    return "better" if low > 0 else "worse" if high < 0 else "level"


def headline(facts: Facts) -> str:
    """The finding in one sentence with its figures."""
    if facts.failure is not None:
        return _failed_headline(facts)
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
    before, ours = _told_apart(public.accuracy, facts.ours.accuracy)
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


def _told_apart(one: float, other: float) -> tuple[str, str]:
    """Two shares with as many decimals as it takes to see which is larger, three at most."""
    for digits in (1, 2, 3):
        if n.percent(one, digits) != n.percent(other, digits):
            break
    else:
        digits = 1
    return n.percent(one, digits), n.percent(other, digits)


def _failed_headline(facts: Facts) -> str:
    assert facts.failure is not None
    broken = [check for check in facts.checks if not check.ok and check.severity == "stop"]
    drawn = facts.epsilon_spent > 0
    end = "no model was made" if drawn else "nothing was learned from anyone"
    if facts.failure.step == "validate" and broken:
        failed = "1 check failed" if len(broken) == 1 else f"{n.count(len(broken))} checks failed"
        return f"Stopped at validation: {failed}, and {end}."
    return f"Stopped at {facts.failure.step}: {end}."


def lead(facts: Facts) -> list[str]:
    """The paragraph under the finding: who differs from whom, what is left to gain, what is against it."""
    if facts.failure is not None:
        return _failed_lead(facts)
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
    return said + _comparisons(facts, facts.ours)


def _failed_lead(facts: Facts) -> list[str]:
    assert facts.failure is not None
    if facts.epsilon_spent > 0:
        return [
            f"Holders had already reported: each has spent {n.epsilon(facts.epsilon_spent)}. "
            "Their reports are kept, and the same command goes on from them."
        ]
    return ["No report was drawn, so no holder's privacy was spent."]


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


def _comparisons(facts: Facts, ours: ScoreFacts) -> list[str]:
    said = []
    rivals = [
        score for key in ("public_only", "public_tree", "public_forest") if (score := facts.baseline(key))
    ]
    best = max(rivals, key=lambda score: score.accuracy, default=None)
    if best is not None:
        said.append(_rival(facts, ours, best))
    majority = facts.baseline("majority")
    if majority is not None and verdict(facts, majority) != "better":
        said.append(
            f"Always giving the most frequent answer of the public rows is right {n.percent(majority.accuracy)} of the time: "
            "the model is not measurably better than that."
        )
    noiseless, limit = facts.baseline("no_noise"), facts.baseline("non_private")
    if noiseless is not None and noiseless.accuracy > ours.accuracy:
        said.append(f"The noise costs {n.points(noiseless.accuracy - ours.accuracy)} points.")
    if limit is not None and limit.accuracy > ours.accuracy:
        said.append(
            f"A tree that reads the private {facts.nouns} themselves gets {n.percent(limit.accuracy)}, "
            f"{n.points(limit.accuracy - ours.accuracy)} points more."
        )
    return said


def _rival(facts: Facts, ours: ScoreFacts, best: ScoreFacts) -> str:
    """What the best model that needs no private report has to say for itself."""
    what = {"public_only": "the same tree", "public_tree": "a tree of its own"}.get(best.key, "a forest")
    figure = n.percent(best.accuracy)
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
            "so public rows are trusted as they are."
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


def tags(facts: Facts) -> list[str]:
    """Short labels above the finding."""
    said = [facts.name, facts.title]
    if facts.simulated_data:
        said.append(LOUD[0])
    if facts.seeded and facts.failure is None:
        said.append(LOUD[1])
    if facts.form == "totals" and facts.failure is None:
        said.append(LOUD[2])
    return [*said, n.date(facts.created)]


def report_kind(facts: Facts) -> str:
    """The oracle or the mechanism, and what a report is made of."""
    k, L, C = facts.k, facts.n_cells, len(facts.classes)
    match facts.oracle or facts.mechanism:
        case "grr":
            size = "1 number"
        case "olh":
            size = "a hash and 1 number"
        case "laplace" | "discrete_laplace":
            size = f"{n.count(L * C)} numbers"
        case "randomized_response":
            size = f"{n.count(L + 1)} bits and a label"
        case _:
            size = f"{n.count(k)} bits"
    return f"{(facts.oracle or facts.mechanism).replace('_', ' ')}, {size}"


def tiles(facts: Facts) -> list[Tile]:
    """The strip of figures under the finding."""
    private = f"private {rows_of(facts)}"
    is_sum = facts.form == "totals"
    sent = "the sum of their reports drawn" if is_sum else "one report each"
    who = f"{private}, {sent}" if facts.holder == "row" else f"holders of {private}, {sent}"
    return [
        Tile(figure=n.count(facts.n_private), label=who),
        Tile(figure=n.count(facts.n_public), label=f"public {rows_of(facts)}"),
        Tile(
            figure=n.epsilon(facts.epsilon_spent),
            label=("claimed for each report, " if is_sum else "spent by each holder, ")
            + n.times(facts.rounds),
        ),
        Tile(figure=f"1 of {n.count(facts.k)}", label=f"values in a report ({report_kind(facts)})"),
    ]
