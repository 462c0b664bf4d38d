"""The plan of a run in rounds: what stands, what is next, what it would spend or why it is refused; and it leaves no trace."""

from __future__ import annotations

from dataclasses import replace

import pytest
from chain import RoundsChain, shells, shells_config

from flows.command.terminal import steps_of
from flows.run_plan.look import plan_of
from flows.run_plan.show import show_plan
from ldptree.errors import BudgetError
from storage.store import Store

TWO_ROUNDS = {
    "model": {"estimator": "histoftree", "t": 2, "p": 1},
    "evaluate": False,
    "dataset": {"test_fraction": 0.0},
}
BEFORE = ["types", "read", "ingest", "count", "validate", "split", "cut", "scale", "show"]
ROUND = ["partition", "perturb", "aggregate"]


@pytest.fixture
def chain(tmp_path):
    rows = shells(tmp_path / "shells.parquet", 300, 1)
    return RoundsChain(Store(tmp_path / "work"), shells_config(rows, **TWO_ROUNDS))


def states(chain, config=None):
    return [(line["name"], line["state"]) for line in plan_of(config or chain.config, chain.store.root)]


def told(chain, capsys, config=None):
    show_plan(config or chain.config, chain.store.root, as_json=False)
    return " ".join(capsys.readouterr().out.split())


def prepared(chain):
    assert chain.checked
    assert chain.shown
    return chain


def test_before_the_first_run_all_of_it_is_foreseen_as_far_as_the_first_round(chain, capsys, tmp_path):
    new = plan_of(chain.config, tmp_path / "new")
    assert [line["name"] for line in new] == [*BEFORE, *ROUND, "prune", "report"] == steps_of(chain.config)
    assert new[0]["state"] == "compute"
    assert {(line["state"]) for line in new[1:]} == {"compute"}
    assert not (tmp_path / "new").exists()
    assert "each person would spend at most epsilon 2, over all rounds together" in told(chain, capsys)


def test_a_run_between_two_rounds_goes_on_where_it_was_and_spends_no_more(chain, capsys):
    prepared(chain)
    first = chain.ask([])
    chain.respondents.charge(first, None)
    chain.add_up(replace(first, reports=chain.respondents.answer(first)))
    found = states(chain)
    assert found[9:13] == [*((step, "cached") for step in ROUND), ("partition", "compute")]
    assert ("prune", "compute") in found
    assert "was charged epsilon 2 before the first round" in told(chain, capsys)


def test_a_finished_run_is_all_cached_spends_nothing_and_its_plan_writes_nothing(chain, capsys):
    assert prepared(chain).converse().page
    before = sorted(chain.store.root.rglob("*"))
    found = states(chain)
    assert sorted(chain.store.root.rglob("*")) == before
    assert {state for _, state in found} == {"cached"}
    assert [name for name, _ in found] == [*BEFORE, *ROUND, *ROUND, "partition", "prune", "report"]
    assert "nobody would be asked: nothing is spent" in told(chain, capsys)


def test_what_the_ledger_would_refuse_is_told_before_anybody_is_asked(chain, capsys):
    prepared(chain).converse()
    (path,) = chain.config.dataset.path
    dearer = shells_config(path, **TWO_ROUNDS, privacy={"epsilon": 3.0, "lifetime_epsilon": 4.0})
    found = dict(states(chain, dearer)[5:])
    assert tuple(found[step] for step in ROUND) == ("compute", "refused", "depends")
    with pytest.raises(BudgetError, match="lifetime cap is 4"):
        told(chain, capsys, dearer)
    assert "nothing would be spent" in capsys.readouterr().out


def test_a_setting_changed_says_so(chain):
    prepared(chain).converse()
    (path,) = chain.config.dataset.path
    other = shells_config(path, **TWO_ROUNDS | {"model": {"estimator": "histoftree", "t": 3, "p": 1}})
    lines = {line["name"]: line for line in plan_of(other, chain.store.root)}
    assert lines["show"]["state"] == "cached"
    assert lines["partition"]["why"] == "round 1: changed: settings.t"
