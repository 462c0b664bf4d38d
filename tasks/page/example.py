"""A made-up row and the report that it would send: drawn from the public ranges with a fixed seed, never of anybody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ldptree.coins import Words
from ldptree.encoding import NumericFeature
from ldptree.models.description import name_level
from ldptree.protocol.protocol import Protocol
from schemas.dataset import DatasetSpec
from tasks.page.data import Boxes, Example
from tasks.page.units import raw_measured

SEED = 1
MOST_COLUMNS = 6
MOST_CELLS, MOST_LEVELS = 16, 6
"""Of a report, how many are drawn at most."""


def draw_example(protocol: Protocol, data: DatasetSpec, whole: Sequence[str]) -> Example | None:
    """A row from the columns that the partition asks about, its true answer, and its report; None where there are none.

    `whole`: columns of whole numbers.
    """
    rng, names = np.random.default_rng(SEED), data.names
    row, features = [], []
    asked = protocol.raw_tree.columns_used
    for feature in protocol.encoding.features:
        if isinstance(feature, NumericFeature):
            value = float(f"{rng.uniform(feature.minimum, feature.maximum):.2g}")
            value = float(round(value)) if feature.column in whole else value
            row.append(min(max(value, feature.minimum), feature.maximum))
            text = raw_measured(row[-1], data.units.get(feature.column, ""))
        else:
            at = int(rng.integers(len(feature.levels)))
            row.append(float(at))
            text = name_level(feature.column, feature.levels[at], names)
        if feature.column in asked:
            features.append((feature.column.replace("_", " "), text))
    cell = int(protocol.cells(np.array([row]))[0])
    if cell < 0 or not features:
        return None
    level = int(rng.integers(protocol.n_classes))
    named = not protocol.numeric and protocol.base is None
    levels = tuple(
        name_level(protocol.target, value, names) if named else _name_number(protocol, value)
        for value in _values(protocol)
    )
    return Example(
        row=tuple(features[:MOST_COLUMNS]),
        cell=cell,
        level=level,
        levels=levels,
        boxes=draw_report(protocol, cell, level),
    )


def draw_report(protocol: Protocol, cell: int, level: int) -> Boxes | None:
    """A report of this cell and level, as boxes; None where a number is sent apart from its cell, which boxes cannot show."""
    mechanism = protocol.mechanism
    if mechanism.n_levels != protocol.n_classes:
        return None
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
        sent=tuple(write(one) for one in sent[np.ix_(cells, levels)].ravel()),
        outside=tuple(write(one) for one in outside),
        n=int(sums.size),
    )


def _pick(size: int, first: list[int], most: int) -> tuple[int, ...]:
    """So many of 0 .. size - 1, in order: these, then the lowest."""
    return tuple(sorted(list(dict.fromkeys([*first, *range(size)]))[: min(size, most)]))


def _mark(count: Any) -> str:
    return "x" if count else ""


def _write_number(value: Any) -> str:
    text = f"{value:d}" if isinstance(value, np.integer) else f"{value:.1f}"
    return text.replace("-", "\u2212")


def _values(protocol: Protocol) -> tuple[Any, ...]:
    """What the levels of a report are: classes, or numbers; of errors their places from -1 to 1."""
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
