"""Whole runs whose label is a number: from raw files to a page, found again, killed and resumed, and private labels nowhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import duckdb
import numpy as np
import polars as pl
import pytest
from chain import fares
from search import Canary, found
from whole_runs import KILLED, learned, reports, rides_toml, run, steps

from flows.command.cli import main
from schemas.config import load

pytestmark = pytest.mark.server

MODEL = {"estimator": "lpdt", "depth": 3}
N_SHARDS = 6
RUNS = (
    [],
    ['dataset.on_bad_rows="stop"'],
    ["dataset.ranges={paid = [0, 1000]}"],
    ["model.label_range=[0, 9]"],
)
"""A good one; a label that is no number; an expectation that labels fail; a range that does not cover the public ones."""
IN_ONE_PROCESS = """
import json, sys
from flows.command.cli import main

def code(words):
    try:
        main(words)
    except SystemExit as end:
        return end.code or 0

codes = [code(words) for words in json.loads(sys.argv[1])]
open(sys.argv[2], "w").write(json.dumps(codes))
"""
LABEL = Canary("label", 7654321.25)
BAD = Canary("bad label", "CANARYBAD")


def fares_toml(path, files, *, evaluate=True, dataset=None, **tables):
    """The configuration of `chain.fares` as a file."""
    tables = {"model": MODEL, "simulation": {"noise_seed": 11}, "evaluation": {"redraws": 2}} | tables
    rides_toml(path, str(files), dataset=dataset or {}, **tables)
    text = path.read_text().replace('positive = "card"\n', "")
    path.write_text(text.replace("evaluate = false", f"evaluate = {str(evaluate).lower()}"))
    return path


@pytest.fixture(scope="module")
def whole(connected, tmp_path_factory):
    """A scored run over 1,500 fares: its configuration file, work folder and summary."""
    folder = tmp_path_factory.mktemp("fares")
    config = fares_toml(folder / "fares.toml", fares(folder / "fares.csv", 1500, 1))
    return config, folder / "work", run(load(config), folder / "work")


def said(capsys, *words):
    """What the command printed on standard output."""
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    assert not end.value.code
    return capsys.readouterr().out


def test_a_run_says_its_errors_beside_every_rival(whole):
    _, work, summary = whole
    assert summary["metrics"].keys() == {"mse", "mae", "r2"}
    assert {"public_only", "no_noise", "constant", "public_tree", "public_forest", "non_private"} == summary[
        "baselines"
    ].keys()
    assert summary["metrics"]["mse"] < summary["baselines"]["constant"]["mse"]
    page = (work / "runs" / summary["run"] / "report.html").read_text()
    assert "paid" in page
    with duckdb.connect(str(work / "curator" / "warehouse.duckdb"), read_only=True) as warehouse:
        labels = {row[0] for row in warehouse.execute("SELECT DISTINCT label FROM totals").fetchall()}
    protocol = json.loads((work / "runs" / summary["run"] / "protocol.json").read_text())
    assert labels == {f"{level:g}" for level in protocol["classes"]}


def test_a_second_run_finds_every_step(whole):
    config, work, first = whole
    again = run(load(config), work)
    assert steps(again, "computed") == set()
    assert learned(work, again) == learned(work, first)
    assert again["metrics"] == first["metrics"]


@pytest.mark.parametrize(
    ("change", "first"),
    [("model.lam=0.5", "prune"), ("model.rho=0.4", "partition"), ("model.label_range=[0, 100]", "scale")],
)
def test_a_plan_says_what_a_change_would_compute(whole, capsys, change, first):
    config, work, _ = whole
    planned = json.loads(said(capsys, "run", config, "--work", work, "--plan", "--json", "--set", change))
    to_do = [line for line in planned["steps"] if line["state"] != "cached"]
    assert to_do[0]["name"] == first
    assert to_do[0]["why"].startswith("changed: ")
    assert bool(planned["epsilon_to_spend"]) == (first != "prune")


def test_the_model_is_exported_scored_and_explained(whole, capsys, tmp_path):
    config, work, summary = whole
    model, rows = summary["model"], tmp_path / "rows.parquet"
    pl.read_csv(load(config).dataset.path[0]).select("miles", "hour", "firm").write_parquet(rows)
    said(capsys, "predict", model, rows, "--out", tmp_path / "out.parquet")
    table = pl.read_parquet(tmp_path / "out.parquet")
    assert table.columns == ["prediction", "lower", "upper"]
    select = said(capsys, "export", model, "--to", "sql", "--table", "rows")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW rows AS FROM read_parquet('{rows}')")
        scored = connection.execute(select).fetchnumpy()
    for name in table.columns:
        np.testing.assert_array_equal(scored[name], table[name].to_numpy())
    assert said(capsys, "export", model, "--to", "json").strip() == open(model).read().strip()  # noqa: PTH123, SIM115
    assert said(capsys, "export", model, "--to", "dot").count("->") == 2 * (summary["cells"] - 1)
    told = said(capsys, "explain", model, "--work", work)
    for words in (
        "made by prune",
        "from scaled: ",
        "made by partition",
        '"rho": 0.5',
        "with numeric = true",
    ):
        assert words in told


@pytest.mark.slow
def test_a_killed_run_goes_on_and_learns_what_an_undisturbed_one_learns(connected, tmp_path):
    fares(tmp_path / "data" / "public.csv", 300, 99, zone=["open"] * 300)
    for number in range(N_SHARDS):
        fares(tmp_path / "data" / f"{number}.csv", 100, number, zone=["closed"] * 100)
    config = fares_toml(tmp_path / "fares.toml", tmp_path / "data" / "*.csv", evaluate=False)
    words = ["run", config, "--work", tmp_path / "killed", "--workers", "1"]
    script = [sys.executable, "-c", KILLED.format(shards=3), *map(str, words)]
    assert subprocess.run(script, check=False, capture_output=True, env=os.environ).returncode == -9
    kept = reports(tmp_path / "killed")
    assert len(kept) == 3
    resumed, whole = (run(load(config), tmp_path / name) for name in ("killed", "undisturbed"))
    assert {name: reports(tmp_path / "killed")[name] for name in kept} == kept
    assert learned(tmp_path / "killed", resumed) == learned(tmp_path / "undisturbed", whole)


@pytest.fixture(scope="module")
def told(connected, tmp_path_factory):
    """Runs with labels planted in private rows, a good one and failed ones: their folder and what they printed."""
    folder = tmp_path_factory.mktemp("canaries")
    rng = np.random.default_rng(3)
    paid = rng.normal(20, 5, 900).round(2).astype(str).tolist()
    for row in range(1, 900, 100):  # of three in a row the first is public
        paid[row + (row % 3 == 0)] = str(LABEL.value)
    paid[7] = BAD.value
    data = fares(folder / "fares.csv", 900, 3, paid=paid)
    bad_rows = {"on_bad_rows": "quarantine"}
    config = fares_toml(folder / "fares.toml", data, evaluate=False, dataset=bad_rows)
    wanted = []
    for more in RUNS:
        assignments = [word for key in more for word in ("--set", key)]
        wanted.append(["run", str(config), "--work", str(folder / "work"), "--debug", *assignments])
    done = subprocess.run(
        [sys.executable, "-c", IN_ONE_PROCESS, json.dumps(wanted), str(folder / "codes.json")],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ,
    )
    printed = json.loads((folder / "codes.json").read_text()), done.stdout + done.stderr
    return folder, printed


@pytest.mark.slow
def test_private_labels_are_in_the_holders_zone_alone(told, api):
    folder, (codes, printed) = told
    assert codes == [0, 3, 3, 2]
    work = folder / "work"
    assert all(found((LABEL, BAD), work / "holders").values())
    assert not (work / "simulation").exists()
    assert "Traceback" in printed
    (folder / "printed.txt").write_text(printed)
    outside = [path for path in work.iterdir() if path.name != "holders"]
    assert not any(found((LABEL, BAD), *outside, folder / "printed.txt", api.home).values())


@pytest.mark.slow
def test_nothing_is_said_of_what_private_labels_add_up_to(told):
    folder, _ = told
    rows = pl.read_csv(folder / "fares.csv").filter(
        (pl.col("zone") == "closed") & (pl.col("paid") != BAD.value)
    )
    paid = rows["paid"].cast(pl.Float64)
    sums = (Canary("mean", float(paid.mean())), Canary("sum", float(paid.sum())))
    outside = [path for path in (folder / "work").iterdir() if path.name != "holders"]
    assert not any(found(sums, *outside).values())
