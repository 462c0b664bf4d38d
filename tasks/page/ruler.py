"""Lay out the one ruler of a page, on which better is to the right: models by their figure, or what reports moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tasks.page import summary, units
from tasks.page.captions import Sentence, say
from tasks.page.charts import Axis
from tasks.page.data import Run, Score, Span
from tasks.page.units import label_unit

LABEL = 24.0
"""Percent of the ruler's width that a label takes at most, on a screen where labels stand over their marks."""
MOST_LETTERS = 34
"""Letters of a label, which has two lines."""
ROLES = {"reference": "pub", "ours": "ours"}
"""Roles of marks by their key; of others it is "ref"."""


@dataclass(frozen=True)
class Mark:
    """One figure on the ruler.

    Attributes:
        name, figure: in words.
        value: where it stands on the axis.
        role: "ours", "pub" or "ref".
        side: of the mark that its label is on: "en" left, "st" right, "" over it.
        level: of its label, from 0, the row right above the ruler.
    """

    name: str
    figure: str
    value: float
    role: str
    side: str = ""
    level: int = 0


@dataclass(frozen=True)
class Ruler:
    """A number line with its marks from left to right, and the difference that decides.

    Attributes:
        axis: of the values; of errors it holds them with a minus, so that better is to the right.
        marks: from left to right.
        ours, before: the two figures that are compared.
        interval: of ours.
        band: no difference in practice; None where nothing was scored.
        gain: the paired interval, drawn from `before`.
        flipped: whether the axis holds errors.
        scale: of the labels of ticks.
        caption: of what the figures are.
    """

    axis: Axis
    marks: tuple[Mark, ...]
    ours: float
    before: float
    interval: Span
    band: Span | None
    gain: Span | None
    flipped: bool
    scale: float
    caption: Sentence

    @property
    def levels(self) -> int:
        """Rows of labels."""
        return 1 + max(mark.level for mark in self.marks)


def draw_ruler(run: Run) -> Ruler | None:
    """Models by what they predict correctly, or by their typical error; averages where none was scored. None where there is
    nothing to compare.
    """
    if run.failure is not None:
        return None
    if run.scores is None:
        return _rule_averages(run)
    reference = summary.find_reference(run)
    if reference is None or reference.lead is None:
        return None
    is_class, unit, ours = run.label == "class", label_unit(run), run.scores.ours
    more = units.tell_apart(reference.figure, ours.figure, unit)
    sign = 1.0 if is_class else -1.0
    marks = [
        Mark(units.cut(name, MOST_LETTERS), unit.value(figure, more), sign * figure, ROLES.get(key, "ref"))
        for key, name, figure in _compare(run, reference)
    ]
    small = summary.margin(run, reference)
    band = _span(sign * (reference.figure - small), sign * (reference.figure + small))
    before = sign * reference.figure
    gain = _span(before + reference.lead.low, before + reference.lead.high)
    interval = _span(sign * ours.interval.low, sign * ours.interval.high)
    caption = say("ruler" if is_class else "ruler errors", nouns=run.nouns, n=units.count(run.scores.n))
    return _lay(run, caption, marks, interval, band, gain)


def _compare(run: Run, reference: Score) -> list[tuple[str, str, float]]:
    """Key, name and figure of each model on the ruler: the best of public rows first, then ours and what else there is, once."""
    assert run.scores is not None
    others = [run.scores.find(key) for key in ("public_only", "no_noise")]
    scores = [reference, run.scores.ours, *(one for one in others if one and one is not reference)]
    models = [(score.key, summary.name_score(run, score), score.figure) for score in scores]
    constant = summary.find_constant(run)
    if constant is not None and (reference.key not in summary.CONSTANTS or constant != reference.figure):
        models.append(("constant in hindsight", summary.name_constant(run), constant))
    return [("reference", *models[0][1:]), *models[1:]]


def _rule_averages(run: Run) -> Ruler | None:
    """The average that the public model expects, and what reports say, where no model was scored."""
    average = summary.find_average(run)
    if average is None:
        return None
    unit, before, after = average.unit, average.before, average.after
    texts = units.apart(before, after, unit)
    marks = [
        Mark("The public model expects", texts[0], before, "pub"),
        Mark("Reports say", texts[1], after, "ours"),
    ]
    caption = say("ruler averages", output=average.output, nouns=run.nouns)
    return _lay(run, caption, marks, average.ends)


def _lay(
    run: Run,
    caption: Sentence,
    marks: list[Mark],
    interval: Span,
    band: Span | None = None,
    gain: Span | None = None,
) -> Ruler:
    ends = [end for span in (interval, band, gain) if span for end in (span.low, span.high)]
    axis = Axis.of([*(mark.value for mark in marks), *ends])
    at = {mark.role: mark.value for mark in marks}
    return Ruler(
        axis=axis,
        marks=tuple(sorted(_place(axis, marks), key=lambda mark: mark.value)),
        ours=at["ours"],
        before=at["pub"],
        interval=interval,
        band=band,
        gain=gain,
        flipped=gain is not None and run.label != "class",
        scale=100.0 if run.label == "class" else 1.0,
        caption=caption,
    )


def _place(axis: Axis, marks: Sequence[Mark]) -> list[Mark]:
    """Give each label a side and a row where it covers neither another label nor the stem of one; ours stands on top."""
    (ours,) = (mark for mark in marks if mark.role == "ours")
    stem, placed = _percent(axis, ours), []
    rows: list[list[tuple[float, float]]] = []
    for mark in (mark for mark in marks if mark is not ours):
        at = _percent(axis, mark)
        sides = ("en", "", "st") if at <= stem else ("st", "", "en")
        level, side = next(
            (level, side)
            for level in range(len(rows) + 1)
            for side in sides
            if (
                _is_free(_box(at, side), stem, rows[level : level + 1])
                and all(not low < at < high for row in rows[:level] for low, high in row)
            )
            or level == len(rows)
        )
        rows += [[]] if level == len(rows) else []
        rows[level].append(_box(at, side))
        placed.append(replace(mark, side=side, level=level))
    return [*placed, replace(ours, level=len(rows))]


def _percent(axis: Axis, mark: Mark) -> float:
    return float(axis.at(mark.value)[:-1])


def _box(at: float, side: str) -> tuple[float, float]:
    low = {"en": at - LABEL, "st": at}.get(side, at - LABEL / 2)
    return low, low + LABEL


def _is_free(box: tuple[float, float], stem: float, row: Sequence[Sequence[tuple[float, float]]]) -> bool:
    low, high = box
    covers = low + 0.5 < stem < high - 0.5
    return not covers and all(high <= first or low >= last for each in row for first, last in each)


def _span(one: float, other: float) -> Span:
    return Span(low=min(one, other), high=max(one, other))
