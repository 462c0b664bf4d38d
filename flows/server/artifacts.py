"""What the Prefect UI shows of a run: its summary, its scores and its page, as artifacts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from flows.server.standing import find_pages


def show_run(markdown: str, title: str, summary: Mapping[str, Any] | None) -> None:
    """The run's summary; of one that did not stop its scores and its page too."""
    create_markdown_artifact(markdown, key="run-summary", description=title)
    if summary is None:
        return
    if summary["metrics"]:
        rows = [{"model": "ldptree"} | summary["metrics"]]
        rows += [{"model": name} | metrics for name, metrics in summary["baselines"].items()]
        create_table_artifact(rows, key="scores", description="Scores on held-back private rows (simulation)")
    page = Path(summary["report"])
    pages = find_pages(Path(os.environ.get("PREFECT_HOME", page.parents[2] / "prefect")))
    if pages is None:
        where = f"`{page}`\n\n`ldptree ui` serves the pages of a work folder beside this."
        create_markdown_artifact(where, key="run-page", description="The run's page")
    else:
        link = f"{pages}/runs/{page.parent.name}/{page.name}"
        create_link_artifact(link, key="run-page", link_text="The run's page")
