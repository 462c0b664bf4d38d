"""What a page may say on the whole: better, no practical difference, too close to call, worse, and what to use."""

from __future__ import annotations

import math

from page_truth.artifacts import Run
from page_truth.figures import (
    best_constant,
    chief,
    clear_of,
    constant_of,
    is_class,
    lead_of,
    margin,
    one_thing,
    ours,
    output_of,
    redrawn,
    reference,
)

VERDICTS = {
    "Verdict: better": ("better",),
    "Verdict: worse": ("worse",),
    "Verdict: no practical difference": ("alike",),
    "Verdict: too close to call": ("close",),
    "Not scored": ("unscored", "unscored moved", "unscored found", "unscored nothing", "unscored blind"),
}
"""What a heading may say under each verdict."""
ADVICE = ("use ours", "use public", "ask more", "too few", "redrawn", "one prediction")
FEW_PUBLIC = 20
"""Public rows below which nothing is advised."""


def verdict(run: Run) -> str:
    """What the paired difference from the best model of public rows says, beside the margin."""
    if run.scores is None:
        return "Not scored"
    low, high = lead_of(run, reference(run))
    small = margin(run)
    if -small < low and high < small:
        return "Verdict: no practical difference"
    if low > 0 or high < 0:
        return "Verdict: better" if low > 0 else "Verdict: worse"
    return "Verdict: too close to call"


def blind(run: Run) -> bool:
    """Whether the reports would have missed what a plan reckons with."""
    hidden = run.facts.get("hidden")
    return hidden is not None and not hidden["is_small"]


def check_verdict(run: Run) -> list[str]:
    """The verdict, the kind of sentence in the heading, the model that ours is held against, and the advice."""
    chip = " ".join(run.page.first("span", "chip").text.split())
    heading = next(one for one in run.page.first("h1").every() if "data-says" in one.attributes)
    faults = [] if chip == verdict(run) else [f"{chip!r} is not so, expected {verdict(run)!r}"]
    if heading.attributes["data-says"] not in VERDICTS[verdict(run)]:
        faults.append(f"heading {heading.attributes['data-says']!r} under {verdict(run)!r}")
    said = {one.attributes.get("data-says") for one in run.page.every("span")} & {*ADVICE}
    is_average = any(one.attributes.get("data-says") == "one thing" for one in run.page.every("span"))
    if is_average != (chip == "Verdict: better" and is_corrected(run) and bool(one_thing(run))):
        faults.append(f"the gain is said to be the average: {is_average}")
    if run.scores is not None and is_class(run):
        before, after = (round(score["log_loss"], 3) for score in (reference(run), ours(run)))
        is_said = any(one.attributes.get("data-says") == "log loss" for one in run.page.every("span"))
        faults += (
            [] if is_said == (after > before) else [f"log loss, {before} to {after}, is said: {is_said}"]
        )
    if said != expected_advice(run):
        faults.append(f"advice {said} under {chip!r}")
    return faults


def is_corrected(run: Run) -> bool:
    """Whether the model that ours is held against is the one that it corrects."""
    return hasattr(run.model, "corrections") and reference(run) == run.scores["scores"]["public_only"]  # type: ignore[index]


def expected_advice(run: Run) -> set[str]:
    """What the page has to say of what to use, and of the same prediction for everybody."""
    if run.scores is None:
        return set()
    key = {"better": "use ours", "too close to call": "ask more"}.get(
        verdict(run).removeprefix("Verdict: "), "use public"
    )
    few = run.facts["n_public"] < FEW_PUBLIC
    if key != "ask more" and (few or (verdict(run).endswith("difference") and blind(run))):
        key = "too few"
    said = {key, "redrawn"} if redrawn(run) else {key}
    sign, known = 1 if is_class(run) else -1, constant_of(run)
    low, high = lead_of(run, known)
    small = margin(run, known)
    is_beaten = low > 0 and high >= small and sign * (chief(run, ours(run)) - best_constant(run)) > 0
    is_constant = reference(run) == known
    return said if is_beaten or is_constant else {*said, "one prediction"}


SURE = 0.05
"""A chance below which something is said to be found."""


def found_something(run: Run) -> bool:
    """Whether the reports contradict the public model, or correct it all the same."""
    found = run.model.corrections
    return bool(found.chance <= SURE or any(p.root or p.step for p in found.priors))


def check_for_whom(run: Run) -> list[str]:
    """Whether an error found is said to be of private people in particular, or perhaps of everybody."""
    stated = {one.attributes.get("data-says") for one in run.page.every("span")} & {
        "particular",
        "by coins",
        "for everybody",
    }
    found = getattr(run.model, "corrections", None)
    expected = set()
    if found is not None and found_something(run) and not math.isnan(found.chance_alike):
        is_by_coins = run.config.dataset.rule.kind == "random"
        whom = "by coins" if is_by_coins else "particular" if found.chance_alike < SURE else "for everybody"
        description = run.facts["description"]
        shown = [description["tree"]["estimates"][output_of(run)]]
        shown += [estimate for cell in description["cells"] for estimate in cell["estimates"]]
        # nothing is said to be wrong where none of all groups is clearly off
        expected = {whom} if whom != "particular" or any(map(clear_of, shown)) else set()
    return [] if stated == expected else [f"{stated} where {expected or 'nothing'} is so"]
