"""What the Prefect UI shows of a run: its summary, its scores and its page, as artifacts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact


def show_run(markdown: str, title: str, summary: Mapping[str, Any] | None) -> None:
    """The run's summary; of one that did not stop its scores and its page too."""
    create_markdown_artifact(markdown, key="run-summary", description=title)
    if summary is None:
        return
    if summary["metrics"]:
        rows = [{"model": "ldptree"} | summary["metrics"]]
        rows += [{"model": name} | metrics for name, metrics in summary["baselines"].items()]
        create_table_artifact(rows, key="scores", description="Scores on held-back private rows (simulation)")
    create_link_artifact(Path(summary["report"]).as_uri(), key="run-page", link_text="The run's page")
