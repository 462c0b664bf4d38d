"""How the scripts print what they measure: Markdown tables, with targets beside figures; and matplotlib for their pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class MarkdownTable:
    """A Markdown table, printed row by row, that remembers whether a target was missed."""

    def __init__(self, *columns: object) -> None:
        self.is_met = True
        print(f"\n| {' | '.join(map(str, columns))} |\n|{'---|' * len(columns)}", flush=True)

    def row(self, *cells: object) -> None:
        """Print cells as they are."""
        print(f"| {' | '.join(map(str, cells))} |", flush=True)

    def figures(self, name: object, values: Sequence[float] | NDArray[Any], form: str = ".3f") -> None:
        """Print a name and figures."""
        self.row(name, *(f"{value:{form}}" for value in values))

    def judge(self, figure: float, target: float | None, *, most: bool, digits: int = 3) -> str:
        """The figure, its target and a mark where it is missed (in the digits shown)."""
        if target is None:
            return f"{figure:.{digits}f}"
        found, wanted = round(figure, digits), round(target, digits)
        is_met = found <= wanted if most else found >= wanted
        self.is_met &= is_met
        word = "at most" if most else "at least"
        return f"{figure:.{digits}f} ({word} {target:g}{'' if is_met else ': MISSED'})"

    def measured(self, name: str, found: Sequence[float], targets: Sequence[float] | None = None) -> None:
        """Print figures with three digits, each with the target it should reach."""
        known = [*(targets or ()), *[None] * len(found)]
        self.row(name, *(self.judge(f, target, most=False) for f, target in zip(found, known, strict=False)))


def standard_error(values: Sequence[float] | NDArray[np.float64]) -> float:
    """Of the mean."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def pyplot(font_size: int = 9) -> Any:
    """matplotlib's pyplot, without a display."""
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcParams.update({"font.size": font_size, "axes.spines.top": False, "axes.spines.right": False})
    from matplotlib import pyplot as plt

    return plt
