"""add: a part of a round's reports about one tree into raw sums. Sums of whole numbers are the same, whoever adds up which of
them. The curator's, who sees reports only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldptree.errors import ArtifactCorrupt, DataError, ProtocolMismatch
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.totals import RawSums
from schemas.manifest import Manifest
from storage import tables
from storage.sql import literal
from storage.store import Draft, Store
from tasks import progress
from tasks.artifacts import check_whole, read_protocol
from tasks.step import step

PART_SHARDS = 64
"""Shards whose reports one task adds up: about four million holders."""


def parts_to_add(store: Store, question: Manifest, reports: Sequence[Manifest]) -> list[list[Manifest]]:
    """Reports in the parts that one task each adds up; one part where the order of adding matters."""
    is_exact = RawSums.none(read_protocol(store, question)).raw.dtype.kind in "iu"
    size = PART_SHARDS if is_exact else len(reports)
    return [[*reports[start : start + size]] for start in range(0, len(reports), size)]


@step("add", version="1", home="curator", retries=2, says="raw sums of reports")
def add(draft: Draft, *, question: Manifest, reports: Sequence[Manifest], round_number: int) -> None:
    """Write the sums of a part of the reports to a question, as part "sums" with `raw.npy` and `n_reports.npy`."""
    with duckdb.connect(config={"threads": 2}) as connection:
        protocol = read_protocol(draft.store, question)
        sums = sum_reports(connection, draft.store, protocol, reports, round_number)
    write_sums(draft, sums)


def write_sums(draft: Draft, sums: RawSums) -> None:
    """Write the sums of some reports ("sums")."""
    folder = draft.folder("sums")
    np.save(folder / "raw.npy", sums.raw)
    np.save(folder / "n_reports.npy", sums.n_reports)


def sum_parts(store: Store, protocol: Protocol, parts: Sequence[Manifest]) -> RawSums:
    """Add up what `add` left of every part."""
    sums = RawSums.none(protocol)
    for part in parts:
        sums.raw += np.load(store.file(part, "raw.npy"))
        sums.n_reports += np.load(store.file(part, "n_reports.npy"))
    return sums


def sum_reports(
    connection: duckdb.DuckDBPyConnection,
    store: Store,
    protocol: Protocol,
    reports: Sequence[Manifest],
    round_number: int,
) -> RawSums:
    """Raw sums of received reports. Raises ProtocolMismatch where they answer something else, ArtifactCorrupt where they are
    not what was received.
    """
    paths = [path for manifest in reports for path in store.files(manifest)]
    n_private = sum(_holders(store, path, protocol, round_number) for path in paths)
    try:
        sums = raw_sums(connection, paths, protocol)
    except (duckdb.Error, pa.ArrowException, OSError):
        check_whole(store, reports)
        raise
    if sums.n_private != n_private:
        raise ProtocolMismatch(f"{sums.n_private} reports of {n_private} holders.")
    return sums


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
    values, outputs = (np.ma.filled(counted[name], -1) for name in ("value", "output"))
    if values.size and (values.min() < 0 or values.max() >= mechanism.k):
        raise ProtocolMismatch(f"a report is outside 0 .. {mechanism.k - 1}: it answers another protocol.")
    if not sums.is_output(outputs).all():
        raise ProtocolMismatch("a report is about an output that is not there: it answers another protocol.")
    np.add.at(sums.raw, (outputs, values), np.asarray(counted["n"]))
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
    """Return the description in a file of reports. Raises OSError, pyarrow.ArrowInvalid."""
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
