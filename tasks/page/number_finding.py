"""The finding on numbers: where and by how much private people differ from the public rows, each sentence true of the run.

A sentence on a difference rests on its posterior standard deviation, one that compares two models on the paired interval of
their squared errors. "Nothing found" and "worse" are findings too.
"""

from __future__ import annotations

from tasks.page import numbers as n
from tasks.page.basic_facts import CLEAR, DiscrepancyFacts
from tasks.page.model_facts import ModelScore
from tasks.page.number_facts import NumberCell, NumberFacts
from tasks.page.run_facts import RunFacts
from tasks.page.run_finding import (
    LOUD,
    against_reference,
    failed_headline,
    failed_lead,
    tags,
    tiles,
    told_apart,
    verdict,
)
from tasks.page.run_words import cell_label, rows_of


def headline(facts: NumberFacts) -> str:
    """The finding in one sentence with its figures."""
    if facts.failure is not None:
        return failed_headline(facts)
    reports = (
        f"{n.plural(facts.n_private, 'private report', 'private reports')} on {rows_of(facts)} "
        f"at {n.epsilon(facts.epsilon)}"
    )
    is_one = facts.n_private == 1
    found = facts.discrepancy
    if found is None:
        return _fitted(facts, reports, "gives" if is_one else "give")
    if not found.is_found:
        return (
            f"{reports} {'shows' if is_one else 'show'} no difference in {facts.target} between private "
            f"{facts.nouns} and the public ones beyond {'its' if is_one else 'their'} noise{_hidden(facts, found)}."
        )
    return f"{reports} {'shows' if is_one else 'show'} {_difference(facts, found)}."


def _hidden(facts: NumberFacts, found: DiscrepancyFacts) -> str:
    """How large a difference the noise could hide on average: two standard deviations."""
    if found.sd <= 0:
        return ""
    return f", which could hide one of {facts.measure.value(2 * found.sd)} on average"


def _difference(facts: NumberFacts, found: DiscrepancyFacts) -> str:
    """What was found, where it is clearest."""
    than = "than the public rows say"
    is_clear = abs(found.mean) >= CLEAR * found.sd
    overall = f"{facts.target} {_by(facts, found.mean, found.sd)} {than}"
    peak = _peak(facts) if found.varies and facts.n_cells > 1 else None
    if peak is None:
        if is_clear:
            return f"{overall}, {'on average' if found.varies else 'about equally everywhere'}"
        return f"that {facts.target} differs from what the public rows say, but in no place beyond its error"
    assert peak.difference is not None
    assert peak.difference_sd is not None
    where = cell_label(peak, facts, most=3)
    if is_clear:
        is_same = (peak.difference > 0) == (found.mean > 0)
        most = "most" if is_same else "but " + _direction(peak.difference)
        there = f"{facts.measure.at_least(abs(peak.difference))} ({facts.measure.error(peak.difference_sd)})"
        return f"{overall} on average, {most} where {where}: by {there}"
    return (
        f"{facts.target} {_by(facts, peak.difference, peak.difference_sd)} {than} where {where}, "
        "and on average no difference"
    )


def _by(facts: NumberFacts, difference: float, sd: float) -> str:
    return f"{facts.measure.at_least(abs(difference))} ({facts.measure.error(sd)}) {_direction(difference)}"


def _direction(difference: float) -> str:
    return "higher" if difference >= 0 else "lower"


def _peak(facts: NumberFacts) -> NumberCell | None:
    """The cell whose difference is furthest from 0 beyond its error; None where none is."""

    def beyond(cell: NumberCell) -> float:
        return abs(cell.difference or 0.0) - CLEAR * (cell.difference_sd or 0.0)

    best = max(facts.cells, key=lambda cell: (beyond(cell), cell.share_private))
    return best if beyond(best) > 0 else None


def _fitted(facts: NumberFacts, reports: str, give: str) -> str:
    """The heading where no difference was asked for."""
    tree = f"a tree with {n.plural(len(facts.cells), 'cell', 'cells')}"
    if facts.ours is None:
        return f"From {reports}, {tree} now predicts {facts.target}."
    public = facts.baseline("public_only")
    if public is None:
        return f"{reports} {give} {tree} that predicts {facts.target} with a mean squared error of {_mse(facts.ours)}."
    before, ours = two_errors(public, facts.ours)
    return (
        f"{reports} {give} a tree with a mean squared error of {ours} in {facts.target}, and public rows alone one "
        f"of {before}."
    )


def lead(facts: NumberFacts) -> list[str]:
    """The paragraph under the finding: how the difference is spread, what it is worth, what is against it."""
    if facts.failure is not None:
        return failed_lead(facts)
    said = [sentence for sentence in (_predictions(facts), _spread(facts)) if sentence]
    if facts.ours is None:
        said.append(
            "How good the predictions are, this run does not know: "
            "no private row was held back, so there is no score here."
        )
        return said
    return said + comparisons(facts, facts.ours)


def _predictions(facts: NumberFacts) -> str:
    value = facts.measure.value
    if len(facts.cells) == 1:
        cell = facts.cells[0]
        return (
            f"The tree has one cell and predicts {value(cell.value)} {facts.measure.error(cell.value_sd)} "
            f"for every {facts.noun}."
        )
    low, high = min(cell.value for cell in facts.cells), max(cell.value for cell in facts.cells)
    asked = (
        f" Reports were asked about {n.plural(facts.n_cells, 'cell', 'cells')}, which public rows part further."
        if facts.n_cells < len(facts.cells)
        else ""
    )
    return f"The tree's {n.count(len(facts.cells))} cells predict {facts.target} from {facts.measure.span(low, high)}.{asked}"


def _spread(facts: NumberFacts) -> str:
    """How the difference runs over the cells; what follows where none was found."""
    found = facts.discrepancy
    if found is None:
        return ""
    if not found.is_found:
        return (
            f"The reports give no reason to think that private {facts.nouns} differ from the public ones, "
            "so public rows are trusted as they are, and the reports count as more of the same. "
            "That is no proof that they are alike: every ± has what the noise could hide in it."
        )
    known = [cell.difference for cell in facts.cells if cell.difference is not None]
    if not (known and found.varies):
        return ""
    ends = facts.measure.span(min(known), max(known), signed=True)
    average = facts.measure.value(found.mean, signed=True)
    return (
        f"Private less public is {ends} depending on the cell, {average} {facts.measure.error(found.sd)} "
        "on average."
    )


RIVALS = {"public_tree": "a tree of its own", "public_forest": "a forest"}


def comparisons(facts: RunFacts, ours: ModelScore) -> list[str]:
    """How the model does beside those without private reports, without noise and without privacy."""
    said = []
    public = facts.baseline("public_only")
    if public is not None:
        said.append(_against_public(facts, ours, public))
    rivals = [score for key in RIVALS if (score := facts.baseline(key))]
    best = min(rivals, key=lambda score: score.figure, default=None)
    if best is not None:
        said.append(_rival(facts, ours, best))
    constant = facts.baseline("constant")
    if constant is not None and verdict(facts, constant) != "better":
        said.append(
            f"Always predicting the mean of the public labels has {_mse(constant)}"
            f"{against_reference(facts, constant)}"
        )
    noiseless, limit = facts.baseline("no_noise"), facts.baseline("non_private")
    if noiseless is not None and noiseless.figure < ours.figure:
        said.append(f"Without noise in the reports it would be {two_errors(noiseless, ours)[0]}.")
    if limit is not None and limit.figure < ours.figure:
        said.append(
            f"A tree that reads the private {facts.nouns} themselves gets {two_errors(limit, ours)[0]}."
        )
    return said


def _against_public(facts: RunFacts, ours: ModelScore, public: ModelScore) -> str:
    before, now = two_errors(public, ours)
    rows = f"On {rows_of(facts, facts.n_scored)} held back"
    found = verdict(facts, public)
    if found == "level":
        return (
            f"{rows} the mean squared error is {now} with the reports and {before} without them: "
            "no difference that these test rows can tell."
        )
    if found == "worse":
        return f"{rows} the reports make the model worse: a mean squared error of {now}, up from {before}."
    less = 1 - ours.figure / public.figure
    return (
        f"{rows} the mean squared error is {now} with the reports and {before} without them, "
        f"{n.percent(less, 0 if less >= 0.1 else 1 if less >= 0.001 else 3)} less."
    )


def _rival(facts: RunFacts, ours: ModelScore, best: ModelScore) -> str:
    """What the better model of its own that needs no private report has to say for itself."""
    what = RIVALS[best.key]
    figure = two_errors(best, ours)[0]
    against = verdict(facts, best)
    if against == "better":
        return f"No other model from public rows alone does as well: the best of them, {what}, gets {figure}."
    if against == "worse":
        return f"But {what} from public rows alone does better, with no private report: {figure}."
    return (
        f"The best other model from public rows alone, {what}, gets {figure}: "
        "too near to say on these test rows which of the two is better."
    )


def _mse(score: ModelScore) -> str:
    return n.fixed(score.figure, n.digits_of(score.figure))


def two_errors(one: ModelScore, other: ModelScore) -> tuple[str, str]:
    """Two errors in as many decimals as tell them apart."""
    return told_apart(
        one.figure, other.figure, n.fixed, first=n.digits_of(min(one.figure, other.figure) or 1.0), more=6
    )


__all__ = ["LOUD", "comparisons", "headline", "lead", "tags", "tiles", "two_errors"]
