"""Make up a row that is nobody's, from the public ranges with a fixed seed, and the report that it would send."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.coins import Words
from ldptree.encoding import Encoding, NumericFeature
from ldptree.models.description import name_level
from ldptree.models.public_view import points_of
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.question import Question
from schemas.dataset import DatasetSpec
from tasks.page.data import Boxes, Example, SentNumber
from tasks.page.units import raw_measured

SEED = 1
MOST_COLUMNS = 6
MOST_CELLS, MOST_LEVELS = 16, 6
"""Of a report, how many are drawn at most."""


@dataclass(frozen=True, eq=False)
class MadeUp:
    """A made-up row, with its values as in raw data and, by column, in words."""

    values: NDArray[np.float64]
    words: dict[str, str]

    @classmethod
    def of(
        cls, encoding: Encoding, data: DatasetSpec, whole: Collection[str], rng: np.random.Generator
    ) -> MadeUp:
        """Draw a row from the public ranges. Columns in `whole` have whole numbers."""
        values, words = [], {}
        for feature in encoding.features:
            if isinstance(feature, NumericFeature):
                value = float(f"{rng.uniform(feature.minimum, feature.maximum):.2g}")
                value = float(round(value)) if feature.column in whole else value
                values.append(min(max(value, feature.minimum), feature.maximum))
                text = raw_measured(values[-1], data.units.get(feature.column, ""))
            else:
                at = int(rng.integers(len(feature.levels)))
                values.append(float(at))
                text = name_level(feature.column, feature.levels[at], data.names)
            words[feature.column] = text
        return cls(np.array([values]), words)

    def tell(self, columns: Collection[str]) -> list[tuple[str, str]]:
        """Those of the columns that are there, in words."""
        return [(name.replace("_", " "), text) for name, text in self.words.items() if name in columns]


def draw_example(protocol: Protocol, data: DatasetSpec, whole: Sequence[str]) -> Example | None:
    """A row from the columns that the partition asks about, its true answer, and its report; None where there are none.

    `whole`: columns of whole numbers.
    """
    rng, names, mechanism = np.random.default_rng(SEED), data.names, protocol.mechanism
    made = MadeUp.of(protocol.encoding, data, whole, rng)
    row = tuple(made.tell(protocol.raw_tree.columns_used)[:MOST_COLUMNS])
    cell = int(protocol.cells(made.values)[0])
    if cell < 0 or not row:
        return None
    if mechanism.n_levels != protocol.n_classes:
        return draw_apart(protocol, row, cell, int(rng.integers(mechanism.n_levels)))
    level = int(rng.integers(protocol.n_classes))
    named = not protocol.numeric and protocol.base is None
    levels = tuple(
        name_level(protocol.target, value, names) if named else _name_number(protocol, value)
        for value in _values(protocol)
    )
    return Example(row=row, cell=cell, level=level, levels=levels, boxes=draw_report(protocol, cell, level))


def draw_example_in_rounds(
    question: Question,
    encoding: Encoding,
    data: DatasetSpec,
    *,
    protected: Collection[str],
    label_range: tuple[float, float],
    whole: Collection[str],
) -> Example:
    """Draw a row's report, with its protected values and the answer before noise. `protected` names columns."""
    rng, words = np.random.default_rng(SEED), Words.seeded(np.random.SeedSequence(SEED))
    made = MadeUp.of(encoding, data, whole, rng)
    label = float(f"{rng.uniform(*label_range):.2g}")
    protects = np.array(
        [feature.column in protected for feature in encoding.features for _ in feature.names], bool
    )
    played = question.play(points_of(encoding, made.values)[0], label, protects, words)
    own = (data.target.replace("_", " "), raw_measured(label, data.unit))
    row = (*made.tell(protected)[: MOST_COLUMNS - 1], own)
    if played.sent is not None:
        return Example(row=row, cell=0, level=0, number=SentNumber(true=played.true, sent=played.sent))
    cell, places = int(played.true), np.flatnonzero(played.named)
    must = [int(np.searchsorted(played.values, cell)), *places[:MOST_CELLS].tolist()]
    drawn = _pick(len(played.values), must, MOST_CELLS)
    boxes = Boxes(
        cells=tuple(int(played.values[place]) for place in drawn),
        levels=(0,),
        sent=tuple(_mark(played.named[place]) for place in drawn),
        outside=(),
        n=len(played.values),
    )
    return Example(row=row, cell=cell, level=0, boxes=boxes)


def draw_apart(protocol: Protocol, row: tuple[tuple[str, str], ...], cell: int, step: int) -> Example:
    """A report of this cell, and apart from it of a number, so many steps above the low end of its range.

    Of bits the number is one for all cells; of numbers with noise each cell has its own, of which that of this cell is told.
    """
    mechanism, n_cells = protocol.mechanism, protocol.n_cells
    value = np.array([cell * mechanism.n_levels + step])
    sums = mechanism.aggregate(mechanism.randomize(value, Words.seeded(np.random.SeedSequence(SEED))))
    low, high = protocol.label_range
    steps, cells = mechanism.n_levels - 1, _pick(n_cells, [cell], MOST_CELLS)
    levels: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    if mechanism.describe().form == "bits and number":
        share, outside = float(sums[-1]) / steps, (_mark(sums[n_cells]),)
        sent = [_mark(sums[place]) for place in cells]
    else:
        here, numbers = sums.reshape(2, n_cells)
        share, levels = float(numbers[cell]) + 0.5, ("here", "number")
        sent = [_write_number(figures[at]) for at in cells for figures in (here, numbers)]
    return Example(
        row=row,
        cell=cell,
        level=0,
        levels=levels,
        boxes=Boxes(
            cells=cells,
            levels=tuple(range(max(len(levels), 1))),
            sent=tuple(sent),
            outside=outside,
            n=max(len(levels), 1) * n_cells + len(outside),
        ),
        number=SentNumber(true=low + (high - low) * step / steps, sent=low + (high - low) * share),
    )


def draw_report(protocol: Protocol, cell: int, level: int) -> Boxes:
    """A report of this cell and level, as boxes."""
    mechanism = protocol.mechanism
    value = np.array([cell * protocol.n_classes + level])
    sums = mechanism.aggregate(mechanism.randomize(value, Words.seeded(np.random.SeedSequence(SEED))))
    form = mechanism.describe().form
    if form == "bits and label":
        sums = sums[: -protocol.n_classes]  # behind them stands the label alone
    n = protocol.n_cells * protocol.n_classes
    sent, outside = sums[:n].reshape(-1, protocol.n_classes), sums[n:]
    must: tuple[list[int], list[int]] = [cell], [level]
    if form == "value":
        must = (
            [cell, *np.nonzero(sent.any(axis=1))[0].tolist()],
            [level, *np.nonzero(sent.any(axis=0))[0].tolist()],
        )
    cells, levels = (
        _pick(size, first, most)
        for size, first, most in zip(sent.shape, must, (MOST_CELLS, MOST_LEVELS), strict=True)
    )
    write = _write_number if form == "numbers" else _mark
    return Boxes(
        cells=cells,
        levels=levels,
        sent=tuple(write(number) for number in sent[np.ix_(cells, levels)].ravel()),
        outside=tuple(write(number) for number in outside),
        n=int(sums.size),
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
