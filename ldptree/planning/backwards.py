"""Solve forecasts backwards for the people, or the epsilon, that a wanted figure or sharpness takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ldptree.planning.detection import Findable
from ldptree.planning.expected import Forecast
from ldptree.planning.forecast import Forecaster
from ldptree.planning.monotone import rise

HOLDERS = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""What is tried; between two neighbours the answer is interpolated."""
MOST_IN_ROUNDS = 100_000
"""People who are simulated one by one."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """The people or the epsilon that a wanted result needs, beside the one that is given.

    Attributes:
        given: an epsilon, or a number of people.
        needed: people, or an epsilon; None where the most that was tried is not enough.
        most: the most that was tried.
    """

    given: float
    needed: float | None
    most: float


@dataclass(frozen=True)
class Figure:
    """A figure that people with the planted difference are to reach, an accuracy or a mean squared error."""

    forecaster: Forecaster
    wanted: float

    def of_forecast(self, forecast: Forecast) -> float:
        """Return how far beyond the wanted result a forecast is."""
        return self._beyond(forecast.kinds["planted"].mean)

    def of(self, holders: int, epsilon: float) -> float:
        """The same of any collection, with the chance of its simulation."""
        return self._beyond(self.forecaster.figure("planted", holders, epsilon))

    def _beyond(self, figure: float) -> float:
        return self.forecaster.sign * (figure - self.wanted)


@dataclass(frozen=True)
class Sharpness:
    """An error of the public model that is to be found."""

    forecaster: Forecaster
    wanted: float

    def of_forecast(self, forecast: Forecast) -> float:
        """As of a `Figure`, by logarithms."""
        return self._beyond(forecast.smallest)

    def of(self, holders: int, epsilon: float) -> float:
        """As of a `Figure`."""
        return self._beyond(self.forecaster.find_smallest(holders, epsilon))

    def _beyond(self, findable: Findable | None) -> float:
        return -math.inf if findable is None else math.log(self.wanted / findable.error)


Goal = Figure | Sharpness


def solve_holders(goal: Goal, forecasts: Sequence[Forecast], epsilon: float) -> Need:
    """Find how many people a wanted result needs. The answer agrees with `forecasts`, the plan's own figures at its
    sizes.
    """
    in_rounds = goal.forecaster.in_rounds
    ladder = [n for n in HOLDERS if not in_rounds or n <= MOST_IN_ROUNDS]
    known = {
        float(forecast.holders): goal.of_forecast(forecast)
        for forecast in forecasts
        if forecast.epsilon == epsilon
    }
    return _solve(lambda n: goal.of(int(n), epsilon), ladder, known, epsilon)


def solve_epsilon(goal: Goal, forecasts: Sequence[Forecast], holders: int) -> Need:
    """Find the epsilon that a wanted result needs, with so many people."""
    known = {
        forecast.epsilon: goal.of_forecast(forecast) for forecast in forecasts if forecast.holders == holders
    }
    return _solve(lambda epsilon: goal.of(holders, epsilon), EPSILONS, known, holders)


def _solve(
    reach: Callable[[float], float], ladder: Sequence[float], known: Mapping[float, float], given: float
) -> Need:
    """The smallest amount whose `reach` is 0 or more; between two neighbours by their logarithms, and never above one of the plan
    that reaches it.

    `known`: what amounts of the plan reach, made monotone with all of its grid. Rungs of the ladder are tried where these leave
    the answer open, and made monotone too.
    """
    high = min((at for at, beyond in known.items() if beyond >= 0), default=math.inf)
    low = max((at for at, beyond in known.items() if beyond < 0 and at < high), default=0.0)
    rungs = [at for at in ladder if low < at < high]
    tried = rise(np.array([[reach(at) for at in rungs]]))[0] if rungs else np.empty(0)
    tried = np.clip(tried, known.get(low, -math.inf), known.get(high, math.inf))
    points = [
        *([(low, known[low])] if low in known else []),
        *zip(rungs, tried.tolist(), strict=True),
        *([(high, known[high])] if high in known else []),
    ]
    place = next((number for number, (_, beyond) in enumerate(points) if beyond >= 0), None)
    if place is None:
        return Need(given=given, needed=None, most=points[-1][0])
    at, above = points[place]
    if place == 0 or not math.isfinite(points[place - 1][1]):
        return Need(given=given, needed=at, most=points[-1][0])
    before, below = points[place - 1]
    part = -below / (above - below)
    crossing = math.log(before) + part * (math.log(at) - math.log(before))
    return Need(given=given, needed=min(_round_up(math.exp(crossing)), high), most=points[-1][0])


def _round_up(value: float) -> float:
    """To two significant digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return round(math.ceil(value / unit - 1e-9) * unit, 6)
