"""What the Prefect UI shows beside a run's log, as artifacts: tables of its steps, its summary, its scores and its page. A thread
of its own sends them, so that no step waits for the server, and none fails for a picture of it.
"""

from __future__ import annotations

import contextvars
import os
import queue
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from prefect import get_run_logger
from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from flows.server.pages import PAGE, PAGE_TITLE
from flows.server.standing import find_pages
from tasks.page.captions import name_scores

NOTHING = 1e-12
"""A score below is rounding."""
LAST_SECONDS = 5.0
"""What the artifacts that are left may take once the run is over."""


class Artifacts:
    """The artifacts of the current run, sent one after the other while the block runs."""

    def __enter__(self) -> Self:
        """Begin to send."""
        self._waiting: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._n_lost = 0
        context = contextvars.copy_context()  # it names the run, and holds its client
        self._sender = threading.Thread(target=context.run, args=(self._send_all,), daemon=True)
        self._sender.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the last ones, and tell the run's log of those that were lost."""
        self._waiting.put(None)
        self._sender.join(LAST_SECONDS)
        if lost := self._n_lost + self._waiting.qsize():
            get_run_logger().warning("artifacts that did not reach the Prefect server: %d", lost)

    def send(self, create: Callable[[], object]) -> None:
        """Have `create`, which asks the server to keep or change an artifact, called in its turn."""
        self._waiting.put(create)

    def _send_all(self) -> None:
        while (create := self._waiting.get()) is not None:
            try:
                create()
            except Exception:
                self._n_lost += 1

    def table(self, rows: list[dict[str, Any]], key: str, description: str) -> None:
        """Send a table."""
        self.send(lambda: create_table_artifact(rows, key=key, description=description))

    def markdown(self, text: str, key: str, description: str) -> None:
        """Send a text."""
        self.send(lambda: create_markdown_artifact(text, key=key, description=description))

    def link(self, address: str, key: str, description: str) -> None:
        """Send a link."""
        self.send(
            lambda: create_link_artifact(address, key=key, link_text=description, description=description)
        )


def show_run(artifacts: Artifacts, markdown: str, title: str, summary: Mapping[str, Any] | None) -> None:
    """The run's summary; of one that did not stop its scores and its page too."""
    artifacts.markdown(markdown, "run-summary", title)
    if summary is None:
        return
    if summary["metrics"]:
        rows = [{"model": name} | _rounded(metrics) for name, metrics in name_scores(summary).items()]
        artifacts.table(rows, "scores", "Scores on held-back private rows (simulation)")
    show_page(artifacts, Path(summary["report"]))


def _rounded(metrics: Mapping[str, float | None]) -> dict[str, str]:
    """Metrics by their names in words, to four digits; "-" for one that a model has not."""
    return {
        _in_words(name): "-" if value is None else format(0.0 if abs(value) < NOTHING else value, ".4g")
        for name, value in metrics.items()
    }


def _in_words(name: str) -> str:
    return name.replace("_", " ")


def show_page(artifacts: Artifacts, page: Path) -> None:
    """A link to the run's page where `ldptree ui` serves it, else where it is, until `ldptree ui` makes that a link."""
    pages = find_pages(Path(os.environ.get("PREFECT_HOME", page.parents[2] / "prefect")))
    if pages is None:
        where = f"`{page}`\n\n`ldptree ui` serves the pages of a work folder beside this."
        artifacts.markdown(where, PAGE, PAGE_TITLE)
    else:
        artifacts.link(f"{pages}/runs/{page.parent.name}/{page.name}", PAGE, PAGE_TITLE)
