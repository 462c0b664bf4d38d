"""What was spent is on disk before anybody answers, whatever ends the process, and two at once cannot spend it twice."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from ldptree.errors import ArtifactCorrupt, BudgetError
from ldptree.protocol.ledger import Charge, Names, RowRange
from storage.ledger.accounts import Account, _encoded
from storage.objects import folder
from storage.objects.folder import FolderObjects
from storage.objects.object_store import NotReached
from storage.store import Store

EVERYBODY = RowRange(source="file", start=0, stop=3_300_000)


def asks(question, epsilon=1.0, who=EVERYBODY):
    return Charge(question=question, epsilon=epsilon, who=who, about=question)


@pytest.fixture
def account(store):
    return Account(store, None)


def files(account):
    folder = account.store.root / "holders" / "ledger" / account.name
    return sorted(folder.glob("*.charge"))


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
    before = {path: path.read_bytes() for path in files(account)}
    assert len(account.charge([asks("one")], cap=None)) == 1
    assert {path: path.read_bytes() for path in files(account)} == before


def test_looking_writes_nothing(store, account):
    assert len(account.read()) == 0
    assert account.foresee([asks("one")], cap=1.0).spent_by(EVERYBODY) == 1.0
    assert not (store.zone("holders") / "ledger").exists()


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


def test_many_charges_in_a_bucket_are_read_as_those_in_a_folder_are_and_one_that_fails_is_told(
    store, account, tmp_path, monkeypatch
):
    pytest.importorskip("obstore")
    from obstore.store import MemoryStore

    from storage.objects.bucket import BucketObjects

    objects = BucketObjects(MemoryStore(), "memory://bucket", tmp_path / "copies")
    monkeypatch.setattr("storage.store.open_objects", lambda _: objects)
    bucket = Account(Store(""), None)
    for number in range(40):
        who = Names([number, number + 1]) if number % 2 else EVERYBODY
        for one in (account, bucket):
            one.charge([asks(f"question {number}", 0.5, who)], cap=100.0 - number)
            one.keep_asked(f"place {number}", "digest")
    here, there = account.read(), bucket.read()
    assert [_encoded(there.cap, [one]) for one in there.entries] == [
        _encoded(here.cap, [one]) for one in here.entries
    ]
    assert [one.question for one in there.entries] == [f"question {number}" for number in range(40)]
    assert there.cap == 61.0
    get = objects.get

    def fail(name):
        if name.endswith("23.charge"):
            raise NotReached(errno.EIO, "does not answer in time", objects.where(name))
        return get(name)

    monkeypatch.setattr(objects, "get", fail)
    with pytest.raises(NotReached, match=r"00000023\.charge"):
        bucket.read()
    monkeypatch.setattr(objects, "get", get)
    objects.put("holders/ledger/release/00000017.charge", b"damaged")
    with pytest.raises(ArtifactCorrupt, match=r"00000017\.charge: damaged"):
        bucket.charge([asks("one more")], cap=None)
    objects.delete("holders/ledger/release/00000009.charge")
    with pytest.raises(ArtifactCorrupt, match=r"00000009\.charge: missing"):
        bucket.read()


def test_seeded_simulations_and_releases_have_accounts_of_their_own(store):
    accounts = [Account(store, seed) for seed in (None, 0, 11)]
    for account in accounts:
        account.charge([asks("one")], cap=1.0)
        with pytest.raises(BudgetError):
            account.charge([asks("two")], cap=None)
    assert [len(account.read()) for account in accounts] == [1, 1, 1]


def test_millions_of_rows_cost_one_entry(account):
    account.charge([asks("one")], cap=1.0)
    (path,) = files(account)
    assert path.stat().st_size < 1000


def test_named_holders_cost_eight_bytes_each(account):
    account.charge([asks("one", who=Names(range(100_000)))], cap=1.0)
    assert files(account)[0].stat().st_size < 801_000


PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["pytest", "hypothesis.strategies", "storage.ledger.accounts", "ldptree.client"]
)
TEN = RowRange(source="file", start=0, stop=10)


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def charge_and_die(at, work):
    """One process: charges, and is killed before, while or after its charge gets its number."""
    real_link = Path.hardlink_to
    if at == "half written":
        Path.write_bytes = lambda self, data: (self.open("wb").write(data[: len(data) // 2]), die())
    elif at == "before it has its number":
        Path.hardlink_to = die
    elif at == "just after it has its number":
        Path.hardlink_to = lambda self, target: (real_link(self, target), die())
    Account(Store(work), None).charge([asks("one", who=TEN)], 1.0)
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


@pytest.mark.parametrize(
    ("at", "cap"),
    [
        ("half written", None),
        ("before it has its number", None),
        ("just after it has its number", 1.0),
        ("after", 1.0),
    ],
)
def test_a_killed_charge_is_there_whole_or_not_at_all_and_is_never_paid_twice(store, account, at, cap):
    killed(at, store.root)
    assert account.read().cap == cap
    again = account.charge([asks("one", who=TEN)], cap=1.0)
    assert (again.spent_by(TEN), len(again)) == (1.0, 1)
    with pytest.raises(BudgetError):
        account.charge([asks("two", who=TEN)], cap=None)


def test_what_is_charged_and_never_answered_is_spent(store, account):
    killed("after", store.root)
    with pytest.raises(BudgetError, match="1 is spent already"):
        account.charge([asks("another question", who=TEN)], cap=1.0)


def test_a_charge_is_on_disk_before_it_is_said_to_be(account, monkeypatch):
    """The content is flushed before it has its number, and the number before `charge` returns."""
    done = []
    real_fsync, real_link = folder.fsync, os.link
    monkeypatch.setattr(
        "storage.objects.folder.fsync", lambda path: (done.append(path.suffix), real_fsync(path))
    )
    monkeypatch.setattr(os, "link", lambda *a, **k: (done.append("numbered"), real_link(*a, **k)))
    account.charge([asks("one")], cap=None)
    assert done == ["", "numbered", ""]


@pytest.mark.parametrize("damage", ["cut", "flipped", "missing", "emptied"])
def test_a_damaged_ledger_lets_nobody_be_asked(account, damage):
    for question in ("one", "two"):
        account.charge([asks(question)], cap=None)
    path = files(account)[0]
    content = path.read_bytes()
    changed = {"cut": content[:-9], "flipped": content.replace(b"1.0", b"0.1"), "emptied": b""}
    path.unlink() if damage == "missing" else path.write_bytes(changed[damage])
    with pytest.raises(
        ArtifactCorrupt, match=r"00000001\.charge: (damaged|missing)\. .* Restore it from a copy"
    ):
        account.charge([asks("three")], cap=None)


def test_a_last_charge_that_went_missing_is_noticed_where_an_answer_was_kept_after_it(store, account):
    account.charge([asks("one")], cap=None)
    reports = store.root / "reports.parquet"
    reports.write_bytes(b"reports")
    account.keep_answer("one", [reports.relative_to(store.root).as_posix()])
    account.charge([asks("two", 2.0)], cap=None)
    files(account)[-1].unlink()  # nobody answered it: nothing betrays it
    assert account.read().spent_by(EVERYBODY) == 1.0
    files(account)[-1].unlink()
    for spend in (account.charge, account.foresee):
        with pytest.raises(ArtifactCorrupt, match=r"00000001\.charge: missing\. .* Restore it from a copy"):
            spend([asks("three")], cap=None)


def test_a_charge_that_went_missing_is_noticed_by_the_question_it_paid_for(account):
    account.charge([asks("talk round 1")], cap=None)
    assert account.keep_asked("talk round 2", "first")
    files(account)[-1].unlink()
    with pytest.raises(ArtifactCorrupt, match=r"00000001\.charge: missing"):
        account.read()


def test_what_was_kept_of_an_answer_is_not_read_where_it_is_damaged(account):
    account.charge([asks("one")], cap=None)
    account.store.objects.put(f"{account._stem('one')}.answered", b"{")
    with pytest.raises(ArtifactCorrupt, match=r"answered: damaged\. .* Restore it from a copy"):
        account.charge([asks("one")], cap=None)


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


def test_who_reads_is_not_misled_by_a_charge_that_is_answered_meanwhile(store, account, monkeypatch):
    real, since = FolderObjects.entries, iter([True])

    def entries(self, folder, *, deep=False):
        listed = list(real(self, folder, deep=deep))
        if next(since, False):
            Account(store, None).charge([asks("two")], cap=None)
            Account(store, None).keep_answer("two", [])
        return iter(listed)

    account.charge([asks("one")], cap=None)
    monkeypatch.setattr(FolderObjects, "entries", entries)
    assert [entry.question for entry in account.read().entries] == ["one", "two"]


def test_two_processes_that_ask_the_same_question_pay_once(store, account):
    gate = PROCESSES.Barrier(2)
    both = [PROCESSES.Process(target=race, args=(store.root, "one", gate)) for _ in range(2)]
    assert ended(both) == [0, 0]
    assert (account.read().spent_by(TEN), len(account.read())) == (1.0, 1)


def test_answers_that_went_missing_are_not_given_a_second_time(store, account):
    account.charge([asks("one")], cap=None)
    path = store.zone("curator") / "reports" / "some.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"a report")
    account.keep_answer("one", [path.relative_to(store.root).as_posix()])
    account.keep_answer("one", [path.relative_to(store.root).as_posix()])
    assert len(account.charge([asks("one")], cap=None)) == 1
    path.unlink()
    for spend in (account.charge, account.foresee):
        with pytest.raises(
            ArtifactCorrupt, match=r"some\.parquet: these reports were received, and are now missing"
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
    account.keep_answer("one", [reports.relative_to(store.root).as_posix()])
    assert account.is_answered("one")
    reports.unlink()
    with pytest.raises(ArtifactCorrupt, match="now missing"):
        account.is_answered("one")
