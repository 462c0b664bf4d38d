"""What a terminal shows of a step with many parts: how many are done, and when the others will be."""

import contextlib

import pytest

from flows.command.terminal import StepList, describe_progress
from tasks.progress import StepTime, Timeline, advance, expect, watch


@pytest.mark.parametrize(
    ("done", "found", "failed", "says"),
    [
        (0, 0, 0, "0 of 600 cells"),
        (132, 0, 0, "132 of 600 cells, about 4 min left"),
        (132, 132, 0, "132 of 600 cells"),
        (599, 0, 3, "599 of 600 cells (3 failed), about 1 s left"),
        (400, 300, 0, "400 of 600 cells, about 2 min left"),
    ],
)
def test_the_time_left_is_told_by_what_was_computed(done, found, failed, says):
    entry = StepTime("cell", shards=600, shards_done=done, n_reused=found, failed=failed)
    assert describe_progress(entry, 66.0, "cells", 0.0) == says


def test_a_step_of_one_part_has_no_count_and_its_time_left_is_told_by_its_share():
    assert describe_progress(StepTime("leaks"), 3.0, "shards", 0.0) == ""
    assert describe_progress(StepTime("models"), 20.0, "shards", 0.4) == "about 30 s left"
    assert describe_progress(StepTime("models"), 20.0, "shards", 1.0) == ""


@pytest.mark.parametrize(("fault", "says"), [(KeyboardInterrupt, "interrupted"), (ValueError, "failed")])
def test_a_step_that_somebody_interrupted_is_not_said_to_have_failed(capsys, fault, says):
    with StepList("a run", ["ingest"]), contextlib.suppress(fault), watch("ingest"):
        raise fault
    assert capsys.readouterr().err.split("\n")[1].endswith(f" s  {says}")


def test_a_step_that_is_mapped_in_each_of_two_rounds_is_told_once_a_round(capsys):
    with StepList("a run", ["perturb"]):
        for _ in range(2):
            expect("perturb", 3)
            for _ in range(3):
                with watch("perturb"):
                    pass
            with watch("aggregate"):
                pass
    lines = [line.split("  ") for line in capsys.readouterr().err.splitlines()[1:]]
    assert [(line[0], line[-1]) for line in lines if line[0].startswith("perturb")] == [
        ("perturb", "computed, 3 shards"),
        ("perturb 2", "computed, 3 shards"),
    ]


def test_a_log_without_a_terminal_tells_at_each_quarter_what_is_left_of_a_long_step(capsys, monkeypatch):
    monkeypatch.setattr(Timeline, "running", lambda _, name: {"models": 20.0, "split": 1.0}[name])
    with StepList("a plan", ["models", "split"]):
        for step in ("models", "split"):
            with watch(step):
                for fraction in (0.1, 0.25, 0.3, 0.5, 1.0):
                    advance(fraction)
    said = [line for line in capsys.readouterr().err.splitlines() if "left" in line]
    assert said == [
        "models       20.0 s  25 %, about 60 s left",
        "models       20.0 s  50 %, about 20 s left",
    ]
