"""Whole runs of numbers and of corrected public models: from raw files to a page, found again, and private labels nowhere. The
run whose label is a number is the fast suite's one whole run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from chain import fares, rides
from first_fast import first_fast
from search import Canary, found
from whole_runs import MENDED, learned, rides_toml, run, steps

from flows.command.main import main
from flows.command.running import _show
from ldptree.protocol.protocol import Protocol
from schemas.config import load

pytestmark = pytest.mark.server

SEEDED = {"simulation": {"noise_seed": 11}}
NUMBERS: dict[str, Any] = {"dataset": {"positive": None}, "model": {"estimator": "lpdt", "depth": 3}}


@dataclass(frozen=True)
class Family:
    """What whole runs of a family are made of, and what is said of them.

    Attributes:
        make: rows.
        tables: of the configuration.
        summary: what the summary says among other things.
        beats: a metric, the baseline that is beaten by it, and 1 where more is better, else -1.
        rivals: the baselines.
        first: the step that a change computes first, by the change; the last is a change that asks nobody.
        columns: of predictions, by their names in SQL.
        explained: what `explain` says of the model.
    """

    make: Callable[..., Path]
    tables: dict[str, Any]
    summary: dict[str, Any]
    beats: tuple[str, str, int]
    rivals: set[str]
    first: dict[str, str]
    columns: dict[str, str]
    explained: tuple[str, ...] = field(default=())


FAMILIES = {
    "lpdt": Family(
        fares,
        NUMBERS,
        {"estimator": "lpdt"},
        ("rmse", "constant", -1),
        {"public_only", "no_noise", "constant", "public_tree", "public_forest", "non_private"},
        {"model.rho=0.4": "partition", "model.label_range=[0, 100]": "scale", "model.lam=0.5": "prune"},
        {name: name for name in ("prediction", "mean_lower", "mean_upper")},
        ("─ scale ", "rho 0.5"),
    ),
    "correction": Family(
        rides,
        {"model": MENDED["model"] | {"base": "forest"}},
        {"estimator": "correction", "base": "forest", "base_trees": 200, "lam": None},
        ("accuracy", "majority", 1),
        {"public_only", "no_noise", "majority", "public_tree", "public_forest", "non_private"},
        {
            "model.base=tree": "partition",
            "model.label_levels=5": "partition",
            "evaluation.redraws=3": "evaluate",
        },
        {
            "probability_card": "probability of card",
            "public_probability_card": "public probability of card",
        },
        ("─ read ", "estimator: correction", "base forest"),
    ),
}


@dataclass(frozen=True)
class Whole:
    """A scored run over 1,500 rows: its family, configuration file, work folder and summary."""

    family: Family
    config: Path
    work: Path
    summary: dict[str, Any]

    @property
    def folder(self) -> Path:
        return self.work / "runs" / self.summary["run"]


@pytest.fixture(scope="module", params=first_fast("lpdt", "correction"))
def whole(request, connected, tmp_path_factory):
    family, folder = FAMILIES[request.param], tmp_path_factory.mktemp(request.param)
    rows = family.make(folder / "rows.csv", 1500, 1)
    tables = SEEDED | family.tables | {"evaluation": {"redraws": 1}}
    config = rides_toml(folder / "run.toml", str(rows), evaluate=True, **tables)
    return Whole(family, config, folder / "work", run(load(config), folder / "work"))


def said(capsys, *words):
    """What the command printed on standard output."""
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    assert not end.value.code
    return capsys.readouterr().out


def assert_sql_says_what_predict_says(capsys, folder, model, data, columns):
    """Of the rows in `data`; `columns` of the predictions by their names in SQL."""
    rows = folder / "rows.parquet"
    pl.read_csv(data).select("miles", "hour", "firm").write_parquet(rows)
    said(capsys, "predict", model, rows, "--out", folder / "out.parquet")
    select = said(capsys, "export", model, "--to", "sql", "--table", "rows")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW rows AS FROM read_parquet('{rows}')")
        scored = connection.execute(select).fetchnumpy()
    table = pl.read_parquet(folder / "out.parquet")
    for in_sql, name in columns.items():
        np.testing.assert_allclose(scored[in_sql], table[name].to_numpy(), rtol=1e-12, atol=1e-12)


def test_a_run_says_its_scores_beside_every_rival_and_what_it_found(whole, capsys):
    family, summary = whole.family, whole.summary
    assert summary | family.summary == summary
    metric, rival, sign = family.beats
    assert summary["baselines"].keys() == family.rivals
    assert sign * summary["metrics"][metric] > sign * summary["baselines"][rival][metric]
    assert json.loads((whole.folder / "run.json").read_text())["details"] == summary["details"]
    _show(summary, is_label_declared=False, temporary=False)
    assert summary["details"] in capsys.readouterr().out
    assert "paid" in (whole.folder / "page.html").read_text()


def test_the_warehouse_names_the_levels_of_the_label(whole):
    protocol = Protocol.from_json((whole.folder / "protocol.json").read_text())
    with duckdb.connect(str(whole.work / "curator" / "warehouse.duckdb"), read_only=True) as warehouse:
        for view in ("totals", "cells"):
            labels = {row[0] for row in warehouse.execute(f"SELECT DISTINCT label FROM {view}").fetchall()}
            assert labels == {f"{level:g}" for level in protocol.classes}
        rows = warehouse.execute("SELECT count(*) FROM totals").fetchall()
    assert rows == [(protocol.n_cells * protocol.n_classes,)]


def test_a_second_run_finds_every_step(whole):
    again = run(load(whole.config), whole.work)
    assert steps(again, "computed") == set()
    assert learned(whole.work, again) == learned(whole.work, whole.summary)
    assert all(again.get(key) == whole.summary.get(key) for key in ("metrics", "details"))


def test_a_plan_says_what_a_change_would_compute(whole, capsys):
    words = ("run", whole.config, "--work", whole.work, "--plan", "--json", "--set")
    for change, first in whole.family.first.items():
        planned = json.loads(said(capsys, *words, change))
        to_do = next(line for line in planned["steps"] if line["state"] != "cached")
        assert (to_do["name"], to_do["why"].startswith("changed: ")) == (first, True)
        assert bool(planned["epsilon_to_spend"]) == (first not in ("prune", "evaluate"))


def test_the_model_is_exported_scored_explained_and_kept(whole, capsys, tmp_path):
    model, data = Path(whole.summary["model"]), load(whole.config).dataset.path[0]
    assert_sql_says_what_predict_says(capsys, tmp_path, model, data, whole.family.columns)
    assert said(capsys, "export", model, "--to", "json").strip() == model.read_text().strip()
    assert said(capsys, "export", model, "--to", "dot").count("->") == 2 * (whole.summary["cells"] - 1)
    told = said(capsys, "explain", model, "--work", whole.work)
    for words in ("made by prune", "─ partition ", *whole.family.explained):
        assert words in told
    # Runs that found the same artifacts are copies of one: `gc` keeps the newest.
    copies = len(list((whole.work / "runs").iterdir())) - 1
    assert said(capsys, "gc", "--work", whole.work, "--keep", "9", "--dry-run").startswith(f"{copies} files")


LABEL = Canary("label", 7654321.25)
BAD = Canary("bad label", "CANARYBAD")


@pytest.mark.slow
def test_a_run_of_three_classes_is_told_class_by_class_and_by_nobody(connected, tmp_path, capsys, api):
    """One private person in nine pays by what nobody declared: it is "outside", and stays with them."""
    n, rng = 2400, np.random.default_rng(4)
    is_closed = np.arange(n) % 3 != 0
    paid = np.where(rng.random(n) < 0.5, "card", np.where(rng.random(n) < 0.5, "cash", "app"))
    paid = np.where(is_closed & (rng.random(n) < 0.5), "app", paid).astype(object)
    paid[7::27] = BAD.value  # of three in a row the first is public
    path = rides(tmp_path / "rides.csv", n, 1, paid=paid)
    tables = MENDED | SEEDED | {"model": {"estimator": "correction"}, "privacy": {"epsilon": 4.0}}
    tables |= {
        "dataset": {"classes": ["app", "card", "cash"], "positive": None},
        "evaluation": {"redraws": 1},
    }
    config = rides_toml(tmp_path / "rides.toml", str(path), evaluate=True, **tables)
    work = tmp_path / "work"
    summary = run(load(config), work)
    assert summary["metrics"]["accuracy"] > summary["baselines"]["public_only"]["accuracy"] + 0.05
    assert "of private rows to be “app”. Their reports say" in summary["details"]
    assert steps(run(load(config), work), "computed") == set()
    with duckdb.connect(str(work / "curator" / "warehouse.duckdb"), read_only=True) as warehouse:
        told = warehouse.execute("SELECT DISTINCT error_of FROM totals ORDER BY ALL").fetchall()
    assert told == [("app",), ("card",), ("cash",)]
    columns = {f"probability_{name}": f"probability of {name}" for name in ("app", "card", "cash")}
    assert_sql_says_what_predict_says(capsys, tmp_path, summary["model"], path, columns)
    assert r"share of \"app\" +" in said(capsys, "export", summary["model"], "--to", "dot")
    assert "─ partition " in said(capsys, "explain", summary["model"], "--work", work)
    assert all(found((BAD,), work / "holders").values())
    outside = [place for place in work.iterdir() if place.name != "holders"]
    assert not any(found((BAD,), *outside, api.home).values())


IN_ONE_PROCESS = """
import json, sys
from flows.command.main import main

def code(words):
    try:
        main(words)
    except SystemExit as end:
        return end.code or 0

codes = [code(words) for words in json.loads(sys.argv[1])]
open(sys.argv[2], "w").write(json.dumps(codes))
"""
FAULTS = {
    "lpdt": {
        'dataset.on_bad_rows="stop"': 3,
        "dataset.ranges={paid = [0, 1000]}": 3,
        "model.label_range=[0, 9]": 2,
    },
    "correction": {"model.max_protocol_bytes=1000": 2},
}
"""A label that is no number; an expectation that labels fail; a range that does not cover the public ones; a public model that is
too large: what each ends with.
"""


@pytest.fixture(scope="module")
def told(connected, tmp_path_factory):
    """Runs with labels planted in private rows, good ones and failed ones: their folder and what they printed."""
    folder = tmp_path_factory.mktemp("canaries")
    rng = np.random.default_rng(3)
    paid = rng.normal(20, 5, 900).round(2).astype(str).tolist()
    for row in range(1, 900, 100):  # of three in a row the first is public
        paid[row + (row % 3 == 0)] = str(LABEL.value)
    paid[7] = BAD.value
    data, wanted, codes = fares(folder / "fares.csv", 900, 3, paid=paid), [], []
    for family, tables in (("lpdt", NUMBERS), ("correction", MENDED)):
        dataset = {"on_bad_rows": "quarantine", "positive": None}
        config = rides_toml(folder / f"{family}.toml", str(data), **tables | SEEDED | {"dataset": dataset})
        command = ["run", str(config), "--work", str(folder / "work"), "--debug"]
        wanted += [command, *([*command, "--set", change] for change in FAULTS[family])]
        codes += [0, *FAULTS[family].values()]
    script = [sys.executable, "-c", IN_ONE_PROCESS, json.dumps(wanted), str(folder / "codes.json")]
    done = subprocess.run(script, check=True, capture_output=True, text=True, env=os.environ)
    assert json.loads((folder / "codes.json").read_text()) == codes
    (folder / "printed.txt").write_text(done.stdout + done.stderr)
    return folder


@pytest.mark.slow
def test_private_labels_are_in_the_holders_zone_alone(told, api):
    work, printed = told / "work", told / "printed.txt"
    assert all(found((LABEL, BAD), work / "holders").values())
    assert not (work / "simulation").exists()
    assert "Traceback" in printed.read_text()
    assert "max_protocol_bytes" in printed.read_text()
    outside = [path for path in work.iterdir() if path.name != "holders"]
    assert not any(found((LABEL, BAD), *outside, printed, api.home).values())


@pytest.mark.slow
def test_nothing_is_said_of_what_private_labels_add_up_to(told):
    rows = pl.read_csv(told / "fares.csv")
    rows = rows.filter((pl.col("zone") == "closed") & (pl.col("paid") != BAD.value))
    paid = rows["paid"].cast(pl.Float64)
    sums = (Canary("mean", float(paid.mean())), Canary("sum", float(paid.sum())))
    outside = [path for path in (told / "work").iterdir() if path.name != "holders"]
    assert not any(found(sums, *outside).values())
