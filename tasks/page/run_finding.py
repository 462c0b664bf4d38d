"""What both kinds of page begin with: tags, figures under the finding, what a stopped run says, and how two models compare.

The finding itself is in `finding` (classes) and `number_finding` (numbers).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tasks.page import numbers as n
from tasks.page.model_facts import ModelScore
from tasks.page.run_facts import RunFacts
from tasks.page.run_words import rows_of

Verdict = Literal["better", "worse", "level"]

LOUD = ("simulated data", "seeded noise: protects nobody", "sums drawn: no report written")


@dataclass(frozen=True, kw_only=True)
class Tile:
    """One figure of the strip under the finding."""

    figure: str
    label: str


def verdict(facts: RunFacts, other: ModelScore) -> Verdict:
    """Whether ours is better or worse than `other` beyond what the choice of test rows explains."""
    assert facts.ours is not None
    ours, low, high = facts.ours, 0.0, 0.0
    if other.lead is not None:
        low, high = other.lead.low, other.lead.high
    elif ours.interval is not None and other.interval is not None:
        low, high = ours.interval.low - other.interval.high, ours.interval.high - other.interval.low
        low, high = (-high, -low) if ours.smaller_is_better else (low, high)
    return "better" if low > 0 else "worse" if high < 0 else "level"


def against_reference(facts: RunFacts, reference: ModelScore) -> str:
    """How a sentence on one answer for all ends."""
    return {
        "better": ".",
        "level": ": the model is not measurably better than that.",
        "worse": ": the model is worse than that.",
    }[verdict(facts, reference)]


def told_apart(
    one: float, other: float, written: Callable[[float, int], str], first: int = 1, more: int = 2
) -> tuple[str, str]:
    """Two figures with as many decimals as it takes to see which is larger, `more` than `first` at most."""
    for digits in range(first, first + more + 1):
        if written(one, digits) != written(other, digits):
            break
    else:
        digits = first
    return written(one, digits), written(other, digits)


def failed_headline(facts: RunFacts) -> str:
    """What stopped the run."""
    assert facts.failure is not None
    broken = [check for check in facts.checks if not check.ok and check.severity == "stop"]
    drawn = facts.epsilon_spent > 0
    end = "no model was made" if drawn else "nothing was learned from anyone"
    if facts.failure.step == "validate" and broken:
        failed = "1 check failed" if len(broken) == 1 else f"{n.count(len(broken))} checks failed"
        return f"Stopped at validation: {failed}, and {end}."
    return f"Stopped at {facts.failure.step}: {end}."


def failed_lead(facts: RunFacts) -> list[str]:
    """Whether a stopped run cost anybody anything."""
    assert facts.failure is not None
    if facts.epsilon_spent > 0:
        return [
            f"Holders had already reported: each has spent {n.epsilon(facts.epsilon_spent)}. "
            "Their reports are kept, and the same command goes on from them."
        ]
    return ["No report was drawn, so no holder's privacy was spent."]


def tags(facts: RunFacts) -> list[str]:
    """Short labels above the finding."""
    said = [facts.name, facts.title]
    if facts.simulated_data:
        said.append(LOUD[0])
    if facts.seeded and facts.failure is None:
        said.append(LOUD[1])
    if facts.form == "totals" and facts.failure is None:
        said.append(LOUD[2])
    return [*said, n.date(facts.created)]


def report_kind(facts: RunFacts) -> str:
    """The oracle or the mechanism, and what a report is made of."""
    k, L, C = facts.k, facts.n_cells, len(facts.classes)
    match facts.oracle or facts.mechanism:
        case "grr":
            size = "1 number"
        case "olh":
            size = "a hash and 1 number"
        case "number_response":
            size = f"{n.count(L + 1)} bits and a number"
        case "number_laplace":
            size = f"{n.count(2 * L)} numbers"
        case "laplace" | "discrete_laplace":
            size = f"{n.count(L * C)} numbers"
        case "signed_subset":
            size = f"{n.count(2 * (L + 1))} bits"
        case "randomized_response":
            size = f"{n.count(L + 1)} bits and a label"
        case _:
            size = f"{n.count(k)} bits"
    return f"{(facts.oracle or facts.mechanism).replace('_', ' ')}, {size}"


def tiles(facts: RunFacts) -> list[Tile]:
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
        _content(facts),
    ]


def _content(facts: RunFacts) -> Tile:
    if facts.mechanism.startswith("number_"):
        return Tile(
            figure=f"1 of {n.count(facts.n_cells)}",
            label=f"kinds and a number in a report ({report_kind(facts)})",
        )
    return Tile(figure=f"1 of {n.count(facts.k)}", label=f"values in a report ({report_kind(facts)})")
