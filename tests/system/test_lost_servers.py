"""A Prefect server that ends, or finds its database damaged: a sentence, and a command that goes on from there."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3

import pytest
from chain import rides
from test_command_line import ended, server_of
from whole_runs import rides_toml, start

pytestmark = [pytest.mark.server, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _without_server(monkeypatch):
    """No server stands: a run has to start its own."""
    for name in ("PREFECT_API_URL", "PREFECT_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def config(files, tmp_path):
    """A run of many shards."""
    return rides_toml(tmp_path / "rides.toml", str(files / "*.csv"))


def test_a_server_that_is_lost_in_a_run_ends_it_with_what_goes_on_from_there(api, config, tmp_path):
    work = api.begin(tmp_path / "work")
    process = start("run", config, "--work", work, "--workers", "1")
    assert any(line.startswith("ingest") for line in process.stderr)
    (server,) = server_of(work)
    os.kill(server, signal.SIGKILL)
    code, out, err = ended(process)
    assert (code, out) == (1, "")
    told = err.splitlines()[-1]
    assert re.fullmatch(
        r"ldptree: the Prefect server of this run \(http://127\.0\.0\.1:\d+/api\) does not answer any more\. "
        f"Finished steps are kept\\. Continue with: ldptree run {config} --work {work}",
        told,
    )
    assert sum(line.startswith("ldptree:") for line in err.splitlines()) == 1
    code, out, err = ended(start("run", config, "--work", work, "--json"))
    assert (code, err) == (0, "")
    assert "cached" in {step["state"] for step in json.loads(out)["steps"]}


def test_two_first_runs_at_once_make_one_database_and_ask_no_proxy(tmp_path, monkeypatch):
    work = tmp_path / "work"
    config = rides_toml(tmp_path / "rides.toml", str(rides(tmp_path / "rides.csv", 300, seed=1)))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody is there
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for process in [start("run", config, "--work", work, "--json") for _ in range(2)]:
        code, out, err = ended(process)
        assert (code, json.loads(out)["name"], err) == (0, "rides", "")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def write_damaged(path, how):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if how == "garbage":
        path.write_bytes(b"SQLite format 3\0" + os.urandom(9000))
        return
    with sqlite3.connect(path) as connection:
        if how == "a first migration that was cut":
            connection.execute("CREATE TABLE flow (id INTEGER)")
        else:
            connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
            connection.execute("INSERT INTO alembic_version VALUES ('ffffffffffff')")
    connection.close()


@pytest.mark.parametrize("how", ["garbage", "a first migration that was cut", "of a later Prefect"])
def test_a_database_that_cannot_be_used_is_named_and_once_it_is_away_the_same_command_runs(tmp_path, how):
    work = tmp_path / "work"
    config = rides_toml(tmp_path / "rides.toml", str(rides(tmp_path / "rides.csv", 300, seed=1)))
    database = work / "prefect" / "prefect.db"
    write_damaged(database, how)
    said = (
        "ldptree: Prefect's server did not start (see {}). If its database {} is damaged, or of another version of Prefect, move "
        "it away (artifacts, models and reports are not in it), then go on with: ldptree {}\n"
    )
    code, out, err = ended(start("run", config, "--work", work, "--json"))
    log = database.with_name("server.log")
    assert (code, out, err) == (1, "", said.format(log, database, f"run {config} --work {work}"))
    assert log.read_text()
    if how != "garbage":
        return
    code, out, err = ended(start("ui", "--work", work, "--port", str(free_port())))
    log = database.with_name("ui.log")
    assert (code, out, err) == (1, "", said.format(log, database, f"ui --work {work}"))
    database.rename(tmp_path / "away")
    code, out, err = ended(start("run", config, "--work", work, "--json"))
    assert (code, json.loads(out)["name"], err) == (0, "rides", "")


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


CACHED_RUNS = int(os.environ.get("LDPTREE_CACHED_RUNS", "2"))


@pytest.mark.timeout(300 + 60 * CACHED_RUNS)
def test_cached_runs_leave_nothing_once_garbage_is_collected(api, tmp_path):
    """`LDPTREE_CACHED_RUNS=30` makes so many."""
    work = api.begin(tmp_path / "work")
    config = rides_toml(tmp_path / "rides.toml", str(rides(tmp_path / "rides.csv", 300, seed=1)))

    def run():
        code, out, err = ended(start("run", config, "--work", work, "--json"))
        assert code == 0, err
        return json.loads(out)

    def collected():
        code, _, err = ended(start("gc", "--work", work))
        assert (code, err) == (0, "")
        return size(work) - size(work / "prefect")

    run()
    before = collected()
    for _ in range(CACHED_RUNS):
        last = run()
    assert collected() <= before
    assert [path.name for path in (work / "runs").iterdir()] == [last["run"]]
    assert {step["state"] for step in run()["steps"]} == {"cached"}
