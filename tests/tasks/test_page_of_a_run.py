"""What the page says of a run is so: its facts come from the run's records, caps and zones included."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from chain import Chain, RoundsChain, rides, rides_config, shells, shells_config

from flows.executors import InlineExecutor
from ldptree.encoding import Encoding, NumericFeature
from storage.store import Store
from tasks.artifacts import read_protocol
from tasks.making import list_steps
from tasks.page import findings, privacy
from tasks.page.data import Bin, CellTest, Check, Rows
from tasks.progress import Timeline
from tasks.report import describe_stop, find_whole, read_facts


@pytest.fixture
def run(tmp_path):
    """Changes of the configuration to a run on 900 rides, 600 of them private."""

    def run(**changes):
        path = rides(tmp_path / "rides.csv", 900, 1)
        return Chain(Store(tmp_path / "work"), rides_config(path, **changes))

    return run


def _stop(chain, timeline):
    known = {"store": chain.store, "ingested": chain.ingested, "checked": chain.checked}
    return describe_stop(chain.config, timeline, "", "", **known)


def test_columns_of_the_public_rule_are_known_of_everyone_and_where_none_is_left_out_nothing_is_said(run):
    chain = run(evaluate=False)
    facts = read_facts(chain.store, chain.page["page"])
    assert facts.public_columns == ("zone",)
    assert "“zone”" in " ".join(one.text for one in privacy.answers(facts)[-1].sentences)
    assert "Columns left out" not in chain.store.file(chain.page["page"], "page.html").read_text()


def test_a_cap_that_was_not_in_force_is_not_said(run):
    chain = run()
    facts = read_facts(chain.store, chain.page["page"])
    assert facts.scores.n == facts.n_test == chain.held.facts["n_test"]
    assert not any(score.note for score in facts.scores.models)


def test_a_stopped_run_knows_its_time_and_its_rows(run):
    chain, timeline = run(), Timeline()
    timeline.began -= 5.0
    facts = _stop(chain, timeline)
    assert facts.making.seconds >= 5.0
    lines = {row[0]: row[1:] for row in findings.tabulate_rows(facts).rows}
    assert lines["read"] == ("300", "kept by the people")
    assert lines["kept"] == ("300", "600")
    assert "learned from" not in lines


def test_no_two_steps_of_a_run_in_rounds_went_on_at_once(tmp_path):
    config = shells_config(shells(tmp_path / "shells.csv", 900, 1), evaluate=False)
    store = Store(tmp_path / "work")
    run = RoundsChain(store, config, executor=InlineExecutor(store))
    with run.timeline.listening():
        run.walk()
    steps = list_steps(run.timeline)
    several = [step.name for step in steps if len(step.spans) > 1]
    assert {"partition", "perturb", "aggregate"} <= {*several}
    spans = sorted(span for step in steps for span in step.spans)
    assert all(start + seconds <= after for (start, seconds), (after, _) in itertools.pairwise(spans))


def test_columns_that_are_left_out_are_on_the_page(run):
    chain = run(evaluate=False, dataset={"drop": []})
    facts = read_facts(chain.store, chain.page["page"])
    assert list(facts.columns_left_out) == ["person"]
    page = chain.store.file(chain.page["page"], "page.html").read_text()
    assert "Columns left out" in page
    assert "“person”</span><span>identifiers or names" in page
    assert {f.column for f in read_protocol(chain.store, chain.protocol).encoding.features} == {
        "miles",
        "hour",
        "firm",
    }
    failed = _stop(chain, Timeline())
    assert failed.columns_left_out == facts.columns_left_out


def test_a_tree_too_large_for_the_warehouse_has_its_page_all_the_same(run, monkeypatch):
    monkeypatch.setattr("tasks.report.NODES_IN_WAREHOUSE", 2)
    chain = run(evaluate=False)
    assert chain.page.facts["nodes"] == []
    assert read_facts(chain.store, chain.page["page"]).n_cells > 2


def test_columns_of_whole_numbers_are_those_of_public_rows():
    ranges = {"hour": (0.0, 23.0), "miles": (0.0, 40.0), "year": (1990.0, 2026.0)}
    encoding = Encoding(tuple(NumericFeature(name, *ends) for name, ends in ranges.items()))
    rng = np.random.default_rng(1)
    raw = np.column_stack([rng.integers(0, 24, 500), rng.uniform(0, 40, 500), rng.integers(1990, 2027, 500)])
    assert find_whole(encoding, encoding.encode(raw.astype(float))) == ("hour", "year")


def test_no_count_value_or_point_of_private_rows_can_be_put_on_the_page():
    with pytest.raises(ValueError, match="with its people"):
        Check(name="x", zone="private", ok=False, detail="3 rows")
    with pytest.raises(ValueError, match="with its people"):
        Rows(zone="private", kept=10, quarantined=1)
    with pytest.raises(ValueError, match="with its people"):
        Rows(zone="private", kept=10, read=11)
    with pytest.raises(ValueError, match="shows them"):
        Bin(low=0, high=1, n=9, predicted=0.5, true=0.5, true_sd=0.1)
    with pytest.raises(ValueError, match="shows them"):
        CellTest(n=9, public=0.5, ours=0.5)
