"""Make the typical public row, which is nobody's, and draw reports of it with the run's mechanism from a fixed seed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.coins import Words
from ldptree.encoding import Encoding, NumericFeature
from ldptree.mechanisms import Mechanism, report_values
from ldptree.models.description import name_level
from ldptree.models.public_view import points_of
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.question import Question
from ldptree.protocol.stochastic_rounding import expected_shares, round_at_random
from schemas.dataset import DatasetSpec
from tasks.page.data import Boxes, Example, SentNumber
from tasks.page.units import raw_measured

SEED = 1
REPORTS = 12
"""Reports that are drawn of one row."""
MOST_COLUMNS = 6
MOST_CELLS, MOST_LEVELS = 16, 6
"""Of a report, how many are drawn at most; more where a report names one value and another drawn one names others."""
MOST_WRITTEN = 3
"""Of a report of numbers, the cells that are drawn at most."""


@dataclass(frozen=True, eq=False)
class TypicalRow:
    """The medians and commonest levels of public rows, with values as in raw data and, by column, in words.

    Attributes:
        values: float64 [1, columns].
        label: the commonest class's number, or the median.
        words: of features, in words.
        own: the label's column and its value in words.
    """

    values: NDArray[np.float64]
    label: float
    words: dict[str, str]
    own: tuple[str, str]

    @classmethod
    def of(
        cls,
        encoding: Encoding,
        data: DatasetSpec,
        rows: NDArray[np.float32],
        labels: NDArray[Any],
        *,
        whole: Collection[str],
        classes: Sequence[str],
    ) -> TypicalRow:
        """Read it from encoded public rows [n, d] and their labels. Columns in `whole` have whole numbers."""
        values, words, at = [], {}, 0
        for feature in encoding.features:
            columns = rows[:, at : at + len(feature.names)]
            at += len(feature.names)
            if isinstance(feature, NumericFeature):
                low, high = feature.minimum, feature.maximum
                value = low + float(np.nanmedian(columns[:, 0])) * (high - low)
                value = float(round(value)) if feature.column in whole else float(f"{value:.3g}")
                values.append(min(max(value, low), high))
                text = raw_measured(values[-1], data.units.get(feature.column, ""))
            else:
                counts = [np.nansum(columns[:, level]) for level in range(len(feature.levels))]
                values.append(float(np.argmax(counts)))
                text = name_level(feature.column, feature.levels[int(values[-1])], data.names)
            words[feature.column] = text
        if classes:
            commonest = int(np.bincount(labels).argmax())
            label, says = float(commonest), classes[commonest]
        else:
            label = float(f"{np.median(labels):.3g}")
            says = raw_measured(label, data.unit)
        return cls(np.array([values]), label, words, (data.target.replace("_", " "), says))

    def tell(self, columns: Collection[str]) -> tuple[tuple[str, str], ...]:
        """Those of the columns that are there, and the label, in words."""
        lines = [(name.replace("_", " "), text) for name, text in self.words.items() if name in columns]
        return *lines[: MOST_COLUMNS - 1], self.own


def draw_example(protocol: Protocol, row: TypicalRow, data: DatasetSpec) -> Example | None:
    """Draw reports of a row, each rounded and randomised anew, with those of its columns that the partition asks about; None
    where the row is outside. Of several classes they are about the row's own.
    """
    mechanism, words = protocol.mechanism, Words.seeded(np.random.SeedSequence(SEED))
    outputs = None if protocol.n_outputs == 1 else np.full(REPORTS, int(row.label))
    raw, labels = np.repeat(row.values, REPORTS, axis=0), np.full(REPORTS, row.label)
    cell = int(protocol.cells(raw)[0])
    if cell < 0:
        return None
    if protocol.base is not None:
        labels = protocol.residuals(raw, labels, outputs=outputs)
    exact, level, nearest = float(labels[0]), int(row.label), 1.0
    if protocol.numeric:
        shares = expected_shares(labels[:1], *protocol.label_range, mechanism.n_levels)
        level, nearest = int(shares.argmax()), float(shares.max())
        labels = round_at_random(labels, *protocol.label_range, mechanism.n_levels, words)
    values = report_values(
        protocol.cells(raw), labels, n_cells=protocol.n_cells, n_classes=mechanism.n_levels
    )
    reports = mechanism.randomize(values, words)
    sums = np.array([mechanism.aggregate(reports[at : at + 1]) for at in range(REPORTS)])
    shown = row.tell(protocol.raw_tree.columns_used)
    if mechanism.n_levels != protocol.n_classes:
        return draw_apart(protocol, shown, cell, exact, sums)
    named = not protocol.numeric and protocol.base is None
    levels = tuple(
        name_level(protocol.target, value, data.names) if named else _name_number(protocol, value)
        for value in _values(protocol)
    )
    return Example(
        row=shown,
        cell=cell,
        level=level,
        levels=levels,
        boxes=draw_boxes(protocol, cell, level, sums),
        rounded=exact if protocol.numeric else None,
        output=0 if outputs is None else int(outputs[0]),
        left_out=_left_out(mechanism, nearest),
    )


def _left_out(mechanism: Mechanism, nearest: float) -> float | None:
    """Return the share of reports that do not name the true cell and level, where that share of them is rounded to it."""
    figures = mechanism.describe().figures
    if "p" not in figures:
        return None
    label_p = figures.get("label_p")
    own, other = figures["p"] * (label_p or 1.0), figures["q"]
    if label_p is not None:
        other = figures["p"] * (1.0 - label_p) / (mechanism.n_classes - 1)
    return 1.0 - nearest * own - (1.0 - nearest) * other


def draw_example_in_rounds(
    question: Question, encoding: Encoding, row: TypicalRow, *, protected: Collection[str]
) -> Example:
    """Draw a row's reports, with its protected values and the answer before noise. `protected` names columns."""
    words = Words.seeded(np.random.SeedSequence(SEED))
    protects = np.array(
        [feature.column in protected for feature in encoding.features for _ in feature.names], bool
    )
    point = points_of(encoding, row.values)[0]
    played = [question.play(point, row.label, protects, words) for _ in range(REPORTS)]
    first, shown = played[0], row.tell(protected)
    if first.sent is not None:
        sent = tuple(each.sent for each in played if each.sent is not None)
        return Example(row=shown, cell=0, level=0, number=SentNumber(true=first.true, sent=sent))
    cell, named = int(first.true), np.array([each.named for each in played])
    must = [int(np.searchsorted(first.values, cell)), *np.flatnonzero(named.any(axis=0)).tolist()]
    drawn = _pick(len(first.values), must, MOST_CELLS)
    return Example(
        row=shown,
        cell=cell,
        level=0,
        boxes=Boxes(
            cells=tuple(int(first.values[place]) for place in drawn),
            levels=(0,),
            reports=tuple(tuple(_mark(each[place]) for place in drawn) for each in named),
            n_outside=0,
            n=len(first.values),
        ),
    )


def draw_apart(
    protocol: Protocol, row: tuple[tuple[str, str], ...], cell: int, number: float, sums: NDArray[Any]
) -> Example:
    """Reports of this cell, and apart from it of a number.

    Of bits the number is one for all cells; of numbers with noise each cell has its own, of which that of this cell is told.
    `sums`: those of each report.
    """
    mechanism, n_cells = protocol.mechanism, protocol.n_cells
    low, high = protocol.label_range
    steps = mechanism.n_levels - 1
    levels: tuple[str, ...] = ()
    if mechanism.describe().form == "bits and number":
        cells = _pick(n_cells, [cell], MOST_CELLS)
        shares = sums[:, -1] / steps
        drawn = [tuple(_mark(each[place]) for place in (*cells, n_cells)) for each in sums]
    else:
        cells, levels = _pick(n_cells, [cell], MOST_WRITTEN), ("here", "number")
        shares = sums[:, n_cells + cell] + 0.5
        drawn = [
            tuple(_write_number(each[at + place]) for place in cells for at in (0, n_cells)) for each in sums
        ]
    n_each = max(len(levels), 1)
    n_outside = len(drawn[0]) - n_each * len(cells)
    return Example(
        row=row,
        cell=cell,
        level=0,
        levels=levels,
        boxes=Boxes(
            cells=cells,
            levels=tuple(range(n_each)),
            reports=tuple(drawn),
            n_outside=n_outside,
            n=n_each * n_cells + n_outside,
        ),
        number=SentNumber(
            true=min(max(number, low), high),
            sent=tuple(low + (high - low) * share for share in shares.tolist()),
        ),
    )


def draw_boxes(protocol: Protocol, cell: int, level: int, sums: NDArray[Any]) -> Boxes:
    """Reports of this cell and level as boxes; `sums` are those of each, [reports, raw size]."""
    form = protocol.mechanism.describe().form
    if form == "bits and label":
        sums = sums[:, : -protocol.n_classes]  # behind them stands the label alone
    n = protocol.n_cells * protocol.n_classes
    sent, outside = sums[:, :n].reshape(len(sums), -1, protocol.n_classes), sums[:, n:]
    must: tuple[list[int], list[int]] = [cell], [level]
    most = (MOST_WRITTEN if form == "numbers" else MOST_CELLS, MOST_LEVELS)
    if form == "value":
        must = (
            [cell, *np.flatnonzero(sent.any(axis=(0, 2))).tolist()],
            [level, *np.flatnonzero(sent.any(axis=(0, 1))).tolist()],
        )
        most = max(MOST_CELLS, len(must[0])), max(MOST_LEVELS, len(must[1]))
    cells, levels = (
        _pick(size, first, at_most) for size, first, at_most in zip(sent.shape[1:], must, most, strict=True)
    )
    write = _write_number if form == "numbers" else _mark
    return Boxes(
        cells=cells,
        levels=levels,
        reports=tuple(
            tuple(write(number) for number in (*own[np.ix_(cells, levels)].ravel(), *beyond))
            for own, beyond in zip(sent, outside, strict=True)
        ),
        n_outside=outside.shape[1],
        n=sums.shape[1],
    )


def _pick(size: int, first: list[int], most: int) -> tuple[int, ...]:
    """Return at most `most` of 0 .. size - 1, in order. It takes those in `first`, then the lowest."""
    return tuple(sorted(list(dict.fromkeys([*first, *range(size)]))[: min(size, most)]))


def _mark(count: Any) -> str:
    return "x" if count else ""


def _write_number(value: Any) -> str:
    text = f"{value:d}" if isinstance(value, np.integer) else f"{value:.1f}"
    return text.replace("-", "\u2212")


def _values(protocol: Protocol) -> tuple[Any, ...]:
    """Return the levels of a report, as classes, numbers, or places of errors from -1 to 1."""
    if protocol.base is None:
        return tuple(protocol.classes)
    return tuple(np.linspace(-1.0, 1.0, protocol.n_classes).tolist())


def _name_number(protocol: Protocol, value: float) -> str:
    """A level that is a number, in figures; one that is an error in words of the public answer."""
    if protocol.base is None:
        return f"{value:g}".replace("-", "\u2212")
    if abs(value) < 1e-9:
        return "right"
    direction = "high" if value < 0 else "low"
    return f"too {direction}" if abs(value) == 1 else direction
