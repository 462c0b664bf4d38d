"""Figures that simulations lead to expect: the interval that one more lies in, and what their mean is surely above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ENDS = (0.1, 0.9)
"""Of an 80 % interval."""
SURE = 0.95
"""How sure it is that a mean lies above its lower end."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A figure that is expected, and its 80 % interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Expected:
        """Of simulated figures. One more figure like these m lies below their k-th with probability k / (m + 1)."""
        low, high = np.quantile(figures, ENDS, method="weibull")
        return cls(mean=float(np.mean(figures)), low=float(low), high=float(high))


def lowest_mean(figures: Sequence[float], splits: Sequence[int]) -> float:
    """What the mean of figures [n] is above with probability `SURE`, by Student's t of the means of their splits [n]: a split has
    one public model, so that its figures are not independent. Of one split alone, -inf.
    """
    from scipy.stats import t

    means = [np.mean([f for f, at in zip(figures, splits, strict=True) if at == one]) for one in set(splits)]
    if len(means) < 2:
        return -np.inf
    error = np.std(means, ddof=1) / np.sqrt(len(means))
    return float(np.mean(means) - t.ppf(SURE, len(means) - 1) * error)
