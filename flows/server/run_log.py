"""Write the log of a run: a line for each step with a fact of what it left, and why a run stopped. Only counts and settings that
are public anyway are said of a step; nothing else of a record gets here.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from prefect import get_run_logger
from prefect.runtime import deployment, flow_run

from flows.budget import PAGE_IS_NOT_PRIVATE, PROTECTS_NOBODY, say_who_rows_are
from flows.naming import command_again
from flows.server.artifacts import show_failure
from ldptree.errors import LdptreeError
from ldptree.plain_text import escape_markdown, indent_lines, put_on_one_line
from schemas.config import RunConfig
from schemas.manifest import Record
from storage.store import Store

SHOWN = {
    "source": ("n_rows",),
    "types": ("types",),
    "ingest": ("features",),
    "validate": ("says",),
    "scale": ("n_public", "n_features"),
    "split": ("n_private",),
    "show": ("n_private", "n_features"),
    "partition": ("cells", "depth", "mechanism", "about", "epsilon", "n_asked", "report_bytes"),
    "receive": ("n_valid",),
    "collect": ("n_private",),
    "aggregate": ("n_private", "n_answers"),
    "prune": ("says", "digest"),
    "evaluate": ("n_test",),
    "report": ("n_questions", "n_new", "n_earlier"),
}
"""Facts of each step that are said."""
WORDS = {
    "n_rows": "simulated rows",
    "types": "columns",
    "n_public": "public rows",
    "n_private": "holders",
    "n_features": "features",
    "n_valid": "valid reports",
    "n_asked": "respondents",
    "n_answers": "answers",
    "n_test": "rows kept aside and scored",
    "n_questions": "questions on its page",
    "n_new": "reports new",
    "n_earlier": "reports from earlier runs",
    "report_bytes": "bytes a report",
    "depth": "levels of splits",
    "digest": "model",
}
DIGEST_DIGITS = 12
REMEDY_STARTED = "Finished steps are kept. Fix the cause, then continue with:"
REMEDY_REFUSED = (
    "Nobody was asked. Correct what is named above, in the configuration or the run's parameters, then:"
)


def log_step(label: str, step: str, records: Sequence[Record], *, n_cached: int) -> None:
    """Log that a step is over, and what it left. `n_cached`: how many of its records stood already."""
    state = "done" if not n_cached else "cached"
    if 0 < n_cached < len(records):
        state = f"{n_cached} of {len(records)} cached"
    get_run_logger().info("%s: %s", label, "; ".join([state, *describe_step(step, records)]))


def describe_step(step: str, records: Sequence[Record]) -> list[str]:
    """The counts and settings that are said of a step's records, in words."""
    if step == "perturb":
        n_reports = sum(int(record.facts["n_reports"]) for record in records)
        return [_count(n_reports, "reports"), _count(len(records), "shards")]
    if step == "read":
        public = [part for record in records for name, part in record.parts.items() if name == "public"]
        return [_count(sum(part.rows for part in public), "public rows"), _count(len(records), "parts")]
    if step not in SHOWN or len(records) > 1:
        return [_count(len(records), "parts")]
    (record,) = records
    return [_say(name, record.facts[name]) for name in SHOWN[step] if record.facts.get(name) is not None]


def _say(name: str, value: Any) -> str:
    """Return a fact in words: how many of what, or what it is."""
    words = WORDS.get(name, name)
    if name == "says":
        return str(value)
    if name == "digest":
        return f"{words} {value[:DIGEST_DIGITS]}"
    if isinstance(value, list | dict):
        return _count(len(value), words)
    return _count(value, words) if isinstance(value, int) else f"{words}: {value}"


def _count(number: int, things: str) -> str:
    first, _, rest = things.partition(" ")
    return f"{number:,} {first.removesuffix('s') if number == 1 else first} {rest}".rstrip()


def describe_failure(message: str, *, command: str, has_started: bool) -> str:
    """Why a run stopped and how to go on, as Markdown. Its log has the reason by `tell_sentence`.

    `command`: of the same run again; a deployment's is retried where it ran, or begun anew where its parameters were refused.
    """
    advice = REMEDY_STARTED if has_started else REMEDY_REFUSED
    if has_started:
        command = command_again(command)
    elif deployment.id:
        command = f"prefect deployment run {shlex.quote(f'{flow_run.flow_name}/{deployment.name}')}"
    parts = [
        f"**The run stopped.** {escape_markdown(message)}",
        f"{advice}\n\n    {put_on_one_line(command)}" if command else f"{advice} run it again.",
    ]
    return "\n\n".join(parts)


def warn_at_start(config: RunConfig, store: Store) -> None:
    """Log whom a run protects that asks in earnest with seeded noise; that scores are not protected; which file was changed since
    its copy was written; what cannot be known of holders who are rows.
    """
    for sentence in say_who_rows_are(store, config):
        get_run_logger().warning("%s", sentence)
    if config.is_seeded and not config.is_trial:
        get_run_logger().warning("%s", PROTECTS_NOBODY)
    if config.is_scored_release:
        get_run_logger().warning("%s", PAGE_IS_NOT_PRIVATE)


@contextmanager
def refusal_shown(command: str) -> Iterator[None]:
    """Show why a run is refused before it begins, in the place for stopped runs, and raise the error again. `command`
    repeats the run.
    """
    try:
        yield
    except LdptreeError as refused:
        show_failure(describe_failure(str(refused), command=command, has_started=False), None)
        raise


def tell_sentence(line: logging.LogRecord) -> bool:
    """Of an error of ours the log of a run has the sentence, and no traceback; of others what Prefect says. No line acts."""
    fault = line.exc_info[1] if line.exc_info else None
    if isinstance(fault, LdptreeError):
        line.msg, line.args, line.exc_info = str(fault), (), None
    line.msg, line.args = indent_lines(line.getMessage()), ()
    return True


logging.getLogger("prefect.flow_runs").addFilter(tell_sentence)
