"""What Prefect's UI shows of a run while it goes on: a line of its log and a short table for each step. Of what a step leaves,
only counts and settings that are public anyway are shown; nothing else of a record gets here.
"""

from __future__ import annotations

import logging
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from prefect import get_run_logger
from prefect.runtime import deployment, flow_run

from flows.budget import PAGE_IS_NOT_PRIVATE, PROTECTS_NOBODY
from flows.naming import command_again
from flows.server.artifacts import Artifacts
from flows.server.automations import tell_pause
from ldptree.errors import LdptreeError
from schemas.config import RunConfig
from schemas.manifest import Record
from tasks.data.source import say_changed

SHOWN = {
    "scale": ("n_public", "n_features"),
    "split": ("n_private",),
    "show": ("n_features",),
    "partition": ("cells", "depth", "mechanism", "about", "epsilon", "n_asked", "report_bytes"),
    "aggregate": ("n_private", "n_answers"),
    "prune": ("says",),
}
"""Facts of each step that are shown."""
WORDS = {
    "n_public": "public rows",
    "n_private": "holders",
    "n_features": "features",
    "n_asked": "respondents",
    "n_answers": "answers",
    "n_reports": "reports",
    "report_bytes": "bytes a report",
    "depth": "levels of splits",
    "says": "found",
}
DIGEST = " digest"
"""Ends the names of what is in the table only."""
PUBLIC_ZONES = ("public", "curator")
REMEDY_STARTED = "Finished steps stand. Once the cause is gone, this goes on from there:"
REMEDY_REFUSED = (
    "Nobody was asked. Correct what is named above, in the configuration or the run's parameters, then:"
)
LONGEST_CELL = 60
"""Characters of a cell that Prefect's table shows whole."""


def log_step(
    artifacts: Artifacts, label: str, step: str, records: Sequence[Record], *, n_cached: int
) -> None:
    """A step is over: its line in the log, and its table. `n_cached`: how many of its records stood already."""
    row = describe_step(step, records)
    is_cached = n_cached == len(records)
    state = "cached" if is_cached else f"{n_cached} of {len(records)} cached" if n_cached else "done"
    facts = "; ".join(_in_words(name, value) for name, value in row.items() if not name.endswith(DIGEST))
    get_run_logger().info("%s: %s%s", label, state, f"; {facts}" if facts else "")
    if is_cached:
        return  # its table stands since it was made
    key = "step-" + "".join(c if c.isalnum() else "-" for c in label.lower())
    times = {"state": state, "seconds": round(sum(record.seconds for record in records), 1)}
    rows = [
        {"what": "" if number else name, "value": line}
        for name, value in (times | row).items()
        for number, line in enumerate(_in_lines(value))
    ]
    artifacts.table(rows, key, f"What the step {label} left")


def _in_lines(value: Any) -> list[Any]:
    """A value, of a text the lines that the UI does not cut."""
    return textwrap.wrap(value, LONGEST_CELL) if isinstance(value, str) and value else [value]


def _in_words(name: str, value: Any) -> str:
    """A fact in a line of the log: how many of what, or what it is."""
    if not isinstance(value, int):
        return f"{name}: {value}"
    return f"{value:,} {name.removesuffix('s') if value == 1 else name}"


def describe_step(step: str, records: Sequence[Record]) -> dict[str, Any]:
    """The counts and settings that are shown of a step's records."""
    row: dict[str, Any] = {}
    if step == "perturb":
        row["reports"] = sum(int(record.facts["n_reports"]) for record in records)
        row["shards"] = len(records)
        return row
    if len(records) > 1:
        return {"parts": len(records)}
    (record,) = records
    for name in SHOWN.get(step, ()):
        if (value := record.facts.get(name)) is not None:
            row[WORDS.get(name, name)] = value
    for name, part in record.parts.items():
        if part.zone in PUBLIC_ZONES:
            row[f"{name}{DIGEST}"] = part.digest[:12]
            if step == "ingest":
                row["public rows"] = part.rows
    return row


def show_failure(artifacts: Artifacts, message: str, *, command: str, has_started: bool) -> None:
    """A run stopped: the reason beside its results, and how to go on. Its log has the reason by `tell_sentence`.

    `command`: of the same run again; a deployment's is retried where it ran, or begun anew where its parameters were refused.
    """
    advice = REMEDY_STARTED if has_started else REMEDY_REFUSED
    if has_started:
        command = command_again(command)
    elif deployment.id:
        command = f"prefect deployment run {shlex.quote(f'{flow_run.flow_name}/{deployment.name}')}"
    parts = [
        f"**The run stopped.** {message}",
        f"{advice}\n\n    {command}" if command else f"{advice} run it again.",
    ]
    if pause := tell_pause():
        get_run_logger().warning("%s", pause)
        parts.append(pause)
    artifacts.markdown("\n\n".join(parts), "run-failure", "Why the run stopped")


def warn_at_start(config: RunConfig) -> None:
    """Whom a run protects that asks in earnest with seeded noise; that scores are not protected; which file was changed since
    its copy was written.
    """
    for sentence in say_changed(config.dataset):
        get_run_logger().warning("%s", sentence)
    if config.is_seeded and not config.is_trial:
        get_run_logger().warning("%s", PROTECTS_NOBODY)
    if config.is_scored_release:
        get_run_logger().warning("%s", PAGE_IS_NOT_PRIVATE)


@contextmanager
def refusal_shown(command: str) -> Iterator[None]:
    """A run that is refused before it begins says why where one that stopped does; the error goes on as it is. `command`: of the
    same run again.
    """
    try:
        yield
    except LdptreeError as refused:
        with Artifacts() as artifacts:
            show_failure(artifacts, str(refused), command=command, has_started=False)
        raise


def tell_sentence(line: logging.LogRecord) -> bool:
    """Of an error of ours the log of a run has the sentence, and no traceback; of others what Prefect says."""
    fault = line.exc_info[1] if line.exc_info else None
    if isinstance(fault, LdptreeError):
        line.msg, line.args, line.exc_info = str(fault), (), None
    return True


logging.getLogger("prefect.flow_runs").addFilter(tell_sentence)
