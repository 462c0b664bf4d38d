"""Simulated trips: the schema they keep, that they repeat, and that they are like the real ones."""

from __future__ import annotations

import json
from importlib import resources
from itertools import islice

import numpy as np
import pytest

from ldptree.errors import ConfigError
from ldptree.simulate.trips import (
    BLOCK,
    COLUMNS,
    FIRST_TAXI,
    MAX_TRIPS_A_TAXI_WEEK,
    Guide,
    Quantiles,
    Steps,
    blocks,
    shift_of,
)

RANGES = {
    "taxi_id": (1_000_000, 9_999_999),
    "shift": (0, 20),
    "company_id": (0, 16),
    "trip_day_of_week": (0, 6),
    "trip_hour_of_day": (0, 23),
    "fare": (-1, 9_900),
    "tips": (-1, 407),
    "trip_total": (-1, 9_900),
    "trip_seconds": (-1, 86_400),
    "trip_miles": (-1, 1_428),
}
AREAS = {-1, *range(1, 78)}


@pytest.fixture(scope="module")
def trips() -> dict[str, np.ndarray]:
    parts = list(blocks(2 * BLOCK, seed=7))
    return {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}


def test_columns_and_types_are_the_challenges(trips: dict[str, np.ndarray]) -> None:
    assert {name: column.dtype for name, column in trips.items()} == COLUMNS
    assert len(COLUMNS) == 13


def test_every_value_is_in_the_challenges_range(trips: dict[str, np.ndarray]) -> None:
    for name, (low, high) in RANGES.items():
        assert low <= trips[name].min(), name
        assert trips[name].max() <= high, name
    assert set(trips["pickup_community_area"].tolist()) <= AREAS
    assert set(trips["dropoff_community_area"].tolist()) <= AREAS
    assert set(trips["payment_type"].tolist()) <= {-1, 0, 1, 2, 3, 5, 6}


def test_shift_follows_from_day_and_hour(trips: dict[str, np.ndarray]) -> None:
    assert np.array_equal(trips["shift"], shift_of(trips["trip_day_of_week"], trips["trip_hour_of_day"]))
    day, hour = np.array([0, 0, 0, 0, 4, 6, 6]), np.array([0, 3, 11, 19, 18, 18, 19])
    assert shift_of(day, hour).tolist() == [0, 2, 1, 0, 13, 19, 0]


def test_trips_are_sorted_by_taxi_day_and_hour(trips: dict[str, np.ndarray]) -> None:
    order = np.lexsort((trips["trip_hour_of_day"], trips["trip_day_of_week"], trips["taxi_id"]))
    assert np.array_equal(order, np.arange(len(order)))


def test_a_taxi_week_is_of_one_company_and_has_at_most_200_trips(trips: dict[str, np.ndarray]) -> None:
    taxi, first, n = np.unique(trips["taxi_id"], return_index=True, return_counts=True)
    assert np.array_equal(taxi, np.arange(FIRST_TAXI, FIRST_TAXI + len(taxi)))
    assert np.array_equal(trips["company_id"][first].repeat(n), trips["company_id"])
    assert n.max() <= MAX_TRIPS_A_TAXI_WEEK


def test_the_same_seed_gives_the_same_trips_and_another_gives_others() -> None:
    one, again, other = (next(blocks(1000, seed)) for seed in (7, 7, 8))
    assert all(np.array_equal(one[name], again[name]) for name in COLUMNS)
    assert not np.array_equal(one["fare"], other["fare"])


def test_a_shorter_file_is_the_beginning_of_a_longer_one(trips: dict[str, np.ndarray]) -> None:
    parts = list(blocks(BLOCK + 500, seed=7))
    assert [len(part["fare"]) for part in parts] == [BLOCK, 500]
    for name in COLUMNS:
        assert np.array_equal(np.concatenate([part[name] for part in parts]), trips[name][: BLOCK + 500])


def test_blocks_come_one_by_one_however_many_rows_are_asked_for() -> None:
    first = list(islice(blocks(20_000_000, seed=7), 2))
    assert [len(block["fare"]) for block in first] == [BLOCK, BLOCK]


@pytest.mark.parametrize(("rows", "seed"), [(0, 7), (-5, 7), (10**10, 7), (10, -1)])
def test_senseless_requests_are_refused(rows: int, seed: int) -> None:
    with pytest.raises(ConfigError, match="rows = " if seed >= 0 else "seed = "):
        next(blocks(rows, seed))


# The figures are those of the 34,092 real trips of 2022, with room for the fit and for 262,144 draws.
def test_trips_are_paid_as_the_real_ones_are(trips: dict[str, np.ndarray]) -> None:
    payment = trips["payment_type"]
    for code, share in {0: 0.352, 1: 0.335, 2: 0.138, 3: 0.106, -1: 0.068}.items():
        assert np.mean(payment == code) == pytest.approx(share, abs=0.02), code


def test_tips_nearly_decide_card_against_cash(trips: dict[str, np.ndarray]) -> None:
    tipped = trips["tips"] > 0
    assert np.mean(tipped[trips["payment_type"] == 1]) == pytest.approx(0.934, abs=0.015)
    assert np.mean(tipped[trips["payment_type"] == 0]) < 0.01


def test_pickups_concentrate_where_the_real_ones_do(trips: dict[str, np.ndarray]) -> None:
    for area, share in {8: 0.221, 32: 0.173, 76: 0.129, 28: 0.091, 56: 0.023, -1: 0.079}.items():
        assert np.mean(trips["pickup_community_area"] == area) == pytest.approx(share, abs=0.015), area


def test_evenings_are_busier_than_the_early_morning(trips: dict[str, np.ndarray]) -> None:
    share = np.bincount(trips["trip_hour_of_day"], minlength=24) / len(trips["fare"])
    assert share[17:19].min() > 0.06
    assert share[3:5].max() < 0.015


def test_companies_are_paid_differently_as_the_real_ones_are(trips: dict[str, np.ndarray]) -> None:
    street = np.isin(trips["payment_type"], (0, 1))
    card = {
        firm: trips["payment_type"][street & (trips["company_id"] == firm)].mean() for firm in (6, 12, 14)
    }
    assert card == pytest.approx({6: 0.352, 12: 0.471, 14: 0.571}, abs=0.035)
    # one company is paid in cash on long trips, the others by card
    long = street & (trips["fare"] >= 50)
    assert trips["payment_type"][long & (trips["company_id"] == 6)].mean() < 0.45
    assert trips["payment_type"][long & (trips["company_id"] == 12)].mean() > 0.55


def test_fares_follow_miles_and_seconds(trips: dict[str, np.ndarray]) -> None:
    street = np.isin(trips["payment_type"], (0, 1)) & (trips["fare"] >= 0) & (trips["trip_seconds"] >= 0)
    ranks = {c: np.argsort(np.argsort(trips[c][street])) for c in ("fare", "trip_seconds", "trip_miles")}
    assert np.corrcoef(ranks["fare"], ranks["trip_seconds"])[0, 1] > 0.8
    assert np.corrcoef(ranks["fare"], ranks["trip_miles"])[0, 1] > 0.65


def test_zeros_missing_values_and_outliers_occur(trips: dict[str, np.ndarray]) -> None:
    assert 0.15 < np.mean(trips["trip_miles"] == 0) < 0.3
    assert 0.01 < np.mean(trips["trip_seconds"] == 0) < 0.06
    assert 0 < np.mean(trips["trip_seconds"] == -1) < 0.001
    assert np.array_equal(trips["fare"] == -1, trips["trip_total"] == -1)
    assert trips["fare"].max() > 300


def test_total_is_fare_and_tips_and_extras(trips: dict[str, np.ndarray]) -> None:
    extras = trips["trip_total"].astype(int) - trips["fare"] - trips["tips"]
    assert extras.min() >= -1  # each of the three is rounded by itself
    assert np.mean(extras > 0) > 0.2


def test_parameters_hold_no_cell_of_a_few_trips() -> None:
    text = resources.files("ldptree.simulate").joinpath("trips_parameters.json").read_text(encoding="utf-8")
    assert len(text) < 300_000
    parameters = json.loads(text)
    for name in ("fares", "miles", "seconds", "tips", "extras"):
        # a quantile function needs 320 trips: 34,092 of them cannot make more than a few hundred
        assert len(parameters[name]["rows"]) <= 34_092 / 320 * 2, name


def test_a_guide_draws_its_shares() -> None:
    guide = Guide.of(np.array([[0.5, 0.0, 0.5], [1.0, 0.0, 0.0], [1.0, 2.0, 1.0]]))
    rng = np.random.Generator(np.random.SFC64(1))
    share = [np.bincount(guide.draw(rng, np.full(100_000, cell)), minlength=3) / 1e5 for cell in range(3)]
    assert np.allclose(share, [[0.5, 0, 0.5], [1, 0, 0], [0.25, 0.5, 0.25]], atol=0.01)
    assert share[0][1] == share[1][1] == 0


def test_quantiles_and_steps_look_up_what_numpy_computes() -> None:
    quantiles = Quantiles.of({"rows": [[0, 1, 4], [10, 10, 10]], "cells": [1, 0]})
    rng = np.random.Generator(np.random.SFC64(1))
    assert np.all(quantiles.draw(rng, np.zeros(10, dtype=int)) == 10)
    drawn = quantiles.draw(rng, np.ones(100_000, dtype=int))
    assert np.quantile(drawn, [0.25, 0.5, 0.75]) == pytest.approx([0.5, 1, 2.5], abs=0.05)
    edges = [1.0, 2.5, 7.0]
    values = np.array([0.0, 0.9, 1.0, 2.4, 2.5, 6.9, 7.0, 1000.0])
    assert np.array_equal(Steps.of(edges, 2).of_values(values), np.digitize(values, edges))
