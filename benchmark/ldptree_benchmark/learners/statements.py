"""Check what a fitted estimator says of private people besides its answers, in columns of the results that are no
scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ldptree.models import LEVEL, Model
from ldptree.models.corrected import CorrectedModel
from ldptree.models.tree import TreeModel
from ldptree_benchmark.rows import TEST, LabelledRows

if TYPE_CHECKING:
    from ldptree_benchmark.suite import Column


@dataclass(frozen=True, eq=False)
class Stated:
    """Answers for the held-back rows, [n_test], what else was measured of the model that gave them, and what their error is made
    of: parts that add up to it, and what a paper bounds them by. And the seconds that a part of the model took which was kept.
    """

    answers: NDArray[Any]
    columns: Mapping[Column, float] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)
    seconds_before: float = 0.0


def check_statements(model: Model, rows: LabelledRows) -> dict[Column, float]:
    """Check a tree, a corrected model or a law. `alarm` is 1 if a tree or corrected model says that reports contradict
    the public rows or the public model, else 0. `covered`, of a law with known expected labels, is the share of
    held-back rows in whose cell its interval holds the mean.
    """
    X = rows.of(TEST).X
    if isinstance(model, CorrectedModel):
        is_alarmed, cells = not model.corrections.has_no_effect, model.predict_parts(X).cells
        low, high = (end[:, 0] for end in model.interval(X, LEVEL))
    elif isinstance(model, TreeModel):
        is_alarmed, cells = bool(model.discrepancy.any()), model.nodes(X)
        low, high = (end[cells, -1] for end in model.interval(LEVEL))  # of two classes, class 1
    else:
        return {}
    columns: dict[Column, float] = {"alarm": float(is_alarmed)}
    expected = rows.of(TEST).expected
    if expected is not None:
        place = np.unique(cells, return_inverse=True)[1]
        count = np.bincount(place)
        least, mean, most = (np.bincount(place, ends) / count for ends in (low, expected, high))
        columns["covered"] = float(count @ ((least <= mean) & (mean <= most)) / count.sum())
    return columns
