"""What all answers about private features say together: an effect for each contrast, and whether it is surely no noise.

The two are apart: an effect that may be noise still predicts better, shrunken, than none on average, but nothing is said of it.
It is shrunk by its own noise (`coefficient`), and by the chance that there is none at all (`chances`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ldptree.families.public_features.chances import chances
from ldptree.families.public_features.coefficient import Learned
from ldptree.families.public_features.contrast import SHAPES, Contrast
from ldptree.families.public_features.explained import Estimate
from ldptree.families.public_features.model import Effect
from ldptree.families.public_features.plan import Stake, hoped

LEVEL = 0.01
"""The chance that of private features without any effect one is said to help."""
# whether there is more to ask depends on the first answers, so that each is looked at twice
_LOOKS = 2
# sizes and ratios beyond are all the same
_MOST = 1e3


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Attributes:
    effect: what the feature adds.
    chance: that it adds anything; the effect is shrunk by it.
    is_heard: whether the effect is surely no noise.
    stake: what asking more may bring.
    explains: of the label's variance, where the coefficient does not vary; in the label's unit squared.
    """

    effect: Effect
    chance: float
    is_heard: bool
    stake: Stake
    explains: Estimate


def findings(
    contrasts: Sequence[Contrast],
    found: Sequence[Learned],
    asked: Sequence[int],
    *,
    n_contrasts: int,
    spread: float,
    d: int,
) -> tuple[Finding, ...]:
    """One of each contrast that answers were given to.

    Args:
        contrasts: that were asked about.
        found: what the answers to each say.
        asked: how many answered each.
        n_contrasts: how many are asked about in all, over which LEVEL is divided (Bonferroni).
        spread: the label's variance.
        d: how many features there are.
    """
    # of each its mean is tested, on both sides, and that it varies
    least = NormalDist().inv_cdf(1 - LEVEL / (4 * _LOOKS * max(n_contrasts, 1)))
    hopes = np.array([hoped(contrast.shape, spread, d) for contrast in contrasts])
    noises = np.array([c.square * one.variance for c, one in zip(contrasts, found, strict=True)])
    sizes = np.array([one.size for one in found])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(noises > 0, np.minimum(hopes / noises, _MOST), _MOST)
    likely = np.empty(len(contrasts))
    for shape in SHAPES:
        same = np.array([contrast.shape == shape for contrast in contrasts], dtype=bool)
        if same.any():
            likely[same] = chances(np.minimum(sizes[same], _MOST), ratios[same])
    made = []
    for place, (contrast, one) in enumerate(zip(contrasts, found, strict=True)):
        chance, ratio, hope = float(likely[place]), float(ratios[place]), float(hopes[place])
        # the expected square of the effect, if there is one
        believed = hope / (1 + ratio) + contrast.square * (one.mean * ratio / (1 + ratio)) ** 2
        noise = float(noises[place]) if np.isfinite(noises[place]) else hope
        made.append(
            Finding(
                effect=Effect(contrast, one.shrunken(ratio / (1 + ratio)).times(chance)),
                chance=chance,
                is_heard=one.size > least,
                # the square of a noisy mean is too large by its variance
                explains=Estimate(
                    value=contrast.square * max(one.mean**2 - one.variance, 0.0),
                    error=contrast.square * 2 * abs(one.mean) * math.sqrt(one.variance),
                ),
                stake=Stake(noise=noise * asked[place], hoped=believed, chance=chance, asked=asked[place]),
            )
        )
    return tuple(made)
