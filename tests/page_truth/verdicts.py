"""What a page may say on the whole: better, no better, nothing found."""

from __future__ import annotations

import math

from page_truth.artifacts import Run
from page_truth.figures import chief, is_class, reference

VERDICTS = {
    "Verdict: better": ("better", "beats"),
    "Verdict: worse": ("worse", "loses"),
    "Verdict: no better": ("no better", "ties"),
    "Verdict: nothing new": ("nothing new",),
    "Verdict: unsure": ("unsure", "ties"),
    "Not scored": ("unscored", "unscored found", "unscored nothing"),
}
"""What a heading may say under each verdict."""


def verdict(run: Run) -> str:
    """What the paired difference on the held-back rows says, and reports that correct a public model."""
    judged = judge(run)
    if judged in ("Verdict: no better", "Verdict: unsure") and hasattr(run.model, "corrections"):
        return judged if found_something(run) else "Verdict: nothing new"
    return judged


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
    expected = {"Verdict: no better": "public as good", "Verdict: worse": "public better"}.get(judge(run))
    if expected and has_better_rival(run):
        expected = "public better"
    hidden = run.facts.get("hidden")
    if expected == "public as good" and hidden is not None and not hidden["is_small"]:
        expected = "public as good so far"
    advice = {one.attributes.get("data-says") for one in run.page.every("span")} & {
        "public as good",
        "public as good so far",
        "public better",
    }
    if advice != {expected} - {None}:
        faults.append(f"advice {advice} under {chip!r}")
    return faults


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
