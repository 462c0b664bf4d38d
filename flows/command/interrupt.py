"""Handle Ctrl-C and a termination signal during a run.

Python raises KeyboardInterrupt wherever the main thread happens to be; inside an import it is swallowed, or leaves the
import lock held and the run hanging. So a run that has not begun its flow ends at once (a killed run loses nothing, and
its server ends with it), and one that has gets a while in which to tell Prefect. While its flow goes on Prefect takes
termination signals itself, and hands them on where its own exception comes out: so what strikes is heard below all handlers,
as Python writes it to a socket. An interrupt in the middle of something, an exchange with the server say, may come out as
another fault: it is the interrupt all the same.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from flows.command.ending import end_now

INTERRUPTED = 130
"""What typer exits with on Ctrl-C."""
TERMINATED = 143
"""What a shell says of a process that a termination signal ended."""

EXIT_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
FINISHED_STEPS_STAND = "ldptree: interrupted. Finished steps are kept; the same command continues from there."
GRACE_SECONDS = 20.0

Handlers = dict[signal.Signals, Any]


def end_at_once() -> Handlers:
    """From here on these signals end the process. Returns the handlers there were, for `handle_again`."""
    return {number: signal.signal(number, _end) for number in EXIT_CODES}


@contextlib.contextmanager
def ended_politely() -> Iterator[None]:
    """In here these signals raise KeyboardInterrupt or SystemExit, and end the process where that has not ended it in time;
    after one of them any other exception ends the process as it does. Where none came, handlers are as before.
    """
    struck: list[signal.Signals] = []

    def note(signum: int) -> None:
        struck.append(signal.Signals(signum))
        watch = threading.Timer(GRACE_SECONDS, _end, [signum])
        watch.daemon = True
        watch.start()

    def unwind(signum: int, frame: FrameType | None) -> None:
        end_at_once()
        note(signum)
        if signum == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(EXIT_CODES[struck[0]])

    before = {number: signal.signal(number, unwind) for number in EXIT_CODES}
    try:
        with _heard(note):
            yield
    except BaseException as fault:
        if not struck or (isinstance(fault, KeyboardInterrupt) and struck[0] == signal.SIGINT):
            raise
        raise SystemExit(EXIT_CODES[struck[0]]) from fault
    finally:
        if not struck:
            handle_again(before)


@contextlib.contextmanager
def _heard(note: Callable[[int], None]) -> Iterator[None]:
    """In here every one of these signals is noted, whoever handles it."""
    hears, tells = socket.socketpair()
    tells.setblocking(False)

    def listen() -> None:
        while heard := hears.recv(1):
            if heard[0] in EXIT_CODES:
                note(heard[0])

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    before = signal.set_wakeup_fd(tells.fileno(), warn_on_full_buffer=False)
    _listening.append(os.getpid())
    try:
        yield
    finally:
        if _listening.pop() == os.getpid():
            signal.set_wakeup_fd(before)
            tells.shutdown(socket.SHUT_RDWR)
            listener.join()
        hears.close()
        tells.close()


def _detach_wakeup_fd() -> None:
    """A forked child's signals are none of its parent's, whose socket it has."""
    if _listening:
        signal.set_wakeup_fd(-1)


_listening: list[int] = []
"""The process that listens for each `_heard` that has not ended."""
os.register_at_fork(after_in_child=_detach_wakeup_fd)


def handle_again(handlers: Handlers) -> None:
    """Handle signals as before."""
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _end(signum: int, frame: FrameType | None = None) -> None:
    end_now(EXIT_CODES[signal.Signals(signum)], FINISHED_STEPS_STAND)
