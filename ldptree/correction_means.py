"""How sure the average of corrections over several cells is: cells lean on each other, so their errors do not average out.

What lives here: that one variance. What does not: the corrections themselves (`correction`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ldptree.tree_gaussian import Levels, variance_of_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.correction import Corrections
    from ldptree.correction_plan import Plan

    Floats = NDArray[np.float64]


def sd_of_means(plan: Plan, found: Corrections, weights: Floats) -> Floats:
    """Posterior standard deviations of weighted means of the corrections, float64 [K, M].

    In `correction.correct`, cell j's error is w_j (its reports' error) + (1 - w_j) (the error of D_j), w_j = V_j / (V_j + E_j);
    the first parts are independent of each other, the second ones have the covariance of the Gaussian process on the tree.

    Args:
        plan: the question that was answered.
        found: the corrections.
        weights: float64 [K, L], one mean a row.
    """
    tree, at = Levels.of(plan.partition.parent), plan.partition.leaves
    made = np.empty((len(weights), len(found.priors)))
    for output, prior in enumerate(found.priors):
        own, noise = plan.own_variance[:, output], found.noise_sd[:, output] ** 2
        trust = np.where(np.isinf(noise), 0.0, own / np.where(own > 0, own + noise, 1.0))
        left = np.where(trust > 0, trust * np.minimum(noise, 1e300), own)
        variance = np.full(tree.n_nodes, np.inf)
        variance[at] = (noise + own) / plan.scale**2
        innovation = prior.innovation(tree.max_depth)
        for row, weight in enumerate(weights):
            of_nodes = np.zeros(tree.n_nodes)
            of_nodes[at] = weight * (1.0 - trust)
            shared = variance_of_sum(tree, variance, innovation, of_nodes) if innovation.any() else 0.0
            made[row, output] = np.sqrt(weight**2 @ left + max(shared, 0.0) * plan.scale**2)
    return made
