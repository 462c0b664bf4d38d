"""A campaign from week to week: one protocol, nobody asked twice, and what its terms forbid."""

from __future__ import annotations

import csv

import pytest
from chain import rides, rides_config
from whole_runs import learned, reports, run

from ldptree.errors import BudgetError, ProtocolMismatch

pytestmark = [pytest.mark.server, pytest.mark.slow]


CAMPAIGN = {"campaign": {"name": "rides-2026"}, "evaluate": False, "simulation": {"noise_seed": None}}


def config(*files, **dataset):
    return rides_config(*files, dataset=dataset, **CAMPAIGN)


@pytest.fixture(scope="module")
def weeks(connected, tmp_path_factory):
    """Two weeks of one campaign: work folder, files, what there was after each, and the summaries."""
    folder = tmp_path_factory.mktemp("weeks")
    files = [rides(folder / f"week-{i}.csv", 900, seed=i) for i in (1, 2)]
    after = []
    for n in (1, 2):
        summary = run(config(*files[:n]), folder / "work")
        after.append((summary, reports(folder / "work")))
    return folder / "work", files, after


def test_a_second_week_keeps_the_protocol(weeks):
    work, _, ((first, _), (second, _)) = weeks
    assert learned(work, first)[0] == learned(work, second)[0]


def test_a_second_week_redraws_no_report_and_adds_the_new_ones(weeks):
    _, _, ((first, before), (second, now)) = weeks
    assert {name: now[name] for name in before} == before
    assert len(now) == len(before) + 1
    assert (first["n_private"], second["n_private"]) == (600, 1200)


def test_a_week_whose_file_is_named_alone_adds_to_those_before(weeks):
    work, files, (_, (second, now)) = weeks
    third = run(config(rides(files[0].with_name("week-3.csv"), 900, seed=3)), work)
    after = reports(work)
    assert {name: after[name] for name in now} == now
    assert third["n_private"] == second["n_private"] + 600


def test_a_file_that_changed_is_refused(weeks):
    work, files, _ = weeks
    before, kept = reports(work), files[1].read_bytes()
    try:
        rides(files[1], 900, seed=17)
        with pytest.raises(
            BudgetError, match=r"week-2\.csv: changed since campaign 'rides-2026' collected it"
        ):
            run(config(*files), work)
    finally:
        files[1].write_bytes(kept)
    assert reports(work) == before


def test_other_terms_are_refused(weeks):
    work, files, _ = weeks
    before = reports(work)
    changed = rides_config(*files, privacy={"epsilon": 3.0}, **CAMPAIGN)
    with pytest.raises(ProtocolMismatch, match=r"published with another privacy\.epsilon"):
        run(changed, work)
    assert reports(work) == before


def test_nobody_reports_twice_where_a_column_names_the_holder(connected, tmp_path):
    files = [rides(tmp_path / f"week-{i}.csv", 900, seed=i) for i in (1, 2)]
    by_person = {"holder": "person", "drop": []}
    people = []
    for file in files:
        with file.open() as source:
            people.append({row["person"] for row in csv.DictReader(source) if row["zone"] == "closed"})
    assert people[0] & people[1]
    first = run(config(files[0], **by_person), tmp_path / "work")
    assert first["n_private"] == len(people[0])
    second = run(config(*files, **by_person), tmp_path / "work")
    assert second["n_private"] == len(people[0] | people[1])
    third = run(config(files[1], **by_person), tmp_path / "work")
    assert third["n_private"] == second["n_private"]
