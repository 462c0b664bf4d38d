"""Compare real and simulated trips side by side, and print a result of the docs.

    LDPTREE_DATA=DIR python benchmark/timed/compare_trips.py > docs/measured/suites/compare-trips.toml

Both in the columns of the DeID2 challenge; the simulated ones are those of a Tuesday and a Friday, as the real ones are. How far
trees fall short on either is the suite simulated-trips.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import polars as pl

from ldptree.simulate.trips import COLUMNS, blocks
from ldptree_benchmark.results.measured import Measured

FILES = ("taxi/Taxi_Trips_2022_03.parquet", "taxi/Taxi_Trips_2022_04.parquet")
SMALLEST = 100
"""Companies of fewer trips are dropped, as the challenge did."""
KINDS = {"Unknown": -1, "Cash": 0, "Credit Card": 1, "Mobile": 2, "Prcard": 3, "No Charge": 5, "Dispute": 6}
AREAS = {-1: "not known", 8: "8 Near North Side", 32: "32 Loop", 76: "76 O'Hare", 28: "28 Near West Side",
         6: "6 Lake View", 33: "33 Near South Side", 7: "7 Lincoln Park", 56: "56 Garfield Ridge (Midway)"}  # fmt: skip
FARES = (0, 5, 10, 15, 20, 30, 40, 50, 60, 80, 10_000)
SIMULATED = 1_000_000
Rows = list[list[str]]


def read_real_trips(folder: Path) -> tuple[pl.DataFrame, list[str]]:
    """Return the challenge's real trips in whole dollars and miles, -1 where missing, and companies' names."""
    trips = pl.concat([pl.read_parquet(folder / name) for name in FILES], how="vertical_relaxed")
    trips = trips.filter(pl.len().over("company") >= SMALLEST)
    names = sorted(trips["company"].unique().to_list())
    areas = {end: pl.col(end).cast(pl.Int64).fill_null(-1) for end in COLUMNS if end.endswith("_area")}
    whole = {
        name: pl.col(name).round().fill_null(-1) for name in ("fare", "tips", "trip_seconds", "trip_miles")
    }
    return trips.select(
        company_id=pl.col("company").replace_strict({name: i for i, name in enumerate(names)}),
        payment_type=pl.col("payment_type").replace_strict(KINDS),
        trip_day_of_week=pl.col("trip_start_timestamp").dt.weekday() - 1,
        **areas,
        **whole,
    ), names


def percent(share: float | None) -> str:
    """A share, or nothing."""
    return "" if share is None else f"{100 * share:.1f}"


def rate(trips: pl.DataFrame, what: pl.Expr) -> str:
    """How often it is so, where there are 20 trips and more."""
    return percent(trips.select(what.mean()).item()) if trips.height >= 20 else ""


def tabulate_payments(both: list[pl.DataFrame]) -> Rows:
    """Shares, fares, miles and tips by how trips are paid."""
    figures = ("share %", "median fare", "mean miles", "median minutes", "no miles %", "tip > 0 %")
    rows = [["payment", *(f"{figure}, {which}" for figure in figures for which in ("real", "sim."))]]
    for name, code in KINDS.items():
        parts = [trips.filter(pl.col("payment_type") == code) for trips in both]
        if parts[0].height < SMALLEST:
            continue
        pairs = [
            [percent(part.height / trips.height) for part, trips in zip(parts, both, strict=True)],
            [f"{part['fare'].median():.0f}" for part in parts],
            [f"{part['trip_miles'].mean():.1f}" for part in parts],
            [f"{part.select(pl.col('trip_seconds').median() / 60).item():.1f}" for part in parts],
            [rate(part, pl.col("trip_miles") == 0) for part in parts],
            [rate(part, pl.col("tips") > 0) for part in parts],
        ]
        rows.append([f"{code} {name}", *(cell for pair in pairs for cell in pair)])
    return rows


def tabulate_companies(both: list[pl.DataFrame], names: list[str]) -> Rows:
    """Size, card share, fares and airport trips of each company, the largest first."""
    figures = ("trips %", "card of card + cash %", "median fare", "no miles %", "from O'Hare %")
    rows = [["company", *(f"{figure}, {which}" for figure in figures for which in ("real", "sim."))]]
    sizes = both[0].group_by("company_id").len().sort("len", "company_id", descending=[True, False])
    for company in sizes["company_id"]:
        parts = [trips.filter(pl.col("company_id") == company) for trips in both]
        street = [part.filter(pl.col("payment_type").is_in([0, 1])) for part in parts]
        pairs = [
            [percent(part.height / trips.height) for part, trips in zip(parts, both, strict=True)],
            [rate(part, pl.col("payment_type") == 1) for part in street],
            [f"{part['fare'].median():.0f}" for part in parts],
            [rate(part, pl.col("trip_miles") == 0) for part in parts],
            [rate(part, pl.col("pickup_community_area") == 76) for part in parts],
        ]
        rows.append([f"{company} {names[company]}", *(cell for pair in pairs for cell in pair)])
    return rows


def tabulate_areas(both: list[pl.DataFrame]) -> Rows:
    """How many trips begin and end in the busiest areas."""
    ends = ("pickup_community_area", "dropoff_community_area")
    heads = [f"{end[:-15]} %, {which}" for end in ends for which in ("real", "sim.")]
    lines = [
        [name, *(rate(trips, pl.col(end) == area) for end in ends for trips in both)]
        for area, name in AREAS.items()
    ]
    return [["area", *heads], *lines]


def tabulate_fares(both: list[pl.DataFrame]) -> Rows:
    """Card against cash by fare, of all trips and of three companies."""
    companies = (None, 6, 12, 14)
    figures = ["trips %", "card %", *(f"card %, company {company}" for company in companies[1:])]
    rows = [["fare, dollars", *(f"{figure}, {which}" for figure in figures for which in ("real", "sim."))]]
    street = [trips.filter(pl.col("payment_type").is_in([0, 1])) for trips in both]
    for low, high in itertools.pairwise(FARES):
        parts = [trips.filter(pl.col("fare").is_between(low, high, closed="left")) for trips in street]
        cells = [percent(part.height / trips.height) for part, trips in zip(parts, street, strict=True)]
        for company in companies:
            chosen = (
                parts if company is None else [part.filter(pl.col("company_id") == company) for part in parts]
            )
            cells += [rate(part, pl.col("payment_type") == 1) for part in chosen]
        rows.append([f"{low} and more" if high == FARES[-1] else f"{low} to {high - 1}", *cells])
    return rows


def main() -> None:
    """Print it."""
    real, names = read_real_trips(Path(os.environ["LDPTREE_DATA"]))
    simulated = pl.concat(
        [pl.DataFrame({name: block[name] for name in COLUMNS}) for block in blocks(SIMULATED, seed=7)]
    )
    days = real["trip_day_of_week"].unique().to_list()
    both = [real, simulated.filter(pl.col("trip_day_of_week").is_in(days))]
    tables = {
        "How trips are paid": tabulate_payments(both),
        "Companies": tabulate_companies(both, names),
        "Areas, % of trips": tabulate_areas(both),
        "Card against cash by fare": tabulate_fares(both),
    }
    note = f"Simulated (sim.) are the Tuesdays and Fridays of {SIMULATED:,} trips, seed 7. Cells of fewer than 20 are empty."
    print(
        Measured(
            title="Real and simulated, side by side",
            command="LDPTREE_DATA=DIR python benchmark/timed/compare_trips.py > docs/measured/suites/compare-trips.toml",
            note=note,
            tables=list(tables.items()),
        ),
        end="",
    )


if __name__ == "__main__":
    main()
