"""aggregate: reports into unbiased totals per cell and class, and those rolled up to every ancestor, in DuckDB. The
curator's, who sees reports only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldptree.errors import ArtifactCorrupt, ProtocolMismatch
from ldptree.mechanisms import Joint, Mechanism
from ldptree.protocol import Protocol
from ldptree.totals import Totals
from schemas.manifest import Manifest
from storage import tables
from storage.sql import literal
from storage.store import Draft, Store
from tasks import progress
from tasks.checkpoint import step
from tasks.scale import read_protocol

ROLL_UP = """
    SELECT node, class, sum(raw) AS raw, sum(unbiased) AS unbiased
    FROM totals JOIN paths USING (cell) GROUP BY node, class ORDER BY node, class
"""


def raw_counts(
    connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], mechanism: Mechanism
) -> NDArray[Any]:
    """Raw sums of the reports, [raw_size], over the files of all shards (values, packed reports or exact totals).

    Raises ProtocolMismatch where there is a report that no holder of the protocol can have sent.
    """
    raw = mechanism.no_reports()
    by_column: dict[str, list[Path]] = {}
    for path in paths:
        by_column.setdefault(pq.read_schema(path).names[0], []).append(path)
    if values := by_column.get("value"):
        counted = connection.execute(
            f"SELECT value::BIGINT AS value, count(*) AS n FROM read_parquet({_list(values)}) GROUP BY value"
        ).fetchnumpy()
        found = np.ma.filled(counted["value"], -1)  # a report that is missing is none either
        if found.size and (found.min() < 0 or found.max() >= mechanism.k):
            raise ProtocolMismatch(
                f"a report is outside 0 .. {mechanism.k - 1}: it answers another protocol."
            )
        raw[found] += np.asarray(counted["n"])
    for done, path in enumerate(by_column.get("bits", [])):
        for table in tables.batches([path]):
            bits = table.column("bits")
            if bits.null_count:
                raise ProtocolMismatch(f"{path.name}: a report is missing where one is said to be.")
            raw += mechanism.aggregate(mechanism.unpack(_packed(bits)))
        progress.advance((done + 1) / len(paths))
    for path in by_column.get("support", []):
        support, holders = pq.read_table(path).column("support").to_numpy(), _metadata(path)[b"holders"]
        if support.shape != raw.shape:
            raise ProtocolMismatch(f"totals of {support.size} values, not {raw.size}: of another protocol.")
        if not mechanism.can_be_sum(support, int(holders)):
            raise ProtocolMismatch(f"{path.name}: totals that {int(holders)} holders cannot have given.")
        raw += support
    return raw


@step("aggregate", version="2", home="curator", retries=2)
def aggregate(
    draft: Draft, *, protocol: Manifest, reports: Sequence[Manifest], round_number: int
) -> Mapping[str, Any]:
    """Write "totals": `raw.parquet` (sums of reports), `totals.parquet` (cell, class), `cells.parquet` (every node) and
    `shards.parquet` (what was received).
    """
    store = draft.store
    published = read_protocol(store, protocol)
    paths = [path for manifest in reports for path in store.files(manifest)]
    n_private = sum(_holders(store, path, published, round_number) for path in paths)
    with duckdb.connect(config={"threads": 2}) as connection:
        try:
            raw = raw_counts(connection, paths, published.mechanism)
        except (duckdb.Error, pa.ArrowException, OSError):
            check_whole(store, reports)
            raise
        totals = read_totals_from(published, raw, n_private, round_number)
        folder = draft.folder("totals")
        write_totals(connection, folder, published, raw, totals)
    received = sorted((m.digest, m.rows) for m in reports)
    pq.write_table(
        pa.table({"report": [r[0] for r in received], "holders": [r[1] for r in received]}),
        folder / "shards.parquet",
    )
    draft.count("totals", "totals.parquet", totals.counts.size)
    return {"n_private": n_private, "shards": len(paths)}


def write_totals(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    protocol: Protocol,
    raw: NDArray[Any],
    totals: Totals,
) -> None:
    """Write `raw.parquet`, `totals.parquet` and `cells.parquet`."""
    L, C = totals.counts.shape
    cells, nodes = protocol.partition.paths()
    # Of a joint report each value has a sum of its own.
    has_own_sums = isinstance(protocol.mechanism, Joint)
    connection.register(
        "totals",
        pa.table(
            {
                "cell": np.repeat(np.arange(L, dtype=np.int32), C),
                "class": np.tile(np.arange(C, dtype=np.int32), L),
                "raw": pa.array(raw[: L * C]) if has_own_sums else pa.nulls(L * C, pa.int64()),
                "unbiased": totals.counts.ravel(),
            }
        ),
    )
    connection.register("paths", pa.table({"cell": cells, "node": nodes}))
    meta = {"n_private": str(totals.n_private), "round": str(totals.round)}
    pq.write_table(pa.table({"raw": raw}).replace_schema_metadata(meta), folder / "raw.parquet")
    pq.write_table(
        connection.sql("FROM totals ORDER BY cell, class").to_arrow_table(), folder / "totals.parquet"
    )
    pq.write_table(connection.sql(ROLL_UP).to_arrow_table(), folder / "cells.parquet")


def read_totals(store: Store, totals: Manifest, protocol: Protocol) -> Totals:
    """The totals in an artifact, with the exact variance of what is made of them."""
    table = pq.read_table(store.file(totals, "raw.parquet"))
    meta = {key.decode(): int(value) for key, value in table.schema.metadata.items()}
    return read_totals_from(protocol, table.column("raw").to_numpy(), meta["n_private"], meta["round"])


def read_totals_from(protocol: Protocol, raw: NDArray[Any], n_private: int, round_number: int) -> Totals:
    """Unbiased totals of raw sums under a protocol."""
    return Totals.from_raw(
        raw,
        mechanism=protocol.mechanism,
        n_private=n_private,
        depth=protocol.partition.max_depth,
        round=round_number,
    )


def check_whole(store: Store, reports: Sequence[Manifest]) -> None:
    """Raises ArtifactCorrupt where reports are no longer what was received."""
    for manifest in reports:
        if (condition := store.condition(manifest)) != "present":
            raise ArtifactCorrupt(
                f"{manifest.path}/{manifest.files[0].name}: these reports are {condition} since they were received. "
                "Restore the file from a copy."
            ) from None


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
