"""Fit a function of public features to noisy reports, first a shrunken line, then honest trees on the rest.

The reports are unbiased and far noisier than what they are about, so everything is shrunk by what the noise, whose variance
the reports themselves show, leaves of it. What a fitted function is, as a value, is in `surface`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ldptree.families.public_features.allocation import shuffle_holders
from ldptree.models.surface import Surface, Tree
from ldptree.partition.cart import grow_cart
from ldptree.partition.label_unit import unit_of
from ldptree.rounding import round_digits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.partition.tree import Partition

    Floats = NDArray[np.float64]

TREES = 20
_DEPTH = 6
_FEWEST = 10
# a leaf's mean is noisy by about this share of the label's variance
_LEAF_NOISE = 0.1
# prior variances of a slope that are tried, in units of its noise with one report
_PRIORS = np.concatenate([[0.0], np.geomspace(1e-5, 10.0, 61)])


def fit_surface(
    rows: Floats,
    features: tuple[int, ...],
    reports: Floats,
    *,
    spread: float,
    seed: int,
    level: float | None = None,
) -> Surface:
    """The surface of E[report | features].

    Args:
        rows: float64 [m, d] in [0, 1], NaN where a feature is not shown.
        features: the columns to use.
        reports: float64 [m], unbiased.
        spread: the label's variance, which the size of leaves goes by; no part of a surface is expected to have more.
        seed: public coins, which halve the holders for each tree.
        level: what their mean is by all that is known; None: what it is by reports.
    """
    level = float(round_digits(reports.mean() if level is None else level))
    own = rows[:, list(features)]
    is_shown = ~np.isnan(own)
    stand_ins = np.where(is_shown, own, 0.0).sum(axis=0) / np.maximum(is_shown.sum(axis=0), 1)
    line = Surface(features, stand_ins, level, np.zeros(len(features)))
    if not features or reports.size < 2 * _FEWEST:
        return line
    own = line.columns(rows)
    slopes = round_digits(_slopes(own - stand_ins, reports - line.intercept, spread))
    line = Surface(features, stand_ins, line.intercept, slopes)
    left = reports - line(rows)
    noise = float(left.var())
    fewest = max(_FEWEST, int(noise / (_LEAF_NOISE * spread))) if spread > 0 else left.size
    narrow, unit = own.astype(np.float32), unit_of(reports)
    trees = tuple(_honest_tree(narrow, left, noise, fewest, seed ^ t, unit, spread) for t in range(TREES))
    return Surface(features, stand_ins, line.intercept, slopes, trees)


def _slopes(centred: Floats, reports: Floats, spread: float) -> Floats:
    """Ridge regression whose penalty maximises the marginal likelihood, float64 [k]; all slopes together explain `spread` at
    most, as expected.
    """
    noise = float(reports.var())
    scale = centred.std(axis=0)
    used = scale > 0
    if noise == 0 or not used.any():
        return np.zeros(scale.size)
    X = centred[:, used] / scale[used]
    powers, axes = np.linalg.eigh(X.T @ X)
    powers = np.maximum(powers, 1e-9 * powers.max())
    along = axes.T @ (X.T @ reports)
    priors = np.minimum(_PRIORS, spread / (noise * used.sum()))
    variance = noise * (powers + powers**2 * priors[:, None])
    likelihood = -(np.log(variance) + along**2 / variance).sum(axis=1)
    prior = priors[int(np.argmax(likelihood))]
    slopes = np.zeros(scale.size)
    slopes[used] = axes @ (along * prior / (1 + prior * powers)) / scale[used]
    return slopes


def _honest_tree(
    X: NDArray[np.float32],
    left: Floats,
    noise: float,
    fewest: int,
    seed: int,
    unit: float,
    spread: float,
) -> Tree:
    """CART on one half of the holders, values from the other half."""
    places = shuffle_holders(seed, left.size)
    growing, judging = places[: left.size // 2], places[left.size // 2 :]
    tree = grow_cart(
        X[growing],
        left[growing] / unit,
        depth=_DEPTH,
        n_classes=0,
        criterion="variance",
        min_samples_leaf=fewest,
    )
    counts, sums = _node_sums(tree, tree.apply(X[judging]), left[judging])
    return Tree(tree, round_digits(_shrunken(tree, counts, sums, noise, spread)[tree.leaves]))


def _node_sums(tree: Partition, cells: NDArray[np.int32], left: Floats) -> tuple[Floats, Floats]:
    """Count the judging holders of each node, and sum the rest of their reports, float64 [nodes] each."""
    counts, sums = np.zeros(tree.n_nodes), np.zeros(tree.n_nodes)
    counts[tree.leaves] = np.bincount(cells, minlength=tree.n_leaves)
    sums[tree.leaves] = np.bincount(cells, left, minlength=tree.n_leaves)
    for node in range(tree.n_nodes - 1, 0, -1):
        counts[tree.parent[node]] += counts[node]
        sums[tree.parent[node]] += sums[node]
    return counts, sums


def _shrunken(tree: Partition, counts: Floats, sums: Floats, noise: float, spread: float) -> Floats:
    """Return the values of all nodes, with a split's difference shrunk by tau^2/(tau^2 + noise), tau^2 estimated at
    each depth. Halves that differ by tau vary by tau^2/4, which is `spread` at most.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        means = sums / counts
        inner = np.flatnonzero(tree.feature >= 0)
        low, high = tree.left[inner], tree.right[inner]
        known = (counts[low] > 0) & (counts[high] > 0)
    inner, low, high = inner[known], low[known], high[known]
    gap, variance = means[low] - means[high], noise / counts[low] + noise / counts[high]
    values = np.zeros(tree.n_nodes)
    for depth in range(tree.max_depth):
        at = tree.depth[inner] == depth
        if not at.any():
            continue
        weight = variance[at] ** -2
        tau2 = max(0.0, float(weight @ (gap[at] ** 2 - variance[at]) / weight.sum()))
        tau2 = min(tau2, 4 * spread)
        kept = gap[at] * tau2 / (tau2 + variance[at])
        share = counts[high[at]] / counts[inner[at]]
        values[low[at]], values[high[at]] = kept * share, -kept * (1 - share)
    for node in range(1, tree.n_nodes):
        values[node] += values[tree.parent[node]]
    return values
