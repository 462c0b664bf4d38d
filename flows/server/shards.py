"""Progress of the mapped step in the Prefect UI: one artifact that fills as shards are done. The terminal's list is in
`terminal`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from prefect.artifacts import create_progress_artifact, update_progress_artifact

from tasks import progress
from tasks.progress import Event

FEW = 3
"""With fewer shards than this there is nothing to watch."""


@contextlib.contextmanager
def progress_shown(shards: int, mapped: str = "perturb") -> Iterator[None]:
    """Tell everyone who listens how many shards the mapped step has, and the UI how many are done."""
    progress.expect(mapped, shards)
    if shards < FEW:
        yield
        return
    artifact: Any = create_progress_artifact(0.0, key=mapped, description=f"{mapped}: {shards} shards")
    done, stop = threading.Semaphore(0), threading.Event()

    def hear(step: str, event: Event, _: float) -> None:
        if step == mapped and event in ("end", "found", "failed"):
            done.release()

    def tell() -> None:
        finished = 0
        while not stop.is_set():
            if not done.acquire(timeout=0.5):
                continue
            finished += 1
            while done.acquire(blocking=False):
                finished += 1
            with contextlib.suppress(Exception):  # a picture of the work, never a reason for it to fail
                update_progress_artifact(artifact, 100.0 * finished / shards)

    quiet = progress.listen(hear)
    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        quiet()
        stop.set()
        teller.join(timeout=5)
        with contextlib.suppress(Exception):
            update_progress_artifact(artifact, 100.0)
