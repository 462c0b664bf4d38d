"""What the answers to a contrast say: the coefficient of an effect, shrunk by its noise, and how far that is from nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ldptree.families.public_features.surface import Surface
from ldptree.families.public_features.surface_fit import fitted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# a coefficient varies where that predicts held-out reports better by so many standard errors
_VARIES = 1.0


@dataclass(frozen=True, kw_only=True)
class Learned:
    """Attributes:
    coefficient: shrunk by its own noise.
    mean, variance: of the reports, and of that mean.
    size: in standard errors, how far the mean is from 0, or how much better a coefficient that varies predicts.
    """

    coefficient: Surface
    mean: float
    variance: float
    size: float

    def shrunken(self, least: float) -> Surface:
        """The coefficient, its mean shrunk to no less than this part of what was reported."""
        found = self.coefficient
        kept = max(abs(found.intercept), abs(least * self.mean))
        return replace(found, intercept=math.copysign(kept, self.mean))


def learned(rows: Floats, line: tuple[int, ...], reports: Floats, *, spread: float, seed: int) -> Learned:
    """What these reports say.

    Args:
        rows: float64 [m, d], NaN where a feature is not shown.
        line: the public features that the coefficient may vary with.
        reports: float64 [m], unbiased.
        spread: the label's variance.
        seed: public coins.
    """
    gain = _gain(rows, line, reports, spread, seed) if line else 0.0
    found = coefficient(rows, line if gain > _VARIES else (), reports, spread=spread, seed=seed)
    variance = float(reports.var(ddof=1)) / reports.size if reports.size > 1 else math.inf
    size = max(abs(_in_errors(reports)), gain)
    return Learned(coefficient=found, mean=float(reports.mean()), variance=variance, size=size)


def coefficient(rows: Floats, line: tuple[int, ...], reports: Floats, *, spread: float, seed: int) -> Surface:
    """The shrunken mean of the reports (James and Stein), and how they vary with these features."""
    size = _in_errors(reports)
    shrunk = float(reports.mean()) * (1 - 1 / size**2) if abs(size) > 1 else 0.0
    if not line:
        return Surface.constant(shrunk)
    varying = fitted(rows, line, reports, spread=spread, seed=seed)
    return Surface(varying.features, varying.stand_ins, shrunk, varying.slopes, varying.trees)


def _in_errors(numbers: Floats) -> float:
    """Their mean in its standard errors; 0 of fewer than two, or where all are 0."""
    if numbers.size < 2:
        return 0.0
    mean, error = float(numbers.mean()), float(numbers.std(ddof=1) / np.sqrt(numbers.size))
    return mean / error if error else math.copysign(math.inf, mean) if mean else 0.0


def _gain(rows: Floats, line: tuple[int, ...], reports: Floats, spread: float, seed: int) -> float:
    """How much better a coefficient that varies predicts held-out reports, in standard errors."""
    is_even = np.arange(reports.size) % 2 == 0
    gains = []
    for fit_on in (is_even, ~is_even):
        if fit_on.sum() < 2 or (~fit_on).sum() < 2:
            return 0.0
        found = fitted(rows[fit_on], line, reports[fit_on], spread=spread, seed=seed)
        held, constant = reports[~fit_on], reports[fit_on].mean()
        gains.append((held - constant) ** 2 - (held - found(rows[~fit_on])) ** 2)
    return _in_errors(np.concatenate(gains))
