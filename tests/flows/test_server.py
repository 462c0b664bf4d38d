"""Which server a run finds: the one that `ldptree ui` keeps up for its work folder, and no other."""

from __future__ import annotations

import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack

import pytest

from flows.server import process as server
from flows.server.process import Server, standing, start_ui
from flows.server.standing import ADDRESS_FILE, address_stated
from ldptree.errors import ConfigError, LdptreeError


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A work folder, and an environment that names no server."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    for name in ("PREFECT_API_URL", "PREFECT_HOME"):
        os.environ.pop(name, None)
    (tmp_path / "prefect").mkdir()
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


@pytest.fixture
def silent():
    """The address of something that takes connections and says nothing, as a stopped process does."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/api"


@pytest.fixture
def kept_up(work):
    """Called with an address, states it as `ldptree ui` does; called once more with nothing, says that it answered."""
    with ExitStack() as stack:
        yield lambda url: stack.enter_context(address_stated(work / "prefect", url))


def test_a_standing_server_is_found(work, url, kept_up):
    kept_up(url)
    found = Server(work, start=False)
    assert (found.url, found.is_named) == (url, False)


def test_a_server_that_the_user_names_comes_first(work, url, kept_up, monkeypatch):
    kept_up(url)
    monkeypatch.setenv("PREFECT_API_URL", "http://prefect.example/api")
    found = Server(work, start=False)
    assert (found.url, found.is_named) == ("http://prefect.example/api", True)


@pytest.mark.parametrize("stated", ["as it was", "of an older version", "garbage", "empty"])
def test_the_address_of_a_ui_that_is_over_is_nobodys_whoever_has_its_number_now(work, url, stated):
    """What answers there may be another folder's server."""
    with address_stated(work / "prefect", url):
        left = (work / "prefect" / ADDRESS_FILE).read_text()
    older = json.dumps({"url": url, "pid": os.getpid()})
    texts = {"as it was": left, "of an older version": older, "garbage": "{", "empty": ""}
    (work / "prefect" / ADDRESS_FILE).write_text(texts[stated])
    assert Server(work, start=False).url is None


def test_a_stale_address_is_not_even_asked(work, silent, monkeypatch):
    """Something that hangs there would cost seconds."""
    (work / "prefect" / ADDRESS_FILE).write_text(json.dumps({"url": silent, "pid": os.getpid()}))
    asked = []
    monkeypatch.setattr(standing, "answers", lambda url, **_: asked.append(url))
    assert Server(work, start=False).url is None
    assert asked == []


def test_a_killed_ui_is_over(work, url):
    code = (
        "import sys, time; from pathlib import Path; from flows.server.standing import address_stated\n"
        f"with address_stated(Path({str(work / 'prefect')!r}), {url!r}): print('up', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n"
    assert Server(work, start=False).url == url
    os.environ.pop("PREFECT_API_URL")
    process.kill()
    process.communicate()
    assert Server(work, start=False).url is None


def test_a_server_that_is_coming_up_is_waited_for(work, url, kept_up, monkeypatch):
    kept_up(url)
    answers = iter([False, False, True])
    monkeypatch.setattr(standing, "answers", lambda *_, **__: next(answers))
    monkeypatch.setattr(standing.time, "sleep", lambda _: None)
    assert Server(work, start=False).url == url


def test_a_standing_server_that_hangs_is_told_with_what_to_do(work, silent, kept_up, monkeypatch):
    monkeypatch.setattr(standing, "PATIENCE_SECONDS", 0.1)
    kept_up(silent)()
    with pytest.raises(LdptreeError) as told:
        Server(work, start=False, again="ldptree run rides.toml")
    assert str(told.value) == (
        f"the Prefect server that `ldptree ui` keeps up here ({silent.removesuffix('/api')}) does not answer. "
        f"End it (kill -9 {os.getpid()}), then go on with: ldptree run rides.toml"
    )
    assert standing.PATIENCE_SECONDS + 2 < 15


def test_a_work_folder_has_one_server(work, url, kept_up):
    kept_up(url)
    with (
        pytest.raises(ConfigError, match="a server of this work folder is up already"),
        address_stated(work / "prefect", url),
    ):
        pass
    assert Server(work, start=False).url == url


def test_a_port_that_is_taken_is_refused_whoever_has_it(work):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))  # and does not listen
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} is taken"):
            start_ui(work, port, lambda: None)
    assert not (work / "prefect" / ADDRESS_FILE).exists()


def test_a_named_server_that_hangs_or_is_not_there_is_told_in_time(work, silent, monkeypatch):
    monkeypatch.setattr(server, "NAMED_SECONDS", 0.5)
    for url in (silent, "http://127.0.0.1:9/api"):
        os.environ["PREFECT_API_URL"] = url
        with pytest.raises(
            ConfigError, match=f"PREFECT_API_URL is {url}, but no Prefect server answers there"
        ):
            Server(work).wait()


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
    assert Server(work).url == "https://prefect.example/api"
    assert os.environ["HTTPS_PROXY"] == "http://proxy.example:3128"


SERVING = """
import contextlib, socket, sys, time, uvicorn
from flows.server import process as server

class Standing:
    def __init__(self, config):
        pass
    def run(self, sockets):
        with self.capture_signals():
            print("ready", flush=True)
            time.sleep(60)

uvicorn.Server = Standing
server._prepare_database = lambda: None
server._serve(socket.socket().detach())
"""


def test_a_runs_server_outlives_a_signal_to_everybody_and_ends_with_the_run():
    process = subprocess.Popen(
        [sys.executable, "-c", SERVING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process.send_signal(number)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.3)
    process.communicate(timeout=60)  # closes the pipe
    assert process.returncode == 0
