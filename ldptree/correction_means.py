"""How sure corrections are: of one cell, and of an average over several; cells lean on each other, so errors do not average out.

What lives here: these standard deviations. What does not: the corrections themselves (`correction`), which are chosen to be slow
to believe that cells differ. The sd is no part of that choice: every discrepancy process of the grid speaks by its likelihood,
and a public model that does not know its own doubt is believed no more than the mean of a cell's public labels (`Plan.doubt`).

In cell j the mean residual is mu_j = D_j + N(0, V_j), seen with N(0, E_j). Given a process, mu_j has mean D_j + w_j (d_j - D_j)
and variance w_j E_j + (1 - w_j)^2 var(D_j), w_j = V_j / (V_j + E_j); its distance from the correction is averaged over processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.tree_gaussian import Levels, posterior, variance_of_sum
from ldptree.weighting import likely_discrepancies

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.correction import Corrections
    from ldptree.correction_plan import Plan

    Floats = NDArray[np.float64]

ROOTS = (0.0, 0.0005, 0.002, 0.01, 0.05)
"""What the variance of the discrepancy at the root may be, in squares of the label's scale."""


def on_nodes(plan: Plan, mean: Floats, variance: Floats) -> tuple[Levels, Floats, Floats]:
    """The collection tree, and what was seen of its nodes with which variance, in the label's scale; mean, variance [L]."""
    tree, at = Levels.of(plan.partition.parent), plan.partition.leaves
    values, of_nodes = np.full(tree.n_nodes, np.nan), np.full(tree.n_nodes, np.inf)
    values[at], of_nodes[at] = mean / plan.scale, variance / plan.scale**2
    return tree, values, of_nodes


@dataclass(frozen=True, eq=False)
class _Belief:
    """Under one process: its share of the likelihood, the mean of mu and the variance of D (float64 [L]), its innovation."""

    share: float
    mean: Floats
    variance: Floats
    innovation: Floats


@dataclass(frozen=True, eq=False)
class _Seen:
    """One output's reports beside the plan's doubt; trust is w, left is w E."""

    plan: Plan
    mean: Floats
    trust: Floats
    left: Floats
    variance: Floats

    @classmethod
    def of(cls, plan: Plan, output: int, mean: Floats, noise: Floats) -> _Seen:
        doubt = plan.doubt[:, output]
        trust = np.where(np.isinf(noise), 0.0, doubt / np.where(doubt > 0, doubt + noise, 1.0))
        left = np.where(np.isinf(noise), doubt, trust * np.where(np.isinf(noise), 0.0, noise))
        return cls(plan, np.where(np.isinf(noise), 0.0, mean), trust, left, noise + doubt)

    def beliefs(self) -> Iterator[_Belief]:
        tree, values, variance = on_nodes(self.plan, self.mean, self.variance)
        at, unit = self.plan.partition.leaves, self.plan.scale
        for prior, share in likely_discrepancies(tree, values, variance, ROOTS):
            innovation = prior.innovation(tree.max_depth)
            found = posterior(tree, values, variance, innovation)
            mean = found.mean[at] * unit
            yield _Belief(
                share, mean + self.trust * (self.mean - mean), found.variance[at] * unit**2, innovation
            )


def sd_of_cells(plan: Plan, output: int, mean: Floats, noise: Floats, correction: Floats) -> Floats:
    """How far the mean residual of each cell may be from its correction, float64 [L].

    Args:
        plan: the question that was answered.
        output: which output of the public model.
        mean, noise: float64 [L], what the reports say, and its variance; infinite where they say nothing.
        correction: float64 [L].
    """
    seen = _Seen.of(plan, output, mean, noise)
    found = np.zeros(len(mean))
    for belief in seen.beliefs():
        apart = belief.mean - correction
        found += belief.share * (seen.left + (1.0 - seen.trust) ** 2 * belief.variance + apart**2)
    return np.sqrt(found)


def sd_of_means(plan: Plan, found: Corrections, weights: Floats) -> Floats:
    """The same of weighted means of the corrections, float64 [K, M].

    Args:
        plan: the question that was answered.
        found: the corrections.
        weights: float64 [K, L], one mean a row.
    """
    made = np.empty((len(weights), len(found.priors)))
    for output in range(len(found.priors)):
        seen = _Seen.of(plan, output, found.observed[:, output], found.noise_sd[:, output] ** 2)
        tree, _, variance = on_nodes(plan, seen.mean, seen.variance)
        doubt = weights**2 @ seen.left
        for belief in seen.beliefs():
            apart = weights @ (belief.mean - found.correction[:, output])
            shared = np.zeros(len(weights))
            if belief.innovation.any():
                for row, weight in enumerate(weights * (1.0 - seen.trust)):
                    of_nodes = np.zeros(tree.n_nodes)
                    of_nodes[plan.partition.leaves] = weight
                    shared[row] = variance_of_sum(tree, variance, belief.innovation, of_nodes)
            doubt = doubt + belief.share * (np.maximum(shared, 0.0) * plan.scale**2 + apart**2)
        made[:, output] = np.sqrt(doubt)
    return made


def own_weights(plan: Plan, found: Corrections) -> Floats:
    """How far each correction moves with the mean of its own cell's reports, 0 to 1, float64 [L, M]."""
    at = plan.partition.leaves
    made = np.zeros_like(found.correction)
    for output, prior in enumerate(found.priors):
        own, noise = plan.own_variance[:, output], found.noise_sd[:, output] ** 2
        heard = np.isfinite(noise)
        trust = np.where(heard, own / np.where(heard & (own > 0), own + noise, 1.0), 0.0)
        tree, values, variance = on_nodes(plan, found.observed[:, output], noise + own)
        believed = posterior(tree, values, variance, prior.innovation(tree.max_depth)).variance[at]
        shared = np.where(heard, believed / np.where(heard, variance[at], 1.0), 0.0)
        made[:, output] = trust + (1.0 - trust) * shared
    return made
