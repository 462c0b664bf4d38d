"""What a forked process says, for tests of forks and of processes that are killed."""

from __future__ import annotations

import os
from collections.abc import Callable


def in_a_fork(act: Callable[[], object]) -> str:
    """What `act` returns in a process of its own, as text; "" where that is killed before it does."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, str(act()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        said = told.read()
    os.waitpid(child, 0)
    return said
