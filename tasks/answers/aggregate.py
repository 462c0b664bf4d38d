"""Combine the reports of a round. Reports about one tree become unbiased totals per cell and class, rolled up to every
ancestor, in DuckDB. Others stay as they are, in the order of the holders. Runs with the curator, who sees reports only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ldptree.errors import ArtifactCorrupt, ProtocolMismatch
from ldptree.families.questions import question_from_json
from ldptree.protocol.totals import RawSums
from schemas.manifest import Manifest
from storage.store import Draft
from tasks.answers.add import sum_parts
from tasks.artifacts import (
    is_protocol,
    read_protocol,
    reports_of_table,
    write_transcript,
)
from tasks.step import step

ROLL_UP = """
    SELECT {output}node, class, sum(raw) AS raw, sum(unbiased) AS unbiased
    FROM totals JOIN paths USING (cell) GROUP BY {output}node, class ORDER BY {output}node, class
"""


@step(
    "aggregate",
    version="4",
    home="curator",
    retries=2,
    says="what reports say together",
)
def aggregate(
    draft: Draft,
    *,
    question: Manifest,
    reports: Sequence[Manifest],
    round_number: int,
    shown: Manifest | None = None,
    sums: Sequence[Manifest] = (),
) -> Mapping[str, Any]:
    """Write what the reports of a round say together: of a question about one tree "totals", else "transcript".

    totals      `raw.parquet` (sums of reports), `totals.parquet` (cell, class), `cells.parquet` (every node) and
                `shards.parquet` (what was received).
    transcript  `question.json`, `answers.parquet` (holder, report) and `round.json`. `shown`: by which holders were asked.

    The model is fitted to `raw.parquet` and the transcript; `totals.parquet` and `cells.parquet` are for the warehouse.

    `sums`: what `add` left of all reports to a question about one tree.
    """
    if is_protocol(question):
        return _add_up(draft, question, reports, round_number, sums)
    assert shown is not None
    return _write_down(draft, question, reports, round_number, shown)


def _write_down(
    draft: Draft, question: Manifest, reports: Sequence[Manifest], round_number: int, shown: Manifest
) -> Mapping[str, Any]:
    """All answers in the order of the holders. An answer that the question does not allow, or from somebody who was not asked,
    is refused: nothing is learned from it.
    """
    store = draft.store
    text = store.file(question, "question.json").read_bytes()
    asked = question_from_json(text)
    tables = [pq.read_table(path) for manifest in reports for path in store.files(manifest)]
    holders, answers = (np.concatenate(parts) for parts in zip(*map(reports_of_table, tables), strict=True))
    order = np.argsort(holders, kind="stable")
    holders, answers = holders[order], answers[order]
    if not np.array_equal(holders, asked.respondents(shown.rows)):
        raise ProtocolMismatch(
            f"round {round_number}: {holders.size} answers, and not one from each holder who was asked"
        )
    if not asked.is_valid(answers).all():
        raise ProtocolMismatch(f"round {round_number}: an answer that its question does not allow")
    write_transcript(draft, text, round_number, holders, answers)
    return {"n_answers": int(holders.size), "about": asked.about, "epsilon": asked.epsilon}


def _add_up(
    draft: Draft,
    protocol: Manifest,
    reports: Sequence[Manifest],
    round_number: int,
    sums: Sequence[Manifest],
) -> Mapping[str, Any]:
    """The totals of all reports, each cell and every ancestor."""
    store = draft.store
    published, folder = read_protocol(store, protocol), draft.folder("totals")
    added = sum_parts(store, published, sums)
    n_received = sum(manifest.rows for manifest in reports)
    if added.n_private != n_received:
        raise ArtifactCorrupt(
            f"round {round_number}: {n_received:,} holders reported, and the sums are of {added.n_private:,}. Nothing was "
            "learned. Delete `curator/add`, and run the same command again."
        )
    with duckdb.connect(config={"threads": 2}) as connection:
        write_totals(connection, folder, added, round_number)
    received = sorted((m.digest, m.rows) for m in reports)
    pq.write_table(
        pa.table({"report": [r[0] for r in received], "holders": [r[1] for r in received]}),
        folder / "shards.parquet",
    )
    draft.count("totals", "totals.parquet", published.n_outputs * published.n_cells * published.n_classes)
    return {"n_private": added.n_private, "shards": sum(len(manifest.files) for manifest in reports)}


def write_totals(
    connection: duckdb.DuckDBPyConnection, folder: Path, sums: RawSums, round_number: int
) -> None:
    """Write `raw.parquet`, `totals.parquet` and `cells.parquet`, of outputs that are drawn with a column that names them."""
    protocol, totals = sums.protocol, sums.totals(round_number)
    (M, size), (L, C) = sums.raw.shape, totals[0].counts.shape
    is_drawn = M > 1
    cells, nodes = protocol.partition.paths()
    has_own_sums = protocol.mechanism.sums_values
    output = np.arange(M, dtype=np.int32)
    connection.register(
        "totals",
        pa.table(
            ({"output": np.repeat(output, L * C)} if is_drawn else {})
            | {
                "cell": np.tile(np.repeat(np.arange(L, dtype=np.int32), C), M),
                "class": np.tile(np.arange(C, dtype=np.int32), M * L),
                "raw": pa.array(sums.raw[:, : L * C].ravel())
                if has_own_sums
                else pa.nulls(M * L * C, pa.int64()),
                "unbiased": np.concatenate([each.counts.ravel() for each in totals]),
            }
        ),
    )
    connection.register("paths", pa.table({"cell": cells, "node": nodes}))
    meta = {"n_private": str(sums.n_private), "round": str(round_number)}
    raw = {"raw": sums.raw.ravel()}
    if is_drawn:
        meta["holders_of_outputs"] = json.dumps(sums.n_reports.tolist())
        raw = {"output": np.repeat(output, size)} | raw
    pq.write_table(pa.table(raw).replace_schema_metadata(meta), folder / "raw.parquet")
    also = "output, " if is_drawn else ""
    pq.write_table(
        connection.sql(f"FROM totals ORDER BY {also}cell, class").to_arrow_table(), folder / "totals.parquet"
    )
    pq.write_table(connection.sql(ROLL_UP.format(output=also)).to_arrow_table(), folder / "cells.parquet")
