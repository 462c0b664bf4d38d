"""prefect.yaml put to work, as in docs/how-to/operate.md: a work pool, a deployment, a worker, and a run triggered
from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from whole_runs import until

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
    out, _ = process.communicate(timeout=200)
    assert process.returncode == 0, out


@pytest.fixture(scope="module")
def deployment(api, connected, tmp_path_factory):
    """The deployment `weekly`, with a worker that takes its runs, in a folder of its own."""
    folder = tmp_path_factory.mktemp("deployed")
    done(prefect("work-pool", "create", "ldptree", "--type", "process"))
    worker = prefect(
        *("worker", "start", "--pool", "ldptree"), env=os.environ | {"PREFECT_WORKER_QUERY_SECONDS": "1"}
    )
    done(prefect("deploy", "--name", "weekly", env=os.environ | {"PWD": str(folder)}))
    yield api.get("/deployments/name/train/weekly"), folder
    worker.send_signal(signal.SIGINT)
    worker.communicate(timeout=60)


@pytest.fixture(scope="module")
def parameters(deployment):
    """The deployment's own parameters, made small."""
    config = deployment[0]["parameters"]["config"]
    small = config | {
        "dataset": config["dataset"] | {"rows": 20_000},
        "model": {"depth": 3},
        "evaluation": {"redraws": 2, "private_rows": 1000, "public_rows": 500, "test_rows": 1000},
    }
    return {"work": "here", "config": small}


def test_the_deployment_is_weekly_and_its_parameters_are_typed(deployment):
    made, _ = deployment
    assert [schedule["schedule"]["cron"] for schedule in made["schedules"]] == ["0 4 * * 1"]
    assert made["enforce_parameter_schema"]
    assert {"RunConfig", "PrivacyConfig", "DatasetSpec"} <= made["parameter_openapi_schema"][
        "definitions"
    ].keys()


def test_a_run_triggered_from_outside_completes_and_shows_its_artifacts(api, deployment, parameters):
    made, folder = deployment
    path = f"/deployments/{made['id']}/create_flow_run"
    run = api.post(path, {"parameters": parameters, "state": {"type": "SCHEDULED"}})

    def over():
        now = api.get(f"/flow_runs/{run['id']}")
        return now if now["state_type"] in ENDS else None

    ended = until("the end of the run", over, every=0.5)
    assert ended["state_name"] == "Completed", ended["state"]
    shown = api.post("/artifacts/filter", {"flow_runs": {"id": {"any_": [run["id"]]}}})
    by_key = {artifact["key"]: artifact for artifact in shown if artifact["key"]}
    assert {"run-summary", "run-page", "scores"} <= by_key.keys()
    assert by_key["run-summary"]["type"] == "markdown"
    assert "reports from" in by_key["run-summary"]["data"]
    assert ended["name"].startswith("weekly-eps2-")
    assert {"auto", "eps=2"} <= set(ended["tags"])
    page = folder / "here" / "runs" / ended["name"] / "report.html"
    assert page.as_uri() in by_key["run-page"]["data"]
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
