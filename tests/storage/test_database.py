"""The holders' database: what was written is there whole, is noticed where it is not, and says nothing of whom it names."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import threading
from itertools import product
from types import SimpleNamespace as Namespace

import pytest
from chain import example_protocol, join_campaign, publish
from sqlalchemy import event

from ldptree.errors import ArtifactCorrupt, ConfigError, LdptreeError
from ldptree.protocol.ledger import Charge, Names, RowRange
from storage.ledger import connections
from storage.ledger.accounts import Account
from storage.ledger.connections import DATABASE, VARIABLE, url_of
from storage.ledger.database import LAST, Database
from storage.ledger.lost_parts import check_state
from storage.ledger.schema import CAPS, TABLES
from storage.machine_faults import machine_fault
from storage.objects.folder import FolderObjects
from storage.store import Store

RUNS = 6
ROWS = RowRange(source="rows.csv", start=0, stop=10)


def charge(store, number, who=ROWS):
    """Charge a question, and keep what is asked."""
    asked = Charge(question=f"question {number}", epsilon=0.1, who=who, about="a question")
    Account(store, None).charge([asked], cap=9.0)
    Account(store, None).keep_asked(f"place {number}", "digest")


def content(store):
    """Every row, and everybody in each list of people."""
    with Database(store.objects).reading() as kept:
        rows = {table.name: kept.rows(table) for table in TABLES.sorted_tables if "id" in table.c}
        return rows | {of: [*map(bytes, kept.people(of))] for of in kept.sizes_of_lists()}


@pytest.fixture
def path(store):
    """The database of a work folder in which people were asked."""
    charge(store, 1)
    charge(store, 2, Names(range(3_000)))
    join_campaign(store, "rides", {"rides.csv": "digest"}, protocol=publish(store, example_protocol()))
    return store.root / DATABASE


def test_of_runs_that_write_at_once_none_is_forgotten(tmp_path):
    """The first of them makes the database and the secret."""
    work, faults, gate = tmp_path / "work", [], threading.Barrier(RUNS)

    def act(number):
        try:
            gate.wait()
            charge(Store(work), number)
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=act, args=(number,)) for number in range(RUNS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    store = Store(work)
    check_state(store)
    assert len(Account(store, None).read()) == RUNS
    assert {last.number for last in Database(store.objects).outside().values()} == {2 * RUNS}


def test_a_run_that_was_overtaken_tells_no_earlier_transaction(store, monkeypatch):
    """Another run commits and tells before this one tells what it committed."""
    charge(store, 0)
    real, others = FolderObjects.change, iter([1])

    def change(self, name, make):
        for number in others:
            charge(Store(store.root), number)
        real(self, name, make)

    monkeypatch.setattr(FolderObjects, "change", change)
    Account(store, None).keep_asked(
        "place 2", "digest"
    )  # one transaction: nothing later tells of a later one
    assert {last.number for last in Database(store.objects).outside().values()} == {5}
    check_state(store)


def test_who_looks_while_another_run_writes_sees_no_fault(store, monkeypatch):
    charge(store, 0)
    real, others = Database.outside, iter([1])

    def told(self):
        before = real(self)
        for number in others:
            charge(Store(store.root), number)
        return before

    monkeypatch.setattr(Database, "outside", told)
    check_state(store)
    assert list(others) == []


def _insert_and_fail(kept):
    kept.insert(CAPS, account="release", cap=1.0)
    raise ZeroDivisionError


def test_a_transaction_that_an_error_ends_leaves_nothing(store, path):
    before = content(store)
    with pytest.raises(ZeroDivisionError), Database(store.objects).writing() as kept:
        _insert_and_fail(kept)
    assert content(store) == before
    check_state(store)


def last_of(store):
    """What tells of the last transaction beside the reports."""
    (path,) = store.root.glob(f"{LAST}-*")
    return path


def test_a_flipped_byte_is_noticed_or_makes_no_difference(store, path):
    """Every 29th of the database that is not zero, every 1,021st, and each of what stands outside of it: at the start, or where a
    list of people is read.
    """
    before, n_noticed = content(store), 0
    for file, step in ((store.root / DATABASE, 29), (last_of(store), 1), (store.root / "holders/secret", 1)):
        whole = file.read_bytes()
        written = [at for at, byte in enumerate(whole) if byte][::step]
        places = {*written, *range(0, len(whole), 1021)}
        for at, mask in product(sorted(places), (0x55, 0xFF)):  # the second makes text unreadable
            file.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
            try:
                check_state(store)
                assert content(store) == before, f"{file.name} at {at}"
            except ArtifactCorrupt:
                n_noticed += 1
            file.write_bytes(whole)
        check_state(store)
    assert n_noticed > 100


def test_a_full_disk_is_one_too_where_sqlites_own_connection_meets_it():
    """As where the mode of its journal is set, outside of any transaction."""
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    with (
        pytest.raises(OSError, match="No space left"),
        connections.faults_in_words("holders.db", AssertionError),
    ):
        raise full


@pytest.mark.parametrize(
    "statement", ["UPDATE charges SET epsilon = 0.01", "DELETE FROM questions", "DELETE FROM people"]
)
def test_a_row_that_was_changed_or_deleted_lets_nobody_be_asked(store, path, statement):
    with connections.connected(url_of(store.objects), "create") as connection:
        connection.exec_driver_sql(statement)
        connection.commit()
    for act in (lambda: check_state(store), lambda: charge(store, 3)):
        with pytest.raises(ArtifactCorrupt, match=r"holders\.db: damaged\. .*nobody is asked\. Restore"):
            act()


def test_a_list_of_people_that_was_changed_is_noticed_before_anybody_is_charged(store, path):
    """Whoever is charged, and though its digest alone is looked at when a command starts."""
    with connections.connected(url_of(store.objects), "create") as connection:
        connection.exec_driver_sql("UPDATE people SET hashes = zeroblob(length(hashes))")
        connection.commit()
    whole = path.read_bytes()
    check_state(store)
    for who in (ROWS, Names([5])):
        with pytest.raises(ArtifactCorrupt, match=r"holders\.db: damaged\. "):
            charge(store, 3, who)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("damage", [b"", b"garbage", b"SQLite format 3\x00" * 300])
def test_another_file_in_its_place_is_not_taken_for_an_empty_database(store, path, damage):
    path.write_bytes(damage)
    for act in (lambda: check_state(store), lambda: charge(store, 3)):
        with pytest.raises(ArtifactCorrupt, match=r"holders\.db: damaged\. "):
            act()
    assert path.read_bytes() == damage


def test_a_database_that_went_missing_in_the_middle_of_a_run_is_not_made_anew(store, path, tmp_path):
    older = tmp_path / "older.db"
    older.write_bytes(path.read_bytes())
    charge(store, 3)
    path.unlink()
    with pytest.raises(ArtifactCorrupt, match=r"holders\.db: missing, and .* says that there was one"):
        charge(store, 4)
    assert not path.exists()
    older.replace(path)
    with pytest.raises(ArtifactCorrupt, match=r"holders\.db: older than "):
        charge(store, 4)


def test_another_program_s_database_is_refused(store, path):
    path.unlink()
    with connections.connected(url_of(store.objects), "create") as connection:
        connection.exec_driver_sql("CREATE TABLE transactions (number)")
        connection.commit()
    with pytest.raises(ArtifactCorrupt, match=r"holders\.db: damaged"):
        charge(store, 3)


def test_a_database_of_a_later_version_is_not_called_damaged(store, path):
    with connections.connected(url_of(store.objects), "create") as connection:
        connection.exec_driver_sql("PRAGMA user_version = 99")
        connection.commit()
    for act in (lambda: check_state(store), lambda: charge(store, 3)):
        with pytest.raises(ArtifactCorrupt, match=r"written by a later ldptree \(format version 99") as fault:
            act()
        assert fault.value.exit_code == 5


def test_a_database_that_another_process_holds_is_waited_for_and_told(store, path, monkeypatch):
    monkeypatch.setattr(connections, "PATIENCE", 0.1)
    connections._engine.cache_clear()
    with Database(store.objects).writing():
        assert len(Account(store, None).read()) == 2  # who reads waits for nobody
        with pytest.raises(
            LdptreeError, match=r"holders\.db: another process has held it for .* Find out"
        ) as told:
            charge(store, 3)
    assert (told.value.exit_code, str(told.value).count("\n")) == (1, 0)
    connections._engine.cache_clear()
    charge(store, 3)


def test_a_full_disk_is_told_as_one_and_quotes_nothing(store, path):
    engine = connections._engine(url_of(store.objects))

    def fill(connection, _):
        connection.execute("PRAGMA max_page_count = 1")

    event.listen(engine, "connect", fill)
    with pytest.raises(OSError, match="No space left on device") as fault:
        charge(store, 3, Names(range(100_000)))
    event.remove(engine, "connect", fill)
    assert fault.value.__cause__ is None
    assert "no space left on the disk" in str(machine_fault(fault.value, store.root))
    check_state(store)
    assert len(Account(store, None).read()) == 2


@pytest.fixture
def read_only_holders(store, path):
    """The holders' zone on a disk that not even root may write."""

    def mount(*words):
        return subprocess.run(["mount", *words, store.zone("holders")], capture_output=True, check=False)

    if mount("--bind", store.zone("holders")).returncode:
        pytest.skip("a read-only disk needs the right to mount one: root can write to all others")
    mount("-o", "remount,ro,bind")
    yield
    subprocess.run(["umount", store.zone("holders")], check=True)


def test_a_disk_that_may_only_be_read_charges_nobody_and_is_told_as_such(store, path, read_only_holders):
    whole = path.read_bytes()
    with pytest.raises(OSError, match=r".") as fault:
        charge(store, 3)
    assert f"{path}: cannot be used (" in str(machine_fault(fault.value, store.root))
    assert path.read_bytes() == whole


def test_a_disk_that_may_only_be_read_is_looked_at(store, path, read_only_holders):
    check_state(store)
    assert len(Account(store, None).read()) == 2


def test_what_a_killed_run_left_on_a_disk_that_may_only_be_read_is_not_passed_over(
    store, path, monkeypatch, tmp_path
):
    """A later transaction that stands in the file beside the database: it is read, or refused in a sentence."""
    url, other = url_of(store.objects), tmp_path / "copy"
    held = connections._engine(url).connect()  # whoever goes last tidies up
    charge(store, 3)
    shutil.copytree(store.root, other)
    held.close()
    assert (other / f"{DATABASE}-wal").stat().st_size
    monkeypatch.setattr(connections.os, "statvfs", lambda _: Namespace(f_flag=os.ST_RDONLY))
    assert len(Account(Store(other, only_reads=True), None).read()) == 3


def test_it_is_its_owners_only(store, path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_database_stands_where_the_variable_says(store, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere" / "who.db"
    monkeypatch.setenv(VARIABLE, str(elsewhere))
    charge(store, 1)
    assert elsewhere.exists()
    assert not (store.root / DATABASE).exists()
    check_state(store)
    other = Store(tmp_path / "another")
    other.hasher("holders")
    with pytest.raises(ArtifactCorrupt, match="of another work folder"):
        check_state(other)
    (store.root / "holders" / "secret").unlink()
    last = last_of(store)
    told = last.read_bytes()
    last.unlink()
    with pytest.raises(ArtifactCorrupt, match=r"secret is missing, and .*who\.db says that there was one"):
        check_state(store)
    last.write_bytes(told)
    with pytest.raises(
        ArtifactCorrupt, match=r"secret is missing, and curator/reports/last-transaction-\d+ says"
    ):
        check_state(store)
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(
        ArtifactCorrupt,
        match=r"holders\.db: missing, and curator/reports/last-transaction-\d+ says .* set LDPTREE_DATABASE to its place",
    ):
        check_state(store)


def test_what_stands_beside_the_reports_is_missed_where_the_secrets_file_knows_of_it(store):
    """Without it an older copy of the holders' zone could not be told from one that is whole."""
    charge(store, 1)
    last_of(store).unlink()
    for act in (lambda: check_state(store), lambda: charge(store, 2)):
        with pytest.raises(ArtifactCorrupt, match=r"last-transaction-\d+: missing\. .*nobody is asked"):
            act()


class Shared(FolderObjects):
    """Objects that other machines use too."""

    is_shared = True


def test_a_bucket_without_a_database_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=f"a bucket holds no database, .* Set {VARIABLE} to a file"):
        Database(Shared(tmp_path / "work"))


@pytest.mark.parametrize(
    "address",
    [
        "mysql://me:hidden@host/who",
        "postgresql://",
        "nonsense://a b",
        "sqlite:////tmp/who.db?mode=ro",
        "postgresql+asyncpg://me:hidden@host/who",
        "postgresql+psycopg://me:hidden@host:port/who",
    ],
)
def test_what_is_no_address_of_a_database_is_refused_without_a_word_of_it(store, monkeypatch, address):
    monkeypatch.setenv(VARIABLE, address)
    with pytest.raises(
        ConfigError, match=f"{VARIABLE}: (no address of a database|PostgreSQL needs)"
    ) as fault:
        Database(store.objects)
    assert "hidden" not in str(fault.value)


def test_an_older_database_is_seen_after_a_charge_whose_process_was_stopped_before_it_told(store, path):
    older = path.parent.parent / "older.db"
    Database(store.objects).copy_to(older)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "_tell", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            charge(store, 3)
    Account(store, None).charge([Charge(question="question 3", epsilon=0.1, who=ROWS)], cap=9.0)  # resumed
    for name in ("holders.db-wal", "holders.db-shm"):
        path.with_name(name).unlink(missing_ok=True)
    shutil.copyfile(older, path)
    with pytest.raises(ArtifactCorrupt, match="older than"):
        check_state(store)


@pytest.mark.parametrize("content", [b"", b"garbage", b"SQLite format 3\x00" * 300])
def test_another_file_that_the_variable_names_is_a_wrong_setting_where_nobody_was_asked(
    store, tmp_path, monkeypatch, content
):
    other = tmp_path / "other.db"
    other.write_bytes(content)
    monkeypatch.setenv(VARIABLE, str(other))
    for _ in range(2):  # the second time with a secret, which a run makes before it charges
        for act in (lambda: check_state(store), lambda: charge(store, 1)):
            with pytest.raises(
                ConfigError, match=rf"{VARIABLE}: .*other\.db is no database of a work folder"
            ):
                act()
        store.hasher("holders")
    assert other.read_bytes() == content
    monkeypatch.delenv(VARIABLE)
    charge(store, 1)
    monkeypatch.setenv(VARIABLE, str(other))
    with pytest.raises(ArtifactCorrupt, match=r"other\.db: damaged\. Holders who have answered"):
        check_state(store)


def test_a_place_where_no_database_can_be_made_is_told_before_anybody_is_asked(store, tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file" / "who.db"))
    with pytest.raises(ConfigError, match=f"{VARIABLE} .*/file: that is a file"):
        check_state(store)


def test_what_a_killed_run_was_making_of_a_database_goes_with_what_it_was_writing(store, monkeypatch):
    store.hasher("holders")
    monkeypatch.setattr(os, "link", lambda *_: 1 / 0)
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)
    with pytest.raises(ZeroDivisionError):
        charge(store, 1)
    monkeypatch.undo()
    from storage.objects.folder import delete_half_written

    assert list(store.zone("holders").glob(".aside-*"))
    delete_half_written(store.root)
    assert not list(store.zone("holders").glob(".aside-*"))
    charge(store, 1)
    check_state(store)
