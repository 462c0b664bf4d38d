"""The page's pictures: inline SVG tracks, one a row, whose horizontal places are percentages of their width.

A track has no text but its axis labels, so that names and figures stay ordinary text, which wraps and can be
selected. A mark's shape says what its colour says: ours a disc, public a diamond, references a ring.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from tasks.page.facts import CellFacts, Role, ScoreFacts, StepFacts

_EDGE = 2.0  # percent of the width kept free on either side, so that no mark is cut
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25)


@dataclass(frozen=True)
class Axis:
    """A stretch of the number line, `low` < `high`, with ticks at round numbers."""

    low: float
    high: float
    step: float

    @classmethod
    def around(cls, values: Sequence[float], *, floor: float, ceiling: float, most_ticks: int = 6) -> Axis:
        """The smallest axis with round ends in [floor, ceiling] that holds what lies there of `values`."""
        inside = [min(max(value, floor), ceiling) for value in values if math.isfinite(value)] or [
            floor,
            ceiling,
        ]
        low, high = min(inside), max(inside)
        if high - low < 0.04:
            middle = (low + high) / 2
            low, high = max(middle - 0.02, floor), min(middle + 0.02, ceiling)
        step = next((s for s in _STEPS if (high - low) / s <= most_ticks - 1), _STEPS[-1])
        low = max(math.floor(low / step + 1e-9) * step, floor)
        high = min(math.ceil(high / step - 1e-9) * step, ceiling)
        return cls(low, high, step)

    def at(self, value: float) -> float:
        """Where a value lies, in percent of the track's width; outside values at the border."""
        inside = min(max(value, self.low), self.high)
        return _EDGE + (100 - 2 * _EDGE) * (inside - self.low) / (self.high - self.low)

    def holds(self, value: float) -> bool:
        """Whether a value lies on the axis."""
        return self.low <= value <= self.high

    @property
    def ticks(self) -> tuple[float, ...]:
        """Round numbers from end to end."""
        first = math.ceil(self.low / self.step - 1e-9)
        last = math.floor(self.high / self.step + 1e-9)
        return tuple(i * self.step for i in range(first, last + 1))


def score_axis(scores: Sequence[ScoreFacts]) -> Axis:
    """The axis that holds every accuracy, interval and spread."""
    values = [score.accuracy for score in scores]
    for score in scores:
        values += [end for span in (score.interval, score.spread) if span for end in (span.low, span.high)]
    return Axis.around(values, floor=0.0, ceiling=1.0)


def cell_axis(cells: Sequence[CellFacts]) -> Axis:
    """The axis of margins: zero, beliefs with their intervals, and public and raw margins as far as ±1/2."""
    values = [0.0]
    for cell in cells:
        values += [cell.margin - 2 * cell.margin_sd, cell.margin + 2 * cell.margin_sd]
        values += [value for value in (cell.raw_margin, cell.public_margin) if value is not None]
    return Axis.around(values, floor=-0.5, ceiling=0.5)


def axis_row(axis: Axis, label: Callable[[float], str]) -> Markup:
    """The ticks' labels, to stand under tracks as wide; hidden from screen readers, as tracks speak."""
    marks = Markup("").join(
        Markup('<text x="{}%" y="13">{}</text>').format(_p(axis.at(tick)), label(tick)) for tick in axis.ticks
    )
    return _svg("axis", 18, marks)


def score_track(axis: Axis, score: ScoreFacts, label: str) -> Markup:
    """One model's accuracy with its test interval and, under it, its spread over redraws of the noise."""
    marks = Markup("")
    if score.interval is not None:
        marks += _bar(axis, score.interval.low, score.interval.high, 0, "interval")
    if score.spread is not None:
        marks += _bracket(axis, score.spread.low, score.spread.high, 11)
    marks += _mark(axis.at(score.accuracy), 0, score.role)
    return _svg(f"track {score.role}", 34, _grid(axis) + _middle(marks), label)


def cell_track(axis: Axis, cell: CellFacts, label: str) -> Markup:
    """What a cell's reports alone say (ring), its public rows alone (diamond), what is believed (disc)."""
    marks = Markup("")
    if cell.raw_margin is not None and cell.raw_sd is not None:
        low, high = cell.raw_margin - 2 * cell.raw_sd, cell.raw_margin + 2 * cell.raw_sd
        alone = _noise(axis, low, high, -10)
        if axis.holds(cell.raw_margin):
            alone += _mark(axis.at(cell.raw_margin), -10, "reference", small=True)
        marks += _group("reference", alone)
    if cell.public_margin is not None:
        marks += _group("public", _mark(axis.at(cell.public_margin), 0, "public", small=True))
    low, high = cell.margin - 2 * cell.margin_sd, cell.margin + 2 * cell.margin_sd
    believed = _bar(axis, low, high, 10, "interval") + _mark(axis.at(cell.margin), 10, "ours")
    marks += _group("ours", believed)
    return _svg("track", 42, _grid(axis) + _line(axis, 0.0, "even") + _middle(marks), label)


def step_track(step: StepFacts, total: float, label: str) -> Markup:
    """When a step began and how long it took, within `total` seconds."""
    scale = 100 / max(total, step.start + step.seconds, 1e-9)
    left = min(step.start * scale, 99.0)
    width = max(min(step.seconds * scale, 100 - left), 0.6)
    bar = Markup('<rect x="{}%" y="5" width="{}%" height="10" rx="2"/>').format(_p(left), _p(width))
    return _svg(f"track step {step.state}", 20, bar, label)


def meter(probability: float) -> Markup:
    """A probability in [0, 1] as a small bar with its middle marked; the figure stands beside it."""
    bar = Markup(
        '<rect class="rail" width="44" height="6" rx="3"/><rect class="fill" width="{}" height="6" rx="3"/>'
    )
    return Markup('<svg class="meter" width="44" height="6" aria-hidden="true">{}</svg>').format(
        bar.format(_p(44 * min(max(probability, 0.0), 1.0)))
    )


def key(role: Role, *, small: bool = False) -> Markup:
    """A mark by itself, for a legend."""
    mark = _mark(50.0, 8, role, small=small)
    return Markup('<svg class="key {}" width="16" height="16" aria-hidden="true">{}</svg>').format(role, mark)


def key_bar(kind: str) -> Markup:
    """An interval ("interval"), spread ("spread") or noise ("noise") by itself, for a legend."""
    whole = Axis(0.0, 1.0, 1.0)
    drawn = {
        "interval": _bar(whole, 0.0, 1.0, 8, "interval"),
        "spread": _bracket(whole, 0.0, 1.0, 8),
        "noise": _noise(whole, 0.0, 1.0, 8),
    }[kind]
    role = "reference" if kind == "noise" else "ours"
    return Markup('<svg class="key {}" width="26" height="16" aria-hidden="true">{}</svg>').format(
        role, drawn
    )


def _svg(kind: str, height: int, marks: Markup, label: str = "") -> Markup:
    said = Markup('role="img" aria-label="{}"').format(label) if label else Markup('aria-hidden="true"')
    return Markup('<svg class="{}" width="100%" height="{}" {}>{}</svg>').format(kind, height, said, marks)


def _middle(marks: Markup) -> Markup:
    """Marks hung on the middle of the row, so that grid lines run on through rows of any height."""
    return Markup('<svg y="50%">{}</svg>').format(marks)


def _group(role: Role, marks: Markup) -> Markup:
    return Markup('<g class="{}">{}</g>').format(role, marks)


def _grid(axis: Axis) -> Markup:
    return Markup("").join(_line(axis, tick, "tick") for tick in axis.ticks)


def _line(axis: Axis, value: float, kind: str) -> Markup:
    if not axis.holds(value):
        return Markup("")
    x = _p(axis.at(value))
    return Markup('<line class="{}" x1="{}%" x2="{}%" y1="0" y2="100%"/>').format(kind, x, x)


def _bar(axis: Axis, low: float, high: float, y: int, kind: str) -> Markup:
    return Markup('<line class="{}" x1="{}%" x2="{}%" y1="{}" y2="{}"/>').format(
        kind, _p(axis.at(low)), _p(axis.at(high)), y, y
    )


def _bracket(axis: Axis, low: float, high: float, y: int) -> Markup:
    ends = Markup("").join(
        Markup('<line class="spread" x1="{x}%" x2="{x}%" y1="{a}" y2="{b}"/>').format(
            x=_p(axis.at(end)), a=y - 3, b=y + 3
        )
        for end in (low, high)
    )
    return _bar(axis, low, high, y, "spread") + ends


def _noise(axis: Axis, low: float, high: float, y: int) -> Markup:
    """A thin line; an arrow head where it goes on beyond the axis."""
    marks = _bar(axis, low, high, y, "noise")
    for beyond, value, head in (
        (low < axis.low, axis.low, "M4 -3.5L-1 0L4 3.5"),
        (high > axis.high, axis.high, "M-4 -3.5L1 0L-4 3.5"),
    ):
        if beyond:
            marks += Markup('<svg x="{}%" y="{}"><path class="noise" d="{}"/></svg>').format(
                _p(axis.at(value)), y, head
            )
    return marks


def _mark(x: float, y: int, role: Role, *, small: bool = False) -> Markup:
    r = 4.0 if small else 5.5
    if role == "public":
        d = r + 0.5
        return Markup(
            '<svg x="{}%" y="{}"><path class="mark" d="M0 -{d}L{d} 0L0 {d}L-{d} 0Z"/></svg>'
        ).format(_p(x), y, d=d)
    return Markup('<circle class="mark" cx="{}%" cy="{}" r="{}"/>').format(_p(x), y, r)


def _p(value: float) -> str:
    return str(escape(f"{value:.2f}".rstrip("0").rstrip(".")))
