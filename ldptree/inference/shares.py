"""From what is believed about a class's share to one probability and an interval, both inside [0, 1]; and the floor of shares.

What lives here: the mean of a Gaussian cut off at 0 and 1. What does not: how the Gaussian came about
(`weighting`, `pruning`).
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from ldptree.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

N_POINTS = 32
FALL = 30.0
"""Densities below exp(-FALL) of the largest are left out of the integral."""


def expected_share(mean: Floats, sd: Floats) -> Floats:
    """Return the mean of N(mean, sd^2) given a value in [0, 1], strictly inside, 1/2 where sd is infinite.

    More than 1/2 where `mean` is. Gauss-Legendre over the part of [0, 1] that matters, so that it holds far
    out in the tails, where quotients of normal densities and probabilities are 0/0; error below 1e-6.

    Args:
        mean: any shape; noise may have carried it far out of [0, 1].
        sd: the same shape, positive or infinite.
    """
    # A flat density, and one narrower than any count could make it, stand for the extremes.
    width = np.clip(sd, 1e-9, 1e6)
    nearest = np.clip(mean, 0.0, 1.0)
    upper = np.minimum(nearest + _reach(np.maximum(-mean, 0.0), width), 1.0)
    lower = np.maximum(nearest - _reach(np.maximum(mean - 1.0, 0.0), width), 0.0)
    points, weights = np.polynomial.legendre.leggauss(N_POINTS)
    values = lower[..., None] + (upper - lower)[..., None] * (points + 1.0) / 2.0
    from_nearest = values - nearest[..., None]
    exponent = (
        from_nearest * (from_nearest + 2.0 * (nearest - mean)[..., None]) / (2.0 * width[..., None] ** 2)
    )
    density = weights * np.exp(-exponent)
    return np.asarray(
        nearest + (density * from_nearest).sum(axis=-1) / density.sum(axis=-1), dtype=np.float64
    )


def _reach(distance: Floats, sd: Floats) -> Floats:
    """Return how far from a point `distance` away from the mean the density falls by exp(-FALL)."""
    spread = 2.0 * FALL * sd**2
    return spread / (np.sqrt(distance**2 + spread) + distance)


def raised(shares: Floats, rows: Floats | float) -> Floats:
    """Return shares of classes [n, C], none of them below about 1 / (rows + C), so that no chance is 0 or 1.

    That is the share of a class that none of so many rows has, by Laplace's rule of succession. The likeliest class stays so.

    Args:
        shares: each row adds up to 1.
        rows: public rows and reports that are behind each, [n] or one number; fewer than 1 count as 1.
    """
    least = 1.0 / (np.maximum(rows, 1.0) + shares.shape[1])
    kept = np.maximum(shares, np.reshape(least, (-1, 1)))
    return np.asarray(
        kept / np.cumsum(kept, axis=1)[:, -1:]
    )  # in the classes' order, as a database adds them too


def half_width(level: float) -> float:
    """Return the number of standard deviations to each side that hold a share `level` of a Gaussian.

    Raises:
        ConfigError: `level` is not between 0 and 1.
    """
    if not isinstance(level, int | float) or not 0.0 < level < 1.0:
        raise ConfigError(f"level = {level!r}: an interval holds a share between 0 and 1, such as 0.9")
    return NormalDist().inv_cdf(0.5 + level / 2.0)
