"""Simulated taxi trips in the 13 columns of the DeID2 sprint-3 challenge, drawn block by block.

What is drawn follows parameters fitted to real Chicago trips (`trips_parameters.json`);
docs/measured/simulated-trips.md shows both side by side and says how they were fitted and what is not captured. No
real trip is in this package. Writing the blocks to a file is not done here.

A trip is drawn in the order in which it happens: taxi and company, hour of the week, how it was hailed,
pickup and dropoff area, fare, what the meter recorded, then card or cash from all of these, and the tip last.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import ConfigError

BLOCK: Final = 131_072
"""Rows of every block but the last."""

MAX_ROWS: Final = 200_000_000
"""More taxi-weeks than this needs would run past the schema's seven-digit ids."""

MAX_TRIPS_A_TAXI_WEEK: Final = 200
FIRST_TAXI: Final = 2_000_000
MAX_FARE, MAX_TIP, MAX_MILES, MAX_SECONDS = 9_000, 400, 1_400, 86_400

COLUMNS: Final[dict[str, np.dtype[Any]]] = {
    "taxi_id": np.dtype(np.int64),
    "shift": np.dtype(np.uint8),
    "company_id": np.dtype(np.int8),
    "pickup_community_area": np.dtype(np.int8),
    "dropoff_community_area": np.dtype(np.int8),
    "payment_type": np.dtype(np.int8),
    "trip_day_of_week": np.dtype(np.int8),
    "trip_hour_of_day": np.dtype(np.int8),
    "fare": np.dtype(np.int16),
    "tips": np.dtype(np.int16),
    "trip_total": np.dtype(np.int16),
    "trip_seconds": np.dtype(np.int32),
    "trip_miles": np.dtype(np.int16),
}
"""The challenge's columns and dtypes, in its order."""

UNKNOWN, CASH, CARD, MOBILE, PRCARD, NO_CHARGE, DISPUTE = -1, 0, 1, 2, 3, 5, 6

Array = NDArray[Any]


def blocks(rows: int, seed: int) -> Iterator[dict[str, Array]]:
    """Yield `rows` simulated trips as blocks of up to `BLOCK` rows, with one 1-d array for each of `COLUMNS`.

    Deterministic in `seed`, and a shorter file is the beginning of a longer one of the same seed. Rows are
    sorted by taxi_id, day and hour, as in the challenge's file. Money is in whole dollars, times in seconds,
    distances in whole miles; -1 marks a missing value. Memory does not depend on `rows`.

    Raises ConfigError if `rows` is not in 1..MAX_ROWS or `seed` is negative.
    """
    if not 1 <= rows <= MAX_ROWS:
        raise ConfigError(f"rows = {rows}: simulated trips come in 1 to {MAX_ROWS:,} rows")
    if seed < 0:
        raise ConfigError(f"seed = {seed}: give a whole number of 0 or more")
    model = _Model.load()
    next_taxi = FIRST_TAXI
    for number, start in enumerate(range(0, rows, BLOCK)):
        # A block has its own stream and is drawn whole: neither `rows` nor its neighbours change it.
        block, n_taxis = _draw(model, np.random.Generator(np.random.SFC64([seed, number])), next_taxi)
        next_taxi += n_taxis
        wanted = min(BLOCK, rows - start)
        yield block if wanted == BLOCK else {name: column[:wanted] for name, column in block.items()}


def shift_of(day: Array, hour: Array) -> Array:
    """Return the challenge's shift, 0..20, which is 3 * day + (0 for 19h to 3h, 1 for 11h to 19h, 2 for 3h to 11h).

    Sunday (day 6) from 19h on is shift 0.
    """
    third = np.select([(hour >= 19) | (hour < 3), hour >= 11], [0, 1], 2)
    return np.where((day == 6) & (hour >= 19), 0, 3 * day + third).astype(np.uint8)


@dataclass(frozen=True)
class _Model:
    """The fitted parameters as tables to look up; a table's cells are flattened in the order its comment
    says."""

    company_share: Array
    trips_a_day: Array
    gamma_shape: float
    works_a_day: float
    whole_minutes: Array
    hours: Guide  # cell: company
    shift: Array
    band: Array
    kinds: Guide  # cell: company, band
    pickups: Guide  # cell: company, kind, band
    elsewhere: Guide  # dropoffs neither in the pickup's area nor unknown; cell: kind, pickup
    ends: Array  # chance of a dropoff in the same area, and of an unknown one, [kind * 78 + pickup, 2]
    ends_tilt: Array  # by how much more so than for others, [company * 4 + kind, 2]
    route: Array
    n_routes: int
    fares: Quantiles  # cell: company, kind, route
    fare_factor: Array
    zero_fare: Array
    outlier_share: Array
    outlier_from: float
    outlier_pareto: float
    fare_steps: Steps
    mile_steps: Steps
    states: Guide  # cell: company, kind, fare bin
    miles: Quantiles  # a metered dollar; cell: company, fare bin
    seconds: Quantiles  # a metered dollar; cell: off street, fare bin, mile bin
    n_fares: int
    n_miles: int
    scores: dict[str, Array]
    taxi_sd: float
    no_charge: float
    dispute: float
    tip_steps: Steps
    tip_given: Array
    tip_company: Array
    tips: Quantiles  # cell: tip class, fare bin
    extras: Quantiles  # cell: meter, pay class, place
    missing_seconds: float
    missing_fare: float

    @classmethod
    @cache
    def load(cls) -> _Model:
        file = resources.files("ldptree.simulate").joinpath("trips_parameters.json")
        p = json.loads(file.read_text(encoding="utf-8"))
        firms, card = p["companies"], p["card"]
        on_the_road = np.array(firms["taxis_a_day"], dtype=float)
        by_company, tilt = np.array(p["pickups"]["by_company"], float), np.array(p["pickups"]["tilt"], float)
        day, hour = np.divmod(np.arange(168), 24)
        shares = np.array(p["dropoffs"]["shares"], dtype=float).reshape(4, 78, 78)
        shares /= shares.sum(-1, keepdims=True)
        same, unknown = shares[:, np.arange(78), np.arange(78)].copy(), shares[:, :, 0].copy()
        unknown[:, 0] = 0.0
        shares[:, np.arange(78), np.arange(78)] = 0.0
        shares[:, :, 0] = 0.0
        scores = {name: np.array(card[name], dtype=np.float32) for name in _SCORES}
        return cls(
            company_share=on_the_road / on_the_road.sum(),
            trips_a_day=np.array(firms["trips_a_taxi_day"], dtype=float),
            gamma_shape=firms["gamma_shape"],
            works_a_day=firms["works_a_day"],
            whole_minutes=np.array(firms["whole_minutes"], dtype=np.float32),
            hours=Guide.of(p["hours"]),
            shift=shift_of(day, hour),
            band=np.array(p["band_of_hour"], dtype=np.uint8)[hour],
            kinds=Guide.of(p["kinds"]),
            pickups=Guide.of(by_company[:, :, None] * tilt[None]),
            elsewhere=Guide.of(shares),
            ends=np.stack([same, unknown], axis=-1).astype(np.float32).reshape(-1, 2),
            ends_tilt=np.array(p["dropoffs"]["tilt"], dtype=np.float32).reshape(-1, 2),
            route=np.array(p["route"], dtype=np.uint8).ravel(),
            n_routes=int(np.max(p["route"])) + 1,
            fares=Quantiles.of(p["fares"]),
            fare_factor=np.array(p["fare_factor"], dtype=np.float32),
            zero_fare=np.array(p["zero_fare"], dtype=np.float32),
            outlier_share=np.array(p["outlier_fare"]["share"], dtype=np.float32),
            outlier_from=p["outlier_fare"]["from"],
            outlier_pareto=p["outlier_fare"]["pareto"],
            fare_steps=Steps.of(p["fare_edges"], 2),
            mile_steps=Steps.of(p["mile_edges"], 10),
            states=Guide.of(p["states"]),
            miles=Quantiles.of(p["miles"]),
            seconds=Quantiles.of(p["seconds"]),
            n_fares=len(p["fare_edges"]) + 1,
            n_miles=len(p["mile_edges"]) + 2,
            scores=scores,
            taxi_sd=card["taxi_sd"],
            no_charge=p["rare"]["no_charge"],
            dispute=p["rare"]["dispute"],
            tip_steps=Steps.of(p["tip_edges"], 2),
            tip_given=np.array(p["tip_given"], dtype=np.float32),
            tip_company=np.array(p["tip_company"], dtype=np.float32),
            tips=Quantiles.of(p["tips"]),
            extras=Quantiles.of(p["extras"]),
            missing_seconds=p["missing"]["seconds"],
            missing_fare=p["missing"]["fare"],
        )


_SCORES: Final = ("hour", "pickup", "dropoff", "fare", "miles", "minutes", "fare_miles")


@dataclass(frozen=True)
class _Rides:
    """The facts of each trip before the meter starts; arrays [BLOCK]."""

    company: Array
    kind: (
        Array  # how it was hailed and settled: 0 on the street (card or cash), 1 Mobile, 2 Prcard, 3 Unknown
    )
    hour: Array
    pickup: Array  # 0 is "not known", 1..77 are community areas
    dropoff: Array
    effect: Array  # the taxi's own log odds of card

    @property
    def off_street(self) -> Array:
        return (self.kind > 0).astype(np.uint8)


def _draw(m: _Model, rng: np.random.Generator, first_taxi: int) -> tuple[dict[str, Array], int]:
    """One full block, and how many taxi-weeks it has."""
    firms, trips = _taxi_weeks(m, rng)
    taxi = np.repeat(np.arange(len(firms), dtype=np.int32), trips)
    company = firms[taxi]
    # Only the hours need sorting: the rest of a trip is drawn after them.
    week_hour = np.sort(taxi * 168 + m.hours.draw(rng, company)) - taxi * 168
    band = m.band[week_hour]
    kind = m.kinds.draw(rng, company * 4 + band)
    pickup = m.pickups.draw(rng, (company * 4 + kind) * 4 + band)
    rides = _Rides(
        company=company,
        kind=kind,
        hour=(week_hour % 24).astype(np.int8),
        pickup=pickup,
        dropoff=_dropoffs(m, rng, company, kind, pickup),
        effect=rng.normal(0.0, m.taxi_sd, len(firms)).astype(np.float32)[taxi],
    )
    fare = _fares(m, rng, rides)
    miles, seconds = _metered(m, rng, rides, fare)
    payment = _payments(m, rng, rides, fare=fare, miles=miles, seconds=seconds)
    tips, extras = _tips_and_extras(m, rng, rides, payment, fare)

    block = {
        "taxi_id": first_taxi + taxi,
        "shift": m.shift[week_hour],
        "company_id": company,
        "pickup_community_area": _area(pickup),
        "dropoff_community_area": _area(rides.dropoff),
        "payment_type": payment,
        "trip_day_of_week": week_hour // 24,
        "trip_hour_of_day": rides.hour,
        "fare": np.rint(fare),
        "tips": np.rint(tips),
        "trip_total": np.rint(fare + tips + extras),
        "trip_seconds": seconds,
        "trip_miles": np.rint(miles),
    }
    typed = {name: block[name].astype(dtype, copy=False) for name, dtype in COLUMNS.items()}
    typed["trip_seconds"][_some(rng, m.missing_seconds)] = -1
    unpriced = _some(rng, m.missing_fare)
    for name in ("fare", "tips", "trip_total"):
        typed[name][unpriced] = -1
    return typed, len(firms)


def _taxi_weeks(m: _Model, rng: np.random.Generator) -> tuple[Array, Array]:
    """Company (int32) and number of trips of each taxi-week, together exactly BLOCK trips."""
    n = BLOCK // 20
    firms = np.empty(0, dtype=np.int32)
    trips = np.empty(0, dtype=np.int64)
    while trips.sum() < BLOCK:
        more = rng.choice(len(m.company_share), size=n, p=m.company_share).astype(np.int32)
        days = 1 + rng.binomial(6, m.works_a_day, size=n)
        busy = rng.gamma(m.gamma_shape, 1.0 / m.gamma_shape, size=n)
        count = rng.poisson(m.trips_a_day[more] * days * busy)
        kept = (count > 0) & (count <= MAX_TRIPS_A_TAXI_WEEK)
        firms, trips = np.append(firms, more[kept]), np.append(trips, count[kept])
    n_taxis = int(np.searchsorted(np.cumsum(trips), BLOCK)) + 1
    firms, trips = firms[:n_taxis], trips[:n_taxis]
    trips[-1] -= trips.sum() - BLOCK
    return firms, trips


def _dropoffs(m: _Model, rng: np.random.Generator, company: Array, kind: Array, pickup: Array) -> Array:
    """Draw area codes, uint8, which are the pickup's own, 0 where not known, or another."""
    cell = kind.astype(np.int32) * 78 + pickup
    chance = m.ends[cell]
    other = 1 - chance.sum(1)
    chance = chance * m.ends_tilt[company * 4 + kind]
    u = rng.random(len(pickup), dtype=np.float32) * (other + chance.sum(1))
    dropoff = m.elsewhere.draw(rng, cell)
    np.copyto(dropoff, pickup, where=u < chance[:, 0])
    dropoff[(u >= chance[:, 0]) & (u < chance[:, 0] + chance[:, 1])] = 0
    return dropoff


def _fares(m: _Model, rng: np.random.Generator, rides: _Rides) -> Array:
    """Draw fares in dollars and cents, float32, by company, kind and route, with a few 0 or far too large."""
    route = m.route[rides.pickup.astype(np.int32) * 78 + rides.dropoff]
    fare = (
        m.fares.draw(rng, (rides.company * 4 + rides.kind) * m.n_routes + route)
        * m.fare_factor[rides.company]
    )
    np.minimum(fare, np.float32(m.outlier_from), out=fare)
    u = rng.random(len(fare), dtype=np.float32)
    zero, outlier = m.zero_fare[rides.off_street], m.outlier_share[rides.off_street]
    fare[u < zero] = 0.0
    at = np.flatnonzero((u >= zero) & (u < zero + outlier))
    fare[at] = np.minimum(m.outlier_from * (1 + rng.pareto(m.outlier_pareto, len(at))), MAX_FARE)
    return fare


def _metered(m: _Model, rng: np.random.Generator, rides: _Rides, fare: Array) -> tuple[Array, Array]:
    """Draw miles (float32) and whole seconds (float32) as the meter recorded them. Either is zero on some trips."""
    fare_bin = m.fare_steps.of_values(fare)
    state = m.states.draw(rng, (rides.company * 4 + rides.kind) * m.n_fares + fare_bin)
    metered = np.clip(fare - 2, 1, 100)
    miles = np.minimum(m.miles.draw(rng, rides.company * m.n_fares + fare_bin) * metered, MAX_MILES)
    miles[state > 0] = 0.0
    mile_bin = np.where(state > 0, 0, m.mile_steps.of_values(miles) + 1)
    cell = (rides.off_street.astype(np.int32) * m.n_fares + fare_bin) * m.n_miles + mile_bin
    seconds = np.minimum(m.seconds.draw(rng, cell) * metered, MAX_SECONDS)
    seconds[state == 2] = 0.0
    whole = rng.random(len(fare), dtype=np.float32) < m.whole_minutes[rides.company]
    np.copyto(seconds, 60 * np.rint(seconds / 60), where=whole)
    return miles, np.rint(seconds)


def _payments(
    m: _Model, rng: np.random.Generator, rides: _Rides, *, fare: Array, miles: Array, seconds: Array
) -> Array:
    """Payment codes, int8. Off the street the kind says it; on the street a logistic score, card against
    cash.

    A taxi has log odds of its own, and the fit averages over taxis, so the score is stretched by
    sqrt(1 + 0.346 var): averaged over the normal effect it is then the fitted probability again (the usual
    logistic-normal approximation, 0.346 = (16 sqrt(3) / (15 pi))^2).
    """
    s = m.scores
    dollars = np.minimum(np.rint(fare), s["fare"].shape[1] - 1).astype(np.int32)
    mile = np.minimum(np.rint(miles), s["miles"].shape[1] - 1).astype(np.int32)
    minute = np.minimum(seconds / 60, s["minutes"].shape[1] - 1).astype(np.int32)
    score = s["fare_miles"].ravel()[dollars * s["fare_miles"].shape[1] + mile]
    for name, value in (
        ("hour", rides.hour),
        ("pickup", rides.pickup),
        ("dropoff", rides.dropoff),
        ("fare", dollars),
        ("miles", mile),
        ("minutes", minute),
    ):
        score += s[name].ravel()[rides.company * s[name].shape[1] + value]
    score *= np.float32(math.sqrt(1 + 0.346 * m.taxi_sd**2))
    score += rides.effect
    by_card = rng.random(len(score), dtype=np.float32) * (1 + np.exp(-score)) < 1
    payment = np.array([CASH, MOBILE, PRCARD, UNKNOWN], dtype=np.int8)[rides.kind]
    payment[by_card & (rides.kind == 0)] = CARD
    rare = _some(rng, m.no_charge + m.dispute)
    rare = rare[rides.kind[rare] == 0]
    disputed = rng.random(len(rare)) < m.dispute / (m.no_charge + m.dispute)
    payment[rare] = np.where(disputed, DISPUTE, NO_CHARGE)
    return payment


def _tips_and_extras(
    m: _Model, rng: np.random.Generator, rides: _Rides, payment: Array, fare: Array
) -> tuple[Array, Array]:
    """Draw dollars and cents, float32, for tips by payment and fare, and extras by payment, place and meter."""
    is_card = payment == CARD
    tip_class = np.array([3, 1, 2, 3], dtype=np.int32)[rides.kind]
    tip_class[is_card] = 0
    cell = tip_class * m.tip_given.shape[1] + m.tip_steps.of_values(fare)
    chance = m.tip_given.ravel()[cell] * np.where(is_card, m.tip_company[rides.company], np.float32(1))
    given = np.flatnonzero(rng.random(len(fare), dtype=np.float32) < chance)
    tips = np.zeros(len(fare), dtype=np.float32)
    tips[given] = np.minimum(m.tips.draw(rng, cell[given]) * np.maximum(fare[given], 1), MAX_TIP)

    pay_class = np.array([0, 2, 2, 2], dtype=np.int32)[rides.kind]
    pay_class[is_card] = 1
    place = np.zeros(78, dtype=np.int32)
    place[[76, 56, 0]] = 1, 2, 3  # O'Hare, Midway, not known
    old_meter = (m.whole_minutes > 0.9).astype(np.int32)[rides.company]
    return tips, m.extras.draw(rng, old_meter * 12 + pay_class * 4 + place[rides.pickup])


def _area(code: Array) -> Array:
    """Community areas 1..77, and the challenge's -1 for 0, "not known"."""
    area = code.astype(np.int8)
    area[area == 0] = -1
    return area


def _some(rng: np.random.Generator, share: float) -> Array:
    """Row numbers of a block, each chosen with probability `share` (a small one), possibly twice."""
    return rng.integers(0, BLOCK, size=rng.poisson(share * BLOCK))


_GUIDE_BITS: Final = 12


@dataclass(frozen=True)
class Guide:
    """Categorical distributions, one for each cell, as 2^12 equally likely values. A draw is one look-up."""

    values: NDArray[np.uint8]  # flat, [cells * 2^12]

    @classmethod
    def of(cls, shares: NDArray[Any]) -> Guide:
        """From shares [..., k], k <= 256; the leading axes, flattened, are the cells. Shares need not sum to
        1."""
        flat = np.asarray(shares, dtype=float).reshape(-1, np.shape(shares)[-1])
        n, k = flat.shape
        cumulative = np.cumsum(flat, axis=1)
        cumulative /= cumulative[:, -1:]
        size = 1 << _GUIDE_BITS
        cells = np.arange(n)[:, None]
        # Cell i's cumulative shares are moved to (i, i + 1], so that one search serves all cells.
        middles = ((np.arange(size) + 0.5) / size + cells).ravel()
        at = np.searchsorted((cumulative + cells).ravel(), middles).reshape(n, size) - cells * k
        return cls(np.minimum(at, k - 1).astype(np.uint8).ravel())

    def draw(self, rng: np.random.Generator, cells: NDArray[Any]) -> NDArray[np.uint8]:
        """One value a row, uint8 [n], from the distribution of the row's cell."""
        u = rng.integers(0, 1 << 16, size=len(cells), dtype=np.uint16) >> (16 - _GUIDE_BITS)
        values: NDArray[np.uint8] = self.values[(cells.astype(np.int32) << _GUIDE_BITS) + u]
        return values


@dataclass(frozen=True)
class Quantiles:
    """Quantile functions, one a cell, linear between evenly spaced probabilities."""

    knots: NDArray[np.float32]  # flat, [cells * n]
    n: int

    @classmethod
    def of(cls, written: dict[str, Any]) -> Quantiles:
        """Read {"rows": [r, n], "cells": [...] numbers of rows}, which has a function used by many cells once."""
        table = np.asarray(written["rows"], dtype=np.float32)[np.asarray(written["cells"])]
        return cls(table.ravel(), table.shape[-1])

    def draw(self, rng: np.random.Generator, cells: NDArray[Any]) -> NDArray[np.float32]:
        """One value a row, float32 [n], from the distribution of the row's cell."""
        place = rng.random(len(cells), dtype=np.float32) * np.float32(self.n - 1)
        below = np.minimum(place.astype(np.int32), self.n - 2)
        place -= below
        below += cells.astype(np.int32) * self.n
        low = self.knots[below]
        values: NDArray[np.float32] = low + (self.knots[below + 1] - low) * place
        return values


@dataclass(frozen=True)
class Steps:
    """The bin numbers of values on a fine grid, as np.digitize gives them, by one look-up."""

    bins: NDArray[np.uint8]
    per_unit: int

    @classmethod
    def of(cls, edges: list[float], per_unit: int) -> Steps:
        """`edges` are multiples of 1 / per_unit."""
        grid = np.arange(math.ceil(max(edges)) * per_unit + 1) / per_unit
        return cls(np.digitize(grid + 1e-9, edges).astype(np.uint8), per_unit)

    def of_values(self, values: NDArray[Any]) -> NDArray[np.uint8]:
        """Bin of each value, uint8 [n]; values are not negative."""
        bins: NDArray[np.uint8] = self.bins[
            np.minimum(values * self.per_unit, len(self.bins) - 1).astype(np.int32)
        ]
        return bins
