"""Runs whose shards a Ray cluster computes: what each family learns is the same, whichever machines computed it or died."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("ray")
pytest.importorskip("prefect_ray")

from chain import rides
from ray.cluster_utils import Cluster
from test_digests import RUNS
from whole_runs import many_files, reports, rides_toml, run, start, steps

from ldptree.families import FAMILIES
from schemas.tables import EngineConfig

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


@pytest.mark.parametrize("name", OF_FAMILIES)
def test_every_family_learns_on_a_cluster_what_it_learns_on_threads(cluster, tmp_path, name):
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
    assert found[0][1]


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


def test_a_cluster_without_a_cpu_is_refused_before_anybody_is_charged(tmp_path):
    empty = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        path = rides(tmp_path / "rides.csv", 300, 1)
        config = rides_toml(tmp_path / "rides.toml", str(path))
        process = start(
            *("run", config, "--work", tmp_path / "work", "--engine", "ray"),
            *("--set", f"run.ray_address={empty.address}"),
        )
        out, err = process.communicate(timeout=200)
    finally:
        empty.shutdown()
    assert (process.returncode, out) == (2, "")
    assert "no machine of the cluster has a CPU for shards" in err
    assert not list((tmp_path / "work" / "holders" / "ledger").rglob("*.charge"))
