"""The warehouse: one DuckDB file with the totals of every run, for a person with a duckdb shell. Never the only copy of anything.

It is built anew from Parquet and manifests after each run, aside, and renamed: deleting it loses nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from storage.sql import literal
from storage.store import Store

NAME = "warehouse.duckdb"
LATEST = 50
"""How many of the newest runs the warehouse holds."""

VIEWS = {
    "runs": "one row a run: its protocol, its epsilon, how many holders reported",
    "totals": "unbiased number of private holders in each cell with each label, per run: noise makes them broken or negative",
    "cells": "the same for every node of the tree, leaves and ancestors, with the conditions that lead to it",
    "reports_per_shard": "how many holders' reports each received file holds",
}

COMMENTS = {
    "totals.raw": "reports that support this cell and label, before the noise is taken out",
    "totals.unbiased": "(raw - n q) / (p - q): right on average, with the noise variance of the protocol's oracle",
    "cells.node": "0 is the root; a leaf has no children",
    "cells.path": "conditions from the root, in raw units",
    "runs.epsilon_exact": "recomputed from the integers the holders' coins are drawn with, rounded up",
}


@dataclass(frozen=True)
class RunTables:
    """What the warehouse takes of one run: its folder of totals, and facts about it."""

    run: str
    totals: Path
    facts: Mapping[str, Any]
    nodes: Sequence[Mapping[str, Any]]
    classes: Sequence[str]


def build(store: Store, runs: Sequence[RunTables]) -> Path:
    """Write the warehouse over the old one. Raises OSError."""
    import duckdb

    path = store.zone("curator") / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".aside-{secrets.token_hex(8)}")
    try:
        with duckdb.connect(str(aside)) as connection:
            connection.execute("CREATE SCHEMA stored")
            _create(connection)
            for run in runs[-LATEST:]:
                _insert(connection, run)
            for view, comment in VIEWS.items():
                connection.execute(f"CREATE VIEW {view} AS FROM stored.{view}")
                connection.execute(f"COMMENT ON VIEW {view} IS {literal(comment)}")
            for column, comment in COMMENTS.items():
                connection.execute(f"COMMENT ON COLUMN stored.{column} IS {literal(comment)}")
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
        Path(f"{aside}.wal").unlink(missing_ok=True)
    return path


def _create(connection: Any) -> None:
    connection.execute(
        "CREATE TABLE stored.runs (run VARCHAR, name VARCHAR, protocol VARCHAR, oracle VARCHAR, k BIGINT, epsilon DOUBLE, "
        "epsilon_exact DOUBLE, n_private BIGINT, n_public BIGINT, cells BIGINT, depth INTEGER)"
    )
    connection.execute(
        "CREATE TABLE stored.totals (run VARCHAR, cell INTEGER, label VARCHAR, raw BIGINT, unbiased DOUBLE)"
    )
    connection.execute(
        "CREATE TABLE stored.cells (run VARCHAR, node INTEGER, parent INTEGER, depth INTEGER, is_leaf BOOLEAN, path VARCHAR, "
        "label VARCHAR, unbiased DOUBLE)"
    )
    connection.execute("CREATE TABLE stored.reports_per_shard (run VARCHAR, report VARCHAR, holders BIGINT)")


def _insert(connection: Any, run: RunTables) -> None:
    columns = (
        "name",
        "protocol",
        "oracle",
        "k",
        "epsilon",
        "epsilon_exact",
        "n_private",
        "n_public",
        "cells",
        "depth",
    )
    connection.execute(
        f"INSERT INTO stored.runs VALUES ({', '.join('?' * (len(columns) + 1))})",
        [run.run, *(run.facts[column] for column in columns)],
    )
    connection.register("labels", pa.table({"class": range(len(run.classes)), "label": list(run.classes)}))
    connection.register("nodes", pa.Table.from_pylist([dict(node) for node in run.nodes]))
    files = {name: literal(str(run.totals / f"{name}.parquet")) for name in ("totals", "cells", "shards")}
    name = literal(run.run)
    connection.execute(
        f"INSERT INTO stored.totals SELECT {name}, cell, label, raw, unbiased FROM {files['totals']} JOIN labels USING (class)"
    )
    connection.execute(
        f"INSERT INTO stored.cells SELECT {name}, node, parent, depth, is_leaf, path, label, unbiased "
        f"FROM {files['cells']} JOIN nodes USING (node) JOIN labels USING (class) ORDER BY node, label"
    )
    connection.execute(
        f"INSERT INTO stored.reports_per_shard SELECT {name}, report, holders FROM {files['shards']}"
    )
