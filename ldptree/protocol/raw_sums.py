"""Raw sums of the reports to one protocol: a sum for each output of a public model that reports are about, else one for all.

What lives here: which reports are added to which sum. What does not: the sums themselves (`mechanisms`), what is made of them
(`totals`), and which reports are taken at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ldptree.errors import DataError
from ldptree.protocol.totals import Totals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.protocol.protocol import Protocol


@dataclass(eq=False)
class RawSums:
    """Sums over M outputs (`Protocol.n_outputs`).

    Attributes:
        protocol: what was answered.
        raw: [M, raw_size] sums of reports, of the type that the mechanism adds them up in.
        n_reports: int64 [M].
    """

    protocol: Protocol
    raw: NDArray[Any]
    n_reports: NDArray[np.int64]

    @classmethod
    def none(cls, protocol: Protocol) -> Self:
        """Nobody has reported."""
        raw = np.stack([protocol.mechanism.no_reports() for _ in range(protocol.n_outputs)])
        return cls(protocol, raw, np.zeros(protocol.n_outputs, dtype=np.int64))

    @property
    def n_private(self) -> int:
        """All who reported."""
        return int(self.n_reports.sum())

    def is_output(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """bool [n], whether reports can be about these outputs, int [n]."""
        found: NDArray[np.bool_] = (outputs >= 0) & (outputs < len(self.raw))
        return found

    def add(self, reports: NDArray[Any], outputs: NDArray[np.int64] | None) -> None:
        """Add n reports as `Mechanism.randomize` makes them, on these outputs, int64 [n]; None where none was drawn.

        Raises DataError where outputs are not those of the protocol.
        """
        if (outputs is None) != (len(self.raw) == 1):
            raise DataError(f"reports on one of {len(self.raw)} outputs must say on which, others must not")
        if outputs is None:
            self._add(0, reports)
            return
        if not self.is_output(outputs).all():
            raise DataError(f"a report is on none of the {len(self.raw)} outputs that there are")
        for output in np.unique(outputs).tolist():
            self._add(output, reports[outputs == output])

    def _add(self, output: int, reports: NDArray[Any]) -> None:
        self.raw[output] += self.protocol.mechanism.aggregate(reports)
        self.n_reports[output] += len(reports)

    def totals(self, round_number: int) -> tuple[Totals, ...]:
        """Unbiased totals, one an output."""
        return tuple(
            Totals.from_raw(
                raw,
                mechanism=self.protocol.mechanism,
                n_private=int(n),
                depth=self.protocol.partition.max_depth,
                round=round_number,
            )
            for raw, n in zip(self.raw, self.n_reports, strict=True)
        )
