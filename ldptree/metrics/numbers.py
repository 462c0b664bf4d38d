"""Metrics of predicted numbers, with errors, R squared, their standard errors, and predicted against true in bins."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MOST_BINS = 12
SMALLEST_BIN = 20
"""Fewest rows of a bin, so that nothing said of it is one person's label."""


@dataclass(frozen=True, kw_only=True)
class NumberScores:
    """Scores of one model on n rows.

    Attributes:
        mse: mean squared error, in the label's unit squared.
        mae: mean absolute error.
        r2: 1 - mse / variance of the labels; None where they are all equal.
    """

    mse: float
    mae: float
    r2: float | None

    def to_json(self) -> dict[str, Any]:
        """Plain numbers."""
        return asdict(self)


def score_numbers(labels: Floats, predictions: Floats) -> NumberScores:
    """Score predictions [n] against labels [n].

    Raises:
        DataError: no row at all, shapes that do not fit, or one of the numbers is not finite.
    """
    if labels.shape != predictions.shape or labels.ndim != 1:
        raise DataError(f"scores: labels {labels.shape} do not fit predictions {predictions.shape}")
    if labels.size == 0:
        raise DataError("scores: there is no row to score; hold back more rows")
    if not (np.isfinite(labels).all() and np.isfinite(predictions).all()):
        raise DataError("scores: a label or a prediction is no finite number")
    error = predictions - labels
    mse, variance = float((error**2).mean()), float(labels.var())
    return NumberScores(
        mse=mse, mae=float(np.abs(error).mean()), r2=1.0 - mse / variance if variance > 0 else None
    )


def mse_interval(labels: Floats, predictions: Floats) -> tuple[float, float]:
    """Return the 95 % interval of the mean squared error over the choice of rows, by its standard error."""
    middle, half = _mean_and_half((predictions - labels) ** 2)
    return (max(middle - half, 0.0), middle + half)


def paired_mse_lead(labels: Floats, ours: Floats, other: Floats) -> tuple[float, float]:
    """Return the 95 % interval of MSE(other) - MSE(ours) on the same rows, [n] each. Above 0, ours is better."""
    middle, half = _mean_and_half((other - labels) ** 2 - (ours - labels) ** 2)
    return (middle - half, middle + half)


def compare_numbers(labels: Floats, answers: Mapping[str, Floats]) -> dict[str, dict[str, Any]]:
    """Score several predictions of the same labels, all [n], with the intervals of errors and of the lead of "ours" over each."""
    return {
        key: score_numbers(labels, answer).to_json()
        | {"interval": mse_interval(labels, answer)}
        | ({} if key == "ours" else {"lead": paired_mse_lead(labels, answers["ours"], answer)})
        for key, answer in answers.items()
    }


def _mean_and_half(values: Floats) -> tuple[float, float]:
    """Return the mean and half of Student's 95 % interval of it. Raises DataError of a single row."""
    from scipy.special import stdtrit

    if values.size < 2:
        raise DataError("scores: there is one row to score; hold back more rows")
    reach = float(stdtrit(values.size - 1, 0.975)) * float(values.std(ddof=1))
    return float(values.mean()), reach / math.sqrt(values.size)


def bins_of(labels: Floats, predictions: Floats) -> list[dict[str, float | int]]:
    """Compare predictions and truths, [n] each, in up to `MOST_BINS` bins of about as many rows, small to large.

    Rows with one prediction share a bin, and every bin has at least `SMALLEST_BIN`; fewer rows than that give none.

    Returns:
        Of each bin `low` and `high`, the ends of its predictions; `n`; `predicted` and `true`, means; and `true_sd`, the
        standard deviation of one label in it.
    """
    n = labels.size
    if n < SMALLEST_BIN:
        return []
    order = np.argsort(predictions, kind="stable")
    ranked = predictions[order]
    wanted = max(SMALLEST_BIN, math.ceil(n / MOST_BINS))
    ends: list[int] = []
    for end in (np.flatnonzero(np.diff(ranked) > 0) + 1).tolist():
        if end - (ends[-1] if ends else 0) >= wanted:
            ends.append(end)
    if ends and n - ends[-1] < wanted:
        ends.pop()  # what is left joins the last bin
    return [_bin(ranked[a:b], labels[order[a:b]]) for a, b in zip([0, *ends], [*ends, n], strict=True)]


def _bin(predictions: Floats, labels: Floats) -> dict[str, float | int]:
    return {
        "low": float(predictions[0]),
        "high": float(predictions[-1]),
        "n": labels.size,
        "predicted": float(predictions.mean()),
        "true": float(labels.mean()),
        "true_sd": float(labels.std()),
    }
