"""How much of the label's variance the public features explain, from reports alone, and how unsure that is.

With a prediction f(x) of the label y, 2 cov(y, f) - var(f) is what the mean squared error falls by against a constant. Reports
are unbiased, so that this is a mean over reports that f has not seen: f is fitted to the other folds, and no noise of its own
counts as variance explained. The label's variance follows from the mean square of reports, which is known for each number that
is sent. Labels are those that reports are about: cut to c +- R.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.families.public_features.label_law import square
from ldptree.families.public_features.transcript import labels_asked, of_label
from ldptree.protocol.question import PublicView, Transcript

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.mechanisms.numbers import NumberMechanism

    Floats = NDArray[np.float64]
    Fit = Callable[[Floats, Floats], Callable[[Floats], Floats]]

FOLDS = 3
_BAND = 2.0
"""Standard errors to either side: 95 %."""
# a share is told where it is known to so much, and a variance where its error is at most this part of it
_TELLING, _KNOWN = 0.6, 0.25


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Attributes:
    value: the estimate.
    error: its standard error.
    """

    value: float
    error: float

    def over(self, whole: Estimate) -> Estimate:
        """Its share of the whole."""
        value = self.value / whole.value
        return Estimate(value=value, error=math.hypot(self.error, value * whole.error) / whole.value)

    @property
    def is_telling(self) -> bool:
        """Whether a share is known well enough to be worth telling."""
        return self.high - self.low <= _TELLING

    @property
    def low(self) -> float:
        """The lower end of the band of a share."""
        return min(max(self.value - _BAND * self.error, 0.0), 1.0)

    @property
    def high(self) -> float:
        """Its upper end."""
        return min(max(self.value + _BAND * self.error, 0.0), 1.0)


@dataclass(frozen=True, kw_only=True)
class Explained:
    """Attributes:
    part: of the label's variance, what public features explain.
    whole: all of it; None where reports do not tell.
    cut: what labels were cut to; None: they were not.
    """

    part: Estimate
    whole: Estimate | None
    cut: tuple[float, float] | None = None


def of_classes(reports: Floats) -> Estimate | None:
    """The variance of labels -1 and 1, from unbiased reports of them; None where they show none."""
    mean, noise = float(reports.mean()), float(reports.var()) / reports.size
    value = max(1 - mean**2 + noise, noise)
    return None if value <= 0 else Estimate(value=value, error=2 * abs(mean) * math.sqrt(noise))


def label_variance(reports: Floats, mechanism: NumberMechanism, half: float) -> Estimate | None:
    """Of the labels that these reports are about; None where they do not tell it.

    Args:
        reports: float64 [m], decoded, less the middle of what was sent.
        mechanism: of the reports.
        half: what the number 1 stands for.
    """
    numbers = reports / half
    flat, bent = square(mechanism)
    if bent <= 0 or numbers.size < FOLDS:
        return None
    squares = (numbers**2 - flat) / bent
    error = float(squares.std(ddof=1)) / math.sqrt(numbers.size)
    mean = float(numbers.mean())
    # the square of a noisy mean is too large by its variance
    value = float(squares.mean()) - mean**2 + float(numbers.var(ddof=1)) / numbers.size
    if value <= 0 or error > _KNOWN * value:
        return None
    return Estimate(value=value * half**2, error=error * half**2)


def explained(shown: PublicView, answers: Transcript, fit: Fit, *, is_binary: bool) -> Explained:
    """What public features explain, by the answers to the label's question; `fit` as in `variance_explained`."""
    rows, reports = of_label(shown, answers)
    question = labels_asked(answers)[0]
    part, middle, half = variance_explained(rows, reports, fit), question.surface.intercept, question.half
    if is_binary:
        return Explained(part=part, whole=of_classes(reports))
    whole = label_variance(reports - middle, question.mechanism, half)
    return Explained(part=part, whole=whole, cut=(middle - half, middle + half))


def variance_explained(rows: Floats, reports: Floats, fit: Fit) -> Estimate:
    """What a fit to all folds but one explains of that one, over all folds.

    Args:
        rows: float64 [m, d], in an order that says nothing.
        reports: float64 [m], unbiased.
        fit: makes a function of rows from rows and reports.

    Returns:
        With an infinite error where a fold would be of one report: nothing is known.
    """
    if reports.size < 2 * FOLDS:
        return Estimate(value=0.0, error=math.inf)
    fold = np.arange(reports.size) % FOLDS
    gains = np.zeros(reports.size)
    for k in range(FOLDS):
        held = fold == k
        found = fit(rows[~held], reports[~held])(rows[held])
        away = found - found.mean()
        gains[held] = 2 * away * (reports[held] - reports[held].mean()) - away**2
    return Estimate(value=float(gains.mean()), error=float(gains.std(ddof=1)) / math.sqrt(gains.size))
