"""`ldptree ui`: a server with its pages while it is wanted, and none behind it, however it ends."""

from __future__ import annotations

import os
import signal
import socket
import stat
import urllib.error
import urllib.request

import pytest
from whole_runs import start, until

pytestmark = [pytest.mark.server, pytest.mark.slow]


def answers(port, path="/api/health"):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status == 200
    except (OSError, urllib.error.HTTPError):
        return False


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_its_server_ends_with_it(tmp_path, monkeypatch, how):
    monkeypatch.delenv("PREFECT_HOME", raising=False)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    before = os.umask(0)
    process = start("ui", "--work", tmp_path / "work", "--port", str(port))
    os.umask(before)
    until("the server", lambda: answers(port))
    assert answers(port, "/")
    assert stat.S_IMODE((tmp_path / "work" / "prefect").stat().st_mode) == 0o700
    process.send_signal(how)
    process.communicate(timeout=60)
    assert process.returncode == (-9 if how == signal.SIGKILL else 0)
    until("the server's end", lambda: not answers(port))
