"""Whether a private feature helps at all: what its own answers say of it, and what the others' say of such features.

Ours: an effect is 0 or normal with the variance that is hoped for (the two-groups model, Efron, Statistical Science 2008), and
the share of features with an effect is as likely as any other. So where none of many features shows anything, a single one
needs more to be believed; where most do, less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# middles of the shares that are weighed
_SHARES = (np.arange(50) + 0.5) / 50


def chances(sizes: Floats, ratios: Floats) -> Floats:
    """The chance of each that there is an effect, float64 [k].

    Args:
        sizes: float64 [k], estimates in their standard errors.
        ratios: float64 [k], the variance that is hoped for over that of the estimate.
    """
    # log of how much likelier an estimate is with an effect than without
    factors = (sizes**2 * ratios / (1 + ratios) - np.log1p(ratios)) / 2
    helps = np.log(_SHARES)[:, None] + factors
    none = np.log1p(-_SHARES)[:, None]
    either = np.logaddexp(helps, none)
    believed = either.sum(axis=1)
    weights = np.exp(believed - believed.max())
    return np.asarray(weights @ np.exp(helps - either) / weights.sum())
