"""Columns that give the label away: one that alone tells it, on rows that it was not fitted on.

That a value is missing may tell it, too: who has no date of cancellation did not cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

PURE = 0.995
"""A feature that alone tells the label this often gives it away."""
EXACT = 0.999
"""The same of a number: the share of its variance that is told."""
BINS = 256
"""Parts of a number's values, of which each may tell another label."""
FEWEST = 20
"""Rows to judge by."""


def deciding_columns(
    rows: pl.DataFrame, features: Sequence[str], target: str, *, is_number: bool
) -> list[str]:
    """Those of the features that alone tell the target: a number where it `is_number`, else a class, in digits or in words."""
    is_judged = np.random.default_rng(0).random(rows.height) < 0.5
    if is_number:
        numbers = rows[target].cast(pl.Float64, strict=False).to_numpy()
        is_stated, tells = np.isfinite(numbers), partial(_tells_number, numbers)
    else:
        classes = _codes(rows[target])
        is_stated, tells = classes >= 0, partial(_tells_class, classes)
    found = []
    for name in features:
        x = _parts(rows[name]) + 1
        judged = is_stated & is_judged
        if judged.sum() >= FEWEST and tells(x, is_stated & ~is_judged, judged):
            found.append(name)
    return found


def missing_for_one_class(rows: pl.DataFrame, features: Sequence[str], target: str) -> dict[str, str]:
    """The features that are missing where the target is one class of several, and nowhere else; and that class."""
    is_judged = np.random.default_rng(0).random(rows.height) < 0.5
    labels = rows[target].cast(pl.String)
    codes, classes = _codes(labels), labels.drop_nulls().unique().sort().to_list()
    is_stated, found = codes >= 0, {}
    for name in features if len(classes) > 2 else ():
        x = rows[name].is_null().to_numpy().astype(np.int64)
        if not x.any() or x.all():
            continue
        likeliest = int(np.bincount(codes[is_stated & (x == 1)], minlength=len(classes)).argmax())
        is_it = (codes == likeliest).astype(np.int64)
        judged = is_stated & is_judged
        if judged.sum() >= FEWEST and _tells_class(is_it, x, is_stated & ~is_judged, judged):
            found[name] = classes[likeliest]
    return found


def _tells_class(
    truth: NDArray[np.int64], x: NDArray[np.int64], learned: NDArray[np.bool_], judged: NDArray[np.bool_]
) -> bool:
    """Whether the commonest class among learned rows of each part is that of nearly all judged rows there."""
    k = int(truth.max()) + 1
    counts = np.bincount(x[learned] * k + truth[learned], minlength=(int(x.max()) + 1) * k).reshape(-1, k)
    answer = np.where(counts.any(axis=1), counts.argmax(axis=1), -1)
    right = float(np.mean(answer[x[judged]] == truth[judged]))
    most = float(np.bincount(truth[learned | judged]).max() / (learned | judged).sum())
    return right >= max(PURE, 1 - (1 - most) / 20)


def _tells_number(
    truth: NDArray[np.float64], x: NDArray[np.int64], learned: NDArray[np.bool_], judged: NDArray[np.bool_]
) -> bool:
    """Whether the mean of learned rows of each part leaves nearly none of the variance of judged rows."""
    n = int(x.max()) + 1
    counts = np.bincount(x[learned], minlength=n)
    sums = np.bincount(x[learned], weights=truth[learned], minlength=n)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), truth[learned | judged].mean())
    spread = float(truth[judged].var())
    return spread > 0 and float(np.mean((truth[judged] - means[x[judged]]) ** 2)) <= (1 - EXACT) * spread


def _parts(values: pl.Series) -> NDArray[np.int64]:
    """Which part each value is in: each text its own, numbers `BINS` of as many values; -1 where it is missing."""
    if not values.dtype.is_numeric():
        return _codes(values)
    numbers = values.cast(pl.Float64, strict=False).to_numpy()
    there = np.sort(numbers[np.isfinite(numbers)])
    places = np.searchsorted(there, numbers) * BINS // max(len(there), 1)
    return np.where(np.isfinite(numbers), places, -1)


def _codes(values: pl.Series) -> NDArray[np.int64]:
    """A number for each different value, -1 where it is missing."""
    return values.rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1
