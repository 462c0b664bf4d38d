"""What tests of several folders need: an empty store, the folder of real data sets, one finished small run."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

# Several test processes share the cores: threads of boosting that wait for each other spin, and a fit of a second takes thirty.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples every time: a test that fails fails again.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")

BESIDE = Path(__file__).parents[2] / "shared" / "data"
TRIPS = 20_000


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """How tests are shared out over processes: each file to one, and whole runs all to one, for they share a server. The slow
    ones, most of them whole runs, are too many for that.
    """
    from xdist.scheduler import LoadScopeScheduling

    is_slow = config.option.markexpr == "slow"

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            is_run = nodeid.startswith("tests/system/") and not is_slow
            return "system" if is_run else nodeid.partition("::")[0]

    return Together(config, log)


def pytest_collection_modifyitems(items):
    """Whole runs first: they take longest."""
    items.sort(key=lambda item: "system" not in item.path.parts)


@pytest.fixture(autouse=True, scope="session")
def _no_wait_for_a_winner():
    """A damaged artifact is waited for, in case another process is writing it: here there is none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("storage.store.WINNER_POLL_SECONDS", 0.0)
        yield


@pytest.fixture
def store(tmp_path):
    """A store on an empty work folder."""
    from storage.store import Store

    return Store(tmp_path / "work")


@pytest.fixture(scope="session")
def data_home():
    """The folder of real data sets, with LDPTREE_DATA set to it; the test is skipped where there is none."""
    home = Path(os.environ.get("LDPTREE_DATA") or BESIDE)
    if not home.is_dir():
        pytest.skip(f"no folder of data sets: LDPTREE_DATA is not set, and there is no {BESIDE}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LDPTREE_DATA", str(home))
        yield home


@pytest.fixture(scope="session")
def trips(tmp_path_factory):
    """The quickstart with one tree on 20,000 trips, step by step (see `chain.Chain`). Only to be read: tests share it."""
    from chain import Chain

    from schemas.config import load
    from storage.store import Store

    config = load("quickstart", ["model.estimator=lpct", f"dataset.rows={TRIPS}", "evaluation.redraws=5"])
    return Chain(Store(tmp_path_factory.mktemp("trips") / "work"), config)
