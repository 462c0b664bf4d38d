"""prefect.yaml put to work, as in docs/how-to/operate.md: a work pool, a deployment, a worker, and a run triggered
from outside."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from whole_runs import PATIENCE, until

from tasks.data.source import write_trips

pytestmark = [pytest.mark.server, pytest.mark.slow]

CHECKOUT = Path(__file__).parents[2]
PREFECT = [Path(sys.executable).with_name("prefect"), "--no-prompt"]
ENDS = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


def prefect(*words, **options):
    return subprocess.Popen(
        [*PREFECT, *words],
        cwd=CHECKOUT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        **options,
    )


def done(process):
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, out


@pytest.fixture(scope="module")
def deployments(api, connected, tmp_path_factory):
    """Both deployments, with a worker that takes their runs, in a folder of their own."""
    folder = tmp_path_factory.mktemp("deployed")
    done(prefect("work-pool", "create", "ldptree", "--type", "process"))
    own = {"PREFECT_WORKER_QUERY_SECONDS": "1", "LDPTREE_WORK": str(folder / "of-the-worker")}
    worker = prefect("worker", "start", "--pool", "ldptree", env=os.environ | own)
    done(prefect("deploy", "--all", env=os.environ | {"PWD": str(folder)}))
    yield folder
    worker.send_signal(signal.SIGINT)
    worker.communicate(timeout=PATIENCE)


@pytest.fixture(scope="module")
def deployment(api, deployments):
    """The one with a form."""
    return api.get("/deployments/name/train/form"), deployments


@pytest.fixture(scope="module")
def parameters(deployment):
    """The form's own parameters, made small."""
    config = deployment[0]["parameters"]["config"]
    small = config | {
        "dataset": config["dataset"] | {"rows": 20_000},
        "model": {"depth": 3},
        "evaluation": {"redraws": 2, "private_rows": 1000, "public_rows": 500, "test_rows": 1000},
    }
    return {"work": "here", "config": small}


def run_of(api, made, parameters):
    """A run of a deployment, as it ended."""
    path = f"/deployments/{made['id']}/create_flow_run"
    run = api.post(path, {"parameters": parameters, "state": {"type": "SCHEDULED"}})
    return end_of(api, run["id"])


def end_of(api, run):
    """A run, once it is over."""

    def over():
        now = api.get(f"/flow_runs/{run}")
        return now if now["state_type"] in ENDS else None

    return until("the end of the run", over, every=0.5)


def test_the_campaign_is_weekly_and_the_form_is_typed(api, deployment):
    weekly, form = api.get("/deployments/name/train/weekly"), deployment[0]
    assert [schedule["schedule"]["cron"] for schedule in weekly["schedules"]] == ["0 4 * * 1"]
    assert form["schedules"] == []
    assert weekly["enforce_parameter_schema"]
    assert form["enforce_parameter_schema"]
    known = form["parameter_openapi_schema"]["definitions"]
    assert {"RunConfig", "PrivacyConfig", "DatasetSpec"} <= known.keys()


def test_each_week_asks_whoever_is_new_and_adds_up_all_reports(api, deployments):
    weekly = api.get("/deployments/name/train/weekly")
    parameters = weekly["parameters"] | {"work": "weeks"}
    (deployments / "incoming").mkdir()
    found = []
    for week in (1, 2):
        write_trips(deployments / "incoming" / f"week-{week}.csv", rows=8_000, seed=week)
        ended = run_of(api, weekly, parameters)
        assert ended["state_name"] == "Completed", ended["state"]
        summary = json.loads((deployments / "weeks" / "runs" / ended["name"] / "run.json").read_text())
        found.append((summary["n_private"], summary["largest_spend"]))
    assert found[1][0] > 1.5 * found[0][0]
    assert [spent for _, spent in found] == [2.0, 2.0]


def test_files_that_arrive_start_the_campaign_in_the_folder_that_ldptree_work_names(api, deployments):
    weekly = api.get("/deployments/name/train/weekly")
    before = {run["id"] for run in runs_of(api, weekly)}
    (deployments / "incoming").mkdir(exist_ok=True)
    write_trips(deployments / "incoming" / "week-3.csv", rows=8_000, seed=3)
    done(prefect("events", "emit", "ldptree.files.arrived", "--resource-id", "ldptree.incoming"))
    (run,) = until("its run", lambda: [run for run in runs_of(api, weekly) if run["id"] not in before])
    ended = end_of(api, run["id"])
    assert ended["state_name"] == "Completed", ended["state"]
    assert (deployments / "of-the-worker" / "runs" / ended["name"] / "page.html").is_file()
    assert not (deployments / "work").exists()


def runs_of(api, made):
    return api.post("/flow_runs/filter", {"deployments": {"id": {"any_": [made["id"]]}}})


def test_a_run_triggered_from_outside_completes_and_shows_its_artifacts(api, deployment, parameters):
    made, folder = deployment
    ended = run_of(api, made, parameters)
    assert ended["state_name"] == "Completed", ended["state"]
    shown = api.post("/artifacts/filter", {"flow_runs": {"id": {"any_": [ended["id"]]}}})
    by_key = {artifact["key"]: artifact for artifact in shown if artifact["key"]}
    assert by_key.keys() == {"summary", "page", "scores"}
    assert all(len(row["accuracy"]) <= len("0.1234") for row in json.loads(by_key["scores"]["data"]))
    assert by_key["summary"]["type"] == "markdown"
    assert "predicted correctly with reports" in by_key["summary"]["data"]
    assert ended["name"].startswith("form-eps2-")
    assert {"auto", "eps=2"} <= set(ended["tags"])
    log = {"flow_run_id": {"any_": [ended["id"]]}}
    said = [line["message"] for line in api.post("/logs/filter", {"logs": log, "limit": 200})]
    assert any(line.startswith("the deployment pins the work folder here: ") for line in said)
    page = folder / "here" / "runs" / ended["name"] / "page.html"
    assert str(page) in by_key["page"]["description"]
    assert page.is_file()


@pytest.mark.parametrize(
    "wrong",
    [
        {"privacy": {"epsilon": "much"}},
        {"privacy": {"epsilon": 2.0, "mechanism": "none"}},
        {"dataset": {"name": "no target"}},
        {"evaluate": "perhaps"},
    ],
    ids=["text for a number", "no such choice", "a key missing", "text for a truth"],
)
def test_a_parameter_that_does_not_fit_is_refused(api, deployment, parameters, wrong):
    made, _ = deployment
    refused = parameters | {"config": parameters["config"] | wrong}
    path = f"/deployments/{made['id']}/create_flow_run"
    assert api.refusal(path, {"parameters": refused, "state": {"type": "SCHEDULED"}}) in (409, 422)


def test_the_commands_for_containers_deploy_the_same_campaign(api, deployments):
    """The documentation's own; last, for they move the campaign to another pool."""
    text = (CHECKOUT / "docs" / "how-to" / "operate.md").read_text()
    (commands,) = re.findall(
        r"^    (prefect work-pool create containers.*?\'$)", text, re.MULTILINE | re.DOTALL
    )
    path = f"{PREFECT[0].parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PREFECT_CLI_PROMPT": "false"}
    subprocess.run(["bash", "-ec", commands], cwd=CHECKOUT, env=environment, check=True, capture_output=True)
    weekly = api.get("/deployments/name/train/weekly")
    assert weekly["work_pool_name"] == "containers"
    assert weekly["job_variables"]["image"] == "ldptree"
    assert weekly["job_variables"]["volumes"] == ["/srv/ldptree:/work"]
    assert "work" not in weekly["parameters"]  # the image's own LDPTREE_WORK holds
    assert [schedule["schedule"]["cron"] for schedule in weekly["schedules"]] == ["0 4 * * 1"]
