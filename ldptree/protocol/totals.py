"""Raw sums of reports, and one round's unbiased totals per cell and class, with the exact variance of any sum.

A report becomes a sum in the mechanisms; what is concluded from totals is in weighting, pruning and model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.errors import DataError
from ldptree.mechanisms import Mechanism

if TYPE_CHECKING:
    from ldptree.protocol.protocol import Protocol


@dataclass(frozen=True, eq=False)
class Totals:
    """Unbiased numbers of private holders per cell and class.

    Attributes:
        counts: float64 [cells, classes], unbiased: noise makes them negative or broken numbers.
        n_private: holders who reported.
        mechanism: how they reported, on as many cells and classes.
        depth: depth of the partition the reports speak of.
        round: number of the round they were collected in.
        outside: unbiased number of holders whose value was the extra one, "outside".
        exact_sums: of exact totals of a number alone, the sum of the labels of each cell, float64 [cells]; None else.
        is_exact: whether the counts are true ones and have no noise (`exact`).

    Raises:
        DataError: the shape of counts does not fit the mechanism.
    """

    counts: NDArray[np.float64]
    n_private: int
    mechanism: Mechanism
    depth: int
    round: int = 1
    outside: float = 0.0
    exact_sums: NDArray[np.float64] | None = None
    is_exact: bool = False

    def __post_init__(self) -> None:
        counts = np.array(self.counts, dtype=np.float64)
        shape = (self.mechanism.n_cells, self.mechanism.n_classes)
        if counts.shape != shape:
            raise DataError(
                f"totals: counts have shape {counts.shape}, the mechanism's cells and classes {shape}"
            )
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)

    @classmethod
    def from_raw(
        cls,
        raw: NDArray[Any],
        *,
        mechanism: Mechanism,
        n_private: int,
        depth: int,
        round: int = 1,  # noqa: A002 - the field's name
    ) -> Self:
        """Totals from a mechanism's raw sums of n_private reports (over all shards)."""
        unbiased = mechanism.unbias(raw, n_private)
        counts = unbiased[:-1].reshape(-1, mechanism.n_classes)
        return cls(counts, n_private, mechanism, depth, round, outside=float(unbiased[-1]))

    @classmethod
    def exact(cls, counts: ArrayLike, *, mechanism: Mechanism, depth: int) -> Self:
        """Return totals of true counts [cells, classes], as a simulation device to show what the noise costs.

        They give no privacy at all and must never leave a simulation.
        """
        true = np.asarray(counts, dtype=np.float64)
        return cls(true, int(true.sum()), mechanism, depth, is_exact=True)

    @classmethod
    def exact_numbers(cls, people: ArrayLike, sums: ArrayLike, *, mechanism: Mechanism, depth: int) -> Self:
        """Return totals without noise of numeric labels, from people and sums of labels of cells, [cells].

        Raises:
            DataError: they are not of the mechanism's cells.
        """
        n_cells = mechanism.n_cells
        true, of_labels = np.asarray(people, dtype=np.float64), np.asarray(sums, dtype=np.float64)
        if true.shape != (n_cells,) or of_labels.shape != (n_cells,):
            raise DataError(f"totals: people {true.shape} and sums {of_labels.shape} of {n_cells} cells")
        counts = np.zeros((n_cells, mechanism.n_classes))
        counts[:, 0] = true  # at which level matters to nobody: `exact_sums` are the labels' own
        return cls(counts, int(true.sum()), mechanism, depth, exact_sums=of_labels, is_exact=True)

    @property
    def n_cells(self) -> int:
        """L, rows of counts."""
        return int(self.counts.shape[0])

    @property
    def n_classes(self) -> int:
        """Columns of counts."""
        return int(self.counts.shape[1])

    @cached_property
    def n_inside(self) -> float:
        """Holders whose value was not "outside", as far as the reports show any (three standard deviations)."""
        seen = max(self.outside, 0.0)
        is_shown = seen > 3.0 * math.sqrt(max(self.outside_variance, 0.0))
        return max(self.n_private - seen, 1.0) if is_shown else float(self.n_private)

    @cached_property
    def cell_counts(self) -> NDArray[np.float64]:
        """U~, the unbiased number of holders in each cell, float64 [cells]."""
        sums: NDArray[np.float64] = self.counts.sum(axis=1)
        return sums

    @cached_property
    def _likely(self) -> NDArray[np.float64]:
        """Return counts for variance formulas, [k], which are the unbiased ones, none negative, scaled to sum to n."""
        likely = np.append(np.maximum(self.counts.ravel(), 0.0), max(self.outside, 0.0))
        total = likely.sum()
        return (
            likely * (self.n_private / total)
            if total > 0
            else np.full(self.mechanism.k, self.n_private / self.mechanism.k)
        )

    def variance(self, weights: ArrayLike) -> float:
        """Noise variance of the sum of weights * counts, weights float [cells, classes]; in holders squared.

        Exact for the mechanism (covariances included) at the true counts; the unbiased counts stand in for
        them, made non-negative and scaled to sum to n_private.
        """
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != self.counts.shape:
            raise DataError(f"totals: weights have shape {weights.shape}, counts {self.counts.shape}")
        if self.is_exact:
            return 0.0
        return float(self.mechanism.linear_variance(np.append(weights.ravel(), 0.0), self._likely))

    @cached_property
    def outside_variance(self) -> float:
        """Noise variance of `outside`; in holders squared."""
        if self.is_exact:
            return 0.0
        weights = np.zeros(self.mechanism.k)
        weights[-1] = 1.0
        return float(self.mechanism.linear_variance(weights, self._likely))

    @cached_property
    def count_variance(self) -> NDArray[np.float64]:
        """Noise variance of each cell's total count, float64 [cells]."""
        return self.cell_variance(np.ones(self.n_classes))

    def cell_variance(self, class_weights: ArrayLike) -> NDArray[np.float64]:
        """Return the noise variance of the sum over classes of class_weights * counts, in each cell, float64 [cells].

        As `variance`, for one linear form a cell; class_weights is float [classes].
        """
        if self.is_exact:
            return np.zeros(self.n_cells)
        inside = self._likely[:-1].reshape(self.counts.shape)
        return self.mechanism.cell_variance(class_weights, np.ones(self.n_cells), inside, self._likely)

    def label_sums(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of the labels of each cell where classes are levels of a number, float64 [cells]."""
        sums: NDArray[np.float64] = self.counts @ levels if self.exact_sums is None else self.exact_sums
        return sums

    def label_margins(self, levels: NDArray[np.float64], mean: float, scale: float) -> NDArray[np.float64]:
        """The same of labels measured from `mean` in units of `scale`."""
        if self.exact_sums is None:
            margins: NDArray[np.float64] = self.counts @ ((levels - mean) / scale)
            return margins
        return (self.exact_sums - mean * self.cell_counts) / scale


@dataclass(eq=False)
class RawSums:
    """Raw sums of the reports to one protocol, with a sum for each of M outputs, which are those of a public model that
    reports are about, else one for all (`Protocol.n_outputs`).

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
        is_valid: NDArray[np.bool_] = (outputs >= 0) & (outputs < len(self.raw))
        return is_valid

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
