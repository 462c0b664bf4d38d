"""Holders whose cells and numbers are known, as only a simulation knows them: their true sums, and their reports drawn again.

Nothing here is a release. What is concluded from totals is in `fit_numbers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from ldptree.mechanisms import report_values
from ldptree.number_range import rounded
from ldptree.totals import Totals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.oracles import Words
    from ldptree.protocol import Protocol

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KnownHolders:
    """Everybody who is asked about a number: eight bytes a holder.

    Attributes:
        protocol: the question.
        cells: int32 [n], -1 outside.
        labels: float32 [n], NaN where missing.
    """

    protocol: Protocol
    cells: NDArray[np.int32]
    labels: NDArray[np.float32]

    @classmethod
    def of(cls, protocol: Protocol, parts: Iterable[tuple[NDArray[np.int64], Floats]]) -> Self:
        """From what holders have to report (`Protocol.values`) and their labels, [n] each, in parts."""
        n_levels, cells, labels = protocol.mechanism.n_levels, [], []
        for values, y in parts:
            at = values // n_levels
            cells.append(np.where(at < protocol.n_cells, at, -1).astype(np.int32))
            labels.append(y.astype(np.float32))
        return cls(protocol, np.concatenate(cells), np.concatenate(labels))

    def sums(self) -> tuple[Floats, Floats]:
        """People of each cell, and the sum of their labels moved into the range: float64 [L] each."""
        n_cells, is_in = self.protocol.n_cells, self.cells >= 0
        moved = np.clip(self.labels[is_in].astype(np.float64), *self.protocol.label_range)
        count = np.bincount(self.cells[is_in], minlength=n_cells).astype(np.float64)
        return count, np.bincount(self.cells[is_in], weights=moved, minlength=n_cells).astype(np.float64)

    def drawn_again(self, words: Words) -> Totals:
        """The totals that another draw of everybody's coins would have given."""
        protocol, mechanism = self.protocol, self.protocol.mechanism
        levels = rounded(self.labels, *protocol.label_range, mechanism.n_levels, words)
        values = report_values(self.cells, levels, n_cells=protocol.n_cells, n_classes=mechanism.n_levels)
        counts = np.bincount(values, minlength=mechanism.n_values).astype(np.int64)
        return Totals.from_raw(
            mechanism.sample_totals(counts, words.generator()),
            mechanism=mechanism,
            n_private=values.size,
            depth=protocol.partition.max_depth,
        )
