"""The fitted function along a column: its stretches and named values, in the plot, in words and beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from page_truth.cells import check_line_share
from page_truth.marks import check_mark, check_track
from page_truth.reading import NUMBER, Element, Scale, places
from page_truth.rules import Checker, agrees_to_four_figures

DRAWN_VALUES = 12


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A stretch of numbers, or a value with a name; what is answered there, how surely, and by public rows alone."""

    value: float
    sd: float | None = None
    public: float | None = None
    name: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A column in words, its share of the variance, its pieces."""

    column: str
    strength: float
    pieces: Sequence[Piece]
    is_smooth: bool = False

    @property
    def stretches(self) -> list[Piece]:
        return [piece for piece in self.pieces if piece.low is not None]

    @property
    def named(self) -> list[Piece]:
        return [piece for piece in self.pieces if piece.low is None]


def check_curves(section: Element, curves: Sequence[Curve], check: Checker) -> None:
    """Every curve that is drawn."""
    drawn = section.every("div", "curve")
    check.that(len(drawn) == len(curves), f"curves: {len(drawn)} drawn, {len(curves)} known")
    for part, curve in zip(drawn, curves, strict=False):
        _check_curve(part, curve, check)
        part.is_read = True


def _check_curve(part: Element, curve: Curve, check: Checker) -> None:
    where = f"curve along {curve.column}"
    head = part.first("p", "over")
    check.that(head.every("b")[1].text == curve.column, f"{where}: is called {head.text}")
    share = re.search(r"\(((?:under 1|\d+) ?%) of the variance of the answers\)", head.text)
    check.that(share is not None, f"{where}: {head.text}")
    check_line_share(share[1] if share else "", curve.strength, where, check)
    plots = part.every("svg", "plot")
    check.that(bool(plots) == bool(curve.stretches), f"{where}: a plot")
    for plot in plots:
        _check_plot(part.first("div", "framed"), plot, curve, where, check)
    values = part.every("ol", "values")
    check.that(bool(values) == bool(curve.named), f"{where}: named values")
    for listed in values:
        _check_named(listed, curve, where, check)
    more = [one.text for one in part.every("p", "hush")]
    left = len(curve.named) - DRAWN_VALUES
    check.that(bool(more) == (left > 0), f"{where}: {more}")
    for text in more:
        check.same(re.findall(NUMBER, text)[0], left, where)


def _check_plot(frame: Element, plot: Element, curve: Curve, where: str, check: Checker) -> None:
    across = Scale.of(frame.first("svg", "axis"))
    upward = Scale.of(frame.first("svg", "upward"), "y", (7.0, 233.0))
    seen = [
        p for p in curve.stretches if _ends(p)[1] >= across.low - 1e-9 and _ends(p)[0] <= across.high + 1e-9
    ]
    if curve.is_smooth:
        _check_joined(plot, seen, across, upward, where, check)
    else:
        _check_steps(plot, "ours", [(p, p.value) for p in seen], across, upward, where, check)
        public = [(p, p.public) for p in seen if p.public is not None]
        _check_steps(plot, "public", public, across, upward, f"{where}, public", check)
        _check_bands(plot, [p for p in seen if p.sd is not None], across, upward, where, check)
    _check_words(plot.attributes["aria-label"], curve, where, check)


def _ends(piece: Piece) -> tuple[float, float]:
    assert piece.low is not None
    assert piece.high is not None
    return piece.low, piece.high


def _check_steps(
    plot: Element,
    role: str,
    pieces: Sequence[tuple[Piece, float]],
    across: Scale,
    upward: Scale,
    where: str,
    check: Checker,
) -> None:
    groups = [one for one in plot.every("g") if {role, "steps"} <= one.classes]
    lines = [
        [float(line.attributes[end].rstrip("%")) for end in ("x1", "x2", "y1", "y2")]
        for group in groups
        for line in group.every("line", "step")
    ]
    level = [line for line in lines if line[2] == line[3] and line[0] != line[1]]
    for piece, value in pieces:
        is_drawn = any(_is_step(piece, value, line, across, upward) for line in level)
        check.that(is_drawn or _width(piece, across) < 0.02, f"{where}: {piece} is not drawn")
    for line in level:
        is_known = any(_is_step(piece, value, line, across, upward) for piece, value in pieces)
        check.that(is_known, f"{where}: no piece is {across.value(line[0])} to {across.value(line[1])}")


def _is_step(piece: Piece, value: float, line: Sequence[float], across: Scale, upward: Scale) -> bool:
    """Whether a level line is a piece."""
    low, high = _ends(piece)
    return across.agrees(line[0], low) and across.agrees(line[1], high) and upward.agrees(line[2], value)


def _width(piece: Piece, across: Scale) -> float:
    """Percent of the plot's width that a piece takes."""
    low, high = (across.inside(end) for end in _ends(piece))
    return 96 * (high - low) / (across.high - across.low)


def _check_bands(
    plot: Element, pieces: Sequence[Piece], across: Scale, upward: Scale, where: str, check: Checker
) -> None:
    bands = plot.every("rect", "band")
    check.that(len(bands) == len(pieces), f"{where}: {len(bands)} bands for {len(pieces)} pieces")
    for piece, band in zip(pieces, bands, strict=False):
        y, height = float(band.attributes["y"]), float(band.attributes["height"])
        assert piece.sd is not None
        top, bottom = upward.inside(piece.value + 2 * piece.sd), upward.inside(piece.value - 2 * piece.sd)
        is_so = abs(upward.value(y) - top) <= upward.slack
        is_so &= abs(upward.value(y + height) - bottom) <= upward.slack + abs(
            upward.value(y) - upward.value(y + 1)
        )
        check.that(is_so, f"{where}: the band of {piece} is from {upward.value(y)}, {height} high")


def _check_joined(
    plot: Element, pieces: Sequence[Piece], across: Scale, upward: Scale, where: str, check: Checker
) -> None:
    points = [(sum(_ends(piece)) / 2, piece.value) for piece in pieces]
    lines = [
        [float(line.attributes[end].rstrip("%")) for end in ("x1", "y1", "x2", "y2")]
        for line in plot.every("line", "step")
    ]
    check.that(
        len(lines) == max(len(points) - 1, 0), f"{where}: {len(lines)} lines join {len(points)} middles"
    )
    for start, end, (x1, y1, x2, y2) in zip(points, points[1:], lines, strict=False):
        is_so = all(
            across.agrees(x, point[0]) and upward.agrees(y, point[1])
            for x, y, point in ((x1, y1, start), (x2, y2, end))
        )
        check.that(is_so, f"{where}: a line from {start} to {end} is drawn elsewhere")
    paths = plot.every("path", "band")
    known = all(piece.sd is not None for piece in pieces)
    check.that(bool(paths) == known, f"{where}: a band")
    if paths and known:
        corners = [tuple(map(float, one.split(","))) for one in paths[0].attributes["d"][1:-1].split("L")]
        wanted = [(sum(_ends(p)) / 2, p.value + 2 * (p.sd or 0.0)) for p in pieces]
        wanted += [(sum(_ends(p)) / 2, p.value - 2 * (p.sd or 0.0)) for p in pieces[::-1]]
        is_so = len(corners) == len(wanted) and all(
            across.agrees(x, a) and upward.agrees(y, b)
            for (x, y), (a, b) in zip(corners, wanted, strict=True)
        )
        check.that(is_so, f"{where}: the band")


def _check_named(listed: Element, curve: Curve, where: str, check: Checker) -> None:
    axis = Scale.of(listed.first("svg", "axis"))
    lines = [one for one in listed.every("li") if "ends" not in one.classes]
    pieces = sorted(curve.named, key=lambda piece: -piece.value)
    if len(pieces) > DRAWN_VALUES:
        pieces = pieces[: DRAWN_VALUES // 2] + pieces[-DRAWN_VALUES // 2 :]
    check.that(len(lines) == len(pieces), f"{where}: {len(lines)} values of {len(pieces)}")
    for piece, line in zip(pieces, lines, strict=False):
        name = line.first("div", "name").text
        here = f"{where}, {name!r}"
        check.that(name.rstrip("…") == piece.name[: len(name.rstrip("…"))], f"{here}: is {piece.name!r}")
        track = line.first("svg", "track")
        ours = piece.value, piece.sd or 0.0
        if piece.sd is None:
            check_mark(axis, places(track, "ours", "mark"), piece.value, here, check)
        else:
            check_track(axis, track, here, check, ours=ours, reports=None, public=piece.public)
        _check_piece(line.first("div", "value").text, piece, here, check, has_public=False)
        _check_piece(track.attributes["aria-label"].partition(": ")[2], piece, here, check, has_public=True)


def _check_piece(text: str, piece: Piece, where: str, check: Checker, *, has_public: bool) -> None:
    wanted = [piece.value] + ([] if piece.sd is None else [2 * piece.sd])
    wanted += [piece.public] if has_public and piece.public is not None else []
    stated = re.findall(rf"(?<![\w.,]){NUMBER}(?![\w])", re.sub(r"\s", " ", text))
    check.that(
        len(stated) == len(wanted), f"{where}: {text!r} has {len(stated)} figures, {len(wanted)} are known"
    )
    for figure, value in zip(stated, wanted, strict=False):
        check.same(figure, value, f"{where}: {text}")


def _check_words(label: str, curve: Curve, where: str, check: Checker) -> None:
    """What a screen reader says: pieces by their ends, each with its value; it may leave some out."""
    said = re.sub(r"\s+", " ", label).partition(f"along {curve.column}: ")[2].split("; ")
    n_said = 0
    for text in said:
        more = re.fullmatch(r"and ([\d,]+) more steps", text)
        if more:
            check.same(more[1], len(curve.stretches) - n_said, f"{where}: {text}")
            continue
        place, _, values = text.partition(": ")
        low, high = place.split(" to ")
        fits = [
            p
            for p in curve.stretches
            if agrees_to_four_figures(low, _ends(p)[0]) and agrees_to_four_figures(high, _ends(p)[1])
        ]
        check.that(bool(fits), f"{where}: no stretch is {place}")
        n_said += 1
        if len(fits) == 1:
            _check_piece(values, fits[0], f"{where}: {place}", check, has_public=True)
