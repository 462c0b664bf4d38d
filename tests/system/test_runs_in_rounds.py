"""Whole runs in rounds, with a Prefect server: run, run again, predict, export, explain, and what each says for itself."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest
from chain import shells
from whole_runs import PATIENCE, reports, start, steps

pytestmark = [pytest.mark.server, pytest.mark.slow]

TOML = """
name = "shells"
seed = 7
evaluate = false
[dataset]
name = "shells"
path = "{path}"
target = "rings"
public = "zone = 'open'"
test_fraction = 0.0
[model]
estimator = "histoftree"
label_range = [0, 30]
t = 2
p = 1
[features]
protects = {{ weight = "hides" }}
[privacy]
epsilon = 2.0
"""


def said(*words):
    """Exit code, output and errors of the installed command."""
    process = start(*words)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


@pytest.fixture(scope="module")
def twice(api, tmp_path_factory):
    """A release, and the same command again: folder, both summaries, and the reports after the first."""
    folder = tmp_path_factory.mktemp("rounds")
    (folder / "shells.toml").write_text(TOML.format(path=shells(folder / "shells.parquet", 400, 1)))
    command = ("run", folder / "shells.toml", "--work", folder / "work", "--json")
    with api.connected():
        code, out, err = said(*command)
        assert code == 0, err
        first, before = json.loads(out), reports(folder / "work")
        code, out, err = said(*command)
        assert code == 0, err
    return folder, first, json.loads(out), before


def test_two_rounds_are_one_epsilon(twice):
    folder, first, _, before = twice
    assert [one["n_asked"] for one in first["rounds"]] == [first["n_private"]] * 2
    assert first["epsilon_spent"] <= first["epsilon"] == first["largest_spend"] == 2.0
    assert len(before) == 2
    assert {"show", "partition", "perturb", "aggregate", "prune", "report"} <= steps(first, "computed")
    run = folder / "work" / "runs" / first["run"]
    assert len(json.loads((run / "questions.json").read_text())) == 2
    assert "What was asked, round by round" in (run / "page.html").read_text()
    assert not (folder / "work" / "simulation").exists()


def test_the_same_command_again_asks_nobody(twice):
    folder, first, second, before = twice
    assert steps(second, "computed") == set()
    assert reports(folder / "work") == before
    assert second["largest_spend"] == first["largest_spend"]
    models = [(folder / "work" / "runs" / one["run"] / "model.json").read_bytes() for one in (first, second)]
    assert models[0] == models[1]


def test_its_model_predicts_and_is_exported_as_json_but_not_as_one_tree(twice):
    folder, first, _, _ = twice
    code, _, err = said(
        "predict", first["model"], folder / "shells.parquet", "--out", folder / "answers.parquet"
    )
    assert code == 0, err
    answers = pq.read_table(folder / "answers.parquet")
    assert answers.num_rows == 400
    code, out, _ = said("export", first["model"], "--to", "json")
    assert code == 0
    assert json.loads(out)["kind"] == "ldptree model of public features"
    for to in ("sql", "dot"):
        code, _, err = said("export", first["model"], "--to", to)
        assert code != 0
        assert f"--to {to}: a histoftree model is not one tree; write json" in " ".join(err.split())


def test_where_it_came_from_is_explained_and_garbage_leaves_what_was_answered(twice):
    folder, first, _, before = twice
    code, out, err = said("explain", first["model"], "--work", folder / "work")
    assert code == 0, err
    assert "made by prune " in out
    for step in ("aggregate", "partition", "perturb", "show", "cut", "split", "read"):
        assert f"─ {step} " in out
    code, out, err = said(
        "explain", folder / "work" / "runs" / first["run"] / "questions.json", "--work", folder / "work"
    )
    assert code == 0, err
    assert "made by aggregate " in out
    code, _, err = said("gc", "--work", folder / "work", "--keep", "0")
    assert code == 0, err
    assert reports(folder / "work") == before
