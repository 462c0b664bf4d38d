"""The Prefect server of a run: the one that is named, asked directly where it is of this machine."""

from __future__ import annotations

import http.server
import os
import socket
import threading

import pytest

from flows.server import process as server
from flows.server.process import Server, environment, start_ui
from ldptree.errors import ConfigError


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A work folder, and an environment that names no server."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    for name in ("PREFECT_API_URL", "PREFECT_HOME"):
        os.environ.pop(name, None)
    return tmp_path


@pytest.fixture
def url():
    """Something that answers as a server does."""

    class Healthy(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Healthy) as standing:
        threading.Thread(target=standing.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://127.0.0.1:{standing.server_port}/api"
        standing.shutdown()


def test_a_port_that_is_taken_is_refused_whoever_has_it(work):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))  # and does not listen
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} is taken"):
            start_ui(work, port, "127.0.0.1", print)
    assert [*work.iterdir()] == []


@pytest.mark.parametrize("stated", [None, "", " ", "someone", "someone:", ":secret", " :secret", "someone: "])
def test_other_machines_are_not_listened_to_without_both_a_user_and_a_password(work, stated):
    os.environ.pop("PREFECT_SERVER_API_AUTH_STRING", None)
    if stated is not None:
        os.environ["PREFECT_SERVER_API_AUTH_STRING"] = stated
    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))  # so that nothing is started there
        with pytest.raises(ConfigError, match="Set PREFECT_SERVER_API_AUTH_STRING to a user:password"):
            start_ui(work, other.getsockname()[1], "0.0.0.0", print)


def test_a_named_server_that_hangs_or_is_not_there_is_told(work, monkeypatch):
    monkeypatch.setattr(server, "NAMED_SECONDS", 0.5)
    with socket.socket() as silent:  # takes connections and says nothing, as a stopped process does
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        hangs = f"http://127.0.0.1:{silent.getsockname()[1]}/api"
        for url in (hangs, "http://127.0.0.1:9/api", "file:///etc", "nonsense"):
            os.environ["PREFECT_API_URL"] = url
            with pytest.raises(
                ConfigError, match=f"PREFECT_API_URL is {url}, but no Prefect server answers there"
            ):
                Server(work).wait()


def test_old_flow_runs_go_by_prefects_vacuum_but_not_from_a_database_that_the_user_named(work, monkeypatch):
    vacuum = "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED"
    assert environment(work)[vacuum] == "true"
    monkeypatch.setenv("PREFECT_API_DATABASE_CONNECTION_URL", "postgresql+asyncpg://db/prefect")
    assert vacuum not in environment(work)


@pytest.mark.parametrize(
    ("name", "scheme", "except_for"),
    [
        ("HTTP_PROXY", "http", None),
        ("http_proxy", "socks5", "example.org"),
        ("ALL_PROXY", "socks5", None),
        ("HTTPS_PROXY", "http", "example.org"),
    ],
)
def test_a_proxy_is_never_asked_for_a_server_of_this_machine(work, url, name, scheme, except_for):
    import httpx

    os.environ[name] = f"{scheme}://127.0.0.1:9"
    os.environ.pop("NO_PROXY", None)
    if except_for:
        os.environ["NO_PROXY"] = except_for
    os.environ["PREFECT_API_URL"] = url
    Server(work).wait()
    assert httpx.get(f"{url}/health").status_code == 200  # as Prefect's client asks
    assert os.environ["NO_PROXY"].split(",")[-3:] == ["localhost", "127.0.0.1", "::1"]
    assert except_for is None or except_for in os.environ["NO_PROXY"]


def test_a_server_elsewhere_is_asked_through_the_proxy_that_stands(work):
    os.environ |= {
        "HTTPS_PROXY": "http://proxy.example:3128",
        "PREFECT_API_URL": "https://prefect.example/api",
    }
    found = Server(work)
    assert (found.url, found.temporary) == ("https://prefect.example/api", False)
    assert os.environ["HTTPS_PROXY"] == "http://proxy.example:3128"
