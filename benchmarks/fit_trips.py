"""Fit the simulated trips' parameters to the real trips: LDPTREE_DATA=DIR python benchmarks/fit_trips.py.

Reads the two days of 2022 (`taxi/Taxi_Trips_2022_0[34].parquet`) and the TFX sample (`taxi/tfx_data.csv`)
under DIR and writes `ldptree/simulate/trips_parameters.json`: shares, quantile functions and score tables, no
trip. A cell of fewer than `TINY` trips never stands alone: it takes the value of the cells around it, and
every knot of a quantile function is a mean of five trips or more. Each part is fitted by maximum (penalised)
likelihood or by moments; no decision tree is run here.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

OUT = Path(__file__).parents[1] / "ldptree" / "simulate" / "trips_parameters.json"
REAL_FILES = ("taxi/Taxi_Trips_2022_03.parquet", "taxi/Taxi_Trips_2022_04.parquet")
TFX_FILE = "taxi/tfx_data.csv"

TINY = 10  # a count below this is replaced by what its neighbours say
MIN_COMPANY = 100  # the challenge's own rule: smaller companies are dropped
KNOTS = 33  # of a quantile function, evenly spaced in probability
N_AREAS = 78  # 0 is "not known", 1..77 are Chicago's community areas
KINDS = ("street", "mobile", "prcard", "unknown")
KIND_OF = {
    "Cash": 0, "Credit Card": 0, "No Charge": 0, "Dispute": 0, "Mobile": 1, "Prcard": 2, "Unknown": 3,
}  # fmt: skip
BAND_OF_HOUR = np.array([0] * 5 + [1] * 5 + [2] * 6 + [3] * 6 + [0] * 2)  # night, morning, midday, evening
FARE_EDGES = np.array([3.5, 5, 6, 7, 8, 9.5, 12, 15, 19, 24, 30, 36, 42, 50])
MILE_EDGES = np.array([0.3, 0.7, 1.2, 2, 3.5, 6, 9, 13, 17])
RATIO_EDGES = np.array([6, 8, 11, 15, 20, 30, 42])  # fares, for tips
DISTANCE_EDGES = np.array([0.9, 1.4, 2, 2.7, 3.5, 5, 7, 9, 11, 13, 16])  # miles between two areas' centres
OHARE, MIDWAY = 76, 56
OUTLIER_FARE = 100.0


def real_trips(folder: Path) -> pl.DataFrame:
    """The two real days, companies of 100 trips or more, money and areas as the fits want them."""
    raw = pl.concat([pl.read_parquet(folder / name) for name in REAL_FILES], how="vertical_relaxed")
    raw = raw.filter(pl.len().over("company") >= MIN_COMPANY)
    names = sorted(raw["company"].unique().to_list())
    return raw.select(
        taxi=pl.col("taxi_id").cast(pl.Categorical).to_physical(),
        company=pl.col("company").replace_strict({n: i for i, n in enumerate(names)}, return_dtype=pl.Int64),
        company_name="company",
        day=pl.col("trip_start_timestamp").dt.weekday().cast(pl.Int64) - 1,  # Monday is 0
        hour=pl.col("trip_start_timestamp").dt.hour().cast(pl.Int64),
        pickup=pl.col("pickup_community_area").cast(pl.Int64).fill_null(0),
        dropoff=pl.col("dropoff_community_area").cast(pl.Int64).fill_null(0),
        fare="fare",
        tips="tips",
        extras=(pl.col("trip_total") - pl.col("fare") - pl.col("tips")).clip(0),
        seconds="trip_seconds",
        miles="trip_miles",
        payment="payment_type",
        kind=pl.col("payment_type").replace_strict(KIND_OF, return_dtype=pl.Int64),
        x_pickup="pickup_centroid_longitude",
        y_pickup="pickup_centroid_latitude",
        x_dropoff="dropoff_centroid_longitude",
        y_dropoff="dropoff_centroid_latitude",
    )


def counts(*columns: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """How often each combination of codes occurs, as float64 of `shape`."""
    flat = np.ravel_multi_index(columns, shape)
    return np.bincount(flat, minlength=math.prod(shape)).astype(float).reshape(shape)


def shrunk(table: np.ndarray, prior: np.ndarray, strength: float) -> np.ndarray:
    """Rows of counts as shares: (n + strength * prior) / (N + strength), counts under TINY left to the prior.

    What the small counts held together is shared among them in proportion to the prior, TINY each at most.
    """
    prior = np.broadcast_to(prior, table.shape)
    tiny = table < TINY
    kept = np.where(tiny, 0.0, table)
    lost = (table - kept).sum(-1, keepdims=True)
    low, high = np.zeros_like(lost), np.full_like(lost, 1e6)
    for _ in range(60):
        middle = (low + high) / 2
        short = np.where(tiny, np.minimum(middle * prior, TINY), 0.0).sum(-1, keepdims=True) < lost
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    smoothed = kept + np.where(tiny, np.minimum(low * prior, TINY), 0.0) + strength * prior
    return np.asarray(smoothed / smoothed.sum(-1, keepdims=True))


def quantiles(values: np.ndarray) -> np.ndarray:
    """A quantile function at KNOTS even probabilities, each knot the mean of the trips around it."""
    ordered = np.sort(values)
    edges = np.concatenate([[0], np.arange(0.5, KNOTS - 1), [KNOTS - 1]]) / (KNOTS - 1) * len(ordered)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    at = np.interp(edges, np.arange(len(ordered) + 1), sums)
    return np.diff(at) / np.diff(edges)


def quantile_table(values: np.ndarray, cells: np.ndarray, n_cells: int, *parents: np.ndarray) -> np.ndarray:
    """One quantile function a cell, [n_cells, KNOTS]; too small a cell takes the first large enough parent's.

    `parents` are coarser codes of the same trips, one array a level; everything together is the last.
    """
    least = 10 * (KNOTS - 1)  # so that the two half knots at the ends are means of five trips too
    levels = [*parents, np.zeros_like(cells)]
    overall = quantiles(values)
    table = np.empty((n_cells, KNOTS))
    for cell in range(n_cells):
        chosen = values[cells == cell]
        table[cell] = overall
        if len(chosen) >= least:
            table[cell] = quantiles(chosen)
        elif len(chosen):
            first = int(np.flatnonzero(cells == cell)[0])
            for level in levels:
                wider = values[level == level[first]]
                if len(wider) >= least:
                    table[cell] = quantiles(wider)
                    break
    return table


def written_once(table: np.ndarray) -> dict[str, Any]:
    """A quantile table as its different rows and, for each cell, which of them it uses."""
    rows, which = np.unique(table.reshape(-1, KNOTS), axis=0, return_inverse=True)
    return {"cells": which.reshape(table.shape[:-1]), "rows": rows}


def per(total: int, shares: np.ndarray) -> np.ndarray:
    """Shares as whole numbers out of `total`: short to write, and finer than the fit."""
    return np.rint(shares * total).astype(int)


def hours_of_the_week(trips: pl.DataFrame, tfx: pl.DataFrame, n_companies: int) -> np.ndarray:
    """Share of trips by company and hour of the week, [company, 168], hour 0 is Monday's midnight.

    The week's shape is the TFX sample's, smoothed over five hours; the hours are raked to the two days of
    2022; a company's own share of each three hours is from 2022.
    """
    day = (tfx["trip_start_day"].to_numpy() - 2) % 7  # the sample's day 1 is a Sunday
    sample = counts(day, tfx["trip_start_hour"].to_numpy(), shape=(7, 24)).ravel()
    week = np.convolve(np.r_[sample[-2:], sample, sample[:2]], [0.1, 0.2, 0.4, 0.2, 0.1], "valid").reshape(
        7, 24
    )
    now = counts(trips["hour"].to_numpy(), shape=(24,))
    then = week[trips["day"].unique().sort().to_numpy()].sum(0)
    week *= now / now.sum() / (then / then.sum())
    three = counts(trips["company"].to_numpy(), trips["hour"].to_numpy() // 3, shape=(n_companies, 8))
    overall = three.sum(0) / three.sum()
    tilt = shrunk(three, overall, 60.0) / overall
    table = (week[None] * np.repeat(tilt, 3, axis=1)[:, None, :]).reshape(n_companies, 168)
    return np.asarray(table / table.sum(1, keepdims=True))


def area_centres(trips: pl.DataFrame) -> np.ndarray:
    """Middle of each community area as (longitude, latitude), from the centroids printed with the trips."""
    ends = [
        trips.filter(pl.col(end) > 0).select(area=end, x=f"x_{end}", y=f"y_{end}").drop_nulls()
        for end in ("pickup", "dropoff")
    ]
    middle = pl.concat(ends).group_by("area").agg(pl.col("x", "y").median())
    centres = np.tile([[-87.68, 41.85]], (N_AREAS, 1))
    centres[middle["area"].to_numpy()] = middle.select("x", "y").to_numpy()
    return centres


def route_classes(centres: np.ndarray) -> np.ndarray:
    """Pickup and dropoff to a class of similar fares, int [78, 78]: by distance, then what is not known."""
    d = (centres[:, None] - centres[None]) * np.array([51.4, 69.0])  # miles in a degree at 41.85 north
    route = np.digitize(np.hypot(d[..., 0], d[..., 1]), DISTANCE_EDGES) + 1
    np.fill_diagonal(route, 0)
    end = np.zeros(N_AREAS, dtype=int)
    end[[OHARE, MIDWAY]] = 1, 2
    n = len(DISTANCE_EDGES) + 2
    route[OHARE, OHARE] = n
    route[0, :] = n + 1 + end
    route[:, 0] = n + 4 + end
    route[0, 0] = n + 7
    return route


def pickups(trips: pl.DataFrame, n_companies: int) -> dict[str, np.ndarray]:
    """Pickup areas: shares by company and kind [company, kind, 78]; a tilt by band of hours [kind, band,
    78]."""
    company, kind, area = (trips[c].to_numpy() for c in ("company", "kind", "pickup"))
    band = BAND_OF_HOUR[trips["hour"].to_numpy()]
    by_kind = counts(kind, area, shape=(4, N_AREAS))
    by_kind = shrunk(by_kind, by_kind.sum(0) / by_kind.sum(), 50.0)
    by_company = shrunk(counts(company, kind, area, shape=(n_companies, 4, N_AREAS)), by_kind, 60.0)
    by_band = shrunk(counts(kind, band, area, shape=(4, 4, N_AREAS)), by_kind[:, None], 200.0)
    return {"by_company": per(10_000, by_company), "tilt": (by_band / by_kind[:, None]).round(2)}


def dropoffs(trips: pl.DataFrame, route: np.ndarray, n_companies: int) -> dict[str, np.ndarray]:
    """Dropoff areas: shares by kind and pickup area [kind, 78, 78], a gravity model where trips are few; and
    by how much more than others a company's trips end in the same area, or in one not known, [company, kind,
    2].
    """
    company, kind, pickup, dropoff = (trips[c].to_numpy() for c in ("company", "kind", "pickup", "dropoff"))
    pairs = counts(kind, pickup, dropoff, shape=(4, N_AREAS, N_AREAS))
    arrivals = pairs.sum(1) + 50 * pairs.sum((0, 1)) / pairs.sum()
    table = np.empty_like(pairs)
    n_routes = int(route.max()) + 1
    for k in range(4):
        even = pairs[k].sum(1)[:, None] * (arrivals[k] / arrivals[k].sum())
        seen = np.bincount(route.ravel(), pairs[k].ravel(), n_routes) + 20
        pull = seen / (np.bincount(route.ravel(), even.ravel(), n_routes) + 20)
        gravity = arrivals[k] * pull[route]
        table[k] = shrunk(pairs[k], gravity / gravity.sum(1, keepdims=True), 25.0)

    same, unknown = table[kind, pickup, pickup], table[kind, pickup, 0]
    expected = [same, np.where(pickup == 0, 0.0, unknown)]
    ended = np.select([dropoff == pickup, dropoff == 0], [0, 1], 2)
    ratios = []
    for end, chance in enumerate([*expected, 1 - sum(expected)]):
        flat = company * 4 + kind
        seen = np.bincount(flat, ended == end, n_companies * 4)
        ratio = (seen + 20) / (np.bincount(flat, chance, n_companies * 4) + 20)
        ratios.append(np.where(seen < TINY, 1.0, ratio))
    return {
        "shares": per(10_000, table),
        "tilt": np.stack([ratios[0] / ratios[2], ratios[1] / ratios[2]], -1).reshape(n_companies, 4, 2),
    }


def hats(x: np.ndarray, knots: list[float]) -> np.ndarray:
    """Piecewise linear basis: column j is 1 at knot j, 0 at its neighbours, constant beyond the ends."""
    return np.stack([np.interp(x, knots, row) for row in np.eye(len(knots))], axis=1)


FINE: dict[str, list[float]] = {
    "fare": [0, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 17, 20, 25, 30, 35, 40, 45, 50, 60, 80, 100],
    "miles": [0, 1, 2, 3, 4, 6, 8, 11, 14, 17, 20, 30],
    "minutes": [0, 1, 2, 3, 5, 7, 10, 13, 16, 20, 25, 30, 40, 60, 90],
    "hour": list(range(24)),
}
COARSE: dict[str, list[float]] = {
    "fare": [3, 6, 10, 16, 25, 36, 46, 54, 64, 80],
    "miles": [0, 1, 3, 8, 15, 22],
    "minutes": [0, 2, 6, 12, 22, 40],
    "hour": [1, 7, 12, 18, 23],
}
TOP = {"fare": 101, "miles": 31, "minutes": 91, "hour": 24}  # values of each score table: 0, 1, ..., TOP - 1
NOTED_AREAS = (0, OHARE, MIDWAY, 32, 8, 28, 6, 33)  # where a company may differ on its own


def area_columns(area: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One column an area, and one a noted area (the rest together)."""
    return np.eye(N_AREAS)[area], np.stack([area == a for a in NOTED_AREAS], axis=1).astype(float)


def card_scores(street: pl.DataFrame, n_companies: int) -> dict[str, Any]:
    """Log odds of card against cash, as tables a sum of which is the score.

    Ridge-penalised logistic regression: smooth main effects, one smooth curve more a company (ridge pulls it
    to the main one), and fare by miles. Penalty and interactions' scale are those of the best five-fold
    likelihood.
    """
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score

    values = {
        "fare": np.rint(street["fare"].to_numpy()).clip(0, 100),
        "miles": np.rint(street["miles"].to_numpy()).clip(0, 30),
        "minutes": (street["seconds"].to_numpy() // 60).clip(0, 90),
        "hour": street["hour"].to_numpy(),
    }
    company = street["company"].to_numpy()
    areas = {end: street[end].to_numpy() for end in ("pickup", "dropoff")}
    many = {end: np.bincount(a, minlength=N_AREAS) >= 2 * TINY for end, a in areas.items()}

    def by_company(basis: np.ndarray) -> np.ndarray:
        wide = np.zeros((len(basis), n_companies, basis.shape[1]), dtype=np.float32)
        wide[np.arange(len(basis)), company] = basis
        return wide.reshape(len(basis), -1)

    def fare_by_miles(fare: np.ndarray, miles: np.ndarray) -> np.ndarray:
        a, b = hats(fare, COARSE["fare"]), hats(miles, COARSE["miles"])
        return (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)

    blocks: dict[str, np.ndarray] = {"company": np.eye(n_companies)[company]}
    for name, x in values.items():
        blocks[name] = hats(x, FINE[name])
        blocks[f"{name} company"] = by_company(hats(x, COARSE[name]))
    for end, a in areas.items():
        one, noted = area_columns(a)
        blocks[end] = one * many[end]
        blocks[f"{end} company"] = by_company(noted)
    blocks["fare miles"] = fare_by_miles(values["fare"], values["miles"])
    y = (street["payment"] == "Credit Card").to_numpy().astype(int)

    def columns(scale: float) -> csr_matrix:
        """Interactions times `scale`: the smaller, the harder the one penalty pulls them to nothing."""
        return csr_matrix(np.hstack([b * (scale if " " in k else 1.0) for k, b in blocks.items()]))

    likelihood = {}
    for scale in (0.5, 0.7, 1.0, 1.4):
        X = columns(scale)
        for c in (0.03, 0.1, 0.3):
            model = LogisticRegression(C=c, max_iter=1000)
            likelihood[c, scale] = float(cross_val_score(model, X, y, cv=5, scoring="neg_log_loss").mean())
    best, scale = max(likelihood, key=lambda k: likelihood[k])
    X = columns(scale)
    fit = LogisticRegression(C=best, max_iter=2000).fit(X, y)
    print(f"five-fold log likelihood: {likelihood}; {X.shape[1]} columns")
    ends = np.cumsum([b.shape[1] for b in blocks.values()])[:-1]
    weight = dict(zip(blocks, np.split(fit.coef_[0], ends), strict=True))
    weight = {k: w * (scale if " " in k else 1.0) for k, w in weight.items()}

    scores: dict[str, Any] = {}
    for name, top in TOP.items():
        grid = np.arange(top, dtype=float)
        own = hats(grid, COARSE[name]) @ weight[f"{name} company"].reshape(n_companies, -1).T
        scores[name] = (hats(grid, FINE[name]) @ weight[name])[None] + own.T
    scores["hour"] += (fit.intercept_[0] + weight["company"])[:, None]
    one, noted = area_columns(np.arange(N_AREAS))
    for end in areas:
        own = noted @ weight[f"{end} company"].reshape(n_companies, -1).T
        scores[end] = ((one * many[end]) @ weight[end])[None] + own.T
    dollars, miles = np.divmod(np.arange(TOP["fare"] * TOP["miles"]), TOP["miles"])
    pairs = fare_by_miles(dollars, miles) @ weight["fare miles"]
    scores["fare_miles"] = pairs.reshape(TOP["fare"], TOP["miles"])
    scores["taxi_sd"] = taxi_effect(street["taxi"].to_numpy(), y - fit.predict_proba(X)[:, 1])
    return scores


def taxi_effect(taxi: np.ndarray, residual: np.ndarray) -> float:
    """Standard deviation of one taxi's own log odds of card, by moments of its trips' summed residuals."""
    variance = np.abs(residual) * (1 - np.abs(residual))
    _, index = np.unique(taxi, return_inverse=True)
    excess = (np.bincount(index, residual) ** 2 - np.bincount(index, residual**2)).sum()
    pairs = (np.bincount(index, variance) ** 2 - np.bincount(index, variance**2)).sum()
    return math.sqrt(max(excess / pairs, 0.0))


def meter_states(trips: pl.DataFrame, fare_bin: np.ndarray, n_companies: int) -> np.ndarray:
    """Share of: both measured, no miles, no miles and no seconds; [company, kind, fare bin, 3]."""
    company, kind, miles, seconds = (trips[c].to_numpy() for c in ("company", "kind", "miles", "seconds"))
    state = np.where(miles > 0, 0, np.where(seconds > 0, 1, 2))
    n_bins = len(FARE_EDGES) + 1
    by_kind = counts(kind, fare_bin, state, shape=(4, n_bins, 3))
    by_kind = shrunk(by_kind, shrunk(by_kind.sum(1), np.array([0.9, 0.08, 0.02]), 1.0)[:, None], 5.0)
    overall = shrunk(counts(kind, state, shape=(4, 3)), np.array([0.9, 0.08, 0.02]), 1.0)
    own = shrunk(counts(company, kind, state, shape=(n_companies, 4, 3)), overall, 10.0)
    prior = by_kind[None] * (own / overall)[:, :, None]
    prior /= prior.sum(-1, keepdims=True)
    return shrunk(counts(company, kind, fare_bin, state, shape=(n_companies, 4, n_bins, 3)), prior, 10.0)


def companies(trips: pl.DataFrame, full_minutes: np.ndarray) -> dict[str, Any]:
    """Each company's name, its taxis a day, and the mean and spread of one taxi's trips a day."""
    days = trips.group_by("company", "taxi", "day").len().group_by("company")
    taxis = days.agg(n=pl.len() / trips["day"].n_unique(), mean=pl.col("len").mean(), var=pl.col("len").var())
    taxis = taxis.sort("company")
    both = trips.group_by("taxi").agg(pl.col("day").n_unique())["day"]
    spread = trips.group_by("taxi", "day").len()["len"]
    return {
        "names": trips.group_by("company", "company_name").len().sort("company")["company_name"].to_list(),
        "taxis_a_day": taxis["n"].to_numpy(),
        "trips_a_taxi_day": taxis["mean"].to_numpy(),
        "gamma_shape": float(spread.mean() ** 2 / (spread.var() - spread.mean())),  # type: ignore[operator]
        "works_a_day": float(2 * (both == 2).sum() / (len(both) + (both == 2).sum())),
        "whole_minutes": full_minutes,
    }


def fit(folder: Path) -> dict[str, Any]:
    """All parameters, as arrays and numbers ready to be rounded and written."""
    trips = real_trips(folder)
    tfx = pl.read_csv(folder / TFX_FILE, infer_schema_length=None)
    n_all, n = trips.height, int(trips["company"].max()) + 1  # type: ignore[arg-type]
    missing = {
        "seconds": trips["seconds"].null_count() / n_all,
        "fare": trips["fare"].null_count() / n_all,
    }
    trips = trips.drop_nulls(["fare", "tips", "extras", "seconds", "miles"])
    centres = area_centres(trips)
    route = route_classes(centres)
    company, kind = trips["company"].to_numpy(), trips["kind"].to_numpy()
    fare, miles, seconds = (trips[c].to_numpy() for c in ("fare", "miles", "seconds"))
    tips, extras = trips["tips"].to_numpy(), trips["extras"].to_numpy()
    payment = trips["payment"].to_numpy()

    bands = counts(company, BAND_OF_HOUR[trips["hour"].to_numpy()], kind, shape=(n, 4, 4))
    own = np.where(bands.sum(1) < TINY, 0, bands.sum(1))
    kinds = shrunk(bands, (own / own.sum(1, keepdims=True))[:, None], 50.0)

    trip_route = route[trips["pickup"].to_numpy(), trips["dropoff"].to_numpy()]
    n_routes = int(route.max()) + 1
    usual = (fare > 1) & (fare <= OUTLIER_FARE)
    route_of_kind = kind * n_routes + trip_route
    fares = quantile_table(
        fare[usual],
        (company * 4 * n_routes + route_of_kind)[usual],
        n * 4 * n_routes,
        route_of_kind[usual],
        trip_route[usual],
    ).reshape(n, 4, n_routes, KNOTS)
    gap = np.log(fare[usual]) - np.log(fares[company, kind, trip_route]).mean(-1)[usual]
    typical = np.bincount(company[usual], gap, n) / (np.bincount(company[usual], minlength=n) + 200)
    factor = np.exp(typical - np.average(typical, weights=np.bincount(company[usual], minlength=n)))
    high = fare[fare > OUTLIER_FARE]

    fare_bin = np.digitize(fare, FARE_EDGES)
    metered = np.clip(fare - 2, 1, 100)
    n_fares, n_miles = len(FARE_EDGES) + 1, len(MILE_EDGES) + 1
    minutes = (seconds % 60 == 0).astype(float)
    whole = np.bincount(company, minutes, n) / np.bincount(company)
    meter = (whole > 0.9).astype(int)[company]
    moved = miles > 0
    mile_table = quantile_table(
        (miles / metered)[moved],
        (company * n_fares + fare_bin)[moved],
        n * n_fares,
        (meter * n_fares + fare_bin)[moved],
        fare_bin[moved],
    ).reshape(n, n_fares, KNOTS)
    mile_bin = np.where(moved, np.digitize(miles, MILE_EDGES) + 1, 0)
    timed = seconds > 0
    off_street = (kind > 0).astype(int)
    second_table = quantile_table(
        (seconds / metered)[timed],
        ((off_street * n_fares + fare_bin) * (n_miles + 1) + mile_bin)[timed],
        2 * n_fares * (n_miles + 1),
        (fare_bin * (n_miles + 1) + mile_bin)[timed],
        fare_bin[timed],
    ).reshape(2, n_fares, n_miles + 1, KNOTS)

    is_card = payment == "Credit Card"
    tip_class = np.select([is_card, kind == 1, kind == 2], [0, 1, 2], 3)
    ratio_bin = np.digitize(fare, RATIO_EDGES)
    n_ratios = len(RATIO_EDGES) + 1
    tipped = (tips > 0) & (fare > 1)
    gave = (tips > 0).astype(int)
    by_class = counts(tip_class, gave, shape=(4, 2)) + 0.5
    by_class /= by_class.sum(1, keepdims=True)
    gives = shrunk(counts(tip_class, ratio_bin, gave, shape=(4, n_ratios, 2)), by_class[:, None], 20.0)[
        ..., 1
    ]
    card_tip = np.bincount(company[is_card], gave[is_card], n) / np.bincount(company[is_card], minlength=n)
    tip_table = quantile_table(
        (tips / np.maximum(fare, 1))[tipped],
        (tip_class * n_ratios + ratio_bin)[tipped],
        4 * n_ratios,
        tip_class[tipped],
        ratio_bin[tipped],
    ).reshape(4, n_ratios, KNOTS)

    pickup = trips["pickup"].to_numpy()
    place = np.select([pickup == OHARE, pickup == MIDWAY, pickup == 0], [1, 2, 3], 0)
    pay_class = np.select([is_card, kind > 0], [1, 2], 0)
    extra_table = quantile_table(
        extras, meter * 12 + pay_class * 4 + place, 24, pay_class * 4 + place, pay_class
    ).reshape(2, 3, 4, KNOTS)

    no_fare = counts(off_street, (fare < 1).astype(int), shape=(2, 2))
    street = trips.filter(pl.col("payment").is_in(["Cash", "Credit Card"]))
    on_street = int((kind == 0).sum())
    return {
        "companies": companies(trips, whole),
        "hours": per(100_000, hours_of_the_week(trips, tfx, n)),
        "band_of_hour": BAND_OF_HOUR,
        "kinds": kinds,
        "pickups": pickups(trips, n),
        "dropoffs": dropoffs(trips, route, n),
        "route": route,
        "fares": written_once(fares),
        "fare_factor": factor,
        "zero_fare": shrunk(no_fare, np.array([1.0, 0.0]), 1.0)[:, 1],
        "outlier_fare": {
            "share": [float((fare[off_street == k] > OUTLIER_FARE).mean()) for k in (0, 1)],
            "from": OUTLIER_FARE,
            "pareto": len(high) / float(np.log(high / OUTLIER_FARE).sum()),
        },
        "fare_edges": FARE_EDGES,
        "mile_edges": MILE_EDGES,
        "states": meter_states(trips, fare_bin, n),
        "miles": written_once(mile_table),
        "seconds": written_once(second_table),
        "card": card_scores(street, n),
        "rare": {
            "no_charge": (payment == "No Charge").sum() / on_street,
            "dispute": (payment == "Dispute").sum() / on_street,
        },
        "tip_edges": RATIO_EDGES,
        "tip_given": gives,
        "tip_company": np.clip(card_tip, 0.5, 1) / (is_card & (tips > 0)).sum() * is_card.sum(),
        "tips": written_once(tip_table),
        "extras": written_once(extra_table),
        "missing": missing,
    }


def rounded(value: Any) -> Any:
    """Arrays and numbers as short JSON: three significant digits are finer than the fit."""
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [rounded(v) for v in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, float | np.floating):
        short = round(float(f"{value:.3g}"), 4)
        return int(short) if short == int(short) else short
    return value.item() if isinstance(value, np.generic) else value


def main() -> None:
    folder = Path(os.environ.get("LDPTREE_DATA", "data"))
    if not (folder / REAL_FILES[0]).is_file():
        raise SystemExit(
            f"{folder / REAL_FILES[0]} is not there: set LDPTREE_DATA to the real data sets' folder"
        )
    parts = [f'"{k}":{json.dumps(v, separators=(",", ":"))}' for k, v in rounded(fit(folder)).items()]
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    OUT.write_text(text, encoding="utf-8")
    print(f"{OUT.name}: {len(text) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
