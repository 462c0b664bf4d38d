"""What somebody plants below Prefect's folder is never read: a run's records come from its store alone."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from chain import rides
from prefect._internal.result_records import ResultRecord, ResultRecordMetadata
from prefect.serializers import JSONSerializer, PickleSerializer
from test_lost_servers import free_port
from whole_runs import rides_toml, run, start, steps

from schemas.config import load
from storage.store import Store

pytestmark = pytest.mark.server

MODULE = "ldptree_planted"


class Planted:
    """Whoever unpickles it leaves a file."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


def forge(key, how, marker):
    """A record of Prefect's that runs code where it is loaded."""
    if how == "pickle":
        metadata = ResultRecordMetadata(storage_key=key, serializer=PickleSerializer())
        return ResultRecord(metadata=metadata, result=Planted(marker)).serialize()
    metadata = json.loads(ResultRecordMetadata(storage_key=key, serializer=JSONSerializer()).dump_bytes())
    result = json.dumps({"__class__": f"{MODULE}.Planted", "data": {}})
    return json.dumps({"metadata": metadata, "result": result}).encode()


@pytest.mark.parametrize("how", ["pickle", "a class named in JSON"])
def test_a_cached_run_reads_nothing_that_lies_in_prefects_folder(api, tmp_path, monkeypatch, how):
    work, marker = tmp_path / "work", tmp_path / "executed"
    (tmp_path / f"{MODULE}.py").write_text(f"open({str(marker)!r}, 'w').close()\nclass Planted: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    config = load(rides_toml(tmp_path / "rides.toml", str(rides(tmp_path / "rides.csv", 300, seed=1))))
    folder = api.home / "storage"
    before = {*folder.rglob("*")}
    first = run(config, work)
    assert {path for path in folder.rglob("*") if path.is_file()} <= before  # nothing is left there to forge
    store = Store(work)
    folder.mkdir(exist_ok=True)
    for _, record in store.records():
        own = store.hasher("curator").of_value(record.model_dump(mode="json"))[:16]
        key = f"ldptree-{record.step}-{record.key}-{own}"
        (folder / key).write_bytes(forge(key, how, marker))
    again = run(config, work)
    sys.modules.pop(MODULE, None)
    assert not marker.exists()
    assert steps(again, "cached") == steps(first, "computed")
    tasks = len(again["steps"])
    assert set(api.states(again["run"], n_tasks=tasks).values()) == {"Cached"}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "run with Ray", "ui"])
def test_settings_that_lie_in_prefects_folder_run_nothing_and_change_nothing(
    api, tmp_path, monkeypatch, request, command
):
    for name in ("PREFECT_API_URL", "PREFECT_HOME"):
        monkeypatch.delenv(name, raising=False)
    work, marker, database = api.begin(tmp_path / "work"), tmp_path / "executed", tmp_path / "planted.db"
    called = {"()": "subprocess.Popen", "args": ["touch", str(marker)]}
    planted = {"version": 1, "formatters": {"planted": called}}
    (work / "prefect" / "logging.yml").write_text(json.dumps(planted))
    (work / "prefect" / "profiles.toml").write_text(
        'active = "planted"\n[profiles.planted]\n'
        f'PREFECT_SERVER_DATABASE_CONNECTION_URL = "sqlite+aiosqlite:///{database}"\n'
    )
    if command == "ui":
        process = start("ui", "--work", work, "--port", str(free_port()), own_group=True)
        said = process.stderr.readline()
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
        assert said.startswith("Prefect UI: ")
    else:
        engine = []
        if command == "run with Ray":
            pytest.importorskip("prefect_ray")
            machine = pytest.importorskip("ray.cluster_utils").Cluster(
                initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
            )
            request.addfinalizer(machine.shutdown)
            engine = ["--set", f"run.ray={machine.address}"]
        config = rides_toml(tmp_path / "rides.toml", str(rides(tmp_path / "rides.csv", 300, seed=1)))
        process = start("run", config, "--work", work, *engine)
        _, said = process.communicate(timeout=200)
        assert process.returncode == 0, said
    assert not marker.exists()
    assert not database.exists()
