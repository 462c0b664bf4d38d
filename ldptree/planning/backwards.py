"""Forecasts solved backwards: how many people, or which epsilon, a wanted figure or a wanted sharpness takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ldptree.planning.forecast import Forecaster

HOLDERS = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""What is tried; between two neighbours the answer is interpolated."""
MOST_IN_ROUNDS = 100_000
"""People who are simulated one by one."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """What is needed beside something that is given.

    Attributes:
        given: an epsilon, or a number of people.
        needed: people, or an epsilon; None where the most that was tried is not enough.
        most: the most that was tried.
    """

    given: float
    needed: float | None
    most: float


def holders_for_figure(forecaster: Forecaster, epsilon: float, wanted: float) -> Need:
    """How many people it takes that the figure of people with the planted difference is expected to reach the wanted one."""
    sign = forecaster.sign

    def reach(n: float) -> float:
        return sign * (forecaster.figure("planted", int(n), epsilon) - wanted)

    return _solve(reach, _people(forecaster), epsilon)


def epsilon_for_figure(forecaster: Forecaster, holders: int, wanted: float) -> Need:
    """Which epsilon it takes, of so many people."""
    sign = forecaster.sign

    def reach(epsilon: float) -> float:
        return sign * (forecaster.figure("planted", holders, epsilon) - wanted)

    return _solve(reach, EPSILONS, holders)


def holders_to_detect(forecaster: Forecaster, epsilon: float, error: float) -> Need:
    """How many people it takes to find an error of the public model."""
    return _solve(lambda n: _sharper(forecaster, int(n), epsilon, error), _people(forecaster), epsilon)


def epsilon_to_detect(forecaster: Forecaster, holders: int, error: float) -> Need:
    """Which epsilon it takes, of so many people."""
    return _solve(lambda epsilon: _sharper(forecaster, holders, epsilon, error), EPSILONS, holders)


def _sharper(forecaster: Forecaster, holders: int, epsilon: float, error: float) -> float:
    found = forecaster.find_smallest(holders, epsilon)
    return -math.inf if found is None else math.log(error / found.error)


def _people(forecaster: Forecaster) -> Sequence[float]:
    return [n for n in HOLDERS if not forecaster.in_rounds or n <= MOST_IN_ROUNDS]


def _solve(reach: Callable[[float], float], ladder: Sequence[float], given: float) -> Need:
    """The smallest rung whose `reach` is 0 or more, by bisection; between it and the one below by their logarithms."""
    most = ladder[-1]
    above = reach(most)
    if above < 0:
        return Need(given=given, needed=None, most=most)
    low, high, below = -1, len(ladder) - 1, -math.inf
    while high - low > 1:
        middle = (low + high) // 2
        found = reach(ladder[middle])
        if found >= 0:
            high, above = middle, found
        else:
            low, below = middle, found
    if low < 0 or not math.isfinite(below):
        return Need(given=given, needed=ladder[high], most=most)
    part = -below / (above - below)
    at = math.log(ladder[low]) + part * (math.log(ladder[high]) - math.log(ladder[low]))
    return Need(given=given, needed=_round_up(math.exp(at)), most=most)


def _round_up(value: float) -> float:
    """To two significant digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return round(math.ceil(value / unit - 1e-9) * unit, 6)
