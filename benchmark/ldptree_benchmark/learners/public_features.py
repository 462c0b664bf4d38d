"""Learners that know which features each person shows, and what the error of HistOfTree is made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ldptree_benchmark.learners.answers import Answers, Trial, known_ranges
from ldptree_benchmark.learners.statements import Stated
from ldptree_benchmark.rows import PRIVATE, TEST, LabelledRows

if TYPE_CHECKING:
    from ldptree.families.histoftree import Shape

Floats = NDArray[np.float64]


def masked_answer(name: str, other: str = "") -> Callable[[Trial], Answers]:
    """Return the answers of an estimator of ours, given private rows and masks. `other` is for two classes."""

    def answer(trial: Trial) -> Answers:
        model = fit_masked(other if other and trial.rows.n_classes else name, trial)
        return np.asarray(model.predict(trial.rows.of(TEST).X))

    return answer


def fit_masked(name: str, trial: Trial) -> Any:
    """The fitted estimator."""
    from ldptree import estimators

    private = trial.rows.of(PRIVATE)
    model = getattr(estimators, name)(
        trial.epsilon, random_state=trial.seed, **{**known_ranges(trial.rows), **trial.settings}
    )
    return model.fit(private.X, private.y, protects=private.protects)


def explain_histoftree(trial: Trial) -> Stated:
    """HistOfTree's answers with the parts of their error.

    Each part is what one step away from the mean label of each cell adds to the mean squared error: the mean itself (of
    held-back labels), that of a sample, of labels cut to their range, of noisy labels, and of noisy cells. They add up to the
    score, exactly. Beside them are the paper's bounds of the first, the second and the last two, with constants of 1.
    """
    model, private, test = (
        fit_masked("HistOfTreeRegressor", trial),
        trial.rows.of(PRIVATE),
        trial.rows.of(TEST),
    )
    released = model.model_
    cells, cells_test = (
        released.partition.apply(released.encoding.encode(rows.X).astype(np.float64))
        for rows in (private, test)
    )
    noisy = model.answers_[0].question.decode(model.answers_[0].reports)
    n_cells = released.partition.n_cells
    steps = {
        "cells": _average(cells_test, np.asarray(test.y), n_cells),
        "sample": _average(cells, np.asarray(private.y), n_cells),
        "labels cut": _average(cells, np.clip(private.y, released.low, released.high), n_cells),
        "noise of labels": _average(cells, noisy, n_cells),
        "noise of cells": released.value,
    }
    parts: dict[str, float] = {}
    before = 0.0
    for name, values in steps.items():
        error = float(np.mean((values[cells_test] - test.y) ** 2))
        parts[name], before = error - before, error
    bounds = bound_parts(private, model.shape_, trial.epsilon or 0.0)
    return Stated(model.predict(test.X), parts={**parts, **bounds})


def bound_parts(rows: LabelledRows, shape: Shape, epsilon: float) -> dict[str, float]:
    """Return Lemmas B.3, B.2 and B.1 for alpha and constants of 1, and their sum, by which the paper sets s, t, p."""
    assert rows.protects is not None
    n, d = rows.X.shape
    s, t, p = shape.n_binned, shape.bins, shape.depth
    by_protection = np.argsort(-rows.protects.sum(axis=0), kind="stable")
    outside = rows.protects[:, by_protection[s:]].sum(axis=1)
    edges = 2.0 ** (-p / (d - s)) if s < d else 0.0
    cells, few = float(t**s * 2**p), math.log(n) / n
    bounds = {
        "B.3": edges**2 + (t**-2.0 if s else 0.0),
        "B.2": cells * few,
        "B.1": t**s
        * cells
        * few
        / epsilon**2
        * float(np.mean(edges ** -outside.astype(float) if s < d else 1.0)),
    }
    return {**bounds, "B.1 to B.3": sum(bounds.values())}


def _average(cells: NDArray[np.int64], labels: Floats, n_cells: int) -> Floats:
    """The mean label of each cell, float64 [cells]; of an empty one that of all."""
    n, total = np.bincount(cells, minlength=n_cells), np.bincount(cells, labels, minlength=n_cells)
    return np.asarray(np.divide(total, n, out=np.full(n_cells, float(labels.mean())), where=n > 0))
