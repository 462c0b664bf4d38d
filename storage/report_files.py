"""Reports on disk, from whoever collected them: lines of JSON as clients send them, and Parquet shards as the pipeline writes
them. Read in blocks; what they are worth is decided in `tasks.receive`.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldptree.client import Report
from ldptree.errors import DataError

KINDS = (".jsonl", ".parquet")
LINES = 1_000
ENVELOPE = 1_000
"""Bytes of a line beside the payload, at most."""
BATCH_BYTES = 2**24


@dataclass(frozen=True, kw_only=True)
class Block:
    """Some reports of one protocol and round.

    Attributes:
        protocol, round: as they state; "" and 0 where nothing readable was stated.
        ids: of each; none where the file gives none.
        source: what stands for all of them where they have no ids, the same wherever the same file is met.
        payloads: bytes of each.
        outputs: the output that each says it is about, None of one that says none.
        unreadable: how many more there were that are no reports.
    """

    protocol: str = ""
    round: int = 0
    ids: list[str] = field(default_factory=list)
    payloads: list[bytes] = field(default_factory=list)
    outputs: list[int | None] = field(default_factory=list)
    source: str = ""
    unreadable: int = 0


def files_of(folder: Path) -> list[Path]:
    """The files of reports below a folder, in the order of their names."""
    return sorted(p for p in folder.rglob("*") if p.suffix in KINDS and p.is_file())


def others_of(folder: Path) -> list[Path]:
    """What is below a folder and is not read, be it a file or a pipe, in the order of names."""
    read = set(files_of(folder))
    return sorted(p for p in folder.rglob("*") if p not in read and not p.is_dir())


def blocks_of(path: Path, *, longest: int) -> Iterator[Block]:
    """The reports of one file. Lines and values that are longer than a report of `longest` bytes can be are none."""
    yield from _lines(path, longest) if path.suffix == ".jsonl" else _shard(path, longest)


def _lines(path: Path, longest: int) -> Iterator[Block]:
    most = ENVELOPE + 2 * longest
    try:
        with path.open("rb") as file:
            while lines := list(itertools.islice(_short_lines(file, most), LINES)):
                yield from _reports(lines)
    except OSError:
        yield Block(unreadable=1)


def _short_lines(file: IO[bytes], most: int) -> Iterator[bytes | None]:
    """The lines of a file, None for each that is longer than `most`; no more of one is held than that."""
    while line := file.readline(most):
        if len(line) < most or line.endswith(b"\n"):
            yield line
            continue
        yield None
        while (rest := file.readline(most)) and not rest.endswith(b"\n"):
            pass


def _reports(lines: Sequence[bytes | None]) -> Iterator[Block]:
    found: dict[tuple[str, int], Block] = {}
    unreadable = 0
    for line in lines:
        if line is not None and not line.strip():
            continue
        try:
            if line is None:
                raise DataError("report: too long")
            report = Report.from_json(line)
        except DataError:
            unreadable += 1
            continue
        key = (report.protocol, report.round)
        block = found.setdefault(key, Block(protocol=report.protocol, round=report.round))
        block.ids.append(report.id)
        block.payloads.append(report.payload)
        block.outputs.append(report.output)
    yield Block(unreadable=unreadable)
    yield from found.values()


def _shard(path: Path, longest: int) -> Iterator[Block]:
    try:
        described = pq.ParquetFile(path)
        schema = described.schema_arrow
        stated = schema.metadata or {}
        # As the pipeline writes them: a value, or bytes of one length. Anything else could unfold to any size.
        is_of_reports = (
            stated.get(b"form") == b"reports"
            and (
                schema.field(0).equals(pa.field("value", pa.uint32()))
                or (schema.names[0] == "bits" and schema.field(0).type == pa.binary(longest))
            )
            and ("output" not in schema.names or schema.field("output").type == pa.int32())
        )
        if not is_of_reports:
            yield Block(unreadable=described.metadata.num_rows)
            return
        number, protocol = int(stated.get(b"round", b"0")), stated.get(b"protocol", b"").decode()
        # Of its id and what it says: a copy that was written otherwise is known again, and two that say the same are two.
        digest = hashlib.sha256(repr(stated.get(b"id", b"")).encode())
        for reports in _batches(described, longest):
            digest.update(b"".join(payload for payload, _ in reports if payload is not None))
            if "output" in schema.names:
                digest.update(repr([output for _, output in reports]).encode())
        for place, reports in enumerate(_batches(described, longest)):
            there = [(payload, output) for payload, output in reports if payload is not None]
            yield Block(
                protocol=protocol,
                round=number,
                payloads=[payload for payload, _ in there],
                outputs=[output for _, output in there],
                source=f"{digest.hexdigest()} {place}",
                unreadable=len(reports) - len(there),
            )
    except (OSError, pa.ArrowException, ValueError, IndexError):
        yield Block(unreadable=1)


def _batches(described: Any, longest: int) -> Iterator[list[tuple[bytes | None, int | None]]]:
    """The payload of each report, and the output it says it is about."""
    names = described.schema_arrow.names
    columns = [names[0], *(name for name in names[1:] if name == "output")]
    for batch in described.iter_batches(batch_size=max(1, BATCH_BYTES // longest), columns=columns):
        outputs = batch.column(1).to_pylist() if len(columns) > 1 else [None] * batch.num_rows
        yield list(zip(_payloads(batch.column(0)), outputs, strict=True))


def _payloads(values: Any) -> list[bytes | None]:
    if values.type == pa.uint32():
        packed: NDArray[np.uint32] = np.asarray(values.fill_null(0), dtype="<u4")
        missing = values.is_null().to_pylist()
        return [None if gone else value.tobytes() for value, gone in zip(packed, missing, strict=True)]
    return list(values.to_pylist())
