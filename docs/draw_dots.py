"""Draw a table of figures as an SVG, a line for each row with a dot for each column, light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH, LABELS, LINE, TOP = 760, 300, 24, 40
LEFT, RIGHT = LABELS + 24, WIDTH - 24
Cells = Sequence[Sequence[float]]
STYLE = """
.paper { fill: #fff } text { font: 13px system-ui, sans-serif; fill: #14202c }
.soft { fill: #4a5968 } .grid { stroke: #e3e9ef } .stem { stroke: #8a98a6; stroke-width: 2 }
.range { stroke: #bcd9f5; stroke-width: 9; stroke-linecap: round } .dot { fill: #0b5cad; stroke: #fff }
@media (prefers-color-scheme: dark) {
  .paper { fill: #0f151c } text { fill: #e9eff5 } .soft { fill: #a9b7c5 } .grid { stroke: #26323e } .stem { stroke: #738393 }
  .range { stroke: #1f4a75 } .dot { fill: #74b6ff; stroke: #0f151c }
}
"""


def draw_dots(rows: Sequence[tuple[str, Cells]], names: Sequence[str]) -> str:
    """Return a picture of rows, each a label and a cell for each of `names`; later dots are larger.

    A cell is a figure, drawn as a dot, both ends of a range, drawn as a bar, or nothing. Figures of which one is 20 times another
    are drawn on a logarithmic scale.
    """
    lines = [(label, cells) for label, cells in rows if any(cells)]
    scale = _Scale([n for _, values in lines for cell in values for n in cell])
    height = TOP + LINE * len(lines) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}" rx="8"/>',
    ]
    for tick in scale.ticks:
        x = scale.place(tick)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{height - 24}"/>')
        parts.append(f'<text class="soft" x="{x:.1f}" y="{height - 8}" text-anchor="middle">{tick:g}</text>')
    at = 12.0
    for number, name in enumerate(names):
        if any(len(values[number]) > 1 for _, values in lines):
            parts.append(_line("range", at - 6, at + 6, 16))
        else:
            parts.append(_dot(at, 16, number, len(names)))
        parts.append(f'<text class="soft" x="{at + 14:.0f}" y="20">{escape(name)}</text>')
        at += 36 + 7.5 * len(name)
    for number, (label, values) in enumerate(lines):
        y = TOP + LINE * number + LINE / 2
        shown = label if len(label) <= 44 else f"{label[:43]}…"
        parts.append(f'<text x="{LABELS}" y="{y + 4:.0f}" text-anchor="end">{escape(shown)}</text>')
        places = [[scale.place(n) for n in cell] for cell in values]
        dots = [(k, cell[0]) for k, cell in enumerate(places) if len(cell) == 1]
        parts += [_line("range", cell[0], cell[-1], y) for cell in places if len(cell) > 1]
        if len({x for _, x in dots}) > 1 and not any(len(cell) > 1 for cell in places):
            ends = [x for _, x in dots]
            parts.append(_line("stem", min(ends), max(ends), y))
        parts += [_dot(x, y, k, len(names)) for k, x in dots]
    return "\n".join([*parts, "</svg>", ""])


def _line(name: str, left: float, right: float, y: float) -> str:
    return f'<line class="{name}" x1="{left:.1f}" x2="{right:.1f}" y1="{y:.0f}" y2="{y:.0f}"/>'


def _dot(x: float, y: float, number: int, many: int) -> str:
    share = (number + 1) / many
    return f'<circle class="dot" cx="{x:.1f}" cy="{y:.0f}" r="{2.5 + 3.5 * share:.1f}" fill-opacity="{0.3 + 0.7 * share:.2f}"/>'


class _Scale:
    """Where a figure is drawn between the left and the right end."""

    def __init__(self, figures: Sequence[float]) -> None:
        positive = [figure for figure in figures if figure > 0]
        is_log = min(figures) >= 0 and max(positive) > 20 * min(positive)
        self._in = math.log10 if is_log else float
        low, high = min(positive if is_log else figures), max(figures)
        if is_log:
            self.ticks = [
                10.0**k for k in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            ]
        else:
            room = (high - low) or abs(high) or 1.0
            step = 10 ** math.floor(math.log10(room / 3))
            step *= next(k for k in (1, 2, 5, 10) if room / (k * step) <= 6)
            first, last = math.floor(low / step), math.ceil(high / step)
            self.ticks = [round(k * step, 10) for k in range(first, last + 1)]
        self._low, self._high = self._in(self.ticks[0]), self._in(self.ticks[-1])

    def place(self, figure: float) -> float:
        """Return where a figure is, in units of the picture."""
        share = (self._in(max(figure, self.ticks[0])) - self._low) / (self._high - self._low)
        return LEFT + share * (RIGHT - LEFT)
