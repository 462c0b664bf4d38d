"""The spending of a planned run, in a figure and a sentence."""

from __future__ import annotations

from flows.budget import Spent
from flows.run_plan.look import NO_ROOM, PlanExecutor
from schemas.config import RunConfig

REFUSED = "the run is refused before any holder is asked: nothing would be spent"
A_TRIAL = "a trial, which charges no ledger; as a release, "
FREE = "no holder would be asked: nothing is spent"


def _without_room(config: RunConfig, lines: list[dict[str, str]]) -> str | None:
    """The fault where the ledger has no room for a new question and it is not known whether this is one; else None."""
    if not any(line["why"].endswith(NO_ROOM) for line in lines):
        return None
    return (
        f"the ledger has no room for epsilon {config.privacy.epsilon:g} more of each holder asked: unless this question was "
        "asked before, the budget is refused and nothing would be spent"
    )


def _may_be_refused(epsilon: float, spent: Spent | None) -> str:
    """The remark where the ledger may have no room for it, which depends on whom the run reaches; else ""."""
    if spent is None or spent.cap is None or spent.largest + epsilon <= spent.cap:
        return ""
    return (
        f"; refused if it reaches somebody who has spent more than epsilon {max(spent.cap - epsilon, 0.0):g}, as the lifetime "
        f"cap is {spent.cap:g} and somebody has spent {spent.largest:g}"
    )


def spending_of(config: RunConfig, look: PlanExecutor) -> tuple[float, str]:
    """The epsilon to spend, and a sentence that says so."""
    lines = look.lines
    in_parts = config.model.settings.CORRECTS and sum(line["name"] == "partition" for line in lines) > 1
    of_run = _spending_in_rounds if config.model.in_rounds or in_parts else _spending_by_question
    epsilon, sentence = of_run(config, lines)
    if epsilon and config.is_trial:
        return epsilon, A_TRIAL + sentence
    return epsilon, sentence + _may_be_refused(epsilon, look.spent if epsilon else None)


def _spending_by_question(config: RunConfig, lines: list[dict[str, str]]) -> tuple[float, str]:
    """The epsilon to spend, and the remark beside it."""
    asked = [line["state"] for line in lines if line["name"] == "perturb"]
    reached = next((state for state in asked if state != "cached"), "cached")
    later = [line for line in lines if line["name"] == "partition"][1:]
    is_open = any(line["state"] != "cached" for line in later)
    epsilon = 0.0 if reached in ("cached", "refused") else config.privacy.epsilon / len(asked)
    if any(line["state"] == "refused" for line in lines):
        return 0.0, REFUSED
    if fault := _without_room(config, lines):
        return epsilon, fault
    if reached == "cached" and is_open:
        epsilon = config.privacy.epsilon / 2
        return epsilon, f"each holder would spend epsilon {epsilon:g} more if a second round is needed"
    if not epsilon:
        return epsilon, FREE
    if is_open:
        return (
            epsilon,
            f"each holder asked would spend epsilon {epsilon / 2:g}, and as much once more if a second round is needed",
        )
    return epsilon, f"each holder asked would spend epsilon {epsilon:g}, once"


def _spending_in_rounds(config: RunConfig, lines: list[dict[str, str]]) -> tuple[float, str]:
    """The epsilon to spend, and the remark beside it."""
    answers = [line["state"] for line in lines if line["name"] == "perturb"]
    if any(line["state"] == "refused" for line in lines):
        return 0.0, REFUSED
    is_done = any(line["name"] == "prune" and line["state"] == "cached" for line in lines)
    if is_done or all(
        line["state"] == "cached" for line in lines if line["name"] in ("partition", "perturb", "aggregate")
    ):
        return 0.0, FREE
    if answers and answers[0] == "cached":
        return 0.0, (
            f"each holder was charged epsilon {config.privacy.epsilon:g} before the first round: the rounds that are left "
            "spend no more"
        )
    if fault := _without_room(config, lines):
        return config.privacy.epsilon, fault
    return config.privacy.epsilon, (
        f"each holder would spend at most epsilon {config.privacy.epsilon:g}, over all rounds together"
    )
