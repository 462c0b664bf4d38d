"""Show a run in the terminal as a live list of steps with bars, on standard error, without results and files."""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from rich.console import RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from flows.command.ending import done_at_the_end
from flows.command.streams import make_console
from schemas.config import RunConfig
from tasks.progress import Event, StepTime, Timeline, listen

STEPS = (
    "source",
    "types",
    "read",
    "ingest",
    "count",
    "validate",
    "split",
    "cut",
    "scale",
    "show",
    "partition",
    "perturb",
    "receive",
    "collect",
    "add",
    "aggregate",
    "prune",
    "evaluate",
    "report",
)
"""Names of all steps in their order, so that the list can be shown before any step is imported."""
OF_ROUNDS = ("partition", "perturb", "receive", "collect", "add", "aggregate")
"""What a run does once a round."""

LONG = 5.0
"""Seconds that a step takes before a log without a terminal tells what is left of it, at each quarter."""


def steps_of(config: RunConfig) -> list[str]:
    """The steps that a run of `config` has, in their order."""
    absent = {
        "source": bool(config.dataset.path),
        "show": not config.model.in_rounds,
        "add": config.model.in_rounds or config.is_collection,
        "evaluate": not config.evaluate,
        **dict.fromkeys(("split", "cut", "perturb"), config.is_collection),
        **dict.fromkeys(("receive", "collect"), not config.is_collection),
    }
    return [name for name in STEPS if not absent.get(name)]


def shards_in_words(n: int) -> str:
    """Say how many shards there are."""
    return f"{n} shard" if n == 1 else f"{n} shards"


def seconds_in_words(seconds: float) -> str:
    """Format a duration for a table, such as "under 1 s", "12 s" or "3 min"."""
    if seconds < 1:
        return "under 1 s"
    if seconds < 90:
        return f"{float(f'{seconds:.2g}'):g} s" if seconds < 10 else f"{round(seconds)} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{math.floor(seconds / 360) / 10:g} h"


class StepList:
    """A live list of the steps of one run below a title; plain lines where standard error is no terminal."""

    def __init__(
        self, title: str, names: Sequence[str], *, quiet: bool = False, tried: Mapping[str, str] | None = None
    ) -> None:
        """A list of the steps of these names, fed by their progress in this process.

        `tried`: what the shards of a step are called, where one that fails does not stop the others.
        """
        self._timeline = Timeline()
        self._title, self._names, self._tried = title, names, dict(tried or {})
        self._console = make_console(stderr=True, quiet=quiet)
        self._fractions: dict[str, float] = {}
        self._lock = threading.Lock()
        self._ends = contextlib.ExitStack()
        # It would read styles and links from what others print, so it is not to redirect that.
        self._live = Live(
            get_renderable=self._render,
            console=self._console,
            refresh_per_second=8,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        """Begin to show."""
        self._console.print(self._title, soft_wrap=True)
        self._stop = listen(self._hear)
        if self._console.is_terminal:
            self._live.start()
            self._ends.enter_context(done_at_the_end(_show_cursor))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Show the final state and stop."""
        self._stop()
        if self._console.is_terminal:
            self._live.update(self._render(), refresh=True)
            self._live.stop()
            self._ends.close()

    def say(self, line: str) -> None:
        """A line above the list."""
        self._console.print(line, style="dim", soft_wrap=True)

    def _hear(self, step: str, event: Event, fraction: float) -> None:
        self._timeline.hear(step, event, fraction)
        with self._lock:
            if event == "advance":
                before = self._fractions.get(step, 0.0)
                self._fractions[step] = max(fraction, before)
                if not self._console.is_terminal and int(4 * before) < int(4 * fraction) < 4:
                    self._log_quarter(step, fraction)
            if not self._console.is_terminal and event in ("end", "failed", "interrupted", "found"):
                entry = self._timeline.step(step)
                if entry is not None and (entry.is_done or event == "interrupted"):
                    shards = self._count(step, entry)
                    state = "computed" if step in self._tried and entry.failed else entry.state
                    seconds = entry.spans[-1][1]
                    self._console.print(
                        f"{_label(entry):<11}{seconds:6.1f} s  {state}{f', {shards}' if shards else ''}"
                    )

    def _log_quarter(self, step: str, fraction: float) -> None:
        """Print how far a long step is that is not mapped."""
        entry, running = self._timeline.step(step), self._timeline.running(step)
        if entry is not None and not entry.shards and running >= LONG:
            left = describe_progress(entry, running, "", fraction)
            self._console.print(f"{_label(entry):<11}{running:6.1f} s  {100 * fraction:.0f} %, {left}")

    def _count(self, name: str, entry: StepTime) -> str:
        if not entry.shards:
            return ""
        things = self._tried.get(name)
        failed = f", {entry.failed:,} failed" if things and entry.failed else ""
        return f"{entry.shards:,} {things}{failed}" if things else shards_in_words(entry.shards)

    def _render(self) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        for name in self._names:
            entry = self._timeline.step(name)
            label = name if entry is None else _label(entry)
            if entry is None:
                table.add_row(Text("·", "dim"), Text(name, "dim"), "", "")
            elif entry.state == "failed" and name not in self._tried:
                table.add_row(Text("✗", "red"), Text(label, "red"), f"{entry.seconds:.1f} s", "")
            elif entry.state == "interrupted":
                table.add_row(Text("■"), Text(label), f"{entry.seconds:.1f} s", "interrupted")
            elif entry.is_done:
                style = "dim" if entry.state == "cached" else ""
                shards = self._count(name, entry)
                text = entry.state if entry.state == "cached" else f"{entry.seconds:.1f} s"
                table.add_row(Text("✓", "green"), Text(label, style), Text(text, style), Text(shards, "dim"))
            else:
                share = entry.shards_done / entry.shards if entry.shards else self._fractions.get(name, 0.0)
                bar = ProgressBar(total=1.0, completed=share, width=24, pulse=share == 0.0)
                running = self._timeline.running(name)
                how_far = describe_progress(entry, running, self._tried.get(name, "shards"), share)
                table.add_row(Text("▸", "bold"), Text(label, "bold"), f"{running:.1f} s", bar, how_far)
        return table


def _label(entry: StepTime) -> str:
    """Return the label of a step as in the log of its run, with a number from the second round on."""
    is_again = entry.name in OF_ROUNDS and len(entry.spans) > 1
    return f"{entry.name} {len(entry.spans)}" if is_again else entry.name


def describe_progress(entry: StepTime, running: float, things: str, share: float) -> str:
    """Describe the progress and time left of a step, such as "132 of 600 cells, about 4 min left". `share`: what is done of one
    that is not mapped.
    """
    if not entry.shards or entry.shards == 1:
        rest = round(running * (1 - share) / share) if share and not entry.shards else 0
        return f"about {seconds_in_words(rest)} left" if rest else ""
    failed = f" ({entry.failed:,} failed)" if entry.failed else ""
    left = entry.seconds_left(running)
    how_long = "" if left is None else f", about {seconds_in_words(max(round(left), 1))} left"
    return f"{entry.shards_done:,} of {entry.shards:,} {things}{failed}{how_long}"


def _show_cursor() -> None:
    """A live list that is broken off leaves the terminal in the middle of a line, and without its cursor."""
    os.write(2, b"\n\x1b[?25h")
