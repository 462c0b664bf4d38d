"""Holders with known cells and numbers, as in a simulation, with their true sums and their reports drawn again.

Nothing here is a release. What is concluded from totals is the families'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ldptree.mechanisms import report_values
from ldptree.protocol.stochastic_rounding import round_at_random
from ldptree.protocol.totals import Totals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.coins import Words
    from ldptree.mechanisms import Mechanism
    from ldptree.protocol.protocol import Protocol

    Floats = NDArray[np.float64]


_BLOCK = 2**20
"""Holders whose numbers are rounded at once."""


@dataclass(frozen=True, eq=False)
class KnownHolders:
    """Everybody who is asked about a number, at eight bytes a holder.

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
        """Return the people of each cell, and the sum of their labels moved into the range, float64 [L] each."""
        n_cells, is_in = self.protocol.n_cells, self.cells >= 0
        moved = np.clip(self.labels[is_in].astype(np.float64), *self.protocol.label_range)
        count = np.bincount(self.cells[is_in], minlength=n_cells).astype(np.float64)
        return count, np.bincount(self.cells[is_in], weights=moved, minlength=n_cells).astype(np.float64)

    def drawn_again(
        self, words: Words, generator: np.random.Generator | None = None, mechanism: Mechanism | None = None
    ) -> Totals:
        """The totals that another draw of everybody's coins would have given.

        Args:
            words: the coins.
            generator: for the totals, in the place of one of `words`.
            mechanism: in the place of the protocol's, on as many cells and classes.
        """
        protocol, mechanism = self.protocol, mechanism or self.protocol.mechanism
        counts = np.zeros(mechanism.n_values, dtype=np.int64)
        for start in range(0, self.cells.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            levels = round_at_random(self.labels[block], *protocol.label_range, mechanism.n_levels, words)
            values = report_values(
                self.cells[block], levels, n_cells=protocol.n_cells, n_classes=mechanism.n_levels
            )
            counts += np.bincount(values, minlength=mechanism.n_values)
        return Totals.from_raw(
            mechanism.sample_totals(counts, generator or words.generator()),
            mechanism=mechanism,
            n_private=self.cells.size,
            depth=protocol.partition.max_depth,
        )


@dataclass(frozen=True, eq=False)
class KnownResiduals:
    """Everybody who is asked how wrong a public model is, at four bytes a holder, and four for each of M outputs.

    Attributes:
        protocol: the question, with the model in it.
        cells: int32 [n], -1 outside.
        residuals: float32 [n, M], NaN where there is none.
    """

    protocol: Protocol
    cells: NDArray[np.int32]
    residuals: NDArray[np.float32]

    @property
    def usable(self) -> NDArray[np.bool_]:
        """bool [n], who has both."""
        is_usable: NDArray[np.bool_] = (self.cells >= 0) & ~np.isnan(self.residuals).any(axis=1)
        return is_usable

    def drawn_again(self, words: Words, mechanism: Mechanism | None = None) -> tuple[Totals, ...]:
        """Return the totals of another draw of everybody's coins, one for each output. See `KnownHolders`."""
        return draw_outputs_again(
            self.protocol, self.cells, lambda output, is_on: self.residuals[is_on, output], words, mechanism
        )


def draw_outputs_again(
    protocol: Protocol,
    cells: NDArray[np.int32],
    residuals_of: Callable[[int, Any], NDArray[np.float32]],
    words: Words,
    mechanism: Mechanism | None = None,
) -> tuple[Totals, ...]:
    """The totals of a draw of everybody's coins, one for each output, which each draws too.

    Args:
        protocol: the question.
        cells: int32 [n], -1 outside.
        residuals_of: about an output, those of the holders that an index takes, float32.
        words: the coins.
        mechanism: in the place of the protocol's.
    """
    outputs, generator = protocol.draw_outputs(len(cells), words), words.generator()
    totals = []
    for output in range(protocol.n_outputs):
        is_on = slice(None) if outputs is None else outputs == output
        holders = KnownHolders(protocol, cells[is_on], residuals_of(output, is_on))
        totals.append(holders.drawn_again(words, generator, mechanism))
    return tuple(totals)
