"""Markdown tables of `lpct.py`'s suites, targets beside what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class Table:
    """A Markdown table that remembers whether a target was missed."""

    def __init__(self, *columns: str) -> None:
        self.is_met = True
        print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)

    def row(self, *cells: object) -> None:
        """Cells as they are."""
        print(f"| {' | '.join(str(cell) for cell in cells)} |", flush=True)

    def measured(self, name: str, found: Sequence[float], targets: Sequence[float] | None = None) -> None:
        """Figures with three digits, each with its target and a mark where it is missed (in the digits shown)."""
        if targets is None:
            self.row(name, *(f"{f:.3f}" for f in found))
            return
        cells = []
        for figure, target in zip(found, targets, strict=False):
            is_met = round(figure, 3) >= round(target, 3)
            self.is_met &= is_met
            cells.append(f"{figure:.3f} (at least {target:.3f}{'' if is_met else ': MISSED'})")
        self.row(name, *cells, *(f"{f:.3f}" for f in found[len(cells) :]))


def standard_error(values: NDArray[np.float64]) -> float:
    """Of the mean."""
    return float(np.std(values, ddof=1) / math.sqrt(values.size)) if values.size > 1 else math.nan
