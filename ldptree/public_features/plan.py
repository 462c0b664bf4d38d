"""How the holders are shared out, and whether private features are worth asking about.

What lives here: sizes, from what is shown and what round 0 told of the label. What does not: the questions themselves
(`curator`). The costs are counted in mean squared error; .15 and .02, the shares of the label's variance that a feature is
hoped to explain (divided by d), and the sizes were set after seeing results on the laws and sets of the benchmarks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.public_features.contrast import SHAPES, SQUARE

if TYPE_CHECKING:
    from numpy.typing import NDArray

# share of the holders who tell of the label's law, the most there may be, and how many are enough at epsilon 1
_ROUND_0, _MOST_OF_ROUND_0, _ENOUGH = 0.1, 0.25, 500
FEATURE_BINS = 0.05
"""Share who send a bin of a private feature, where too few show it."""
SHOWN_ENOUGH = 100
"""Holders who show a feature from whom its ranks are taken without asking."""
_HOPED = {"rise": 0.15, "bowl": 0.02}
_WEIGHT = {"rise": 1.0, "bowl": 0.4}
_FEWEST = 20


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Attributes:
    line: the features that at least half of the holders show.
    private: the rest.
    contrasts: (feature, shape) asked about, in order.
    n_bins: holders of each feature in `binned`.
    binned: private features whose bins are asked for.
    n_label: holders of the label's question.
    n_contrast: holders of each of `contrasts`.
    """

    line: tuple[int, ...]
    private: tuple[int, ...]
    contrasts: tuple[tuple[int, str], ...]
    binned: tuple[int, ...]
    n_bins: int
    n_label: int
    n_contrast: tuple[int, ...]


def n_first(n: int, epsilon: float) -> int:
    """Holders of round 0: a tenth, and of few holders up to a quarter, as R follows from a law that must not be far off."""
    return max(1, round(max(_ROUND_0 * n, min(_MOST_OF_ROUND_0 * n, _ENOUGH / epsilon**2))))


def kinds(protects: NDArray[np.bool_]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The features that at least half of the holders show, and the rest."""
    is_line = (~protects).mean(axis=0) >= 0.5
    return tuple(np.flatnonzero(is_line).tolist()), tuple(np.flatnonzero(~is_line).tolist())


def plan(
    protects: NDArray[np.bool_], left: int, *, spread: float, report: float, ask_private: str = "auto"
) -> Plan:
    """Share out the holders that round 0 left.

    Args:
        protects: bool [n, d].
        left: holders who were not asked yet, at least 1.
        spread: the label's variance.
        report: mean square of one report of the label.
        ask_private: "auto" by what they cost and may bring, "always" or "never".
    """
    n, d = protects.shape
    line, private = kinds(protects)
    shapes = _worth(ask_private, len(line), len(private), d, spread, report / left)
    while True:
        contrasts = tuple((feature, shape) for feature in private for shape in shapes)
        n_shown = (~protects).sum(axis=0)
        binned = tuple(j for j in private if n_shown[j] < SHOWN_ENOUGH) if shapes else ()
        n_bins = max(1, int(FEATURE_BINS * n) // len(private)) if binned else 0
        rest = left - n_bins * len(binned)
        weights = np.array([_WEIGHT[shape] for _, shape in contrasts]) / math.sqrt(len(line) + 1)
        n_label = round(rest / (1 + weights.sum()))
        n_contrast = tuple(round(n_label * weight) for weight in weights)
        fewest = 1 if ask_private == "always" else _FEWEST
        if not shapes or (min(n_contrast) >= fewest and sum(n_contrast) < rest):
            return Plan(
                line=line,
                private=private,
                contrasts=contrasts,
                binned=binned,
                n_bins=n_bins,
                n_label=rest - sum(n_contrast),
                n_contrast=n_contrast,
            )
        shapes = shapes[:-1]


def _worth(
    ask_private: str, n_line: int, n_private: int, d: int, spread: float, noise: float
) -> tuple[str, ...]:
    """Which shapes are asked of every private feature: a prefix of SHAPES."""
    if ask_private == "never" or n_private == 0:
        return ()
    root = math.sqrt(n_line + 1)
    shapes: tuple[str, ...] = ()
    for k, shape in enumerate(SHAPES, start=1):
        # what is taken from the label's question, and the noise of the contrasts themselves
        cost = noise * (root + (root + k * n_private) / SQUARE)
        if _HOPED[shape] * spread / d <= cost and not (ask_private == "always" and k == 1):
            break
        shapes = (*shapes, shape)
    return shapes
