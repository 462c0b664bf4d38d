"""Exact averaging over every pruning of a tree: cells that are alike, found and pooled, the others left apart.

What lives here: the model "each node is whole with probability 1 - split, or parted into its children; the cells below a
whole node share one value, N(0, spread)", its posterior and its likelihood, in one pass up and one down (context-tree
weighting, Willems, Shtarkov, Tjalkens 1995, with Gaussian leaves). What does not: what the values mean (`pruning` passes
margins), and the model in which a child lies near its parent (`tree_gaussian`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.inference.tree_gaussian import Levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AveragedPrunings:
    """What is believed after the observations; an inner node's value is the average of the cells below it, by mass.

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
