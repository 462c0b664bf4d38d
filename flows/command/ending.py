"""End the program here, whichever way it came to its end, and at once when its last word is said.

Python's own way takes thousands of modules apart and calls back what libraries left behind while their threads still run.
What those would then say, tracebacks and warnings, is no message of ours. What a run has to end in order (its server, what it
still tells Prefect) is ended before, in `running`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import NoReturn

from ldptree.plain_text import make_visible

_acts: list[tuple[int, Callable[[], object]]] = []
"""What an end in the middle of something must not leave undone, and the process it is done in."""
_ending = threading.Lock()


def silence_libraries() -> None:
    """Print no more warnings, nor errors of threads and destructors. These are no messages of the program, and may
    quote a value of a row.

    Threads that set filters of warnings for a while put back each other's, so that a filter alone lets some through.
    """
    threading.excepthook = lambda _: None
    logging.raiseExceptions = False  # nor that a handler's lines did not reach a server
    sys.unraisablehook = lambda _: None
    warnings.simplefilter("ignore")
    warnings.formatwarning = lambda *_: ""


@contextlib.contextmanager
def done_at_the_end(act: Callable[[], object]) -> Iterator[None]:
    """In here an end in the middle of something does `act` first. It must be short, and wait for nobody."""
    entry = (os.getpid(), act)
    _acts.append(entry)
    try:
        yield
    finally:
        _acts.remove(entry)


def end_now(code: int, message: str) -> None:
    """End in the middle of something, from any thread or signal handler. Returns only where another thread is ending already."""
    if not _ending.acquire(blocking=False):
        return
    for process, act in reversed(_acts):
        if process == os.getpid():  # a forked child ends nothing of its parent's
            with contextlib.suppress(Exception):
                act()
    with contextlib.suppress(OSError):
        os.write(2, f"{make_visible(message)}\n".encode())
    os._exit(code)


def leave(code: int) -> NoReturn:
    """Hand over what was printed, and end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # Nothing is left to interrupt but a reader who takes nothing.
        signal.signal(number, lambda signum, _: os._exit(128 + signum))
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        # Its reader went away; of other faults the command line has told (`streams`).
        code = code or 1
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr is not None:
            sys.stderr.flush()
    os._exit(code)
