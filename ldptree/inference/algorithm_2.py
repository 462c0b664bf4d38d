"""LPCT's own pruning, Algorithm 2 as printed, for comparison with the rules of `pruning`, which are ours.

Where the paper is ambiguous: the bounds r take the epsilon of the query that was asked (half of the budget where
termination may ask again), in (14) the printed sum over i <= n_P of U^Q is over n_Q, and the pseudo-code is followed where
the text stops once the public side wins (`PaperOptions.stop_at_public`). The pseudo-code's constants are kept. Read
literally, it terminates in nearly every run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.inference.pruning import Pruned, find_deciding_nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.families.settings import PaperOptions
    from ldptree.inference.weighting import Evidence

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class PaperPruned:
    """The result of Algorithm 2 on the first query.

    Attributes:
        pruned: what decides each node, where it does not terminate.
        is_terminated: whether the second query is to be asked (flag = 1).
    """

    pruned: Pruned
    is_terminated: bool


def prune(
    evidence: Evidence, *, epsilon: float, n_public: int, termination_depth: int, options: PaperOptions
) -> PaperPruned:
    """Algorithm 2 after its first query.

    Args:
        evidence: of class 1 of two.
        epsilon: of the first query.
        n_public: n_Q.
        termination_depth: floor(d / (2 + 2 d) log2(n_P eps^2)), eps the whole budget.
        options: its switches.
    """
    n = evidence.n_private
    log = math.log(n + n_public)
    n_leaves = evidence.rolled_up(np.ones(evidence.cell_nodes.size))
    counts, margins = evidence.private_count, evidence.private_margin
    rows, public_margins = evidence.public_mass, evidence.public_margin
    is_noise = n_leaves * 8.0 * n / epsilon**2 >= counts
    strength_of_public = _over(np.abs(public_margins), np.sqrt(4.0 * log * rows))
    # In the noise: the two sides one by one.
    of_noise = np.abs(margins) / np.sqrt(n_leaves * 32.0 * n * log / epsilon**2)
    # Above it: both, with the lam of (16).
    positive = np.where(is_noise, 1.0, counts)
    s = margins / np.sqrt(32.0 * log * positive)
    t = _over(public_margins, np.sqrt(4.0 * log * rows))
    agree = s * t > 0
    both = np.where(agree, np.hypot(s, t), np.maximum(np.abs(s), np.abs(t)))
    statistic = np.where(is_noise, np.maximum(of_noise, strength_of_public), both)
    private_wins = np.where(is_noise, strength_of_public <= of_noise, agree | (np.abs(s) >= np.abs(t)))
    public_wins = np.where(is_noise, ~private_wins.astype(bool), agree | (np.abs(s) < np.abs(t)))
    # lam = (A^Q / 4 U^Q) / (A~ / 32 U~) where the sides agree, 0 or infinity where not
    mixed = agree & ~is_noise
    private_weight = np.where(mixed, _over(np.abs(margins), 32.0 * positive), private_wins)
    public_weight = np.where(mixed, _over(np.abs(public_margins), 4.0 * rows), public_wins)
    margin = private_weight * margins + public_weight * public_margins
    count = private_weight * counts + public_weight * rows
    theta = np.divide(margin, count, out=np.full_like(margin, -0.5), where=count != 0)
    spread = private_weight**2 * (evidence.private_noise + evidence.label_variance * evidence.private_mass)
    spread = spread + public_weight**2 * evidence.label_variance * rows
    mass = private_weight * evidence.private_mass + public_weight * rows
    variance = np.where(mass > 0, spread / np.where(mass > 0, mass, 1.0) ** 2, np.inf)

    depth = evidence.levels.depth_of_nodes
    ends_here = is_noise & private_wins.astype(bool) & (depth <= termination_depth) & (depth > 0)
    stops = statistic >= 1.0
    if options.termination:
        stops = stops | ends_here
    if options.stop_at_public:
        stops = stops | (is_noise & ~private_wins.astype(bool))
    if evidence.levels.n_nodes > 1:  # the root is not looked at (k goes from p0 to 1)
        stops[0], statistic[0] = False, -np.inf
    decided_at = find_deciding_nodes(evidence.levels, statistic, stops)
    is_terminated = options.termination and bool(ends_here[decided_at[evidence.cell_nodes]].any())
    return PaperPruned(
        pruned=Pruned(theta=theta[decided_at], variance=variance[decided_at], decided_at=decided_at),
        is_terminated=is_terminated,
    )


def _over(numerator: Floats, denominator: Floats) -> Floats:
    """The quotient, 0 where the denominator is."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
