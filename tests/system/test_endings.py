"""Every way a run can end, again and again on a busy machine: its code, its words, and not one line of anybody else.

`LDPTREE_ENDINGS=200` repeats each ending so often.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from chain import rides
from test_command_line import CANARY, server_of
from whole_runs import PATIENCE, rides_toml, start, until

TIMES = int(os.environ.get("LDPTREE_ENDINGS", "3"))
pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(900 + 10 * TIMES)]

AT_ONCE = 3
STEP = re.compile(r"\w+ +\d+\.\d s  \w+(, \d+ shards?)?")
INTERRUPTED = "ldptree: interrupted. Finished steps are kept; the same command continues from there."


@pytest.fixture(scope="module", autouse=True)
def _busy_machine():
    """A process that does nothing but take time, beside the other test processes; two where endings are repeated often."""
    n_busy = 1 if TIMES <= AT_ONCE else 2
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n_busy)]
    yield
    for process in busy:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """A small run; it has run once in each of the work folders that are used at once."""
    folder = tmp_path_factory.mktemp("endings")
    path = rides_toml(folder / "rides.toml", str(rides(folder / "rides.csv", 300, seed=1)))
    for number in range(AT_ONCE):
        process = start("run", path, "--work", folder / f"work-{number}", "--json")
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    return path


def repeated(once):
    """What `once(number)` found, of every repetition."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(once, range(TIMES)))


def work_of(config, number):
    return config.parent / f"work-{number % AT_ONCE}"


def said_by(process):
    """Exit code, standard output, and the lines of standard error that tell of no finished step."""
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, [line for line in err.splitlines() if not STEP.fullmatch(line)]


def test_done(config):
    def once(number):
        code, out, lines = said_by(start("run", config, "--work", work_of(config, number), "--json"))
        return code, json.loads(out)["name"], lines

    assert repeated(once) == [(0, "rides", [])] * TIMES


def test_refused(config, tmp_path):
    path = rides(tmp_path / "rides.csv", 90, seed=1)
    path.write_text(path.read_text() + f"closed,{CANARY}\n")
    bad = rides_toml(tmp_path / "rides.toml", str(path))

    def once(number):
        code, out, lines = said_by(start("run", bad, "--work", tmp_path / f"work-{number}", "--json"))
        is_told = [line.startswith("ldptree: rides.csv: ") and "(details in " in line for line in lines]
        assert not (tmp_path / f"work-{number}" / "curator").exists()
        return code, out, is_told, CANARY in "".join(lines)

    assert repeated(once) == [(3, "", [True], False)] * TIMES


def test_no_server(config, tmp_path):
    nowhere = {"PREFECT_API_URL": "http://127.0.0.1:9/api", "PREFECT_HOME": str(tmp_path / "prefect")}
    told = (
        "ldptree: PREFECT_API_URL is http://127.0.0.1:9/api, but no Prefect server answers there. "
        "Start it, or unset the variable."
    )

    def once(number):
        code, out, lines = said_by(start("run", config, "--work", work_of(config, number), env=nowhere))
        return code, out, lines[0].startswith("rides at epsilon 2, in "), lines[1:]

    assert repeated(once) == [(2, "", True, [told])] * TIMES


def handles_signals(pid):
    """Whether a program has begun to handle termination: before, its end is Python's own."""
    caught = Path(f"/proc/{pid}/status").read_text().partition("SigCgt:")[2].split()
    return bool(caught) and bool(int(caught[0], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_at_any_moment(config, signum, code):
    moments = random.Random(int(signum))
    delays = [moments.uniform(0.0, 6.0) for _ in range(TIMES)]

    def once(number):
        process = start("run", config, "--work", work_of(config, number), "--set", f"seed={number}", "--json")
        until("the program's own handling of signals", lambda: handles_signals(process.pid), every=0.001)
        time.sleep(delays[number])
        process.send_signal(signum)
        ended_with, out, lines = said_by(process)
        # A run that was done already has said all.
        is_done = ended_with == 0 and lines == [] and json.loads(out)["name"] == "rides"
        return is_done or (ended_with, out, lines) == (code, "", [INTERRUPTED]) or (ended_with, out, lines)

    assert [found for found in repeated(once) if found is not True] == []


def test_interrupted_with_a_server_of_its_own(config, tmp_path, monkeypatch):
    for name in ("PREFECT_API_URL", "PREFECT_HOME"):
        monkeypatch.delenv(name, raising=False)
    moments = random.Random(3)
    delays = [moments.uniform(0.0, 12.0) for _ in range(TIMES)]

    def once(number):
        work = tmp_path / f"work-{number}"
        process = start("run", config, "--work", work, "--json", own_group=True)
        until("the program's own handling of signals", lambda: handles_signals(process.pid), every=0.001)
        time.sleep(delays[number])
        os.killpg(process.pid, signal.SIGINT)
        ended_with, out, lines = said_by(process)
        until("the end of the server", lambda: not server_of(work))
        is_done = ended_with == 0 and lines == [] and json.loads(out)["name"] == "rides"
        return is_done or (ended_with, out, lines) == (130, "", [INTERRUPTED]) or (ended_with, out, lines)

    assert [found for found in repeated(once) if found is not True] == []
