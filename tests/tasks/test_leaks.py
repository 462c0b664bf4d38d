"""Columns that tell the target too well to be true are named by a run, from public rows alone, and stay features."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import ldptree
from tasks.data.leaks import telling_columns

N = 300
RNG = np.random.default_rng(4)
A, B = RNG.normal(size=(2, N)).round(3)
ITEMS = RNG.integers(0, 4, (N, 5))
TOTALS = {
    "a sum of two": ({"a": A, "b": B}, A + B, True),
    "a score of items": ({f"q{i}": column for i, column in enumerate(ITEMS.T)}, ITEMS.sum(axis=1), True),
    "a sum of unequal parts": ({"net": 5 * A, "tax": B}, 5 * A + B, True),
    "a product of two": ({"a": np.exp(A), "b": np.exp(B)}, np.exp(A + B), True),
    "the larger of two": ({"a": A, "b": B}, np.where(A > B, "a", "b"), False),
}


@pytest.mark.parametrize("name", TOTALS)
def test_a_target_that_is_made_of_columns_names_these_and_no_other(name):
    parts, target, is_number = TOTALS[name]
    rows = pl.DataFrame({"x": RNG.normal(size=N), **parts, "z": RNG.normal(size=N), "y": target})
    alone, together = telling_columns(rows.to_arrow(), ["x", *parts, "z"], "y", is_number=is_number)
    assert (alone, sorted(together)) == ([], sorted(parts))


@pytest.mark.parametrize(("share", "is_told"), [(0.01, True), (0.05, False)])
def test_a_copy_of_the_label_with_a_few_faults_is_named(share, is_told):
    rng = np.random.default_rng(6)
    y = rng.random(3000) < 0.5
    rows = pl.DataFrame({"copy": y ^ (rng.random(3000) < share), "x": rng.normal(size=3000), "y": y})
    told = telling_columns(rows.to_arrow(), ["copy", "x"], "y", is_number=False)
    assert told == ((["copy"], []) if is_told else ([], []))


@pytest.mark.parametrize(("n", "n_classes"), [(60, 2), (60, 15), (300, 2)])
def test_a_thousand_columns_tell_nothing_by_chance(n, n_classes):
    rng = np.random.default_rng(0)
    rows = pl.DataFrame({str(i): rng.normal(size=n) for i in range(1000)})
    rows = rows.with_columns(
        town=pl.Series(rng.integers(0, n // 2, n)).cast(pl.String),
        y=pl.Series(rng.integers(0, n_classes, n)).cast(pl.String),
    )
    assert telling_columns(rows.to_arrow(), rows.columns[:-1], "y", is_number=False) == ([], [])


@pytest.mark.parametrize("n_holders", [12, 300])
def test_rows_of_a_few_holders_are_as_many_as_there_are_holders(n_holders):
    holder = np.repeat(np.arange(n_holders), 20)
    height = np.sort(RNG.normal(size=n_holders))
    rows = pl.DataFrame(
        {"who": holder, "height": height[holder], "y": np.where(height > 0, "a", "b")[holder]}
    )
    told = telling_columns(rows.to_arrow(), ["height"], "y", is_number=False, holder="who")
    assert told == ((["height"], []) if n_holders == 300 else ([], []))


@pytest.mark.parametrize("where", ["public", "private"])
def test_a_run_names_a_column_that_gives_its_label_away_in_public_rows_and_learns_from_it(where):
    rng = np.random.default_rng(5)
    site, works = rng.choice(["public", "private"], N), rng.random(N) < 0.5
    hours = np.where(works | (site != where) & (rng.random(N) < 0.7), np.exp(rng.normal(5, 2, N)) // 1 + 1, 0)
    frame = pl.DataFrame({"site": site, "age": rng.integers(18, 80, N), "hours": hours, "works": works * 1})
    run = ldptree.run(frame, target="works", public="site = 'public'", evaluation={"redraws": 0})
    said = (
        "The label may be given away. By itself hours predicts works almost perfectly. "
        "What is known only afterwards belongs in dataset.drop."
    )
    assert (said in run.summary["warnings"]) is (where == "public")
    assert ("By itself hours predicts works" in run.page.read_text()) is (where == "public")
    assert {"age", "hours"} == {*run.model.encoding.columns}
