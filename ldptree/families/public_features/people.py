"""Rows that stand for the people of a model of public features: what they show as it is, what they protect drawn from the ranks
that were learned of it. It looks at nothing but what is shown and the released model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ldptree.families.public_features.contrast import BINS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.families.public_features.model import PublicFeatureModel

    Floats = NDArray[np.float64]

ENDS = np.linspace(0.0, 1.0, BINS + 1)


def people(
    model: PublicFeatureModel,
    values: Floats,
    protects: NDArray[np.bool_],
    *,
    one_hot: Sequence[tuple[int, ...]] = (),
    seed: int = 0,
) -> Floats:
    """Complete rows float64 [n, d] in [0, 1]; NaN where a value is protected and the model learned nothing of its feature.

    Each protected feature is drawn for itself, by the shares that its contrasts go by.

    Args:
        model: the released model.
        values: float64 [n, d], what is shown; not looked at where it is protected.
        protects: bool [n, d].
        one_hot: columns of which at most one is 1.
        seed: of the draws.
    """
    rng, rows = np.random.default_rng(seed), np.where(protects, np.nan, values)
    ranks = {effect.contrast.feature: np.array(effect.contrast.ranks) for effect in model.effects}
    together = {j for columns in one_hot for j in columns}
    for j in sorted(set(ranks) - together):
        hidden = np.flatnonzero(protects[:, j])
        rows[hidden, j] = np.interp(rng.random(hidden.size), ranks[j], ENDS)
    for columns in one_hot:
        if any(j in ranks for j in columns):
            _draw_levels(rows, protects, columns, ranks, rng)
    return rows


def _draw_levels(
    rows: Floats,
    protects: NDArray[np.bool_],
    columns: tuple[int, ...],
    ranks: dict[int, Floats],
    rng: np.random.Generator,
) -> None:
    """One level each by the learned shares of those above the middle; none for what is left of 1."""
    shares = np.array([1.0 - ranks[j][BINS // 2] if j in ranks else 0.0 for j in columns])
    ends = np.cumsum(shares / max(shares.sum(), 1.0))
    hidden = np.flatnonzero(protects[:, list(columns)].all(axis=1))
    drawn = np.searchsorted(ends, rng.random(hidden.size), side="right")
    for place, j in enumerate(columns):
        rows[hidden, j] = drawn == place
