"""Whole runs that mend a public model: from raw files to a page, found again, killed and resumed, and private labels nowhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import duckdb
import numpy as np
import polars as pl
import pytest
from chain import fares, rides
from search import Canary, found
from whole_runs import MENDED, Killed, learned, reports, rides_toml, run, steps

from flows.command.cli import main
from flows.command.running import _show
from ldptree.protocol.protocol import Protocol
from schemas.config import load

pytestmark = [pytest.mark.server, pytest.mark.slow]

RUNS = ([], ["correction.max_protocol_bytes=1000"])
"""A good one; a public model that is too large."""
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


@pytest.fixture(scope="module")
def whole(connected, tmp_path_factory):
    """A scored run over 1,500 rides: its configuration file, work folder and summary."""
    folder = tmp_path_factory.mktemp("rides")
    config = rides_toml(
        folder / "rides.toml",
        str(rides(folder / "rides.csv", 1500, 1)),
        **MENDED | {"correction": {"base": "forest"}},
        simulation={"noise_seed": 11},
        evaluation={"redraws": 2},
    )
    config.write_text(config.read_text().replace("evaluate = false", "evaluate = true"))
    return config, folder / "work", run(load(config), folder / "work")


def said(capsys, *words):
    """What the command printed on standard output."""
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    assert not end.value.code
    return capsys.readouterr().out


def test_a_run_says_its_scores_beside_every_rival_and_what_it_found(whole, capsys):
    _, work, summary = whole
    assert summary["estimator"] == "correction"
    assert (summary["base"], summary["base_trees"]) == ("forest", 200)
    assert summary["lam"] is None
    assert summary["metrics"].keys() >= {"accuracy", "auc"}
    rivals = {"public_only", "no_noise", "majority", "public_tree", "public_forest", "non_private"}
    assert summary["baselines"].keys() == rivals
    assert summary["metrics"]["accuracy"] > summary["baselines"]["majority"]["accuracy"]
    kept = json.loads((work / "runs" / summary["run"] / "run.json").read_text())
    assert kept["says"] == summary["says"] != ""
    _show(summary, temporary=False)
    assert summary["says"] in " ".join(capsys.readouterr().out.split())
    assert "paid" in (work / "runs" / summary["run"] / "report.html").read_text()


def test_the_warehouse_names_the_levels_of_the_error(whole):
    _, work, summary = whole
    protocol = Protocol.from_json((work / "runs" / summary["run"] / "protocol.json").read_text())
    with duckdb.connect(str(work / "curator" / "warehouse.duckdb"), read_only=True) as warehouse:
        for view in ("totals", "cells"):
            labels = {row[0] for row in warehouse.execute(f"SELECT DISTINCT label FROM {view}").fetchall()}
            assert labels == {f"{level:g}" for level in protocol.classes}
        rows = warehouse.execute("SELECT count(*) FROM totals").fetchall()
    assert rows == [(protocol.n_cells * protocol.n_classes,)]


def test_a_second_run_finds_every_step(whole):
    config, work, first = whole
    again = run(load(config), work)
    assert steps(again, "computed") == set()
    assert learned(work, again) == learned(work, first)
    assert (again["metrics"], again["says"]) == (first["metrics"], first["says"])


@pytest.mark.parametrize(
    ("change", "first"),
    [
        ("correction.base=tree", "partition"),
        ("correction.label_levels=5", "partition"),
        ("evaluation.redraws=3", "evaluate"),
    ],
)
def test_a_plan_says_what_a_change_would_compute(whole, capsys, change, first):
    config, work, _ = whole
    planned = json.loads(said(capsys, "run", config, "--work", work, "--plan", "--json", "--set", change))
    to_do = [line for line in planned["steps"] if line["state"] != "cached"]
    assert to_do[0]["name"] == first
    assert to_do[0]["why"].startswith("changed: ")
    assert bool(planned["epsilon_to_spend"]) == (first == "partition")


def test_the_model_is_exported_scored_explained_and_kept(whole, capsys, tmp_path):
    config, work, summary = whole
    model, rows = summary["model"], tmp_path / "rows.parquet"
    pl.read_csv(load(config).dataset.path[0]).select("miles", "hour", "firm").write_parquet(rows)
    said(capsys, "predict", model, rows, "--out", tmp_path / "out.parquet")
    table = pl.read_parquet(tmp_path / "out.parquet")
    shares = ("probability of card", "public probability of card")
    assert {"prediction", "public prediction", *shares} <= set(table.columns)
    select = said(capsys, "export", model, "--to", "sql", "--table", "rows")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW rows AS FROM read_parquet('{rows}')")
        scored = connection.execute(select).fetchnumpy()
    for name in shares:
        there = scored[name.replace("probability of", "probability").replace(" ", "_")]
        np.testing.assert_allclose(there, table[name].to_numpy(), atol=1e-12)
    assert said(capsys, "export", model, "--to", "json").strip() == open(model).read().strip()  # noqa: PTH123, SIM115
    assert said(capsys, "export", model, "--to", "dot").count("->") == 2 * (summary["cells"] - 1)
    told = said(capsys, "explain", model, "--work", work)
    for words in (
        "made by prune",
        "from public: ",
        "made by partition",
        'with estimator = "correction"',
        '"base": "forest"',
    ):
        assert words in told
    # Runs that found the same artifacts are copies of one: `gc` keeps the newest.
    copies = len(list((work / "runs").iterdir())) - 1
    assert said(capsys, "gc", "--work", work, "--keep", "9", "--dry-run").startswith(f"{copies} files")


@pytest.mark.slow
def test_a_killed_run_goes_on_and_learns_what_an_undisturbed_one_learns(files, mended_release, tmp_path):
    once = Killed.run(files, tmp_path / "killed", after_shards=3, is_seeded=True, **MENDED)
    assert (once.code, len(once.kept)) == (-9, 3)
    again = run(load(once.config), once.work)
    assert {name: reports(once.work)[name] for name in once.kept} == once.kept
    assert learned(once.work, again) == learned(mended_release.work, mended_release.summary)


@pytest.mark.slow
def test_a_run_of_three_classes_is_told_class_by_class_and_by_nobody(connected, tmp_path, capsys, api):
    """One private person in nine pays by what nobody declared: it is "outside", and stays with them."""
    n, rng = 2400, np.random.default_rng(4)
    is_closed = np.arange(n) % 3 != 0
    paid = np.where(rng.random(n) < 0.5, "card", np.where(rng.random(n) < 0.5, "cash", "app"))
    paid = np.where(is_closed & (rng.random(n) < 0.5), "app", paid).astype(object)
    paid[7::27] = BAD.value  # of three in a row the first is public
    path = rides(tmp_path / "rides.csv", n, 1, paid=paid)
    config = rides_toml(
        tmp_path / "rides.toml",
        str(path),
        **MENDED | {"model": {"estimator": "correction"}, "privacy": {"epsilon": 4.0}},
        dataset={"classes": ["app", "card", "cash"]},
        evaluation={"redraws": 2},
        simulation={"noise_seed": 11},
    )
    text = config.read_text().replace("evaluate = false", "evaluate = true")
    config.write_text(text.replace('positive = "card"\n', ""))
    work = tmp_path / "work"
    summary = run(load(config), work)
    assert summary["metrics"]["accuracy"] > summary["baselines"]["public_only"]["accuracy"] + 0.05
    assert "share of app corrected by +" in summary["says"]
    assert steps(run(load(config), work), "computed") == set()
    with duckdb.connect(str(work / "curator" / "warehouse.duckdb"), read_only=True) as warehouse:
        told = warehouse.execute("SELECT DISTINCT error_of FROM totals ORDER BY ALL").fetchall()
    assert told == [("app",), ("card",), ("cash",)]
    model, rows = summary["model"], tmp_path / "rows.parquet"
    pl.read_csv(path).select("miles", "hour", "firm").write_parquet(rows)
    said(capsys, "predict", model, rows, "--out", tmp_path / "out.parquet")
    table = pl.read_parquet(tmp_path / "out.parquet")
    select = said(capsys, "export", model, "--to", "sql", "--table", "rows")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW rows AS FROM read_parquet('{rows}')")
        scored = connection.execute(select).fetchnumpy()
    for name in ("app", "card", "cash"):
        shares = table[f"probability of {name}"].to_numpy()
        np.testing.assert_allclose(scored[f"probability_{name}"], shares, atol=1e-12)
    assert "share of paid = app +" in said(capsys, "export", model, "--to", "dot")
    assert "made by partition" in said(capsys, "explain", model, "--work", work)
    assert all(found((BAD,), work / "holders").values())
    outside = [place for place in work.iterdir() if place.name != "holders"]
    assert not any(found((BAD,), *outside, api.home).values())


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
    config = rides_toml(
        folder / "fares.toml",
        str(data),
        dataset={"on_bad_rows": "quarantine"},
        **MENDED,
        simulation={"noise_seed": 11},
    )
    config.write_text(config.read_text().replace('positive = "card"\n', ""))
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
    assert codes == [0, 2]
    work = folder / "work"
    assert all(found((LABEL, BAD), work / "holders").values())
    assert not (work / "simulation").exists()
    assert "Traceback" in printed
    assert "max_protocol_bytes" in printed
    (folder / "printed.txt").write_text(printed)
    outside = [path for path in work.iterdir() if path.name != "holders"]
    assert not any(found((LABEL, BAD), *outside, folder / "printed.txt", api.home).values())
