"""Learn the label's law from round 0, normal and by likelihood, and the interval that later reports are cut to.

A report of round 0 is a set of the bins of the label's range (subset selection). What is asked later is a number in
[c - R, c + R], so R weighs what is cut off against noise, which grows with R.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.mechanisms.numbers import NumberMechanism

    Floats = NDArray[np.float64]

LABEL_BINS = 16
# expected before any report, in parts of the range: a standard deviation, how unsure of it (a factor), and how far the mean
# is from the middle; a range that is stated without looking is generous
_SPREAD, _FACTOR, _OFF_MIDDLE = 1 / 8, 2.0, 1 / 4
# the grid of laws, how often it is drawn again around what is not ruled out, and by how many nats that is
_GRID, _ZOOMS, _RULED_OUT = 41, 4, 12.0
# R is at least so many standard deviations: below, what is learned shrinks faster than noise
_LEAST_REACH = 1.5
# laws of less than this weight, relative to the likeliest, are of no matter to R
_LIKELY = 1e-2
# leaves over which the noise is expected to be spread
_LEAVES = 8.0
# how far the mean of labels may be from that of the normal law that is nearest, in standard deviations
_NOT_NORMAL = 0.5
# the same of labels that were cut to an interval
_CUT_NOT_NORMAL = 0.2
WIDTH = 0.35
"""Numbers to report are expected about N(0, WIDTH^2), as `optimal_label` is made for."""


@dataclass(frozen=True, eq=False)
class LabelDistribution:
    """The posterior of the label's normal law, as a grid of laws and their weights, float64 [laws] each.

    Attributes:
        means, sds: in the label's unit.
        weights: they add up to 1.
        at_ends: the expected share of labels in the first and the last bin together.
    """

    means: Floats
    sds: Floats
    weights: Floats
    at_ends: float

    @classmethod
    def known(cls, mean: float, sd: float) -> Self:
        """One law, surely."""
        return cls(np.array([mean]), np.array([sd]), np.ones(1), 0.0)

    @property
    def mean(self) -> float:
        """The expected mean."""
        return float(self.weights @ self.means)

    @property
    def mean_variance(self) -> float:
        """Return the variance of the mean, from the weights and from labels that may be far from normal."""
        around = float(self.weights @ (self.means - self.mean) ** 2)
        return around + (_NOT_NORMAL * self.sd) ** 2

    @property
    def sd(self) -> float:
        """The expected standard deviation."""
        return float(self.weights @ self.sds)

    def estimate_mean(
        self, reports: Floats, centre: float, half: float, label_range: tuple[float, float]
    ) -> float:
        """The labels' mean, by this and by reports of labels [m] that were cut `half` to either side of a centre.

        Round 0 may have been far off, the interval aside of most labels and all reports at its end: so the mean of what is left
        of normal laws between the ends makes laws more and less likely, and says what the cut took off. What reports say of
        labels and what laws do each count by their precision. Labels are moved into their range, whose ends (low, high) are.
        """
        mean, noise = float(reports.mean()), float(reports.var()) / reports.size
        whole_mean = _cut_mean(self.means, self.sds, *label_range)
        cut_mean = _cut_mean(self.means, self.sds, centre - half, centre + half)
        off = noise + (_CUT_NOT_NORMAL * self.sds) ** 2
        fits = -((mean - cut_mean) ** 2) / off / 2 - np.log(off) / 2
        weights = self.weights * np.exp(fits - fits.max())
        now = replace(self, weights=weights / weights.sum())
        expected, taken = float(now.weights @ whole_mean), whole_mean - cut_mean
        offset = float(now.weights @ taken)
        variance = noise + float(now.weights @ (taken - offset) ** 2)
        return weigh_by_precision(expected, now.mean_variance, mean + offset, variance)


def weigh_by_precision(expected: float, variance: float, seen: float, noise: float) -> float:
    """Weigh an expected value with this positive variance against an observed one with its noise, each by its precision."""
    return expected + (seen - expected) * variance / (variance + noise)


def label_bin_of(labels: Floats, low: float, high: float) -> NDArray[np.int64]:
    """The bin of each label, 0 .. LABEL_BINS - 1; what is outside the range is in the nearest."""
    places = np.floor((labels - low) / (high - low) * LABEL_BINS)
    return np.clip(places, 0, LABEL_BINS - 1).astype(np.int64)


def fit_normal(supports: NDArray[np.bool_], ratio: float, low: float, high: float) -> LabelDistribution:
    """Fit the normal law of labels whose reports support these bins.

    The chance of a set S is proportional to 1 + (ratio - 1) P(the label is in S); the two end bins go on without end. A
    prior around the range's middle decides where reports do not.

    Args:
        supports: bool [n, LABEL_BINS].
        ratio: how much likelier a set with the holder's bin is than one without.
        low, high: the label's range.
    """
    sets, counts = np.unique(supports, axis=0, return_counts=True)
    width = high - low
    mean_ends, sd_ends = (low, high), (_SPREAD * width / 32, _SPREAD * width * 8)
    for _ in range(_ZOOMS):
        means, sds = np.linspace(*mean_ends, _GRID), np.geomspace(*sd_ends, _GRID)
        m, s = (grid.ravel() for grid in np.meshgrid(means, sds, indexing="ij"))
        chances = _bin_chances(m, s, low, high)
        prior = np.log(s / (_SPREAD * width)) ** 2 / (2 * math.log(_FACTOR) ** 2)
        prior += ((m - (low + high) / 2) / (_OFF_MIDDLE * width)) ** 2 / 2
        believed = counts @ np.log1p((ratio - 1) * np.clip(sets @ chances.T, 0.0, 1.0)) - prior
        # the next grid covers what is not ruled out, and a step more
        kept = believed > believed.max() - _RULED_OUT
        step, factor = means[1] - means[0], sds[1] / sds[0]
        mean_ends = (m[kept].min() - step, m[kept].max() + step)
        sd_ends = (s[kept].min() / factor, s[kept].max() * factor)
    weights = np.exp(believed - believed.max())
    weights /= weights.sum()
    return LabelDistribution(m, s, weights, float(weights @ chances[:, [0, -1]].sum(axis=1)))


def _bin_chances(means: Floats, sds: Floats, low: float, high: float) -> Floats:
    """Of each bin under each law, float64 [laws, LABEL_BINS]."""
    from scipy.special import ndtr

    edges = np.linspace(low, high, LABEL_BINS + 1)[1:-1]
    below = ndtr((edges - means[:, None]) / sds[:, None])
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


def choose_half_width(labels: LabelDistribution, mechanism: NumberMechanism, n: int, most: float) -> float:
    """Choose the R with the least expected sum of the mean square, over the two ends, of what is cut off there on
    average, and of 8 v R^2 / n.

    Args:
        labels: their distribution; the interval is around its expected mean.
        mechanism: v is its usual variance.
        n: holders who will report.
        most: the largest R there is.
    """
    likely = labels.weights > _LIKELY * labels.weights.max()
    means, sds, weights = labels.means[likely], labels.sds[likely], labels.weights[likely]
    best = (math.inf, most)
    for half in np.geomspace(min(_LEAST_REACH * labels.sd, most), most, 43):
        cut = _cut(half - (means - labels.mean), sds) ** 2 + _cut(half + (means - labels.mean), sds) ** 2
        noise = _LEAVES * typical_variance(mechanism) * half**2 / max(n, 1)
        best = min(best, (float(weights @ cut / weights.sum()) / 2 + noise, float(half)))
    return best[1]


def _cut(distance: Floats, sds: Floats) -> Floats:
    """E max(0, z - distance), z ~ N(0, sd^2)."""
    from scipy.special import ndtr

    t = distance / sds
    cut: Floats = sds * (np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi) - t * ndtr(-t))
    return cut


def _cut_mean(means: Floats, sds: Floats, low: float, high: float) -> Floats:
    """E min(max(z, low), high), z ~ N(mean, sd^2)."""
    return low + _cut(low - means, sds) - _cut(high - means, sds)


@lru_cache(maxsize=64)
def typical_variance(mechanism: NumberMechanism) -> float:
    """A mechanism's variance over N(0, WIDTH^2)."""
    u = np.linspace(-1, 1, 201)
    weight = np.exp(-((u / WIDTH) ** 2) / 2)
    return float(weight @ mechanism.variance(u) / weight.sum())


@lru_cache(maxsize=64)
def fit_report_square(mechanism: NumberMechanism) -> tuple[float, float]:
    """Return (a, b) such that a + b u^2 is nearest to the mean square of a report of u over [-1, 1]."""
    u = np.linspace(-1, 1, 201)
    b, a = np.polyfit(u**2, mechanism.variance(u) + u**2, 1)
    return float(a), float(b)
