"""Progress of steps, from the thread that computes to what shows it: the terminal's list, and the times that a page and a summary
tell.

A step says how far it is with `advance`; it does not know who listens. Nothing here holds data, or is part of a key.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

Event = Literal["start", "advance", "end", "failed", "interrupted", "found", "expect"]
Listener = Callable[[str, Event, float], None]

_listeners: list[Listener] = []
_lock = threading.Lock()
_current: contextvars.ContextVar[str] = contextvars.ContextVar("ldptree_step", default="")


def listen(listener: Listener) -> Callable[[], None]:
    """Have `listener(step, event, fraction)` told of everything; returns how to stop it."""
    with _lock:
        _listeners.append(listener)

    def stop() -> None:
        with _lock:
            _listeners.remove(listener)

    return stop


def advance(fraction: float) -> None:
    """State which share of the step that runs in this thread is done (0 to 1)."""
    _tell(_current.get(), "advance", fraction)


def expect(step: str, shards: int) -> None:
    """State over how many shards a step is mapped, before it starts."""
    _tell(step, "expect", shards)


def tell_reused(step: str) -> None:
    """State that a step, or one shard of it, was found made already."""
    _tell(step, "found", 1.0)


def ended_elsewhere(step: str, *, is_done: bool, seconds: float) -> None:
    """State that a step, or one shard of it, was done in another process or failed there; `seconds` ago it began."""
    _tell(step, "start", seconds)
    _tell(step, "end" if is_done else "failed", 1.0)


@contextlib.contextmanager
def watch(step: str) -> Iterator[None]:
    """Tell of a step's start and end."""
    token = _current.set(step)
    _tell(step, "start", 0.0)
    try:
        yield
    except BaseException as fault:
        _tell(step, "failed" if isinstance(fault, Exception) else "interrupted", 0.0)
        raise
    finally:
        _current.reset(token)
    _tell(step, "end", 1.0)


def _tell(step: str, event: Event, fraction: float) -> None:
    with _lock:
        listeners = list(_listeners)
    for listener in listeners:
        listener(step, event, fraction)


@dataclass
class StepTime:
    """One step of a run.

    spans  when it went on, as [start, seconds] in wall time from the run's start: once a round, where it is of several.
    """

    name: str
    state: str = "cached"
    spans: list[list[float]] = field(default_factory=list)
    shards: int | None = None
    shards_done: int = 0
    n_running: int = 0
    n_reused: int = 0
    failed: int = 0

    @property
    def seconds(self) -> float:
        """Seconds that it went on."""
        return sum(seconds for _, seconds in self.spans)

    @property
    def is_done(self) -> bool:
        """True if all of it ended."""
        return self.shards_done >= (self.shards or 1)

    def seconds_left(self, running: float) -> float | None:
        """Return the seconds that the other shards take, if they go on like those computed in `running` seconds; None before any
        was.
        """
        computed = self.shards_done - self.n_reused
        return None if computed <= 0 else running / computed * ((self.shards or 1) - self.shards_done)


class Timeline:
    """Listens to the steps that compute in this process; `note` adds those that were found."""

    def __init__(self) -> None:
        """Begin now."""
        self.began, self.began_at = time.monotonic(), datetime.now(UTC)
        self._steps: dict[str, StepTime] = {}
        self._latest = ""
        self._lock = threading.Lock()

    def hear(self, step: str, event: Event, fraction: float) -> None:
        """Take an event."""
        now = time.monotonic() - self.began
        with self._lock:
            if not step:
                return
            entry = self._steps.setdefault(step, StepTime(step))
            if not entry.spans or (step != self._latest and entry.n_running == 0):
                entry.spans.append([now, 0.0])
            self._latest = step
            if event == "expect":
                entry.shards, entry.shards_done = int(fraction), 0  # of another round: they are counted anew
            if event == "start":
                entry.n_running += 1
                if entry.state == "cached":
                    entry.state, entry.spans[-1] = "computed", [now - fraction, 0.0]
            if event in ("end", "failed", "found", "interrupted"):
                entry.spans[-1][1] = now - entry.spans[-1][0]
                entry.n_running -= event != "found"
                entry.shards_done += event != "interrupted"
            if event == "interrupted":
                entry.state = "interrupted"
            if event == "found":
                entry.n_reused += 1
            if event == "failed":
                entry.state, entry.failed = "failed", entry.failed + 1

    def step(self, name: str) -> StepTime | None:
        """One step, or None before it began."""
        with self._lock:
            return self._steps.get(name)

    def running(self, name: str) -> float:
        """Seconds since a step began, or began again."""
        with self._lock:
            return time.monotonic() - self.began - self._steps[name].spans[-1][0]

    def steps(self) -> list[StepTime]:
        """The steps so far, in the order in which they began."""
        with self._lock:
            return list(self._steps.values())

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Listen while the block runs."""
        stop = listen(self.hear)
        try:
            yield
        finally:
            stop()
