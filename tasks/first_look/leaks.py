"""Find columns that tell the target too well to be true, on rows that were not learned from: each alone, or all together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

MOST_ROWS = 3_000
FOLDS = 3
FEWEST = 30
"""Rows to judge by."""
WRONG = 0.005
"""The share of wrong answers up to which a score is too good to be true, or two rows."""
RARE = 0.02
"""A class of a smaller share may be a fault of typing, where two others are larger."""
CARRIED = 0.9
"""Share of the importance in a forest of the columns that are named."""


def telling_columns(
    rows: pl.DataFrame, features: Sequence[str], target: str, *, is_number: bool
) -> tuple[list[str], list[str]]:
    """Return the features each of which alone tells the target, a number if `is_number`, and those that do so together.

    A tree of two cuts must tell nearly always whether the target is one of its classes, or above its median. Without the
    features that do, a forest must tell the class.
    """
    rows = rows.filter(pl.col(target).is_not_null())
    rows = rows.gather_every(-(-rows.height // MOST_ROWS) or 1) if rows.height else rows
    if is_number:
        numbers = rows[target].cast(pl.Float64)
        classes = (numbers > numbers.median()).to_numpy()
        classes = classes if classes.any() else (numbers >= numbers.median()).to_numpy()
    else:
        counts = rows[target].value_counts().filter(pl.col("count") >= RARE * rows.height)
        rows = rows.filter(pl.col(target).is_in(counts[target].to_list())) if len(counts) > 1 else rows
        classes = rows[target].cast(pl.String).rank("dense").to_numpy()
    if rows.height < FEWEST or len(np.unique(classes)) < 2:
        return [], []
    values = {name: _numbers(rows[name], classes) for name in features}
    alone = [name for name in features if _tells_alone(values[name], classes)]
    rest = [name for name in features if name not in alone]
    return alone, _tell_together({name: values[name] for name in rest}, classes)


def _tells_alone(values: NDArray[np.float64], classes: NDArray[Any]) -> bool:
    """Return whether two cuts of the values [n] tell one of the classes [n] from the others."""
    from sklearn.tree import DecisionTreeClassifier

    tree, labels = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0), np.unique(classes)
    return any(_is_too_good(tree, values[:, None], classes == label) for label in labels[len(labels) == 2 :])


def _tell_together(values: dict[str, NDArray[np.float64]], classes: NDArray[Any]) -> list[str]:
    """Return the columns that carry a forest which tells the classes [n]; none where none does."""
    from sklearn.ensemble import RandomForestClassifier

    if len(values) < 2:
        return []
    forest, matrix = RandomForestClassifier(20, random_state=0), np.column_stack(list(values.values()))
    if not _is_too_good(forest, matrix, classes):
        return []
    weights = forest.fit(matrix, classes).feature_importances_
    order = np.argsort(-weights)
    n = int(np.searchsorted(np.cumsum(weights[order]), CARRIED)) + 1
    return [list(values)[place] for place in order[:n]]


def _is_too_good(estimator: Any, matrix: NDArray[np.float64], classes: NDArray[Any]) -> bool:
    from sklearn.model_selection import KFold

    rarer = len(classes) - np.unique(classes, return_counts=True)[1].max()
    most, n_wrong = min(max(2, WRONG * len(classes)), rarer / 20), 0
    for learned, judged in KFold(FOLDS, shuffle=True, random_state=0).split(matrix):
        answers = estimator.fit(matrix[learned], classes[learned]).predict(matrix[judged])
        n_wrong += int((answers != classes[judged]).sum())
        if n_wrong > most:
            return False
    return True


def _numbers(values: pl.Series, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Return a column as numbers [n], NaN where missing; texts in the order of their commonest class."""
    if values.dtype.is_numeric():
        numbers = values.cast(pl.Float64)
        return numbers.set(~numbers.is_finite().fill_null(True), None).to_numpy().astype(np.float64)
    texts = pl.DataFrame({"text": values.cast(pl.String), "label": classes})
    modes = texts.group_by("text").agg(pl.col("label").mode().min(), pl.len()).sort("label", "len", "text")
    place = {text: float(index) for index, text in enumerate(modes["text"].to_list())}
    return np.array([place[text] for text in texts["text"].to_list()])
