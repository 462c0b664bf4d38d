"""What left a holder's hands, and what it reveals: questions and answers that a privacy officer can repeat.

Two figures are worked out here, the factor e^eps and the budget of someone with two rows; the rest is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tasks.page import numbers as n
from tasks.page.basic_facts import InfluenceFacts
from tasks.page.mended_facts import MendedFacts
from tasks.page.mended_words import POINTS
from tasks.page.number_facts import NumberFacts
from tasks.page.run_facts import RunFacts
from tasks.page.sent import sent


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A question about privacy, and what can be said to it."""

    question: str
    sentences: tuple[str, ...]


def answers(facts: RunFacts) -> list[Answer]:
    """What a privacy officer can repeat, question by question."""
    said = [
        Answer(question="What was sent", sentences=sent(facts)),
        Answer(question="What that promises", sentences=_promise(facts)),
        Answer(question="Who one holder is", sentences=_holder(facts)),
        *([Answer(question="What was spent", sentences=_spent(facts))] if facts.largest_spend else []),
        Answer(question="Where the noise came from", sentences=_noise(facts)),
    ]
    if facts.influence is not None:
        said.append(Answer(question="If holders are dishonest", sentences=_influence(facts, facts.influence)))
    return [*said, Answer(question="What is not protected", sentences=_open(facts))]


def _promise(facts: RunFacts) -> tuple[str, ...]:
    factor = math.exp(facts.epsilon)
    shown = n.decimal(factor, 1) if factor < 1000 else n.count(factor)
    is_sum = facts.form == "totals"
    received = "Whatever report were received" if is_sum else "Whatever was received"
    tossed = "a holder would toss the coins with" if is_sum else "the coins are really tossed with"
    said = (
        f"{received}, any two {facts.nouns} could have sent it, with probabilities that differ "
        f"at most by a factor of {shown}: that is what {n.epsilon(facts.epsilon)} claims. Recomputed from "
        f"the integers that {tossed}: {n.exact_epsilon(facts.epsilon_exact)}."
    )
    if facts.mechanism in ("laplace", "number_laplace"):
        said += " That holds for real numbers, and not for the floating-point numbers that were drawn."
    if is_sum:
        return (said, "That is said of reports. Of the sums drawn in this run it promises nothing.")
    if facts.rounds != 1 or facts.epsilon_spent != facts.epsilon:
        said += f" Spent by each holder: {n.epsilon(facts.epsilon_spent)}, {n.times(facts.rounds)}."
    return (said,)


def _holder(facts: RunFacts) -> tuple[str, ...]:
    if facts.holder == "row":
        return (
            f"One {facts.noun}: the configuration declares that each is a person's only one. Someone with "
            f"two of them in the data is protected only with {n.epsilon(2 * facts.epsilon)}.",
        )
    return (
        f"Everyone with the same “{facts.holder}”. Each reports on one of their {facts.nouns}, "
        "drawn on their own side.",
    )


def _spent(facts: RunFacts) -> tuple[str, ...]:
    would = "would spend" if facts.form == "totals" else "spends"
    within = "with this noise seed in this work folder" if facts.seeded else "in this work folder"
    said = (
        f"Each holder asked in this run {would} {n.epsilon(facts.epsilon_spent)}. The largest spend of any holder, over "
        f"everything asked {within}, is {n.epsilon(facts.largest_spend)}, "
        f"on {n.plural(facts.n_questions, 'question', 'questions')}."
    )
    if facts.lifetime_epsilon is None:
        return (
            f"{said} No lifetime cap was stated (privacy.lifetime_epsilon): spending is counted, and not refused.",
        )
    return (
        f"{said} Nobody may spend more than {n.epsilon(facts.lifetime_epsilon)} in all: a run that would make them is refused "
        "before anybody is asked.",
    )


def _noise(facts: RunFacts) -> tuple[str, ...]:
    if facts.seeded:
        return (
            "From a seed: this is a simulation whose noise anyone with the seed can take away again, "
            "so it protects nobody. Without a seed, the noise is the operating system's.",
        )
    drawn = "sums" if facts.form == "totals" else "reports"
    return (f"From the operating system of whoever drew the {drawn}. It cannot be drawn again.",)


def _influence(facts: RunFacts, force: InfluenceFacts) -> tuple[str, ...]:
    # A total is of a cell and a label, so no more cells than there are.
    where = (
        "in every cell at once"
        if force.at_once >= facts.n_cells
        else f"in up to {n.plural(force.at_once, 'cell', 'cells')} of their choice at once"
    )
    if math.isinf(force.one):
        return (f"One who sends what they like can move every total as far as they like, {where}.",)
    held = force.one_percent / max(facts.n_private, 1)
    said = (
        f"One who sends what they like counts for up to {n.decimal(force.one, 1)} honest holders, {where}. "
        f"1{n.NARROW}% of them together count for up to {n.count(force.one_percent)}, "
        f"{n.percent(held)} of all who reported."
    )
    if isinstance(facts, MendedFacts) and facts.push is not None:
        return (said, _mended_push(facts, facts.push))
    return (said, _push(facts)) if isinstance(facts, NumberFacts) and facts.push is not None else (said,)


def _mended_push(facts: MendedFacts, push: float) -> str:
    """The same in what a correction is measured in."""
    measure = POINTS if facts.label == "class" else facts.measure
    unit = 100.0 if facts.label == "class" else 1.0
    n_asked = facts.n_private / len(facts.outputs)
    size = max(n_asked / max(facts.n_cells, 1), 1.0)
    many = math.ceil(facts.n_private / 100) * push  # who is dishonest draws what they like
    where = f"a cell of average size ({n.count(size)} reports)" if facts.n_cells > 1 else "all reports"
    return (
        f"In a correction's unit: one moves the mean error that the reports of {where} give by up to "
        f"{measure.at_least(unit * push / size)}; 1{n.NARROW}% of them together by up to {measure.at_least(unit * many / size)}, "
        "before cells lean on each other."
    )


def _push(facts: NumberFacts) -> str:
    """The same in the label's unit."""
    assert facts.push is not None
    size = facts.n_private / max(facts.n_cells, 1)
    many = math.ceil(facts.n_private / 100) * facts.push
    where = f"a cell of average size ({n.count(size)} {facts.nouns})"
    return (
        f"In the label's unit: one moves the sum of “{facts.target}” over a cell by up to {facts.measure.value(facts.push)}, "
        f"which is {facts.measure.at_least(facts.push / max(size, 1))} on the mean that the reports of {where} give; "
        f"1{n.NARROW}% of them together by up to {facts.measure.at_least(many / max(size, 1))}, before cells lean on each other. "
        "No prediction leaves the label's range."
    )


def _open(facts: RunFacts) -> tuple[str, ...]:
    said = [
        f"That someone took part. What is true of {facts.nouns} in general: that is what the model is for."
    ]
    if facts.where:
        said.append(f"That “{facts.where}” is true of whoever took part, for no one else was asked.")
    if facts.public_columns:
        names = n.listed([f"“{name}”" for name in facts.public_columns])
        said.append(
            f"{names}, which tells public {facts.nouns} from private ones: taken as known of everyone."
        )
    said.append(f"The {_of(facts.n_public, 'public', facts)}, in any way.")
    if facts.is_evaluated:
        said += _compared(facts)
    return tuple(said)


def _compared(facts: RunFacts) -> tuple[str, str]:
    """What the comparisons cost, and what of this run is a release nevertheless."""
    is_release = facts.form == "reports" and not facts.seeded
    return (
        f"The private {facts.nouns} behind the comparisons on this page. To make them, every private {facts.noun} of this "
        "run was read as it is, without noise, as only a simulation may: "
        f"the {_of(facts.n_test, 'private', facts)} held back, and those that were asked.",
        "So this page itself is no ε-LDP release"
        + ("; the reports and the model are. " if is_release else ". ")
        + "A release has evaluate = false, and a page with no scores.",
    )


def _of(number: int, zone: str, facts: RunFacts) -> str:
    return f"{n.count(number)} {zone} {facts.noun if number == 1 else facts.nouns}"
