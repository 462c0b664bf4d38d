"""Of everybody who was asked, the cell and what was asked about; a shard at a time. Only a simulation knows it, and nothing of it
is a release.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.coins import Words
from ldptree.protocol.protocol import Protocol
from ldptree.simulate.redraws import KnownHolders
from storage import tables
from tasks.perturb import labels_of, values_of

Known = tuple[NDArray[Any], ...]
"""The truth about one shard. For classes it is how many would report each value, int64 [k], for a number cells and
labels, [n] each, and for a corrected public model cells [n] and residuals [n, M].
"""


def know(path: Path, protocol: Protocol) -> Known:
    """Read the facts of everybody in one shard."""
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
