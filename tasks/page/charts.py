"""The page's pictures: inline SVG tracks, one a row, whose horizontal places are percentages of their width.

A track has no text but its axis labels, so that names and figures stay ordinary text, which wraps and can be
selected. A mark's shape says what its colour says: ours a disc, public a diamond, references a ring.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from markupsafe import Markup, escape

from tasks.page.axes import Axis
from tasks.page.facts import CellFacts, Role, StepFacts
from tasks.page.model_facts import ModelScore
from tasks.page.number_facts import NumberCell

FAR = 2.0
"""Times the largest other mean squared error: what lies further out is an arrow."""


def score_axis(scores: Sequence[ModelScore]) -> Axis:
    """The axis that holds every accuracy, interval and spread."""
    return Axis.around(_scored(scores), floor=0.0, ceiling=1.0)


def error_axis(scores: Sequence[ModelScore]) -> Axis:
    """The axis that holds every mean squared error, interval and spread; but not one answer for all where that is far off, as
    all others would then look alike.
    """
    others = [score for score in scores if score.key != "constant"]
    largest = max((score.figure for score in others), default=0.0)
    is_far = any(score.figure > FAR * largest for score in scores)
    return Axis.over([max(value, 0.0) for value in _scored(others if others and is_far else scores)])


def _scored(scores: Iterable[ModelScore]) -> list[float]:
    values = []
    for score in scores:
        values.append(score.figure)
        values += [end for span in (score.interval, score.spread) if span for end in (span.low, span.high)]
    return values


def cell_axis(cells: Sequence[CellFacts]) -> Axis:
    """The axis of margins: zero, beliefs with their intervals, and public and raw margins as far as ±1/2."""
    values = [0.0]
    for cell in cells:
        values += [cell.margin - 2 * cell.margin_sd, cell.margin + 2 * cell.margin_sd]
        values += [value for value in (cell.raw_margin, cell.public_margin) if value is not None]
    return Axis.around(values, floor=-0.5, ceiling=0.5)


def number_axis(cells: Sequence[NumberCell]) -> Axis:
    """The axis of labels: beliefs with their intervals, public means, and reports as far as these reach."""
    values = []
    for cell in cells:
        values += [cell.value - 2 * cell.value_sd, cell.value + 2 * cell.value_sd]
        values += [] if cell.public is None else [cell.public]
    low, high = min(values), max(values)
    reach = (high - low) / 2
    alone = [cell.reports for cell in cells if cell.reports is not None]
    return Axis.over([*values, *(value for value in alone if low - reach <= value <= high + reach)])


def axis_row(axis: Axis, label: Callable[[float], str]) -> Markup:
    """The ticks' labels, to stand under tracks as wide; hidden from screen readers, as tracks speak."""
    marks = Markup("").join(
        Markup('<text x="{}%" y="13">{}</text>').format(p(axis.at(tick)), label(tick)) for tick in axis.ticks
    )
    return picture("axis", 18, marks)


def score_track(axis: Axis, score: ModelScore, label: str) -> Markup:
    """One model's chief figure with its test interval and, under it, its spread over redraws of the noise."""
    if not axis.holds(score.figure):
        return picture(f"track {score.role}", 34, _grid(axis) + _middle(_noise(axis, *_beyond(axis))), label)
    marks = Markup("")
    if score.interval is not None:
        marks += across(axis, score.interval.low, score.interval.high, 0, "interval")
    if score.spread is not None:
        marks += _bracket(axis, score.spread.low, score.spread.high, 11)
    marks += mark(axis.at(score.figure), 0, score.role)
    return picture(f"track {score.role}", 34, _grid(axis) + _middle(marks), label)


def _beyond(axis: Axis) -> tuple[float, float, int]:
    """A short arrow out of the picture."""
    return axis.high - 0.06 * (axis.high - axis.low), axis.high + axis.step, 0


def cell_track(axis: Axis, cell: CellFacts, label: str) -> Markup:
    """What a cell's reports alone say (ring), its public rows alone (diamond), what is believed (disc)."""
    marks = alone(axis, cell.raw_margin, cell.raw_sd)
    marks += _told(axis, cell.public_margin, cell.margin, cell.margin_sd)
    return picture("track", 42, _grid(axis) + line(axis, 0.0, "even") + _middle(marks), label)


def number_track(axis: Axis, cell: NumberCell, label: str) -> Markup:
    """The same of a cell whose label is a number."""
    marks = alone(axis, cell.reports, cell.reports_sd)
    marks += _told(axis, cell.public, cell.value, cell.value_sd)
    return picture("track", 42, _grid(axis) + _middle(marks), label)


def value_track(axis: Axis, value: float, sd: float | None, public: float | None, label: str) -> Markup:
    """What is believed of one value of a category, and what public rows say of it."""
    return picture("track", 34, _grid(axis) + _middle(_told(axis, public, value, sd, y=6)), label)


def alone(axis: Axis, value: float | None, sd: float | None) -> Markup:
    """What reports alone say, a ring with its noise, above the middle of a row."""
    if value is None or sd is None:
        return Markup("")
    alone = _noise(axis, value - 2 * sd, value + 2 * sd, -10)
    if axis.holds(value):
        alone += mark(axis.at(value), -10, "reference", small=True)
    return group("reference", alone)


def _told(axis: Axis, public: float | None, believed: float, sd: float | None, y: int = 10) -> Markup:
    marks = Markup("")
    if public is not None:
        marks += group("public", mark(axis.at(public), y - 10, "public", small=True))
    interval = Markup("") if sd is None else across(axis, believed - 2 * sd, believed + 2 * sd, y, "interval")
    return marks + group("ours", interval + mark(axis.at(believed), y, "ours"))


def step_track(step: StepFacts, total: float, label: str) -> Markup:
    """When a step began and how long it took, within `total` seconds."""
    scale = 100 / max(total, step.start + step.seconds, 1e-9)
    left = min(step.start * scale, 99.0)
    width = max(min(step.seconds * scale, 100 - left), 0.6)
    bar = Markup('<rect x="{}%" y="5" width="{}%" height="10" rx="2"/>').format(p(left), p(width))
    return picture(f"track step {step.state}", 20, bar, label)


def meter(probability: float) -> Markup:
    """A probability in [0, 1] as a small bar with its middle marked; the figure stands beside it."""
    bar = Markup(
        '<rect class="rail" width="44" height="6" rx="3"/><rect class="fill" width="{}" height="6" rx="3"/>'
    )
    return Markup('<svg class="meter" width="44" height="6" aria-hidden="true">{}</svg>').format(
        bar.format(p(44 * min(max(probability, 0.0), 1.0)))
    )


def key(role: Role, *, small: bool = False) -> Markup:
    """A mark by itself, for a legend."""
    drawn = mark(50.0, 8, role, small=small)
    return Markup('<svg class="key {}" width="16" height="16" aria-hidden="true">{}</svg>').format(
        role, drawn
    )


def key_bar(kind: str) -> Markup:
    """An interval ("interval"), spread ("spread") or noise ("noise") by itself, for a legend."""
    whole = Axis(0.0, 1.0, 1.0)
    drawn = {
        "interval": across(whole, 0.0, 1.0, 8, "interval"),
        "spread": _bracket(whole, 0.0, 1.0, 8),
        "noise": _noise(whole, 0.0, 1.0, 8),
    }[kind]
    role = "reference" if kind == "noise" else "ours"
    return Markup('<svg class="key {}" width="26" height="16" aria-hidden="true">{}</svg>').format(
        role, drawn
    )


def picture(kind: str, height: int, marks: Markup, label: str = "") -> Markup:
    """Marks as wide as their place; without a label hidden from screen readers."""
    said = Markup('role="img" aria-label="{}"').format(label) if label else Markup('aria-hidden="true"')
    return Markup('<svg class="{}" width="100%" height="{}" {}>{}</svg>').format(kind, height, said, marks)


def _middle(marks: Markup) -> Markup:
    """Marks hung on the middle of the row, so that grid lines run on through rows of any height."""
    return Markup('<svg y="50%">{}</svg>').format(marks)


def group(role: Role, marks: Markup) -> Markup:
    """Marks in the colour of their role."""
    return Markup('<g class="{}">{}</g>').format(role, marks)


def _grid(axis: Axis) -> Markup:
    return Markup("").join(line(axis, tick, "tick") for tick in axis.ticks)


def line(axis: Axis, value: float, kind: str) -> Markup:
    """An upright line; nothing where the axis does not hold the value."""
    if not axis.holds(value):
        return Markup("")
    x = p(axis.at(value))
    return Markup('<line class="{}" x1="{}%" x2="{}%" y1="0" y2="100%"/>').format(kind, x, x)


def over_grid(axis: Axis, marks: Markup, even: float | None = None) -> Markup:
    """Marks hung on the middle of a row, over the lines of its ticks and, dotted, of `even`."""
    dotted = Markup("") if even is None else line(axis, even, "even")
    return _grid(axis) + dotted + _middle(marks)


def across(axis: Axis, low: float, high: float, y: int, kind: str) -> Markup:
    """A level line."""
    return Markup('<line class="{}" x1="{}%" x2="{}%" y1="{}" y2="{}"/>').format(
        kind, p(axis.at(low)), p(axis.at(high)), y, y
    )


def _bracket(axis: Axis, low: float, high: float, y: int) -> Markup:
    ends = Markup("").join(
        Markup('<line class="spread" x1="{x}%" x2="{x}%" y1="{a}" y2="{b}"/>').format(
            x=p(axis.at(end)), a=y - 3, b=y + 3
        )
        for end in (low, high)
    )
    return across(axis, low, high, y, "spread") + ends


def _noise(axis: Axis, low: float, high: float, y: int) -> Markup:
    """A thin line; an arrow head where it goes on beyond the axis."""
    marks = across(axis, low, high, y, "noise")
    for beyond, value, head in (
        (low < axis.low, axis.low, "M4 -3.5L-1 0L4 3.5"),
        (high > axis.high, axis.high, "M-4 -3.5L1 0L-4 3.5"),
    ):
        if beyond:
            marks += Markup('<svg x="{}%" y="{}"><path class="noise" d="{}"/></svg>').format(
                p(axis.at(value)), y, head
            )
    return marks


def mark(x: float, y: float, role: Role, *, small: bool = False) -> Markup:
    """A disc, a diamond or a ring, at x percent and y pixels."""
    r = 4.0 if small else 5.5
    if role == "public":
        d = r + 0.5
        return Markup(
            '<svg x="{}%" y="{}"><path class="mark" d="M0 -{d}L{d} 0L0 {d}L-{d} 0Z"/></svg>'
        ).format(p(x), p(y), d=d)
    return Markup('<circle class="mark" cx="{}%" cy="{}" r="{}"/>').format(p(x), p(y), r)


def p(value: float) -> str:
    """A place as SVG takes it."""
    return str(escape(f"{value:.2f}".rstrip("0").rstrip(".")))
