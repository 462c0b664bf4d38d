"""`ldptree ledger` counts whom a work folder charged and names nobody; its backup is whole, private and can be restored."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import subprocess
from contextlib import closing
from pathlib import Path
from textwrap import indent

import numpy as np
import pytest
from chain import example_protocol, join_campaign, publish
from desk import Desk

from flows.command import running
from flows.command.running import run_here
from ldptree.protocol.ledger import Charge, Names, RowRange
from storage.digests import Hasher
from storage.ledger import connections
from storage.ledger.accounts import Account
from storage.ledger.connections import DATABASE, VARIABLE
from storage.ledger.database import Database
from storage.ledger.lost_parts import check_state
from storage.ledger.released_checks import release_checks
from storage.store import Store

ANN = 7_731_000_000_000_000_001
"""The keyed hash of somebody's name."""
ABOUT = {
    "one": "trips-2026 (protocol 221236d3)",
    "two": "survey (protocol aa36d3b1)",
    "three": "poll (protocol 0b7c1f52)",
}
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "operate.md"


@pytest.fixture
def desk(tmp_path, capsys, monkeypatch):
    return Desk(tmp_path, capsys, monkeypatch)


def asks(question, epsilon, who):
    return Charge(question=question, epsilon=epsilon, who=who, about=ABOUT.get(question, question))


@pytest.fixture
def work(desk):
    """Of 30 people by name 10 answered twice, of 20 rows of a file each once."""
    store = Store(desk.work)
    account = Account(store, None)
    people = np.arange(ANN, ANN + 30, dtype=np.uint64)
    rows = RowRange(source="a", start=0, stop=35)
    account.charge([asks("one", 2.0, Names(people)), asks("one", 2.0, rows)], cap=None)
    account.charge([asks("two", 1.0, Names(people[:10]))], cap=None)
    account.charge([asks("three", 0.5, RowRange(source="b", start=5, stop=25))], cap=None)
    account.charge([], cap=3.0)
    Account(store, 7).charge([asks("trial", 9.0, Names(people))], cap=None)
    join_campaign(store, "trips-2026", {"may.csv": "digest"}, protocol=publish(store, example_protocol()))
    store.objects.put("curator/reports/some.parquet", b"a report")
    account.keep_answer("one", {"curator/reports/some.parquet": Hasher().of_bytes(b"a report")})
    release_checks(store.objects, ["answer"], 5)
    return desk.work


def test_it_says_who_spent_how_much_and_what_is_left(desk, work):
    code, out, err = desk.type("ledger", "--work", work, "--json")
    content = json.loads(out)
    assert (code, err) == (0, "")
    assert content == {
        "database": str(work / DATABASE),
        "transactions": 9,
        "cap": 3.0,
        "people": 50,
        "largest": {"epsilon": 3.0, "questions": 2},
        "questions": [
            {"question": ABOUT["one"], "epsilon": 2.0, "people": 30},
            {"question": ABOUT["two"], "epsilon": 1.0, "people": 10},
            {"question": ABOUT["three"], "epsilon": 0.5, "people": 20},
        ],
        "spent": [
            {"epsilon": 2.0, "people": 20, "known_by": "name", "left": 1.0},
            {"epsilon": 3.0, "people": 10, "known_by": "name", "left": 0.0},
            {"epsilon": 0.5, "people": 20, "known_by": "row", "left": 2.5},
        ],
        "campaigns": [{"campaign": "trips-2026", "files": 1, "reports": 0}],
        "reports": {"files": 1, "bytes": 8},
        "released_checks": 1,
        "trials": 1,
    }


def test_a_person_reads_what_the_page_shows_and_nobody_is_named(desk, work):
    code, out, _ = desk.type("ledger", "--work", work)
    assert code == 0
    lines = [line.rstrip() for line in out.replace(f"{desk.folder}/", "").splitlines()]
    assert "\n" + indent("\n".join(lines), "    ") + "\n\n" in PAGE.read_text()
    shown = out + desk.type("ledger", "--work", work, "--json")[1]
    assert "may.csv" not in shown
    for hidden in (ANN, hex(ANN)[2:]):
        assert str(hidden) not in shown


def test_without_a_cap_nothing_is_said_to_be_left(desk):
    Account(Store(desk.work), None).charge([asks("one", 1.0, Names([3]))], cap=None)
    assert "there is no lifetime cap" in desk.type("ledger", "--work", desk.work)[1]
    (line,) = json.loads(desk.type("ledger", "--work", desk.work, "--json")[1])["spent"]
    assert line == {"epsilon": 1.0, "people": 1, "known_by": "name", "left": None}


def test_a_work_folder_where_nobody_was_asked_says_so(desk):
    Store(desk.work).hasher("holders")
    code, out, _ = desk.type("ledger", "--work", desk.work)
    assert (code, "Nobody was charged." in out) == (0, True)
    assert not (desk.work / DATABASE).exists()


def test_a_backup_is_whole_while_somebody_writes_and_a_work_folder_restored_from_it_goes_on(desk, work):
    store = Store(work)
    copy = desk.folder / "copy.db"
    with Database(store.objects).writing():  # another process holds it
        code, out, err = desk.type("ledger", "backup", copy, "--work", work)
    assert (code, out, err) == (0, "", f"{copy}: a copy of the database of who was asked\n")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert sorted(path.name for path in desk.folder.iterdir()) == ["copy.db", "rides.csv", "work"]
    before = desk.type("ledger", "--work", work, "--json")
    for path in (work / "holders").glob("holders.db*"):
        path.unlink()
    assert desk.type("ledger", "--work", work)[0] == 5
    shutil.copy(copy, work / DATABASE)
    assert desk.type("ledger", "--work", work, "--json") == before
    assert Account(Store(work), None).keep_asked("place", "digest")
    check_state(Store(work))
    # One that is older than the folders it is put beside is no record of who was asked.
    shutil.copy(copy, work / DATABASE)
    code, _, err = desk.type("ledger", "--work", work)
    assert (code, "older than" in err) == (5, True)


def test_the_work_folder_may_be_named_before_or_behind(desk, work):
    for number, words in enumerate((("--work", work, "backup"), ("backup", "--work", work))):
        assert desk.type("ledger", *words, desk.folder / f"{number}.db")[0] == 0


def told(desk, ended, code, said):
    """The sentence of a refused command."""
    return desk.told(ended, code, said, after={"partition", "reports"})


def refusals(desk: Desk, work: Path) -> list[tuple[int, str, tuple[object, ...]]]:
    """Exit code, part of the sentence, and words."""
    (desk.folder / "there.db").write_bytes(b"mine")
    (desk.folder / "link.db").symlink_to("nowhere.db")
    unused = desk.folder / "unused"
    Store(unused).hasher("holders")
    return [
        (2, "nowhere: no such work folder. Name it with --work.", ("--work", "nowhere")),
        (2, "nowhere: no such work folder. Name it with --work.", ("backup", "a.db", "--work", "nowhere")),
        (2, "rides.csv: that is a file.", ("--work", "rides.csv")),
        (2, "there.db: stands already, and is not written over. Name a new file.", ("backup", "there.db")),
        (2, "link.db: stands already", ("backup", "link.db")),
        (2, "work: stands already", ("backup", "work")),
        (2, "a.db: lies in the work folder", ("backup", work / "curator" / "a.db")),
        (2, "FILE no/a.db: there is no folder", ("backup", "no/a.db")),
        (2, "/proc/a.db: cannot be written", ("backup", "/proc/a.db")),
        (2, "no database yet, as nobody was asked here.", ("backup", "a.db", "--work", unused)),
        (2, "S3://b/t: no address that is known.", ("--work", "S3://b/t")),
    ]


def test_what_it_cannot_do_is_refused_in_a_sentence(desk, work):
    wanted = refusals(desk, work)
    before = sorted(desk.folder.iterdir())
    for code, said, words in wanted:
        told(desk, desk.type("ledger", *words), code, said)
    assert sorted(desk.folder.iterdir()) == before
    assert (desk.folder / "there.db").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("backup",), "Missing argument"),
        (("restore",), "No such command 'restore'"),
        (("--all",), "No such option"),
    ],
)
def test_words_that_it_does_not_know_are_named(desk, words, said):
    code, out, err = desk.type("ledger", *words)
    assert (code, out, said in err) == (2, "", True)


@pytest.mark.parametrize("words", [(), ("--json",), ("backup", "a.db")])
def test_a_damaged_database_is_neither_shown_nor_copied(desk, work, words):
    whole = (work / DATABASE).read_bytes()
    (work / DATABASE).write_bytes(whole[: len(whole) // 2])
    told(desk, desk.type("ledger", *words), 5, "holders.db: damaged.")
    assert not (desk.folder / "a.db").exists()


def test_a_database_with_a_damaged_list_of_people_is_not_copied(desk, work):
    with closing(sqlite3.connect(work / DATABASE)) as connection:
        connection.execute("UPDATE people SET hashes = zeroblob(length(hashes))")
        connection.commit()
    told(desk, desk.type("ledger", "backup", "a.db"), 5, "holders.db: damaged.")
    assert not list(desk.folder.glob("*a.db*"))


def test_a_full_disk_leaves_no_half_of_a_copy(desk, work, monkeypatch):
    real = connections.copy

    def stop(url, to):
        real(url, to)
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(connections, "copy", stop)
    told(desk, desk.type("ledger", "backup", "a.db"), 2, "a.db: cannot be written (No space left on device).")
    assert sorted(path.name for path in desk.folder.iterdir()) == ["rides.csv", "work"]


@pytest.fixture
def read_only(work):
    """The work folder on a disk that not even root may write."""

    def mount(*words):
        return subprocess.run(["mount", *words, work], capture_output=True, check=False)

    if mount("--bind", work).returncode:
        pytest.skip("a read-only disk needs the right to mount one: root can write to all others")
    mount("-o", "remount,ro,bind")
    yield
    subprocess.run(["umount", work], check=True)


def test_a_copy_on_a_disk_that_may_only_be_read_is_shown_and_backed_up(desk, work, read_only):
    assert desk.type("ledger", "--work", work)[0] == 0
    assert desk.type("ledger", "backup", desk.folder / "a.db", "--work", work)[0] == 0
    told(desk, desk.run(), 2, "cannot be written (Read-only file system)")


@pytest.mark.parametrize("damage", [b"another.", b"a re", b""])
def test_reports_that_are_not_what_was_received_are_not_counted(desk, work, damage):
    (work / "curator/reports/some.parquet").write_bytes(damage)
    told(desk, desk.type("ledger"), 5, "some.parquet: damaged." if len(damage) == 8 else "of 8 bytes)")


@pytest.mark.parametrize("command", [("run",), ("run", "--plan"), ("plan", "--holders", "100")])
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("nonsense://a b", "no address of a database"),
        ("rides.csv", "rides.csv is no database of a work folder"),
        ("rides.csv/who.db", "rides.csv: that is a file"),
        (".", "is no database of a work folder"),
    ],
)
def test_a_wrong_place_of_the_database_is_told_before_anything_starts(
    desk, monkeypatch, command, address, said
):
    monkeypatch.setattr(running, "run_here", run_here)
    monkeypatch.setattr(running, "Server", None)
    monkeypatch.setenv(VARIABLE, address)
    name, *options = command
    desk.told(desk.type(name, desk.config(), "--work", desk.work, *options), 2, said)


def test_postgresql_is_backed_up_by_its_own_program(desk, work, monkeypatch):
    from flows.command import ledger

    monkeypatch.setattr(ledger, "check_state", lambda _, **__: None)
    monkeypatch.setenv(VARIABLE, "postgresql+psycopg://holders:hidden@192.0.2.2/who")
    ended = desk.type("ledger", "backup", "a.db")
    told(desk, ended, 2, "192.0.2.2/who: PostgreSQL copies its own databases. Run: pg_dump --file=FILE who")
    assert "hidden" not in ended[2]
