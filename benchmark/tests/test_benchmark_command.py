"""A whole benchmark from the command line: killed and gone on with, with a set that is not there, a claim that is not held."""

import json
import os
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-m", "flows.program", "benchmark"]
SUITE = """
title = "Three methods"
epsilons = [4]
repetitions = 4
datasets = [{datasets}]

[laws.hidden]
law = "hidden-column"
parameters = {{ n_test = 2000 }}

[methods.correction]
learner = "correction"

[methods.forest]
learner = "public_forest"

[methods.majority]
learner = "majority"
"""
CLAIMS = """
from ldptree_benchmark.results.claims import Claims

claims = Claims()


@claims(4)
def _(s):
    "the majority is right nine times of ten"
    assert s.show(s.mean("majority", "hidden")) >= 0.9
"""


def run(*words, **environment):
    known = {key: value for key, value in os.environ.items() if key != "LDPTREE_DATA"} | environment
    return subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, text=True, env=known, check=False
    )


def records(work):
    return {path: path.stat().st_mtime_ns for path in (work / "simulation" / "cell").glob("*.json")}


def test_a_killed_benchmark_goes_on_and_computes_no_cell_twice(tmp_path):
    suite, work = tmp_path / "three.toml", tmp_path / "work"
    suite.write_text(SUITE.format(datasets=""))
    suite.with_suffix(".py").write_text(CLAIMS)
    process = subprocess.Popen([*COMMAND, suite, "--work", work, "--workers", "1"], stderr=subprocess.DEVNULL)
    patience = time.monotonic() + 200
    while len(records(work)) < 3 and time.monotonic() < patience:
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = records(work)
    assert 3 <= len(before) < 12
    ended = run(suite, "--work", work, "--json")
    assert ended.returncode == 1, ended.stderr  # the claim is not held
    after = records(work)
    assert len(after) == 12
    assert {path: after[path] for path in before} == before
    summary = json.loads(ended.stdout)
    assert (summary["cells"], summary["failed"]) == (12, 0)
    assert summary["claims"][0]["held"] is False
    table = pl.read_parquet(summary["results"])
    assert table["score"].null_count() == 0
    assert table["score"].is_between(0.3, 1.0).all()


def test_a_set_that_is_not_there_is_said_and_the_others_stand(tmp_path):
    suite, work = tmp_path / "three.toml", tmp_path / "work"
    suite.write_text(SUITE.format(datasets='"diabetes"').replace("repetitions = 4", "repetitions = 1"))
    ended = run(suite, "--work", work, "--methods", "majority,forest", "--json")
    summary = json.loads(ended.stdout)
    assert (summary["cells"], summary["failed"]) == (4, 2)
    assert "Set LDPTREE_DATA" in summary["reasons"][0]
    other = tmp_path / "data" / "diabetes" / "Healthcare-Diabetes.csv"
    other.parent.mkdir(parents=True)
    other.write_text("Id,Outcome\n1,0\n")
    ended = run(suite, "--work", work, "--methods", "majority", "--json", LDPTREE_DATA=str(tmp_path / "data"))
    assert "another file than the catalogue states" in json.loads(ended.stdout)["reasons"][0]
