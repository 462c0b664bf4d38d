"""A made-up row and the report that it would send: drawn from the public ranges with a fixed seed, never of anybody."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldptree.encoding import NumericFeature
from ldptree.models.description import name_level
from ldptree.protocol.protocol import Protocol
from schemas.dataset import DatasetSpec
from tasks.page.data import Example
from tasks.page.units import raw_measured

SEED = 1
MOST_COLUMNS, MOST_BITS, MOST_CELLS = 6, 64, 16
OF_BITS = ("oue", "sue")
"""Oracles whose report is one bit a value."""


def draw_example(protocol: Protocol, data: DatasetSpec) -> Example | None:
    """A row from the columns that the partition asks about, its true answer, and its report; None where there are none."""
    rng, names = np.random.default_rng(SEED), data.names
    row, features = [], []
    asked = protocol.raw_tree.columns_used
    for feature in protocol.encoding.features:
        if isinstance(feature, NumericFeature):
            value = float(f"{rng.uniform(feature.minimum, feature.maximum):.2g}")
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
    n = protocol.n_classes
    level = int(rng.integers(n))
    named = not protocol.numeric and protocol.base is None
    levels = tuple(
        name_level(protocol.target, value, names) if named else _name_number(protocol, value)
        for value in _values(protocol)
    )
    facts = protocol.mechanism.describe()
    bits: tuple[bool, ...] = ()
    if facts.oracle in OF_BITS and protocol.k <= MOST_BITS and protocol.n_cells <= MOST_CELLS:
        chances = facts.figures
        is_true = np.arange(protocol.k) == cell * n + level
        bits = tuple((rng.random(protocol.k) < np.where(is_true, chances["p"], chances["q"])).tolist())
    return Example(row=tuple(features[:MOST_COLUMNS]), cell=cell, level=level, levels=levels, bits=bits)


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
