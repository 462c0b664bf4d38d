"""The Prefect server of a run or of `ldptree ui` answers its own pages and programs, and no page of anybody else."""

from __future__ import annotations

import http.client
import http.server
import json
import os
import re
import shutil
import signal
import socket
import threading
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from chain import rides
from test_command_line import ended
from test_lost_servers import free_port
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from whole_runs import rides_toml, start

pytestmark = pytest.mark.server

RUNS = "/api/flow_runs/filter"
SOCKETS = ("/api/events/out", "/api/events/in", "/api/logs/out", "/api/task_runs/subscriptions/scheduled")
PASSWORD = "someone:secret"


@pytest.fixture(scope="module")
def ui(api, tmp_path_factory):
    """The address of `ldptree ui`, and its work folder."""
    work, port = api.begin(tmp_path_factory.mktemp("ui") / "work"), free_port()
    own = {"PREFECT_API_URL": "", "PREFECT_HOME": str(work / "prefect")}
    process = start("ui", "--work", work, "--port", str(port), own_group=True, env=own)
    assert process.stderr.readline().startswith("Prefect UI: ")
    yield f"http://127.0.0.1:{port}", work
    os.killpg(process.pid, signal.SIGTERM)
    process.communicate(timeout=60)


@pytest.fixture(params=["a run's own", "ldptree ui"])
def server(request, api):
    """The address of a server."""
    if request.param == "a run's own":
        return api.url.removesuffix("/api")
    return request.getfixturevalue("ui")[0]


def ask(server, path, method="GET", body=None, **headers):
    """The status of an answer, and its text."""
    connection = http.client.HTTPConnection(urlsplit(server).netloc, timeout=30)
    headers = {"Content-Type": "application/json"} | headers
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def csrf(server):
    """The headers with which a program of this machine may change something."""
    client = str(uuid4())
    _, text = ask(server, f"/api/csrf-token?client={client}")
    return {"Prefect-Csrf-Token": json.loads(text)["token"], "Prefect-Csrf-Client": client}


def foreign(server):
    """What a browser says of another page: whose it is, or by which name of its own it found this server."""
    port = urlsplit(server).port
    return [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://127.0.0.1:{port + 1}"},
        {"Host": f"evil.example:{port}"},
        {"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"},
        {"Host": f"127.0.0.1.evil.example:{port}"},
    ]


def test_pages_of_others_read_nothing_and_change_nothing(server):
    own = csrf(server)
    assert ask(server, RUNS, "POST", {}, **own)[0] == 200
    for headers in foreign(server):
        for path in ("/api/health", "/api/csrf-token?client=x", "/api/openapi.json", "/"):
            assert ask(server, path, **headers)[0] == 403, (headers, path)
        assert ask(server, RUNS, "POST", {}, **own, **headers)[0] == 403
        assert ask(server, RUNS, "OPTIONS", **headers)[0] == 403
    for host in ("evil.example\\@127.0.0.1", "somebody@127.0.0.1", "127.0.0.1/evil.example"):
        assert ask(server, "/api/health", Host=host)[0] == 403, host


def test_without_a_token_nothing_is_read_by_post_or_changed(server):
    assert ask(server, RUNS, "POST", {})[0] == 403
    assert ask(server, "/api/variables/", "POST", {"name": "planted", "value": 1})[0] == 403
    assert ask(server, "/api/variables/name/planted")[0] == 404


def test_a_websocket_of_another_page_is_refused(server):
    own = urlsplit(server)

    def open_socket(path, headers):
        to = socket.create_connection((own.hostname, own.port))
        address = f"ws://{headers.get('Host', own.netloc)}{path}"
        return connect(address, sock=to, origin=headers.get("Origin"), subprotocols=["prefect"], proxy=None)

    for headers in foreign(server):
        for path in SOCKETS:
            with pytest.raises(InvalidStatus) as refused, open_socket(path, headers):
                pass
            assert refused.value.response.status_code == 403, (headers, path)
    with open_socket(SOCKETS[0], {}):
        pass


def test_its_own_pages_are_answered_by_each_name_of_this_machine(server):
    port = urlsplit(server).port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", "localhost:8080"):
        assert ask(server, "/api/health", Host=host, Origin=f"http://{host}")[0] == 200


def test_before_the_first_run_the_list_of_all_runs_is_there(ui):
    status, page = ask(ui[0], "/ldptree/")
    assert status == 200
    assert "All runs" in page


@pytest.mark.slow
def test_a_run_works_against_the_ui_and_leaves_its_page_there(ui, tmp_path):
    url, work = ui
    config = rides_toml(tmp_path / "rides.toml", str(rides(tmp_path / "rides.csv", 300, seed=1)))
    own = {"PREFECT_API_URL": f"{url}/api", "PREFECT_HOME": str(work / "prefect")}
    code, out, err = ended(start("run", config, "--work", work, "--json", env=own))
    assert (code, err) == (0, "")
    wanted = {"flow_runs": {"name": {"any_": [json.loads(out)["run"]]}}}
    _, runs = ask(url, RUNS, "POST", wanted, **csrf(url))
    assert [run["state_name"] for run in json.loads(runs)] == ["Completed"]
    _, shown = ask(url, "/api/artifacts/filter", "POST", wanted, **csrf(url))
    (link,) = [artifact["data"] for artifact in json.loads(shown) if artifact["key"] == "page"]
    path = re.search(r"\((.*)\)", link)[1]
    assert ask(url, path) == (200, (work / "runs" / json.loads(out)["run"] / "page.html").read_text())


ASK = """([url, headers]) => fetch(url, {method: "POST", body: "{}", headers: headers}).then(
  answer => answer.status, fault => fault.name)"""


@pytest.mark.slow
@pytest.mark.browser
def test_in_a_browser_its_pages_show_runs_and_ask_nobody_else_and_other_pages_get_nothing(api, ui):
    sync_playwright = pytest.importorskip("playwright.sync_api").sync_playwright
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    server, own, asked = ui[0], csrf(ui[0]), []
    kinds = json.loads(ask(server, "/api/flows/", "POST", {"name": "seen-in-a-browser"}, **own)[1])
    run = {"flow_id": kinds["id"], "name": "seen-in-a-browser", "state": {"type": "COMPLETED"}}
    assert ask(server, "/api/flow_runs/", "POST", run, **own)[0] == 201

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_):
            return

    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as other,
        sync_playwright() as session,
        session.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]) as browser,
    ):
        threading.Thread(target=other.serve_forever, args=[0.01], daemon=True).start()
        elsewhere = f"http://127.0.0.1:{other.server_port}"
        for address in (server, server.replace("127.0.0.1", "localhost")):
            for path in ("/runs", "/v2/runs"):
                page = browser.new_page()
                answered = []
                page.on("response", lambda answer, answered=answered: answered.append(answer.url))
                page.goto(address + path)
                page.get_by_text("seen-in-a-browser").first.wait_for(timeout=60_000)
                assert {url for url in answered if not url.startswith((address, "data:", "blob:"))} == set()
                assert page.evaluate(ASK, [f"{elsewhere}/sent", {}]) == "TypeError"
                page.close()
        assert asked == []
        page = browser.new_page()
        page.goto(elsewhere)
        for headers in ({}, {"Content-Type": "application/json"} | own):
            assert page.evaluate(ASK, [server + RUNS, headers]) == "TypeError"
        other.shutdown()


@pytest.mark.parametrize("listen", ["0.0.0.0", "::", "192.0.2.2"])
def test_other_machines_are_not_listened_to_without_a_password(tmp_path, listen):
    code, out, err = ended(start("ui", "--work", tmp_path / "work", "--listen", listen))
    assert (code, out) == (2, "")
    assert err == (
        f"ldptree: --listen {listen}: other machines could read and start runs there. Set "
        "PREFECT_SERVER_API_AUTH_STRING to a user:password of your own first, and PREFECT_API_AUTH_STRING to the same where "
        "runs and workers are started.\n"
    )
    assert not (tmp_path / "work").exists()


@pytest.mark.slow
def test_with_a_password_other_machines_are_answered_who_know_it(api, tmp_path, monkeypatch):
    for name in ("PREFECT_API_URL", "PREFECT_HOME"):
        monkeypatch.delenv(name, raising=False)
    work, port = api.begin(tmp_path / "work"), free_port()
    guarded = {"PREFECT_SERVER_API_AUTH_STRING": PASSWORD}
    process = start(
        "ui", "--work", work, "--port", str(port), "--listen", "0.0.0.0", own_group=True, env=guarded
    )
    try:
        assert process.stderr.readline().startswith("Prefect UI: ")
        url = f"http://127.0.0.1:{port}"
        assert ask(url, "/api/health", Host=f"192.0.2.2:{port}")[0] == 200
        assert ask(url, "/api/health", Host=f"evil.example:{port}")[0] == 403
        for path in ("/api/admin/settings", "/ldptree/"):
            assert ask(url, path, Host=f"192.0.2.2:{port}")[0] == 401
        monkeypatch.setenv("PREFECT_API_URL", f"{url}/api")
        config = rides_toml(tmp_path / "rides.toml", str(rides(tmp_path / "rides.csv", 300, seed=1)))
        code, _, err = ended(start("run", config, "--work", work))
        assert (code, err.splitlines()[-1]) == (
            2,
            f"ldptree: the Prefect server {url}/api asks for a password. Set PREFECT_API_AUTH_STRING to what its "
            "PREFECT_SERVER_API_AUTH_STRING is.",
        )
        knowing = {"PREFECT_API_AUTH_STRING": PASSWORD}
        code, _, err = ended(start("run", config, "--work", work, "--json", env=knowing))
        assert (code, err) == (0, "")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
