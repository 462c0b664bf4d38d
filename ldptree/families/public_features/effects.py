"""Estimate effects from the answers to contrasts, with the size of each and whether it is surely no noise.

An effect is shrunk by its own noise, and by the probability that there is none at all. Effects are 0 or normal with the
variance that is expected (the two-groups model, Efron, Statistical Science 2008), and the share of features with an effect
is as likely as any other. So where none of many features shows anything, a single one needs more to be believed; where most
do, less. An effect that may be noise still predicts better, shrunken, than none on average, but nothing is said of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from ldptree.families.public_features.allocation import Stake, expected_gain
from ldptree.families.public_features.surface import fit_surface
from ldptree.models.public_features import Effect
from ldptree.models.surface import SHAPES, Contrast, Surface

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# standard errors to either side: 95 %
_BAND = 2.0
# a share is precise where its band is at most so wide
_TELLING = 0.6
# a coefficient varies where that predicts held-out reports better by so many standard errors
_VARIES = 1.0
# middles of the shares that are weighed
_SHARES = (np.arange(50) + 0.5) / 50
LEVEL = 0.01
"""The chance that of private features without any effect one is said to help."""
# whether there is more to ask depends on the first answers, so that each is looked at twice
_LOOKS = 2
# sizes and ratios beyond are all the same
_MOST = 1e3


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """An estimate with its error.

    Attributes:
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
    def is_precise(self) -> bool:
        """Return whether a share is known well enough to be worth telling."""
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
class CoefficientEstimate:
    """An estimated coefficient of a contrast.

    Attributes:
        coefficient: shrunk by its own noise.
        mean, variance: of the reports, and of that mean.
        size: in standard errors, how far the mean is from 0, or how much better a coefficient that varies predicts.
    """

    coefficient: Surface
    mean: float
    variance: float
    size: float

    def shrink(self, least: float) -> Surface:
        """The coefficient, its mean shrunk to no less than this part of what was reported."""
        coefficient = self.coefficient
        kept = max(abs(coefficient.intercept), abs(least * self.mean))
        return replace(coefficient, intercept=math.copysign(kept, self.mean))


def estimate_coefficient(
    rows: Floats, line: tuple[int, ...], reports: Floats, *, spread: float, seed: int
) -> CoefficientEstimate:
    """Estimate a coefficient from these reports.

    Args:
        rows: float64 [m, d], NaN where a feature is not shown.
        line: the public features that the coefficient may vary with.
        reports: float64 [m], unbiased.
        spread: the label's variance.
        seed: public coins.
    """
    gain = _gain(rows, line, reports, spread, seed) if line else 0.0
    coefficient = fit_coefficient(rows, line if gain > _VARIES else (), reports, spread=spread, seed=seed)
    variance = float(reports.var(ddof=1)) / reports.size if reports.size > 1 else math.inf
    size = max(abs(_in_errors(reports)), gain)
    return CoefficientEstimate(
        coefficient=coefficient, mean=float(reports.mean()), variance=variance, size=size
    )


def fit_coefficient(
    rows: Floats, line: tuple[int, ...], reports: Floats, *, spread: float, seed: int
) -> Surface:
    """The shrunken mean of the reports (James and Stein), and how they vary with these features."""
    size = _in_errors(reports)
    shrunk = float(reports.mean()) * (1 - 1 / size**2) if abs(size) > 1 else 0.0
    if not line:
        return Surface.constant(shrunk)
    varying = fit_surface(rows, line, reports, spread=spread, seed=seed)
    return Surface(varying.features, varying.stand_ins, shrunk, varying.slopes, varying.trees)


def _in_errors(numbers: Floats) -> float:
    """Their mean in its standard errors; 0 of fewer than two, or where all are 0."""
    if numbers.size < 2:
        return 0.0
    mean, error = float(numbers.mean()), float(numbers.std(ddof=1) / np.sqrt(numbers.size))
    return mean / error if error else math.copysign(math.inf, mean) if mean else 0.0


def _gain(rows: Floats, line: tuple[int, ...], reports: Floats, spread: float, seed: int) -> float:
    """Return how much better a coefficient that varies predicts held-out reports, in standard errors."""
    is_even = np.arange(reports.size) % 2 == 0
    gains = []
    for fit_on in (is_even, ~is_even):
        if fit_on.sum() < 2 or (~fit_on).sum() < 2:
            return 0.0
        surface = fit_surface(rows[fit_on], line, reports[fit_on], spread=spread, seed=seed)
        held, constant = reports[~fit_on], reports[fit_on].mean()
        gains.append((held - constant) ** 2 - (held - surface(rows[~fit_on])) ** 2)
    return _in_errors(np.concatenate(gains))


def effect_probabilities(sizes: Floats, ratios: Floats) -> Floats:
    """The chance of each that there is an effect, float64 [k].

    Args:
        sizes: float64 [k], estimates in their standard errors.
        ratios: float64 [k], the variance that is expected over that of the estimate.
    """
    # log of how much likelier an estimate is with an effect than without
    factors = (sizes**2 * ratios / (1 + ratios) - np.log1p(ratios)) / 2
    helps = np.log(_SHARES)[:, None] + factors
    none = np.log1p(-_SHARES)[:, None]
    either = np.logaddexp(helps, none)
    believed = either.sum(axis=1)
    weights = np.exp(believed - believed.max())
    return np.asarray(weights @ np.exp(helps - either) / weights.sum())


@dataclass(frozen=True, kw_only=True)
class EffectTest:
    """A test of a feature's effect.

    Attributes:
        effect: what the feature adds.
        chance: that it adds anything; the effect is shrunk by it.
        is_significant: whether the effect is surely no noise.
        stake: what asking more may bring.
        explains: of the label's variance, where the coefficient does not vary; in the label's unit squared.
    """

    effect: Effect
    chance: float
    is_significant: bool
    stake: Stake
    explains: Estimate


def assess_effects(
    contrasts: Sequence[Contrast],
    estimates: Sequence[CoefficientEstimate],
    asked: Sequence[int],
    *,
    n_contrasts: int,
    spread: float,
    d: int,
) -> tuple[EffectTest, ...]:
    """One of each contrast that answers were given to.

    Args:
        contrasts: that were asked about.
        estimates: what the answers to each say.
        asked: how many answered each.
        n_contrasts: how many are asked about in all, over which LEVEL is divided (Bonferroni).
        spread: the label's variance.
        d: how many features there are.
    """
    # of each its mean is tested, on both sides, and that it varies
    least = NormalDist().inv_cdf(1 - LEVEL / (4 * _LOOKS * max(n_contrasts, 1)))
    hopes = np.array([expected_gain(contrast.shape, spread, d) for contrast in contrasts])
    noises = np.array(
        [c.square * estimate.variance for c, estimate in zip(contrasts, estimates, strict=True)]
    )
    sizes = np.array([estimate.size for estimate in estimates])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(noises > 0, np.minimum(hopes / noises, _MOST), _MOST)
    likely = np.empty(len(contrasts))
    for shape in SHAPES:
        same = np.array([contrast.shape == shape for contrast in contrasts], dtype=bool)
        if same.any():
            likely[same] = effect_probabilities(np.minimum(sizes[same], _MOST), ratios[same])
    made = []
    for place, (contrast, estimate) in enumerate(zip(contrasts, estimates, strict=True)):
        chance, ratio, hope = float(likely[place]), float(ratios[place]), float(hopes[place])
        # the expected square of the effect, if there is one
        believed = hope / (1 + ratio) + contrast.square * (estimate.mean * ratio / (1 + ratio)) ** 2
        noise = float(noises[place]) if np.isfinite(noises[place]) else hope
        made.append(
            EffectTest(
                effect=Effect(contrast, estimate.shrink(ratio / (1 + ratio)).times(chance)),
                chance=chance,
                is_significant=estimate.size > least,
                # the square of a noisy mean is too large by its variance
                explains=Estimate(
                    value=contrast.square * max(estimate.mean**2 - estimate.variance, 0.0),
                    error=contrast.square * 2 * abs(estimate.mean) * math.sqrt(estimate.variance),
                ),
                stake=Stake(noise=noise * asked[place], gain=believed, chance=chance, asked=asked[place]),
            )
        )
    return tuple(made)
