"""Draw the groups of rows that a model tells apart, each with what public rows say of it and what it is corrected to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldptree.models.description import Cell, Condition
from tasks.page import summary, units
from tasks.page.captions import SAYS, Sentence, say
from tasks.page.charts import Axis
from tasks.page.data import Run
from tasks.page.findings import by_share
from tasks.page.units import label_unit, say_path

MOST_CLEAR, MOST_UNCLEAR = 8, 4
"""Rows of clear groups that are drawn, and of others where none is clear."""
WHOLE = 0.01
"""Difference of two shares from which on whole percents tell them apart."""
MOST_LETTERS = 100
"""Letters of a group's name, on two lines of a tablet; the table has the whole."""
MOST_TENTHS = 9
"""Of 10, from which on no tenths are named."""
Pair = tuple[float | None, float | None]


@dataclass(frozen=True)
class Row:
    """One group, or several that are merged.

    Attributes:
        kind: its number in the table, from 1; 0 of merged ones.
        name: in words.
        public, ours: what public rows say, and what it is corrected to; None where that is no single figure.
        ends: of ours, where they are drawn.
        is_clear: whether it stands apart from noise.
        people: estimated.
        texts: both figures, written alike.
    """

    kind: int
    name: str
    public: float | None
    ours: float | None
    ends: tuple[float, float] | None
    is_clear: bool
    people: float
    texts: tuple[str, str]


@dataclass(frozen=True)
class Groups:
    """The groups as they are drawn, with the finding as their heading and what the figures are of."""

    heading: Sentence
    caption: Sentence
    shared: Sentence | None
    unit: str
    axis: Axis
    scale: float
    rows: tuple[Row, ...]
    corrects: bool


def draw_groups(run: Run) -> Groups | None:
    """The largest and clearest groups; None where the model tells none apart."""
    model = run.model
    if not model.cells:
        return None
    corrects = model.figure == "correction"
    cells = by_share(model.cells)
    clear = [pair for pair in cells if corrects and _is_clear(run, pair[1])][:MOST_CLEAR]
    shown = clear or cells[:MOST_UNCLEAR]
    numbers = {number for number, _ in shown}
    rest = [pair for pair in cells if pair[0] not in numbers]
    if len(rest) == 1:
        shown, rest = [*shown, *rest], []
    shared = _find_shared([cell for _, cell in shown])
    names = _name_apart(run, [[each for each in cell.path if each not in shared] for _, cell in shown])
    rows = [_row(run, number, cell, name) for (number, cell), name in zip(shown, names, strict=True)]
    rows += [_merge(run, [cell for _, cell in rest], everything=not shown)] if rest else []
    more = SAYS["groups more"] if any("…" in row.name for row in rows) else ""
    return Groups(
        heading=_head(run, [cell for _, cell in cells if corrects and _is_clear(run, cell)]),
        caption=say("groups correction" if corrects else "groups shares", more=more),
        shared=say("groups share", shared=say_path(shared, run)) if shared else None,
        unit=f"% “{model.outputs[summary.shown_output(run)]}”" if run.label == "class" else run.unit,
        axis=_axis(run, rows),
        scale=units.scale(run),
        rows=tuple(rows),
        corrects=corrects,
    )


def _is_clear(run: Run, cell: Cell) -> bool:
    return cell.estimates[summary.shown_output(run)].is_clear


def _axis(run: Run, rows: Sequence[Row]) -> Axis:
    """All shares from 0 to 1; of numbers those that are drawn."""
    if run.label == "class":
        return Axis(0.0, 1.0, (0.0, 0.5, 1.0))
    values = (value for row in rows for value in (row.public, row.ours, *(row.ends or ())))
    return Axis.of(value for value in values if value is not None)


def _figures(run: Run, cell: Cell) -> Pair:
    """What public rows say of a cell, and what the model does."""
    at = summary.shown_output(run)
    beside = cell.public[at] if cell.public else None
    public = None if beside is None else beside.value
    if run.model.figure != "correction":
        return public, cell.estimates[at].value
    return public, cell.answers[at] if cell.answers else None


def _find_shared(cells: Sequence[Cell]) -> list[Condition]:
    """Return the conditions that all of several groups have, which are said once."""
    if len(cells) < 2:
        return []
    return [each for each in cells[0].path if all(each in cell.path for cell in cells)]


def _name_apart(run: Run, paths: Sequence[Sequence[Condition]]) -> list[str]:
    """Name groups; those that would have the same name go by the conditions that they do not share."""
    names = [_name(run, path) for path in paths]
    for name in {name for name in names if names.count(name) > 1}:
        alike = [at for at, own in enumerate(names) if own == name]
        shared = set.intersection(*(set(paths[at]) for at in alike))
        for at in alike:
            left = [condition for condition in paths[at] if condition not in shared]
            names[at] = _name(run, left, is_part=True) if left else name
    return names


def _name(run: Run, path: Sequence[Condition], *, is_part: bool = False) -> str:
    """Return the conditions of a group, of a long list the last ones, which tell neighbours apart."""
    for start in range(max(len(path), 1)):
        name = ("… " if start or is_part else "") + say_path(path[start:], run)
        if len(name) <= MOST_LETTERS:
            break
    return units.cut(name if path else name.capitalize(), MOST_LETTERS)


def _row(run: Run, number: int, cell: Cell, name: str) -> Row:
    public, ours = _figures(run, cell)
    corrects, estimate = run.model.figure == "correction", cell.estimates[summary.shown_output(run)]
    ends = None if corrects or estimate.sd is None else estimate.ends
    if ends and run.label == "class":
        ends = max(ends[0], 0.0), min(ends[1], 1.0)
    return Row(
        kind=number + 1,
        name=name,
        public=public,
        ours=ours,
        ends=ends,
        is_clear=estimate.is_clear or not corrects,
        people=max(cell.share, 0.0) * run.n_private,
        texts=_write(run, public, ours),
    )


def _merge(run: Run, cells: Sequence[Cell], *, everything: bool) -> Row:
    """Several groups as one, by how many people are in each."""
    shares = [max(cell.share, 0.0) for cell in cells]
    total, pairs = sum(shares), [_figures(run, cell) for cell in cells]
    means: list[float | None] = []
    for side in zip(*pairs, strict=True):
        known = total > 0 and None not in side
        means.append(
            sum(s * (v or 0.0) for s, v in zip(shares, side, strict=True)) / total if known else None
        )
    many = units.plural(len(cells), "group", "groups")
    return Row(
        kind=0,
        name=f"All {run.nouns} ({many})" if everything else f"All other {run.nouns} ({many})",
        public=means[0],
        ours=means[1],
        ends=None,
        is_clear=False,
        people=total * run.n_private,
        texts=_write(run, *means),
    )


def _write(run: Run, public: float | None, ours: float | None) -> tuple[str, str]:
    """Both figures with as many decimals as tell them apart; shares in whole percents where those do."""
    unit = label_unit(run)
    if run.label != "class":
        first, second = ("" if value is None else unit.bare(value) for value in (public, ours))
        return first, second
    digits = 0 if public is None or ours is None or abs(public - ours) >= WHOLE else 1
    first, second = ("" if value is None else units.fixed(100 * value, digits) for value in (public, ours))
    return first, second


def _head(run: Run, clear: Sequence[Cell]) -> Sentence:
    """The finding: for how many people the public model is off, and to which side."""
    at = summary.shown_output(run)
    if run.model.figure != "correction":
        values = [cell.estimates[at].value for cell in run.model.cells]
        low, high = units.apart(min(values), max(values), label_unit(run))
        key = "by group" if len(values) > 1 else "one group"
        return say(key, output=summary.name_shown(run, at), low=low, high=high, nouns=run.nouns)
    if one := summary.one_thing(run):
        return one[0]
    if not clear or summary.is_shared(run.model.cells):
        cells = units.plural(len(run.model.cells), f"group of {run.nouns}", f"groups of {run.nouns}")
        return say("shared", nouns=run.nouns) if clear else say("no clear group", cells=cells)
    sides: dict[bool, float] = {}
    for cell in clear:
        side = cell.estimates[at].value > 0
        sides[side] = sides.get(side, 0.0) + cell.share
    is_low, share = max(sides.items(), key=lambda pair: pair[1])
    is_class, tenths = run.label == "class", round(10 * share)
    low, high = ("rarely", "often") if is_class else ("low", "high")
    return say(
        "off rarely" if tenths < 1 else "off everywhere" if tenths > MOST_TENTHS else "off often",
        errs="expects" if is_class else "predicts",
        output=summary.name_shown(run, at),
        direction=f"too {low if is_low else high}",
        of=tenths,
        nouns=run.nouns,
    )
