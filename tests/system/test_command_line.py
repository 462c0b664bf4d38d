"""The installed command where it fails or is interrupted: exit code and message, no traceback, no server left behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from chain import rides
from whole_runs import PATIENCE, rides_toml, start, until

pytestmark = [pytest.mark.server, pytest.mark.slow]
CANARY = "CANARY77"


def ended(process):
    """Exit code, standard output and standard error."""
    out, err = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in err
    return process.returncode, out, err


def interrupted(process):
    process.send_signal(signal.SIGINT)
    code, out, err = ended(process)
    assert (code, out) == (130, "")
    assert err.endswith(
        "ldptree: interrupted. Finished steps are kept; the same command continues from there.\n"
    )


def server_of(work):
    """The process ids of the Prefect servers that runs in `work` started."""
    home = f"PREFECT_HOME={work / 'prefect'}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_server = b"flows.server.process" in (folder / "cmdline").read_bytes().split(b"\0")
            if is_server and home in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:  # it ended meanwhile
            continue
    return found


@pytest.fixture
def without_server(monkeypatch):
    """No server stands: a run has to start its own."""
    for name in ("PREFECT_API_URL", "PREFECT_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("without_server")
def test_a_wrong_configuration_or_a_missing_file_starts_no_server(tmp_path):
    config = rides_toml(tmp_path / "rides.toml", "rides.csv", privacy={"epsilom": 2.0})
    work = tmp_path / "work"
    code, out, err = ended(start("run", config, "--work", work, "--json"))
    assert (code, out) == (2, "")
    assert err == f"ldptree: {config}: 1 problem\n  privacy.epsilom: unknown key; did you mean epsilon?\n"
    config = rides_toml(tmp_path / "rides.toml", "rides.csv")
    assert ended(start("run", config, "--work", work))[:2] == (3, "")
    assert not work.exists()


@pytest.mark.usefixtures("without_server")
def test_ctrl_c_while_the_server_starts_ends_the_run_and_the_server(tmp_path):
    config = rides_toml(tmp_path / "rides.toml", str(rides(tmp_path / "rides.csv", 90, seed=1)))
    work = tmp_path / "work"
    process = start("run", config, "--work", work)
    (server,) = until("the temporary server", lambda: server_of(work))
    interrupted(process)
    until("the server's end", lambda: not Path(f"/proc/{server}").exists())


@pytest.mark.slow
def test_ctrl_c_in_the_middle_of_a_run_ends_it(files, tmp_path):
    config = rides_toml(tmp_path / "rides.toml", str(files / "*.csv"))
    work = tmp_path / "work"
    process = start("run", config, "--work", work, "--workers", "1")
    reports = (work / "curator" / "reports").rglob
    until("the first report", lambda: any(reports("*.parquet")), every=0.001)
    interrupted(process)
    assert not (work / "runs").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("without_server")
@pytest.mark.parametrize(
    ("number", "code", "step"),
    [(signal.SIGTERM, 143, "perturb"), (signal.SIGTERM, 143, "prune"), (signal.SIGINT, 130, "prune")],
)
def test_a_signal_to_the_run_and_its_server_ends_both_and_the_same_command_goes_on(
    api, tmp_path, files, number, code, step
):
    """As `timeout`, systemd and Ctrl-C send it: the first shard is answered, or the step after `step` begun."""
    config = rides_toml(tmp_path / "rides.toml", str(files / "*.csv"), evaluate=True)
    work = api.begin(tmp_path / "work")
    process = start("run", config, "--work", work, "--workers", "1", own_group=True)
    if step == "perturb":
        reports = (work / "curator" / "reports").rglob
        until("the first report", lambda: any(reports("*.parquet")), every=0.001)
    else:
        assert any(line.startswith(step) for line in process.stderr)
    (server,) = server_of(work)
    os.killpg(process.pid, number)
    ended_with, out, err = ended(process)
    assert (ended_with, out) == (code, ""), err
    assert "prefect" not in err.replace("starting Prefect (slower the first time in a folder)", "").lower()
    assert err.endswith(
        "ldptree: interrupted. Finished steps are kept; the same command continues from there.\n"
    )
    until("the server's end", lambda: not Path(f"/proc/{server}").exists())
    assert not (work / "runs").exists()
    ended_with, _, err = ended(start("run", config, "--work", work))
    assert ended_with == 0, err
    assert "cached" in err
