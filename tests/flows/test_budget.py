"""A run is charged before any of its holders answers, once, or refused before any of them does."""

from __future__ import annotations

import json
import shutil
from unittest.mock import Mock

import pytest
from chain import Chain, rides, rides_config

import tasks.perturb
from flows.campaign import Terms
from flows.run_plan.look import plan_of
from flows.run_plan.show import show_plan
from flows.work_folder.garbage import collect_garbage
from ldptree.errors import ArtifactCorrupt, BudgetError
from storage.ledger.accounts import Account
from storage.ledger.connections import DATABASE
from storage.ledger.database import LAST
from storage.store import Store
from tasks.report import read_facts

BY_PERSON = {"holder": "person", "drop": []}
CAMPAIGN = {"campaign": {"name": "rides"}}


def run(store, *paths, epsilon=2.0, cap=None, seed=None, **changes):
    """A run that is charged up to its reports, as far as it is let; `seed`: of its noise."""
    privacy = {"epsilon": epsilon} | ({} if cap is None else {"lifetime_epsilon": cap})
    charged = {"release": True, "evaluate": False, "model": {"depth": 1}, "simulation": {"noise_seed": seed}}
    return Chain(store, rides_config(*paths, privacy=privacy, **charged | changes))


def reports(store):
    return {p: p.read_bytes() for p in (store.root / "curator").glob("reports/*/*/*.parquet")}


def largest(store, noise_seed=None):
    return Account(store, noise_seed).read().largest_spend().epsilon


@pytest.fixture
def path(tmp_path):
    return rides(tmp_path / "rides.csv", 600, 1)


@pytest.mark.parametrize("dataset", [{}, BY_PERSON], ids=["rows", "named"])
def test_a_second_question_over_the_cap_is_refused_before_anybody_answers(store, path, dataset):
    assert run(store, path, epsilon=2.0, cap=3.0, dataset=dataset).reports
    before = reports(store)
    with pytest.raises(BudgetError, match=r"rides\.csv: holders would spend epsilon 3\.5") as refused:
        assert run(store, path, epsilon=1.5, dataset=dataset).reports
    assert refused.value.exit_code == 4
    assert reports(store) == before
    assert largest(store) == 2.0
    assert run(store, path, epsilon=1.0, dataset=dataset).reports
    assert largest(store) == 3.0


def test_the_same_run_again_spends_nothing(store, path):
    first = run(store, path, cap=2.0)
    again = run(store, path, cap=2.0)
    assert again.page == first.page
    assert {line["state"] for line in plan_of(again.config, store.root)} == {"cached"}
    assert [r["reports"] for r in again.reports] == [r["reports"] for r in first.reports]
    assert largest(store) == 2.0


def test_a_run_that_only_learns_otherwise_from_the_same_reports_spends_nothing(store, path):
    assert run(store, path, cap=2.0).model
    assert run(store, path, model={"depth": 1, "prune": "none", "lam": 1.0}).model
    assert largest(store) == 2.0


def test_reports_that_would_be_drawn_anew_are_charged_anew(store, path):
    """The same question to a shard that holds others beside them draws every report in it once more."""
    first = run(store, path)
    second = run(store, path, evaluate=True)
    assert first.reports
    assert second.reports
    assert first.protocol.digest == second.protocol.digest
    assert {r["reports"].digest for r in first.reports}.isdisjoint(
        r["reports"].digest for r in second.reports
    )
    assert largest(store) == 4.0


def test_a_person_is_charged_in_whatever_file_they_come(store, tmp_path):
    for i in range(2):
        assert run(store, rides(tmp_path / f"{i}.csv", 600, i), cap=4.0, dataset=BY_PERSON).reports
    assert largest(store) == 4.0


def test_rows_of_another_file_are_others(store, tmp_path):
    new_people = {"dataset": {"holder": "row", "new_people": True}, "cap": 2.0}
    for i in range(2):
        assert run(store, rides(tmp_path / f"{i}.csv", 600, i), **new_people).reports
    assert largest(store) == 2.0


def test_a_files_holders_get_no_new_budget_in_a_copy_or_called_otherwise(store, path, tmp_path):
    assert run(store, path, cap=3.0).reports
    copy = shutil.copy(path, tmp_path / "copy.csv")
    for again in (run(store, copy, epsilon=1.5), run(store, path, dataset=BY_PERSON)):
        with pytest.raises(BudgetError):
            assert again.reports


def test_an_algorithm_that_asks_twice_fits_a_cap_of_its_epsilon(store, path):
    """Half of 25/3, rounded, is more than half of it."""
    chain = run(store, path, epsilon=25 / 3, cap=25 / 3, model={"prune": "paper"})
    assert chain.reports
    assert largest(store) == pytest.approx(25 / 6)


def test_reports_that_went_with_their_records_are_not_drawn_again(store, path):
    chain = run(store, path)
    chain.keep_answers()
    assert run(store, path).reports == chain.reports
    for folder in (store.root / "curator" / "reports").glob("*/"):
        shutil.rmtree(folder)
    shutil.rmtree(store.root / "holders" / "perturb")
    with pytest.raises(ArtifactCorrupt, match=r"curator/reports/.*\.parquet: missing") as lost:
        assert run(store, path).reports
    assert lost.value.exit_code == 5
    with pytest.raises(ArtifactCorrupt, match=r"\.parquet: missing\. Holders who have answered"):
        Account(store, None).charge(Account(store, None).read().entries, cap=None)
    assert reports(store) == {}


def test_a_file_given_twice_is_asked_once(store, path, tmp_path):
    copy = shutil.copy(path, tmp_path / "copy.csv")
    twice = run(store, path, copy, dataset=BY_PERSON, **CAMPAIGN)
    once = run(Store(tmp_path / "other"), path, dataset=BY_PERSON, **CAMPAIGN)
    assert twice.held.facts == once.held.facts
    assert len(twice.reports) == len(once.reports)
    assert twice.terms.campaign.answered([twice.raw.files[0].digest]).size == twice.held.facts["n_private"]


def test_two_campaigns_over_the_same_people_add_up(store, path):
    for name in ("one", "two"):
        chain = run(store, path, cap=4.0, dataset=BY_PERSON, campaign={"name": name})
        assert chain.reports
    assert largest(store) == 4.0
    with pytest.raises(
        BudgetError, match=r"4 is spent already \(2 on one \(protocol .*; 2 on two \(protocol"
    ):
        assert run(store, path, dataset=BY_PERSON, campaign={"name": "three"}).reports


def test_a_campaign_that_is_refused_is_not_begun(store, path):
    assert run(store, path, cap=3.0).reports
    refused = run(store, path, **CAMPAIGN)
    with pytest.raises(BudgetError):
        assert refused.reports
    assert Terms.of(store, refused.config).protocol is None
    assert refused.terms.campaign.asked() == {}
    assert run(store, path, epsilon=1.0, **CAMPAIGN).reports


def test_later_weeks_of_a_campaign_spend_for_new_holders_only(store, tmp_path):
    paths = [rides(tmp_path / f"{i}.csv", 600, i) for i in range(3)]
    settings = {"dataset": BY_PERSON, "cap": 2.0} | CAMPAIGN
    for names in (paths[:1], paths[:2], paths[2:], paths):
        assert run(store, *names, **settings).reports
        assert largest(store) == 2.0


def test_a_campaign_may_lower_the_cap_from_week_to_week(store, path):
    for cap in (8.0, 3.0):
        assert run(store, path, **CAMPAIGN, cap=cap).reports
    assert Account(store, None).read().cap == 3.0


def test_a_seeded_simulation_blocks_no_release_and_the_other_way_round(store, path):
    for seed, epsilon in ((11, 2.0), (None, 2.0), (12, 1.0)):
        assert run(store, path, epsilon=epsilon, cap=2.0, seed=seed).reports
    assert [largest(store, seed) for seed in (None, 11, 12)] == [2.0, 2.0, 1.0]
    with pytest.raises(BudgetError):
        assert run(store, path, epsilon=1.0, seed=11).reports


def test_a_cap_changes_no_key_but_the_pages(store, path):
    free, capped = (
        run(store, path, cap=cap, seed=11, evaluate=True, evaluation={"redraws": 1}) for cap in (None, 9.0)
    )
    steps = ["ingested", "checked", "held", "scaled", "published", "reports", "totals", "model", "scores"]
    assert [getattr(free, step) for step in steps] == [getattr(capped, step) for step in steps]


class Killed(BaseException):
    """Nothing catches it."""


def test_a_run_killed_between_the_charge_and_the_report_may_waste_and_never_doubles(store, path, monkeypatch):
    """By a signal: system/test_lifetime_budget.py."""
    monkeypatch.setattr(tasks.perturb, "values_of", Mock(side_effect=Killed))
    with pytest.raises(Killed):
        assert run(store, path, cap=3.0).reports
    monkeypatch.undo()
    assert (largest(store), reports(store)) == (2.0, {})
    with pytest.raises(BudgetError):  # wasted: another question finds it spent
        assert run(store, path, epsilon=1.5).reports
    assert run(store, path, epsilon=2.0).reports  # not doubled: the same one was paid for
    assert largest(store) == 2.0
    assert len(reports(store)) == 1


def test_gc_never_touches_the_ledger(store, path):
    assert run(store, path, cap=3.0).reports
    (told,) = (
        entry.name for entry in store.objects.entries("curator/reports") if entry.name.startswith(LAST)
    )
    names = (DATABASE, told, "holders/secret")
    kept = [store.objects.get(name) for name in names]
    collect_garbage(store.root, keep=0, dry_run=False)
    assert [store.objects.get(name) for name in names] == kept


def test_nothing_of_the_ledger_leaves_the_holders_zone_but_three_numbers(store, path):
    chain = run(store, path, cap=3.0, dataset=BY_PERSON)
    facts = read_facts(store, chain.page["page"])
    told = facts.privacy
    assert (told.largest_spend, told.n_questions, told.lifetime_epsilon) == (2.0, 1, 3.0)
    source = chain.raw.files[0].digest
    outside = [
        p for p in store.root.rglob("*") if p.is_file() and "holders" not in p.relative_to(store.root).parts
    ]
    assert not [p for p in outside if source.encode() in p.read_bytes()]


@pytest.mark.parametrize("dataset", [{}, BY_PERSON], ids=["rows", "named"])
def test_the_page_says_the_largest_spend_over_everything_asked_here(store, path, dataset):
    for epsilon, largest_spend, n_questions in ((2.0, 2.0, 1), (1.0, 3.0, 2), (2.0, 3.0, 2)):
        page = run(store, path, epsilon=epsilon, dataset=dataset).page["page"]
        told = read_facts(store, page).privacy
        assert (told.epsilon_spent, told.largest_spend, told.n_questions) == (
            epsilon,
            largest_spend,
            n_questions,
        )


def test_a_plan_says_where_the_ledger_would_refuse_and_writes_nothing(store, path, capsys):
    assert run(store, path, cap=3.0).page
    maybe = run(store, path, model={"depth": 2})
    told = {line["name"]: line for line in plan_of(maybe.config, store.root)}
    assert told["perturb"]["state"] == "depends"
    assert told["perturb"]["why"].endswith("the ledger would refuse a question that was not asked before")
    show_plan(maybe.config, store.root, as_json=False)
    last = " ".join(capsys.readouterr().out.split()).split("that was not asked before ")[-1]
    assert "unless this question was asked before, the budget is refused and nothing would be spent" in last
    assert "each person asked would spend" not in last
    surely = run(store, path, epsilon=1.5)
    for is_published in (False, True):
        assert not is_published or surely.published
        before = {p: p.stat().st_mtime_ns for p in store.root.rglob("*") if p.is_file()}
        with pytest.raises(BudgetError, match=r"holders would spend epsilon 3\.5"):
            show_plan(surely.config, store.root, as_json=True)
        told = json.loads(capsys.readouterr().out)
        (perturb,) = [step for step in told["steps"] if step["name"] == "perturb"]
        assert perturb["state"] == "refused"
        assert "holders would spend epsilon 3.5" in perturb["why"]
        assert told["epsilon_to_spend"] == 0.0
        assert {p: p.stat().st_mtime_ns for p in store.root.rglob("*") if p.is_file()} == before
