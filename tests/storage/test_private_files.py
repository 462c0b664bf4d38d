"""What is of the holders' side is its owner's only, whatever the umask: their zone, simulations, the pages of runs."""

from __future__ import annotations

import os
import stat

import pytest
from chain import Chain, rides, rides_config
from first_fast import first_fast

from flows.work_folder.index import write_index
from ldptree.errors import LdptreeError
from storage.ledger.accounts import Account
from storage.store import Store
from tasks.step import faults_stay_in_zone


@pytest.fixture(params=first_fast(0o000, 0o022, 0o077), ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def open_to_others(folder):
    paths = [folder, *folder.rglob("*")]
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in paths}
    return {
        str(path.relative_to(folder)): oct(mode)
        for path, mode in modes.items()
        if mode != (0o700 if path.is_dir() else 0o600)
    }


def test_a_run_leaves_nothing_of_the_holders_open_to_others(umask, tmp_path):
    file = rides(tmp_path / "rides.csv", 300, seed=1, miles=["1.5", "x", *["2.5"] * 298])
    dataset = {"holder": "person", "drop": [], "on_bad_rows": "quarantine", "types": {"miles": "number"}}
    store = Store(tmp_path / "work")
    campaign = {"campaign": {"name": "rides"}, "evaluation": {"redraws": 0}}
    chain = Chain(store, rides_config(file, dataset=dataset, **campaign))
    assert chain.checked
    assert chain.page
    store.objects.put("runs/one/page.html", b"scores")
    store.objects.publish(store.objects.draft_folder("runs"), "runs/two")
    with pytest.raises(LdptreeError), faults_stay_in_zone(store, "split", "holders"):
        raise RuntimeError
    for name in ("holders", "simulation", "runs"):
        assert open_to_others(store.root / name) == {}
    readable = list((store.root / "curator").rglob("*.json"))
    assert {stat.S_IMODE(path.stat().st_mode) for path in readable} == {0o666 & ~umask}


def test_a_ledger_alone_is_closed_to_others(umask, tmp_path):
    store = Store(tmp_path / "work")
    Account(store, None).charge((), cap=2.0)
    assert open_to_others(store.zone("holders")) == {}


def test_the_list_of_runs_is_closed_to_others(umask, tmp_path):
    store = Store(tmp_path / "work")
    write_index(store)
    index = store.root / "index.html"
    assert stat.S_IMODE(index.stat().st_mode) == 0o600
    index.chmod(0o644)
    Store(store.root)
    assert open_to_others(index) == {}


@pytest.mark.parametrize("name", ["holders", "simulation", "runs", "prefect"])
def test_a_folder_that_was_left_open_is_closed(tmp_path, name):
    holders = tmp_path / "work" / name
    (holders / "split" / "rows").mkdir(parents=True)
    (holders / "split" / "rows" / "part.parquet").write_text("rows")
    (holders / "secret").write_text("secret")
    for path in (holders, *holders.rglob("*")):
        path.chmod(0o777)
    Store(tmp_path / "work")
    assert open_to_others(holders) == {}


def test_a_link_in_it_is_not_followed(tmp_path):
    """Who links a big file into the zone keeps that file's mode."""
    elsewhere = tmp_path / "elsewhere.csv"
    elsewhere.touch(mode=0o644)
    holders = tmp_path / "work" / "holders"
    holders.mkdir(parents=True)
    (holders / "link").symlink_to(elsewhere)
    Store(tmp_path / "work")
    assert stat.S_IMODE(elsewhere.stat().st_mode) == stat.S_IMODE(0o644)
