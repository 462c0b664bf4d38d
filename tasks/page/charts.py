"""Compute pictures as plain numbers for inline SVG, such as axes in percent, rows of figures and bits of a report."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tasks.page.data import Boxes, Span
from tasks.page.units import NARROW, fixed, in_words

SHORT = {
    "thousand": f"{NARROW}k",
    "million": f"{NARROW}m",
    "billion": f"{NARROW}bn",
    "trillion": f"{NARROW}tn",
}
"""At a tick, which has little room."""
PERCENT = 100.0
"""Scale of shares at ticks."""


@dataclass(frozen=True)
class Axis:
    """A number line from 2 to 98 percent of the width."""

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float], *, zero: bool = False, is_share: bool = False) -> Axis:
        """Return an axis that holds these values, and 0 if `zero`; no share is below 0 or above 1."""
        finite = [value for value in values if math.isfinite(value)] + ([0.0] if zero else [])
        low, high = min(finite, default=0.0), max(finite, default=1.0)
        if high <= low:
            low, high = low - 0.5, high + 0.5
        pad = 0.04 * (high - low)
        size, low, high = high - low, low - pad, high + pad
        if is_share:
            low, high = max(low, 0.0), min(high, 1.0)
        ticks: tuple[float, ...] = ()
        for parts in (4, 8):  # a round step may leave room for a tick or two alone
            step = _round_step(size / parts)
            first, last = math.ceil(low / step), math.floor(high / step)
            if len(ticks) < 3:
                ticks = tuple(tick * step for tick in range(first, last + 1))
        return cls(low, high, ticks)

    def at(self, value: float) -> str:
        """Return the place of a value, in percent; at an end where it is beyond."""
        share = (value - self.low) / (self.high - self.low)
        return f"{2 + 96 * min(max(share, 0.0), 1.0):.2f}%"

    def width(self, low: float, high: float) -> str:
        """Return the width of a stretch, in percent."""
        return f"{float(self.at(high)[:-1]) - float(self.at(low)[:-1]):.2f}%"

    def label(self, tick: float, scale: float = 1.0, *, signed: bool = False) -> str:
        """A tick in figures."""
        largest = max(abs(tick) for tick in self.ticks) * scale
        unit, word = (1e3, "thousand") if 1e4 <= largest < 1e6 else in_words(largest)
        scale /= unit
        step = (self.ticks[1] - self.ticks[0]) * scale if len(self.ticks) > 1 else scale
        digits = min(max(-math.floor(math.log10(step) + 1e-9), 0), 9)
        return fixed(tick * scale, digits, signed=signed) + SHORT.get(word, "")


def _round_step(size: float) -> float:
    power = 10.0 ** math.floor(math.log10(size))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= size * (1 - 1e-9))


@dataclass(frozen=True, kw_only=True)
class Track:
    """One row of a chart.

    Attributes:
        name, figure, note: in words: what the row is of, its figure, and its interval or whatever else there is to say.
        role: "ours", "pub" or "ref".
        value, public: where the figure stands on the axis, and that of public rows; None where there is none.
        interval, spread: around it.
        draws: single figures.
        is_own: whether it is the row that the others are compared with.
    """

    name: str
    figure: str
    note: str = ""
    role: str = "ref"
    value: float | None = None
    public: float | None = None
    interval: Span | None = None
    spread: Span | None = None
    draws: tuple[float, ...] = ()
    is_own: bool = False


@dataclass(frozen=True)
class Chart:
    """Rows along one axis, with upright lines at figures that they are compared with, each with its words and its role. `caption`
    says what the figures are of, where no heading does.
    """

    axis: Axis
    rows: tuple[Track, ...]
    lines: tuple[tuple[float, str, str], ...] = ()
    scale: float = 1.0
    caption: str = ""

    @classmethod
    def of(
        cls,
        rows: Iterable[Track],
        lines: Iterable[tuple[float, str, str]] = (),
        *,
        scale: float = 1.0,
        caption: str = "",
    ) -> Chart:
        """Return a chart whose axis holds all figures and intervals of its rows, and its lines."""
        rows, lines = tuple(rows), tuple(lines)
        values = [value for value, _, _ in lines]
        for row in rows:
            spans = (span for span in (row.interval, row.spread) if span)
            values += [*row.draws, *(end for span in spans for end in (span.low, span.high))]
            values += [value for value in (row.value, row.public) if value is not None]
        return cls(Axis.of(values, is_share=scale == PERCENT), rows, lines, scale, caption)

    @property
    def heads(self) -> list[tuple[str, str, str, str]]:
        """Return of each line its place, its words, the side of the line they stand on, and its role."""
        ordered = sorted(
            self.lines
        )  # of two, the lower one's words stand left of it, also where both are alike
        left = ordered[:1] if len(ordered) > 1 else []
        return [
            (self.axis.at(line[0]), line[1], "e" if line in left else "s", line[2]) for line in self.lines
        ]


def place_boxes(boxes: Boxes) -> list[tuple[int, int]]:
    """Return where each box of a report stands, cell by cell, then those of "anything else"."""
    n, right = len(boxes.levels), 64 + 22 * len(boxes.cells)
    of_cells = [(59 + 22 * i, 18 + 25 * j) for i in range(len(boxes.cells)) for j in range(n)]
    return of_cells + [(right, 18 + 25 * j) for j in range(boxes.n_outside)]


def size_boxes(boxes: Boxes) -> tuple[int, int]:
    """Return the width and height that the boxes of a report take, from 56 and 16.5 on."""
    return 22 * len(boxes.cells) + (34 if boxes.n_outside else 6), 25 * max(
        len(boxes.levels), boxes.n_outside
    )


def dots(first: int, last: int) -> str:
    """Return the path of the dots from one number to another of a hundred, twenty in a row, 15 apart."""
    return "".join(f"M{10 + 15 * (at % 20)} {10 + 15 * (at // 20)}h0" for at in range(first, last))
