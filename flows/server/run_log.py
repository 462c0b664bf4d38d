"""What Prefect's UI shows of a run while it goes on: a line of its log and a short table for each step. Of what a step leaves,
only counts and settings that are public anyway are shown; nothing else of a record gets here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from prefect import get_run_logger

from flows.budget import PROTECTS_NOBODY
from flows.server.artifacts import Artifacts
from ldptree.errors import LdptreeError
from schemas.config import RunConfig
from schemas.manifest import Record

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
    rows = [{"what": name, "value": value} for name, value in (times | row).items()]
    artifacts.table(rows, key, f"What the step {label} left")


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


def show_failure(artifacts: Artifacts, message: str, *, has_started: bool) -> None:
    """A run stopped: the reason beside its results, and how to go on. Its log has it by `tell_sentence`."""
    again = (
        "\n\nFinished steps stand: once the cause is gone, a run goes on from there." if has_started else ""
    )
    artifacts.markdown(f"**The run stopped.** {message}{again}", "run-failure", "Why the run stopped")


def warn_where_seeded(config: RunConfig) -> None:
    """A run that asks in earnest with seeded noise: whom that protects."""
    if config.is_seeded and not config.is_trial:
        get_run_logger().warning("%s", PROTECTS_NOBODY)


@contextmanager
def refusal_shown() -> Iterator[None]:
    """A run that is refused before it begins says why where one that stopped does; the error goes on as it is."""
    try:
        yield
    except LdptreeError as refused:
        with Artifacts() as artifacts:
            show_failure(artifacts, str(refused), has_started=False)
        raise


def tell_sentence(line: logging.LogRecord) -> bool:
    """Of an error of ours the log of a run has the sentence, and no traceback; of others what Prefect says."""
    fault = line.exc_info[1] if line.exc_info else None
    if isinstance(fault, LdptreeError):
        line.msg, line.args, line.exc_info = str(fault), (), None
    return True


logging.getLogger("prefect.flow_runs").addFilter(tell_sentence)
