"""What tests of several folders need: an empty store, the folder of real data sets, one finished small run."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import hypothesis
import pytest

# Several test processes share the cores: threads of boosting that wait for each other spin, and a fit of a second takes thirty.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples every time: a test that fails fails again.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")

BESIDE = Path(__file__).parents[1] / "shared" / "data"
TRIPS = 20_000
SLOWEST = 900
"""Seconds after which a slow test is taken to hang."""
REAL_FSYNC = os.fsync


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """What `--numprocesses auto` means: a process for each core that there is for us, and at least two."""
    return max(2, len(os.sched_getaffinity(0)))


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
    """Put whole runs first, as they take longest. A slow test may take long on a machine that does much else."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOWEST))
    items.sort(key=lambda item: "system" not in item.path.parts)


def pytest_collection_finish():
    """What stands before the first test stays: to look for garbage among a million objects takes long."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def pytest_sessionfinish():
    """Let libraries be unloaded as always: some count what is left of them."""
    gc.unfreeze()


@pytest.fixture(autouse=True, scope="session")
def _no_wait_for_the_disk():
    """No test pulls the plug: what a test's own process writes need not reach the disk. Processes that a test starts do wait;
    `real_fsync` gives the waiting back.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _descriptor: None)
        yield


@pytest.fixture
def real_fsync(monkeypatch):
    """Files written by this test are waited for, as in a run."""
    monkeypatch.setattr(os, "fsync", REAL_FSYNC)


@pytest.fixture(autouse=True, scope="session")
def _databases_of_buckets_in_memory(tmp_path_factory):
    """A bucket in memory has its holders' database in a file, the same one for each machine that opens the bucket."""
    from storage.ledger import connections

    try:
        from obstore.store import MemoryStore
    except ImportError:
        yield
        return
    url_of, buckets = connections.url_of, []

    def url_or_file(objects):
        bucket = getattr(objects, "_bucket", None)
        if not isinstance(bucket, MemoryStore):
            return url_of(objects)
        if not any(bucket is each for each, _ in buckets):
            buckets.append((bucket, tmp_path_factory.mktemp("database") / "holders.db"))
        (path,) = (path for each, path in buckets if bucket is each)
        return connections.URL.create("sqlite", database=str(path))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "url_of", url_or_file)
        yield


@pytest.fixture(autouse=True, scope="session")
def _templates_compiled_once():
    """Each Jinja template is compiled once a process, although every page has an environment of its own."""
    import jinja2

    class InMemory(jinja2.BytecodeCache):
        def __init__(self):
            self.compiled = {}

        def load_bytecode(self, bucket):
            bucket.code = self.compiled.get((bucket.key, bucket.checksum))

        def dump_bytecode(self, bucket):
            self.compiled[bucket.key, bucket.checksum] = bucket.code

    cache, make = InMemory(), jinja2.Environment.__init__

    def with_cache(environment, *args, **settings):
        make(environment, *args, **settings)
        environment.bytecode_cache = environment.bytecode_cache or cache

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jinja2.Environment, "__init__", with_cache)
        yield


@pytest.fixture(autouse=True, scope="module")
def _few_trees(request):
    """Forests of steps and runs are small: how good they are is tested in `ldptree`."""
    if not {"tasks", "flows"} & set(request.path.parts):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ldptree.public_models.fit.N_TREES", 20)
        patch.setattr("ldptree.public_models.fit.FEWEST_TREES", 10)
        patch.setattr("ldptree.baselines.public.N_TREES", 10)
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
