"""Reports on disk, from whoever collected them: lines of JSON as clients send them, and Parquet shards as the pipeline writes
them. Read in blocks; what they are worth is decided in `tasks.receive`.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldptree.client import Report
from ldptree.errors import DataError

LINES = 10_000
MOST_BYTES = 2**26
"""A longer line is no report."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """Some reports of one protocol and round.

    Attributes:
        protocol, round: as they state; "" and 0 where nothing readable was stated.
        ids: of each; none where the file gives none.
        source: what stands for all of them where they have no ids, the same wherever the same file is met.
        payloads: bytes of each.
        unreadable: how many more there were that are no reports.
    """

    protocol: str = ""
    round: int = 0
    ids: list[str] = field(default_factory=list)
    payloads: list[bytes] = field(default_factory=list)
    source: str = ""
    unreadable: int = 0


def files_of(folder: Path) -> list[Path]:
    """The files of reports below a folder, in the order of their names."""
    return sorted(p for p in folder.rglob("*") if p.suffix in (".jsonl", ".parquet") and p.is_file())


def blocks_of(path: Path) -> Iterator[Block]:
    """The reports of one file."""
    yield from _lines(path) if path.suffix == ".jsonl" else _shard(path)


def _lines(path: Path) -> Iterator[Block]:
    with path.open("rb") as file:
        while lines := list(itertools.islice(file, LINES)):
            found: dict[tuple[str, int], Block] = {}
            unreadable = 0
            for line in lines:
                if not line.strip():
                    continue
                try:
                    if len(line) > MOST_BYTES:
                        raise DataError("report: too long")
                    report = Report.from_json(line)
                except DataError:
                    unreadable += 1
                    continue
                key = (report.protocol, report.round)
                block = found.setdefault(key, Block(protocol=report.protocol, round=report.round))
                block.ids.append(report.id)
                block.payloads.append(report.payload)
            yield Block(unreadable=unreadable)
            yield from found.values()


def _shard(path: Path) -> Iterator[Block]:
    try:
        described = pq.ParquetFile(path)
        stated = described.schema_arrow.metadata or {}
        column = described.schema_arrow.names[0]
        number = int(stated.get(b"round", b"0"))
        protocol = stated.get(b"protocol", b"").decode()
        is_of_reports = stated.get(b"form") == b"reports" and column in ("value", "bits")
        if not is_of_reports:
            yield Block(unreadable=described.metadata.num_rows)
            return
        digest, place = hashlib.sha256(path.read_bytes()).hexdigest(), 0
        for batch in described.iter_batches(batch_size=LINES, columns=[column]):
            values = batch.column(0)
            payloads = [payload for payload in _payloads(values) if payload is not None]
            yield Block(
                protocol=protocol,
                round=number,
                payloads=payloads,
                source=f"{digest} {place}",
                unreadable=len(values) - len(payloads),
            )
            place += len(values)
    except (OSError, pa.ArrowException, ValueError, IndexError):
        yield Block(unreadable=1)


def _payloads(values: Any) -> list[bytes | None]:
    if pa.types.is_integer(values.type):
        packed: NDArray[np.uint32] = np.asarray(values.fill_null(0), dtype="<u4")
        missing = values.is_null().to_pylist()
        return [None if gone else value.tobytes() for value, gone in zip(packed, missing, strict=True)]
    return [value if isinstance(value, bytes) else None for value in values.to_pylist()]
