"""Values that may stand for "missing" are proposed with their counts, in numbers and dates of CSV and Parquet alike; a run takes
those that the configuration names, and no others.
"""

from __future__ import annotations

import datetime as dt
import tomllib

import duckdb
import numpy as np
import polars as pl
import pytest
from test_init_columns import DAYS, LABEL, NUMBER, RNG, ROW, looked_at, typed

import ldptree
from flows.command.init import init
from schemas.config import load
from storage.raw.raw_files import inspect

N = len(ROW)


def every(values, *gaps):
    """These values, but a ninth and an eleventh of them stand for missing."""
    kept = list(values)
    kept[::9] = [gaps[0]] * len(kept[::9])
    for row in range(0, N, 11) if len(gaps) > 1 else ():
        kept[row] = gaps[1]
    return kept


COLUMNS = {
    # values, and those that may stand for "missing"
    "co": (every(RNG.gamma(2, 2, N).round(2).tolist(), -200), [-200]),
    "air": (every(RNG.normal(15, 4, N).round(1).tolist(), -99.9), [-99.9]),
    "bmi": (every(RNG.normal(26, 4, N).round(1).tolist(), 0), [0]),
    "pressure": (every(RNG.normal(130, 15, N).round().tolist(), 777, 999), [777, 999]),
    "trust": (every((1 + ROW % 5).tolist(), -1), [-1]),
    "scale": (every((1 + ROW % 7).tolist(), 98, 99), [98, 99]),
    "answer": (every((1 + ROW % 5).tolist(), 7, 9), [7, 9]),
    "refused": (every((ROW % 4).tolist(), 8), [8]),
    "unsure": (every((ROW % 8).tolist(), -9, -8), [-9, -8]),
    "age": (every((18 + ROW % 60).tolist(), -1, 999), [-1, 999]),
    "low": (every((ROW % 60).tolist(), -1), [-1]),
    "until": (every(map(str, DAYS), "9999-12-31"), ["9999-12-31"]),
    "born": (every([f"{day:%d/%m/%Y}" for day in DAYS], "01/01/1900"), ["01/01/1900"]),
    "fare": (every([f"${one}.50" for one in NUMBER], "$9,999.00"), ["$9,999.00"]),
    "old": (20 + ROW % 80, []),
    "cold": (ROW % 30 - 9, []),
    "below": (ROW % 60 - 2, []),
    "agreed": (ROW % 5 - 2, []),
    "cylinders": (RNG.choice([3, 4, 5, 6, 8, 12], N), []),
    "children": (RNG.poisson(1.2, N), []),
    "few": (RNG.choice([1, 2, 3, 5, 7], N), []),
    "rooms": (np.where(ROW % 200, 1 + ROW % 5, 7), []),
    "dose": (RNG.choice([0, 5, 10, 20, 50, 100], N), []),
    "gained": (np.where(RNG.random(N) < 0.8, 0, RNG.gamma(2, 900, N).round()), []),
    "tail": (RNG.standard_cauchy(N).round(1), []),
}
PROPOSED = {name: values for name, (_, values) in COLUMNS.items() if values}


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_repeated_values_far_from_all_others_are_proposed_with_their_counts_and_stay(tmp_path, form):
    table = pl.DataFrame({name: values for name, (values, _) in COLUMNS.items()} | {"y": LABEL}, strict=False)
    table = table if form == "csv" else table.with_columns(pl.col("until").str.to_date())
    path, out = tmp_path / f"rows.{form}", tmp_path / "rows.toml"
    getattr(table, f"write_{form}")(path)
    said = looked_at(path, out)["columns"]
    for name, (values, apart) in COLUMNS.items():
        counts = {str(value): list(values).count(value) for value in apart}
        assert said[name]["perhaps_missing"] == counts, name
    assert load(out).dataset.missing == {}
    (line,) = [line for line in out.read_text().splitlines() if line.startswith("# missing = ")]
    assert tomllib.loads(line.removeprefix("# "))["missing"] == PROPOSED
    assert all(f"#   {name}: {PROPOSED[name][0]} (" in out.read_text() for name in PROPOSED)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_values_that_the_configuration_names_are_missing_and_no_others(tmp_path, form):
    path = tmp_path / f"rows.{form}"
    when = [dt.date(9999, 12, 31) if i % 3 else day for i, day in enumerate(DAYS)]
    table = pl.DataFrame(
        {"air": [-99.9, 15.0, 99.9, 0.0] * (N // 4), "when": when, "kind": ["x", "-99.9"] * (N // 2)}
    )
    table = table.with_columns(pl.col("air").cast(pl.Float32)) if form == "parquet" else table
    getattr(table, f"write_{form}")(path)
    file = inspect(path, missing={"air": (-99.9, 0), "when": ("9999-12-31",)})
    rows = duckdb.sql(file.select(["air", "when", "kind"], ["a", "w", "k"])).pl()
    assert rows["a"].is_null().to_list() == [True, False, False, True] * (N // 4)
    assert rows["w"].is_null().to_list() == [i % 3 > 0 for i in range(N)]
    assert not rows["k"].is_null().any()


def test_a_target_with_such_values_is_said_first_and_runs_without_them_where_the_line_is_taken(
    tmp_path, capsys
):
    path, out = tmp_path / "rows.csv", tmp_path / "rows.toml"
    y = every(RNG.gamma(2, 2, N).round(2).tolist(), -200.0)
    pl.DataFrame({"x": every(NUMBER.tolist(), 999), "y": y}).write_csv(path)
    init(path, target="y", public=None, out=out, force=False, as_json=False)
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("missing?")]
    assert "y, the target: -200 (67 of 600 rows)" in said[0]
    before = typed(tmp_path, out)
    out.write_text(out.read_text().replace("# missing = ", "missing = "))
    after = typed(tmp_path, out)
    assert before["y"].to_list() == y
    assert after["y"].to_list() == [value for value in y if value != -200]
    assert (before["x"] == 999).sum() > 50
    assert not (after["x"] == 999).any()


@pytest.mark.parametrize("derive", [{}, {"half": "air / 2"}])
def test_sql_and_predictions_take_the_same_values_as_missing(tmp_path, derive):
    air = every(RNG.normal(15, 4, N).round(1).tolist(), -99.9)
    table = pl.DataFrame({"air": air, "x": NUMBER, "y": np.where(np.array(air) > 13, "high", "low")})
    run = ldptree.run(
        table,
        target="y",
        public="random 0.5",
        epsilon=4,
        missing={"air": [-99.9]},
        derive=derive,
        work=tmp_path / "work",
    )
    with duckdb.connect() as connection:
        connection.register("rows", table.with_row_index("number").to_arrow())
        got = connection.sql(f"{run.to_sql('rows')} ORDER BY number").pl()
    chances = run.predict(table)["probability of high"]
    np.testing.assert_allclose(got["probability_high"], chances, atol=1e-12)
    assert (
        run.predict(table.head(1))["prediction"].to_list()
        == run.predict(table.head(1).with_columns(air=pl.lit(None, pl.Float64)))["prediction"].to_list()
    )
