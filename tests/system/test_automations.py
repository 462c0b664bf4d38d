"""`ldptree automations`: the Prefect server watches over deployments, once, and tells somebody who listens."""

from __future__ import annotations

import http.server
import json
import threading
from contextlib import contextmanager
from queue import Queue
from types import SimpleNamespace

import pytest
from whole_runs import until

from flows.server import automations
from flows.server.automations import create_automations
from ldptree.errors import ConfigError

pytestmark = pytest.mark.server


@contextmanager
def listening(status=200):
    """A webhook: its address, and the texts that came."""
    texts = Queue()

    class Taking(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            texts.put(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taking) as taking:
        threading.Thread(target=taking.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://127.0.0.1:{taking.server_port}/hook", texts
        taking.shutdown()


def names(api):
    return sorted(one["name"] for one in api.post("/automations/filter", {}))


@pytest.fixture
def deployment(api):
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


def test_before_anything_is_deployed_it_says_so(api):
    with pytest.raises(ConfigError, match="Give `prefect deploy --all` first"):
        list(create_automations(None))
    assert names(api) == []


@pytest.mark.parametrize(
    ("webhook", "why"),
    [
        ("hooks.example.org", "http://"),
        ("https://", "http://"),
        ("http://127.0.0.1:9/x", "127.0.0.1 took no message"),
    ],
)
def test_a_webhook_that_takes_nothing_is_refused_before_anything_is_created(api, deployment, webhook, why):
    with pytest.raises(ConfigError, match=why) as told:
        list(create_automations(webhook))
    assert str(told.value).endswith("Nothing was created.")
    assert names(api) == []


def test_a_webhook_that_refuses_is_refused_without_its_secret_path(api, deployment):
    with listening(status=404) as (address, _), pytest.raises(ConfigError, match="answered 404") as told:
        list(create_automations(address))
    assert "hook." not in str(told.value)
    assert "/hook" not in str(told.value)
    assert names(api) == []


def test_given_twice_they_are_there_once_and_a_schedules_failure_pauses_it_and_is_told(
    api, deployment, monkeypatch
):
    ours, by_hand, other = deployment
    monkeypatch.setattr(automations, "deployment", SimpleNamespace(name="ldptree"))
    monkeypatch.setattr(
        automations, "flow_run", SimpleNamespace(flow_name="watched", tags=["auto-scheduled"])
    )
    assert automations.tell_pause() == ""
    with listening() as (address, texts):
        first, again = list(create_automations(address)), list(create_automations(address))
        assert names(api) == ["ldptree-failed-run", "ldptree-notification", "ldptree-vanished-run"]
        assert ["created" in line for line in first] == [True] * 3
        assert ["there already" in line for line in again] == [True] * 3
        assert [texts.get(timeout=5), texts.get(timeout=5)] == [
            "ldptree: failed, crashed and late runs are reported here from now on"
        ] * 2
        assert "pauses the schedule of the deployment watched/ldptree" in automations.tell_pause()
        monkeypatch.setattr(automations.flow_run, "tags", ["ldptree"])
        assert automations.tell_pause() == ""
        for one in (other, by_hand, ours):
            tags = [*one["tags"], *(["auto-scheduled"] if one is not by_hand else [])]
            wanted = {"state": {"type": "SCHEDULED"}, "tags": tags}
            run = api.post(f"/deployments/{one['id']}/create_flow_run", wanted)
            state = {"type": "FAILED", "name": "Failed", "message": "CANARY99"}
            for _ in range(2):  # as where Prefect looks at one event twice
                api.post(f"/flow_runs/{run['id']}/set_state", {"state": state, "force": True})
        until("the pause", lambda: api.get(f"/deployments/{ours['id']}")["paused"])
        assert " of by hand is Failed." in texts.get(timeout=60)
        text = texts.get(timeout=60)
        assert text == f"ldptree: {run['name']} of ldptree is Failed. Its log in the Prefect UI says why."
        state = {"type": "CRASHED", "name": "Crashed"}
        api.post(f"/flow_runs/{run['id']}/set_state", {"state": state, "force": True})
        assert " is Crashed. " in texts.get(timeout=60)  # the next message: the failure came once
    assert [api.get(f"/deployments/{one['id']}")["paused"] for one in (by_hand, other)] == [False, False]
    assert texts.empty()
