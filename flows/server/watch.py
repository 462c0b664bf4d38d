"""Notices that a run's server has ended or hangs, which Prefect's own client would wait for by the minute."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from flows.command.ending import end_now
from flows.server.health import answers
from flows.server.process import Server
from ldptree.errors import LdptreeError

INTERVAL_SECONDS = 0.5
ANSWER_SECONDS = 2.5
MISSES = 4
"""Answers in a row that must fail to come: counted, not timed, so that a machine that slept does not end its runs."""


@contextlib.contextmanager
def watched(server: Server) -> Iterator[None]:
    """In here the loss of the server ends the process, as a kill would: finished steps stand. Raises LdptreeError in place of
    what Prefect made of it.
    """
    over = threading.Event()

    def watch() -> None:
        misses = 0
        while not over.wait(INTERVAL_SECONDS):
            misses = 0 if _is_there(server) else misses + 1
            if (server.has_ended or misses >= MISSES) and not over.is_set():
                end_now(LdptreeError.exit_code, f"ldptree: {server.loss(_how(server))}")

    watcher = threading.Thread(target=watch, name="watch of the server", daemon=True)
    watcher.start()
    try:
        yield
    except LdptreeError:
        raise
    except Exception:
        if server.has_ended or not any(_is_there(server) for _ in range(MISSES)):
            raise LdptreeError(server.loss(_how(server))) from None
        raise
    finally:
        over.set()


def _is_there(server: Server) -> bool:
    assert server.url is not None
    return not server.has_ended and answers(server.url, seconds=ANSWER_SECONDS)


def _how(server: Server) -> str:
    return "has ended" if server.has_ended else "does not answer any more"
