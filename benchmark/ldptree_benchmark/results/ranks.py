"""Compare methods over data sets (Demsar, JMLR 2006) by average ranks, critical differences and paired tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEVEL = 0.05


def rank_methods(means: Floats, sign: int) -> Floats:
    """Return ranks [sets, methods], 1 the best, shared by equals, no score last. `sign` is 1 if more is better."""
    from scipy.stats import rankdata

    order = np.where(np.isnan(means), np.inf, -sign * means)
    return np.asarray(rankdata(order, axis=1))


def critical_difference(n_methods: int, n_sets: int, level: float = LEVEL) -> float:
    """Average ranks that differ by less are not told apart (Nemenyi)."""
    from scipy.stats import studentized_range

    q = float(studentized_range.isf(level, n_methods, np.inf)) / math.sqrt(2)
    return q * math.sqrt(n_methods * (n_methods + 1) / (6 * n_sets))


@dataclass(frozen=True)
class Comparison:
    """A method against the reference, by mean difference over sets (better is positive), wins, adjusted chance."""

    method: str
    difference: float
    wins: int
    losses: int
    chance: float


def compare(means: Floats, names: Sequence[str], reference: int, sign: int) -> list[Comparison]:
    """Every other method against the reference by Wilcoxon's signed ranks over sets [sets, methods], adjusted by Holm.

    The chance is that of so large a difference where there is none; nan with fewer than six sets, where none can be small.
    """
    from scipy.stats import wilcoxon

    comparisons = []
    for number, name in enumerate(names):
        if number == reference:
            continue
        away = sign * (means[:, reference] - means[:, number])
        away = away[~np.isnan(away)]
        chance = math.nan
        if np.count_nonzero(away) >= 6:
            chance = float(wilcoxon(away, zero_method="wilcox").pvalue)
        mean = float(away.mean()) if away.size else math.nan
        comparisons.append(Comparison(name, mean, int((away > 0).sum()), int((away < 0).sum()), chance))
    adjusted = adjust_by_holm([comparison.chance for comparison in comparisons])
    return [
        Comparison(comparison.method, comparison.difference, comparison.wins, comparison.losses, chance)
        for comparison, chance in zip(comparisons, adjusted, strict=True)
    ]


def adjust_by_holm(chances: Sequence[float]) -> list[float]:
    """Chances of several tests such that the chance of any false alarm is kept (Holm 1979); nan stays."""
    known = [number for number, chance in enumerate(chances) if not math.isnan(chance)]
    adjusted, most = list(chances), 0.0
    for rank, number in enumerate(sorted(known, key=lambda number: chances[number])):
        most = max(most, min(1.0, (len(known) - rank) * chances[number]))
        adjusted[number] = most
    return adjusted


def chance_of_splits(differences: Floats, test_share: float) -> float:
    """The two-sided chance of differences over random splits [repetitions] of one data set (Nadeau and Bengio 2003).

    Splits share rows, so their variance is corrected by test_share / (1 - test_share). nan of one repetition.
    """
    from scipy.stats import t

    n = differences.size
    if n < 2 or np.isnan(differences).any():
        return math.nan
    variance = float(differences.var(ddof=1)) * (1 / n + test_share / (1 - test_share))
    if variance == 0.0:
        return 0.0 if differences.mean() else 1.0
    return float(2 * t.sf(abs(differences.mean()) / math.sqrt(variance), n - 1))
