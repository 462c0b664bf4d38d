"""Semi-feature local differential privacy in words that a privacy officer can repeat: what left a holder's hands in a run in
rounds, what that promises, and what is not protected.
"""

from __future__ import annotations

import math

from tasks.page import numbers as n
from tasks.page.privacy import Answer
from tasks.page.privacy import answers as of_any_run
from tasks.page.rounds_facts import RoundsFacts

AS_ANYWHERE = ("Where the noise came from",)
"""Answers that every kind of run gives alike."""


def answers(facts: RoundsFacts) -> list[Answer]:
    """Question by question."""
    alike = {answer.question: answer for answer in of_any_run(facts) if answer.question in AS_ANYWHERE}
    said = [
        Answer(question="What was sent", sentences=_sent(facts)),
        Answer(question="What is protected", sentences=(_protected(facts), *_promise(facts))),
        Answer(question="What is not protected", sentences=_open(facts)),
        Answer(question="Who one holder is", sentences=_holder(facts)),
        *([Answer(question="What was spent", sentences=_spent(facts))] if facts.largest_spend else []),
    ]
    return [*said, *alike.values()]


def _sent(facts: RoundsFacts) -> tuple[str, ...]:
    rounds = n.plural(len(facts.asked), "round", "rounds")
    if facts.most_rounds == 1:
        each = "Each holder was asked in one of them at most, with the whole epsilon"
        each += f"; {n.count(facts.n_never_asked)} were asked nothing." if facts.n_never_asked else "."
    else:
        each = f"Each holder answered up to {n.count(facts.most_rounds)} questions, and the epsilons of their answers add up."
    if len(facts.asked) == 1:
        return (f"One question, put to {n.count(facts.asked[0].n_asked)} holders. {_roles()}",)
    return (f"Questions in {rounds}, each published before it was answered. {each} {_roles()}",)


def _roles() -> str:
    return (
        "Whom a question was put to depends on public coins and on what was published before, never on a protected value. "
        "Nothing else was sent but what is shown."
    )


def _protected(facts: RoundsFacts) -> str:
    private = [feature.name for feature in facts.protected]
    label = facts.target.replace("_", " ")
    if facts.mask_release != "all":
        return f"The label ({label}), every feature, and which of them a holder protects."
    if not private:
        return f"The label ({label}). No feature is protected in this run."
    if facts.own_choice:
        return f"The label ({label}), and of {n.listed(private)} what each holder marked as their own."
    return f"The label ({label}), and {n.listed(private)}."


def _promise(facts: RoundsFacts) -> tuple[str, ...]:
    factor = math.exp(facts.epsilon)
    shown = n.decimal(factor, 1) if factor < 1000 else n.count(factor)
    less = {
        "all": " that show the same",
        "cells": " that could be in the same cells",
        "none": "",
    }[facts.mask_release]
    said = (
        f"Take any two {facts.nouns}{less}, however they differ in what is protected. Whatever was "
        f"received in all rounds together, either could have sent it, with probabilities that differ at most by a factor of "
        f"{shown}: that is semi-feature local differential privacy with {n.epsilon(facts.epsilon)}."
    )
    spent = (
        f"No holder spent more than {n.epsilon(facts.epsilon)} in this run. Recomputed from the integers that the coins are "
        f"really tossed with, the most that any holder spent: {n.exact_epsilon(facts.epsilon_exact)}."
    )
    if any(one.mechanism == "laplace" for one in facts.asked):
        spent += (
            " That holds for real numbers, and not for the floating-point Laplace noise that was drawn: it is a simulation "
            "device, and no real holder may send such a report."
        )
    return (said, spent)


def _open(facts: RoundsFacts) -> tuple[str, ...]:
    said = [
        f"That someone took part, and what is true of {facts.nouns} in general: that is what the model is for."
    ]
    if facts.mask_release == "all":
        said.append(
            "What a holder shows: everybody can see it, exactly, and link it with whatever else is known of them. It can tell "
            "about what is protected wherever the two go together; of that nothing is promised."
        )
        if facts.own_choice:
            said.append(
                "The mask: which features a holder protects is published with what they show. Where that says something itself "
                "(only people with a reason hide it), HistOfTree can keep it back (histoftree.mask_release), at a cost."
            )
    elif facts.mask_release == "cells":
        said.append(
            "The cells a holder could be in, which each sent with their answer: from these, part of the mask and of what is not "
            "protected can be read."
        )
    if facts.public_columns:
        names = n.listed([f"“{name}”" for name in facts.public_columns])
        said.append(
            f"{names}, which tells public {facts.nouns} from private ones: taken as known of everyone."
        )
    if facts.where:
        said.append(f"That “{facts.where}” is true of whoever took part, for no one else was asked.")
    said.append(
        f"The {n.count(facts.n_public)} public {facts.noun if facts.n_public == 1 else facts.nouns}, in any way."
    )
    if facts.is_evaluated:
        said.append(
            f"The private {facts.nouns} behind the comparisons on this page: only a simulation may read them; this page itself "
            "is no release. A release has evaluate = false, and a page with no scores."
        )
    return tuple(said)


def _spent(facts: RoundsFacts) -> tuple[str, ...]:
    within = "with this noise seed in this work folder" if facts.seeded else "in this work folder"
    said = (
        f"The ledger charged every holder {n.epsilon(facts.epsilon)} before the first question, whoever was asked in the end. "
        f"The largest spend of any holder, over everything asked {within}, is {n.epsilon(facts.largest_spend)}, on "
        f"{n.plural(facts.n_questions, 'collection (the rounds of a run are one)', 'collections (the rounds of a run are one)')}."
    )
    cap = (
        "No lifetime cap was stated (privacy.lifetime_epsilon): spending is counted, and not refused."
        if facts.lifetime_epsilon is None
        else f"Nobody may spend more than {n.epsilon(facts.lifetime_epsilon)} in all: a run that would make them is refused "
        "before anybody is asked."
    )
    return (said, cap)


def _holder(facts: RoundsFacts) -> tuple[str, ...]:
    if facts.holder == "row":
        return (
            f"One {facts.noun}: the configuration declares that each is a person's only one. Someone with "
            f"two of them in the data is protected only with {n.epsilon(2 * facts.epsilon)}.",
        )
    return (
        f"Everyone with the same “{facts.holder}”. Each takes part with one of their {facts.nouns}, drawn on their own side.",
    )
