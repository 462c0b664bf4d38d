"""Progress of the mapped step in the Prefect UI: one artifact that fills as shards are done. The terminal's list is in
`terminal`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from prefect.artifacts import create_progress_artifact, update_progress_artifact

from flows.server.artifacts import Artifacts
from tasks import progress
from tasks.progress import Event

FEW = 3
"""With fewer shards than this there is nothing to watch."""


class _Bar:
    """The artifact, from the first shard that is computed on: shards that all stand need none."""

    def __init__(self, artifacts: Artifacts, step: str, shards: int) -> None:
        self._artifacts, self._step, self._shards = artifacts, step, shards
        self._lock = threading.Lock()
        self._artifact: Any = None
        self._n_done = 0
        self._has_started = self._is_waiting = False

    def hear(self, step: str, event: Event, _: float) -> None:
        if step != self._step:
            return
        with self._lock:
            self._n_done += event in ("end", "found", "failed")
            self._has_started |= event == "start"
            is_news = self._has_started and not self._is_waiting and event != "advance"
            self._is_waiting |= is_news
        if is_news:  # what is done until it is sent goes along with it
            self._artifacts.send(self._tell)

    def _tell(self) -> None:
        with self._lock:
            self._is_waiting = False
            percent = 100.0 * self._n_done / self._shards
        if self._artifact is None:
            description = f"{self._step}: {self._shards} shards"
            self._artifact = create_progress_artifact(percent, key=self._step, description=description)
        else:
            update_progress_artifact(self._artifact, percent)


@contextlib.contextmanager
def progress_shown(artifacts: Artifacts, shards: int, mapped: str) -> Iterator[None]:
    """Tell everyone who listens how many shards the mapped step has, and the UI how many are done."""
    progress.expect(mapped, shards)
    quiet = progress.listen(_Bar(artifacts, mapped, shards).hear) if shards >= FEW else None
    try:
        yield
    finally:
        if quiet is not None:
            quiet()
