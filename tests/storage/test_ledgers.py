"""What was spent is on disk before anybody answers, whatever ends the process, and two at once cannot spend it twice."""

from __future__ import annotations

import multiprocessing
import os
import signal

import numpy as np
import pytest
from first_fast import first_fast
from sqlalchemy import Engine, event

from ldptree.errors import ArtifactCorrupt, BudgetError
from ldptree.protocol.ledger import Charge, Names, RowRange
from storage.digests import Hasher
from storage.ledger import connections
from storage.ledger.accounts import Account
from storage.ledger.connections import DATABASE
from storage.ledger.lost_parts import check_state
from storage.ledger.schema import CHARGES, PEOPLE
from storage.store import Store

EVERYBODY = RowRange(source="file", start=0, stop=3_300_000)


def asks(question, epsilon=1.0, who=EVERYBODY):
    return Charge(question=question, epsilon=epsilon, who=who, about=question)


@pytest.fixture
def account(store):
    return Account(store, None)


def size_of(account):
    return account.store.objects.size(DATABASE)


def test_what_was_spent_is_known_to_the_next_process(store, account):
    account.charge([asks("one"), asks("two", 0.5, Names([2**64 - 1, 0, 7]))], cap=2.0)
    later = Account(Store(store.root), None).read()
    assert later.cap == 2.0
    assert [(e.question, e.epsilon, e.about) for e in later.entries] == [
        ("one", 1.0, "one"),
        ("two", 0.5, "two"),
    ]
    assert later.entries[0].who == EVERYBODY
    assert later.entries[1].who.hashes.tolist() == [0, 7, 2**64 - 1]


def test_a_budget_spent_by_an_earlier_run_is_refused_to_a_later_one(account):
    account.charge([asks("one", 2.0)], cap=3.0)
    with pytest.raises(BudgetError, match="2 is spent already"):
        account.charge([asks("two", 2.0)], cap=3.0)
    assert account.read().spent_by(EVERYBODY) == 2.0


def test_a_retry_writes_nothing(account):
    account.charge([asks("one")], cap=None)
    path = account.store.root / DATABASE
    before = path.read_bytes()
    assert len(account.charge([asks("one")], cap=None)) == 1
    assert path.read_bytes() == before


def test_looking_writes_nothing(store, account):
    assert len(account.read()) == 0
    assert account.foresee([asks("one")], cap=1.0).spent_by(EVERYBODY) == 1.0
    assert not store.zone("holders").exists()


def test_the_smallest_cap_ever_stated_holds_for_runs_that_state_a_larger_one_or_none(account):
    account.charge([asks("one")], cap=2.0)
    account.charge([asks("one")], cap=1.5)
    for cap in (None, 9.0):
        with pytest.raises(BudgetError, match=r"their lifetime cap is 1\.5"):
            account.charge([asks("two")], cap=cap)
    assert account.read().cap == 1.5


def test_a_cap_stated_by_a_refused_run_holds(account):
    account.charge([asks("one")], cap=None)
    with pytest.raises(BudgetError):
        account.charge([asks("two")], cap=1.0)
    assert account.read().cap == 1.0
    assert len(account.read()) == 1


def test_seeded_simulations_and_releases_have_accounts_of_their_own(store):
    accounts = [Account(store, seed) for seed in (None, 0, 11)]
    for account in accounts:
        account.charge([asks("one")], cap=1.0)
        with pytest.raises(BudgetError):
            account.charge([asks("two")], cap=None)
    assert [len(account.read()) for account in accounts] == [1, 1, 1]


def test_rows_cost_one_entry_and_named_holders_eight_bytes_each_in_parts_of_16_mib(account):
    account.charge([asks("one")], cap=1.0)
    empty = size_of(account)
    assert empty < 100_000
    names = Names(np.arange(2**21 + 100_000, dtype=np.uint64))
    account.charge([asks("two", who=names)], cap=9.0)
    assert size_of(account) - empty < 8.1 * len(names)
    with account._database.reading() as kept:
        assert [len(row.hashes) for row in kept.rows(PEOPLE)] == [2**24, 800_000]
    assert account.read().entries[1].who.hashes.tolist() == names.hashes.tolist()


PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["pytest", "hypothesis.strategies", "storage.ledger.accounts", "ldptree.client"]
)
TEN = RowRange(source="file", start=0, stop=10)


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def charge_and_die(statement, work):
    """One process: charges named people, and is killed before its nth statement; None: once it is charged."""
    done = []

    def count(*_):
        done.append(1)
        if len(done) == statement:
            die()

    account = Account(Store(work), None)
    event.listen(Engine, "before_cursor_execute", count)
    if statement == "commit":
        connections.commit = die
    elif statement == "committed":
        commit = connections.commit
        connections.commit = lambda connection: (commit(connection), die())
    account.charge([asks("one", who=TEN), asks("two", who=Names(range(9)))], 2.0)
    die()


def ended(processes):
    """Exit codes of processes that run at the same time."""
    for process in processes:
        process.start()
    for process in processes:
        process.join(100)
    return [process.exitcode for process in processes]


def killed(at, work):
    assert ended([PROCESSES.Process(target=charge_and_die, args=(at, work))]) == [-signal.SIGKILL]


STATEMENTS = 90
"""More than a first charge takes, with the tables that it makes."""


def test_a_first_charge_is_killed_at_each_of_its_statements(account):
    done = []

    def count(*_):
        done.append(1)

    event.listen(Engine, "before_cursor_execute", count)
    account.charge([asks("one", who=TEN), asks("two", who=Names(range(9)))], 2.0)
    event.remove(Engine, "before_cursor_execute", count)
    assert STATEMENTS // 2 < len(done) < STATEMENTS


@pytest.mark.parametrize(
    "at", [*first_fast(*range(1, STATEMENTS), fast=(1, 80)), "commit", "committed", None]
)
def test_a_killed_charge_is_there_whole_or_not_at_all_and_is_never_paid_twice(store, account, at):
    killed(at, store.root)
    ledger = account.read()
    assert (ledger.cap, len(ledger)) in ((None, 0), (2.0, 2))
    assert at not in ("committed", None) or len(ledger) == 2
    assert at != "commit" or not len(ledger)
    both = [asks("one", who=TEN), asks("two", who=Names(range(9)))]
    again = account.charge(both, cap=2.0)
    assert (again.spent_by(TEN), len(again)) == (1.0, 2)
    with pytest.raises(BudgetError):
        account.charge([asks("three", who=TEN), asks("four", who=TEN)], cap=None)
    check_state(store)


def test_what_is_charged_and_never_answered_is_spent(store, account):
    killed(None, store.root)
    with pytest.raises(BudgetError, match="1 is spent already"):
        account.charge([asks("another question", 2.0, TEN)], cap=2.0)


def test_a_charge_is_on_disk_before_it_is_said_to_be(account):
    """SQLite waits for the disk at each commit where these are set, and tells nobody to."""
    account.charge([asks("one")], cap=None)
    with connections.connected(account._database._url, "read") as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


RACING = 6


def race(work, question, gate):
    """One process: ends with 0 where its charge was the one that there was room for."""
    account = Account(Store(work), None)
    gate.wait()
    try:
        account.charge([asks(question, who=TEN)], cap=None)
    except BudgetError:
        os._exit(1)


def test_of_processes_that_charge_at_once_one_spends_the_last_of_the_budget(store, account):
    account.charge([asks("earlier", who=TEN)], cap=2.5)
    gate = PROCESSES.Barrier(RACING)
    racers = [
        PROCESSES.Process(target=race, args=(store.root, f"question {number}", gate))
        for number in range(RACING)
    ]
    codes = ended(racers)
    assert sorted(codes) == [0] + [1] * (RACING - 1)
    assert [e.question for e in account.read().entries] == ["earlier", f"question {codes.index(0)}"]


def test_who_reads_sees_one_moment(store, account):
    account.charge([asks("one")], cap=None)
    with account._database.reading() as kept:
        assert len(kept.rows(CHARGES)) == 1
        Account(store, None).charge([asks("two")], cap=None)
        assert len(kept.rows(CHARGES)) == 1
    assert [entry.question for entry in account.read().entries] == ["one", "two"]


def test_two_processes_that_ask_the_same_question_pay_once(store, account):
    gate = PROCESSES.Barrier(2)
    both = [PROCESSES.Process(target=race, args=(store.root, "one", gate)) for _ in range(2)]
    assert ended(both) == [0, 0]
    assert (account.read().spent_by(TEN), len(account.read())) == (1.0, 1)


def test_answers_that_went_missing_are_not_given_a_second_time(store, account):
    account.charge([asks("one")], cap=None)
    path = store.zone("curator") / "reports" / "some.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"a report")
    files = {path.relative_to(store.root).as_posix(): Hasher().of_bytes(b"a report")}
    account.keep_answer("one", files)
    account.keep_answer("one", files)
    assert len(account.charge([asks("one")], cap=None)) == 1
    for lose, condition in ((lambda: path.write_bytes(b"another."), "damaged"), (path.unlink, "missing")):
        lose()
        for spend in (account.charge, account.foresee):
            with pytest.raises(
                ArtifactCorrupt, match=rf"some\.parquet: {condition}\. Holders who have answered .* Restore"
            ):
                spend([asks("one")], cap=None)
    assert account.charge([asks("two")], cap=None)


def test_a_place_that_was_paid_for_keeps_its_question(store, account):
    assert account.keep_asked("talk round 2", "first")
    assert Account(Store(store.root), None).keep_asked("talk round 2", "first")
    assert not account.keep_asked("talk round 2", "other")
    assert account.keep_asked("talk round 3", "other")
    assert account.read().entries == ()


def test_answers_are_known_until_they_go_missing(store, account):
    reports = store.root / "reports.parquet"
    assert not account.is_answered("one")
    reports.write_bytes(b"reports")
    account.keep_answer("one", {"reports.parquet": Hasher().of_bytes(b"reports")})
    assert account.is_answered("one")
    reports.unlink()
    with pytest.raises(ArtifactCorrupt, match=r"reports\.parquet: missing"):
        account.is_answered("one")
