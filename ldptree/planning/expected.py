"""Expected figures from simulations, each with the interval that one more would lie in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldptree.planning.detection import Findable

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

    def moved(self, by: float) -> Expected:
        """The same elsewhere."""
        return Expected(mean=self.mean + by, low=self.low + by, high=self.high + by)


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The forecast for so many people at one epsilon. Figures are accuracies, or mean squared errors.

    Attributes:
        holders, epsilon: how many people answer, and what each spends.
        cells, report_bytes: of the first question; cells is None where it is about no tree.
        figure: of people who are alike where public coins chose the public rows; of a group that lies apart where a rule did; in
            whichever way they differ where nothing is fitted on public rows.
        kinds: by the way in which people differ.
        public: the same of public rows alone.
        gain: by how much the reports improve the figure of the same people, by the way in which they differ.
        least: the gain with the planted difference that would count, if it were sure.
        smallest: what would be found if the public model is wrong; None where no tree is asked about.
        is_worth_it: whether reports help where the public model is wrong as stated, by more than chance and by no trifle, and
            would show that it is.
    """

    holders: int
    epsilon: float
    cells: int | None
    report_bytes: int
    figure: Expected
    kinds: dict[str, Expected]
    public: dict[str, Expected]
    gain: dict[str, Expected]
    least: float
    smallest: Findable | None
    is_worth_it: bool

    @property
    def is_enough(self) -> bool:
        """Return whether the gain would count, if it were sure."""
        return self.gain["planted"].mean >= self.least


def lowest_mean(figures: Sequence[float], splits: Sequence[int]) -> float:
    """Return the value that the mean of figures [n] exceeds with probability `SURE`, by Student's t of the means of their splits
    [n]: a split has one public model, so that its figures are not independent. Of two splits or more.
    """
    from scipy.stats import t

    means = [
        np.mean([f for f, at in zip(figures, splits, strict=True) if at == split]) for split in set(splits)
    ]
    error = np.std(means, ddof=1) / np.sqrt(len(means))
    return float(np.mean(means) - t.ppf(SURE, len(means) - 1) * error)
