"""What Ctrl-C does to a run.

Python raises KeyboardInterrupt wherever the main thread happens to be; inside an import it is swallowed, or leaves the
import lock held and the run hanging. So a run that has not begun its flow ends at once (a killed run loses nothing, and
its server ends with it), and one that has gets a while in which to tell Prefect.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any

INTERRUPTED = 130
"""What typer exits with on Ctrl-C."""

FINISHED_STEPS_STAND = "ldptree: interrupted. Finished steps stand; the same command goes on from there."
GRACE_SECONDS = 20.0


def end_at_once() -> Any:
    """From here on Ctrl-C ends the process. Returns the handler there was, for `signal.signal`."""
    return signal.signal(signal.SIGINT, _end)


def end_politely() -> Any:
    """From here on Ctrl-C raises KeyboardInterrupt, and ends the process where that has not ended it in time."""
    return signal.signal(signal.SIGINT, _raise)


def _end(signum: int = 0, frame: FrameType | None = None) -> None:
    os.write(2, f"{FINISHED_STEPS_STAND}\n".encode())
    os._exit(INTERRUPTED)


def _raise(signum: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, _end)
    watch = threading.Timer(GRACE_SECONDS, _end)
    watch.daemon = True
    watch.start()
    raise KeyboardInterrupt
