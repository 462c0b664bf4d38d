"""What the Prefect UI shows of a run beside its tasks: a line a step, its page, summary, scores or failure, and nothing else."""

from __future__ import annotations

import logging
import re
from collections import Counter
from types import SimpleNamespace

import prefect.runtime
import pytest
from chain import rides
from whole_runs import rides_toml, run, until

from flows.budget import PAGE_IS_NOT_PRIVATE, PROTECTS_NOBODY, say_who_rows_are
from flows.server import artifacts as sent
from flows.server import run_log
from flows.server.step_tasks import as_task, limited_tags, tag_of
from flows.train_flow import train_config
from ldptree.errors import ConfigError, DataError
from ldptree.plain_text import escape_markdown
from schemas.config import load
from schemas.manifest import FileEntry, MadeBy, Manifest, Record
from storage.store import Store
from tasks.learning import fit
from tasks.step import REGISTERED

pytestmark = pytest.mark.server

CANARY = "CANARY88"
OURS = "test.of.a.run"
"""The logger that stands for Prefect's."""


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
def test_nothing_of_a_record_is_said_but_what_is_listed(lines, zone):
    for step in REGISTERED:
        run_log.log_step(step, step, [record_of(step, zone)], n_cached=0)
    assert len(lines.messages) == len(REGISTERED)
    assert not [said for said in lines.messages if CANARY in said or "88888" in said]


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
    text = run_log.describe_failure("Full.", command="ldptree run rides", has_started=has_started)
    assert text.splitlines()[-1] == command
    assert ("Finished steps are kept." in text) is has_started


def test_a_step_that_stood_has_a_line(lines):
    run_log.log_step("split", "split", [record_of("split", "holders")], n_cached=1)
    assert lines.messages == ["split: cached"]


def test_artifacts_that_are_lost_stop_nothing_and_the_log_says_so(lines, monkeypatch):
    monkeypatch.setattr(sent, "create_markdown_artifact", lambda *_, **__: 1 / 0)
    sent.show_failure("Full.", None)
    assert lines.messages == ["not all artifacts of this run reached the Prefect server (ZeroDivisionError)"]


def test_each_step_has_a_line_with_a_fact_and_the_last_one_says_what_was_found_and_where_the_page_is(
    api, lines, tmp_path
):
    rows = rides(tmp_path / "rides.csv", 900, seed=1)
    path = rides_toml(tmp_path / "rides.toml", str(rows), simulation={"noise_seed": 11}, evaluate=True)
    ended = run(load(path), tmp_path / "work")
    *steps, last = [one.getMessage() for one in lines.records if one.name == OURS][-len(ended["steps"]) :]
    assert [line.partition(":")[0] for line in steps] == [step["name"] for step in ended["steps"]][1:]
    assert all(re.fullmatch(r"\w+: done; .+", line) for line in steps)
    assert "validate: done; 3 of 3 checks met by public rows, 3 of 3 by private rows" in lines.messages
    assert last == f"{ended['finding']} {ended['page']}"


def test_runs_show_their_page_summary_scores_and_failure_under_one_key_each_and_nothing_else(
    api, release, tmp_path
):
    rows = str(rides(tmp_path / "rides.csv", 900, seed=1))
    scored = rides_toml(tmp_path / "rides.toml", rows, simulation={"noise_seed": 11}, evaluate=True)
    runs = [run(load(scored), tmp_path / "work")["run"] for _ in range(2)]
    stopped = rides_toml(tmp_path / "absent.toml", rows, dataset={"target": "absent"})
    with pytest.raises(DataError):
        run(load(stopped), tmp_path / "work")
    wanted = {"flow_runs": {"name": {"any_": [*runs, release.summary["run"]]}}, "limit": 200}
    shown = api.post("/artifacts/filter", wanted)
    assert Counter(one["key"] for one in shown) == {"page": 3, "summary": 3, "scores": 2}
    latest = {one["key"] for one in api.post("/artifacts/latest/filter", {"limit": 200})}
    assert {"page", "summary", "scores", "failure"} <= latest
    assert not {key for key in latest if key.startswith(("step", "run", "perturb", "ingest"))}
    links = {one["data"] for one in shown if one["key"] == "page"}
    assert {f"[The run's page](/ldptree/runs/{name}/page.html)" for name in runs} < links


def test_a_run_that_finished_is_an_event_with_its_summary(api, release):
    wanted = {"filter": {"event": {"name": ["ldptree.run.finished"]}}}

    def event():
        events = api.post("/events/filter", wanted)["events"]
        return next((e for e in events if e["payload"]["run"] == release.summary["run"]), None)

    told = until("the event", event)
    assert told["resource"]["prefect.resource.id"] == f"ldptree.run.{release.summary['run']}"
    for name in ("finding", "page", "epsilon_spent", "largest_spend", "metrics"):
        assert told["payload"][name] == release.summary[name]
    assert any(one["prefect.resource.id"].startswith("prefect.flow-run.") for one in told["related"])


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
        run_log.warn_at_start(load(config, assignments), Store(tmp_path / "work"))
    assert [one.getMessage() for one in lines.records if one.name == OURS] == [PAGE_IS_NOT_PRIVATE]


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
        for one in api.post("/artifacts/filter", {"artifacts": {"key": {"any_": ["failure"]}}})
        if "bad.toml" in one["data"]
    ]
    assert "did you mean epsilon?" in why["data"]
    assert escape_markdown(str(refused.value)) in why["data"]
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
    (page,) = (tmp_path / "work").glob("runs/*/page.html")
    runs = {"name": {"any_": [page.parent.name]}}
    shown = {one["key"]: one["data"] for one in api.post("/artifacts/filter", {"flow_runs": runs})}
    assert escape_markdown(str(stopped.value)) in shown["failure"]
    assert f"/ldptree/runs/{page.parent.name}/page.html" in shown["page"]
    assert shown["failure"].count("absent") == 1
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


def test_a_campaign_of_rows_says_once_in_its_log_what_it_cannot_know(lines, tmp_path):
    path = str(rides(tmp_path / "rides.csv", 20, seed=1))
    terms = {"simulation": {"noise_seed": None}, "campaign": {"name": "rides"}}
    config = load(rides_toml(tmp_path / "rides.toml", path, **terms))
    run_log.warn_at_start(config, Store(tmp_path / "work"))
    wanted = say_who_rows_are(None, config)
    assert len(wanted) == 1
    assert [one.getMessage() for one in lines.records if one.name == OURS] == wanted
