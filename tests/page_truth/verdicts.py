"""What a page may say on the whole: better, no better, nothing found."""

from __future__ import annotations

import math
from typing import Any

from page_truth.artifacts import Run
from page_truth.figures import best_constant, chief, constant_of, is_class, ours, reference

VERDICTS = {
    "Verdict: better": ("better", "beats"),
    "Verdict: worse": ("worse", "loses"),
    "Verdict: no better": ("no better", "ties"),
    "Verdict: nothing new": ("nothing new",),
    "Verdict: could not tell": ("could not tell",),
    "Verdict: no better than guessing": ("guessing",),
    "Verdict: unsure": ("unsure", "ties"),
    "Not scored": ("unscored", "unscored found", "unscored nothing", "unscored blind"),
}
"""What a heading may say under each verdict."""


def verdict(run: Run) -> str:
    """What the paired difference on the held-back rows says, and reports that correct a public model."""
    judged = judge(run)
    if run.scores is not None and guesses(run):
        return "Verdict: no better than guessing"
    if judged in ("Verdict: no better", "Verdict: unsure") and hasattr(run.model, "corrections"):
        if found_something(run):
            return judged
        return "Verdict: could not tell" if blind(run) else "Verdict: nothing new"
    return judged


def blind(run: Run) -> bool:
    """Whether the reports would have missed what a plan reckons with."""
    hidden = run.facts.get("hidden")
    return hidden is not None and not hidden["is_small"]


def is_ahead(run: Run, score: dict[str, Any], sign: int = 1) -> bool:
    """Whether ours is surely ahead of another model; with sign -1 surely behind it."""
    low, high = sorted(sign * end for end in score["lead"])
    small = 0.002 if is_class(run) else 0.01 * score["mse"]
    return low > 0 and not (-small < low and high < small)


def guesses(run: Run) -> bool:
    """Whether neither ours nor any model that is better than ours beats the best constant answer, and nothing was gained."""
    scores, sign = run.scores["scores"], 1 if is_class(run) else -1  # type: ignore[index]
    best, is_known = best_constant(run), is_ahead(run, constant_of(run))
    if is_known and (is_ahead(run, reference(run)) or sign * (chief(run, ours(run)) - best) > 0):
        return False
    return not any(
        key != "ours" and is_ahead(run, one, -1) and sign * (chief(run, one) - best) > 0
        for key, one in scores.items()
    )


def judge(run: Run) -> str:
    """What the paired difference on the held-back rows says."""
    if run.scores is None:
        return "Not scored"
    low, high = reference(run)["lead"]
    small = 0.002 if is_class(run) else 0.01 * reference(run)["mse"]
    if -small < low and high < small:
        return "Verdict: no better"
    if low > 0 or high < 0:
        return "Verdict: better" if low > 0 else "Verdict: worse"
    return "Verdict: no better" if high < small else "Verdict: unsure"


def check_verdict(run: Run) -> list[str]:
    """The verdict, and the kind of sentence in the heading."""
    chip = " ".join(run.page.first("span", "chip").text.split())
    heading = next(one for one in run.page.first("h1").every() if "data-says" in one.attributes)
    faults = [] if chip == verdict(run) else [f"{chip!r} is not so, expected {verdict(run)!r}"]
    if heading.attributes["data-says"] not in VERDICTS[verdict(run)]:
        faults.append(f"heading {heading.attributes['data-says']!r} under {verdict(run)!r}")
    said = {one.attributes.get("data-says") for one in run.page.every("span")}
    advice = said & {
        "guessing too",
        *(f"public {one}{more}" for one in ADVICE for more in ("", " so far", " here")),
    }
    if advice != expected_advice(run):
        faults.append(f"advice {advice} under {chip!r}")
    return faults


ADVICE = ("as good", "better")
FEW_SCORED, FEW_PUBLIC = 100, 20
"""Rows below which nothing is advised."""


def expected_advice(run: Run) -> set[str]:
    """What the page has to say of public rows alone, and of the same answer for everybody."""
    if run.scores is None or guesses(run):
        return set()
    sign, best = 1 if is_class(run) else -1, best_constant(run)
    is_beaten = is_ahead(run, constant_of(run)) and sign * (chief(run, ours(run)) - best) > 0
    expected = set() if is_beaten else {"guessing too"}
    key = {"Verdict: no better": "public as good", "Verdict: worse": "public better"}.get(judge(run))
    if has_better_rival(run):
        key = "public better"
    elif key is None or reference(run) == constant_of(run):
        return expected
    few = run.facts["n_public"] < FEW_PUBLIC or run.scores["n_test"] < FEW_SCORED
    if few or (key == "public as good" and blind(run)):
        key += " so far"
    elif key == "public as good" and run.facts.get("hidden") is None:
        key += " here"
    return expected | {key}


def has_better_rival(run: Run) -> bool:
    """Whether the best model from public rows alone is surely better than ours, and better than what ours is compared with."""
    assert run.scores is not None
    sign = 1 if is_class(run) else -1
    found = [v for k, v in run.scores["scores"].items() if k.startswith("public_")]
    best = max(found, key=lambda score: sign * chief(run, score))
    small = 0.002 if is_class(run) else 0.01 * best["mse"]
    is_surely = best["lead"][1] < 0 and not (-small < best["lead"][0] and best["lead"][1] < small)
    return bool(is_surely and sign * chief(run, best) > sign * chief(run, reference(run)))


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
        expected = {
            "by coins" if is_by_coins else "particular" if found.chance_alike < SURE else "for everybody"
        }
    return [] if stated == expected else [f"{stated} where {expected or 'nothing'} is so"]
