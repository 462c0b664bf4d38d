"""What the Prefect UI shows of a run beside its tasks: a line and a table a step, a bar of its shards, and nothing else."""

from __future__ import annotations

import logging
import os
from types import SimpleNamespace

import prefect.runtime
import pytest
from chain import rides
from whole_runs import rides_toml, run

from flows.budget import PAGE_IS_NOT_PRIVATE, PROTECTS_NOBODY
from flows.server import artifacts as sent
from flows.server import run_log
from flows.server.artifacts import Artifacts
from flows.server.pages import link_pages
from flows.server.shards import progress_shown
from flows.server.step_tasks import as_task, limited_tags, tag_of
from flows.train_flow import train_config
from ldptree.errors import ConfigError, DataError
from schemas.config import load
from schemas.manifest import FileEntry, MadeBy, Manifest, Record
from tasks import progress
from tasks.fit import fit
from tasks.step import REGISTERED

pytestmark = pytest.mark.server

CANARY = "CANARY88"
OURS = "test.of.a.run"
"""The logger that stands for Prefect's."""


class Kept(Artifacts):
    """Artifacts that go nowhere."""

    def __init__(self):
        self.shown = []

    def send(self, create):
        self.shown.append(create)

    def table(self, rows, key, description):
        self.shown.append((rows, key, description))


@pytest.fixture
def errors_of_runs(caplog):
    """What Prefect logs of runs and of their tasks as errors."""
    return lambda: [one for one in caplog.records if one.levelno >= logging.ERROR]


@pytest.fixture
def lines(monkeypatch, caplog):
    """The log of a run."""
    logger = logging.getLogger(OURS)
    for module in (run_log, sent):
        monkeypatch.setattr(module, "get_run_logger", lambda: logger)
    caplog.set_level(logging.INFO, OURS)
    return caplog


def record_of(step, zone):
    """A record full of what nobody may see: facts that are not listed, the digests and rows of a closed zone."""
    part = Manifest(
        zone=zone,
        path=CANARY,
        digest=CANARY if zone in ("holders", "simulation") else "1f" * 8,
        files=(FileEntry(name=CANARY, digest=CANARY, rows=88_888),) if zone == "holders" else (),
        made_by=MadeBy(step=step, version="1", parameters={"label": CANARY}, inputs={"rows": CANARY}),
    )
    facts = {"n_reports": 5, "min": CANARY, "levels": [CANARY], "types": {"fare": CANARY}}
    return Record(home=zone, step=step, version="1", key=CANARY, parts={"part": part}, facts=facts)


@pytest.mark.parametrize("zone", ["public", "holders", "curator", "simulation"])
def test_nothing_of_a_record_is_shown_but_what_is_listed(lines, zone):
    kept = Kept()
    for step in REGISTERED:
        run_log.log_step(kept, step, step, [record_of(step, zone)], n_cached=0)
    assert len(kept.shown) == len(lines.messages) >= 12
    assert not [
        said for said in (*map(str, kept.shown), *lines.messages) if CANARY in said or "88888" in said
    ]


def test_the_table_of_a_step_has_a_line_for_each_fact_so_that_none_is_cut_off(lines):
    kept = Kept()
    record = record_of("scale", "public").model_copy(update={"facts": {"n_public": 7, "n_features": 3}})
    run_log.log_step(kept, "scale", "scale", [record], n_cached=0)
    ((rows, key, _),) = kept.shown
    assert key == "step-scale"
    assert {"what": "public rows", "value": 7} in rows
    assert {len(row) for row in rows} == {2}


def test_a_long_sentence_is_in_lines_that_the_ui_shows_whole(lines):
    kept, says = (
        Kept(),
        "The public model is wrong on private people in particular: " + "and so on, " * 12 + "and on",
    )
    record = record_of("prune", "curator").model_copy(update={"facts": {"says": says}})
    run_log.log_step(kept, "prune", "prune", [record], n_cached=0)
    ((rows, _, _),) = kept.shown
    first = [row["what"] for row in rows].index("found")
    found = [row["value"] for row in rows[first:] if row["what"] in ("found", "")]
    assert " ".join(found) == says
    assert max(map(len, found)) <= 60


@pytest.mark.parametrize(
    ("deployed", "has_started", "command"),
    [
        (False, True, "    ldptree run rides"),
        (False, False, "    ldptree run rides"),
        (True, True, "    prefect flow-run retry 1b5f"),
        (True, False, "    prefect deployment run train/weekly"),
    ],
)
def test_a_run_that_stopped_shows_the_command_that_goes_on(monkeypatch, deployed, has_started, command):
    deployment = SimpleNamespace(id="7" if deployed else None, name="weekly")
    flow_run = SimpleNamespace(id="1b5f", flow_name="train")
    for module in (run_log, prefect.runtime):
        monkeypatch.setattr(module, "deployment", deployment)
        monkeypatch.setattr(module, "flow_run", flow_run)
    monkeypatch.setattr(run_log, "tell_pause", lambda: "")
    shown = []
    monkeypatch.setattr(
        Kept, "markdown", lambda _, text, key, title: shown.append((key, text)), raising=False
    )
    run_log.show_failure(Kept(), "Full.", command="ldptree run rides", has_started=has_started)
    ((key, text),) = shown
    assert key == "run-failure"
    assert text.splitlines()[-1] == command
    assert ("Finished steps stand." in text) is has_started


def test_pages_of_earlier_runs_become_links_where_they_are_served_now(api, tmp_path):
    (tmp_path / "runs" / "one").mkdir(parents=True)
    page = tmp_path / "runs" / "one" / "report.html"
    page.write_text("a page")
    texts = [
        f"`{page}`",
        "[The run's page](http://127.0.0.1:9/runs/one/report.html)",
        "`/w/runs/two/report.html`",
    ]
    made = [
        api.post("/artifacts/", {"key": "run-page", "type": "markdown", "data": text})["id"] for text in texts
    ]
    link_pages(tmp_path, api.url, "http://127.0.0.1:4201")
    now = [api.get(f"/artifacts/{one}")["data"] for one in made]
    assert now == ["[The run's page](http://127.0.0.1:4201/runs/one/report.html)"] * 2 + texts[2:]


def test_a_step_that_stood_has_a_line_and_no_other_table(lines):
    kept = Kept()
    run_log.log_step(kept, "split", "split", [record_of("split", "holders")], n_cached=1)
    assert (kept.shown, lines.messages) == ([], ["split: cached"])


def test_an_artifact_that_is_lost_stops_nothing_and_is_told_in_the_log(lines):
    arrived = []
    with Artifacts() as artifacts:
        artifacts.send(lambda: 1 / 0)
        artifacts.send(lambda: arrived.append("the next one"))
    assert arrived == ["the next one"]
    assert lines.messages == ["artifacts that did not reach the Prefect server: 1"]


def test_the_bar_is_full_at_the_end_and_shards_that_stand_have_none(monkeypatch):
    monkeypatch.setattr("flows.server.shards.create_progress_artifact", lambda percent, **_: ["id", percent])
    monkeypatch.setattr(
        "flows.server.shards.update_progress_artifact", lambda bar, percent: bar.append(percent)
    )
    kept = Kept()
    for event in ("found", "end"):
        with progress_shown(kept, 4, "perturb"):
            for _ in range(4):
                if event == "end":
                    progress._tell("perturb", "start", 0.0)
                progress._tell("perturb", event, 1.0)
        assert bool(kept.shown) == (event == "end")
    for create in kept.shown:
        create()
    assert kept.shown[0].__self__._artifact[-1] == 100.0


def test_every_step_of_a_run_has_its_table_and_its_shards_a_bar(api, release):
    runs = {"name": {"any_": [release.summary["run"]]}}
    shown = {one["key"]: one for one in api.post("/artifacts/filter", {"flow_runs": runs, "limit": 100})}
    steps = {f"step-{step['name']}" for step in release.summary["steps"]}
    assert shown.keys() == steps | {"run-summary", "run-page", "perturb"}
    assert shown["perturb"]["data"] == 100.0


@pytest.mark.parametrize(("seed", "asks"), [(11, True), (None, True), (11, False)])
def test_a_run_that_asks_with_seeded_noise_says_in_its_log_that_it_protects_nobody(
    api, lines, tmp_path, seed, asks
):
    path = str(rides(tmp_path / "rides.csv", 100, seed=1))
    changes = {"simulation": {"noise_seed": seed}, "evaluate": not asks}
    dataset = {"path": path, "target": "absent"}  # it stops at once
    with pytest.raises(DataError):
        run(load(rides_toml(tmp_path / "rides.toml", path, dataset=dataset, **changes)), tmp_path / "work")
    ours = [one.getMessage() for one in lines.records if one.name == OURS]
    assert ours == [PROTECTS_NOBODY] * (seed is not None and asks)


def test_a_release_that_is_scored_says_in_its_log_that_its_page_is_not_private(lines, tmp_path):
    path = str(rides(tmp_path / "rides.csv", 20, seed=1))
    config = rides_toml(tmp_path / "rides.toml", path, simulation={"noise_seed": None}, evaluate=True)
    for assignments in (["release=true"], ["release=true", "evaluate=false"], []):
        run_log.warn_at_start(load(config, assignments))
    assert [one.getMessage() for one in lines.records if one.name == OURS] == [PAGE_IS_NOT_PRIVATE]


def test_a_run_says_in_its_log_that_its_file_was_changed_after_the_copy_that_it_reads(lines, tmp_path):
    copy = rides(tmp_path / "rides.tidy.csv", 20, seed=1)
    rides(tmp_path / "rides.csv", 20, seed=1)
    os.utime(copy, (1, 1))
    run_log.warn_at_start(load(rides_toml(tmp_path / "rides.toml", str(copy))))
    (ours,) = [one for one in lines.records if one.name == OURS]
    assert ours.levelno == logging.WARNING
    assert "rides.csv was changed after rides.tidy.csv" in ours.getMessage()


def test_a_step_is_tagged_where_its_tag_has_a_limit(api):
    assert as_task(fit, is_limited=False).tags == set()
    limit = api.post("/v2/concurrency_limits/", {"name": f"tag:{tag_of(fit)}", "limit": 1})
    try:
        assert limited_tags() == {"ldptree-prune"}
        assert as_task(fit, is_limited=True).tags == {"ldptree-prune"}
    finally:
        api.delete(f"/v2/concurrency_limits/{limit['id']}")
    assert limited_tags() == set()


def test_a_deployed_run_whose_configuration_is_refused_says_why(api, tmp_path):
    (tmp_path / "bad.toml").write_text('name = "bad"\n[privacy]\nepsilom = 1\n')
    with pytest.raises(ConfigError) as refused:
        train_config(str(tmp_path / "bad.toml"), work=str(tmp_path / "work"))
    (why,) = [
        one
        for one in api.post("/artifacts/filter", {"artifacts": {"key": {"any_": ["run-failure"]}}})
        if "bad.toml" in one["data"]
    ]
    assert "did you mean epsilon?" in why["data"]
    assert str(refused.value) in why["data"]
    assert f"ldptree run {tmp_path / 'bad.toml'} --work {tmp_path / 'work'}" in why["data"]
    refused_run = api.get(f"/flow_runs/{why['flow_run_id']}")
    assert refused_run["name"].startswith("refused-")
    assert refused_run["state_name"] == "Failed"
    assert not (tmp_path / "work").exists()


def test_the_log_of_a_run_that_stopped_ends_in_the_sentence_and_its_page_is_shown(
    api, tmp_path, errors_of_runs
):
    dataset = {"path": str(rides(tmp_path / "rides.csv", 100, seed=1)), "target": "absent"}
    config = load(rides_toml(tmp_path / "rides.toml", dataset["path"], dataset=dataset))
    with pytest.raises(DataError) as stopped:
        run(config, tmp_path / "work")
    (page,) = (tmp_path / "work").glob("runs/*/report.html")
    runs = {"name": {"any_": [page.parent.name]}}
    shown = {one["key"]: one["data"] for one in api.post("/artifacts/filter", {"flow_runs": runs})}
    assert str(stopped.value) in shown["run-failure"]
    assert str(page) in shown["run-page"]
    assert shown["run-failure"].count("absent") == 1
    of_task, _, last = errors_of_runs()
    assert (of_task.name, last.name) == ("prefect.task_runs", "prefect.flow_runs")
    assert of_task.getMessage() == last.getMessage() == str(stopped.value)
    assert not [one for one in errors_of_runs() if one.exc_info or one.exc_text]


def test_a_fault_that_nobody_expected_keeps_its_traceback_in_the_log(
    api, tmp_path, errors_of_runs, monkeypatch
):
    monkeypatch.setattr("flows.train_flow.tag_run", lambda *_: 1 / 0)
    path = str(rides(tmp_path / "rides.csv", 100, seed=1))
    with pytest.raises(ZeroDivisionError):
        run(load(rides_toml(tmp_path / "rides.toml", path)), tmp_path / "work")
    (told,) = errors_of_runs()
    assert "tag_run" in logging.Formatter().format(told)
