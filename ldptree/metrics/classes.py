"""Metrics of predicted classes, with accuracy and its intervals, balanced accuracy, AUC, log loss and the confusion table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import DataError

SMALLEST_PROBABILITY = 1e-15


@dataclass(frozen=True, eq=False, kw_only=True)
class Scores:
    """Scores of one set of predictions.

    Attributes:
        n: rows scored.
        n_outside: rows whose label is none of the classes; they count as missed in every score, as one more class to which
            each model gives no chance.
        accuracy: share of rows predicted rightly.
        balanced_accuracy: mean over the classes that occur of the share predicted rightly, of such rows 0.
        auc: area under the receiver operating curve of the positive class; for more classes the mean over
            those that occur of each class against the rest, where such rows are one with area 1/2. None where only one class
            occurs.
        log_loss: mean of -ln(probability of the true class), probabilities no smaller than 1e-15, in nats.
        confusion: int64 [C, C], rows true class, columns predicted class.
    """

    n: int
    n_outside: int
    accuracy: float
    balanced_accuracy: float
    auc: float | None
    log_loss: float
    confusion: NDArray[np.int64]

    def to_json(self) -> dict[str, Any]:
        """Plain numbers and lists."""
        return {
            "n": self.n,
            "n_outside": self.n_outside,
            "accuracy": self.accuracy,
            "balanced_accuracy": self.balanced_accuracy,
            "auc": self.auc,
            "log_loss": self.log_loss,
            "confusion": self.confusion.tolist(),
        }


def score(
    labels: NDArray[np.integer],
    probabilities: NDArray[np.float64],
    predictions: NDArray[np.integer] | None = None,
    *,
    positive: int = 1,
) -> Scores:
    """Score `probabilities` [n, C] against `labels` [n].

    Args:
        labels: class indices; -1 = none of the classes.
        probabilities: a row sums to 1.
        predictions: [n] predicted class indices; left out, the most probable class (of equals the first).
        positive: the class whose AUC is wanted where there are two.

    Raises:
        DataError: no row at all, or none with a label among the classes, or shapes that do not fit.
    """
    n, n_classes = probabilities.shape
    if labels.shape != (n,) or labels.max(initial=-1) >= n_classes or labels.min(initial=0) < -1:
        raise DataError(f"scores: labels {labels.shape} do not fit probabilities {probabilities.shape}")
    predicted = probabilities.argmax(axis=1) if predictions is None else predictions
    is_known = labels >= 0
    if not is_known.any():
        raise DataError("scores: no row to score has a label among the classes; hold back more rows")
    n_outside = int(n - is_known.sum())
    table = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(table, (labels[is_known], predicted[is_known]), 1)
    occurs = table.sum(axis=1) > 0
    right = np.diag(table)[occurs] / table.sum(axis=1)[occurs]
    own = np.where(is_known, probabilities[np.arange(n), labels], 0.0)
    areas = [
        area
        for k in ([positive] if n_classes == 2 else np.flatnonzero(occurs))
        if (area := auc(labels == k, probabilities[:, k])) is not None
    ]
    if n_outside:
        right, areas = np.append(right, 0.0), [*areas, 0.5]
    return Scores(
        n=n,
        n_outside=n_outside,
        accuracy=float(np.trace(table) / n),
        balanced_accuracy=float(right.mean()),
        auc=float(np.mean(areas)) if areas else None,
        log_loss=float(-np.log(np.maximum(own, SMALLEST_PROBABILITY)).mean()),
        confusion=table,
    )


def auc(is_positive: NDArray[np.bool_], values: NDArray[np.float64]) -> float | None:
    """Probability that a positive row has the larger value than a negative one, ties counted half.

    None where there is no positive or no negative row.
    """
    n_positive = int(is_positive.sum())
    n_negative = is_positive.size - n_positive
    if n_positive == 0 or n_negative == 0:
        return None
    _, place, sizes = np.unique(values, return_inverse=True, return_counts=True)
    middle_rank = np.cumsum(sizes) - (sizes - 1) / 2.0
    ranks = float(middle_rank[place[is_positive]].sum())
    return (ranks - n_positive * (n_positive + 1) / 2.0) / (n_positive * n_negative)


Z_95 = 1.959963984540054


def accuracy_interval(n_right: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of an accuracy of n_right in n rows (Wilson 1927). n = 0 gives (0, 1)."""
    if n == 0:
        return (0.0, 1.0)
    share, z2 = n_right / n, Z_95**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    # Rounding must not push an end past the share itself, where every row or none is right.
    return (max(min(middle - half, share), 0.0), min(max(middle + half, share), 1.0))


def paired_lead(ours: NDArray[np.bool_], other: NDArray[np.bool_]) -> tuple[float, float]:
    """95 % score interval of accuracy(ours) - accuracy(other) where both answered the same rows, bool [n] each.

    Tango's (Statistics in Medicine 17:891, 1998), which is to pairs what Wilson's is to a share: few rows leave it wide, also
    where both models are right on the same ones. n = 0 gives (-1, 1).
    """
    ahead, behind, n = int((ours & ~other).sum()), int((other & ~ours).sum()), ours.size
    return (_least_lead(ahead, behind, n), -_least_lead(behind, ahead, n))


def _least_lead(ahead: int, behind: int, n: int) -> float:
    """Return the least difference that the score test at 95 % leaves, where one model alone is right on so many of n rows."""

    def score_of(lead: float) -> float:
        # the chance of `behind` where the difference is this, by maximum likelihood
        b, c = (2 * n - ahead + behind) * lead - ahead - behind, behind * lead * (1 - lead)
        chance = (math.sqrt(max(b * b + 8 * n * c, 0.0)) - b) / (4 * n)
        return (ahead - behind - n * lead) / math.sqrt(n * (2 * chance + lead * (1 - lead)))

    low, high = -1.0, (ahead - behind) / n if n else -1.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if score_of(middle) > Z_95 else (low, middle)
    return low


def compare_shares(
    labels: NDArray[np.int64], answers: Mapping[str, NDArray[np.float64]], *, positive: int = 1
) -> dict[str, dict[str, Any]]:
    """Score several answers to the same rows, each with the interval of its accuracy and of the lead of "ours" over it.

    Args:
        labels: [n] class indices.
        answers: class shares [n, C] of each.
        positive: index of the positive class.
    """
    is_right = {key: np.asarray(shares.argmax(axis=1) == labels) for key, shares in answers.items()}
    return {
        key: score(labels, shares, positive=positive).to_json()
        | {"interval": accuracy_interval(int(is_right[key].sum()), labels.size)}
        | ({} if key == "ours" else {"lead": paired_lead(is_right["ours"], is_right[key])})
        for key, shares in answers.items()
    }
