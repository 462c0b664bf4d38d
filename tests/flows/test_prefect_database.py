"""What is wrong with Prefect's own database is known before a server begins on it, and nothing of it is deleted."""

from __future__ import annotations

import contextlib
import random
import sqlite3

import pytest

from flows.server.process import prefect_database


@pytest.fixture
def database(tmp_path):
    """A database with a few pages."""
    path = tmp_path / "prefect.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE flow (name TEXT)")
        connection.executemany("INSERT INTO flow VALUES (?)", [("x" * 900,)] * 100)
    connection.close()
    return path


def test_a_whole_database_an_empty_one_and_none_are_not_damaged(database):
    assert not prefect_database.is_damaged(database)
    database.write_bytes(b"")
    assert not prefect_database.is_damaged(database)
    database.unlink()
    assert not prefect_database.is_damaged(database)
    assert not database.exists()


@pytest.mark.parametrize("how", ["garbage", "text", "half", "a cut page", "pages overwritten", "a folder"])
def test_a_damaged_database_is_known(database, how):
    content = database.read_bytes()
    noise = random.Random(1).randbytes
    overwritten = b"".join(
        noise(4096) if number % 3 == 2 else content[4096 * number :][:4096]
        for number in range(len(content) // 4096)
    )
    if how == "a folder":
        database.unlink()
        database.mkdir()
    else:
        database.write_bytes(
            {
                "garbage": noise(9999),
                "text": b"not a database\n" * 50,
                "half": content[: len(content) // 2],
                "a cut page": content[:-1000],
                "pages overwritten": overwritten,
            }[how]
        )
    assert prefect_database.is_damaged(database)


def test_a_database_in_use_is_not_damaged(database, monkeypatch):
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *words, **options: connect(*words, **options | {"timeout": 0})
    )
    with connect(database) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert not prefect_database.is_damaged(database)
        other.rollback()
    other.close()


def test_what_is_set_aside_keeps_every_byte_and_an_earlier_one_its_name(tmp_path):
    path = tmp_path / "prefect.db"
    for number in (1, 2):
        path.write_bytes(b"main%d" % number)
        path.with_name("prefect.db-wal").write_bytes(b"wal%d" % number)
        assert prefect_database.set_aside(path) == tmp_path / f"prefect.db.damaged-{number}"
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {
        "prefect.db.damaged-1": b"main1",
        "prefect.db.damaged-1-wal": b"wal1",
        "prefect.db.damaged-2": b"main2",
        "prefect.db.damaged-2-wal": b"wal2",
    }


def test_a_database_that_the_user_named_is_the_users(tmp_path, monkeypatch):
    assert prefect_database.of(tmp_path) == tmp_path / "prefect.db"
    monkeypatch.setenv("PREFECT_API_DATABASE_CONNECTION_URL", "postgresql+asyncpg://db/prefect")
    assert prefect_database.of(tmp_path) is None


def test_events_of_runs_that_are_gone_go_and_no_others(tmp_path):
    path = tmp_path / "prefect.db"
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE events (id CHAR(36))")
        connection.execute("CREATE TABLE event_resources (resource_id TEXT, event_id CHAR(36))")
        for event, resources in {
            "1": ["prefect.flow.a", "prefect.flow-run.old"],
            "2": ["prefect.task-run.b", "prefect.flow-run.old"],
            "3": ["prefect.flow.a", "prefect.flow-run.new"],
            "4": ["prefect.server"],
        }.items():
            connection.execute("INSERT INTO events VALUES (?)", [event])
            connection.executemany(
                "INSERT INTO event_resources VALUES (?, ?)", [(one, event) for one in resources]
            )
    prefect_database.forget_events(path, ["old", "never there"])
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT id FROM events ORDER BY id").fetchall() == [("3",), ("4",)]
        assert connection.execute("SELECT count(*) FROM event_resources").fetchall() == [(3,)]


def test_events_of_a_database_that_is_busy_wait(tmp_path, monkeypatch):
    path = tmp_path / "prefect.db"
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, timeout: connect(path, timeout=0.0))
    with contextlib.closing(connect(path)) as connection, connection:
        connection.execute("CREATE TABLE events (id CHAR(36))")
        connection.execute("CREATE TABLE event_resources (resource_id TEXT, event_id CHAR(36))")
        connection.execute("INSERT INTO event_resources VALUES ('prefect.flow-run.old', '1')")
        connection.commit()
        connection.execute("BEGIN EXCLUSIVE")
        prefect_database.forget_events(path, ["old"])
        connection.rollback()
        assert connection.execute("SELECT count(*) FROM event_resources").fetchall() == [(1,)]
