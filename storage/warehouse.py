"""Write the warehouse, a DuckDB file with every run's totals for a person at a shell, never the only copy.

It is built anew from Parquet and manifests after each run: deleting it loses nothing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from storage.formats import read_stamped
from storage.objects.object_store import ObjectStore
from storage.sql import literal
from storage.store import Store

NAME = "warehouse.duckdb"
PARTS = ("totals", "cells", "shards")
LATEST = 50
"""How many of the newest runs the warehouse holds."""

VIEWS = {
    "runs": "one row a run: its protocol, its epsilon, how many holders reported",
    "totals": "unbiased number of private holders in each cell with each label, per run: noise makes them broken or negative",
    "cells": "the same for every node of the tree, leaves and ancestors, with the conditions that lead to it; nothing of "
    "trees of more than 20,000 nodes",
    "reports_per_shard": "how many holders' reports each received file holds",
}

COMMENTS = {
    "totals.raw": "reports that support this cell and label, with the noise in it; NULL unless the mechanism is joint",
    "totals.label": "a class; of a number the level its label was rounded to, where a public model is corrected, its error's",
    "totals.error_of": "of a corrected model of several classes, the class whose error each of these holders reported; else NULL",
    "totals.unbiased": "right on average, with the noise variance of the protocol's mechanism; joint: (raw - n q) / (p - q)",
    "cells.node": "0 is the root; a leaf has no children",
    "cells.path": "conditions from the root, in raw units",
    "runs.epsilon_exact": "recomputed from the integers the holders' coins are drawn with, rounded up",
}


TABLES = {
    "runs": {
        "run": "VARCHAR",
        "name": "VARCHAR",
        "protocol": "VARCHAR",
        "mechanism": "VARCHAR",
        "k": "BIGINT",
        "epsilon": "DOUBLE",
        "epsilon_exact": "DOUBLE",
        "n_private": "BIGINT",
        "n_public": "BIGINT",
        "cells": "BIGINT",
        "depth": "INTEGER",
    },
    "totals": {
        "run": "VARCHAR",
        "cell": "INTEGER",
        "error_of": "VARCHAR",
        "label": "VARCHAR",
        "raw": "BIGINT",
        "unbiased": "DOUBLE",
    },
    "cells": {
        "run": "VARCHAR",
        "node": "INTEGER",
        "parent": "INTEGER",
        "depth": "INTEGER",
        "is_leaf": "BOOLEAN",
        "path": "VARCHAR",
        "error_of": "VARCHAR",
        "label": "VARCHAR",
        "unbiased": "DOUBLE",
    },
    "reports_per_shard": {"run": "VARCHAR", "report": "VARCHAR", "holders": "BIGINT"},
}
LABEL = {"run": "VARCHAR", "class": "INTEGER", "label": "VARCHAR"}
OUTPUT = {"run": "VARCHAR", "output": "INTEGER", "error_of": "VARCHAR"}
NODE = {
    "run": "VARCHAR",
    "node": "INTEGER",
    "parent": "INTEGER",
    "depth": "INTEGER",
    "is_leaf": "BOOLEAN",
    "path": "VARCHAR",
}
FILE = {"run": "VARCHAR", "part": "VARCHAR", "filename": "VARCHAR"}


@dataclass(frozen=True)
class RunTables:
    """The warehouse's part of one run, with its totals, the files of each of `PARTS`, and facts about it.

    Where parts of the holders were asked apart, what was received of each is there, and the totals of the last question.
    """

    run: str
    totals: Mapping[str, Sequence[Path]]
    facts: Mapping[str, Any]
    nodes: Sequence[Mapping[str, Any]]
    classes: Sequence[str]
    outputs: Sequence[str] = ()
    """The classes whose error reports are about, where there are several."""


def all_runs(store: Store) -> list[RunTables]:
    """Return the warehouse's part of every run whose folder and totals stand, oldest first."""
    objects = store.objects
    listed = objects.at_once(lambda folder: list(objects.entries(folder)), objects.folders("runs"))
    entries = [entry for entries in listed for entry in entries if entry.name.endswith("/tables.json")]
    names = [entry.name for entry in sorted(entries, key=lambda entry: entry.modified)]
    return [run for run in objects.at_once(partial(_tables_of, objects), names) if run is not None]


def _tables_of(objects: ObjectStore, name: str) -> RunTables | None:
    """Return the warehouse's part of a run, as its `tables.json` says; None where its totals are gone."""
    content = read_stamped(objects, name, "tables", "Delete it: only the warehouse then lacks this run.")
    files = {part: [f"{content['totals']}/{part}.parquet"] for part in PARTS}
    files["shards"] += [f"{earlier}/shards.parquet" for earlier in content.get("earlier", ())]
    if any(objects.size(file) is None for part in files.values() for file in part):
        return None
    return RunTables(
        name.split("/")[-2],
        {part: [*map(objects.path, named)] for part, named in files.items()},
        content["facts"],
        content["nodes"],
        content["classes"],
        content.get("outputs", ()),
    )


def build(store: Store, runs: Sequence[RunTables]) -> Path:
    """Write the warehouse over the old one. Raises OSError."""
    import duckdb

    draft = store.objects.draft_folder("curator")
    try:
        with duckdb.connect(str(draft / NAME)) as connection:
            connection.execute("CREATE SCHEMA stored")
            _create(connection)
            if runs:
                _fill(connection, runs[-LATEST:])
            for view, comment in VIEWS.items():
                connection.execute(f"CREATE VIEW {view} AS FROM stored.{view}")
                connection.execute(f"COMMENT ON VIEW {view} IS {literal(comment)}")
            for column, comment in COMMENTS.items():
                connection.execute(f"COMMENT ON COLUMN stored.{column} IS {literal(comment)}")
        store.objects.put(f"curator/{NAME}", (draft / NAME).read_bytes())
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return store.objects.path(f"curator/{NAME}")


def _create(connection: Any) -> None:
    for table, columns in TABLES.items():
        connection.execute(f"CREATE TABLE stored.{table} ({_typed(columns)})")


def _fill(connection: Any, runs: Sequence[RunTables]) -> None:
    """Insert all runs with one statement per table, so that fifty runs take no longer than one."""
    facts = [{column: run.facts.get(column) for column in TABLES["runs"]} | {"run": run.run} for run in runs]
    labels = [
        {"run": run.run, "class": number, "label": label}
        for run in runs
        for number, label in enumerate(run.classes)
    ]
    outputs = [
        {"run": run.run, "output": number, "error_of": name}
        for run in runs
        for number, name in enumerate(run.outputs)
    ]
    nodes = [dict(node) | {"run": run.run} for run in runs for node in run.nodes]
    files = [
        {"run": run.run, "part": part, "filename": str(path)}
        for run in runs
        for part in PARTS
        for path in run.totals[part]
    ]
    connection.execute(f"INSERT INTO stored.runs {_from_json(TABLES['runs'])}", [json.dumps(facts)])
    for name, columns, rows in (
        ("labels", LABEL, labels),
        ("outputs", OUTPUT, outputs),
        ("nodes", NODE, nodes),
        ("files", FILE, files),
    ):
        connection.execute(f"CREATE TEMP TABLE {name} AS {_from_json(columns)}", [json.dumps(rows)])
    for table, part, joins in (
        (
            "totals",
            "totals",
            "JOIN labels USING (run, class) LEFT JOIN outputs USING (run, output) ORDER BY run, cell, error_of, label",
        ),
        (
            "cells",
            "cells",
            "JOIN nodes USING (run, node) JOIN labels USING (run, class) LEFT JOIN outputs USING (run, output) "
            "ORDER BY run, node, error_of, label",
        ),
        ("reports_per_shard", "shards", "ORDER BY run, report"),
    ):
        paths = sorted({file["filename"] for file in files if file["part"] == part})
        # Only runs of several outputs name them; of the others the column is NULL.
        source = (
            "(SELECT NULL::INTEGER AS output WHERE false UNION ALL BY NAME "
            f"FROM read_parquet([{', '.join(literal(path) for path in paths)}], filename = true, union_by_name = true))"
        )
        connection.execute(
            f"INSERT INTO stored.{table} SELECT {', '.join(TABLES[table])} FROM {source} JOIN files USING (filename) {joins}"
        )


def _from_json(columns: Mapping[str, str]) -> str:
    """Return a SELECT of a JSON array's rows, as DuckDB would import pandas for a registered Arrow table."""
    return f"SELECT unnest(from_json(?, {literal(json.dumps([columns]))}), recursive := true)"


def _typed(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{column} {kind}" for column, kind in columns.items())
