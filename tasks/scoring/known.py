"""known: of everybody who was asked, the cell and what was asked about; a shard at a time. Some of the shards of a run, or all of
them. Only a simulation knows it, and nothing of it is a release.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.coins import Words
from ldptree.protocol.protocol import Protocol
from ldptree.simulate.redraws import KnownHolders
from schemas.manifest import Manifest, Record
from storage import tables
from storage.store import Draft, Store
from tasks.artifacts import read_protocol
from tasks.perturb import labels_of, values_of
from tasks.step import step

Known = tuple[NDArray[Any], ...]
"""Of one shard: how many would report each value, int64 [k]; where the label is a number, cells and labels, [n] each; where a
public model is corrected, cells [n] and residuals [n, M].
"""


@step(
    "known",
    version="1",
    home="simulation",
    says="what some of those who were asked would report without noise",
)
def known(draft: Draft, *, question: Manifest, shards: Sequence[Manifest]) -> None:
    """Write what is known of these shards about a question on one tree ("known": `SHARD.npz`)."""
    protocol, folder = read_protocol(draft.store, question), draft.folder("known")
    for manifest in shards:
        for path in draft.store.files(manifest):
            np.savez(folder / f"{path.stem}.npz", *know(path, protocol))


def know_each(shards: Sequence[Path], protocol: Protocol) -> Iterator[Known]:
    """What is known of each shard, two at once."""
    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(partial(know, protocol=protocol), shards)


def read_each(store: Store, records: Sequence[Record], shards: Sequence[Path]) -> Iterator[Known]:
    """The same, as `known` left it."""
    files = {path.stem: path for record in records for path in store.files(record["known"])}
    for shard in shards:
        with np.load(files[shard.stem]) as arrays:
            yield tuple(arrays.values())


def know(path: Path, protocol: Protocol) -> Known:
    """What is known of everybody in one shard."""
    if protocol.base is not None:
        return _residuals(path, protocol)
    if not protocol.numeric:
        return (np.bincount(values_of(path, protocol), minlength=protocol.k).astype(np.int64),)
    labels = labels_of(tables.read([path], [protocol.target]).column(protocol.target), protocol)
    # Of the values only the cells are kept: how a label is rounded is of no matter.
    values = values_of(path, protocol, Words.seeded(np.random.SeedSequence(0)))
    holders = KnownHolders.of(protocol, [(values, labels)])
    return holders.cells, holders.labels


def _residuals(path: Path, protocol: Protocol) -> Known:
    """The cells of those whom the question asks, and how wrong the public model is for each."""
    base = protocol.base
    assert base is not None
    cells, residuals = [], []
    for table in tables.batches([path], [*protocol.encoding.columns, protocol.target]):
        raw = tables.raw_matrix(table, protocol.encoding)
        labels = labels_of(table.column(protocol.target), protocol)
        cells.append(protocol.cells(raw))
        residuals.append(base.all_residuals(protocol.encoding, raw, labels).astype(np.float32))
    asked = protocol.respondents(sum(map(len, cells)))
    return np.concatenate(cells)[asked], np.concatenate(residuals)[asked]
