"""`--plan` of a run in rounds: the steps after ingest, each round's, as far as they are known, and what the ledger says. What a
plan is lives in `plan`.
"""

from __future__ import annotations

import contextlib
from itertools import count
from typing import Any

from flows import calls, round_calls
from flows.budget import Spent, may_stand
from flows.campaign import Terms
from flows.plan import (
    FREE,
    REFUSED,
    Later,
    Missing,
    Plan,
    known,
    look_at_validation,
    needed,
    said_without_room,
)
from flows.rounds_budget import Charged
from ldptree.errors import BudgetError
from schemas.config import RunConfig
from schemas.manifest import Manifest, Record

UNKNOWN = "not known yet"
"""For the key of a conversation whose first question depends on a step to be computed."""


def rest_in_rounds(plan: Plan, terms: Terms, raw: Any, ingested: Any) -> list[dict[str, str]]:
    """Every step's line, in the order of the run; of the rounds those that are known, and the first that is not."""
    checked = look_at_validation(plan, terms, ingested)
    held = plan.look("split", lambda: calls.split(terms, known(raw), ingested))
    scaled = plan.look("scale", lambda: calls.scale(terms, ingested))
    shown = plan.look("show", lambda: round_calls.show(terms, known(held), scaled))
    asked, transcripts, spent = _rounds(plan, terms, raw, held, scaled, shown)
    model = plan.look("learn", lambda: round_calls.learn(terms, scaled, shown, known(asked), [*transcripts]))
    records = [ingested, checked, held, scaled, shown, model]
    if terms.config.evaluate:
        records.append(
            plan.look(
                "evaluate_shown", lambda: round_calls.evaluate(terms, known(scaled), known(held), model)
            )
        )
    plan.look(
        "report_shown",
        lambda: round_calls.report(terms, known(asked), known(spent), [known(record) for record in records]),
    )
    return plan.lines


def _rounds(
    plan: Plan, terms: Terms, raw: Any, held: Any, scaled: Any, shown: Any
) -> tuple[Any, list[Manifest], Any]:
    """The questions if all of them are known, the transcripts so far, and what would be spent."""
    asked: list[Record] = []
    transcripts: list[Manifest] = []
    spent: Any = Missing()
    for number in count(1):
        before = len(plan.lines)
        question = plan.look("ask", lambda: round_calls.ask(terms, scaled, shown, transcripts))
        if isinstance(question, Record) and not question.facts["is_left"]:
            _say_round(plan, before, number, "nothing is left to ask")
            return asked, transcripts, spent
        reports = plan.look_at_shards(
            lambda: _answers(plan, terms, held, scaled, shown, known(question), number),  # noqa: B023 - called at once
            "answer",
        )
        if number == 1:
            spent = _foreseen(plan, terms, raw, held, scaled, shown, question)
        round_ = plan.look(
            "publish",
            lambda: round_calls.publish(known(question), shown, known(reports), number),  # noqa: B023
        )
        _say_round(plan, before, number)
        if not isinstance(round_, Record):
            return Missing(), transcripts, spent
        asked.append(question)
        transcripts.append(round_["transcript"])
    raise AssertionError


def _answers(
    plan: Plan, terms: Terms, held: Any, scaled: Any, shown: Any, question: Record, number: int
) -> tuple[calls.Call, list[calls.Call]]:
    shards = round_calls.shards(needed(plan.store), terms, known(held))
    return round_calls.answer(terms, scaled, shown, question, number), shards


def _foreseen(
    plan: Plan, terms: Terms, raw: Any, held: Any, scaled: Any, shown: Any, question: Any
) -> Spent | Any:
    """What would be spent; where the ledger would refuse it, the first answer is where the run would stop."""
    line = plan.lines[-1]
    try:
        store = needed(plan.store)
        rows, who = known(raw), known(held)
    except Later:
        return Missing()
    key = UNKNOWN
    with contextlib.suppress(Later):
        key = round_calls.conversation(store, terms, scaled, shown)
    try:
        return Charged(store, terms.config, rows, who, key).foresee()
    except BudgetError as fault:
        stands = key == UNKNOWN and may_stand(store, terms.config, who)
        plan.refuse_or_warn(line, fault, may_stand=stands)
        return Missing()


def _say_round(plan: Plan, start: int, number: int, more: str = "") -> None:
    for line in plan.lines[start:]:
        line["why"] = ": ".join(part for part in (f"round {number}", line["why"] or more) if part)


def told_in_rounds(config: RunConfig, lines: list[dict[str, str]]) -> tuple[float, str]:
    """The epsilon to spend, and what is said of it."""
    answers = [line["state"] for line in lines if line["name"] == "answer"]
    if any(line["state"] == "refused" for line in lines):
        return 0.0, REFUSED
    is_done = any(line["name"] == "learn" and line["state"] == "cached" for line in lines)
    if is_done or all(
        line["state"] == "cached" for line in lines if line["name"] in ("ask", "answer", "publish")
    ):
        return 0.0, FREE
    if answers and answers[0] == "cached":
        return 0.0, (
            f"each holder was charged epsilon {config.privacy.epsilon:g} before the first round: the rounds that are left "
            "spend no more"
        )
    if said := said_without_room(config, lines):
        return config.privacy.epsilon, said
    return config.privacy.epsilon, (
        f"each holder would spend at most epsilon {config.privacy.epsilon:g}, over all rounds together"
    )
