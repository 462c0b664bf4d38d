"""Compiled functions work where nothing can be cached."""

import errno
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from numba.core.caching import FunctionCache

from ldptree.compiled import compiled


def total(array):
    result = 0.0
    for value in array:
        result += value
    return result


def test_a_compiled_function_gives_what_the_plain_one_gives():
    fast = compiled(total)
    assert fast(np.arange(5.0)) == total(np.arange(5.0)) == 10
    assert fast.__name__ == "total"


def test_threads_may_meet_at_the_first_call():
    fast = compiled(total)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fast, [np.ones(n) for n in range(8)])) == list(range(8))


def test_without_a_folder_to_cache_in_it_is_compiled_in_memory(monkeypatch):
    plain = numba.njit

    def njit(**options):
        if options.pop("cache", False):
            raise RuntimeError("cannot cache function: no locator available")
        return plain(**options)

    monkeypatch.setattr(numba, "njit", njit)
    assert compiled(total)(np.ones(3)) == 3


@pytest.mark.parametrize("step", ["save_overload", "load_overload"])
def test_a_full_disk_or_a_damaged_cache_costs_only_time(monkeypatch, step):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FunctionCache, step, fail)
    assert compiled(total)(np.ones(4)) == 4
