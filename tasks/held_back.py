"""Private rows in memory, as only a simulation may have them: those held back to score on, some of those learned from, and of
everybody who was asked the cell and what was asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ldptree.coins import Words
from ldptree.protocol.protocol import Protocol
from ldptree.simulate.redraws import KnownHolders, KnownResiduals
from storage import tables
from tasks.perturb import labels_of, values_of

Read = TypeVar("Read")


@dataclass(frozen=True)
class Rows:
    """Private rows: raw matrix [n, columns], labels [n]: class indices (-1: none of the classes), or numbers."""

    raw: NDArray[np.float64]
    labels: NDArray[Any]

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """bool [n]: whose label can be scored."""
        is_known: NDArray[np.bool_] = (
            self.labels >= 0 if self.labels.dtype.kind == "i" else ~np.isnan(self.labels)
        )
        return is_known


def read_rows(paths: Sequence[Path], protocol: Protocol) -> Rows:
    """Private rows of Parquet files."""
    table = tables.read(paths, [*protocol.encoding.columns, protocol.target])
    return Rows(
        tables.raw_matrix(table, protocol.encoding), labels_of(table.column(protocol.target), protocol)
    )


def at_most(n: int, rows: Rows, seed: int) -> Rows:
    """The rows, or `n` of them drawn with the seed."""
    if rows.labels.size <= n:
        return rows
    drawn = np.sort(np.random.default_rng(seed).choice(rows.labels.size, n, replace=False))
    return Rows(rows.raw[drawn], rows.labels[drawn])


def some_private(
    shards: Sequence[Path], protocol: Protocol, n: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """About `n` encoded private rows and their labels, an equal share of every shard."""
    shares, labels = [], []
    sizes = [rows.num_rows for path in shards for rows in tables.batches([path], [protocol.target])]
    keep = min(1.0, n / max(sum(sizes), 1))
    generator = np.random.default_rng(seed)
    for table in tables.batches(shards, [*protocol.encoding.columns, protocol.target]):
        drawn = table.filter(pa.array(generator.random(table.num_rows) < keep))
        rows = Rows(
            tables.raw_matrix(drawn, protocol.encoding), labels_of(drawn.column(protocol.target), protocol)
        )
        usable = rows.is_known & protocol.encoding.encodable(rows.raw)
        shares.append(protocol.encoding.encode(rows.raw[usable]))
        labels.append(rows.labels[usable])
    return np.concatenate(shares), np.concatenate(labels)


def known_labels(shards: Sequence[Path], protocol: Protocol) -> KnownHolders:
    """Everybody in these files, of whom a number was asked."""

    def read(path: Path) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        labels = labels_of(tables.read([path], [protocol.target]).column(protocol.target), protocol)
        # Of the values only the cells are kept: how a label is rounded is of no matter.
        return values_of(path, protocol, Words.seeded(np.random.SeedSequence(0))), labels

    return KnownHolders.of(protocol, _of_each(shards, read))


def known_residuals(shards: Sequence[Path], protocol: Protocol) -> KnownResiduals:
    """Everybody in these files, and how wrong the public model is for each."""
    base = protocol.base
    assert base is not None

    def read(path: Path) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        cells, residuals = [], []
        for table in tables.batches([path], [*protocol.encoding.columns, protocol.target]):
            raw = tables.raw_matrix(table, protocol.encoding)
            labels = labels_of(table.column(protocol.target), protocol)
            cells.append(protocol.cells(raw))
            residuals.append(base.all_residuals(protocol.encoding, raw, labels).astype(np.float32))
        return np.concatenate(cells), np.concatenate(residuals)

    parts = zip(*_of_each(shards, read), strict=True)
    return KnownResiduals(protocol, *(np.concatenate(part) for part in parts))


def _of_each(shards: Sequence[Path], read: Callable[[Path], Read]) -> Iterator[Read]:
    """What is read of each file, two at once."""
    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(read, shards)


def duplicates(train: Sequence[Path], test: Sequence[Path]) -> int:
    """How many test rows have an exact copy among the training rows."""
    wanted = _hashes(test[0]) if test else np.empty(0, np.uint64)
    is_copy = np.zeros(wanted.size, dtype=bool)
    for path in train:
        is_copy |= np.isin(wanted, _hashes(path))
    return int(is_copy.sum())


def _hashes(path: Path) -> NDArray[np.uint64]:
    import polars as pl

    return pl.read_parquet(path).hash_rows(seed=0).to_numpy()
