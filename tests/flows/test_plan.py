"""The plan says what a run would find, what it would compute and why, and what it would spend; and it leaves no trace."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys

import polars as pl
import pytest
from chain import Chain, rides, rides_config

from flows.command.terminal import STEPS, steps_of
from flows.executors import InlineExecutor
from flows.pipeline import Pipeline
from flows.run_plan.look import plan_of
from flows.run_plan.people import count_rows
from flows.run_plan.show import show_plan
from storage.store import Store
from tasks.step import REGISTERED

ORDER = [
    "types",
    "read",
    "ingest",
    "count",
    "validate",
    "split",
    "cut",
    "scale",
    "partition",
    "perturb",
    "add",
    "aggregate",
    "prune",
    "evaluate",
    "report",
]
"""The steps of a run on files of one's own."""


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished run. Only to be read: `copied` is for tests that break it."""
    folder = tmp_path_factory.mktemp("planned")
    path = rides(folder / "rides.csv", 400, seed=1)
    chain = Chain(Store(folder / "work"), rides_config(path))
    assert chain.page
    return chain


@pytest.fixture
def copied(done, tmp_path):
    """The finished run in a work folder of the test's own."""
    shutil.copytree(done.store.root, tmp_path / "work")
    return tmp_path / "work"


def states(config, work):
    """Step to state, in the order in which the plan tells them."""
    return {line["name"]: line["state"] for line in plan_of(config, work)}


def reasons(config, work):
    return {line["name"]: line["why"] for line in plan_of(config, work)}


def everything_in(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_finished_run_is_all_cached_and_spends_nothing(done, capsys):
    assert states(done.config, done.store.root) == dict.fromkeys(ORDER, "cached")
    show_plan(done.config, done.store.root, as_json=False)
    assert "nobody would be asked: nothing is spent" in capsys.readouterr().out


def test_before_the_first_run_every_step_is_computed(done, tmp_path, capsys):
    lines = plan_of(done.config, tmp_path / "new")
    assert lines[0] == {"name": "types", "state": "compute", "why": "nothing is in the work folder yet"}
    assert [line["name"] for line in lines] == ORDER
    assert {(line["state"], line["why"]) for line in lines[1:]} == {("compute", "after types")}
    show_plan(done.config, tmp_path / "new", as_json=False)
    told = capsys.readouterr().out
    assert (
        "a trial, which charges no ledger; as a release, each person asked would spend epsilon 2, once"
        in told
    )


def test_only_a_release_is_said_to_spend(done, tmp_path, capsys):
    release = rides_config(*done.config.dataset.path, release=True)
    show_plan(release, tmp_path / "new", as_json=False)
    told = capsys.readouterr().out
    assert "each person asked would spend epsilon 2, once" in told
    assert "trial" not in told


def test_a_step_that_stands_is_cached_again_unless_one_above_gives_something_new(done, tmp_path):
    other = rides(tmp_path / "other.csv", 400, seed=2)
    lines = {line["name"]: line for line in plan_of(rides_config(other), done.store.root)}
    assert lines["scale"] == {
        "name": "scale",
        "state": "depends",
        "why": "cached if types gives what it gave before",
    }


def test_a_simulated_set_begins_with_its_source(trips, tmp_path):
    lines = plan_of(trips.config, tmp_path / "new")
    assert [line["name"] for line in lines] == ["source", *ORDER] == steps_of(trips.config)
    assert lines[0] == {"name": "source", "state": "compute", "why": "nothing is in the work folder yet"}


def test_a_plan_writes_nothing(done, tmp_path):
    before = everything_in(done.store.root)
    plan_of(done.config, done.store.root)
    plan_of(rides_config(*done.config.dataset.path, seed=8), done.store.root)
    # The work folder's own time changes: whether it can be written is tried.
    assert everything_in(done.store.root) == before
    plan_of(done.config, tmp_path / "new")
    (tmp_path / "empty").mkdir()
    plan_of(done.config, tmp_path / "empty")
    assert not (tmp_path / "new").exists()
    assert not any((tmp_path / "empty").iterdir())


@pytest.mark.parametrize(
    ("changes", "first", "why"),
    [
        ({"privacy": {"epsilon": 1.0}}, "partition", "changed: epsilon"),
        ({"model": {"depth": 2}}, "partition", "changed: settings.depth"),
        ({"model": {"prune": "none"}}, "prune", "changed: reading.prune"),
        ({"evaluation": {"redraws": 4}}, "evaluate", "changed: evaluation.redraws"),
    ],
)
def test_a_parameter_changed_says_so_and_only_what_is_below_depends_on_it(done, changes, first, why):
    config = rides_config(*done.config.dataset.path, **changes)
    found, said = states(config, done.store.root), reasons(config, done.store.root)
    below = ORDER.index(first)
    assert said[first] == why
    assert {found[name] for name in ORDER[:below]} == {"cached"}
    assert found[first] == "compute"
    assert "cached" not in {found[name] for name in ORDER[below:]}


def test_a_file_changed_is_read_again(done, tmp_path):
    other = rides(tmp_path / "other.csv", 400, seed=2)
    said = reasons(rides_config(other), done.store.root)
    assert said["types"].startswith("changed: ")
    assert "raw" in said["types"]


def test_an_artifact_that_went_or_was_damaged_is_named_as_the_reason(done, copied):
    model = copied / done.model["model"].path / "model.json"
    whole = model.read_bytes()
    model.write_bytes(whole[:-1] + b"!")
    assert reasons(done.config, copied)["prune"] == "its artifact is damaged"
    model.unlink()
    assert reasons(done.config, copied)["prune"] == "its artifact is missing"
    assert states(done.config, copied)["aggregate"] == "cached"
    model.write_bytes(whole)
    assert set(states(done.config, copied).values()) == {"cached"}


def test_shards_that_have_not_reported_are_counted_and_their_epsilon_announced(done, copied, capsys):
    for record in (copied / "holders" / "perturb").glob("*.json"):
        record.unlink()
    said = reasons(done.config, copied)
    assert len(done.reports) == 1
    assert said["perturb"] == "1 of 1 shard has not reported"
    assert reasons(done.config, done.store.root)["perturb"] == "1 shard"
    assert said["aggregate"] == "cached if perturb gives what it gave before"
    show_plan(done.config, copied, as_json=True)
    assert json.loads(capsys.readouterr().out)["epsilon_to_spend"] == 2.0


def test_as_json_a_plan_is_one_object(done, capsys):
    show_plan(done.config, done.store.root, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["name"], told["epsilon_to_spend"]) == ("rides", 0.0)
    assert [step["name"] for step in told["steps"]] == ORDER


def test_a_run_without_evaluation_plans_none(done, tmp_path):
    config = rides_config(*done.config.dataset.path, evaluate=False)
    assert list(states(config, tmp_path / "new")) == steps_of(config) == [s for s in ORDER if s != "evaluate"]


PAPER = {"model": {"prune": "paper"}, "simulation": {"noise_seed": 3}, "privacy": {"epsilon": 4.0}}


def second_round(chain):
    """What Algorithm 2 asks after a first round, or nothing."""
    return chain.ask(chain.conversation.rounds)


def test_a_run_that_was_asked_twice_is_planned_round_by_round(tmp_path, capsys):
    chain = Chain(Store(tmp_path / "work"), rides_config(rides(tmp_path / "rides.csv", 3000, 1), **PAPER))

    def told():
        show_plan(chain.config, chain.store.root, as_json=True)
        return json.loads(capsys.readouterr().out)

    assert chain.totals
    before = told()
    found = [(step["name"], step["state"]) for step in before["steps"]]
    assert ("partition", "compute") in found
    assert ("prune", "compute") in found
    assert before["epsilon_to_spend"] == 2.0
    show_plan(chain.config, chain.store.root, as_json=False)
    assert "would spend epsilon 2 more if a second round is needed" in capsys.readouterr().out
    assert second_round(chain).asked.facts["is_left"]
    between = [step for step in told()["steps"] if step["name"] == "perturb"]
    assert [step["state"] for step in between] == ["cached", "compute"]
    assert between[1]["why"].startswith("round 2: ")
    assert told()["epsilon_to_spend"] == 2.0
    Pipeline(store=chain.store, config=chain.config, executor=InlineExecutor(chain.store)).walk()
    after = told()
    assert {step["state"] for step in after["steps"]} == {"cached"}
    assert [step["name"] for step in after["steps"]].count("perturb") == 2
    assert after["epsilon_to_spend"] == 0.0


def test_a_run_that_might_have_asked_again_and_did_not_is_all_cached(tmp_path):
    never = PAPER | {"privacy": {"epsilon": 50.0}}
    chain = Chain(Store(tmp_path / "work"), rides_config(rides(tmp_path / "rides.csv", 3000, 1), **never))
    assert second_round(chain) is None
    assert chain.page
    assert set(states(chain.config, chain.store.root).values()) == {"cached"}


def test_a_plan_knows_every_step_of_the_picture():
    """In a process of its own: here other tests have imported them."""
    code = "import flows.run_plan.show; from tasks.step import REGISTERED; print(*REGISTERED)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    of_runs = {name for name, task in REGISTERED.items() if task.work.__module__.startswith("tasks.")}
    assert of_runs == set(STEPS) <= set(said.stdout.split())
    assert all(task.step.says != name for name, task in REGISTERED.items())


def rows_of(config, work, capsys):
    """The rows that a plan says each step reads, and whether that is exact."""
    show_plan(config, work, as_json=True)
    steps = json.loads(capsys.readouterr().out)["steps"]
    return {step["name"]: (step["rows"], step["is_exact"]) for step in steps}


def test_people_of_steps_that_stand_are_counted_exactly(done, capsys):
    rows = rows_of(done.config, done.store.root, capsys)
    held, asked = done.held.facts, done.reports[0].facts["n_reports"]
    assert rows["perturb"] == rows["aggregate"] == (asked, True) == (held["n_private"], True)
    assert rows["evaluate"] == (held["n_test"], True)
    assert rows["scale"] == (done.ingested["public"].rows, True)


def test_before_the_first_run_rows_are_counted_by_the_file(done, tmp_path, capsys):
    config = rides_config(*done.config.dataset.path, dataset={"public": "random 0.25"})
    rows = rows_of(config, tmp_path / "new", capsys)
    wanted = {"ingest": 400, "scale": 100, "perturb": 240}
    assert {step: rows[step][0] for step in wanted} == pytest.approx(wanted, rel=0.05)
    assert not any(rows[step][1] for step in wanted)


def test_before_the_first_run_nobody_is_counted_who_is_not_asked(done, tmp_path, capsys):
    """Who is public by a predicate is not known: all rows are a bound. A public file has none of the private rows."""
    (path,) = done.config.dataset.path
    config = rides_config(path)
    show_plan(config, tmp_path / "new", as_json=False)
    rows_by_step = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert all(" at most " in rows_by_step[step] for step in ("perturb", "aggregate", "evaluate"))
    assert " about " in rows_by_step["ingest"]
    copy = shutil.copy(path, tmp_path / "public.csv")
    found = rows_of(rides_config(path, dataset={"public": str(copy)}), tmp_path / "new", capsys)
    assert found["split"][0] == found["scale"][0] == pytest.approx(400, rel=0.05)


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.parquet", "rows.data"])
def test_rows_of_a_file_are_counted_without_reading_it_whole(tmp_path, name):
    frame = pl.DataFrame({"a": range(30_000), "b": [f"text {n % 7}" for n in range(30_000)]})
    path = tmp_path / name
    if name.endswith(".parquet"):
        frame.write_parquet(path)
    else:
        text = frame.write_csv().encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    count = count_rows(path)
    assert count.number == pytest.approx(30_000, rel=0.0 if name.endswith(".parquet") else 0.2)
    assert bool(count.prefix) != name.endswith(".parquet")


@pytest.mark.parametrize("name", ["rows.csv.gz", "rows.xlsx", "rows.zip"])
def test_a_file_that_must_be_unpacked_or_is_none_has_no_count(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"a,b\n1,2\n")
    assert count_rows(path) is None
