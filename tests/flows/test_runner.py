"""The runner of shards that a configuration names: it changes no key, and a cluster that cannot compute is refused in words."""

from __future__ import annotations

import pickle
import sys

import pytest
from chain import rides_config

from flows.command.main import main
from flows.in_python import run as run_in_python
from flows.runner import Runners, runners_of
from ldptree.errors import ConfigError
from schemas.manifest import FileEntry, MadeBy, Manifest
from schemas.tables import RunnerConfig
from storage.store import Store
from tasks import step
from tasks.perturb import perturb


def test_no_key_of_an_artifact_depends_on_the_runner(tmp_path):
    plain = rides_config(tmp_path / "rides.csv")
    there = rides_config(tmp_path / "rides.csv", run={"ray": "auto"})
    assert plain != there
    assert plain.model_dump(mode="json") == there.model_dump(mode="json")


def test_a_wrong_cluster_is_told_by_its_key(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["run", "quickstart", "--set", "run.ray=ray://10.0.0.1:6379"])
    assert (ended.value.code, "run.ray" in capsys.readouterr().err) == (2, True)


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    said = r'ray is not installed. Run `pip install "ldptree-pipeline\[ray\]"`'
    with pytest.raises(ConfigError, match=said), runners_of(RunnerConfig(ray="auto")):
        pass


def test_an_address_where_nobody_answers_is_refused():
    pytest.importorskip("ray")
    with (
        pytest.raises(ConfigError, match=r'"127\.0\.0\.1:1": nobody answers there'),
        runners_of(RunnerConfig(ray="127.0.0.1:1")),
    ):
        pass


def test_a_store_and_a_step_are_the_same_in_another_process(store):
    there = pickle.loads(pickle.dumps(store))
    assert (there.work, there.hasher("holders").of_value(1)) == (
        store.work,
        store.hasher("holders").of_value(1),
    )
    assert isinstance(there, Store)
    assert pickle.loads(pickle.dumps(perturb)) is perturb


@pytest.mark.parametrize("other", ["nothing", "an empty folder", "another work folder"])
def test_a_machine_with_another_folder_of_this_name_draws_nothing_there(tmp_path, other):
    """Nobody would be known in it: they would be asked again."""
    store = Store(tmp_path / "work")
    sent = pickle.dumps(store)
    (tmp_path / "work").rename(tmp_path / "elsewhere")
    if other == "an empty folder":
        (tmp_path / "work").mkdir()
    elif other == "another work folder":
        assert Store(tmp_path / "work").hasher("holders")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigError, match=r"has not the run's work folder .*/work\. Name one"):
        pickle.loads(sent)
    assert "secret" not in {path.name for path in {*tmp_path.rglob("*")} - {*before}}


def test_a_machine_with_another_version_of_a_step_says_so(monkeypatch):
    sent = pickle.dumps(perturb)
    monkeypatch.setitem(
        step.REGISTERED, "perturb", step.StepTask(step.Step("perturb", "0", "holders"), print, 0)
    )
    with pytest.raises(ConfigError, match="another ldptree-pipeline is installed on"):
        pickle.loads(sent)


def test_a_run_from_python_says_that_it_has_no_cluster(tmp_path):
    with pytest.raises(ConfigError, match=r"run\.ray: `ldptree\.run` computes in this process"):
        run_in_python("quickstart", work=tmp_path / "work", run={"ray": "auto"})


class Noting:
    """A runner that notes that it was asked to compute."""

    def __init__(self):
        self.asked = 0

    def map(self, task, call):
        self.asked += 1
        return ()


@pytest.mark.parametrize(
    ("path", "names", "is_here"),
    [
        ("", ("/data/a.csv",), True),
        ("", ("s3://bucket/a.csv", "s3://bucket/b.csv"), False),
        ("", ("s3://bucket/a.csv", "/data/b.csv"), True),
        ("holders/source/key", ("simulated-trips.csv",), False),
    ],
)
def test_machines_read_what_all_of_them_have(path, names, is_here):
    """Files of this machine are read by it alone; those in a bucket, or in the work folder, by any."""
    files = Manifest(
        zone="holders",
        path=path,
        digest="d",
        files=tuple(FileEntry(name=name, digest="d") for name in names),
        made_by=MadeBy(step="source", version="1", parameters={}, inputs={}),
    )
    runners = Runners(Noting(), Noting())
    assert [*runners.map(None, "read", {"arguments": {"raw": [files]}})] == []
    assert (runners.threads.asked, runners.cluster.asked) == ((1, 0) if is_here else (0, 1))
