"""Read off the first question's answers by how much private people differ between halves that no cell tells apart.

A contrast's mean is c_k = E[s_k mu] + N(0, E_k) of the mean residual mu(x), s_k(x) = 1 or -1. A correction m of the cells has
sum_j w_j b_kj m_j of it, with the share w_j of private people and the balance b_kj, the mean sign in cell j by public rows. The
rest is r = H beta + N(0, V) where sum_k beta_k (s_k(x) - b_kj) is added in cell j, which leaves its mean as it is:
H_kl is the mean of (s_k - b_kj) (s_l - b_lj). V_k is E_k, what is unsure of the correction, and what private people may lie
elsewhere than public ones, by how much they do in the cells. Each beta_k is 0 but with a small chance, and then of one of
several sizes (spike and slab). The posterior is taken one contrast at a time, given the means of the others, until it stays
(Carbonetto and Stephens 2012). A stump that is there with a chance below `LEAST_CHANCE` is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.families.corrections import ROOTS, estimate_residuals, sd_of_means
from ldptree.protocol.published_base import Contrast

if TYPE_CHECKING:
    from ldptree.families.correction_plan import CorrectionPlan, Halves
    from ldptree.families.corrections import Corrections
    from ldptree.protocol.totals import Totals

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

EXPECTED = 1.0
"""The number of contrasts, of all, whose halves are expected to differ beforehand. With a chance of .15 for each, one of twelve
was there in 2 of 20 runs about nothing at epsilon 1, and with this in one."""
SIZES = ROOTS[3:]
"""What the variance of such a difference may be, in squares of the label's scale. Smaller ones are noise beside it."""
LEAST_CHANCE = 0.25
"""The chance that a stump must have."""
LEAST_OVERLAP = 0.05
"""What the cells must leave of a contrast's variance."""
SWEEPS = 20


@dataclass(frozen=True, eq=False, kw_only=True)
class Stump:
    """An amount that is added in one half of a contrast and taken away in the other, beside a cell's correction.

    Attributes:
        contrast: the halves.
        shift: half of what they differ by, in the label's unit.
        sd: of it.
        balance: float64 [L], the mean sign in each cell, which is taken away so that the cell's mean stays.
    """

    contrast: Contrast
    shift: float
    sd: float
    balance: np.ndarray[tuple[int], np.dtype[np.float64]]


def find_stumps(
    first: CorrectionPlan,
    contrasts: Sequence[Contrast],
    totals: Sequence[Totals],
    halves: Halves,
    plan: CorrectionPlan,
    corrections: Corrections,
) -> tuple[Stump, ...]:
    """The stumps that the answers about contrasts speak for, beside a correction.

    Args:
        first: the question about contrasts.
        contrasts: the K that were asked about.
        totals: the answers, one a contrast.
        halves: their place in the cells.
        plan: the question about cells.
        corrections: of its cells.
    """
    seen = estimate_residuals(first, totals)
    mean = np.array([float(side.mean[0]) for side in seen])
    noise = np.array([float(side.variance[0]) for side in seen])
    made = first.range.as_read(corrections.correction[:, 0])
    weights = corrections.share * halves.balance.T
    noise = noise + sd_of_means(plan, corrections, weights)[:, 0] ** 2
    noise = noise + _moved(plan, corrections) * float(corrections.share @ made**2)
    shift, variance, chance = _spike_and_slab(
        mean - weights @ made, noise, halves.overlap, first.scale**2 * np.array(SIZES)
    )
    is_there = (chance >= LEAST_CHANCE) & (np.diag(halves.overlap) >= LEAST_OVERLAP)
    return tuple(
        Stump(
            contrast=contrasts[k],
            shift=float(shift[k]),
            sd=float(variance[k] ** 0.5),
            balance=halves.balance[:, k],
        )
        for k in np.flatnonzero(is_there).tolist()
    )


def _moved(plan: CorrectionPlan, corrections: Corrections) -> float:
    """Mean square by which a mean sign of private people is off that of public rows, as far as the cells show it."""
    public = plan.public_count / plan.public_count.sum()
    apart = np.sum((corrections.share - public) ** 2 / np.maximum(public, 1e-9))
    return float(apart) / max(len(public) - 1, 1) + 1.0 / float(plan.public_count.sum())


def _spike_and_slab(
    rest: Floats, noise: Floats, overlap: Floats, sizes: Floats
) -> tuple[Floats, Floats, Floats]:
    """Posterior mean, variance and chance of not being 0 of each beta, float64 [K], from rest = overlap beta + N(0, noise)."""
    precision, pull = (overlap / noise) @ overlap, (overlap / noise) @ rest
    mean, variance, chance = np.zeros((3, len(rest)))
    own = np.maximum(np.diag(precision), 1e-300)
    likely = min(EXPECTED / len(rest), 0.5)
    before = np.log(likely / (1.0 - likely) / len(sizes))
    order = np.argsort(-(pull**2) / own, kind="stable")
    for _ in range(SWEEPS):
        for k in order:
            spread = 1.0 / (own[k] + 1.0 / sizes)
            at = spread * (pull[k] - precision[k] @ mean + precision[k, k] * mean[k])
            odds = before + np.log(spread / sizes) / 2.0 + at**2 / spread / 2.0
            share = np.exp(odds - np.logaddexp.reduce([0.0, *odds]))
            mean[k], chance[k] = share @ at, share.sum()
            variance[k] = share @ (spread + at**2) - mean[k] ** 2
    return mean, variance, chance
