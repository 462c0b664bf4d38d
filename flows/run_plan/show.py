"""`--plan`, printed: every step with what is known of its size, what it takes, and what the run would spend."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from flows.budget import PAGE_IS_NOT_PRIVATE, PROTECTS_NOBODY
from flows.command.streams import print_json
from flows.command.terminal import seconds_in_words
from flows.run_plan.expected import Size, expect_sizes
from flows.run_plan.look import look_at
from flows.run_plan.spending import spending_of
from schemas.config import RunConfig

TABLE_WIDTH = 120
"""Characters that the table has room in."""


def show_plan(config: RunConfig, work: Path, *, as_json: bool) -> None:
    """Print the plan. Raises LdptreeError, as the run would where it is refused."""
    look, run = look_at(config, work)
    sizes = expect_sizes(look, run)
    epsilon, sentence = spending_of(config, look)
    if as_json:
        steps = [line | size.to_dict() for line, size in zip(look.lines, sizes, strict=True)]
        print_json(
            {
                "name": config.name,
                "steps": steps,
                "epsilon_to_spend": epsilon,
                "seeded": config.is_seeded,
                "trial": config.is_trial,
            }
        )
    else:
        console = Console(highlight=False)
        console.width = max(console.width, TABLE_WIDTH)
        console.print(_table(look.lines, sizes))
        total = sum(size.seconds or 0.0 for size in sizes)
        if total:
            console.print(f"expected to take about {seconds_in_words(total)} on an idle machine")
        console.print(sentence)
        if config.is_seeded and not config.is_trial:
            console.print(PROTECTS_NOBODY, soft_wrap=True)
        if config.is_scored_release:
            console.print(PAGE_IS_NOT_PRIVATE, soft_wrap=True)
    if look.refused is not None:
        raise look.refused


def _table(lines: list[dict[str, str]], sizes: list[Size]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="")
    for name in ("step", "state"):
        table.add_column(name)
    for name in ("rows", "cells", "bytes", "expected"):
        table.add_column(name, justify="right")
    table.add_column("why")
    for line, size in zip(lines, sizes, strict=True):
        counts = ["" if one is None else str(one) for one in (size.rows, size.cells, size.bytes)]
        seconds = "" if size.seconds is None else seconds_in_words(size.seconds)
        table.add_row(line["name"], line["state"], *counts, seconds, line["why"])
    return table
