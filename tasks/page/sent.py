"""What a report says and how it is randomised, mechanism by mechanism, in words that a privacy officer can repeat.

What that promises is in `privacy`.
"""

from __future__ import annotations

from tasks.page import numbers as n
from tasks.page.mended_facts import MendedFacts
from tasks.page.number_facts import NumberFacts
from tasks.page.places import number_words
from tasks.page.run_facts import RunFacts


def sent(facts: RunFacts) -> tuple[str, ...]:
    """What one report says, how it leaves, and how many were written."""
    said = f"{_question(facts)} {_coins(facts)}".rstrip()
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


def _question(facts: RunFacts) -> str:
    """What is said before any noise."""
    label = f"its {facts.target}" if facts.target else "its label"
    kind = (
        "" if facts.n_cells == 1 else f"which of {n.count(facts.n_cells)} kinds of {facts.noun} it is, and "
    )
    first = (
        "One report" if facts.rounds == 1 else "Two reports; the first was about a finer division. The second"
    )
    if isinstance(facts, MendedFacts):
        one = f"Together that is one value of {n.count(facts.k)}, one of which stands for anything else."
        return f"{first}: {kind}{_error(facts)} {one}"
    if isinstance(facts, NumberFacts):
        label += _moved(facts)
        if facts.mechanism.startswith("number_"):
            return f"{first}: {kind}{label}."
    spare = (
        ", one of which stands for anything else" if facts.k == facts.n_cells * len(facts.classes) + 1 else ""
    )
    return f"{first}: {kind}{label}. Together that is one value of {n.count(facts.k)}{spare}."


def _error(facts: MendedFacts) -> str:
    """How far the public model is off, as it is reported."""
    half = (
        facts.measure.bare(facts.residual_range)
        if facts.label == "number"
        else number_words(facts.residual_range)
    )
    ends = f"between {n.MINUS}{half} and {half}"
    ends += f"{n.FIXED}{facts.unit}" if facts.unit else ""
    if facts.n_levels == 2:
        rounded = "rounded at random to one of these two ends, so that averages stay exact"
    else:
        rounded = f"rounded at random to one of {n.count(facts.n_levels)} equally spaced levels, so that averages stay exact"
    if facts.label == "number":
        target = facts.target or "label"
        return (
            f"how far the public model is off, its {target} less what the model predicts, {ends} (moved to the nearer end where "
            f"it lies outside), {rounded}."
        )
    of = f"“{facts.positive}”" if facts.positive is not None else "one class"
    drawn = (
        ""
        if facts.positive is not None
        else (
            f" The class is one of {n.count(len(facts.outputs))}, drawn at random by each holder, whatever its "
            f"{facts.target or 'label'} is, and sent along as it is."
        )
    )
    is_it = "it" if facts.positive is not None else "that class"
    return (
        f"how far the public model is off: 1 if the {facts.target or 'label'} is {of} and 0 if not, less the share that the "
        f"model gives {is_it}, {ends}, {rounded}.{drawn}"
    )


def _moved(facts: NumberFacts) -> str:
    """What happens to a number before it is a label."""
    ends = f"{number_words(facts.label_range.low)} to {number_words(facts.label_range.high)}"
    ends += f"{n.FIXED}{facts.unit}" if facts.unit else ""
    moved = f", moved to the nearer end where it lies outside {ends}"
    if facts.mechanism.startswith("number_"):
        return moved
    if len(facts.classes) == 2:
        return f"{moved}, then rounded at random to one of these two ends, so that averages stay exact"
    return (
        f"{moved}, then rounded at random to one of {n.count(len(facts.classes))} equally spaced levels, so that "
        "averages stay exact"
    )


def _coins(facts: RunFacts) -> str:
    """How the true value is hidden."""
    if facts.mechanism == "number_laplace":
        return _number_laplace(facts)
    if facts.noise_sd is not None:
        return _added(facts)
    if facts.p is None or facts.q is None:
        return ""
    kept, other = _chance(facts.p), _chance(facts.q)
    if facts.mechanism == "number_response":
        return _number_response(facts, kept, other)
    if facts.mechanism == "signed_subset":
        return _signed_subset(facts, kept, other)
    if facts.label_p is not None:
        return (
            f"It leaves as {n.count(facts.n_cells + 1)} bits, one for each kind and one for none, and a label apart: "
            f"the true kind's bit is set with probability {kept}, every other one with probability {other}, and the label is "
            f"the true one with probability {_chance(facts.label_p)}."
        )
    if facts.oracle == "olh":
        return (
            f"It leaves as a hash function drawn at random, and one of the values it can take: the true value's hash or "
            f"another one, so that the true value is among those that fit with probability {kept}, every other one with "
            f"probability {other}."
        )
    if facts.oracle == "grr":
        return (
            f"Before it leaves, the true value is kept with probability {kept}, "
            f"and otherwise replaced by one of the others, each with probability {other}."
        )
    if facts.oracle == "ss":
        size = n.count(round(facts.p + (facts.k - 1) * facts.q))
        return (
            f"It leaves as a set of {size} of these values, drawn at random: the true one is among them with "
            f"probability {kept}, every other one with probability {other}."
        )
    return (
        f"It leaves as {n.count(facts.k)} bits, each tossed at random: the true value's bit "
        f"is set with probability {kept}, every other one with probability {other}."
    )


def _signed_subset(facts: RunFacts, kept: str, other: str) -> str:
    assert facts.p is not None
    assert facts.q is not None
    assert facts.label_p is not None
    kinds, size = facts.n_cells + 1, facts.p + facts.n_cells * facts.q
    label = "end" if isinstance(facts, NumberFacts) else "label"
    return (
        f"It leaves as a set of {n.count(round(size))} of {n.count(kinds)} kinds (one stands for anything else), drawn at "
        f"random, each with one of the two {label}s and never with both: the true kind is among them with probability {kept}, "
        f"and then has the true {label} with probability {_chance(facts.label_p)}; every other kind is among them with "
        f"probability {other}, and its {label} is a fair coin."
    )


def _added(facts: RunFacts) -> str:
    assert facts.noise_sd is not None
    noise = "Laplace" if facts.mechanism == "laplace" else "discrete Laplace"
    kind = "numbers" if facts.mechanism == "laplace" else "whole numbers"
    cells = n.count(facts.n_cells * len(facts.classes))
    said = (
        f"It leaves as {cells} {kind}: a 0 or a 1 for each kind, and for each kind with a given label, each with {noise} "
        f"noise of its own added (standard deviation {n.decimal(facts.noise_sd)})."
    )
    return f"{said} {DEVICE}" if facts.mechanism == "laplace" else said


def _number_response(facts: RunFacts, kept: str, other: str) -> str:
    assert isinstance(facts, NumberFacts)
    noise = (
        ""
        if facts.label_noise_sd is None
        else f", standard deviation {facts.measure.value(facts.label_noise_sd)}"
    )
    return (
        f"It leaves as {n.count(facts.n_cells + 1)} bits, one for each kind and one for none, and a number apart: "
        f"the true kind's bit is set with probability {kept}, every other one with probability {other}, and the number is "
        f"the {facts.target or 'label'} with noise added (discrete Laplace in steps of its range{noise})."
    )


def _number_laplace(facts: RunFacts) -> str:
    assert isinstance(facts, NumberFacts)
    deviations = [
        *([] if facts.noise_sd is None else [f"{n.decimal(facts.noise_sd)} of a {facts.noun} for the kind"]),
        *(
            []
            if facts.label_noise_sd is None
            else [f"{facts.measure.value(facts.label_noise_sd)} for the label"]
        ),
    ]
    of = f" (standard deviation {n.listed(deviations)})" if deviations else ""
    return (
        f"It leaves as {n.count(2 * facts.n_cells)} numbers, two for each kind: whether it is this one, and how far the label "
        f"lies from the middle of its range if so, each with Laplace noise of its own added{of}. {DEVICE}"
    )


DEVICE = (
    "This noise is a simulation device: in floating-point numbers some outputs give their input away, so "
    "no real holder may send such a report (discrete_laplace is the same without the leak)."
)


def _chance(probability: float) -> str:
    return n.decimal(probability, 3 if probability >= 0.01 else 5)
