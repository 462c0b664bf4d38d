"""The seal of a work folder, under several runs at once. What it notices: `flows/test_lost_state.py`."""

from __future__ import annotations

import threading

import pytest

from ldptree.errors import ArtifactCorrupt
from ldptree.protocol.ledger import Charge, RowRange
from storage.ledger import seal
from storage.ledger.accounts import Account
from storage.ledger.seal import LEDGER, REPORTS, check_state, seal_state
from storage.objects.folder import FolderObjects
from storage.store import Store

RUNS = 6


def run(store, number):
    """Charge a question and seal that."""
    store.hasher("holders")
    rows = RowRange(source="rows.csv", start=0, stop=10)
    asked = Charge(question=f"question {number}", epsilon=0.1, who=rows, about="a question")
    Account(store, None).charge([asked], cap=None)
    seal_state(store)


def sealed_files(store):
    return {name for name in check_state(store).files if name.endswith(".charge")}


def test_of_runs_that_seal_at_once_none_is_forgotten(tmp_path):
    work, faults = tmp_path / "work", []
    run(Store(work), 0)

    def act(number):
        try:
            run(Store(work), number)
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=act, args=(number,)) for number in range(1, RUNS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert len(sealed_files(Store(work))) == RUNS


@pytest.mark.parametrize("at", [f"{LEDGER}/seal", f"{REPORTS}/seal"])
def test_a_run_that_was_overtaken_seals_on_what_it_did_not_see(tmp_path, monkeypatch, at):
    """Another run seals before this one has written its seal, or before it has written its marks."""
    store, left = Store(tmp_path / "work"), [at]
    run(store, 0)
    real = FolderObjects.change

    def change(self, name, make):
        if name in left:
            left.clear()
            run(Store(tmp_path / "work"), 1)
            run(Store(tmp_path / "work"), 2)
        real(self, name, make)

    monkeypatch.setattr(FolderObjects, "change", change)
    run(store, 3)
    assert left == []
    assert len(sealed_files(store)) == 4
    assert check_state(store).settled == check_state(store).number
    store.objects.delete(sorted(sealed_files(store))[0])
    with pytest.raises(ArtifactCorrupt, match="missing"):
        check_state(store)


@pytest.mark.parametrize("at", [LEDGER, REPORTS])
def test_who_looks_while_other_runs_seal_sees_no_fault(tmp_path, monkeypatch, at):
    store, left = Store(tmp_path / "work"), [at]
    run(store, 0)
    real = seal._read

    def read(store, part, kind):
        found = real(store, part, kind)
        if part in left:
            left.clear()
            run(Store(tmp_path / "work"), 1)
            run(Store(tmp_path / "work"), 2)
        return found

    monkeypatch.setattr(seal, "_read", read)
    assert check_state(store).number == 3
    assert left == []
