"""The intake of the examples: what it acknowledged is on disk, whatever happens to it, and it writes nothing but reports."""

from __future__ import annotations

import contextlib
import errno
import http.client
import importlib.util
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from ldptree import serialize
from ldptree.client import Client
from tasks.answers.receive import SEEN, UNREADABLE, receive_folder

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples" / "intake" / "intake.py"
PROTOCOL = serialize.canonical(json.loads((ROOT / "docs/client/vectors.json").read_text())[0]["protocol"])
ROW = {"miles": 1.5, "company": "Sun"}


def reports(n):
    """A line of each of so many devices."""
    client = Client(PROTOCOL, max_epsilon=64.0, lifetime_epsilon=1000.0, memory={})
    return [client.report(ROW, "cash", holder=f"{i}").to_json() for i in range(n)]


@pytest.fixture(scope="module")
def lines():
    return reports(2000)


class Running:
    """An intake as a process."""

    def __init__(self, inbox, *options):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = [sys.executable, PROGRAM, inbox, "--port", str(self.port), *options]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.05)
        raise AssertionError(self.process.stdout.read())

    def post(self, body, **options):
        """The status of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request("POST", "/reports", body, **options)
            return connection.getresponse().status

    def stop(self, how=signal.SIGTERM):
        """All that it wrote on its terminal."""
        self.process.send_signal(how)
        return self.process.communicate(timeout=60)[0]


@pytest.fixture
def start(tmp_path):
    (tmp_path / "inbox").mkdir()
    started = []

    def starting(*options):
        started.append(Running(tmp_path / "inbox", *options))
        return started[-1]

    yield starting
    for intake in started:
        intake.process.kill()
        intake.process.communicate()


def kept(room, pattern="*.jsonl"):
    """The lines of the inbox."""
    content = "".join(path.read_text() for path in sorted((room / "inbox").glob(pattern)))
    return [line for line in content.split("\n") if line]


def names(room):
    return sorted(path.name for path in (room / "inbox").iterdir())


def received(room):
    """What the curator makes of the inbox."""
    (room / "protocol.json").write_text(PROTOCOL)
    return receive_folder(room / "protocol.json", room / "inbox")


@pytest.fixture
def inside(tmp_path):
    """The program as a module, and its server in this process."""
    with warnings.catch_warnings(action="ignore"):  # of a successor to httpx
        from starlette.testclient import TestClient
    spec = importlib.util.spec_from_file_location("intake", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "inbox").mkdir()
    with TestClient(module.intake(module.Inbox(tmp_path / "inbox", 2**26, 3600), None)) as server:
        yield module, server


def test_reports_arrive_as_they_were_sent_and_nothing_else_is_written(start, tmp_path, lines):
    intake = start()
    assert intake.post(lines[0]) == 204
    assert intake.post("\n".join(lines[1:50]) + "\n", headers={"X-Forwarded-For": "203.0.113.7"}) == 204
    assert intake.post("nothing") == 400
    assert kept(tmp_path, "*.part")
    assert not kept(tmp_path)
    assert intake.stop() == ""
    assert sorted(kept(tmp_path)) == sorted(lines[:50])
    assert kept(tmp_path)[1:] != lines[1:50]
    (segment,) = names(tmp_path)
    assert re.fullmatch(r"\d{8}\.jsonl", segment)
    assert received(tmp_path).accepted == 50


def test_a_report_is_on_disk_before_it_is_acknowledged(inside, tmp_path, lines, monkeypatch):
    module, server = inside
    fsync, may_go_on, answers, synced = os.fsync, threading.Event(), [], []

    def slowly(file):
        may_go_on.wait(60)
        synced.append(os.fstat(file).st_ino)
        fsync(file)

    monkeypatch.setattr(module.os, "fsync", slowly)
    device = threading.Thread(
        target=lambda: answers.append(server.post("/reports", content=lines[0]).status_code)
    )
    device.start()
    device.join(0.3)
    assert answers == []
    may_go_on.set()
    device.join(60)
    assert answers == [204]
    assert kept(tmp_path, "*.part") == lines[:1]
    assert synced == [(tmp_path / "inbox" / name).stat().st_ino for name in (".", "00000001.part")]


def test_what_is_not_on_disk_is_not_acknowledged_and_what_comes_after_it_is_whole(
    inside, tmp_path, lines, monkeypatch
):
    module, server = inside
    assert server.post("/reports", content=lines[0]).status_code == 204
    write = os.write

    def in_part(file, content):
        write(file, content[:30])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "write", in_part)
        assert server.post("/reports", content=lines[1]).status_code == 500
    with monkeypatch.context() as patch:
        patch.setattr(module.os, "fsync", lambda file: in_part(file, b""))
        assert server.post("/reports", content=lines[2]).status_code == 500
    assert [server.post("/reports", content=line).status_code for line in lines[1:4]] == [204] * 3
    server.__exit__()
    assert set(kept(tmp_path)) >= set(lines[:4])
    found = received(tmp_path)
    assert (found.accepted, dict(found.rejected)) == (4, {UNREADABLE: 1, SEEN: 1})


@pytest.mark.parametrize(
    ("body", "status"),
    [
        *((body, 400) for body in (b"", b"[]", b"{}", b"1", b"\xff", b"\x1f\x8b\x08\x00", b"[" * 2**17)),
        (b'{"protocol": "a", "round": 1, "id": "b",\n"report": "c"}', 400),
        *((b" " * n, status) for n, status in ((2**18, 400), (2**18 + 1, 413), (2**24, 413))),
    ],
)
def test_what_is_no_report_is_refused_whole_and_not_kept(inside, tmp_path, lines, body, status):
    _, server = inside
    assert server.post("/reports", content=body).status_code == status
    if 0 < len(body) < 2**18:
        assert server.post("/reports", content=lines[0].encode() + b"\n" + body).status_code == 400
    assert server.get("/reports").status_code == 405
    assert names(tmp_path) == []


@pytest.mark.slow
def test_more_than_a_thousand_connections_get_503_and_the_next_report_is_taken(start, lines):
    intake = start()
    waiting = [socket.create_connection(("127.0.0.1", intake.port)) for _ in range(1_000)]
    assert intake.post(lines[0]) == 503
    for connection in waiting:
        connection.close()
    while intake.post(lines[0]) == 503:
        time.sleep(0.05)
    assert "127.0.0.1" not in intake.stop()


def test_a_retry_counts_once_also_in_another_segment(start, tmp_path, lines):
    intake = start("--size", "1")
    assert [intake.post(line) for line in (*lines[:3], *lines[:3])] == [204] * 6
    intake.stop()
    assert len(names(tmp_path)) == 6
    found = received(tmp_path)
    assert (found.accepted, dict(found.rejected)) == (3, {SEEN: 3})


def test_a_segment_is_closed_when_it_is_old_though_nothing_more_comes(start, tmp_path, lines):
    intake = start("--seconds", "0.5")
    assert intake.post(lines[0]) == 204
    while not kept(tmp_path):
        time.sleep(0.05)
    assert intake.post(lines[1]) == 204
    intake.stop()
    assert names(tmp_path) == ["00000001.jsonl", "00000002.jsonl"]
    assert kept(tmp_path) == lines[:2]


def test_a_torn_last_line_of_an_intake_that_was_killed_is_passed_over(start, tmp_path, lines):
    intake = start()
    assert intake.post(lines[0]) == 204
    intake.stop(signal.SIGKILL)
    (segment,) = (tmp_path / "inbox").glob("*.part")
    with segment.open("a") as file:
        file.write(lines[1][:40])
    intake = start()
    assert intake.post(lines[2]) == 204
    intake.stop()
    found = received(tmp_path)
    assert (found.accepted, dict(found.rejected)) == (2, {UNREADABLE: 1})


def test_two_intakes_do_not_write_to_one_inbox(start, lines):
    intake = start()
    with pytest.raises(AssertionError, match=r"error: .*/inbox: another intake writes there"):
        start()
    assert intake.post(lines[0]) == 204


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nowhere",), "nowhere: No such file or directory. Make the folder where reports are to arrive."),
        ((PROGRAM,), "intake.py: Not a directory. Make the folder where reports are to arrive."),
        (
            (".", "--published", "nowhere"),
            "--published nowhere: no such folder. Publish first, by ldptree run.",
        ),
    ],
)
def test_what_an_intake_cannot_start_with_is_one_sentence(tmp_path, words, sentence):
    command = [sys.executable, PROGRAM, *words]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    usage, _, said = ended.stderr.partition("intake.py: error: ")
    assert ended.returncode == 2
    assert usage.startswith("usage: ")
    assert said.endswith(sentence + "\n")
    assert said.count("\n") == 1


def test_a_full_disk_gives_500_and_the_same_report_is_taken_when_there_is_room(start, tmp_path, lines):
    """A file that may grow no more fails as one on a full disk does, in the middle of a write."""
    intake = start()
    size = sum(map(len, lines[:100]))
    resource.prlimit(intake.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    answers = [intake.post(line) for line in lines[:200]]
    assert set(answers) == {204, 500}
    assert kept(tmp_path, "*.part")
    resource.prlimit(intake.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    again = [line for line, status in zip(lines, answers, strict=False) if status == 500]
    assert [intake.post(line) for line in again] == [204] * len(again)
    intake.stop()
    assert received(tmp_path).accepted == 200


@pytest.mark.slow
def test_no_acknowledged_report_is_lost_by_kills_under_load(start, tmp_path, lines):
    """Devices send until they have a 204, some as soon as the intake is back; it is killed at any moment."""
    chance, acknowledged, waiting = random.Random(1), set(), list(lines)
    lock = threading.Lock()

    def send(port, is_over):
        while not is_over.is_set():
            with lock:
                mine = waiting[: chance.randrange(1, 4)]
                del waiting[: len(mine)]
            if not mine:
                return
            status = 0
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request("POST", "/reports", "\n".join(mine))
                status = connection.getresponse().status
                connection.close()
            with lock:
                acknowledged.update(mine) if status == 204 else waiting.extend(mine)

    kills = 0
    while waiting:
        intake, is_over = start("--size", "20000"), threading.Event()
        devices = [threading.Thread(target=send, args=(intake.port, is_over)) for _ in range(16)]
        for device in devices:
            device.start()
        if kills < 12:
            time.sleep(chance.random() / 20)
            intake.stop(signal.SIGKILL)
            is_over.set()
            kills += 1
        for device in devices:
            device.join()
        with lock:
            assert acknowledged <= {*kept(tmp_path), *kept(tmp_path, "*.part")}
    intake.stop()
    start("--size", "20000").stop()  # closes what the last one left, which may have been killed too
    assert kills >= 3
    assert acknowledged == {*lines}
    assert received(tmp_path).accepted == len(lines)


@pytest.mark.slow
def test_slow_devices_hold_nobody_up_and_are_turned_away(start, tmp_path, lines):
    intake = start()
    slow = [socket.create_connection(("127.0.0.1", intake.port)) for _ in range(200)]
    head = f"POST /reports HTTP/1.1\r\nHost: h\r\nContent-Length: {len(lines[0])}\r\n\r\n"
    for device in slow:
        device.sendall(head.encode() + lines[0][:20].encode())
    began = time.monotonic()
    assert [intake.post(line) for line in lines[1:100]] == [204] * 99
    assert time.monotonic() - began < 10
    answers = {device.recv(100).split(b"\r\n")[0] for device in slow}
    assert answers == {b"HTTP/1.1 408 Request Timeout"}
    intake.stop()
    assert received(tmp_path).accepted == 99
