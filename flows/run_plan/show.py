"""Print a plan (`--plan`) with every step, the people that it reads, and what the run would spend."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.table import Table

from flows.budget import PAGE_IS_NOT_PRIVATE, PROTECTS_NOBODY, say_who_rows_are
from flows.command.streams import make_console, print_json
from flows.pipeline import Pipeline
from flows.run_plan.look import look_at
from flows.run_plan.people import Count, People, count_people
from flows.run_plan.spending import spending_of
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
