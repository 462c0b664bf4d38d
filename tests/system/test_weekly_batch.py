"""A campaign from week to week, as whole runs; what its terms forbid is in flows/test_campaign_terms.py."""

from __future__ import annotations

import csv

import pytest
from chain import rides, rides_config
from whole_runs import learned, reports, run

pytestmark = [pytest.mark.server, pytest.mark.slow]


def test_weeks_keep_the_protocol_and_all_reports_and_ask_nobody_twice(connected, tmp_path):
    """A column names the holder: the second week has people of the first, and the third run has no others."""
    work, files = tmp_path / "work", [rides(tmp_path / f"week-{i}.csv", 900, seed=i) for i in (1, 2)]
    people = []
    for file in files:
        with file.open() as source:
            people.append({row["person"] for row in csv.DictReader(source) if row["zone"] == "closed"})
    assert people[0] & people[1]
    found, drawn = [], [{}]
    for paths in (files[:1], files, files[1:]):
        terms = {"campaign": {"name": "rides-2026"}, "evaluate": False, "simulation": {"noise_seed": None}}
        found.append(run(rides_config(*paths, dataset={"holder": "person", "drop": []}, **terms), work))
        drawn.append(reports(work))
        assert drawn[-2].items() <= drawn[-1].items()
    assert [len(after) for after in drawn] == [0, 1, 2, 2]
    both = len(people[0] | people[1])
    assert [summary["n_private"] for summary in found] == [len(people[0]), both, both]
    assert len({learned(work, summary)[0] for summary in found}) == 1
