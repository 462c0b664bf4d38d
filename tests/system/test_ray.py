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
from ray.cluster_utils import Cluster
from s3_server import bucket_objects, make_bucket, proxy, s3_server, variables
from test_digests import RUNS
from whole_runs import many_files, reports, rides_toml, run, start, steps, until

from flows.engines import ray_cluster
from flows.server.process import environment
from ldptree.errors import LdptreeError
from ldptree.families import FAMILIES
from schemas.config import load
from schemas.tables import EngineConfig
from storage.ledger.accounts import Account
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
    steps, compute = [], ray_cluster.Cluster.map

    def note(self, task, step, call):
        steps.append(step)
        return compute(self, task, step, call)

    monkeypatch.setattr(ray_cluster.Cluster, "map", note)
    return steps


@pytest.mark.parametrize("name", OF_FAMILIES)
def test_every_family_learns_on_a_cluster_what_it_learns_on_threads(cluster, mapped, tmp_path, name):
    config = RUNS[name](tmp_path).model_copy(update={"evaluate": False})
    there = config.model_copy(update={"run": EngineConfig(engine="ray", ray_address=cluster.address)})
    found = [
        (
            (work / "runs" / run(settings, work)["run"] / "model.json").read_bytes(),
            sorted(data for _, _, data in reports(work).values()),
        )
        for settings, work in ((config, tmp_path / "threads"), (there, tmp_path / "ray"))
    ]
    assert found[0] == found[1]
    assert len(found[0][1]) == len(mapped) > 0  # one shard each


def test_a_cluster_looks_at_who_was_asked_and_scores_are_those_of_threads(
    cluster, mapped, monkeypatch, tmp_path
):
    monkeypatch.setattr("tasks.holders.stretches.SHARD_ROWS", 300)
    config = RUNS["correction, classes, tree"](tmp_path)
    there = config.model_copy(update={"run": EngineConfig(engine="ray", ray_address=cluster.address)})
    scores = []
    for settings, work, n_files in ((config, tmp_path / "threads", 64), (there, tmp_path / "ray", 2)):
        monkeypatch.setattr("tasks.parts.PART_SHARDS", n_files)
        run(settings, work)
        (path,) = (work / "simulation" / "evaluate").rglob("scores.json")
        scores.append(path.read_bytes())
    assert mapped.count("known") == 1
    assert scores[0] == scores[1]


def test_a_fault_on_a_cluster_is_told_as_on_threads(cluster, tmp_path):
    path = rides(tmp_path / "rides.csv", 300, 1)
    config, work = rides_config(path, evaluate=False), tmp_path / "work"
    run(config, work)
    (folder,) = (work / "curator" / "reports").glob("*/round-1")
    shutil.rmtree(folder)
    folder.touch()
    said = []
    for engine in (EngineConfig(), EngineConfig(engine="ray", ray_address=cluster.address)):
        again = {"run": engine, "simulation": config.simulation.model_copy(update={"noise_seed": 12})}
        with pytest.raises(LdptreeError, match=r"perturb: .*: cannot be used") as fault:
            run(config.model_copy(update=again), work)
        said.append((type(fault.value), str(fault.value)))
    assert said[0] == said[1]


def test_the_test_above_is_about_every_family(tmp_path):
    assert {RUNS[name](tmp_path).model.estimator for name in OF_FAMILIES} == set(FAMILIES)


def test_without_an_address_a_run_starts_ray_and_the_same_command_finds_every_shard(tmp_path):
    files = many_files(tmp_path / "files", n_shards=3)
    config = rides_toml(tmp_path / "rides.toml", str(files / "*.csv"), simulation={"noise_seed": 11})
    said = []
    for _ in range(2):
        process = start(
            "run", config, "--work", tmp_path / "work", "--engine", "ray", "--workers", "2", "--json"
        )
        out, err = process.communicate(timeout=200)
        assert (process.returncode, err) == (0, "")
        said.append(json.loads(out))
    assert "perturb" in steps(said[0], "computed")
    assert steps(said[1], "computed") == set()
    assert len(reports(tmp_path / "work")) == 3


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
        "--engine",
        "ray",
        "--json",
        "--set",
        f"run.ray_address={cluster.address}",
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        env=os.environ | environment(work),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    return done.returncode, done.stdout, done.stderr


REFUSALS = {
    "another Ray": ("import ray; ray.__version__ = '2.0.0'", 2, "this machine Ray 2.0.0 with Python "),
    "another ldptree": (
        "import flows.engines.ray_cluster as c; c.version = lambda part: '9.9'",
        2,
        "and this one 9.9. Install ldptree-pipeline 9.9 there.",
    ),
    "without ldptree": (
        "import flows.engines.ray_cluster as c; c.PARTS = ('nobody-has-this',); c.version = lambda part: '9.9'",
        2,
        "has no nobody-has-this. Install nobody-has-this 9.9 there.",
    ),
    "no CPU is free": (
        "import flows.engines.ray_cluster as c; c._nothing = lambda: __import__('time').sleep(90); c.FREE_SECONDS = 2.0",
        1,
        "none of the 2 CPUs of the cluster was free for 2 seconds. ",
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
    assert not list((tmp_path / "work" / "holders" / "ledger").rglob("*.charge"))


def test_a_cluster_without_a_cpu_is_refused(tmp_path):
    empty = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        config = rides_toml(tmp_path / "rides.toml", str(rides(tmp_path / "rides.csv", 300, 1)))
        found = on(empty, config, tmp_path / "work", prelude="pass")
    finally:
        empty.shutdown()
    assert found[:2] == (2, "")
    assert "no machine of the cluster has a CPU for shards" in found[2]


N_SHARDS = 5


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
        return variables(port) | {"XDG_CACHE_HOME": str(self.folder / name)}

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
    "has read": Kill("/holders/read/", "lost", 0, is_driver_killed=True),
    "has counted": Kill("/holders/count/", "lost", 0, is_driver_killed=True),
    "cuts": Kill("/holders/cut/", "dropped", 0, is_seeded=False),
    "perturbs": Kill("/curator/reports/", "dropped", 0),
    "has perturbed": Kill("/curator/reports/", "lost", 1, is_seeded=False),
    "has perturbed, and its driver too": Kill("/curator/reports/", "lost", 1, is_driver_killed=True),
    "adds up": Kill("/curator/add/", "dropped", N_SHARDS),
    "has added up": Kill("/curator/add/", "lost", N_SHARDS, is_seeded=False, is_driver_killed=True),
}
PART_BYTES = 2000
IN_PARTS = f"import tasks.parts as a, tasks.data.source as s; a.PART_SHARDS, a.PART_ROWS, s.PART_BYTES = 2, 1, {PART_BYTES}"
"""Pieces of each raw file, a part for each file of rows, and one for every two files of reports."""


@pytest.mark.timeout(900)
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
        there = ("--engine", "ray", "--set", f"run.ray_address={machines.cluster.address}")
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
        out, err = process.communicate(timeout=400)
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
    n_pieces = [-(-path.stat().st_size // PART_BYTES) for path in files_of_few.iterdir()]
    assert min(n_pieces) > 1
    assert parts["count"] > N_SHARDS
    assert parts == {
        "read": sum(n_pieces),
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
