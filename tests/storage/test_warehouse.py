"""The warehouse: what a person with a duckdb shell finds, and that it is never the only copy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage import warehouse
from storage.warehouse import PARTS, RunTables, build

NODES = [
    {"node": 0, "parent": -1, "depth": 0, "is_leaf": False, "path": "everyone"},
    {"node": 1, "parent": 0, "depth": 1, "is_leaf": True, "path": "miles <= 3"},
    {"node": 2, "parent": 0, "depth": 1, "is_leaf": True, "path": "miles > 3"},
]


def run_tables(folder: Path, run: str, scale: float = 1.0) -> RunTables:
    """Two cells and two classes."""
    folder = folder / run
    folder.mkdir(parents=True)
    leaf = {
        "cell": pa.array([0, 0, 1, 1], pa.int32()),
        "class": pa.array([0, 1, 0, 1], pa.int32()),
        "raw": [4, 3, 2, 1],
        "unbiased": [v * scale for v in (10.5, -1.5, 3.0, 4.0)],
    }
    by_node = {
        "node": pa.array([0, 0, 1, 1, 2, 2], pa.int32()),
        "class": pa.array([0, 1] * 3, pa.int32()),
        "raw": [6, 4, 4, 3, 2, 1],
        "unbiased": [v * scale for v in (13.5, 2.5, 10.5, -1.5, 3.0, 4.0)],
    }
    shards = {"report": ["r1", "r2"], "holders": [9, 7]}
    for name, table in (("totals", leaf), ("cells", by_node), ("shards", shards)):
        pq.write_table(pa.table(table), folder / f"{name}.parquet")
    facts = {
        "name": "rides",
        "protocol": "abc",
        "mechanism": "joint grr",
        "k": 5,
        "epsilon": 1.0,
        "epsilon_exact": 0.99,
        "n_private": 16,
        "n_public": 3,
        "cells": 2,
        "depth": 1,
    }
    return RunTables(
        run, {part: [folder / f"{part}.parquet"] for part in PARTS}, facts, NODES, ["cash", 'it\'s a "card"']
    )


def ask(path, sql):
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def test_every_view_answers_and_explains_itself(store, tmp_path):
    path = build(store, [run_tables(tmp_path, "one")])
    assert path == store.root / "curator" / "warehouse.duckdb"
    for view in ("runs", "totals", "cells", "reports_per_shard"):
        assert ask(path, f"SELECT count(*) FROM {view}")[0][0] > 0
    comments = dict(ask(path, "SELECT view_name, comment FROM duckdb_views() WHERE NOT internal"))
    assert comments.keys() == {"runs", "totals", "cells", "reports_per_shard"}
    assert all(comments.values())
    found = ask(path, "SELECT column_name FROM duckdb_columns() WHERE comment IS NOT NULL")
    assert {"unbiased", "path", "epsilon_exact"} <= {name for (name,) in found}


def test_its_figures_are_those_of_the_run(store, tmp_path):
    path = build(store, [run_tables(tmp_path, "one")])
    card = 'it\'s a "card"'
    assert ask(path, "SELECT label, raw, unbiased FROM totals WHERE cell = 0 ORDER BY raw DESC") == [
        ("cash", 4, 10.5),
        (card, 3, -1.5),
    ]
    assert ask(path, "SELECT path, sum(unbiased) FROM cells WHERE is_leaf GROUP BY path ORDER BY path") == [
        ("miles <= 3", 9.0),
        ("miles > 3", 7.0),
    ]
    assert ask(path, "SELECT run, n_private, epsilon_exact FROM runs") == [("one", 16, 0.99)]
    assert ask(path, "SELECT sum(holders) FROM reports_per_shard") == [(16,)]


def test_where_reports_are_about_one_of_several_classes_totals_name_it_and_others_name_none(store, tmp_path):
    several = run_tables(tmp_path, "several")
    for name in ("totals", "cells"):
        table = pq.read_table(several.totals[name][0])
        parts = [table.add_column(0, "output", pa.array([k] * len(table), pa.int32())) for k in (0, 1)]
        pq.write_table(pa.concat_tables(parts), several.totals[name][0])
    several = replace(several, outputs=["app", "cash"])
    for runs in ([several], [several, run_tables(tmp_path, "one")]):
        path = build(store, runs)
        for table, n in (("totals", 4), ("cells", 6)):
            found = ask(path, f"SELECT run, error_of, count(*) FROM {table} GROUP BY ALL ORDER BY ALL")
            named = [("several", "app", n), ("several", "cash", n)]
            assert found == ([("one", None, n)] if len(runs) > 1 else []) + named


def test_the_root_holds_the_sum_of_the_cells(store, tmp_path):
    path = build(store, [run_tables(tmp_path, "one"), run_tables(tmp_path, "two", scale=3.0)])
    sums = ask(path, "SELECT run, label, sum(unbiased) FROM totals GROUP BY ALL ORDER BY ALL")
    assert sums == ask(path, "SELECT run, label, unbiased FROM cells WHERE node = 0 ORDER BY ALL")


def test_a_deleted_warehouse_is_built_again_with_the_same_rows(store, tmp_path):
    runs = [run_tables(tmp_path, "one"), run_tables(tmp_path, "two")]

    def content(path):
        return {view: ask(path, f"FROM {view} ORDER BY ALL") for view in warehouse.VIEWS}

    before = content(build(store, runs))
    (store.root / "curator" / "warehouse.duckdb").unlink()
    assert content(build(store, runs)) == before
    assert content(build(store, runs[:1])) != before  # the old one is not added to


def test_it_holds_the_newest_runs(store, tmp_path, monkeypatch):
    monkeypatch.setattr(warehouse, "LATEST", 2)
    path = build(store, [run_tables(tmp_path, run) for run in ("one", "two", "three")])
    assert {run for (run,) in ask(path, "SELECT run FROM runs")} == {"two", "three"}


def test_a_build_that_fails_leaves_the_old_one_and_nothing_else(store, tmp_path):
    path = build(store, [run_tables(tmp_path, "one")])
    broken = run_tables(tmp_path, "two")
    broken.totals["cells"][0].write_bytes(b"PAR1")
    with pytest.raises(duckdb.Error):
        build(store, [broken])
    assert ask(path, "SELECT run FROM runs") == [("one",)]
    assert [p.name for p in path.parent.iterdir()] == [path.name]
