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

from ldptree.families.correction_slope import chosen, leans, likely
from ldptree.inference.discrepancy import likely_discrepancies
from ldptree.inference.tree_gaussian import posterior, variance_of_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.families.correction_plan import Plan
    from ldptree.families.corrections import Corrections

    Floats = NDArray[np.float64]

ROOTS = (0.0, 0.0005, 0.002, 0.01, 0.05)
"""What the variance of the discrepancy at the root may be, in squares of the label's scale."""


@dataclass(frozen=True, eq=False)
class _Belief:
    """Under one process: its share of the likelihood, the mean of mu and the variance of D (float64 [L]), its innovation.

    Where there is a slope, the variance of b, and how far D + b g moves with it.
    """

    share: float
    mean: Floats
    variance: Floats
    innovation: Floats
    of_slope: float = 0.0
    moved: Floats | float = 0.0


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
        tree, values, variance = self.plan.on_nodes(self.mean, self.variance)
        if self.plan.slope is not None:
            for lean, share in likely(leans(self.plan, self.mean, self.variance, ROOTS)):
                mean = lean.discrepancy + lean.amount * self.plan.slope.centre
                yield _Belief(
                    share,
                    mean + self.trust * (self.mean - mean),
                    lean.spread,
                    lean.prior.innovation(tree.max_depth),
                    lean.variance,
                    lean.rest,
                )
            return
        at, unit = self.plan.places, self.plan.scale
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
        shared = belief.variance + belief.of_slope * belief.moved**2
        found += belief.share * (seen.left + (1.0 - seen.trust) ** 2 * shared + apart**2)
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
        tree, _, variance = plan.on_nodes(seen.mean, seen.variance)
        doubt = weights**2 @ seen.left
        for belief in seen.beliefs():
            apart = weights @ (belief.mean - found.correction[:, output])
            shared = np.zeros(len(weights))
            if belief.innovation.any():
                for row, weight in enumerate(weights * (1.0 - seen.trust)):
                    of_nodes = np.bincount(plan.places, weight, tree.n_nodes).astype(np.float64)
                    shared[row] = variance_of_sum(tree, variance, belief.innovation, of_nodes)
            moved = weights * (1.0 - seen.trust) @ (belief.moved * np.ones(len(seen.trust)))
            shared = np.maximum(shared, 0.0) * plan.scale**2 + belief.of_slope * moved**2
            doubt = doubt + belief.share * (shared + apart**2)
        made[:, output] = np.sqrt(doubt)
    return made


def own_weights(plan: Plan, found: Corrections) -> Floats:
    """How far each correction moves with the mean of its own cell's reports, 0 to 1, float64 [L, M]."""
    at = plan.places
    made = np.zeros_like(found.correction)
    for output, prior in enumerate(found.priors):
        own, noise = plan.own_variance[:, output], found.noise_sd[:, output] ** 2
        heard = np.isfinite(noise)
        trust = np.where(heard, own / np.where(heard & (own > 0), own + noise, 1.0), 0.0)
        if found.slope is None:
            tree, values, variance = plan.on_nodes(found.observed[:, output], noise + own)
            believed = posterior(tree, values, variance, prior.innovation(tree.max_depth)).variance[at]
            shared = np.where(heard, believed / np.where(heard, variance[at], 1.0), 0.0)
        else:
            lean = chosen(leans(plan, found.observed[:, output], noise + own, ROOTS))
            shared = np.where(heard, lean.doubt / np.where(heard, noise + own, 1.0), 0.0)
        made[:, output] = trust + (1.0 - trust) * shared
    return made
