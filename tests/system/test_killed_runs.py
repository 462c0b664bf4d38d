"""A run killed in the middle of perturb, and runs beside each other: reports are drawn once, and the model is the same."""

from __future__ import annotations

import json

import pytest
from whole_runs import N_SHARDS, Killed, learned, reports, run, start

from schemas.config import load

pytestmark = [pytest.mark.server, pytest.mark.slow]


@pytest.fixture(scope="module")
def killed(connected, files, tmp_path_factory):
    """Two runs killed with some of their shards done: one seeded, one with the operating system's noise."""
    folder, found = tmp_path_factory.mktemp("killed"), {}
    for name in ("seeded", "system"):
        found[name] = Killed.run(files, folder / name, after_shards=3, is_seeded=name == "seeded")
        assert (found[name].code, len(found[name].kept)) == (-9, 3)
        assert not (found[name].work / "runs").exists()
    return found


def test_a_killed_run_goes_on_and_learns_what_an_undisturbed_one_learns(killed, release):
    once = killed["seeded"]
    again = run(load(once.config), once.work)
    assert {name: reports(once.work)[name] for name in once.kept} == once.kept
    assert learned(once.work, again) == learned(release.work, release.summary)


def test_any_number_of_workers_sends_the_same_reports(release, tmp_path):
    again = run(release.config, tmp_path, workers=4)
    assert learned(tmp_path, again) == learned(release.work, release.summary)
    ours, theirs = (sorted(data for _, _, data in reports(w).values()) for w in (tmp_path, release.work))
    assert ours == theirs


def test_two_runs_at_once_go_on_with_a_killed_one_and_nobody_reports_twice(killed, files):
    """With the operating system's noise a second draw would differ: the kept bytes and one model show that there is none."""
    once = killed["system"]
    both = [start("run", once.config, "--work", once.work, "--workers", "2", "--json") for _ in range(2)]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    summaries = [json.loads(out) for out, _ in said]
    assert {name: reports(once.work)[name] for name in once.kept} == once.kept
    assert len(reports(once.work)) == N_SHARDS
    assert learned(once.work, summaries[0]) == learned(once.work, summaries[1])
    n_rows = sum(len(path.read_text().splitlines()) - 1 for path in files.glob("rides-[0-9]*.csv"))
    assert {summary["n_private"] for summary in summaries} == {n_rows}  # each row of each file is a person
