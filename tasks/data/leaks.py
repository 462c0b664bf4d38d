"""Name the columns that tell the target too well to be true, as what is known only afterwards does. They stay features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.sql import list_columns

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

MOST_JUDGED, FEWEST_JUDGED = 3_000, 30
"""Rows by which it is judged what tells the target."""
FOLDS = 3
WRONG, WRONG_ALONE = 0.005, 0.02
"""The share of wrong answers up to which a score is too good to be true, or three rows; and that of a single column."""
RARE = 0.02
"""A class of a smaller share may be a fault of typing, where two others are larger."""
FEWEST_OF_CLASS = 6
"""Rows of a class, and of a text. Fewer may stand apart from the others by chance."""
TREES, DEPTH, BINS = 12, 12, 64
MOST_SUMMED, STEPS = 100, 10
"""Columns of a weighted sum, those that go with the target most, and steps in which it is found."""


def telling_columns(
    table: pa.Table, features: Sequence[str], target: str, *, is_number: bool, holder: str | None = None
) -> tuple[list[str], list[str]]:
    """Return the features each of which alone tells the target, a number if `is_number`, and those that do so together.

    Two cuts must tell nearly always whether the target is one of its classes, or above its median. Without the features that
    do, cross-validated trees or a weighted sum must tell the class. Of each `holder`, whose rows are alike, one row counts.
    """
    import polars as pl

    step = -(-len(table) // MOST_JUDGED) or 1  # a column at a time: of many rows no copy is made
    names = dict.fromkeys((*features, target, *([holder] if holder else [])))
    rows = pl.DataFrame({name: pl.Series(table.column(name)).gather_every(step) for name in names})
    rows = rows.filter(pl.col(target).is_not_null())
    rows = rows.unique(subset=holder, keep="first", maintain_order=True) if holder else rows
    if rows.height < FEWEST_JUDGED:
        return [], []
    numbers = None
    if is_number:
        numbers = rows[target].cast(pl.Float64).to_numpy()
        classes = numbers > np.median(numbers)
        classes = classes if classes.any() else numbers >= np.median(numbers)
    else:
        counts = rows[target].value_counts().filter(pl.col("count") >= RARE * rows.height)
        rows = rows.filter(pl.col(target).is_in(counts[target].to_list())) if len(counts) > 1 else rows
        classes = rows[target].cast(pl.String).rank("dense").to_numpy()
    labels, n_rows = np.unique(classes, return_counts=True)
    if len(classes) < FEWEST_JUDGED or len(labels) < 2:
        return [], []
    values = {name: _numbers(rows[name], classes) for name in features}
    labels = labels[1:] if len(labels) == 2 else labels[n_rows >= FEWEST_OF_CLASS]
    is_class = classes[:, None] == labels
    alone = [name for name in features if _tells_alone(values[name], is_class)]
    rest = {name: values[name] for name in features if name not in alone}
    together = _tell_together(rest, np.unique(classes, return_inverse=True)[1], numbers)
    return (alone, together) if len(together) > 1 else ([*alone, *together], [])


def say_telling(telling: Mapping[str, Sequence[str]], target: str) -> list[str]:
    """Name the columns that tell the target too well to be true, alone or together, as scaling saw it in public rows."""
    remedy = "What is known only afterwards belongs in dataset.drop."
    sentences = []
    if names := telling["alone"]:
        which = f"{names[0]} predicts" if len(names) == 1 else f"each of {list_columns(names)} predicts"
        sentences.append(
            f"The label may be given away. By itself {which} {target} almost perfectly. {remedy}"
        )
    if names := telling["together"]:
        sentences.append(
            f"The label may be given away. Together {list_columns(names)} predict {target} almost perfectly. {remedy}"
        )
    return sentences


def _tells_alone(values: NDArray[np.float64], is_class: NDArray[np.bool_]) -> bool:
    """Return whether two cuts of the values [n] tell one of the classes [n, k] from the others.

    The best two cuts of all rows count: they fit nothing by chance, and of few rows others would lie off by half a gap.
    """
    n_wrong = _least_wrong(values, is_class)
    return any(n <= _most_wrong(is_one, WRONG_ALONE) for n, is_one in zip(n_wrong, is_class.T, strict=True))


def _least_wrong(values: NDArray[np.float64], is_class: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many of the rows two cuts of the values [n] must get wrong of each class [n, k]; missing values come last."""
    order = np.argsort(values)
    values = np.nan_to_num(values[order], nan=np.inf)
    ends = np.flatnonzero(np.append(values[1:] != values[:-1], True))
    sums = np.cumsum(np.where(is_class[order], 1, -1), axis=0)[ends]
    sums = np.vstack([np.zeros_like(sums[:1]), sums])
    within = (sums - np.minimum.accumulate(sums)).max(axis=0)
    outside = (np.maximum.accumulate(sums) - sums).max(axis=0)
    n_class = is_class.sum(axis=0)
    least: NDArray[np.int64] = np.minimum(n_class - within, len(is_class) - n_class - outside)
    return least


def _tell_together(
    values: dict[str, NDArray[np.float64]], classes: NDArray[np.int64], numbers: NDArray[np.float64] | None
) -> list[str]:
    """Return the columns by which trees or a weighted sum, of values or of their logarithms, tell the classes [n], and without
    any of which they would not; none where they do not. `numbers`: what the sum is to be, where classes are halves of them.
    """
    if len(values) < 2:
        return []
    names, matrix = [*values], np.column_stack([*values.values()])
    logs = None if numbers is None else _logarithms(numbers[:, None])[:, 0]
    for answer, view, sums in (
        (_vote, _binned(matrix), None),
        (_weigh, _standardised(matrix), numbers),
        (_weigh, _standardised(_logarithms(matrix)), logs),
    ):
        is_good = partial(_is_too_good, answer, view, classes, sums)
        if is_good(chosen := [*range(len(names))]):
            return [names[place] for place in _needed(chosen, is_good)]
    return []


def _needed(chosen: list[int], is_good: Callable[[list[int]], bool]) -> list[int]:
    """Return those without any of which it `is_good` no more; whole parts are left out first, to try few times."""
    size = len(chosen) // 2
    while size:
        for start in range((len(chosen) - 1) // size * size, -1, -size):
            fewer = chosen[:start] + chosen[start + size :]
            chosen = fewer if fewer and is_good(fewer) else chosen
        size //= 2
    return chosen


def _is_too_good(
    answer: Callable[..., NDArray[np.int64]],
    matrix: NDArray[Any],
    classes: NDArray[np.int64],
    numbers: NDArray[np.float64] | None,
    chosen: list[int],
) -> bool:
    """Return whether chosen columns tell the classes [n] of rows that are not learned from."""
    matrix = matrix[:, chosen]
    most, n_wrong = _most_wrong(classes, WRONG), 0
    for judged in np.array_split(np.random.default_rng(0).permutation(len(classes)), FOLDS):
        learned = np.setdiff1d(np.arange(len(classes)), judged)
        n_wrong += int((answer(matrix, classes, numbers, learned, judged) != classes[judged]).sum())
        if n_wrong > most:
            return False
    return True


def _vote(
    bins: NDArray[np.int64], classes: NDArray[np.int64], _: object, learned: Rows, judged: Rows
) -> NDArray[np.int64]:
    """Return what most of a few trees answer, each of which tries a few columns at each cut, by Gini's index."""
    k, rng = classes.max() + 1, np.random.default_rng(0)
    votes, few = np.zeros((len(classes), k)), int(bins.shape[1] ** 0.5)

    def grow(learned: Rows, judged: Rows, depth: int) -> None:
        counts = np.bincount(classes[learned], minlength=k)
        best, column, cut = np.square(counts).sum() / len(learned) * (1 + 1e-9), -1, 0
        for tried in rng.permutation(bins.shape[1])[: few if depth and len(judged) else 0]:
            cells = np.bincount(bins[learned, tried] * k + classes[learned], minlength=BINS * k)
            sides = np.array([low := cells.reshape(BINS, k).cumsum(axis=0), counts - low])
            pure = (np.square(sides).sum(axis=2) / np.maximum(sides.sum(axis=2), 1)).sum(axis=0)
            if pure.max() > best:
                best, column, cut = pure.max(), tried, pure.argmax()
        if column < 0:
            votes[judged] += counts / len(learned)
            return
        for side in ((low := bins[:, column] <= cut), ~low):
            grow(learned[side[learned]], judged[side[judged]], depth - 1)

    for _ in range(TREES):
        grow(learned, judged, DEPTH)
    answers: NDArray[np.int64] = votes[judged].argmax(axis=1)
    return answers


def _weigh(
    matrix: NDArray[np.float64],
    classes: NDArray[np.int64],
    numbers: NDArray[np.float64] | None,
    learned: Rows,
    judged: Rows,
) -> NDArray[np.int64]:
    """Return the answers of a weighted sum, of each class by logistic regression, or above the middle of numbers."""
    is_high = classes == 1
    wanted = np.where(classes[learned, None] == np.arange(classes.max() + 1), 1.0, -1.0)
    wanted = wanted if numbers is None else numbers[learned, None]
    going = np.abs(matrix[learned].T @ (wanted - wanted.mean(axis=0))).max(axis=1)
    X = np.column_stack([np.ones(len(matrix)), matrix[:, np.argsort(-going)[:MOST_SUMMED]]])
    known, ridge = X[learned], np.eye(X.shape[1]) / 100
    if numbers is not None:
        weights = np.linalg.solve(known.T @ known + ridge / 100, known.T @ wanted)
        cut = (numbers[~is_high].max() + numbers[is_high].min()) / 2
        high: NDArray[np.int64] = ((X[judged] @ weights)[:, 0] > cut).astype(np.int64)
        return high
    weights = np.zeros((X.shape[1], wanted.shape[1]))
    for place, signs in enumerate(wanted.T):
        for _ in range(STEPS):  # of Newton
            chance = 1 / (1 + np.exp(np.clip(signs * (known @ weights[:, place]), -30, 30)))
            slope = known.T @ (signs * chance) - ridge @ weights[:, place]
            curve = known.T @ (known * (chance * (1 - chance))[:, None]) + ridge
            weights[:, place] += np.linalg.solve(curve, slope)
    answers: NDArray[np.int64] = (X[judged] @ weights).argmax(axis=1)
    return answers


def _binned(matrix: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the columns in bins of about as many rows, or of a value each; missing values come last."""
    columns = [np.nan_to_num(column, nan=np.inf) for column in matrix.T]
    edges = [np.unique(np.quantile(c, np.arange(1, BINS) / BINS, method="lower")) for c in columns]
    return np.column_stack([np.searchsorted(e, c) for e, c in zip(edges, columns, strict=True)])


def _logarithms(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithms of columns whose numbers are all above 0, the others as they are."""
    is_above = ~(matrix <= 0).any(axis=0)
    return np.where(is_above, np.log(np.where(is_above, matrix, 1)), matrix)


def _standardised(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return columns of mean 0 and deviation 1 or 0; missing values as their mean."""
    is_there = np.isfinite(matrix)
    n = np.maximum(is_there.sum(axis=0), 1)
    centred = np.where(is_there, matrix - np.where(is_there, matrix, 0).sum(axis=0) / n, 0)
    spread = np.sqrt(np.square(centred).sum(axis=0) / n)
    return centred / np.where(spread > 0, spread, 1)


def _most_wrong(classes: NDArray[Any], share: float) -> float:
    """Return up to how many wrong answers are too few to be true."""
    rarer = len(classes) - np.unique(classes, return_counts=True)[1].max()
    return float(min(max(3, share * len(classes)), rarer / 15))


def _numbers(values: pl.Series, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Return a column as numbers [n], NaN where missing; texts in the order of their commonest class, rare ones as one."""
    import polars as pl

    if values.dtype.is_numeric():
        numbers = values.cast(pl.Float64)
        return numbers.set(~numbers.is_finite().fill_null(True), None).to_numpy().astype(np.float64)
    texts = pl.DataFrame({"text": values.cast(pl.String), "label": classes})
    modes = texts.group_by("text").agg(pl.col("label").mode().min(), pl.len()).sort("label", "len", "text")
    place = {text: float(i) for i, (text, _, n) in enumerate(modes.rows()) if n >= FEWEST_OF_CLASS}
    return np.array([place.get(text, -1.0) for text in texts["text"].to_list()])
