"""Show a run in the Prefect UI beside its log: its page, its summary, its scores, or its failure. Each has one key, under which
Prefect keeps the history of all runs. A run that finished is an event, too, which may start a deployment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from prefect import get_run_logger
from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact
from prefect.events import emit_event

from flows.server.pages import PAGES
from ldptree.plain_text import escape_markdown, put_on_one_line
from tasks.page.captions import name_scores

FINISHED = "ldptree.run.finished"
NOT_IN_EVENT = ("columns_left_out", "peak_rss_mb", "row_format", "seconds", "steps")
"""Of a summary, what is for one machine, or as long as a file has columns."""
NOTHING = 1e-12
"""A score below is rounding."""


def show_run(markdown: str, title: str, summary: Mapping[str, Any] | None) -> None:
    """Show the run's summary; of one that did not stop its scores and its page too, and say in its log what it found."""
    with _log_losses():
        create_markdown_artifact(markdown, key="summary", description=title)
        if summary is None:
            return
        if summary["metrics"]:
            rows = [
                {"model": escape_markdown(name)} | _round(metrics)
                for name, metrics in name_scores(summary).items()
            ]
            create_table_artifact(
                rows, key="scores", description="Scores on private rows kept aside (a trial)"
            )
        show_page(summary["page"])
        payload = {name: value for name, value in summary.items() if name not in NOT_IN_EVENT}
        run = {
            "prefect.resource.id": f"ldptree.run.{summary['run']}",
            "prefect.resource.name": summary["run"],
        }
        emit_event(FINISHED, resource=run, payload=payload)
    get_run_logger().info("%s %s", summary["finding"], summary["page"])


def show_page(page: str) -> None:
    """Show a link to the run's page, as `ldptree ui` serves it beside what shows the link, and where the page is."""
    *_, run, name = PurePosixPath(page).parts
    create_link_artifact(
        f"{PAGES}runs/{quote(run)}/{name}",
        key="page",
        link_text="The run's page",
        description=f"`ldptree ui` serves it from the work folder:\n\n    {put_on_one_line(page)}",
    )


def show_failure(markdown: str, page: str | None) -> None:
    """Show why a run stopped, and its page, if any."""
    with _log_losses():
        create_markdown_artifact(markdown, key="failure", description="Why the run stopped")
        if page is not None:
            show_page(page)


@contextmanager
def _log_losses() -> Iterator[None]:
    """Log what did not reach the server: no run fails for a picture of it."""
    try:
        yield
    except Exception as fault:
        get_run_logger().warning(
            "not all artifacts of this run reached the Prefect server (%s)", type(fault).__name__
        )


def _round(metrics: Mapping[str, float | None]) -> dict[str, str]:
    """Metrics by their names in words, to four digits; "-" for one that a model has not."""
    return {
        name.replace("_", " "): "-"
        if value is None
        else format(0.0 if abs(value) < NOTHING else value, ".4g")
        for name, value in metrics.items()
    }
