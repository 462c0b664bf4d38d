"""Which server a run finds: the one that `ldptree ui` keeps up for its work folder, and no other."""

from __future__ import annotations

import http.server
import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from flows import server
from flows.server import ADDRESS_FILE, Server, address_stated
from ldptree.errors import ConfigError


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
        threading.Thread(target=standing.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{standing.server_port}/api"
        standing.shutdown()


def stated(work, url, pid):
    (work / "prefect" / ADDRESS_FILE).write_text(json.dumps({"url": url, "pid": pid}))


def ended():
    """The id of a process that is over."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_standing_server_is_found(work, url):
    stated(work, url, os.getpid())
    assert Server(work, start=False).url == url


def test_what_answers_at_the_address_of_a_killed_ui_is_another_folders(work, url):
    stated(work, url, ended())
    assert Server(work, start=False).url is None


def test_a_server_that_is_coming_up_is_waited_for(work, url, monkeypatch):
    stated(work, url, os.getpid())
    answers = iter([False, False, True])
    monkeypatch.setattr(server, "_answers", lambda *_, **__: next(answers))
    monkeypatch.setattr(server.time, "sleep", lambda _: None)
    assert Server(work, start=False).url == url


def test_a_work_folder_has_one_server(work, url):
    stated(work, url, os.getpid())
    with (
        pytest.raises(ConfigError, match="a server of this work folder is up already"),
        address_stated(work, url),
    ):
        pass
    assert (work / "prefect" / ADDRESS_FILE).exists()


SERVING = """
import contextlib, sys, time, uvicorn
from flows import server

class Standing:
    def __init__(self, config):
        pass
    def run(self):
        with self.capture_signals():
            print("ready", flush=True)
            time.sleep(60)

uvicorn.Server = Standing
server._serve(0)
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
