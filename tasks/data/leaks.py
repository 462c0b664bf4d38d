"""Name the columns that tell the target too well to be true, as what is known only afterwards does. They stay features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.sql import list_columns

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from numpy.typing import NDArray

MOST_JUDGED, FEWEST_JUDGED = 3_000, 30
"""Rows by which it is judged what tells the target."""
FOLDS = 3
WRONG = 0.005
"""The share of wrong answers up to which a score is too good to be true, or two rows."""
RARE = 0.02
"""A class of a smaller share may be a fault of typing, where two others are larger."""
FEWEST_OF_CLASS = 6
"""Rows of a class, and of a text. Fewer may stand apart from the others by chance."""
CARRIED = 0.9
"""Share of the weight in a forest or a sum that the columns have which are named."""
MOST_SUMMED = 100
"""Columns of a weighted sum, those that go with the target most."""


def telling_columns(
    table: pa.Table, features: Sequence[str], target: str, *, is_number: bool, holder: str | None = None
) -> tuple[list[str], list[str]]:
    """Return the features each of which alone tells the target, a number if `is_number`, and those that do so together.

    Two cuts must tell nearly always whether the target is one of its classes, or above its median. Without the features that
    do, a cross-validated forest or a weighted sum must tell the class. Of each `holder`, whose rows are alike, one row counts.
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
    rest = [name for name in features if name not in alone]
    return alone, _tell_together({name: values[name] for name in rest}, classes, numbers)


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
    return any(n <= _most_wrong(is_one) for n, is_one in zip(n_wrong, is_class.T, strict=True))


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
    values: dict[str, NDArray[np.float64]], classes: NDArray[Any], numbers: NDArray[np.float64] | None
) -> list[str]:
    """Return the columns that carry a forest or a weighted sum which tells the classes [n]; none where neither does.

    `numbers`: what the sum is to be, where the classes are those above the median and below.
    """
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.feature_selection import SelectKBest, f_classif, f_regression
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.pipeline import make_pipeline

    if len(values) < 2:
        return []
    names, matrix = np.array([*values]), np.column_stack(list(values.values()))
    forest = RandomForestClassifier(20, random_state=0)
    if _is_too_good(forest, matrix, classes):
        return _carriers(names, forest.fit(matrix, classes).feature_importances_)
    matrix = _standardised(matrix)
    names, matrix = names[matrix.any(axis=0)], matrix[:, matrix.any(axis=0)]
    if len(names) < 2:
        return []
    line: Any = LogisticRegression(C=100, tol=1e-3, max_iter=1000) if numbers is None else LinearRegression()
    some = SelectKBest(f_classif if numbers is None else f_regression, k=min(MOST_SUMMED, len(names)))
    if not _is_too_good(make_pipeline(some, line), matrix, classes, numbers):
        return []
    wanted = classes if numbers is None else numbers
    line.fit(some.fit_transform(matrix, wanted), wanted)
    return _carriers(some.get_feature_names_out(names), np.square(np.atleast_2d(line.coef_)).sum(axis=0))


def _carriers(names: NDArray[np.str_], weights: NDArray[np.float64]) -> list[str]:
    """Return the heaviest names [n], those that have most of the weight together."""
    order = np.argsort(-weights)
    n = int(np.searchsorted(np.cumsum(weights[order]), CARRIED * weights.sum())) + 1
    return [str(name) for name in names[order][:n]]


def _standardised(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return columns of mean 0 and deviation 1 or 0; missing values as their mean."""
    is_there = np.isfinite(matrix)
    n = np.maximum(is_there.sum(axis=0), 1)
    centred = np.where(is_there, matrix - np.where(is_there, matrix, 0).sum(axis=0) / n, 0)
    spread = np.sqrt(np.square(centred).sum(axis=0) / n)
    return centred / np.where(spread > 0, spread, 1)


def _is_too_good(
    estimator: Any,
    matrix: NDArray[np.float64],
    classes: NDArray[Any],
    numbers: NDArray[np.float64] | None = None,
) -> bool:
    """Return whether it tells the classes [n] of rows that it has not seen; of `numbers` it tells those first."""
    from sklearn.model_selection import KFold

    most, n_wrong = _most_wrong(classes), 0
    learned_of = classes if numbers is None else numbers
    cut = 0.0 if numbers is None else (numbers[~classes].max() + numbers[classes].min()) / 2
    for learned, judged in KFold(FOLDS, shuffle=True, random_state=0).split(matrix):
        answers = estimator.fit(matrix[learned], learned_of[learned]).predict(matrix[judged])
        answers = answers if numbers is None else answers > cut
        n_wrong += int((answers != classes[judged]).sum())
        if n_wrong > most:
            return False
    return True


def _most_wrong(classes: NDArray[Any]) -> float:
    """Return up to how many wrong answers are too few to be true."""
    rarer = len(classes) - np.unique(classes, return_counts=True)[1].max()
    return float(min(max(2, WRONG * len(classes)), rarer / 20))


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
