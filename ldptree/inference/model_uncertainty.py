"""Add variance for the choice of a discrepancy, as other processes may also fit the totals.

`weighting.weigh_by_likelihood` takes one process, and D for exactly 0 until the totals speak against it. That choice is slow to
believe in a difference; it is no knowledge that there is none. Here every process of the grid counts by its likelihood, and the
distance of its answer from the chosen one is in the variance, so that an interval holds a difference that the noise hides.

The same for a public model that is corrected is in `families.corrections`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.inference.discrepancy import ROOT_GRID
from ldptree.inference.pruning import smooth_tree, smooth_values
from ldptree.inference.weighting import likely_priors, weigh_under

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ldptree.inference.pruning import Pruned
    from ldptree.inference.weighting import Evidence, Weighted

    Floats = NDArray[np.float64]


VALUES_AT_ONCE = 2**20
"""Most nodes times processes at a time, as more only fill the memory."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelUncertainty:
    """Mean squared distances from what is said, over all processes and what each leaves open.

    Attributes:
        of_nodes: [nodes] of the pruned theta.
        of_mean: of D averaged over the private people of all cells.
    """

    of_nodes: Floats
    of_mean: float


def model_uncertainty(
    evidence: Evidence,
    weighted: Weighted,
    pruned: Pruned,
    rule: Callable[[Evidence, Weighted], Pruned],
    roots: Sequence[float] = ROOT_GRID,
) -> ModelUncertainty:
    """Return the standard errors of theta and of the mean discrepancy, as the root of each says.

    Without public rows, or with a fixed lam, there is no discrepancy to doubt, and it is what was found alone.

    Args:
        evidence: that it was learned from.
        weighted: what was made of it.
        pruned: that, pruned by `rule`.
        rule: one of `pruning`'s.
        roots: the same that the process was chosen from.
    """
    if weighted.lam is not None or not evidence.public_mass.any():
        return ModelUncertainty(of_nodes=pruned.variance, of_mean=weighted.mean_discrepancy_variance)
    priors = likely_priors(evidence, roots)
    of_nodes, of_mean = np.zeros_like(pruned.theta), 0.0
    at_once = max(1, VALUES_AT_ONCE // pruned.theta.size)
    for start in range(0, len(priors), at_once):
        some = priors[start : start + at_once]
        shares, others = (
            np.array([share for _, share in some]),
            [weigh_under(evidence, prior) for prior, _ in some],
        )
        theta, spread = _pruned(evidence, others, rule)
        of_nodes += shares @ (spread + (theta - pruned.theta) ** 2)
        means = np.array([other.mean_discrepancy for other in others])
        known = np.array([max(other.mean_discrepancy_variance, 0.0) for other in others])
        of_mean += float(shares @ (known + (means - weighted.mean_discrepancy) ** 2))
    return ModelUncertainty(of_nodes=of_nodes, of_mean=of_mean)


def _pruned(
    evidence: Evidence, weighted: Sequence[Weighted], rule: Callable[[Evidence, Weighted], Pruned]
) -> tuple[Floats, Floats]:
    """Theta and its variance by each of them, both [weighted, nodes]."""
    if rule is smooth_tree:  # all at once
        thetas, variances = (
            np.stack([tree.theta for tree in weighted]),
            np.stack([tree.variance for tree in weighted]),
        )
        return smooth_values(evidence, thetas, variances)
    pruned = [rule(evidence, tree) for tree in weighted]
    return np.stack([tree.theta for tree in pruned]), np.stack([tree.variance for tree in pruned])
