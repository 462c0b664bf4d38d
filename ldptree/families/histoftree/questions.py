"""The two questions that HistOfTree puts to every holder, first the label, then the cell among possible ones.

Each says what is asked, what is sent back, and the exact law of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ldptree import serialize
from ldptree.errors import ConfigError, DataError
from ldptree.limits import check_ends
from ldptree.mechanisms.masked import MASKED, Masked
from ldptree.mechanisms.numbers import NUMBER_JSON
from ldptree.mechanisms.numbers.number import NumberMechanism
from ldptree.partition.product import ANY, Candidates, Product
from ldptree.protocol.question import PlayedAnswer, PublicView, Question, QuestionDescription

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.coins import Words

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

RELEASES = ("all", "cells", "none")
"""Parts of the mask W that leave a holder, all of it, the cells it could be in (section 3.4 (ii)), or nothing."""
MAX_REPORT_BYTES = 2**31
# entries of holders x cells (or leaves) that are in memory at once
_BLOCK = 2**23


@dataclass(frozen=True)
class LabelQuestion(Question):
    """The label, clipped to a range and moved to [-1, 1] (eq. 4).

    Attributes:
        mechanism: how the number is sent.
        low, high: the range.

    Raises:
        ConfigError: as `limits.check_ends`.
    """

    kind: ClassVar[str] = "histoftree_label"

    mechanism: NumberMechanism = field(metadata=NUMBER_JSON)
    low: float
    high: float

    def __post_init__(self) -> None:
        check_ends(self.low, self.high)

    @property
    def epsilon(self) -> float:
        """Epsilon that the label spends."""
        return self.mechanism.epsilon

    @property
    def about(self) -> str:
        """In words."""
        return f"round 1: the label by {self.mechanism.name}"

    def describe(self) -> QuestionDescription:
        """The label, between its ends."""
        return QuestionDescription(
            about="label",
            mechanism=self.mechanism.name,
            epsilon=self.epsilon,
            figures={"low": self.low, "high": self.high, "force": self.mechanism.bound},
        )

    def respondents(self, n: int) -> NDArray[np.int64]:
        """Everybody."""
        return np.arange(n)

    def randomize(self, rows: Floats, labels: Floats, protects: Mask, words: Words) -> NDArray[Any]:
        """Reports of the number mechanism, [m]; rows and mask are not looked at."""
        return self.mechanism.randomize(self._numbers(labels), words)

    def play(self, row: Floats, label: float, protects: Mask, words: Words) -> PlayedAnswer:
        """The label, moved into the range."""
        sent = self.decode(self.mechanism.randomize(self._numbers(np.array([label])), words))
        return PlayedAnswer(true=float(np.clip(label, self.low, self.high)), sent=float(sent[0]))

    def is_valid(self, reports: NDArray[Any]) -> Mask:
        """As the mechanism says."""
        return self.mechanism.is_valid(reports)

    def decode(self, reports: NDArray[Any]) -> Floats:
        """Unbiased labels Y~, float64 [m], in the label's unit; DataError for a report nobody honest sends."""
        return self._middle + self._half * self.mechanism.decode(reports)

    def law(self, row: Floats, label: float, protects: Mask) -> list[tuple[NDArray[Any], Fraction]]:
        """The mechanism's, where its outputs are finite."""
        number = float(self._numbers(np.array([label]))[0])
        chances = self.mechanism.law(number)
        return [
            (report, chance) for report, chance in zip(self.mechanism.outputs, chances, strict=True) if chance
        ]

    @property
    def _middle(self) -> float:
        return self.low / 2 + self.high / 2

    @property
    def _half(self) -> float:
        return self.high / 2 - self.low / 2

    def _numbers(self, labels: Floats) -> Floats:
        clipped = np.clip(labels, self.low, self.high)
        numbers: Floats = np.clip((clipped - self._middle) / self._half, -1.0, 1.0)
        return numbers


@dataclass(frozen=True, eq=False)
class CellsQuestion(Question):
    """The cell of a product partition (eqs 5, 8, 16, 17).

    A report is bytes: where release is "cells", first V_i (a byte for each binned feature, 255 for any bin, then a bit for each
    leaf), then the mechanism's bytes. With "none" a holder answers as if it protected everything.

    Attributes:
        partition: the cells.
        mechanism: how the cell is sent.
        release: one of `RELEASES`.

    Raises:
        ConfigError: the mechanism is for another number of cells, or release is not known.
    """

    kind: ClassVar[str] = "histoftree_cells"

    partition: Product
    mechanism: Masked
    release: str = "all"

    def __post_init__(self) -> None:
        if self.mechanism.n_cells != self.partition.n_cells:
            raise ConfigError(
                f"cells: coins for {self.mechanism.n_cells} of {self.partition.n_cells} cells; make them for the partition"
            )
        if self.release not in RELEASES:
            raise ConfigError(f'mask_release = "{self.release}": known are {", ".join(RELEASES)}')

    @property
    def epsilon(self) -> float:
        """Epsilon that the cell spends at most."""
        return self.mechanism.budget

    @property
    def about(self) -> str:
        """In words."""
        return f"round 2: the cell, of {self.partition.n_cells:,}, by {self.mechanism.name}"

    def describe(self) -> QuestionDescription:
        """The cell, of how many."""
        return QuestionDescription(
            about="cell",
            mechanism=self.mechanism.name,
            epsilon=self.epsilon,
            figures={"cells": self.partition.n_cells, "force": self.mechanism.bound},
        )

    @property
    def width(self) -> int:
        """Bytes of a report."""
        return self._prefix + self.mechanism.width

    @property
    def _prefix(self) -> int:
        n_leaves = self.partition.tree.n_leaves
        return len(self.partition.histogram.features) + -(-n_leaves // 8) if self.release == "cells" else 0

    def respondents(self, n: int) -> NDArray[np.int64]:
        """Everybody."""
        return np.arange(n)

    def check_memory(self, n: int) -> None:
        """Raises ConfigError where n reports would not fit."""
        if n * self.width > MAX_REPORT_BYTES:
            raise ConfigError(
                f"{n:,} reports of {self.partition.n_cells:,} cells by {self.mechanism.name} take {n * self.width / 2**30:,.1f} "
                f"GiB, at most {MAX_REPORT_BYTES / 2**30:g} are kept: up to {MAX_REPORT_BYTES // n * 8:,} cells, or "
                'mechanism="grr", whose reports are 4 bytes'
            )

    def randomize(self, rows: Floats, labels: Floats, protects: Mask, words: Words) -> NDArray[np.uint8]:
        """Reports uint8 [m, width]; labels are not looked at."""
        self.check_memory(len(rows))
        reports = np.empty((len(rows), self.width), dtype=np.uint8)
        for block in self.blocks(len(rows)):
            candidates = self._own_candidates(rows[block], protects[block])
            cells = self.partition.apply(rows[block])
            reports[block, self._prefix :] = self.mechanism.randomize(cells, candidates, words)
            reports[block, : self._prefix] = self._packed(candidates)
        return reports

    def play(self, row: Floats, label: float, protects: Mask, words: Words) -> PlayedAnswer:
        """The cell, of those it could be; what is sent of the mask is left out."""
        candidates = self._own_candidates(row[None], protects[None])
        cell, values = self.partition.apply(row[None]), np.flatnonzero(candidates.matrix()[0])
        report = self.mechanism.randomize(cell, candidates, words)
        # what a report adds to a cell is above 0 where it names it
        named = self.mechanism.sums(report, candidates, np.ones((1, 1)))[0] > 0
        return PlayedAnswer(true=float(cell[0]), values=values, named=named[values])

    def is_valid(self, reports: NDArray[Any]) -> Mask:
        """A cell there is, and V_i, if it is sent, is one that has the cell."""
        reports = self._shaped(reports)
        valid = self.mechanism.is_valid(np.ascontiguousarray(reports[:, self._prefix :]))
        if self.release == "cells":
            digits = reports[:, : len(self.partition.histogram.features)]
            valid &= ((digits < self.partition.histogram.bins) | (digits == 255)).all(axis=1)
            last = self.partition.tree.n_leaves % 8
            valid &= (reports[:, self._prefix - 1] >> last == 0) if last else np.True_
            for block in self.blocks(len(reports)):
                who = np.flatnonzero(valid[block]) + block.start
                candidates = self._unpacked(reports[who])
                answers = np.ascontiguousarray(reports[who, self._prefix :])
                valid[who] = candidates.leaves.any(axis=1) & self.mechanism.fit(answers, candidates)
        return valid

    def sums(self, view: PublicView, reports: NDArray[Any], weights: Floats) -> tuple[Floats, Floats]:
        """sum_i w_i V~_i^j by column of weights [n, c] and cell, float64 [c, cells], and the noise of sum_i V~_i^j, [cells].

        The noise is its variance where nobody is in the cell; with release "cells" or "none", `shown` is not looked at.

        Raises:
            DataError: a report is of another shape, or cannot come from a holder with what is shown.
        """
        reports = self._shaped(reports)
        sums = np.zeros((weights.shape[1], self.partition.n_cells))
        noise = np.zeros(self.partition.n_cells)
        if not self.is_valid(reports).all():
            raise DataError(
                "cells: a report is of no cell there is; it was made under another question, or forged"
            )
        for block in self.blocks(len(reports)):
            if self.release == "cells":
                candidates = self._unpacked(reports[block])
            elif self.release == "none":
                candidates = self._everywhere(block.stop - block.start)
            else:
                candidates = self.partition.candidates(view.values[block], view.protects[block])
            answers = np.ascontiguousarray(reports[block, self._prefix :])
            if not self.mechanism.fit(answers, candidates).all():
                raise DataError("cells: a report names a cell that its holder cannot be in, by what it shows")
            sums += self.mechanism.sums(answers, candidates, weights[block])
            variance = self.mechanism.noise(candidates)
            if variance.any():
                noise += candidates.spread(variance[:, None])[0]
        return sums, noise

    def law(self, row: Floats, label: float, protects: Mask) -> list[tuple[NDArray[Any], Fraction]]:
        """The mechanism's, behind V_i where that is sent."""
        candidates = self._own_candidates(row[None], protects[None])
        prefix = self._packed(candidates)[0].tobytes()
        law = self.mechanism.law(int(self.partition.apply(row[None])[0]), candidates)
        return [(np.frombuffer(prefix + output, dtype=np.uint8), chance) for output, chance in law.items()]

    def blocks(self, n: int) -> Sequence[slice]:
        """Holders whose potential cells are in memory together."""
        is_written_out = self.mechanism.name == "randomized_response"
        side = self.partition.n_cells if is_written_out else self.partition.tree.n_leaves
        step = max(1, _BLOCK // side)
        return [slice(start, min(start + step, n)) for start in range(0, n, step)]

    def to_json(self) -> dict[str, Any]:
        """Return plain values, with the mechanism's name and budget only, as its cells are the partition's."""
        mechanism = {"name": self.mechanism.name, "epsilon": self.mechanism.budget}
        return {
            "kind": self.kind,
            "partition": serialize.to_plain(self.partition),
            "mechanism": mechanism,
            "release": self.release,
        }

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        """The question with these fields. Raises LdptreeError."""
        partition = serialize.of_plain(Product, data["partition"], of="partition")
        named = serialize.of_plain(_NamedMechanism, data["mechanism"], of="mechanism")
        if named.name not in MASKED:
            raise DataError(f"mechanism {named.name!r} is none of {', '.join(MASKED)}")
        return cls(partition, MASKED[named.name](float(named.epsilon), partition.n_cells), data["release"])

    def _own_candidates(self, rows: Floats, protects: Mask) -> Candidates:
        """V_i as its holder knows it."""
        return (
            self._everywhere(len(rows))
            if self.release == "none"
            else self.partition.candidates(rows, protects)
        )

    def _everywhere(self, m: int) -> Candidates:
        histogram, n_leaves = self.partition.histogram, self.partition.tree.n_leaves
        digits = np.full((m, len(histogram.features)), ANY, dtype=np.int64)
        return Candidates(histogram.bins, digits, np.ones((m, n_leaves), dtype=np.bool_))

    def _packed(self, candidates: Candidates) -> NDArray[np.uint8]:
        """V_i as it is sent, uint8 [m, prefix]."""
        if self.release != "cells":
            return np.empty((len(candidates.digits), 0), dtype=np.uint8)
        digits = np.where(candidates.digits == ANY, 255, candidates.digits).astype(np.uint8)
        return np.hstack([digits, np.packbits(candidates.leaves, axis=1, bitorder="little")])

    def _unpacked(self, reports: NDArray[np.uint8]) -> Candidates:
        s, n_leaves = len(self.partition.histogram.features), self.partition.tree.n_leaves
        digits = np.where(reports[:, :s] == 255, ANY, reports[:, :s].astype(np.int64))
        packed = np.ascontiguousarray(reports[:, s : self._prefix])
        leaves = np.unpackbits(packed, axis=1, count=n_leaves, bitorder="little").astype(np.bool_)
        return Candidates(self.partition.histogram.bins, digits, leaves)

    def _shaped(self, reports: NDArray[Any]) -> NDArray[np.uint8]:
        reports = np.asarray(reports)
        if reports.dtype != np.uint8 or reports.ndim != 2 or reports.shape[1] != self.width:
            raise DataError(
                f"cells: reports are uint8 [n, {self.width}], found {reports.dtype} of shape {reports.shape}"
            )
        return reports


@dataclass(frozen=True)
class _NamedMechanism:
    """The mechanism of a cell, without its cells."""

    name: str
    epsilon: float
