"""One finished run of each family, for all tests of a process."""

from __future__ import annotations

from functools import cache

import pytest
from families import RUNS, Walked

from flows.executors import InlineExecutor
from storage.store import Store


@pytest.fixture(scope="session")
def run_of(tmp_path_factory):
    """The finished run of a family, by the name that `families.RUNS` has for it. Only to be read."""

    @cache
    def walk(name):
        room = tmp_path_factory.mktemp("run")
        store = Store(room / "work")
        run = Walked(store=store, config=RUNS[name](room), executor=InlineExecutor(store))
        run.walk()
        return run

    return walk
