"""Prune and smooth by letting cells draw strength from neighbours on the tree, which decides a tree's depth.

What lives here: from a margin per node (`weighting`) to the margin that decides each node, by soft pruning
("smooth"), by walking towards the root until the evidence suffices ("variance", "fallback"), or not at all ("none").
What does not: growing a tree, the choice of a class, and the model in which a child lies near its parent (`tree_gaussian`).

A rule is one function and one line in `PRUNINGS`. All are post-processing of private totals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.inference.tree_gaussian import fit_innovations, posterior

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.inference.tree_gaussian import Levels
    from ldptree.inference.weighting import Evidence, Weighted

    Floats = NDArray[np.float64]

BOUND = 2.0
"""The constant c of the rule "variance"; why this value, see `prune_by_variance`."""

STRONG = 3.0
"""How many standard deviations of its noise a count must be for `fall_back` to divide by it."""

ROOT_VARIANCE = 0.05
START_VARIANCE = 0.02
ROUNDS = 15
FLOOR = 1e-5

SPREADS = (0.01, 0.03, 0.06, 0.1)
"""Prior variances of a whole node's margin; equally likely."""
SPLIT = 0.8
"""Prior probability that a node is parted (.5 loses up to .03 to it at the automatic depth, .95 what a deep tree needs)."""
NATS_FOR_NEAR = 2.0
"""What the first model of `smooth_tree` is ahead of the second by, in log likelihood, before any report."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Pruned:
    """The margin that decides each node.

    Attributes:
        theta: [nodes] margin per person.
        variance: [nodes] its variance; infinite where there is no evidence.
        decided_at: [nodes] the node whose evidence decides: itself, or an ancestor under the rule "variance".
    """

    theta: Floats
    variance: Floats
    decided_at: NDArray[np.int64]


def prune_nothing(_: Evidence, weighted: Weighted) -> Pruned:
    """Each node stands on its own totals."""
    return Pruned(theta=weighted.theta, variance=weighted.variance, decided_at=np.arange(weighted.theta.size))


def smooth_tree(evidence: Evidence, weighted: Weighted) -> Pruned:
    """Prune softly by averaging two models of how theta varies over the tree by their likelihoods.

    1. A child lies near its parent: a Gaussian process on the tree, one innovation variance per depth, fitted by EM to
       the cells (root 0.05, start 0.02, 15 rounds, floor 1e-5). Depths at which the totals show nothing but noise get a
       small variance and their cells fall back to the parent, which makes a too deep tree nearly harmless: at depth 8 on
       the LPCT synthetic pair (gamma 0.5, eps 2, 16 runs) accuracy goes from 0.565 to 0.660.
    2. Cells are alike below some nodes, and apart from there on: all prunings averaged (`average_prunings`). It is the one
       for sharp borders and for children of opposite sign, which the first draws together.

    The second model alone loses up to .013 where margins lean one way (white wine); the average, with 2 nats for the
    first, loses nowhere more than .001 to the first alone and gains .004 at eps 8 and .01 on a tree that is too deep
    (LPCT synthetic pairs, 40 runs).
    """
    theta, spread = smooth_values(evidence, weighted.theta, weighted.variance)
    return Pruned(theta=theta, variance=spread, decided_at=np.arange(theta.size))


def smooth_values(evidence: Evidence, theta: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Smooth margins [nodes] and their variances as `smooth_tree` does, and return the same two. Both may have a leading axis."""
    at = evidence.cell_nodes
    observed, variance = np.full_like(theta, np.nan), np.full_like(theta, np.inf)
    observed[..., at], variance[..., at] = theta[..., at], spread[..., at]
    innovation = fit_innovations(
        evidence.levels,
        observed,
        variance,
        root=ROOT_VARIANCE,
        start=START_VARIANCE,
        rounds=ROUNDS,
        floor=FLOOR,
    )
    near = posterior(evidence.levels, observed, variance, innovation)
    alike = [
        average_prunings(
            evidence.levels, observed, variance, evidence.private_mass, spread=spread, split=SPLIT
        )
        for spread in SPREADS
    ]
    log_odds = np.stack(
        [near.log_likelihood + NATS_FOR_NEAR, *(a.log_likelihood - math.log(len(alike)) for a in alike)],
        axis=-1,
    )
    weights = np.exp(log_odds - log_odds.max(axis=-1, keepdims=True))
    weights = (weights / weights.sum(axis=-1, keepdims=True))[..., None, :]
    means = np.stack([near.mean, *(a.mean for a in alike)], axis=-2)
    squares = np.stack([near.variance, *(a.variance for a in alike)], axis=-2) + means**2
    mean = (weights @ means)[..., 0, :]
    return mean, np.maximum((weights @ squares)[..., 0, :] - mean**2, 0.0)


@dataclass(frozen=True, eq=False)
class AveragedPrunings:
    """The posterior after the observations; an inner node's value is the average of the cells below it, by mass.

    Attributes:
        mean: [nodes] posterior mean of each node's value.
        variance: [nodes] posterior variance of each node's value.
        log_likelihood: [] natural logarithm of the density of the observations, prunings and values summed out.
    """

    mean: Floats
    variance: Floats
    log_likelihood: Floats


def average_prunings(
    levels: Levels, observed: Floats, variance: Floats, mass: Floats, *, spread: float, split: float
) -> AveragedPrunings:
    """Posterior of every node's value, all prunings averaged by their posterior probability; O(nodes).

    The model: each node is whole with probability 1 - split, or parted into its children; the cells below a whole node share one
    value, N(0, spread). One pass up and one down (context-tree weighting; Willems, Shtarkov, Tjalkens 1995; Gaussian leaves).

    `observed` and `variance` may have leading axes, the same ones, for several sets of observations at once; then so has all that
    is found.

    Args:
        levels: the tree.
        observed: [nodes] observed values of the cells, ignored where `variance` is infinite.
        variance: [nodes] positive noise variances; infinite = no observation, as at every inner node.
        mass: [nodes] positive people below each node.
        spread: prior variance of a whole node's value.
        split: prior probability, inside (0, 1), that an inner node is parted.
    """
    order, depths = levels.order, range(1, levels.max_depth + 1)
    known = variance[..., order]
    is_seen = np.isfinite(known)
    values = np.where(is_seen, observed[..., order], 0.0)
    precision = np.where(is_seen, 1.0 / known, 0.0)
    pull = precision * values
    # densities of the observations around 0; a common value changes them by `gain`
    around_0 = -0.5 * (
        np.sum(pull * values - np.log(np.where(is_seen, precision, 1.0)), axis=-1)
        + math.log(2.0 * math.pi) * is_seen.sum(axis=-1)
    )
    for depth in reversed(depths):
        _add_up(levels, depth, precision)
        _add_up(levels, depth, pull)
    shrink = 1.0 / (1.0 + spread * precision)
    gain = 0.5 * (np.log(shrink) + spread * pull**2 * shrink)
    whole_mean, whole_variance = spread * pull * shrink, spread * shrink

    # upward: log likelihood of the cells below, chance to be whole, and average of the cells below, once the node is reached
    fit, whole = gain.copy(), np.ones_like(gain)
    mean, square = whole_mean.copy(), whole_variance + whole_mean**2
    share = np.ones(levels.n_nodes)
    share[1:] = mass[order[1:]] / mass[order[levels.above[1:]]]
    for depth in reversed(depths):
        here, at = levels.level(depth), levels.parents[depth - 1]
        families, part = levels.families[depth - 1], share[here]
        as_whole = math.log1p(-split) + gain[..., at]
        fit[..., at] = np.logaddexp(
            as_whole, math.log(split) + np.add.reduceat(fit[..., here], families, axis=-1)
        )
        whole[..., at] = np.exp(as_whole - fit[..., at])
        parted_mean = np.add.reduceat(part * mean[..., here], families, axis=-1)
        spread_of_parts = np.add.reduceat(
            part**2 * (square[..., here] - mean[..., here] ** 2), families, axis=-1
        )
        mean[..., at] = whole[..., at] * whole_mean[..., at] + (1.0 - whole[..., at]) * parted_mean
        square[..., at] = whole[..., at] * square[..., at] + (1.0 - whole[..., at]) * (
            spread_of_parts + parted_mean**2
        )

    # downward: the chance that no ancestor is whole, and what those that are contribute
    reached, above_mean, above_square = (
        np.ones_like(gain),
        np.zeros_like(gain),
        np.zeros_like(gain),
    )
    for depth in depths:
        here = levels.level(depth)
        up = levels.above[here]
        stopped = reached[..., up] * whole[..., up]
        reached[..., here] = reached[..., up] - stopped
        above_mean[..., here] = above_mean[..., up] + stopped * whole_mean[..., up]
        above_square[..., here] = above_square[..., up] + stopped * (
            whole_variance[..., up] + whole_mean[..., up] ** 2
        )
    mean = above_mean + reached * mean
    square = above_square + reached * square
    by_node_mean, by_node_variance = np.empty_like(mean), np.empty_like(mean)
    by_node_mean[..., order], by_node_variance[..., order] = mean, np.maximum(square - mean**2, 0.0)
    return AveragedPrunings(by_node_mean, by_node_variance, around_0 + fit[..., 0])


def _add_up(levels: Levels, depth: int, values: Floats) -> None:
    """Add each family at this depth to its parent, in the order of the levels."""
    sums = np.add.reduceat(values[..., levels.level(depth)], levels.families[depth - 1], axis=-1)
    values[..., levels.parents[depth - 1]] += sums


def prune_by_variance(evidence: Evidence, weighted: Weighted, bound: float = BOUND) -> Pruned:
    """Walk from each node to the root; stop where the statistic reaches sqrt(c), else take the best node.

    With s = A~ / sqrt(noise + w/4) and t = A^Q / sqrt(U^Q / 4), the lam that is best for a node (LPCT eq.
    16) gives the statistic sqrt(s^2 + t^2) where s and t agree in sign and max(|s|, |t|) where they do not
    (LPCT appendix A.2, written without dividing by noisy counts). That lam also gives the node's theta
    (LPCT eq. 8). So the rule chooses lam by itself; lam = 0 and infinity still leave out one of the
    sources, and a learned discrepancy is added to the public margins, its uncertainty to their variance.

    c = 2 was chosen on the LPCT synthetic pairs (gamma 0.5 with 50 public rows, gamma 5 with 1,000; 10,000
    private rows, joint oue at eps 0.5, 1, 2, 4, 8; automatic depth, 6 and 8; lam "auto", 40 runs each). Mean
    accuracy over all of these for c = 0, 0.5, 1, 2, 3, 4, 6, 9, 16: .662 .672 .675 .679 .677 .672 .663 .653
    .645. c = 0 (the cell decides) is best at the automatic depth (.706 against .692) and worst on a tree that
    is too deep (depth 8: .609 against .661), and too deep a tree is what pruning is for.
    """
    spread, lam = evidence.label_variance, weighted.lam
    private_variance = evidence.private_noise + spread * evidence.private_mass
    public_margin = evidence.public_margin + weighted.shift * evidence.public_mass
    public_variance = (
        evidence.public_variance * evidence.public_mass + weighted.shift_variance * evidence.public_mass**2
    )
    s = evidence.private_margin / np.sqrt(private_variance)
    t = np.divide(
        public_margin, np.sqrt(public_variance), out=np.zeros_like(public_margin), where=public_variance > 0
    )
    s = np.zeros_like(s) if lam is not None and math.isinf(lam) else s
    t = np.zeros_like(t) if lam == 0 else t
    agree = s * t > 0
    statistic = np.where(agree, np.hypot(s, t), np.maximum(np.abs(s), np.abs(t)))
    use_private = np.where(agree | (np.abs(s) >= np.abs(t)), 1.0, 0.0)
    # lam = (A^Q / var^Q) / (A~ / var^P), multiplied out so that neither weight is infinite.
    private_weight = np.where(agree, np.abs(s) / np.sqrt(private_variance), use_private)
    public_weight = np.where(
        agree, np.abs(t) / np.sqrt(np.where(public_variance > 0, public_variance, 1.0)), 1.0 - use_private
    )
    mass = private_weight * evidence.private_mass + public_weight * evidence.public_mass
    margin = private_weight * evidence.private_margin + public_weight * public_margin
    noise = private_weight**2 * private_variance + public_weight**2 * public_variance
    is_seen = (mass > 0) & (statistic > 0)
    safe = np.where(is_seen, mass, 1.0)
    theta = np.where(is_seen, margin / safe, 0.0)
    theta_variance = np.where(is_seen, noise / safe**2, np.inf)
    decided_at = find_deciding_nodes(evidence.levels, statistic, statistic >= math.sqrt(bound))
    return Pruned(theta=theta[decided_at], variance=theta_variance[decided_at], decided_at=decided_at)


def fall_back(evidence: Evidence, weighted: Weighted) -> Pruned:
    """Let a cell weaker than one honest label fall back along its ancestors, for a label that is a number.

    A node is strong enough where the variance of its theta is at most that of one person's label, and, with a fixed lam, where
    the people it divides by are `STRONG` standard deviations of their noise: so it never divides by noise, as the papers'
    ratio does. If no ancestor is, the one with the smallest variance decides.
    """
    is_strong = weighted.variance <= evidence.label_variance
    if weighted.lam is not None and not math.isinf(weighted.lam):
        people = evidence.private_count + weighted.lam * evidence.public_mass
        is_strong &= people >= STRONG * np.sqrt(evidence.count_noise)
    decided_at = find_deciding_nodes(evidence.levels, -weighted.variance, is_strong)
    return Pruned(
        theta=weighted.theta[decided_at], variance=weighted.variance[decided_at], decided_at=decided_at
    )


def find_deciding_nodes(levels: Levels, statistic: Floats, stops: NDArray[np.bool_]) -> NDArray[np.int64]:
    """[nodes] the first node towards the root that `stops`, or else the one with the largest statistic."""
    decided = np.empty(levels.n_nodes, dtype=np.int64)
    decided[0] = 0
    # Breadth first, the parent is settled before its children walk on to what it settled on.
    for depth in range(1, levels.max_depth + 1):
        here = levels.level(depth)
        up = decided[levels.above[here]]
        mine, above = levels.order[here], levels.order[up]
        is_mine = stops[mine] | (~stops[above] & (statistic[mine] >= statistic[above]))
        decided[here] = np.where(is_mine, np.arange(here.start, here.stop), up)
    by_node = np.empty_like(decided)
    by_node[levels.order] = levels.order[decided]
    return by_node


PRUNINGS: dict[str, Callable[[Evidence, Weighted], Pruned]] = {
    "smooth": smooth_tree,
    "variance": prune_by_variance,
    "none": prune_nothing,
}
NUMBER_PRUNINGS: dict[str, Callable[[Evidence, Weighted], Pruned]] = {
    "smooth": smooth_tree,
    "fallback": fall_back,
    "none": prune_nothing,
}
"""Prunings for a label that is a number, without "variance", whose statistics are about a sign."""
