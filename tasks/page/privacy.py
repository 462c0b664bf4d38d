"""What left a holder's hands, and what it reveals: questions and answers that a privacy officer can repeat.

Two figures are worked out here, the factor e^eps and the budget of someone with two rows; the rest is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tasks.page import numbers as n
from tasks.page.facts import Facts, InfluenceFacts


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A question about privacy, and what can be said to it."""

    question: str
    sentences: tuple[str, ...]


def answers(facts: Facts) -> list[Answer]:
    """What a privacy officer can repeat, question by question."""
    said = [
        Answer(question="What was sent", sentences=_sent(facts)),
        Answer(question="What that promises", sentences=_promise(facts)),
        Answer(question="Who one holder is", sentences=_holder(facts)),
        *([Answer(question="What was spent", sentences=_spent(facts))] if facts.largest_spend else []),
        Answer(question="Where the noise came from", sentences=_noise(facts)),
    ]
    if facts.influence is not None:
        said.append(Answer(question="If holders are dishonest", sentences=_influence(facts, facts.influence)))
    return [*said, Answer(question="What is not protected", sentences=_open(facts))]


def _sent(facts: Facts) -> tuple[str, ...]:
    label = f"its {facts.target}" if facts.target else "its label"
    kind = (
        "" if facts.n_cells == 1 else f"which of {n.count(facts.n_cells)} kinds of {facts.noun} it is, and "
    )
    spare = (
        ", one of which stands for anything else" if facts.k == facts.n_cells * len(facts.classes) + 1 else ""
    )
    first = (
        "One report" if facts.rounds == 1 else "Two reports; the first was about a finer division. The second"
    )
    said = f"{first}: {kind}{label}. Together that is one value of {n.count(facts.k)}{spare}."
    if facts.noise_sd is not None:
        noise = "Laplace" if facts.mechanism == "laplace" else "discrete Laplace"
        kind = "numbers" if facts.mechanism == "laplace" else "whole numbers"
        cells = n.count(facts.n_cells * len(facts.classes))
        said += (
            f" It leaves as {cells} {kind}: a 0 or a 1 for each kind, and for each kind with a given label, each with {noise} "
            f"noise of its own added (standard deviation {n.decimal(facts.noise_sd)})."
        )
        if facts.mechanism == "laplace":
            said += (
                " This noise is a simulation device: in floating-point numbers some outputs give their input away, so "
                "no real holder may send such a report (discrete_laplace is the same without the leak)."
            )
    elif facts.p is not None and facts.q is not None:
        kept, other = _chance(facts.p), _chance(facts.q)
        if facts.label_p is not None:
            said += (
                f" It leaves as {n.count(facts.n_cells + 1)} bits, one for each kind and one for none, and a label apart: "
                f"the true kind's bit is set with probability {kept}, every other one with probability {other}, and the label is "
                f"the true one with probability {_chance(facts.label_p)}."
            )
        elif facts.oracle == "olh":
            said += (
                f" It leaves as a hash function drawn at random, and one of the values it can take: the true value's hash or "
                f"another one, so that the true value is among those that fit with probability {kept}, every other one with "
                f"probability {other}."
            )
        elif facts.oracle == "grr":
            said += (
                f" Before it leaves, the true value is kept with probability {kept}, "
                f"and otherwise replaced by one of the others, each with probability {other}."
            )
        elif facts.oracle == "ss":
            size = n.count(round(facts.p + (facts.k - 1) * facts.q))
            said += (
                f" It leaves as a set of {size} of these values, drawn at random: the true one is among them with "
                f"probability {kept}, every other one with probability {other}."
            )
        else:
            said += (
                f" It leaves as {n.count(facts.k)} bits, each tossed at random: the true value's bit "
                f"is set with probability {kept}, every other one with probability {other}."
            )
    if facts.form == "reports":
        written = n.plural(facts.n_private, "such report was", "such reports were")
        return (f"{said} Nothing else is sent. {written} written.",)
    reports = n.plural(facts.n_private, "such report", "such reports")
    return (
        f"{said} Nothing else would be sent.",
        f"No report was written in this run, and no coin was tossed. Whoever drew the sums had counted the true values, "
        f"and drew from these counts, in floating-point numbers, what {reports} would add up to. "
        "That is a simulation of a collection, not a collection.",
    )


def _chance(probability: float) -> str:
    return n.decimal(probability, 3 if probability >= 0.01 else 5)


def _promise(facts: Facts) -> tuple[str, ...]:
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
    if facts.mechanism == "laplace":
        said += " That holds for real numbers, and not for the floating-point numbers that were drawn."
    if is_sum:
        return (said, "That is said of reports. Of the sums drawn in this run it promises nothing.")
    if facts.rounds != 1 or facts.epsilon_spent != facts.epsilon:
        said += f" Spent by each holder: {n.epsilon(facts.epsilon_spent)}, {n.times(facts.rounds)}."
    return (said,)


def _holder(facts: Facts) -> tuple[str, ...]:
    if facts.holder == "row":
        return (
            f"One {facts.noun}: the configuration declares that each is a person's only one. Someone with "
            f"two of them in the data is protected only with {n.epsilon(2 * facts.epsilon)}.",
        )
    return (
        f"Everyone with the same “{facts.holder}”. Each reports on one of their {facts.nouns}, "
        "drawn on their own side.",
    )


def _spent(facts: Facts) -> tuple[str, ...]:
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


def _noise(facts: Facts) -> tuple[str, ...]:
    if facts.seeded:
        return (
            "From a seed: this is a simulation whose noise anyone with the seed can take away again, "
            "so it protects nobody. Without a seed, the noise is the operating system's.",
        )
    drawn = "sums" if facts.form == "totals" else "reports"
    return (f"From the operating system of whoever drew the {drawn}. It cannot be drawn again.",)


def _influence(facts: Facts, force: InfluenceFacts) -> tuple[str, ...]:
    where = (
        "in every cell at once"
        if force.at_once >= facts.k
        else f"in up to {n.plural(force.at_once, 'cell', 'cells')} of their choice at once"
    )
    if math.isinf(force.one):
        return (f"One who sends what they like can move every total as far as they like, {where}.",)
    held = force.one_percent / max(facts.n_private, 1)
    return (
        f"One who sends what they like counts for up to {n.decimal(force.one, 1)} honest holders, {where}. "
        f"1{n.NARROW}% of them together count for up to {n.count(force.one_percent)}, "
        f"{n.percent(held)} of all who reported.",
    )


def _open(facts: Facts) -> tuple[str, ...]:
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


def _compared(facts: Facts) -> tuple[str, str]:
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


def _of(number: int, zone: str, facts: Facts) -> str:
    return f"{n.count(number)} {zone} {facts.noun if number == 1 else facts.nouns}"
