"""The pictures of a correction: the collection tree with a row a cell, corrections about 0, and both models' answers.

Branches are drawn row by row, in percent of a row's height, so that rows may be of any height.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tasks.page.axes import Axis
from tasks.page.charts import across, alone, group, mark, over_grid, p, picture
from tasks.page.mended_facts import CellMendFacts, MendedCell, MendedNode, MendFacts

THICKEST = 13.0  # pixels of a branch that holds everybody
THINNEST = 1.2
WIDTH = 70.0  # pixels of all branches on a wide screen
STEM = 10.0  # percent of the width that the root's branch takes


@dataclass(frozen=True, kw_only=True)
class Limb:
    """A part of a branch within one row: a line between two places, in percent, so many pixels thick."""

    x1: float
    y1: float
    x2: float
    y2: float
    pixels: float


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of the picture: a cell, or several that are not drawn apart."""

    node: MendedNode
    limbs: tuple[Limb, ...]


def rows_of(root: MendedNode, is_open: Callable[[MendedNode], bool]) -> list[Row]:
    """The tree's ends from first to last, each with the parts of branches that run through its row.

    An end's branch leads to the middle of its row, another one's to the border between its children's rows.
    """
    spread = _Spread(root, is_open)
    return [Row(node=end, limbs=tuple(limbs)) for end, limbs in zip(spread.ends, spread.drawn(), strict=True)]


class _Spread:
    """A tree whose ends have a row each; heights are in rows from the top."""

    def __init__(self, root: MendedNode, is_open: Callable[[MendedNode], bool]) -> None:
        self.root = root
        self.ends: list[MendedNode] = []
        self.forks: list[tuple[MendedNode, int]] = []
        self._heights: dict[int, float] = {}
        self._walk(root, 0, is_open)
        self.step = (100.0 - STEM) / (1 + max((depth for _, depth in self.forks), default=0))

    def _walk(self, node: MendedNode, depth: int, is_open: Callable[[MendedNode], bool]) -> None:
        if not (node.children and is_open(node)):
            self._heights[id(node)] = len(self.ends) + 0.5
            self.ends.append(node)
            return
        self.forks.append((node, depth))
        self._walk(node.children[0], depth + 1, is_open)
        self._heights[id(node)] = float(len(self.ends))
        for child in node.children[1:]:
            self._walk(child, depth + 1, is_open)

    def drawn(self) -> list[list[Limb]]:
        """The parts of branches in each row."""
        limbs: list[list[Limb]] = [[] for _ in self.ends]
        if self.forks:
            self._level(limbs, self.root, 0.0, STEM)
        for parent, depth in self.forks:
            x = STEM + depth * self.step
            for child in parent.children:
                self._upright(limbs, child, x, self._heights[id(parent)])
                is_end = self._heights[id(child)] % 1 == 0.5
                self._level(limbs, child, x, 100.0 if is_end else x + self.step)
        return limbs

    def _level(self, limbs: list[list[Limb]], node: MendedNode, x1: float, x2: float) -> None:
        row = int(self._heights[id(node)])
        y = 100 * (self._heights[id(node)] - row)
        limbs[row].append(Limb(x1=x1, y1=y, x2=x2, y2=y, pixels=self._pixels(node)))

    def _upright(self, limbs: list[list[Limb]], node: MendedNode, x: float, fork: float) -> None:
        low, high = sorted((fork, self._heights[id(node)]))
        for row in range(int(low), min(int(high) + 1, len(self.ends))):
            top, bottom = max(low - row, 0.0), min(high - row, 1.0)
            if top < bottom:
                limbs[row].append(Limb(x1=x, y1=100 * top, x2=x, y2=100 * bottom, pixels=self._pixels(node)))

    def _pixels(self, node: MendedNode) -> float:
        thickest = min(THICKEST, 0.8 * self.step / 100 * WIDTH)
        return max(thickest * node.share_private, THINNEST)


def branches(row: Row) -> Markup:
    """The parts of branches that run through a row; hidden from screen readers, as its words say where it lies."""
    marks = Markup("").join(
        Markup('<line x1="{}%" y1="{}%" x2="{}%" y2="{}%" stroke-width="{}"/>').format(
            p(limb.x1), p(limb.y1), p(limb.x2), p(limb.y2), p(limb.pixels)
        )
        for limb in row.limbs
    )
    return Markup('<svg class="limbs" width="100%" height="100%" aria-hidden="true">{}</svg>').format(marks)


def correction_axis(
    rows: Sequence[tuple[MendFacts, tuple[float, float] | None]], unit: float, most: float
) -> Axis:
    """The axis about 0 that holds every correction with its error, and reports as far as these reach.

    Where nothing is added, it holds the noise of half of the reports.

    Args:
        rows: of each, the correction, and mean and noise of the reports alone.
        unit: what a correction is multiplied by.
        most: the range of a reported error: no mean of reports is drawn beyond it.
    """
    ends = [0.0]
    for mend, _ in rows:
        ends += [unit * (mend.correction + sign * 2 * mend.sd) for sign in (-1, 1)]
    heard = [told for _, told in rows if told is not None]
    reach = max(abs(end) for end in ends)
    if reach == 0.0 and heard:
        noise = unit * min(sorted(2 * sd for _, sd in heard)[len(heard) // 2], most)
        ends += [-noise, noise]
        reach = noise
    ends += [unit * mean for mean, _ in heard if abs(unit * mean) <= min(1.5 * reach, unit * most)]
    return Axis.over(ends)


def correction_track(
    axis: Axis, mend: MendFacts, told: tuple[float, float] | None, unit: float, label: str
) -> Markup:
    """What a cell's reports alone say (ring) and what is added after all (disc; hollow where its sign is not known)."""
    marks = Markup("")
    if told is not None:
        marks += alone(axis, unit * told[0], unit * told[1])
    value, sd = unit * mend.correction, unit * mend.sd
    y = 0 if told is None else 10
    interval = across(axis, value - 2 * sd, value + 2 * sd, y, "interval")
    marks += _mended(mend, interval + mark(axis.at(value), y, "ours"))
    return picture("track", 42, over_grid(axis, marks, 0.0), label)


def answer_axis(cells: Sequence[MendedCell], *, is_share: bool) -> Axis | None:
    """The axis of both models' answers; None where none is known."""
    ends: list[float] = []
    for cell in cells:
        mend = cell.outputs[cell.shown]
        if mend.public is None or mend.corrected is None:
            continue
        ends.append(mend.public)
        ends += [mend.corrected + sign * 2 * mend.sd for sign in (-1, 1)]
    if not ends:
        return None
    return Axis.around(ends, floor=0.0, ceiling=1.0) if is_share else Axis.over(ends)


def answer_track(axis: Axis, mend: CellMendFacts, label: str) -> Markup:
    """The public model's answer (diamond) and the corrected one (disc) with the error of the correction."""
    if mend.public is None or mend.corrected is None:
        return picture("track", 34, over_grid(axis, Markup("")), label)
    before, after = mend.public, mend.corrected
    moved = across(axis, min(before, after), max(before, after), 0, "moved")
    marks = group("reference", moved)
    interval = across(axis, after - 2 * mend.sd, after + 2 * mend.sd, 0, "interval")
    marks += _mended(mend, interval + mark(axis.at(after), 0, "ours"))
    # On top, as it is the smaller of the two where they lie on each other.
    marks += group("public", mark(axis.at(before), 0, "public", small=True))
    return picture("track", 34, over_grid(axis, marks), label)


def _mended(mend: MendFacts, marks: Markup) -> Markup:
    """Marks in our colour, hollow where the sign is not known."""
    return Markup('<g class="ours{}">{}</g>').format("" if mend.is_clear else " unsure", marks)


def unsure_key() -> Markup:
    """A mark whose sign is not known, for a legend."""
    return Markup('<svg class="key ours unsure" width="16" height="16" aria-hidden="true">{}</svg>').format(
        mark(50.0, 8, "ours")
    )
