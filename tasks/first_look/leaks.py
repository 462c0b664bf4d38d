"""Columns that give the label away: one that alone tells it, on rows that it was not fitted on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars as pl

PURE = 0.995
"""A feature that alone tells the label this often gives it away."""
EXACT = 0.999
"""The same of a number: the share of its variance that is told."""
BINS = 256
"""Parts of a number's values, of which each may tell another label."""
FEWEST = 20
"""Rows to judge by."""


def gives_away(values: pl.Series, truth: pl.Series) -> bool:
    """Whether the values alone tell the truth: a class, or a number where it is one."""
    import polars as pl

    is_number = truth.dtype.is_numeric()
    x = values.rank("min") * BINS // len(values) if values.dtype.is_numeric() else values
    both = pl.DataFrame({"x": x.cast(pl.String), "y": truth}).drop_nulls()
    is_learned = pl.Series(np.random.default_rng(0).random(both.height) < 0.5)
    learned, judged = both.filter(is_learned), both.filter(~is_learned)
    if judged.height < FEWEST:
        return False
    best = pl.col("y").mean() if is_number else pl.col("y").mode().first()
    found = judged.join(learned.group_by("x").agg(best.alias("answer")), on="x", how="left")
    if is_number:
        rest = (found["y"] - found["answer"].fill_null(found["y"].mean())).pow(2).mean()
        spread = found["y"].var()
        return bool(rest is not None and spread and rest <= (1 - EXACT) * spread)  # type: ignore[operator]
    right = (found["answer"] == found["y"]).fill_null(value=False).mean()
    most = both["y"].value_counts(sort=True)["count"][0] / both.height
    return bool(right >= max(PURE, 1 - (1 - most) / 20))
