"""What reports say of a slope and of cells together: D on the tree and b, a multiple of g, in one Gaussian model.

What lives here: their joint posterior under one process, and the choice of a process. What does not: g and the cells it cuts
(`slope`), the corrections made of this (`correction`), and their standard deviations (`correction_means`).

Cell j, at a node of the tree that it may share with another, has mean residual mu_j = D_j + b g_j + N(0, V_j), g_j the mean of g
over its public rows, seen with N(0, E_j). b ~ N(0, s^2 + tau), s^2 what public rows leave unknown of it. With b = 0 let D(y) be
the posterior mean of D and S = V + E; both are linear in what is seen. So with a = g' S^-1 (y - D(y)) and
h = g' S^-1 (g - D(g)) the reports say b = a / h with variance 1 / h, whatever D is, and D is D(y) - b D(g): two runs of the
smoother are the exact posterior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ldptree.inference.discrepancy import (
    NATS_PER_COMPONENT,
    DiscrepancyPrior,
    by_likelihood,
    discrepancy_grid,
)
from ldptree.inference.tree_gaussian import posterior
from ldptree.public_models.public_slope import TAUS

if TYPE_CHECKING:
    from ldptree.families.correction_plan import Plan

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class FoundSlope:
    """How much of g is added.

    Attributes:
        amount: b.
        sd: how unsure it is, whatever process is chosen.
        tau: 0 where the reports do not speak for more than public rows leave unknown.
        centre: float64 [L], g where a cell's correction is what it says; elsewhere b (g - centre) is added to it.
    """

    amount: float
    sd: float
    tau: float
    centre: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class Lean:
    """The posterior under one process. All float64 [L] in the label's unit, but b.

    Attributes:
        prior: of D.
        tau: of b.
        fit: log likelihood.
        amount, variance: mean and variance of b.
        discrepancy: mean of D.
        spread: variance of D, were b known.
        rest: g less D(g): how far D + b g moves with b.
    """

    prior: DiscrepancyPrior
    tau: float
    fit: float
    amount: float
    variance: float
    discrepancy: Floats
    spread: Floats
    rest: Floats

    @property
    def score(self) -> float:
        """The log likelihood less what each component costs."""
        return self.fit - NATS_PER_COMPONENT * (self.prior.n_components + (self.tau > 0))

    @property
    def doubt(self) -> Floats:
        """float64 [L], variance of D + b g."""
        return self.spread + self.variance * self.rest**2


def leans(plan: Plan, mean: Floats, variance: Floats, roots: Sequence[float]) -> list[Lean]:
    """Every process of the grid, the simplest first.

    Args:
        plan: the question, with a slope.
        mean: float64 [L], what the reports say.
        variance: float64 [L], S of it; infinite where they say nothing.
        roots: what the variance of D at the root may be.
    """
    assert plan.slope is not None
    unit, centre, at = plan.scale, plan.slope.centre, plan.places
    tree, values, of_nodes = plan.on_nodes(mean, variance)
    _, centres, _ = plan.on_nodes(centre, variance)
    precision = 1.0 / variance
    heard = np.where(precision > 0, mean, 0.0)
    found = []
    for prior in discrepancy_grid(roots):
        innovation = prior.innovation(tree.max_depth)
        of_reports = posterior(tree, values, of_nodes, innovation)
        of_slope = posterior(tree, centres, of_nodes, innovation)
        alone, rest = of_reports.mean[at] * unit, centre - of_slope.mean[at] * unit
        pull, strength = float(rest * precision @ heard), float(rest * precision @ centre)
        for tau in TAUS:
            free = plan.slope.variance + tau
            share = free / (1.0 + free * strength)
            amount = share * pull
            found.append(
                Lean(
                    prior=prior,
                    tau=tau,
                    fit=float(of_reports.log_likelihood)
                    - 0.5 * math.log1p(free * strength)
                    + 0.5 * share * pull**2,
                    amount=amount,
                    variance=share,
                    discrepancy=alone - amount * (centre - rest),
                    spread=of_reports.variance[at] * unit**2,
                    rest=rest,
                )
            )
    return found


def chosen(found: Sequence[Lean]) -> Lean:
    """The process with the largest score; of equals, the simplest."""
    return max(found, key=lambda lean: lean.score)


def likely(found: Sequence[Lean]) -> list[tuple[Lean, float]]:
    """Those with more than next to no share of the likelihood, with that share."""
    return by_likelihood(found, [lean.fit for lean in found])


def sd_of_amount(found: Sequence[Lean], amount: float) -> float:
    """How far b may be from the amount, over all likely processes."""
    return math.sqrt(
        sum(share * (lean.variance + (lean.amount - amount) ** 2) for lean, share in likely(found))
    )
