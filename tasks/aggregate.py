"""aggregate: reports into what they say together. Those about one tree become unbiased totals per cell and class, rolled up to
every ancestor, in DuckDB; others stay as they are, in the order of the holders. The curator's, who sees reports only.
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
from numpy.typing import NDArray

from ldptree.errors import ArtifactCorrupt, DataError, ProtocolMismatch
from ldptree.families.questions import question_from_json
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.raw_sums import RawSums
from schemas.manifest import Manifest
from storage import tables
from storage.sql import literal
from storage.store import Draft, Store
from tasks import progress
from tasks.artifacts import (
    check_whole,
    is_protocol,
    read_protocol,
    read_shown,
    reports_of_table,
    write_transcript,
)
from tasks.step import step

ROLL_UP = """
    SELECT {output}node, class, sum(raw) AS raw, sum(unbiased) AS unbiased
    FROM totals JOIN paths USING (cell) GROUP BY {output}node, class ORDER BY {output}node, class
"""


def raw_sums(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], protocol: Protocol) -> RawSums:
    """Raw sums of the reports, over the files of all shards (values, packed reports or exact totals).

    Raises ProtocolMismatch where there is a report that no holder of the protocol can have sent.
    """
    sums, is_drawn = RawSums.none(protocol), protocol.n_outputs > 1
    by_column: dict[str, list[Path]] = {}
    for path in paths:
        names = pq.read_schema(path).names
        if ("output" in names) != is_drawn:
            raise ProtocolMismatch(
                f"{path.name}: it {'does not say' if is_drawn else 'says'} which output a report is about."
            )
        by_column.setdefault(names[0], []).append(path)
    if values := by_column.get("value"):
        _add_values(connection, values, sums)
    for done, path in enumerate(by_column.get("bits", [])):
        for table in tables.batches([path]):
            _add_bits(path, table, sums)
        progress.advance((done + 1) / len(paths))
    for path in by_column.get("support", []):
        _add_support(path, sums)
    return sums


def _add_values(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], sums: RawSums) -> None:
    """Add reports that are one value each, counted by the database."""
    mechanism, is_drawn = sums.protocol.mechanism, sums.protocol.n_outputs > 1
    counted = connection.execute(
        f"SELECT {'output' if is_drawn else '0'}::BIGINT AS output, value::BIGINT AS value, count(*) AS n "
        f"FROM read_parquet({_list(paths)}) GROUP BY ALL"
    ).fetchnumpy()
    # a report that is missing is none either
    found, outputs = (np.ma.filled(counted[name], -1) for name in ("value", "output"))
    if found.size and (found.min() < 0 or found.max() >= mechanism.k):
        raise ProtocolMismatch(f"a report is outside 0 .. {mechanism.k - 1}: it answers another protocol.")
    if not sums.is_output(outputs).all():
        raise ProtocolMismatch("a report is about an output that is not there: it answers another protocol.")
    np.add.at(sums.raw, (outputs, found), np.asarray(counted["n"]))
    np.add.at(sums.n_reports, outputs, np.asarray(counted["n"]))


def _add_bits(path: Path, table: pa.Table, sums: RawSums) -> None:
    """Add packed reports."""
    if any(column.null_count for column in table.columns):
        raise ProtocolMismatch(f"{path.name}: a report is missing where one is said to be.")
    mechanism = sums.protocol.mechanism
    outputs = table.column("output").to_numpy() if sums.protocol.n_outputs > 1 else None
    try:
        sums.add(mechanism.unpack(_packed(table.column("bits"))), outputs)
    except DataError as fault:
        raise ProtocolMismatch(f"{path.name}: {fault}") from None


def _add_support(path: Path, sums: RawSums) -> None:
    """Add totals that were drawn as such."""
    mechanism, stated = sums.protocol.mechanism, _metadata(path)
    support = pq.read_table(path).column("support").to_numpy()
    holders = [int(stated[b"holders"])]
    if sums.protocol.n_outputs > 1:
        holders = json.loads(stated[b"holders_of_outputs"])
    if support.size != sums.raw.size or len(holders) != len(sums.raw):
        raise ProtocolMismatch(f"totals of {support.size} values, not {sums.raw.size}: of another protocol.")
    for output, (part, n) in enumerate(zip(support.reshape(sums.raw.shape), holders, strict=True)):
        if not mechanism.can_be_sum(part, n):
            raise ProtocolMismatch(f"{path.name}: totals that {n} holders cannot have given.")
        sums.raw[output] += part
        sums.n_reports[output] += n


@step(
    "aggregate",
    version="3",
    home="curator",
    retries=2,
    order=8,
    says="what reports say together: unbiased totals, or a question and all answers",
)
def aggregate(
    draft: Draft,
    *,
    question: Manifest,
    reports: Sequence[Manifest],
    round_number: int,
    shown: Manifest | None = None,
) -> Mapping[str, Any]:
    """Write what the reports of a round say together: of a question about one tree "totals", else "transcript".

    totals      `raw.parquet` (sums of reports), `totals.parquet` (cell, class), `cells.parquet` (every node) and
                `shards.parquet` (what was received).
    transcript  `question.json`, `answers.parquet` (holder, report) and `round.json`. `shown`: by which holders were asked.
    """
    if is_protocol(question):
        return _add_up(draft, question, reports, round_number)
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
    found = [pq.read_table(path) for manifest in reports for path in store.files(manifest)]
    holders, answers = (np.concatenate(parts) for parts in zip(*map(reports_of_table, found), strict=True))
    order = np.argsort(holders, kind="stable")
    holders, answers = holders[order], answers[order]
    if not np.array_equal(holders, asked.respondents(read_shown(store, shown))):
        raise ProtocolMismatch(
            f"round {round_number}: {holders.size} answers, and not one from each holder who was asked"
        )
    if not asked.is_valid(answers).all():
        raise ProtocolMismatch(f"round {round_number}: an answer that its question does not allow")
    write_transcript(draft, text, round_number, holders, answers)
    return {"n_answers": int(holders.size), "about": asked.about, "epsilon": asked.epsilon}


def _add_up(
    draft: Draft, protocol: Manifest, reports: Sequence[Manifest], round_number: int
) -> Mapping[str, Any]:
    """The totals of all reports, each cell and every ancestor."""
    store = draft.store
    published = read_protocol(store, protocol)
    paths = [path for manifest in reports for path in store.files(manifest)]
    n_private = sum(_holders(store, path, published, round_number) for path in paths)
    with duckdb.connect(config={"threads": 2}) as connection:
        try:
            sums = raw_sums(connection, paths, published)
        except (duckdb.Error, pa.ArrowException, OSError):
            check_whole(store, reports)
            raise
        if sums.n_private != n_private:
            raise ProtocolMismatch(f"{sums.n_private} reports of {n_private} holders.")
        folder = draft.folder("totals")
        write_totals(connection, folder, sums, round_number)
    received = sorted((m.digest, m.rows) for m in reports)
    pq.write_table(
        pa.table({"report": [r[0] for r in received], "holders": [r[1] for r in received]}),
        folder / "shards.parquet",
    )
    draft.count("totals", "totals.parquet", published.n_outputs * published.n_cells * published.n_classes)
    return {"n_private": n_private, "shards": len(paths)}


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
                "unbiased": np.concatenate([one.counts.ravel() for one in totals]),
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


def _holders(store: Store, path: Path, protocol: Protocol, round_number: int) -> int:
    try:
        metadata, described = _metadata(path), pq.read_metadata(path)
    except (OSError, pa.ArrowInvalid):
        raise ArtifactCorrupt(f"{path.relative_to(store.root)}: not a readable file of reports.") from None
    if (
        metadata.get(b"protocol", b"").decode() != protocol.digest
        or metadata.get(b"round") != str(round_number).encode()
    ):
        raise ProtocolMismatch(
            f"{path.relative_to(store.root)}: collected under another protocol or round than {protocol.digest[:16]}."
        )
    holders = int(metadata[b"holders"])
    if metadata[b"form"] == b"reports" and described.num_rows != holders:
        raise ProtocolMismatch(
            f"{path.relative_to(store.root)}: {described.num_rows} reports of {holders} holders."
        )
    return holders


def _metadata(path: Path) -> dict[bytes, bytes]:
    """What a file of reports says of itself. Raises OSError, pyarrow.ArrowInvalid."""
    return pq.read_schema(path).metadata or {}


def _packed(column: Any) -> NDArray[np.uint8]:
    """The report bits of a column of fixed-size binary, uint8 [reports, bytes], without a copy."""
    parts = []
    for chunk in column.chunks:
        width = chunk.type.byte_width
        data = np.frombuffer(chunk.buffers()[1], dtype=np.uint8)
        parts.append(
            data[chunk.offset * width : (chunk.offset + len(chunk)) * width].reshape(len(chunk), width)
        )
    return np.concatenate(parts) if len(parts) != 1 else parts[0]


def _list(paths: Sequence[Path]) -> str:
    return f"[{', '.join(literal(str(path)) for path in paths)}]"
