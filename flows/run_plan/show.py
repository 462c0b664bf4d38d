"""Print a plan (`--plan`) with every step, the people that it reads, and what the run would spend."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.table import Table

from flows.budget import PAGE_IS_NOT_PRIVATE, PROTECTS_NOBODY, Spent, say_who_rows_are
from flows.command.streams import make_console, print_json
from flows.pipeline import Pipeline
from flows.run_plan.look import NO_ROOM, PlanExecutor, look_at
from flows.run_plan.people import Count, People, count_people
from schemas.config import RunConfig

TABLE_WIDTH = 120
"""Characters that the table has room in."""


def show_plan(config: RunConfig, work: Path, *, as_json: bool) -> None:
    """Print the plan. Raises LdptreeError, as the run would where it is refused."""
    look, run = look_at(config, work)
    people = count_people(run)
    rows = [_rows_of(line["name"], people, run) for line in look.lines]
    epsilon, sentence = spending_of(config, look)
    if as_json:
        counts = [{"rows": n and n.number, "is_exact": n is not None and not n.prefix} for n in rows]
        print_json(
            {
                "name": config.name,
                "steps": [line | count for line, count in zip(look.lines, counts, strict=True)],
                "epsilon_to_spend": epsilon,
                "seeded": config.is_seeded,
                "trial": config.is_trial,
            }
        )
    else:
        console = make_console()
        console.width = max(console.width, TABLE_WIDTH)
        console.print(_table(look.lines, rows))
        console.print(sentence)
        for sentence_of_rows in say_who_rows_are(look.store, config):
            console.print(sentence_of_rows, soft_wrap=True)
        if config.is_seeded and not config.is_trial:
            console.print(PROTECTS_NOBODY, soft_wrap=True)
        if config.is_scored_release:
            console.print(PAGE_IS_NOT_PRIVATE, soft_wrap=True)
    if look.refused is not None:
        raise look.refused


def _rows_of(step: str, people: People, run: Pipeline) -> Count | None:
    """Return the number of rows that a step reads; of one question of several it is a bound."""
    rows = people.read_by(step)
    if rows and step in ("perturb", "aggregate") and not run.config.asks_once:
        return replace(rows, prefix="at most")
    return rows


def _table(lines: list[dict[str, str]], rows: list[Count | None]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="")
    for name in ("step", "state"):
        table.add_column(name)
    table.add_column("rows", justify="right")
    table.add_column("why")
    for line, count in zip(lines, rows, strict=True):
        table.add_row(line["name"], line["state"], "" if count is None else str(count), line["why"])
    return table


REFUSED = "the run is refused before anybody is asked: nothing would be spent"
A_TRIAL = "a trial, which charges no ledger; as a release, "
FREE = "nobody would be asked: nothing is spent"


def _without_room(config: RunConfig, lines: list[dict[str, str]]) -> str | None:
    """The fault where the ledger has no room for a new question and it is not known whether this is one; else None."""
    if not any(line["why"].endswith(NO_ROOM) for line in lines):
        return None
    return (
        f"the ledger has no room for epsilon {config.privacy.epsilon:g} more of each person asked: unless this question was "
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
        return epsilon, f"each person would spend epsilon {epsilon:g} more if a second round is needed"
    if not epsilon:
        return epsilon, FREE
    if is_open:
        return (
            epsilon,
            f"each person asked would spend epsilon {epsilon / 2:g}, and as much once more if a second round is needed",
        )
    return epsilon, f"each person asked would spend epsilon {epsilon:g}, once"


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
            f"each person was charged epsilon {config.privacy.epsilon:g} before the first round: the rounds that are left "
            "spend no more"
        )
    if fault := _without_room(config, lines):
        return config.privacy.epsilon, fault
    return config.privacy.epsilon, (
        f"each person would spend at most epsilon {config.privacy.epsilon:g}, over all rounds together"
    )
