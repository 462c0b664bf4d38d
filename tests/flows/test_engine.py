"""The engine that a configuration names: it changes no key, and a cluster that cannot compute is refused in words."""

from __future__ import annotations

import pickle
import sys

import pytest
from chain import rides_config

from flows.command.main import main
from flows.engines.ray_cluster import PARTS, Cluster, find_fault, find_other_version, ray_of
from flows.in_python import run as run_in_python
from ldptree.errors import ConfigError
from schemas.manifest import FileEntry, MadeBy, Manifest
from storage.store import Store
from tasks.perturb import perturb

SAME = dict(zip(PARTS, PARTS, strict=True))


def test_no_key_of_an_artifact_depends_on_the_engine(tmp_path):
    plain = rides_config(tmp_path / "rides.csv")
    there = rides_config(tmp_path / "rides.csv", run={"engine": "ray", "ray_address": "auto"})
    assert plain != there
    assert plain.model_dump(mode="json") == there.model_dump(mode="json")


@pytest.mark.parametrize(
    ("assignments", "said"),
    [
        (["run.engine=dask"], "run.engine"),
        (["run.ray_address=10.0.0.1:6379"], 'only engine = "ray" has a cluster'),
        (["run.engine=ray", "run.ray_address=ray://10.0.0.1:6379"], "run.ray_address"),
        (["run.engine=ray", "run.ray_address=auto", "run.workers=2"], "the CPUs of the cluster"),
    ],
)
def test_a_wrong_engine_is_told_by_its_key(capsys, assignments, said):
    with pytest.raises(SystemExit) as ended:
        main(["run", "quickstart", *(word for one in assignments for word in ("--set", one))])
    assert (ended.value.code, said in capsys.readouterr().err) == (2, True)


def test_without_ray_the_extra_is_named(monkeypatch, store):
    monkeypatch.setitem(sys.modules, "ray", None)
    said = r'ray is not installed. Give `pip install "ldptree-pipeline\[ray\]"`'
    with pytest.raises(ConfigError, match=said), ray_of(None, 1, store):
        pass


def test_an_address_where_nobody_answers_is_refused(store):
    pytest.importorskip("ray")
    said = r'"127\.0\.0\.1:1": nobody answers there'
    with pytest.raises(ConfigError, match=said), ray_of("127.0.0.1:1", 1, store):
        pass


def test_a_machine_with_another_ldptree_or_none_is_named(monkeypatch):
    monkeypatch.setattr("flows.engines.ray_cluster.version", lambda part: SAME[part])
    assert find_other_version(SAME) is None
    assert (
        find_other_version(SAME | {PARTS[0]: None})
        == f"has no {PARTS[0]}. Install {PARTS[0]} {PARTS[0]} there."
    )
    assert find_other_version(SAME | {"prefect": "2.0"}) == (
        "has prefect 2.0, and this one prefect. Install prefect prefect there."
    )


def test_a_machine_that_lacks_something_of_the_run_says_what_and_makes_no_work_folder(store, tmp_path):
    (tmp_path / "file").touch()
    home, url, nowhere = str(tmp_path / "prefect"), "http://127.0.0.1:1/api", str(tmp_path / "elsewhere")
    store.objects.create("probe", b"")
    assert f"has not the work folder {nowhere}. " in find_fault(nowhere, "probe", home, url)
    assert not (tmp_path / "elsewhere").exists()
    assert "cannot make the folder" in find_fault(
        store.work, "probe", str(tmp_path / "file" / "prefect"), url
    )
    assert f"does not reach the Prefect server {url}. " in find_fault(store.work, "probe", home, url)


def test_a_store_and_a_step_are_the_same_in_another_process(store):
    there = pickle.loads(pickle.dumps(store))
    assert (there.work, there.hasher("holders").of_value(1)) == (
        store.work,
        store.hasher("holders").of_value(1),
    )
    assert isinstance(there, Store)
    assert pickle.loads(pickle.dumps(perturb)) is perturb


def test_a_run_from_python_says_that_it_has_no_cluster(tmp_path):
    with pytest.raises(ConfigError, match=r"run\.engine: `ldptree\.run` computes in this process"):
        run_in_python("quickstart", work=tmp_path / "work", run={"engine": "ray"})


@pytest.mark.parametrize(
    ("path", "names", "is_here", "can"),
    [
        ("", ("/data/a.csv",), True, True),
        ("", ("/data/a.csv",), False, False),
        ("", ("s3://bucket/a.csv", "s3://bucket/b.csv"), False, True),
        ("", ("s3://bucket/a.csv", "/data/b.csv"), False, False),
        ("holders/source/key", ("simulated-trips.csv",), False, True),
    ],
)
def test_machines_read_what_all_of_them_have(path, names, is_here, can):
    """Files of this machine are read by it alone; those in a bucket, or in the work folder, by any."""
    files = Manifest(
        zone="holders",
        path=path,
        digest="d",
        files=tuple(FileEntry(name=name, digest="d") for name in names),
        made_by=MadeBy(step="source", version="1", parameters={}, inputs={}),
    )
    assert Cluster(runner=None, is_here=is_here).can_read(files) == can
