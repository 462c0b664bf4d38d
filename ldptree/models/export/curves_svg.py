"""Draw the curves of a model of public features as small SVG pictures, one per column, widest first. They have no style or
script, and the colour of the text around them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ldptree.models.effects import Piece
from ldptree.plain_text import escape_html

MOST_CURVES = 6
WIDTH, HEIGHT, SIZE = 250, 150, 12
"""Size of a picture and of a letter in pixels."""
LEFT, RIGHT, TOP, BOTTOM = 52, 242, 28, 124
"""Where the curve lies."""
LONGEST = 30
"""Letters of a column's name that fit."""


@dataclass(frozen=True, slots=True)
class DrawnCurve:
    """A curve, with its column, its pieces, and the answer at each."""

    column: str
    pieces: Sequence[Piece]
    values: Sequence[float]

    @property
    def swing(self) -> float:
        """The distance of its ends."""
        return max(self.values) - min(self.values)


def show_curves(line: str, curves: Sequence[DrawnCurve]) -> str:
    """Return HTML with a line of text, and the answer along each column."""
    drawn = sorted(curves, key=lambda curve: -curve.swing)[:MOST_CURVES]
    kept = [curve for curve in drawn if curve.swing > 1e-9 * max(map(abs, curve.values))] or drawn[:1]
    ends = min(min(curve.values) for curve in kept), max(max(curve.values) for curve in kept)
    left_out = len(curves) - len(kept)
    more = f" {left_out} more columns change it less, or not at all." if left_out else ""
    pictures = "".join(_draw(curve, *ends) for curve in kept)
    caption = f"The answer along each column, averaged over the others.{more}"
    return f"<p>{escape_html(line)}</p><p>{caption}</p><div>{pictures}</div>"


def _draw(curve: DrawnCurve, low: float, high: float) -> str:
    name = escape_html(curve.column)
    short = curve.column if len(curve.column) <= LONGEST else curve.column[: LONGEST - 1] + "…"
    marks = [
        f'<path d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}" fill="none" stroke="currentColor" opacity=".45"/>',
        _text(LEFT, TOP - 12, short, "start"),
        _text(LEFT - 6, BOTTOM, f"{low:.3g}", "end"),
        *([_text(LEFT - 6, TOP + 10, f"{high:.3g}", "end")] if high > low else []),
        *_stretches(curve, low, high),
    ]
    return (
        f'<svg role="img" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-size="{SIZE}" '
        f'font-family="sans-serif" fill="currentColor"><title>{name}: {escape_html(_say(curve))}</title>{"".join(marks)}</svg>'
    )


def _say(curve: DrawnCurve) -> str:
    return f"the answer lies between {min(curve.values):.3g} and {max(curve.values):.3g}"


def _stretches(curve: DrawnCurve, low: float, high: float) -> Iterator[str]:
    """A step for each stretch of a number, between its ends; a step for each level, at equal distances."""
    numbers = [
        stretch for stretch in zip(curve.pieces, curve.values, strict=True) if stretch[0].high is not None
    ]
    if numbers:
        first, last = numbers[0][0].low or 0.0, numbers[-1][0].high or 0.0
        steps = [(_part(p.low, first, last), _part(p.high, first, last), value) for p, value in numbers]
        yield _text(LEFT, BOTTOM + 16, f"{first:.4g}", "start")
        yield _text(RIGHT, BOTTOM + 16, f"{last:.4g}", "end")
    else:
        n = len(curve.values)
        steps = [((k + 0.15) / n, (k + 0.85) / n, value) for k, value in enumerate(curve.values)]
        fits = (RIGHT - LEFT) // n // 7
        for (start, end, _), piece in zip(steps, curve.pieces, strict=True):
            name = "missing" if piece.is_missing else str(piece.level)
            shown = name if len(name) <= fits else name[: max(fits - 1, 0)] + "…"
            yield _text(_x((start + end) / 2), BOTTOM + 16, shown, "middle", name)
    path = "".join(
        f"{'L' if numbers and k else 'M'}{_x(start)} {_y(value, low, high)}H{_x(end)}"
        for k, (start, end, value) in enumerate(steps)
    )
    yield f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="2"/>'


def _part(value: float | None, first: float, last: float) -> float:
    return ((value or 0.0) - first) / (last - first) if last > first else 0.5


def _x(part: float) -> int:
    return round(LEFT + part * (RIGHT - LEFT))


def _y(value: float, low: float, high: float) -> int:
    return round(BOTTOM - (value - low) / (high - low) * (BOTTOM - TOP)) if high > low else BOTTOM


def _text(x: int, y: int, text: str, anchor: str, whole: str = "") -> str:
    hover = f"<title>{escape_html(whole)}</title>" if whole not in ("", text) else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{hover}{escape_html(text)}</text>'
