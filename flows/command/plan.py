"""Forecast a collection before anybody is asked (`ldptree plan`). The statistics are in `ldptree.planning`.

The public rows come through the same steps as a run's, without the checks of private rows; no question is published, nobody
answers and nothing is charged.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from rich.table import Table

from flows.command.streams import make_console, print_json
from flows.command.terminal import StepList
from flows.executors import InlineExecutor
from flows.pipeline import Pipeline
from flows.work_folder.provenance import in_use, open_to_run
from ldptree.errors import ConfigError
from ldptree.limits import check_epsilon
from schemas.config import RunConfig
from schemas.named_files import check_output, written_whole
from tasks.page.plan import describe_plan, render_plan, say_plan
from tasks.scoring.forecast import GRID, MODELS, CollectionPlan, PublicPart, Wanted, plan_collection
from tasks.step import faults_stay_in_zone

EPSILONS = (0.5, 1.0, 2.0, 4.0)
MOST_HOLDERS = 10_000_000
MOST_WIDE = 1_000
"""Characters that the grid may take."""

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options that were typed. Raises ConfigError where they are none.

    holders, epsilon       lists of numbers, with commas between them; None: not said.
    accuracy, mse, detect  what is wanted.
    """

    holders: str | None = None
    epsilon: str | None = None
    accuracy: float | None = None
    mse: float | None = None
    detect: float | None = None

    def __post_init__(self) -> None:
        if sum(goal is not None for goal in (self.accuracy, self.mse, self.detect)) > 1:
            raise ConfigError("--accuracy, --mse, --detect: ask for one of them at a time")
        if self.accuracy is not None and not 0.0 < self.accuracy < 1.0:
            raise ConfigError(
                f"--accuracy {self.accuracy:g}: a share above 0 and below 1; write 0.63 for 63 of 100"
            )
        for name in ("mse", "detect"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ConfigError(f"--{name} {value:g}: write a number above 0")
        _ = self.sizes, self.epsilons

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """Numbers of people; None where that was not said."""
        return None if self.holders is None else _numbers("--holders", self.holders, int, _check_holders)

    @property
    def epsilons(self) -> tuple[float, ...] | None:
        """Of each of them; None where that was not said."""
        return None if self.epsilon is None else read_epsilons(self.epsilon)


def plan_and_print(
    config: RunConfig, work: Path, options: Options, *, as_json: bool, out: Path | None
) -> None:
    """Plan, print, and write the page where one is wanted. Raises LdptreeError."""
    if out is not None:
        check_output(out, "--out")
    _check_for_label(options, config)
    if options.sizes is None and not config.is_seeded:
        raise ConfigError(
            "how many people would report? Private rows are not counted for a plan; type --holders 5000,20000,100000"
        )
    store = open_to_run(work)
    n_cases = len(options.sizes or (0,)) * len(_epsilons(options, config))
    title = f"{config.name}: planning from public rows alone, {n_cases} {'case' if n_cases == 1 else 'cases'}"
    with (
        StepList(title, (MODELS, GRID), quiet=as_json),
        faults_stay_in_zone(store, "plan", "curator"),
        in_use(store.root),
    ):
        plan = make_plan(Pipeline(store=store, config=config, executor=InlineExecutor(store)), options)
    if out is not None:
        page = render_plan(plan, name=config.name, version=version("ldptree"))
        with written_whole(out, "--out") as aside:
            aside.write_text(page, encoding="utf-8")
    if as_json:
        print_json(describe_plan(plan, config.name))
    else:
        _print(plan, out)


def make_plan(run: Pipeline, options: Options) -> CollectionPlan:
    """The plan of a run, from its public rows. Raises LdptreeError."""
    config = run.terms.config
    _check_for_label(options, config)
    # Of a seeded simulation, which protects nobody and says itself how many answer.
    sizes = options.sizes or (run.respondents.n_asked,)
    return plan_collection(
        PublicPart(
            store=run.store,
            public=run.ingested["public"],
            encoding=run.scaled["encoding"],
            features=config.features,
            is_number=config.is_numeric,
            by_coins=config.dataset.rule.kind == "random",
        ),
        run.asking,
        config.model.settings.for_model,
        Wanted(
            holders=sizes,
            epsilons=_epsilons(options, config),
            figure=options.mse if config.is_numeric else options.accuracy,
            detect=options.detect,
        ),
    )


def _epsilons(options: Options, config: RunConfig) -> tuple[float, ...]:
    return options.epsilons or tuple(sorted({*EPSILONS, config.privacy.epsilon}))


def read_epsilons(text: str) -> tuple[float, ...]:
    """Epsilons with commas between them, in their order. Raises ConfigError."""
    return _numbers("--epsilon", text, float, _check_epsilon)


def _check_for_label(options: Options, config: RunConfig) -> None:
    if config.label == "number" and options.accuracy is not None:
        raise ConfigError("--accuracy: the label is a number; say which mean squared error is wanted, --mse")
    if config.label == "class":
        if options.mse is not None:
            raise ConfigError(
                "--mse: the label is a class; say which share predicted correctly is wanted, --accuracy"
            )
        if options.detect is not None and options.detect >= 1.0:
            raise ConfigError(
                f"--detect {options.detect:g}: an error of a class's share is below 1; write 0.04 for 4 of 100"
            )


def _numbers(
    name: str, text: str, read: Callable[[str], Number], check: Callable[[Number], None]
) -> tuple[Number, ...]:
    numbers = []
    if read is int and (
        thousands := re.search(r"[1-9]\d{0,2}(,\d{3}){0,4},0\d\d(,\d{3}){0,4}", text.replace(" ", ""))
    ):
        whole = thousands[0]
        raise ConfigError(
            f"{name} {text}: a comma ends a number, so that {whole} is {' and '.join(whole.split(','))}; write "
            f"{whole.replace(',', '')} or {whole.replace(',', '_')}"
        )
    for word in text.split(","):
        try:
            value = read(word.strip().replace("_", ""))
        except ValueError:
            raise ConfigError(
                f"{name} {text}: {word.strip()!r} is not a {_word(read)}; write them with commas between"
            ) from None
        try:
            check(value)
        except (ConfigError, ValueError) as fault:
            raise ConfigError(f"{name} {text}: {fault}") from None
        numbers.append(value)
    return tuple(sorted(dict.fromkeys(numbers)))


def _word(read: object) -> str:
    return "whole number" if read is int else "number"


def _check_holders(n: int) -> None:
    if not 1 <= n <= MOST_HOLDERS:
        raise ConfigError(f"{n} people: from 1 to {MOST_HOLDERS:,}")


def _check_epsilon(value: float) -> None:
    check_epsilon(value)


def _print(plan: CollectionPlan, out: Path | None) -> None:
    words, console = say_plan(plan), make_console()
    console.print(words.verdict, style="bold", soft_wrap=True)
    for sentence in (*words.lead, *words.needs):
        console.print(sentence, soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for head in words.grid.heads:  # in two lines, so that the grid fits into 80 columns
        table.add_column(head.replace(", ", ",\n"), justify="right", no_wrap=True)
    for row in words.grid.rows:
        table.add_row(*row)
    # No figure is cut off in a narrow terminal; its lines are broken there instead.
    wide = make_console(width=MOST_WIDE)
    wide.width = max(console.width, wide.measure(table).maximum)
    wide.print(table)
    for sentence in words.assumes[1:]:
        console.print(sentence, style="dim", soft_wrap=True)
    if out is not None:
        console.print(f"Page: {out}", soft_wrap=True)
