"""Progress of steps, from whichever thread computes to whoever shows it (the terminal's step list, Prefect's progress artifacts).

A step says how far it is with `advance`; it does not know who listens. Nothing here holds data.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import Literal

Event = Literal["start", "advance", "end", "failed", "found", "expect"]
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


def found(step: str) -> None:
    """State that a step, or one shard of it, was found made already."""
    _tell(step, "found", 1.0)


@contextlib.contextmanager
def watch(step: str) -> Iterator[None]:
    """Tell of a step's start and end."""
    token = _current.set(step)
    _tell(step, "start", 0.0)
    try:
        yield
    except BaseException:
        _tell(step, "failed", 0.0)
        raise
    finally:
        _current.reset(token)
    _tell(step, "end", 1.0)


def _tell(step: str, event: Event, fraction: float) -> None:
    with _lock:
        listeners = list(_listeners)
    for listener in listeners:
        listener(step, event, fraction)
