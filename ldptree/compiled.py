"""Run functions at machine speed with numba, compiled at the first call, without the GIL.

Only the decorator lives here; the functions themselves stand beside the code that uses them. numba is
imported at the first call, so importing ldptree stays quick. Where numba is not installed, as on a holder's device, they
run as plain Python: slow, and the same to the last bit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def has_numba() -> bool:
    """Return whether there is a numba to compile with; it is not imported."""
    return find_spec("numba") is not None


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` with numba when it is first called, and keep the result on disk where that is possible.

    Disk caching is a convenience: with a read-only package folder and no writable home, a full disk or a damaged
    cache file, the function is compiled in memory instead. The function must not raise by itself.
    """
    lock = threading.Lock()
    dispatchers: list[Any] = []

    def in_memory() -> Any:
        from numba import njit

        return njit(nogil=True)(function)

    def first() -> Any:
        try:
            from numba import njit
        except ImportError:
            return function
        try:
            return njit(nogil=True, cache=True)(function)
        except RuntimeError:  # no folder to cache in
            return in_memory()

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not dispatchers:
            with lock:
                if not dispatchers:
                    dispatchers.append(first())
        try:
            result: R = dispatchers[-1](*args, **kwargs)
        except Exception:  # the cache could not be written or read (it happens before the function starts)
            if dispatchers[-1] is function:
                raise
            with lock:
                dispatchers.append(in_memory())
            result = dispatchers[-1](*args, **kwargs)
        return result

    return call
