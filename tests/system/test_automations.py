"""automations.yaml, as docs/how-to/operate.md gives it to Prefect: it watches over our deployments, and nobody else's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from whole_runs import until

pytestmark = pytest.mark.server

CHECKOUT = Path(__file__).parents[2]
FILE = CHECKOUT / "automations.yaml"


def create(file):
    prefect = Path(sys.executable).with_name("prefect")
    command = [prefect, "--no-prompt", "automation", "create", "--from-file", file]
    subprocess.run(command, check=True, capture_output=True)


def named(api):
    """The automations of the file; a deployment's trigger is one, too."""
    names = {one["name"] for one in api.post("/automations/filter", {})}
    return sorted(name for name in names if name.startswith("ldptree-"))


@pytest.fixture
def deployments(api):
    """Two deployments of ours that nobody runs, and another project's."""
    flow = api.post("/flows/", {"name": "watched"})["id"]
    made = [
        api.post("/deployments/", {"name": name, "flow_id": flow, "tags": [tag]})
        for name, tag in (("ldptree", "ldptree"), ("by hand", "ldptree"), ("other", "other"))
    ]
    yield made
    for one in made:
        api.delete(f"/deployments/{one['id']}")
    for one in api.post("/automations/filter", {}):
        api.delete(f"/automations/{one['id']}")


def test_a_schedules_failure_pauses_its_deployment_and_no_other(api, deployments):
    create(FILE)
    assert named(api) == ["ldptree-failed-run", "ldptree-vanished-run"]
    ours, by_hand, other = deployments
    for one in (other, by_hand, ours):
        tags = [*one["tags"], *(["auto-scheduled"] if one is not by_hand else [])]
        run = api.post(
            f"/deployments/{one['id']}/create_flow_run", {"state": {"type": "SCHEDULED"}, "tags": tags}
        )
        state = {"type": "FAILED", "name": "Failed"}
        api.post(f"/flow_runs/{run['id']}/set_state", {"state": state, "force": True})
    until("the pause", lambda: api.get(f"/deployments/{ours['id']}")["paused"])
    assert [api.get(f"/deployments/{one['id']}")["paused"] for one in (by_hand, other)] == [False, False]


def test_the_notification_in_it_is_taken_once_it_names_a_block(api, deployments, tmp_path):
    """Its lines are comments: the block is the user's own."""
    (kind,) = [
        one for one in api.post("/block_types/filter", {"limit": 100}) if one["slug"] == "slack-webhook"
    ]
    (schema,) = api.post(
        "/block_schemas/filter", {"block_schemas": {"block_type_id": {"any_": [kind["id"]]}}}
    )[:1]
    wanted = {
        "name": "told",
        "block_type_id": kind["id"],
        "block_schema_id": schema["id"],
        "data": {"url": "https://hooks.example/x"},
    }
    block = api.post("/block_documents/", wanted)["id"]
    _, _, commented = FILE.read_text().partition("  # - name:")
    lines = [line.removeprefix("  # ") for line in f"  # - name:{commented}".splitlines()]
    text = "\n".join(lines).replace("00000000-0000-0000-0000-000000000000", block)
    (tmp_path / "told.yaml").write_text(text)
    assert [one["name"] for one in yaml.safe_load(text)] == ["ldptree-notification"]
    create(tmp_path / "told.yaml")
    assert named(api) == ["ldptree-notification"]
