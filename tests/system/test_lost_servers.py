"""A Prefect server that ends, hangs, or finds its database damaged: a sentence in time, and a command that goes on from there."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import time

import pytest
from chain import rides
from test_command_line import ended, server_of
from whole_runs import rides_toml, start, until

pytestmark = [pytest.mark.server, pytest.mark.slow]
IN_TIME = 15.0


@pytest.fixture(autouse=True)
def _without_server(monkeypatch):
    """No server stands: a run has to start its own."""
    for name in ("PREFECT_API_URL", "PREFECT_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def config(files, tmp_path):
    """A run of many shards."""
    return rides_toml(tmp_path / "rides.toml", str(files / "*.csv"))


@pytest.mark.parametrize(
    ("number", "how", "after"),
    [(signal.SIGKILL, "has ended", "ingest"), (signal.SIGSTOP, "does not answer", "perturb")],
)
def test_a_server_that_is_lost_in_a_run_ends_it_with_what_goes_on_from_there(
    api, config, tmp_path, number, how, after
):
    work = api.begin(tmp_path / "work")
    process = start("run", config, "--work", work, "--workers", "1")
    assert any(line.startswith(after) for line in process.stderr)
    (server,) = server_of(work)
    os.kill(server, number)
    began = time.monotonic()
    code, out, err = ended(process)
    assert time.monotonic() - began < IN_TIME
    assert (code, out) == (1, "")
    told = err.splitlines()[-1]
    assert told.startswith(f"ldptree: the Prefect server of this run {how}")
    assert told.endswith(f"Finished steps stand. Go on with: ldptree run {config} --work {work}")
    assert sum(line.startswith("ldptree:") for line in err.splitlines()) == 1
    until("the server's end", lambda: not server_of(work))
    again = start("run", config, "--work", work, "--json")
    code, out, err = ended(again)
    assert (code, err) == (0, "")
    assert "cached" in {step["state"] for step in json.loads(out)["steps"]}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def standing(api, tmp_path):
    """`ldptree ui` on the work folder, its server's process and what a run finds there."""
    work = api.begin(tmp_path / "work")
    process = start("ui", "--work", work, "--port", str(free_port()), own_group=True)
    assert process.stderr.readline().startswith("Prefect UI: ")
    yield process, work
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("who", ["its server", "both"])
def test_a_standing_server_that_hangs_is_told_and_without_it_the_run_goes_on(standing, config, who):
    ui, work = standing
    if who == "both":
        os.killpg(ui.pid, signal.SIGSTOP)
    else:
        for server in server_of(work):
            os.kill(server, signal.SIGSTOP)
    began = time.monotonic()
    code, out, err = ended(start("run", config, "--work", work))
    assert time.monotonic() - began < IN_TIME
    assert (code, out) == (1, "")
    assert f"(kill -9 {ui.pid}), then go on with: ldptree run {config} --work {work}" in err
    os.kill(ui.pid, signal.SIGKILL)
    for server in server_of(work):
        os.kill(server, signal.SIGKILL)
    code, _, err = ended(start("run", config, "--work", work))
    assert code == 0, err


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_standing_server_that_is_lost_in_a_run_ends_it_in_time(standing, config, number):
    ui, work = standing
    process = start("run", config, "--work", work, "--workers", "1")
    assert any(line.startswith("partition") for line in process.stderr)
    os.killpg(ui.pid, number)
    began = time.monotonic()
    code, out, err = ended(process)
    assert time.monotonic() - began < IN_TIME
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].endswith(f"Go on with: ldptree run {config} --work {work}")


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


def tables_of(database):
    """What a database holds; of garbage its bytes."""
    try:
        with sqlite3.connect(database) as connection:
            return connection.execute("SELECT sql FROM sqlite_master").fetchall()
    except sqlite3.DatabaseError:
        return database.read_bytes()
    finally:
        connection.close()


@pytest.mark.parametrize("how", ["garbage", "a first migration that was cut", "of a later Prefect"])
def test_a_database_that_cannot_be_used_is_set_aside_in_one_line(tmp_path, how):
    work = tmp_path / "work"
    config = rides_toml(tmp_path / "rides.toml", str(rides(tmp_path / "rides.csv", 300, seed=1)))
    database = work / "prefect" / "prefect.db"
    write_damaged(database, how)
    before = tables_of(database)
    code, out, err = ended(start("run", config, "--work", work, "--json"))
    assert (code, json.loads(out)["name"]) == (0, "rides"), err
    assert err == (
        f"ldptree: Prefect's database {database} was damaged: it is kept as prefect.db.damaged-1, and a new one is begun. "
        "Artifacts, models and reports are not in it.\n"
    )
    assert tables_of(database.with_name("prefect.db.damaged-1")) == before
    assert database.exists()


def test_ui_begins_anew_where_its_database_is_damaged(tmp_path):
    write_damaged(tmp_path / "work" / "prefect" / "prefect.db", "garbage")
    ui = start("ui", "--work", tmp_path / "work", "--port", str(free_port()))
    try:
        assert ui.stderr.readline().startswith("ldptree: Prefect's database ")
        assert ui.stderr.readline().startswith("Prefect UI: ")
        assert ui.stderr.readline().startswith("All runs:   http://127.0.0.1:")
        ui.send_signal(signal.SIGTERM)
        assert (ui.wait(timeout=60), ui.stderr.read()) == (0, "")
    finally:
        ui.kill()


def test_a_run_behind_a_proxy_that_is_nowhere_asks_its_server_directly(api, tmp_path, monkeypatch):
    work = api.begin(tmp_path / "work")
    config = rides_toml(tmp_path / "rides.toml", str(rides(tmp_path / "rides.csv", 300, seed=1)))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
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
        code, out, err = ended(start("gc", "--work", work))
        assert (code, err) == (0, "")
        return out.splitlines()[-1], size(work), size(work / "prefect")

    run()
    _, all_before, prefect_before = collected()
    for _ in range(CACHED_RUNS):
        last = run()
    grown = size(work / "prefect")
    told, all_after, prefect_after = collected()
    assert told.startswith(f"Prefect: {CACHED_RUNS} flow runs gone, ")
    assert prefect_after <= prefect_before < grown
    assert all_after <= all_before
    assert [path.name for path in (work / "runs").iterdir()] == [last["run"]]
    with sqlite3.connect(work / "prefect" / "prefect.db") as connection:
        assert connection.execute("SELECT name FROM flow_run").fetchall() == [(last["run"],)]
    connection.close()
    assert {step["state"] for step in run()["steps"]} == {"cached"}
