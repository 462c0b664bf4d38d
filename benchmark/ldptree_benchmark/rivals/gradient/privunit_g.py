"""PrivUnitG, an unbiased report of a vector of length at most 1 (Asi, Feldman, Talwar, ICML 2022, Algorithm 2).

For a unit vector v a holder draws U from the normal law N(0, I), with probability p given <v, U> >= t and else given
<v, U> < t, and sends U / m with m = E <v, U>. With Q = P(N(0, 1) >= t), the density of U is that of N(0, I) times p / Q or
(1 - p) / (1 - Q), whatever v is: the report is eps-LDP exactly where p (1 - Q) / (Q (1 - p)) <= e^eps, here with equality. p is
the one of least noise. Variance of a report in d dimensions: about d / m^2. A SIMULATION DEVICE: the noise is in floating point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PrivUnitG:
    """How a unit vector is reported.

    Attributes:
        p: chance that the report lies beyond the threshold.
        tail: Q, the chance that a standard normal number does.
    """

    p: float
    tail: float

    @classmethod
    def for_epsilon(cls, epsilon: float) -> Self:
        """The least noisy one."""
        from scipy.optimize import minimize_scalar

        minimum = minimize_scalar(
            lambda p: -cls._at(float(p), epsilon).mean, bounds=(1e-9, 1 - 1e-9), method="bounded"
        )
        return cls._at(float(minimum.x), epsilon)

    @classmethod
    def _at(cls, p: float, epsilon: float) -> Self:
        return cls(p, p / (p + math.exp(epsilon) * (1 - p)))

    @property
    def threshold(self) -> float:
        """The t of which `tail` is the chance."""
        from scipy.special import ndtri

        return -float(ndtri(self.tail))

    @property
    def mean(self) -> float:
        """m = E <v, U>, by which reports are divided."""
        return self._density * (self.p - self.tail) / (self.tail * (1 - self.tail))

    def mean_square(self, d: int) -> float:
        """E |report|^2 in d dimensions."""
        along = 1 + self.threshold * self.mean
        return (d - 1 + along) / self.mean**2

    def log_ratio(self, along: Floats) -> Floats:
        """ln of the density of U over that of N(0, I), by <v, U>, in any shape."""
        inside, outside = math.log(self.p / self.tail), math.log((1 - self.p) / (1 - self.tail))
        return np.asarray(np.where(along >= self.threshold, inside, outside))

    def draw_along(self, n: int, rng: np.random.Generator) -> Floats:
        """<v, U> of n reports."""
        from scipy.special import ndtri

        share = 1 - rng.random(n)
        is_beyond = rng.random(n) < self.p
        return np.asarray(np.where(is_beyond, -ndtri(share * self.tail), ndtri(share * (1 - self.tail))))

    def report(self, unit: Floats, along: float, normal: Floats) -> Floats:
        """The report of a unit vector [d], made of <v, U> and of a standard normal vector [d]."""
        reports: Floats = (normal + (along - float(normal @ unit)) * unit) / self.mean
        return reports

    @property
    def _density(self) -> float:
        return math.exp(-(self.threshold**2) / 2) / math.sqrt(2 * math.pi)


def turn_to_sphere(vector: Floats, coin: float) -> Floats:
    """A unit vector [d] whose mean over a uniform coin is the given vector [d], of length at most 1."""
    length = math.sqrt(float(vector @ vector))
    if length == 0:
        unit = np.zeros_like(vector)
        unit[0] = 1.0
    else:
        unit = vector / length
    return unit if coin < (1 + length) / 2 else -unit
