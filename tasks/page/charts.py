"""Compute pictures as plain numbers for inline SVG, such as axes in percent, branches and bits of a report."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ldptree.models.description import CurveLine, CurvePoint, Node
from tasks.page.data import Boxes
from tasks.page.units import NARROW, fixed, in_words

ROW = 3.5
"""Height of a leaf's row, in rem."""
WHOLE = 6.9
"""Width of the branch that holds everybody, in rem."""
SHORT = {
    "thousand": f"{NARROW}k",
    "million": f"{NARROW}m",
    "billion": f"{NARROW}bn",
    "trillion": f"{NARROW}tn",
}
"""At a tick, which has little room."""
SEAM = 0.1
"""Percent of the tree's width by which a branch begins under the one before it, so that no gap is seen."""


@dataclass(frozen=True)
class Axis:
    """A number line from 2 to 98 percent of the width."""

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float], *, zero: bool = False) -> Axis:
        """Return an axis that holds these values, and 0 if `zero`."""
        finite = [value for value in values if math.isfinite(value)] + ([0.0] if zero else [])
        low, high = min(finite, default=0.0), max(finite, default=1.0)
        if high <= low:
            low, high = low - 0.5, high + 0.5
        pad = 0.04 * (high - low)
        size, low, high = high - low, low - pad, high + pad
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


@dataclass(frozen=True)
class Branch:
    """One node as it is drawn.

    Attributes:
        node: what is drawn.
        level: below the root.
        middle: of its band, in rem from the top.
        rows: the first row that it spans, and how many.
        is_end: whether it is drawn with a row: a leaf, or a branch that is cut.
        is_clear: whether it leads to a clear estimate.
        children: as they are drawn.
    """

    node: Node
    level: int
    middle: float
    rows: tuple[int, int]
    is_end: bool
    is_clear: bool
    children: tuple[Branch, ...] = ()

    @property
    def thickness(self) -> float:
        """Of its band."""
        return max(WHOLE * max(self.node.share, 0.0), 0.08)


def draw_tree(root: Node, is_open: Callable[[Node], bool]) -> Branch:
    """The tree laid out in rows, one for each end."""

    def lay(node: Node, level: int, first: int) -> Branch:
        if not node.children or not is_open(node):
            return Branch(node, level, (first + 0.5) * ROW, (first, 1), True, node.is_clear)
        children, row = [], first
        for child in node.children:
            children.append(lay(child, level + 1, row))
            row += children[-1].rows[1]
        middle = (children[0].middle + children[-1].middle) / 2
        clear = any(child.is_clear for child in children)
        return Branch(node, level, middle, (first, row - first), False, clear, tuple(children))

    return lay(root, 0, 0)


def depth_of(branch: Branch) -> int:
    """Levels below a branch."""
    return max((1 + depth_of(child) for child in branch.children), default=0)


def ribbons(root: Branch) -> list[tuple[str, bool]]:
    """Paths of the bands between nodes, and whether they lead to a clear estimate; 100 wide."""
    levels = max(depth_of(root), 1)
    width = 100.0 / levels
    paths: list[tuple[str, bool]] = []

    def draw(branch: Branch) -> None:
        total = sum(child.thickness for child in branch.children) or 1.0
        top = branch.middle - branch.thickness / 2
        for child in branch.children:
            part = branch.thickness * child.thickness / total
            x1 = max(branch.level * width - SEAM, 0.0)
            x2 = 100.0 if child.is_end else child.level * width
            bend = x1 + 0.55 * width, x1 + width
            low, high = child.middle - child.thickness / 2, child.middle + child.thickness / 2
            middle = (bend[0] + bend[1]) / 2
            path = (
                f"M{x1:.2f} {top:.2f}H{bend[0]:.2f}C{middle:.2f} {top:.2f} {middle:.2f} {low:.2f} {bend[1]:.2f} {low:.2f}"
                f"H{x2:.2f}V{high:.2f}H{bend[1]:.2f}C{middle:.2f} {high:.2f} {middle:.2f} {top + part:.2f} "
                f"{bend[0]:.2f} {top + part:.2f}H{x1:.2f}Z"
            )
            paths.append((path, child.is_clear))
            top += part
            draw(child)

    draw(root)
    return sorted(paths, key=lambda pair: pair[1])


@dataclass(frozen=True)
class Plot:
    """A curve of stretches, 100 wide and 100 high, with its categories as rows."""

    curve: CurveLine
    x: Axis | None
    y: Axis
    line: str
    public: str
    band: str

    @property
    def named(self) -> Sequence[CurvePoint]:
        """Points that are no stretch of numbers."""
        return [point for point in self.curve.points if point.low is None]


def draw_curve(curve: CurveLine) -> Plot:
    """A curve as steps, or joined at the middles of its stretches where it is smooth."""
    points = [point for point in curve.points if point.low is not None]
    ends = [
        (point.value - 2 * (point.sd or 0.0), point.value + 2 * (point.sd or 0.0)) for point in curve.points
    ]
    public = [point.public for point in curve.points if point.public is not None]
    y = Axis.of([end for pair in ends for end in pair] + public)
    if not points:
        return Plot(curve, None, y, "", "", "")
    x = Axis.of([end for point in points for end in (point.low, point.high) if end is not None])

    def across(value: float) -> float:
        return 100 * (value - x.low) / (x.high - x.low)

    def down(value: float) -> float:
        return 100 * (1 - (value - y.low) / (y.high - y.low))

    def trace(values: Sequence[float]) -> list[str]:
        path = []
        for point, value in zip(points, values, strict=True):
            low, high = across(point.low or 0.0), across(point.high or 0.0)
            places = [(low + high) / 2] if curve.is_smooth else [low, high]
            path += [f"{place:.2f} {down(value):.2f}" for place in places]
        return path

    lows = trace([point.value - 2 * (point.sd or 0.0) for point in points])
    highs = trace([point.value + 2 * (point.sd or 0.0) for point in points])
    has_band = any(point.sd for point in points)
    shown = [point.public for point in points]
    return Plot(
        curve=curve,
        x=x,
        y=y,
        line="M" + "L".join(trace([point.value for point in points])),
        public="M" + "L".join(trace([value for value in shown if value is not None]))
        if all(value is not None for value in shown)
        else "",
        band="M" + "L".join(lows + highs[::-1]) + "Z" if has_band else "",
    )


STRIP = 150.0
"""Height of the epsilon strip, in px."""
SPREAD = 7.0
"""How far the dots of a column lie to each side, in px, so that those of the same height are told apart."""


@dataclass(frozen=True)
class Column:
    """One epsilon of the strip, with its place in percent, its dots in px, and the height of their median."""

    epsilon: float
    x: str
    dots: tuple[tuple[str, str], ...]
    median: str
    is_own: bool


@dataclass(frozen=True)
class Strip:
    """Draws of a figure at several epsilons, the figure upward."""

    axis: Axis
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, draws: Sequence[tuple[float, Sequence[float]]], own: float, lines: Sequence[float]) -> Strip:
        """Return the strip of ascending epsilons with figures. It marks `own`, and its axis holds `lines` as well."""
        axis = Axis.of([*(value for _, figures in draws for value in figures), *lines])
        columns = []
        for number, (epsilon, figures) in enumerate(draws):
            at = 12 + 88 * (number + 0.5) / len(draws)
            beside = [
                SPREAD * (2 * (i % 5) / 4 - 1) if len(figures) > 1 else 0.0 for i in range(len(figures))
            ]
            columns.append(
                Column(
                    epsilon=epsilon,
                    x=f"{at:.2f}%",
                    dots=tuple((f"{dx:.1f}", height(axis, y)) for dx, y in zip(beside, figures, strict=True)),
                    median=height(axis, statistics.median(figures)),
                    is_own=epsilon == own,
                )
            )
        return cls(axis, tuple(columns))

    @property
    def half(self) -> str:
        """Half of a column's width, in percent."""
        return f"{46 / len(self.columns):.2f}%"


def height(axis: Axis, value: float) -> str:
    """Return the place of a value on an upright axis of the strip, in px from the top."""
    share = (value - axis.low) / (axis.high - axis.low)
    return f"{8 + (STRIP - 16) * (1 - min(max(share, 0.0), 1.0)):.2f}"


def place_boxes(boxes: Boxes) -> list[tuple[int, int]]:
    """Return where each box of a report stands, cell by cell, then those of "anything else"."""
    n, right = len(boxes.levels), 64 + 22 * len(boxes.cells)
    of_cells = [(59 + 22 * i, 18 + 25 * j) for i in range(len(boxes.cells)) for j in range(n)]
    return of_cells + [(right, 18 + 25 * j) for j in range(boxes.n_outside)]


def dots(first: int, last: int) -> str:
    """Return the path of the dots from one number to another of a hundred, twenty in a row, 15 apart."""
    return "".join(f"M{10 + 15 * (at % 20)} {10 + 15 * (at // 20)}h0" for at in range(first, last))
