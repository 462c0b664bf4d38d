"""The page's pictures with two axes: predicted against true in bins, and the fitted function along a column.

Across, places are percentages of the width; upward, pixels of a fixed height: text keeps its size on every screen. The labels of
the upward axis are a picture of their own, to stand left of the plot; those across are `charts.axis_row`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from markupsafe import Markup

from tasks.page.axes import Axis
from tasks.page.charts import line, mark, p, picture
from tasks.page.number_facts import BinFacts, CurveFacts, PieceFacts

HEIGHT = 240
_HEAD = 7.0  # half the size of a mark: what an arrow or disc may stand over the plot's edge


def bins_axis(bins: Sequence[BinFacts]) -> Axis:
    """One axis for both directions, so that the line of equals is straight through the corners."""
    ends = [one.true + sign * 2 * one.true_error for one in bins for sign in (-1, 1)]
    return Axis.over([*ends, *(one.predicted for one in bins)])


def value_axis(curves: Sequence[CurveFacts]) -> Axis:
    """The upward axis of all curves, so that their heights compare."""
    return _values_axis([piece for curve in curves for piece in curve.pieces])


def _values_axis(pieces: Sequence[PieceFacts], most_ticks: int = 6) -> Axis:
    ends = [piece.value + sign * 2 * (piece.sd or 0.0) for piece in pieces for sign in (-1, 1)]
    return Axis.over(
        [*ends, *(piece.public for piece in pieces if piece.public is not None)], most_ticks=most_ticks
    )


def named_axis(curve: CurveFacts, beside: Axis) -> Axis:
    """The axis of a curve's named values: its own, but beside stretches of numbers theirs."""
    return beside if curve.stretches else _values_axis(curve.named, most_ticks=4)


def column_axis(curve: CurveFacts) -> Axis | None:
    """The part of a column's range where its curve has steps, with a margin; None where it has no stretch of numbers."""
    stretches = curve.stretches
    if not stretches:
        return None
    low, high = stretches[0].low or 0.0, stretches[-1].high or 0.0
    if len(stretches) > 1:
        first, last = stretches[0].high or 0.0, stretches[-1].low or 0.0
        high = min(high, last + 0.35 * (last - low))
        low = max(low, first - 0.35 * (high - first))
    return Axis.between(low, high)


def upward(axis: Axis, label: Callable[[float], str]) -> Markup:
    """The labels of the upward axis, to stand left of a plot; hidden from screen readers, as plots speak."""
    marks = Markup("").join(
        Markup('<text x="100%" y="{}" dy="4">{}</text>').format(p(_y(axis, tick)), label(tick))
        for tick in axis.ticks
    )
    return picture("upward", HEIGHT, marks)


def bins_plot(axis: Axis, bins: Sequence[BinFacts], label: str) -> Markup:
    """Discs at (mean prediction, mean truth) with two standard errors, and the dotted line of equals."""
    marks = _grid(axis, axis)
    marks += Markup('<line class="even" x1="{}%" x2="{}%" y1="{}" y2="{}"/>').format(
        p(axis.at(axis.low)), p(axis.at(axis.high)), p(_y(axis, axis.low)), p(_y(axis, axis.high))
    )
    drawn = Markup("")
    for one in bins:
        x = p(axis.at(one.predicted))
        low, high = (_y(axis, one.true + sign * 2 * one.true_error) for sign in (-1, 1))
        drawn += Markup('<line class="interval" x1="{}%" x2="{}%" y1="{}" y2="{}"/>').format(
            x, x, p(low), p(high)
        )
        drawn += mark(axis.at(one.predicted), _y(axis, one.true), "ours")
    return picture("plot", HEIGHT, marks + Markup('<g class="ours">{}</g>').format(drawn), label)


def curve_plot(across: Axis, axis: Axis, curve: CurveFacts, label: str) -> Markup:
    """The steps of a curve with their band, where one is known, and dashed those of public rows alone; a smooth one joined."""
    seen = [
        piece for piece in curve.stretches if _ends(piece)[1] >= across.low and _ends(piece)[0] <= across.high
    ]
    if curve.is_smooth:
        joined = _joined_band(across, axis, seen) + _joined(across, axis, seen)
        return picture(
            "plot",
            HEIGHT,
            _grid(across, axis) + Markup('<g class="ours steps">{}</g>').format(joined),
            label,
        )
    bands = Markup("")
    for piece in seen:
        if piece.sd is None:
            continue
        left, right = (across.at(end) for end in _ends(piece))
        low, high = (_y(axis, piece.value + sign * 2 * piece.sd) for sign in (-1, 1))
        bands += Markup('<rect class="band" x="{}%" width="{}%" y="{}" height="{}"/>').format(
            p(left), p(max(right - left, 0.0)), p(high), p(max(low - high, 1.0))
        )
    ours = _steps(across, axis, [(*_ends(piece), piece.value) for piece in seen])
    public = _steps(
        across, axis, [(*_ends(piece), piece.public) for piece in seen if piece.public is not None]
    )
    marks = _grid(across, axis)
    marks += Markup('<g class="public steps">{}</g><g class="ours steps">{}{}</g>').format(
        public, bands, ours
    )
    return picture("plot", HEIGHT, marks, label)


def _steps(across: Axis, axis: Axis, stretches: Sequence[tuple[float, float, float]]) -> Markup:
    """Level lines, joined by upright ones."""
    marks, before = Markup(""), None
    for low, high, value in stretches:
        left, right, y = across.at(low), across.at(high), _y(axis, value)
        if before is not None:
            marks += _segment(left, left, before, y)
        marks += _segment(left, right, y, y)
        before = y
    return marks


def _joined(across: Axis, axis: Axis, pieces: Sequence[PieceFacts]) -> Markup:
    """Straight lines from the middle of each stretch to that of the next."""
    places = [(across.at(sum(_ends(piece)) / 2), _y(axis, piece.value)) for piece in pieces]
    return Markup("").join(_segment(x1, x2, y1, y2) for (x1, y1), (x2, y2) in pairwise(places))


def _joined_band(across: Axis, axis: Axis, pieces: Sequence[PieceFacts]) -> Markup:
    """The band about joined middles; nothing where it is not known throughout. Corners stretch with the plot's width."""
    if any(piece.sd is None for piece in pieces):
        return Markup("")
    places = [across.at(sum(_ends(piece)) / 2) for piece in pieces]
    upper = [_y(axis, piece.value + 2 * (piece.sd or 0.0)) for piece in pieces]
    lower = [_y(axis, piece.value - 2 * (piece.sd or 0.0)) for piece in pieces]
    corners = [*zip(places, upper, strict=True), *zip(places[::-1], lower[::-1], strict=True)]
    return Markup(
        '<svg width="100%" height="{0}" viewBox="0 0 100 {0}" preserveAspectRatio="none">'
        '<path class="band" d="M{1}Z"/></svg>'
    ).format(HEIGHT, "L".join(f"{p(x)},{p(y)}" for x, y in corners))


def _segment(x1: float, x2: float, y1: float, y2: float) -> Markup:
    return Markup('<line class="step" x1="{}%" x2="{}%" y1="{}" y2="{}"/>').format(p(x1), p(x2), p(y1), p(y2))


def _ends(piece: PieceFacts) -> tuple[float, float]:
    assert piece.low is not None
    assert piece.high is not None
    return piece.low, piece.high


def _grid(across: Axis, axis: Axis) -> Markup:
    upright = Markup("").join(line(across, tick, "tick") for tick in across.ticks)
    level = Markup("").join(
        Markup('<line class="tick" x1="0%" x2="100%" y1="{}" y2="{}"/>').format(
            p(_y(axis, tick)), p(_y(axis, tick))
        )
        for tick in axis.ticks
    )
    return upright + level


def _y(axis: Axis, value: float) -> float:
    """Pixels from the top of a plot; outside values at its border."""
    inside = min(max(value, axis.low), axis.high)
    return _HEAD + (HEIGHT - 2 * _HEAD) * (axis.high - inside) / (axis.high - axis.low)
