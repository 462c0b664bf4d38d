"""Whether the marks of a picture stand where their values are, and whether figures with an error say both."""

from __future__ import annotations

import re

from page_truth.reading import NUMBER, Element, Scale, places
from page_truth.rules import Checker

Valued = tuple[float, float] | None
"""A value and its standard deviation; None where nothing is known."""


def check_mark(axis: Scale, marks: list[float], value: float | None, where: str, check: Checker) -> None:
    """One mark at its value; at the end of the axis, or none, where the value lies beyond."""
    stand = [axis.value(mark) for mark in marks]
    if value is None:
        check.that(not marks, f"{where}: stands at {stand}, nothing is known")
    elif not axis.low - axis.slack <= value <= axis.high + axis.slack:
        check.that(all(axis.agrees(mark, value) for mark in marks), f"{where}: stands at {stand}, is {value}")
    else:
        is_so = len(marks) == 1 and axis.agrees(marks[0], value)
        check.that(is_so, f"{where}: stands at {stand}, is {value}")


def check_ends(axis: Scale, ends: list[float], low: float, high: float, where: str, check: Checker) -> None:
    """A line from one value to another."""
    is_so = len(ends) == 2 and all(
        axis.agrees(place, end) for place, end in zip(ends, (low, high), strict=True)
    )
    check.that(is_so, f"{where}: from {[axis.value(end) for end in ends]}, is {low} to {high}")


def check_around(axis: Scale, ends: list[float], valued: Valued, where: str, check: Checker) -> None:
    """A line of two standard deviations to either side; none where nothing is known."""
    if valued is None:
        check.that(not ends, f"{where}: drawn, and nothing is known")
        return
    value, sd = valued
    check_ends(axis, ends, value - 2 * sd, value + 2 * sd, where, check)


def check_track(
    axis: Scale,
    track: Element,
    where: str,
    check: Checker,
    *,
    ours: Valued,
    reports: Valued,
    public: float | None,
) -> None:
    """What is believed (disc), what reports alone say (ring) and public rows alone (diamond), with their errors."""
    check_mark(axis, places(track, "ours", "mark"), ours and ours[0], f"{where}: believed", check)
    check_around(axis, places(track, "ours", "interval"), ours, f"{where}: believed ± 2 sd", check)
    check_mark(axis, places(track, "reference", "mark"), reports and reports[0], f"{where}: reports", check)
    check_around(axis, places(track, "reference", "noise"), reports, f"{where}: noise", check)
    check_mark(axis, places(track, "public", "mark"), public, f"{where}: public rows", check)


def check_with_error(text: str, valued: Valued, where: str, check: Checker, *, unit: float = 1.0) -> None:
    """A figure and two standard deviations of it; a dash where nothing is known. `unit`: what values are multiplied by."""
    if valued is None:
        check.that(text == "–", f"{where}: {text}, nothing is known")
        return
    stated = re.findall(rf"(?<![\w.]){NUMBER}", text)
    if len(stated) != 2:
        check.that(False, f"{where}: {text}, is {valued}")
        return
    check.same(stated[0], unit * valued[0], f"{where}: {text}")
    check.same(stated[1], unit * 2 * valued[1], f"{where}: {text}")
