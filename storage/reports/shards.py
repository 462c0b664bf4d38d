"""List the files of reports below a folder, and read the Parquet shards of the pipeline in blocks (lines are in `lines`).
`tasks.answers.receive` decides which of them are valid.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from storage.formats import LAST_TRANSACTION
from storage.raw.parquet_pages import weigh_pages

LINES, SHARD = ".jsonl", ".parquet"
BATCH_BYTES = 2**24
MOST_REPORTS = 2**17
"""Most reports in one Parquet file, twice as many as the pipeline writes into one."""
MOST_UNFOLDED = 2**31
"""Most bytes of the reports in one Parquet file, by default as many as a whole run writes."""
MOST_DESCRIBED = 2**20
"""Bytes of what a Parquet file says of itself."""
SPARE_BITS = 128
"""Reports may have so many fewer bits than the chance in them, which honest files miss once in 2^128."""


@dataclass(frozen=True)
class ReportSize:
    """The size of one report.

    Attributes:
        packed: bytes.
        chance: bits of chance in it, at least: fewer no file can take for it, however it is compressed.
    """

    packed: int
    chance: float


@dataclass(frozen=True, kw_only=True)
class Block:
    """Some reports of one protocol and round.

    Attributes:
        protocol, round: as they state; "" and 0 where nothing readable was stated.
        source: what stands for all of them, as they have no ids, the same wherever the same file is met.
        payloads: bytes of each.
        simulation: that their coins came from a seed.
        outputs: the output that each says it is about, None of one that says none.
        unreadable: how many more there were that are no reports.
        refused: why nothing of the file is taken; "" where it is.
    """

    protocol: str = ""
    round: int = 0
    payloads: list[bytes] = field(default_factory=list)
    outputs: list[int | None] = field(default_factory=list)
    source: str = ""
    simulation: bool = False
    unreadable: int = 0
    refused: str = ""


def files_of(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files of reports below a folder, and everything else there that is not read, whatever it is; by name.

    Raises:
        OSError: a folder below cannot be listed.
    """
    paths = sorted(_below(folder))
    read = [path for path in paths if path.suffix in (LINES, SHARD) and path.is_file()]
    return read, sorted(set(paths) - set(read))


def _below(folder: Path) -> Iterator[Path]:
    """List what is no folder below a folder, but the last transaction; a link to a folder is no folder, and is not entered."""
    for place, folders, files in os.walk(folder, onerror=_raise):
        links = [name for name in folders if Path(place, name).is_symlink()]
        yield from (Path(place, name) for name in (*files, *links) if not name.startswith(LAST_TRANSACTION))


def _raise(fault: OSError) -> None:
    raise fault


def blocks_of(path: Path, of: ReportSize) -> Iterator[Block]:
    """The reports of one shard. One that says it holds more than a shard can hold is refused as a whole."""
    try:
        if refused := _long_description(path):
            yield Block(refused=refused)
            return
        with pq.ParquetFile(path) as described:
            yield from _reports_of_shard(path, described, of)
    except (OSError, pa.ArrowException, ValueError, IndexError, OverflowError):
        yield Block(unreadable=1)


def _reports_of_shard(path: Path, described: Any, of: ReportSize) -> Iterator[Block]:
    schema = described.schema_arrow
    stated, rows = schema.metadata or {}, described.metadata.num_rows
    if not _is_of_reports(schema, of.packed):
        yield Block(unreadable=max(1, rows))
        return
    if refused := _refusal(path, described, of):
        yield Block(refused=refused)
        return
    number, protocol = int(stated.get(b"round", b"0")), stated.get(b"protocol", b"").decode()
    if (digest := _digest_of(described, of)) is None:
        yield Block(refused=f"it says that it holds {rows:,} reports, and holds another number")
        return
    for place, reports in enumerate(_batches(described, of.packed)):
        there = [(payload, output) for payload, output in reports if payload is not None]
        yield Block(
            protocol=protocol,
            round=number,
            payloads=[payload for payload, _ in there],
            outputs=[output for _, output in there],
            source=f"{digest} {place}",
            simulation=b"simulation" in stated,
            unreadable=len(reports) - len(there),
        )


def _digest_of(described: Any, of: ReportSize) -> str | None:
    """Return the digest that a file is known by, None where it holds another number of reports than it says."""
    schema, left = described.schema_arrow, described.metadata.num_rows
    # Of its id and what it says: a copy that was written otherwise is known again, and two that say the same are two.
    digest = hashlib.sha256(repr((schema.metadata or {}).get(b"id", b"")).encode())
    for reports in _batches(described, of.packed):
        if (left := left - len(reports)) < 0:
            return None
        digest.update(b"".join(payload for payload, _ in reports if payload is not None))
        if "output" in schema.names:
            digest.update(repr([output for _, output in reports]).encode())
    return None if left else digest.hexdigest()


def _is_of_reports(schema: Any, packed: int) -> bool:
    """Return whether reports are a value or bytes of one length, as the pipeline's. Others may unfold to any size."""
    is_value = schema.field(0).equals(pa.field("value", pa.uint32()))
    is_bits = schema.names[0] == "bits" and schema.field(0).type == pa.binary(packed)
    is_about = "output" not in schema.names or schema.field("output").type == pa.int32()
    return (schema.metadata or {}).get(b"form") == b"reports" and (is_value or is_bits) and is_about


def _long_description(path: Path) -> str:
    """Say why a file's description is too long to be read, "" where it is not."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - 8))
        length = int.from_bytes(file.read(4), "little")
    if MOST_DESCRIBED < length <= size:
        return f"its description alone has {length:,} bytes, at most {MOST_DESCRIBED:,} are read"
    return ""


def _refusal(path: Path, described: Any, of: ReportSize) -> str:
    """Say why a file of reports cannot be what it says, or is too large; "" where it is neither. Nothing in it is unfolded."""
    size, rows = path.stat().st_size, described.metadata.num_rows
    if rows > MOST_REPORTS:
        return f"it says that it holds {rows:,} reports, a file has at most {MOST_REPORTS:,}"
    if (least := (rows * of.chance - SPARE_BITS) / 8) > size:
        return (
            f"it says that it holds {rows:,} reports in {size:,} bytes: drawn by chance, as the protocol has it, so many take "
            f"{least:,.0f} bytes at least, however they are compressed"
        )
    each = of.packed + 4  # an output beside it
    unfolded = max(rows * each, weigh_pages(path, described.metadata, rows)[0])
    if unfolded > min(MOST_UNFOLDED, 2 * rows * each + MOST_DESCRIBED):
        return f"its {size:,} bytes unfold to {unfolded:,}, which is more than {rows:,} reports take or a file may"
    return ""


def _batches(described: Any, longest: int) -> Iterator[list[tuple[bytes | None, int | None]]]:
    """The payload of each report, and the output it says it is about."""
    names = described.schema_arrow.names
    columns = [names[0], *(name for name in names[1:] if name == "output")]
    rows = min(MOST_REPORTS, max(1, BATCH_BYTES // longest))
    for batch in described.iter_batches(batch_size=rows, columns=columns):
        outputs = batch.column(1).to_pylist() if len(columns) > 1 else [None] * batch.num_rows
        yield list(zip(_payloads(batch.column(0)), outputs, strict=True))


def _payloads(values: Any) -> list[bytes | None]:
    if values.type == pa.uint32():
        packed: NDArray[np.uint32] = np.asarray(values.fill_null(0), dtype="<u4")
        missing = values.is_null().to_pylist()
        return [None if gone else value.tobytes() for value, gone in zip(packed, missing, strict=True)]
    return list(values.to_pylist())
