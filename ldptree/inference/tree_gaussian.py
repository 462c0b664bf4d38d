"""Exact Gaussian inference on a tree, in one pass up and one pass down.

What lives here: the model `root ~ N(0, t_0)`, `child = parent + N(0, t_k)` for a child at depth k, noisy
observations at any node, and its posterior, its likelihood and its EM fit. What does not: what the values
mean (`weighting` passes discrepancies of margins, `pruning` margins themselves).

A subtree's likelihood as a function of its top value x is kept as exp(scale + pull x - precision x^2 / 2).
In this form passing it over an innovation of variance t divides by 1 + t precision only, so t = 0 (the
child equals its parent) and precision = 0 (nothing observed below) need no special case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

NOTHING = 1e12
"""The noise variance of an observation that says nothing of a value of order one."""

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Nodes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Levels:
    """A tree's nodes in breadth-first order, children of one parent side by side.

    Attributes:
        order: [nodes] node ids, level by level; `starts[k]` to `starts[k + 1]` is depth k.
        starts: [max_depth + 2] offsets into `order`.
        above: [nodes] position in `order` of each position's parent; -1 for the root.
        families: for each depth k >= 1, the positions (from the level's start) where a new parent's
            children begin.
        parents: for each depth k >= 1, the position in `order` of the parent of each such family.
    """

    order: Nodes
    starts: Nodes
    above: Nodes
    families: tuple[Nodes, ...]
    parents: tuple[Nodes, ...]

    @classmethod
    def of(cls, parent: NDArray[np.integer]) -> Levels:
        """Read the levels off `parent` [nodes], the id of each node's parent, -1 at the one root.

        Raises:
            ValueError: no root, several roots, or nodes that no path joins to the root.
        """
        above_id = np.asarray(parent, dtype=np.int64)
        roots = np.flatnonzero(above_id < 0)
        if roots.size != 1:
            raise ValueError(f"a tree has one node with parent -1, got {roots.size}")
        by_parent = np.argsort(above_id, kind="stable")
        n_children = np.bincount(above_id[above_id >= 0], minlength=above_id.size)
        first_child = np.concatenate([[1], 1 + np.cumsum(n_children)])[:-1]
        levels, families, parents = [roots], [], []
        starts, above = [0, 1], [np.array([-1])]
        while True:
            here = levels[-1]
            inner = np.flatnonzero(n_children[here])
            if inner.size == 0:
                break
            sizes = n_children[here[inner]]
            begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
            offsets = np.arange(sizes.sum()) - np.repeat(begins, sizes)
            levels.append(by_parent[np.repeat(first_child[here[inner]], sizes) + offsets])
            families.append(begins)
            parents.append(starts[-2] + inner)
            above.append(np.repeat(parents[-1], sizes))
            starts.append(starts[-1] + levels[-1].size)
        if starts[-1] != above_id.size:
            raise ValueError(
                f"{above_id.size - starts[-1]} of {above_id.size} nodes are not joined to the root"
            )
        return cls(
            order=np.concatenate(levels),
            starts=np.array(starts),
            above=np.concatenate(above),
            families=tuple(families),
            parents=tuple(parents),
        )

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.order.size)

    @property
    def max_depth(self) -> int:
        """Depth of the deepest node; a root alone has 0."""
        return len(self.families)

    @property
    def depth_of_nodes(self) -> Nodes:
        """[nodes] depth of each node, by id."""
        depth = np.empty(self.n_nodes, dtype=np.int64)
        depth[self.order] = np.repeat(np.arange(self.max_depth + 1), np.diff(self.starts))
        return depth

    def level(self, depth: int) -> slice:
        """The positions in `order` of the nodes at `depth`."""
        return slice(int(self.starts[depth]), int(self.starts[depth + 1]))


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior after the observations; all with the leading axes of what was observed.

    Attributes:
        mean: [nodes] posterior mean of each node's value.
        variance: [nodes] posterior variance of each node's value.
        log_likelihood: [] natural logarithm of the density of the observations, the values integrated out.
        innovation: [max_depth + 1] expected squared step from parent to child at each depth (depth 0: the
            root's expected square), averaged over the nodes of that depth: the EM update of the innovation
            variances.
    """

    mean: Floats
    variance: Floats
    log_likelihood: Floats
    innovation: Floats


@dataclass(frozen=True, eq=False)
class _Upward:
    """Each position's subtree likelihood before its own innovation, and the log likelihood of everything."""

    precision: Floats
    pull: Floats
    log_likelihood: Floats


def _upward(levels: Levels, observed: Floats, variance: Floats, innovation: Floats) -> _Upward:
    seen = variance[..., levels.order]
    is_observed = np.isfinite(seen)
    values = np.where(is_observed, observed[..., levels.order], 0.0)
    precision = np.where(is_observed, 1.0 / seen, 0.0)
    pull = precision * values
    scale = -0.5 * np.sum(pull * values - np.log(np.where(is_observed, precision, 1.0)), axis=-1)
    scale = scale - 0.5 * np.log(2.0 * np.pi) * is_observed.sum(axis=-1)
    for depth in range(levels.max_depth, 0, -1):
        here = levels.level(depth)
        t = innovation[..., depth, None]
        shrink = 1.0 / (1.0 + t * precision[..., here])
        scale = scale + 0.5 * np.sum(np.log(shrink) + t * pull[..., here] ** 2 * shrink, axis=-1)
        families, parents = levels.families[depth - 1], levels.parents[depth - 1]
        precision[..., parents] += np.add.reduceat(precision[..., here] * shrink, families, axis=-1)
        pull[..., parents] += np.add.reduceat(pull[..., here] * shrink, families, axis=-1)
    shrink_root = 1.0 / (1.0 + innovation[..., 0] * precision[..., 0])
    scale = scale + 0.5 * (np.log(shrink_root) + innovation[..., 0] * pull[..., 0] ** 2 * shrink_root)
    return _Upward(precision, pull, scale)


def log_likelihoods(levels: Levels, observed: Floats, variance: Floats, innovations: Floats) -> Floats:
    """[k] log densities of the observations under each of some innovation variances; O(nodes) each, the upward pass alone.

    Args:
        levels: the tree.
        observed: [nodes] observed values; ignored where `variance` is infinite.
        variance: [nodes] positive noise variances; infinite = no observation at this node.
        innovations: [k, max_depth + 1] variances t_0 (of the root), t_1, ..., each >= 0.
    """
    shape = (len(innovations), levels.n_nodes)
    seen, noise = np.broadcast_to(observed, shape), np.broadcast_to(variance, shape)
    return _upward(levels, seen, noise, innovations).log_likelihood


def posterior(levels: Levels, observed: Floats, variance: Floats, innovation: Floats) -> Posterior:
    """Posterior mean and variance at every node, exactly, in O(nodes).

    `observed` and `variance` are as for `log_likelihoods`, `innovation` is one of its rows; all may have leading axes, the same
    ones, for several sets of observations at once.

    Given its parent's value x, a node with subtree likelihood (precision, pull) and innovation t has mean
    (x + t pull) / (1 + t precision) and variance t / (1 + t precision), whatever is observed elsewhere; the
    parent's posterior enters through x.
    """
    up = _upward(levels, observed, variance, innovation)
    mean, spread = np.zeros_like(up.precision), np.zeros_like(up.precision)
    steps = np.zeros(innovation.shape)
    nowhere = np.zeros((*up.precision.shape[:-1], 1))
    for depth in range(levels.max_depth + 1):
        here, t = levels.level(depth), innovation[..., depth, None]
        shrink = 1.0 / (1.0 + t * up.precision[..., here])
        from_mean = mean[..., levels.above[here]] if depth else nowhere
        from_variance = spread[..., levels.above[here]] if depth else nowhere
        mean[..., here] = (from_mean + t * up.pull[..., here]) * shrink
        spread[..., here] = from_variance * shrink**2 + t * shrink
        lost = 1.0 - shrink
        steps[..., depth] = np.mean(
            (mean[..., here] - from_mean) ** 2 + lost**2 * from_variance + t * shrink, axis=-1
        )
    by_node_mean, by_node_variance = np.empty_like(mean), np.empty_like(spread)
    by_node_mean[..., levels.order], by_node_variance[..., levels.order] = mean, spread
    return Posterior(by_node_mean, by_node_variance, up.log_likelihood, steps)


def variances_of_sums(levels: Levels, variance: Floats, innovation: Floats, weights: Floats) -> Floats:
    """[k] posterior variances of sum_i weights[j, i] (value of node i), exactly, in O(nodes) each.

    The posterior mean is S (y / V) for observations y with noise variances V and posterior covariance S: what it would be for
    y = V weights is S weights.

    Args:
        levels: the tree.
        variance: [nodes] noise variances of what is observed, infinite where nothing is; as for `posterior`.
        innovation: [max_depth + 1] as for `posterior`.
        weights: [k, nodes].
    """
    # A node that nothing is observed at is given an observation that says nothing.
    known = np.broadcast_to(np.where(np.isfinite(variance), variance, NOTHING), weights.shape)
    steps = np.broadcast_to(innovation, (len(weights), innovation.size))
    means = np.ascontiguousarray(posterior(levels, known * weights, known, steps).mean)
    return np.array([weight @ mean for weight, mean in zip(weights, means, strict=True)])


def variance_of_sum(levels: Levels, variance: Floats, innovation: Floats, weights: Floats) -> float:
    """The same of one sum, whose weights are [nodes]."""
    return float(variances_of_sums(levels, variance, innovation, weights[None])[0])


def fit_innovations(
    levels: Levels,
    observed: Floats,
    variance: Floats,
    *,
    root: float,
    start: float,
    rounds: int,
    floor: float,
) -> Floats:
    """One innovation variance per depth by expectation maximisation (Dempster, Laird, Rubin 1977).

    The root's variance stays at `root`: one value tells nothing about its own variance. The others begin at
    `start` and are kept at `floor` or above, since EM never leaves 0. Several sets of observations as for `posterior`.

    Returns:
        [max_depth + 1] variances, `root` first.
    """
    innovation = np.full((*observed.shape[:-1], levels.max_depth + 1), start)
    innovation[..., 0] = root
    for _ in range(rounds):
        fitted = posterior(levels, observed, variance, innovation).innovation
        innovation[..., 1:] = np.maximum(fitted[..., 1:], floor)
    return innovation
