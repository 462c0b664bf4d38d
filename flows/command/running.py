"""Run the flow once from the command line, with a server, the display and an orderly end. The flow itself is in
`train_flow`.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from flows.command.interrupt import end_at_once, ended_politely, handle_again
from flows.command.streams import make_console, print_json
from flows.command.terminal import StepList, steps_of
from flows.server.process import Server
from flows.work_folder.provenance import open_to_run
from schemas.config import RunConfig
from schemas.named_files import shown_path
from storage.store import Store

METRICS = (
    ("accuracy", "accuracy", 3),
    ("balanced_accuracy", "balanced", 3),
    ("auc", "AUC", 3),
    ("log_loss", "log loss", 3),
)
LEFT_OUT_LISTED = 10
NUMBER_METRICS = (("rmse", "typical error", None), ("mae", "mean error", None), ("r2", "R²", 3))
"""Of a label that is a number; an error has no decimals of its own, and is written as in the finding."""
LAST_WORDS_SECONDS = 5.0


def run_here(config: RunConfig, work: Path, *, as_json: bool, debug: bool, command: str) -> None:
    """Run the flow in this process and print what came of it. Raises LdptreeError."""
    from flows.budget import say_who_rows_are

    store = open_to_run(work)
    if debug:
        os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "INFO")
    before = end_at_once()
    title = f"{config.name} at epsilon {config.privacy.epsilon:g}, in {shown_path(work)}"
    try:
        with StepList(title, steps_of(config), quiet=as_json or debug) as shown:
            for sentence in say_who_rows_are(store, config):
                shown.say(sentence)
            server = Server(store.root, again=command)
            if server.temporary:
                shown.say("starting Prefect (slower the first time in a folder)")
            try:
                summary = _run(config, store, server, debug=debug, command=command)
            finally:
                _send_last_words()
                server.stop()
    finally:
        handle_again(before)
    if as_json:
        print_json(summary)
    else:
        _show(summary, is_label_declared=config.label is not None, temporary=server.temporary)


def _run(config: RunConfig, store: Store, server: Server, *, debug: bool, command: str) -> dict[str, Any]:
    if not debug:
        # Prefect's loggers have handlers of their own; of all others nothing is shown.
        logging.getLogger().setLevel(logging.CRITICAL)
        logging.getLogger().addHandler(logging.NullHandler())
    warm_up(config, store.root)
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    from flows.train_flow import train

    server.wait()
    # A temporary server looks for no heartbeats. The end of a flow waits a second for them.
    quiet = {PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None} if server.temporary else {}
    with ended_politely(), server.convert_loss(), temporary_settings(quiet):
        summary: dict[str, Any] = train(config=config, work=store.work, command=command)
    return summary


def _asked(summary: dict[str, Any]) -> str:
    """Say who was asked what, in a line or a few."""
    if "rounds" in summary:
        lines = [
            f"{r['n_asked']:,} people at epsilon {r['epsilon']:.4g}: {r['about']}" for r in summary["rounds"]
        ]
        return "\n".join([*lines, f"nobody spent more than epsilon {summary['epsilon_spent']:.4g}"])
    n, n_new = summary["n_private"], summary["n_new"]
    new = "" if n_new == n else f" ({n_new:,} new, {n - n_new:,} in earlier runs)"
    return (
        f"{n:,} people reported once{new} at epsilon {summary['epsilon']:g}; "
        f"{summary['n_public']:,} public rows; {summary['cells']:,} group{'' if summary['cells'] == 1 else 's'}"
    )


def _left_out(columns: Mapping[str, str]) -> list[str]:
    """A line for each reason with the columns that it leaves out; of many columns the first, and how many more."""
    listed = list(columns.items())[:LEFT_OUT_LISTED]
    names_by_why: dict[str, list[str]] = {}
    for name, why in listed:
        names_by_why.setdefault(why, []).append(name)
    lines = [f"left out  {', '.join(names)}: {why}" for why, names in names_by_why.items()]
    more = len(columns) - len(listed)
    return [*lines, f"left out  {more} more, see the page"] if more else lines


def _send_last_words() -> None:
    """Send the last batches of Prefect's log and events before their server stops, unless that takes too long."""
    senders = (("prefect.events.worker", "EventsWorker"), ("prefect.logging.handlers", "APILogWorker"))
    workers = [getattr(sys.modules[module], name) for module, name in senders if module in sys.modules]

    def drain() -> None:
        for worker in workers:
            worker.drain_all(timeout=LAST_WORDS_SECONDS / 2)

    if workers:
        sending = threading.Thread(target=drain, daemon=True)
        sending.start()
        sending.join(LAST_WORDS_SECONDS)


def _show(summary: dict[str, Any], *, is_label_declared: bool, temporary: bool) -> None:
    from flows.budget import PROTECTS_NOBODY
    from flows.finish import say_estimator
    from tasks.page.captions import name_scores
    from tasks.page.units import decimal, error_unit

    console = make_console()
    if "published" in summary:
        for line in (summary["finding"], *(f"{name:<9} {summary[name]}" for name in ("published", "page"))):
            console.print(line, soft_wrap=True)
        return
    finding = f"{summary['finding']} {say_estimator(summary)}"
    console.print(finding, style="bold", soft_wrap=not console.is_terminal)
    table = Table(title=None, box=None, pad_edge=False, padding=(0, 2))
    table.add_column(
        "private rows kept aside" if summary["metrics"] else "no row was kept aside", style="bold"
    )
    if summary["metrics"]:
        shown = NUMBER_METRICS if "rmse" in summary["metrics"] else METRICS
        for _, title, _ in shown:
            table.add_column(title, justify="right")
        scores = name_scores(summary)
        errors = {
            key: error_unit(figure for score in scores.values() if (figure := score.get(key)) is not None)
            for key, _, digits in shown
            if digits is None
        }
        for number, (name, metrics) in enumerate(scores.items()):
            cells = [
                "-"
                if (value := metrics.get(key)) is None
                else errors[key].bare(value)
                if digits is None
                else decimal(value, digits)
                for key, _, digits in shown
            ]
            table.add_row(name, *cells, style="" if number else "bold")  # ours first
        console.print(table)
    lines = [summary["details"], *summary["warnings"]]
    if "label" in summary and not is_label_declared:
        other = {"class": "number", "number": "class"}[summary["label"]]
        lines.append(
            f'label   {summary["target"]}: read as a {summary["label"]} (dataset.label = "{other}" reads it as a {other})'
        )
    lines.append(_asked(summary))
    if summary["trial"]:
        lines.append(
            f"{summary['protection']} This was a trial; no privacy budget was spent. "
            "To collect for real, add --release or a [campaign]."
        )
    elif summary["seeded"]:
        lines.append(PROTECTS_NOBODY)
    else:
        spent = f"Across this work folder nobody has spent more than epsilon {summary['largest_spend']:g}."
        lines.append(f"{summary['protection']} {spent if summary['largest_spend'] else ''}".rstrip())
    lines += _left_out(summary["columns_left_out"])
    if temporary:
        lines.append("Tip: leave `ldptree ui` running, and runs start at once. It says how.")
    for line in lines:
        console.print(line, soft_wrap=not console.is_terminal)
    for name in ("model", "page"):  # a path is copied whole
        console.print(f"{name:<6} {summary[name]}", soft_wrap=True)
    console.print(finding, style="bold", soft_wrap=not console.is_terminal)
    sys.stdout.flush()


HEAVY = {
    "validate": ("great_expectations", "great_expectations.expectations", "pandas"),
    "partition": ("sklearn.tree",),
    "evaluate": ("sklearn.ensemble", "sklearn.tree"),
}


def warm_up(config: RunConfig, work: Path) -> threading.Thread:
    """Begin to import in a thread of its own what the steps to be computed will ask for."""

    def load() -> None:
        # Whatever is wrong here is met again, and told, where it matters.
        with contextlib.suppress(Exception):
            from flows.run_plan.look import plan_of

            wanted = {line["name"] for line in plan_of(config, work) if line["state"] != "cached"}
            for module in (module for step, modules in HEAVY.items() if step in wanted for module in modules):
                importlib.import_module(module)

    thread = threading.Thread(target=load, name="warm-up", daemon=True)
    thread.start()
    return thread
