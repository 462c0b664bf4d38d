"""Whole runs under a lifetime cap: what is spent is on disk before the first report, and what is over the cap is refused."""

from __future__ import annotations

import json

import pytest
from whole_runs import Killed, reports, rides_toml, run, start

from ldptree.errors import BudgetError
from schemas.config import load
from storage.ledger.accounts import Account
from storage.store import Store

pytestmark = [pytest.mark.server, pytest.mark.slow]


def spent(work):
    return Account(Store(work), None).read().largest_spend().epsilon


def test_a_run_killed_among_its_reports_has_paid_for_all_of_them_and_given_again_pays_nothing(
    connected, files, tmp_path
):
    killed = Killed.run(files, tmp_path / "work", after_shards=1, is_seeded=False)
    assert (killed.code, len(killed.kept)) == (-9, 1)
    assert spent(killed.work) == 2.0
    summary = run(load(killed.config, ["privacy.lifetime_epsilon=2"]), killed.work)
    assert (summary["epsilon_spent"], summary["largest_spend"], spent(killed.work)) == (2.0, 2.0, 2.0)
    drawn = reports(killed.work)
    assert drawn.items() > killed.kept.items()
    with pytest.raises(BudgetError, match="2 is spent already"):
        run(load(killed.config, ["privacy.epsilon=1"]), killed.work)
    assert reports(killed.work) == drawn


def test_of_two_runs_at_once_one_spends_the_last_of_the_budget(connected, files, tmp_path):
    config = rides_toml(tmp_path / "rides.toml", str(files / "*.csv"), privacy={"lifetime_epsilon": 2.0})
    work = tmp_path / "work"
    both = [
        start("run", config, "--work", work, "--json", "--set", f"privacy.epsilon={epsilon}")
        for epsilon in (1.25, 1.5)
    ]
    said = [process.communicate() for process in both]
    assert sorted(process.returncode for process in both) == [0, 4], said
    winner, loser = sorted(zip(both, said, strict=True), key=lambda one: one[0].returncode)
    epsilon = json.loads(winner[1][0])["epsilon_spent"]
    assert "their lifetime cap is 2: " in loser[1][1]
    assert "Nobody was asked" in loser[1][1]
    assert spent(work) == epsilon
    assert len({path.parent for path in (work / "curator").glob("reports/*/*/*.parquet")}) == 1
