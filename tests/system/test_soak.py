"""A server that stays up for many runs, each on new rows, with `gc` now and then: nothing grows but by what is kept."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from chain import rides
from whole_runs import PATIENCE, rides_toml, start

pytestmark = [pytest.mark.server, pytest.mark.slow]

RUNS = int(os.environ.get("LDPTREE_SOAK_RUNS", "6"))
BETWEEN = max(RUNS // 5, 2)
"""Runs between two `gc`."""
KEPT = 2
MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Seen:
    """What there is after a `gc`: of the server and whatever it started, resident bytes and open files; bytes of the store."""

    runs: int
    memory: int
    open_files: int
    store: int
    seconds_a_run: float


@pytest.mark.timeout(600 + 60 * RUNS)
def test_many_runs_on_one_server_leave_it_as_it_was(tmp_path, monkeypatch):
    """`make soak` makes 50."""
    monkeypatch.delenv("PREFECT_HOME", raising=False)
    seen = [*soak(tmp_path, RUNS, BETWEEN)]
    first, last = seen[0], seen[-1]
    for one in seen:
        print(one)
    assert last.runs == RUNS
    assert last.memory <= 1.2 * first.memory + 32 * MEBIBYTE
    assert last.open_files <= first.open_files + 10
    # Of checks with the same outcome those of one older run may be kept, with their pages.
    assert last.store <= 1.5 * first.store


def soak(room: Path, n_runs: int, between: int) -> Iterator[Seen]:
    """Runs one after the other, each on other rows of the same file; what there is after each `gc`."""
    work = room / "work"
    port = free_port()
    there = {"PREFECT_API_URL": f"http://127.0.0.1:{port}/api"}
    config = rides_toml(
        room / "rides.toml", str(room / "rides.csv"), evaluate=True, simulation={"noise_seed": 11}
    )
    server = start("ui", "--work", work, "--port", str(port))
    try:
        for line in iter(server.stderr.readline, ""):
            if line.startswith("All runs:"):
                break
        began = time.monotonic()
        for number in range(1, n_runs + 1):
            rides(room / "rides.csv", 600, seed=number)
            ended("run", config, "--work", work, "--json", env=there)
            if number % between == 0:
                seconds = (time.monotonic() - began) / between
                ended("gc", "--work", work, "--keep", str(KEPT))
                yield look(server.pid, work, number, seconds)
                began = time.monotonic()
    finally:
        server.terminate()
        server.communicate(timeout=PATIENCE)


def ended(*words, env=None):
    process = start(*words, env=env)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return out


def look(pid: int, work: Path, runs: int, seconds: float) -> Seen:
    """What there is now."""
    processes = [Path("/proc", str(one)) for one in (pid, *children(pid))]
    prefect = work / "prefect"
    everything = sum(path.stat().st_size for path in work.rglob("*") if path.is_file())
    return Seen(
        runs=runs,
        memory=sum(
            int((one / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") for one in processes
        ),
        open_files=sum(len([*(one / "fd").iterdir()]) for one in processes),
        store=everything - sum(path.stat().st_size for path in prefect.rglob("*") if path.is_file()),
        seconds_a_run=round(seconds, 1),
    )


def children(pid: int) -> list[int]:
    """The processes that a process has started, and those that these have."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    found = [int(one) for thread in threads for one in (thread / "children").read_text().split()]
    return [*found, *(below for one in found for below in children(one))]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
