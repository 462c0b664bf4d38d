"""When each step of a run began, how long it took, and whether it was computed or found: for the page and the summary,
part of no key.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tasks import progress
from tasks.progress import Event

STEPS = (
    "source",
    "ingest",
    "validate",
    "split",
    "scale",
    "show",
    "ask",
    "answer",
    "publish",
    "learn",
    "partition",
    "perturb",
    "aggregate",
    "terminate",
    "prune",
    "evaluate",
    "evaluate_shown",
    "report",
    "report_shown",
)


@dataclass
class StepTime:
    """One step of a run: seconds are wall time from its first start to its last end, offsets from the run's start."""

    name: str
    state: str = "cached"
    start: float = 0.0
    seconds: float = 0.0
    shards: int | None = None
    shards_done: int = 0

    @property
    def is_done(self) -> bool:
        """Whether all of it ended."""
        return self.shards_done >= (self.shards or 1)


class Timeline:
    """Listens to the steps that compute in this process; `note` adds those that were found."""

    def __init__(self) -> None:
        """Begin now."""
        self.began = time.monotonic()
        self._steps: dict[str, StepTime] = {}
        self._lock = threading.Lock()

    def hear(self, step: str, event: Event, fraction: float) -> None:
        """Take an event of `tasks.progress`."""
        now = time.monotonic() - self.began
        with self._lock:
            if not step:
                return
            entry = self._steps.setdefault(step, StepTime(step, start=now))
            if event == "expect":
                entry.shards = int(fraction)
            if event == "start" and entry.state == "cached":
                entry.state, entry.start = "computed", now
            if event in ("end", "failed", "found"):
                entry.seconds = now - entry.start
                entry.shards_done += 1
            if event == "failed":
                entry.state = "failed"

    def expect(self, step: str, shards: int) -> None:
        """State over how many shards a step is mapped; listeners elsewhere are told too."""
        progress.expect(step, shards)

    def step(self, name: str) -> StepTime | None:
        """One step, or None before it began."""
        with self._lock:
            return self._steps.get(name)

    def running(self, name: str) -> float:
        """Seconds since a step began."""
        with self._lock:
            return time.monotonic() - self.began - self._steps[name].start

    def steps(self) -> list[StepTime]:
        """The steps so far, in the order of the picture."""
        with self._lock:
            return [self._steps[name] for name in STEPS if name in self._steps]

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Listen while the block runs."""
        stop = progress.listen(self.hear)
        try:
            yield
        finally:
            stop()
