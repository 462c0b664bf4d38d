"""What a run of a campaign may ask for, and which reports it sums."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import NEW_PEOPLE, Chain, rides, rides_config

from flows.campaign import Terms
from ldptree.errors import ArtifactCorrupt, BudgetError, DataError, ProtocolMismatch
from storage.ledger.accounts import Account
from storage.ledger.campaigns import Campaign, campaigns_in


@pytest.fixture
def weeks(store, tmp_path):
    """A first run of a campaign on one file, and a second file."""
    paths = [rides(tmp_path / f"{i}.csv", 300, i) for i in range(2)]
    first = Chain(store, rides_config(paths[0], campaign={"name": "rides"}))
    assert first.model
    return store, paths, first


def later(store, *paths, **changes):
    return Chain(store, rides_config(*paths, campaign={"name": "rides"}, **{"dataset": NEW_PEOPLE} | changes))


def test_a_second_week_keeps_the_protocol_and_all_old_reports_and_adds_new_ones(weeks):
    store, paths, first = weeks
    drawn = {p: p.read_bytes() for p in (store.root / "curator" / "reports").rglob("*.parquet")}
    second = later(store, *paths)
    assert second.protocol == first.protocol
    assert second.totals.facts["n_private"] > first.totals.facts["n_private"]
    assert {r["reports"].digest for r in first.reports} < {r["reports"].digest for r in second.reports}
    assert all(path.read_bytes() == content for path, content in drawn.items())


def test_a_run_that_names_the_new_file_alone_still_sums_all_reports(weeks):
    store, paths, first = weeks
    alone, both = later(store, paths[1]), later(store, *paths)
    assert alone.totals["totals"] == both.totals["totals"]
    assert alone.totals.facts["n_private"] == sum(r.facts["n_reports"] for r in first.reports + alone.reports)


def test_other_terms_are_refused(weeks):
    store, paths, _ = weeks
    for changes in (
        {"privacy": {"epsilon": 3.0}},
        {"privacy": {"outside": "drop"}},
        {"dataset": {"drop": ["person", "hour"]}},
        {"seed": 8},
        {"simulation": {"noise_seed": None}},
        {"evaluate": False},
    ):
        with pytest.raises(ProtocolMismatch, match="was published with another"):
            Terms.of(store, later(store, *paths, **changes).config)


def test_what_is_made_of_the_reports_may_change(weeks):
    store, paths, first = weeks
    changed = later(store, paths[0], model={"prune": "none", "lam": 1.0})
    assert [r["reports"] for r in changed.reports] == [r["reports"] for r in first.reports]
    assert changed.model["model"].digest != first.model["model"].digest


def test_a_file_with_rows_added_after_it_was_collected_is_refused(weeks):
    store, paths, _ = weeks
    paths[0].write_text(paths[0].read_text() + paths[1].read_text().split("\n", 1)[1])
    with pytest.raises(BudgetError, match="changed since campaign 'rides' collected it"):
        assert later(store, *paths).raw


@pytest.mark.parametrize("damage", ["delete", "cut short", "one report changed"])
def test_a_damaged_report_of_an_earlier_week_stops_the_sum(weeks, damage):
    """A changed report that can still be read would otherwise be summed with the rest."""
    store, paths, first = weeks
    (path,) = store.files(first.reports[0]["reports"])
    if damage == "delete":
        path.unlink()
    elif damage == "cut short":
        path.write_bytes(path.read_bytes()[:-20])
    else:
        table = pq.read_table(path)
        values = table.column("value").to_numpy().copy()
        values[0] = (values[0] + 1) % 3
        changed = pa.table({"value": values}).replace_schema_metadata(table.schema.metadata)
        pq.write_table(changed, path)
    with pytest.raises(ArtifactCorrupt, match=path.name):
        assert later(store, paths[1]).totals


def test_files_of_reports_that_say_the_same_are_all_summed_in_the_run_that_received_them_and_later(weeks):
    store, _, first = weeks
    terms = Terms.of(store, first.config)
    (record,) = first.reports
    (path,) = store.files(record["reports"])
    twin = path.with_name(f"{'0' * 40}.parquet")
    twin.write_bytes(path.read_bytes())
    (entry,) = record["reports"].files
    said = record["reports"].model_copy(update={"files": (entry.model_copy(update={"name": twin.name}),)})
    other = record.model_copy(update={"parts": {"reports": said}})
    assert terms.received([record, other, record]) == [said, record["reports"]]
    assert terms.received([record]) == [record["reports"]]
    terms.campaign.add_reports([said])
    for now in ([], [record], [record, other]):
        assert terms.received(now) == [said, record["reports"]]


def test_without_a_campaign_nothing_is_kept_for_later(store, tmp_path):
    chain = Chain(store, rides_config(rides(tmp_path / "a.csv", 90, 1)))
    assert chain.totals
    assert chain.terms.protocol is None
    assert chain.terms.asked_before(chain.raw) == []
    assert campaigns_in(store) == []


def test_the_form_of_reports_is_that_of_the_first_run_however_many_holders_come(store, tmp_path):
    paths = [rides(tmp_path / f"{i}.csv", 300, i) for i in range(2)]
    # Room for the reports of the first file, not for those of both.
    terms = {"campaign": {"name": "rides"}, "simulation": {"noise_seed": None}}
    room = {"epsilon": 2.0, "max_report_bytes": 1}
    size = Chain(store, rides_config(paths[0], privacy={"epsilon": 2.0}, simulation={"noise_seed": None}))
    room["max_report_bytes"] = size.held.facts["n_private"] * size.published.facts["report_bytes"] + 1
    first = Chain(store, rides_config(paths[0], privacy=room, **terms))
    assert first.model
    second = Chain(store, rides_config(*paths, privacy=room, dataset=NEW_PEOPLE, **terms))
    reports = second.totals.facts["n_private"]
    assert {r["reports"].digest for r in first.reports} < {r["reports"].digest for r in second.reports}
    assert reports == sum(r.facts["n_reports"] for r in second.reports)
    forms = {
        pq.read_schema(path).metadata[b"form"] for r in second.reports for path in store.files(r["reports"])
    }
    assert forms == {b"reports"}


def test_a_first_run_that_stopped_before_it_published_leaves_nobody_marked_as_asked(store, tmp_path):
    path = rides(tmp_path / "a.csv", 300, 1)
    by_person = {"holder": "person", "drop": []}
    named = {"campaign": {"name": "rides"}, "simulation": {"noise_seed": None}}
    stopped = Chain(store, rides_config(path, dataset={**by_person, "test_fraction": 0.9}, **named))
    assert stopped.held
    first = Chain(store, rides_config(path, dataset=by_person, **named))
    assert first.model
    again = tmp_path / "b.csv"
    lines = path.read_text().splitlines(keepends=True)
    again.write_text("".join([*lines, lines[-1]]))
    with pytest.raises(DataError, match="no private rows are left"):
        assert Chain(store, rides_config(again, dataset=by_person, **named)).held


def test_the_first_run_given_again_finds_every_step_and_makes_anew_what_was_lost(weeks):
    store, paths, first = weeks
    again = later(store, paths[0])
    for step in ("model", "ingested", "held", "scaled", "published", "totals", "protocol"):
        assert getattr(again, step) == getattr(first, step)
    shutil.rmtree(store.root / first.scaled["encoding"].path)
    again = later(store, paths[0])
    assert again.model["model"].digest == first.model["model"].digest
    assert again.protocol == first.protocol


def test_a_cap_holds_from_when_it_was_stated_though_the_campaign_that_states_it_is_refused(store, tmp_path):
    path = rides(tmp_path / "rides.csv", 300, 1)

    def asked(name, **privacy):
        config = rides_config(
            path, campaign={"name": name}, simulation={"noise_seed": None}, evaluate=False, privacy=privacy
        )
        return Chain(store, config).reports

    assert asked("first")
    with pytest.raises(BudgetError, match="their lifetime cap is 3"):
        asked("second", lifetime_epsilon=3.0)
    assert Campaign(store, "second").frozen() is None
    with pytest.raises(BudgetError, match="their lifetime cap is 3"):
        asked("third")
    assert Account(store, None).read().cap == 3.0
