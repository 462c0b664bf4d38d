"""Find columns that give the label away. Each of them alone tells it, on rows that it was not fitted on.

That a value is missing may tell it, too: who has no date of cancellation did not cancel. Classes so rare that they may be faults
of typing do not count: a column that tells the others gives the label away.
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
"""A feature that alone explains this share of a number's variance, or of its ranks' variance, gives it away."""
BINS = 256
"""Parts of a number's values, of which each may tell another label."""
RARE = 0.02
"""A class of a smaller share may be a fault of typing, where two others are larger."""
FEWEST = 20
"""Rows to judge by."""
MOSTLY = 0.9
"""Share of the rows with a value in a feature that are of one class. If it is at most half as large elsewhere, the
value may be there because of the label.
"""


def deciding_columns(
    rows: pl.DataFrame, features: Sequence[str], target: str, *, is_number: bool
) -> list[str]:
    """Return the features that alone tell the target, a number if `is_number`, else a class."""
    is_judged = np.random.default_rng(0).random(rows.height) < 0.5
    if is_number:
        numbers = rows[target].cast(pl.Float64, strict=False)
        is_stated = numbers.is_finite().fill_null(False).to_numpy()
        # A few very large values have most of the variance, and hide that all others are told: ranks show it.
        ranks = _codes(numbers).astype(np.float64)
        tells = partial(_tells_number, (numbers.to_numpy(), ranks))
    else:
        classes = _codes(rows[target])
        is_stated, tells = _has_common_class(classes), partial(_tells_class, classes)
    deciding = []
    for name in features:
        x = _parts(rows[name]) + 1
        judged = is_stated & is_judged
        if judged.sum() >= FEWEST and tells(x, is_stated & ~is_judged, judged):
            deciding.append(name)
    return deciding


def telling_gaps(rows: pl.DataFrame, features: Sequence[str], target: str) -> dict[str, tuple[str, str]]:
    """The features that are "missing", "there", "0" or "not 0" where the target is one class of several, and nowhere else; and
    that class.
    """
    is_judged = np.random.default_rng(0).random(rows.height) < 0.5
    labels = rows[target].cast(pl.String)
    codes, classes = _codes(labels), labels.drop_nulls().unique().sort().to_list()
    is_stated = _has_common_class(codes)
    judged = is_stated & is_judged
    telling: dict[str, tuple[str, str]] = {}
    for name in features if len(classes) > 2 and judged.sum() >= FEWEST else ():
        is_missing = rows[name].is_null().to_numpy()
        gaps = {"missing": is_missing, "there": ~is_missing}
        if rows[name].dtype.is_numeric():
            is_zero = (rows[name] == 0).fill_null(False).to_numpy()
            gaps |= {"0": is_zero, "not 0": ~is_zero & ~is_missing}
        for how, is_so in gaps.items():
            if not (is_stated & is_so).any() or is_so.all():
                continue
            likeliest = int(np.bincount(codes[is_stated & is_so]).argmax())
            is_it = (codes == likeliest).astype(np.int64)
            if _tells_class(is_it, is_so.astype(np.int64), is_stated & ~is_judged, judged):
                telling.setdefault(name, (how, classes[likeliest]))
    return telling


def likely_gaps(rows: pl.DataFrame, features: Sequence[str], target: str) -> dict[str, tuple[str, float]]:
    """The features that are there nearly for one class alone, as notes of an exit interview; the class, and its share there."""
    labels, likely = rows[target].cast(pl.String), {}
    for name in features:
        is_there = rows[name].is_not_null() & labels.is_not_null()
        there, elsewhere = labels.filter(is_there), labels.filter(rows[name].is_null()).drop_nulls()
        if min(len(there), len(elsewhere)) < FEWEST:
            continue
        likeliest = there.mode().sort()[0]
        share = float((there == likeliest).mean())
        if share >= MOSTLY and float((elsewhere == likeliest).mean()) <= share / 2:
            likely[name] = likeliest, share
    return likely


def _has_common_class(codes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each row has a class that is not rare; where fewer than two are not, whether it has any."""
    counts = np.bincount(codes[codes >= 0], minlength=1)
    is_common = counts >= RARE * counts.sum()
    return (codes >= 0) & (is_common[codes] if is_common.sum() > 1 else True)


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
    truths: Sequence[NDArray[np.float64]],
    x: NDArray[np.int64],
    learned: NDArray[np.bool_],
    judged: NDArray[np.bool_],
) -> bool:
    """Whether, by one of the truths, the mean of learned rows of each part leaves nearly none of the variance of judged rows.

    A part without learned rows is between its neighbours.
    """
    counts = np.bincount(x[learned], minlength=int(x.max()) + 1)
    is_learned = np.flatnonzero(counts)
    for truth in truths:
        sums = np.bincount(x[learned], weights=truth[learned], minlength=len(counts))
        means = np.interp(np.arange(len(counts)), is_learned, sums[is_learned] / counts[is_learned])
        spread = float(truth[judged].var())
        if spread > 0 and float(np.mean((truth[judged] - means[x[judged]]) ** 2)) <= (1 - EXACT) * spread:
            return True
    return False


def _parts(values: pl.Series) -> NDArray[np.int64]:
    """Return each value's part, which is one text or one of `BINS` stretches of numbers, -1 where it is missing."""
    if not values.dtype.is_numeric():
        return _codes(values)
    numbers = values.cast(pl.Float64, strict=False).to_numpy()
    there = np.sort(numbers[np.isfinite(numbers)])
    places = np.searchsorted(there, numbers) * BINS // max(len(there), 1)
    return np.where(np.isfinite(numbers), places, -1)


def _codes(values: pl.Series) -> NDArray[np.int64]:
    """A number for each different value, -1 where it is missing."""
    return values.rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1
