"""Runs whose shards a Ray cluster computes: what each family learns is the same, whichever machines computed it or died."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from unittest import mock

import pytest

pytest.importorskip("ray")
pytest.importorskip("prefect_ray")

pytest.importorskip("moto")

from chain import rides, rides_config
from prefect_ray import RayTaskRunner
from ray.cluster_utils import Cluster
from s3_server import bucket_objects, make_bucket, proxy, s3_server, variables
from test_digests import RUNS
from whole_runs import PATIENCE, many_files, reports, rides_toml, run, until

from flows.server.process import environment
from ldptree.errors import LdptreeError
from ldptree.families import FAMILIES
from schemas.config import load
from schemas.tables import RunnerConfig
from storage.ledger.accounts import Account
from storage.ledger.connections import VARIABLE
from storage.store import Store

pytestmark = [pytest.mark.server, pytest.mark.slow]

OF_FAMILIES = (
    "lpct",
    "lpct, Algorithm 2",
    "lpdt",
    "correction, classes, tree",
    "public_features",
    "histoftree",
)


@pytest.fixture(scope="module")
def cluster():
    """A cluster of two machines with a CPU each."""
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    found.add_node(num_cpus=1)
    yield found
    found.shutdown()


@pytest.fixture
def mapped(monkeypatch):
    """The steps whose shards a cluster computed."""
    steps, compute = [], RayTaskRunner.map

    def note(self, task, parameters):
        steps.append(task.name)
        return compute(self, task, parameters)

    monkeypatch.setattr(RayTaskRunner, "map", note)
    return steps


@pytest.mark.parametrize("name", OF_FAMILIES)
def test_every_family_learns_on_a_cluster_what_it_learns_on_threads(cluster, mapped, tmp_path, name):
    config = RUNS[name](tmp_path).model_copy(update={"evaluate": False})
    there = config.model_copy(update={"run": RunnerConfig(ray=cluster.address)})
    found = [
        (
            (work / "runs" / run(settings, work)["run"] / "model.json").read_bytes(),
            sorted(data for _, _, data in reports(work).values()),
        )
        for settings, work in ((config, tmp_path / "threads"), (there, tmp_path / "ray"))
    ]
    assert found[0] == found[1]
    assert len(found[0][1]) == mapped.count("perturb") > 0  # one shard each
    assert {"count", "cut"} <= {*mapped}


def test_a_fault_on_a_cluster_is_told_as_on_threads(cluster, tmp_path):
    path = rides(tmp_path / "rides.csv", 300, 1)
    config, work = rides_config(path, evaluate=False), tmp_path / "work"
    run(config, work)
    (folder,) = (work / "curator" / "reports").glob("*/round-1")
    shutil.rmtree(folder)
    folder.touch()
    said = []
    for engine in (RunnerConfig(), RunnerConfig(ray=cluster.address)):
        again = {"run": engine, "simulation": config.simulation.model_copy(update={"noise_seed": 12})}
        with pytest.raises(LdptreeError, match=r"perturb: .*: cannot be used") as fault:
            run(config.model_copy(update=again), work)
        said.append((type(fault.value), str(fault.value)))
    assert said[0] == said[1]


def test_the_test_above_is_about_every_family(tmp_path):
    assert {RUNS[name](tmp_path).model.estimator for name in OF_FAMILIES} == set(FAMILIES)


def on(cluster, config, work, *, prelude):
    """Exit code, output and errors of a run on a cluster, after some Python in its process, which may import Prefect before
    the command line sets Prefect's settings.
    """
    program = f"{prelude}; from flows.command.main import main; main()"
    words = (
        "run",
        config,
        "--work",
        work,
        "--json",
        "--set",
        f"run.ray={cluster.address}",
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        env=os.environ | environment(work),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout, done.stderr


REFUSALS = {
    "another Ray": (
        "import ray; ray.__version__ = '2.0.0'",
        2,
        "this machine is not part of a Ray cluster there, or has another RAY_AUTH_TOKEN, Ray or Python",
    ),
    "another ldptree": (
        "import tasks.data.violations as v, dataclasses; v.count.step = dataclasses.replace(v.count.step, version='0')",
        2,
        "count: another ldptree-pipeline is installed on",
    ),
    "another folder of this name": (
        "import storage.store as s; s.has_secret = lambda objects: True; "
        "s.Store.__reduce__ = lambda self: (s._opened_elsewhere, (self.work, 'of another'))",
        2,
        "has not the run's work folder",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_cluster_that_cannot_compute_is_refused_in_a_sentence_before_anybody_is_charged(
    cluster, tmp_path, name
):
    prelude, code, said = REFUSALS[name]
    config = rides_toml(tmp_path / "rides.toml", str(rides(tmp_path / "rides.csv", 300, 1)))
    found = on(cluster, config, tmp_path / "work", prelude=prelude)
    assert (found[0], found[1], found[2].count("\n"), said in found[2]) == (code, "", 1, True), found
    assert len(Account(Store(tmp_path / "work"), None).read()) == 0


def test_a_cluster_without_a_machine_stops_the_run_before_anybody_is_charged(tmp_path):
    empty = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        config = rides_toml(tmp_path / "rides.toml", str(rides(tmp_path / "rides.csv", 300, 1)))
        prelude = "import flows.runner as r; r.POLL_SECONDS, r.ALONE_SECONDS = 0.2, 1.0"
        found = on(empty, config, tmp_path / "work", prelude=prelude)
    finally:
        empty.shutdown()
    assert found[:2] == (1, "")
    assert "no machine is left in the Ray cluster" in found[2]
    assert len(Account(Store(tmp_path / "work"), None).read()) == 0


N_SHARDS = 5
DRIVERS = ("driver", "another", "watch")
"""Where runs are started, or looked at: only these need the holders' database."""


class Machines:
    """A cluster of machines that share nothing but a bucket behind `port`; the first has no CPU for shards."""

    def __init__(self, port, folder):
        self.port, self.folder = port, folder
        self.cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 0,
                "include_dashboard": False,
                "env_vars": self.environment("head", port),
            },
        )

    def environment(self, name, port):
        """What a machine has for itself: a way to the bucket, and a place for copies."""
        own = {VARIABLE: str(self.folder / "holders.db")} if name in DRIVERS else {}
        return variables(port) | {"XDG_CACHE_HOME": str(self.folder / name)} | own

    def join(self, name, port):
        """One more machine, with a CPU."""
        return self.cluster.add_node(num_cpus=1, env_vars=self.environment(name, port))


@dataclass(frozen=True)
class Kill:
    """When a machine is killed: as the first object whose name has `at` in it arrives in the bucket, before it stands ("dropped")
    or right after ("lost"). `n_drawn`: how many shards have reported by then.
    """

    at: str
    fault: str
    n_drawn: int
    is_seeded: bool = True
    is_driver_killed: bool = False


KILLS = {
    "reads": Kill("/holders/read/", "dropped", 0),
    "perturbs": Kill("/curator/reports/", "dropped", 0),
    "has perturbed": Kill("/curator/reports/", "lost", 1, is_seeded=False, is_driver_killed=True),
    "has added up": Kill("/curator/add/", "lost", N_SHARDS),
}
"""In ingest, perturb and aggregate, with and without the driver, before and after the object of a shard stands."""
PART_BYTES = 2000
IN_PARTS = (
    "import tasks.answers.add as a, tasks.data.source as s, tasks.holders.cut as c; "
    f"a.PART_SHARDS, c.PART_ROWS, s.PART_BYTES = 2, 1, {PART_BYTES}"
)
"""Pieces of each raw file, a part for each file of rows, and one for every two files of reports."""


@pytest.mark.parametrize("name", KILLS)
def test_a_machine_that_is_killed_costs_its_part_and_asks_nobody_twice(tmp_path, files_of_few, name):
    """Then another machine joins; or the driver is killed too, and another machine goes on by itself."""
    killed, bucket = KILLS[name], name.replace(" ", "-").replace(",", "")
    seed = {"simulation": {"noise_seed": 11}} if killed.is_seeded else {}
    work = f"s3://{bucket}/team"
    config = rides_toml(tmp_path / "rides.toml", f"s3://{bucket}/raw/*.csv", **seed)
    with s3_server() as port, ExitStack() as stack:
        make_bucket(port, bucket)
        raw = bucket_objects(port, bucket, tmp_path / "raw", prefix="raw")
        for path in files_of_few.iterdir():
            raw.put(path.name, path.read_bytes())
        machines = Machines(port, tmp_path)
        stack.callback(machines.cluster.shutdown)
        is_killed = threading.Event()

        def kill(method, path):
            if is_killed.is_set():
                return "dropped"
            if method != "PUT" or killed.at not in path:
                return ""
            is_killed.set()
            return killed.fault

        between = stack.enter_context(proxy(port, kill))
        victim = machines.join("victim", between.server_port)
        command = ("run", config, "--work", work, "--json")
        there = ("--set", f"run.ray={machines.cluster.address}")
        process = started(*command, *there, env=machines.environment("driver", port))
        stack.callback(process.kill)
        until(killed.at, lambda: is_killed.is_set() or process.poll() is not None)
        machines.cluster.remove_node(victim, allow_graceful=False)
        with mock.patch.dict(os.environ, machines.environment("watch", port)):
            kept = drawn(Store(work))
        if killed.is_driver_killed:
            process.kill()
            process.communicate()
            process = started(*command, env=machines.environment("another", port))
        else:
            machines.join("late", port)
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, err) == (0, "")
        with mock.patch.dict(os.environ, machines.environment("watch", port)):
            store = Store(work)
            found, charges = drawn(store), Account(store, 11 if killed.is_seeded else None).read()
            model = store.objects.get(f"runs/{json.loads(out)['run']}/model.json")
            parts = {
                step: len([*store.record_names(zone, step)])
                for zone in ("holders", "curator")
                for step in ("read", "count", "cut", "add")
                if [*store.record_names(zone, step)]
            }
    assert is_killed.is_set()
    sizes = [path.stat().st_size for path in files_of_few.iterdir()]
    assert min(sizes) > PART_BYTES
    assert parts["count"] >= N_SHARDS
    assert parts == {
        "read": len(sizes),
        "count": parts["count"],
        "cut": N_SHARDS,
        "add": (N_SHARDS + 1) // 2,
    }
    assert len(kept) == killed.n_drawn
    assert len(found) == N_SHARDS
    assert {name: found[name] for name in kept} == kept
    local = rides_toml(tmp_path / "local.toml", str(files_of_few / "*.csv"), **seed)
    here = run(load(local), tmp_path / "here")
    assert len(charges) == len(Account(Store(tmp_path / "here"), 11 if killed.is_seeded else None).read())
    assert json.loads(out)["largest_spend"] == here["largest_spend"] == 2.0
    if killed.is_seeded:
        assert model == (tmp_path / "here" / "runs" / here["run"] / "model.json").read_bytes()


def started(*words, env):
    """A command that works in small parts, begun in a process of its own."""
    program = f"{IN_PARTS}; import sys; from flows.command.main import main; main(sys.argv[1:])"
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, words)],
        env=os.environ | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def files_of_few(tmp_path_factory):
    """A file of public rows, and one for each of a few shards."""
    return many_files(tmp_path_factory.mktemp("few"), n_shards=N_SHARDS)


def drawn(store):
    """The files of reports of a work folder, by name."""
    names = [entry.name for entry in store.objects.entries("curator/reports", deep=True)]
    return {name: store.objects.get(name) for name in names if name.endswith(".parquet")}
