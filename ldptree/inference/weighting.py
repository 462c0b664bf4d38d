"""Weigh public rows against private totals: one margin per node, with its variance.

What lives here: the evidence of all nodes, a fixed or automatic lam (LPCT eq. 8), and the learned weighting, which reads off
the private totals how far the public margins are from the private ones, and the private people of each cell. What does not: the
processes that this distance may follow (`discrepancy`), the drawing of strength from neighbouring cells (`pruning`) and the
choice of a class (`model`).

The margin of a class in a cell is (its people) - (all people) / C for C classes, and theta is the margin
per person: the class's share less 1/C, in [-1/C, 1 - 1/C]. For C = 2 that is LPCT's eta - 1/2. Margins of
different cells have uncorrelated noise under every oracle, since their weights add up to 0 within a cell. Where
the label is a number, the margin is the sum of labels about their public mean, in units in which theta is of the
same size (`tree_fit`).

Everything here is post-processing of private totals and costs no privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.inference.discrepancy import (
    ALIKE,
    ROOT_GRID,
    DiscrepancyPrior,
    choose_discrepancy,
    likely_discrepancies,
)
from ldptree.inference.tree_gaussian import Levels, posterior, variance_of_sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ldptree.partition.tree import Partition

    Floats = NDArray[np.float64]


LARGEST_LAM = 1e100
"""A finite lam counts as no more. Private totals are lost in rounding long before, and its square is still a number."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """The evidence of the reports and the public rows about one class or number, at every node.

    Attributes:
        private_margin: [nodes] unbiased sum of the private margins below the node.
        private_noise: [nodes] the mechanism's variance of `private_margin`.
        private_count: [nodes] unbiased noisy count of private people below the node, which may be negative.
        count_noise: [nodes] the mechanism's variance of `private_count`, cells taken apart.
        private_mass: [nodes] estimated private people below the node, at least 1 a cell (`cell_masses`).
        public_margin: [nodes] the same sum over public rows.
        public_mass: [nodes] public rows below the node.
        levels: the tree.
        cell_nodes: [L] the node of each cell.
        below: (cells, nodes), every pair of a cell and one of its ancestors or itself.
        n_private: holders who have a cell (noisy, so not always a whole number).
        label_variance: sampling variance of one person's margin.
        public_variance: the same of a public row, as far as its cell's mean is to be trusted (`public_trust`).
        empty_cell_estimate: theta that a share or label of 0 has: the papers' 0/0 = 0.
    """

    private_margin: Floats
    private_noise: Floats
    private_count: Floats
    count_noise: Floats
    private_mass: Floats
    public_margin: Floats
    public_mass: Floats
    levels: Levels
    cell_nodes: NDArray[np.integer]
    below: tuple[NDArray[np.integer], NDArray[np.integer]]
    n_private: float
    label_variance: float
    public_variance: float
    empty_cell_estimate: float

    def rolled_up(self, per_cell: Floats) -> Floats:
        """[nodes] sums over the cells below each node of `per_cell` [L]."""
        return roll_up(self.below, per_cell, self.levels.n_nodes)


@dataclass(frozen=True, eq=False, kw_only=True)
class Weighted:
    """Private and public evidence put together, before pruning.

    Attributes:
        lam: the weight of a public row in private people, or None where it was learned.
        theta: [nodes] estimated private margin per person.
        variance: [nodes] its variance; infinite where there is no evidence at all.
        private_share: [nodes] share in [0, 1] of the precision of `theta` that reports bring. A public
            margin brings 1 / (its sampling variance + the variance that the chosen discrepancy allows).
        discrepancy: [nodes] posterior mean of D = private theta - public theta.
        discrepancy_variance: [nodes] its posterior variance; 0 where D was found to be exactly 0.
        shift: [nodes] D averaged over the public rows below the node: what is added to the public theta.
        shift_variance: [nodes] a bound of its variance (the cells' D as if fully correlated).
        mean_discrepancy: D averaged over the private people of all cells.
        mean_discrepancy_variance: its posterior variance.
        prior: the chosen discrepancy process; all zero for a fixed lam.
    """

    lam: float | None
    theta: Floats
    variance: Floats
    private_share: Floats
    discrepancy: Floats
    discrepancy_variance: Floats
    shift: Floats
    shift_variance: Floats
    mean_discrepancy: float
    mean_discrepancy_variance: float
    prior: DiscrepancyPrior


def roll_up(below: tuple[NDArray[np.integer], NDArray[np.integer]], per_cell: Floats, n_nodes: int) -> Floats:
    """[nodes] sums of `per_cell` [L] over the cells below each node; `below` is `Partition.paths()`."""
    cells, nodes = below
    return np.bincount(nodes, weights=per_cell[cells], minlength=n_nodes).astype(np.float64)


@dataclass(frozen=True, eq=False)
class PrivateSums:
    """Of each cell [L] the unbiased sum of margins and the count of holders, and the noise variances of the two."""

    margin: Floats
    count: Floats
    margin_noise: Floats
    count_noise: Floats


@dataclass(frozen=True, eq=False)
class PublicSums:
    """Of each cell [L] the sum of public margins, and the public rows."""

    margin: Floats
    count: Floats


def gather_evidence(
    partition: Partition,
    private: PrivateSums,
    public: PublicSums,
    *,
    n_private: float,
    label_variance: float,
    empty_cell_estimate: float,
    inflation: float = 1.0,
) -> Evidence:
    """Put the totals of one class or number together, rolled up to every node.

    Args:
        partition: the tree, L leaves.
        private, public: the totals of its cells.
        n_private: holders who have a cell.
        label_variance: sampling variance of one person's margin.
        empty_cell_estimate: see `Evidence`.
        inflation: how many times `label_variance` over its rows a public cell's mean is off by.
    """
    below = partition.paths()

    def rolled(per_cell: Floats) -> Floats:
        return roll_up(below, per_cell, partition.n_nodes)

    return Evidence(
        private_margin=rolled(private.margin),
        private_noise=rolled(private.margin_noise),
        private_count=rolled(private.count),
        count_noise=rolled(private.count_noise),
        private_mass=rolled(cell_masses(private.count, private.count_noise, public.count, n_private)),
        public_margin=rolled(public.margin),
        public_mass=rolled(public.count),
        levels=Levels.of(partition.parent),
        cell_nodes=partition.leaves,
        below=below,
        n_private=n_private,
        label_variance=label_variance,
        public_variance=inflation * label_variance,
        empty_cell_estimate=empty_cell_estimate,
    )


def gather_class_evidence(
    partition: Partition,
    *,
    private: Floats,
    margin_noise: Floats,
    mass_noise: Floats,
    public: Floats,
    n_private: float,
    class_index: int,
    inflation: float = 1.0,
) -> Evidence:
    """The evidence of one class of C.

    Args:
        partition: the tree, L leaves.
        private: [L, C] unbiased private totals.
        margin_noise: [L] noise variance of each cell's margin of this class.
        mass_noise: [L] noise variance of each cell's count, classes together.
        public: [L, C] public counts.
        n_private: holders who have a cell.
        class_index: the class whose margin is wanted.
        inflation: as of `gather_evidence`.
    """
    n_classes = private.shape[1]
    private_count, public_count = private.sum(axis=1), public.sum(axis=1).astype(np.float64)
    margin = private[:, class_index] - private_count / n_classes
    return gather_evidence(
        partition,
        PrivateSums(margin, private_count, margin_noise, mass_noise),
        PublicSums(public[:, class_index] - public_count / n_classes, public_count),
        n_private=n_private,
        # where classes are even: 1/4 for two
        label_variance=(1.0 - 1.0 / n_classes) / n_classes,
        empty_cell_estimate=-1.0 / n_classes,
        inflation=inflation,
    )


def automatic_lam(n_cells: int, margin_variance: float, label_variance: float = 0.25) -> float:
    """Return the inverse-variance lam, 1 + 4 L v_A for two classes, which is right for people who are alike.

    A cell of n_P / L people has private margin variance n_P v_A + n_P s / L, s = 1/4 for two classes, which is L v_A / s + 1
    times that of as many public rows. No private row is looked at.

    Args:
        n_cells: L.
        margin_variance: v_A, the mechanism's variance of a cell's margin per holder.
        label_variance: s, the sampling variance of one person's margin.
    """
    return 1.0 + n_cells * margin_variance / label_variance


def weigh_evidence(
    evidence: Evidence, lam: float | str, rule: str = "margin", *, roots: Sequence[float] = ROOT_GRID
) -> Weighted:
    """Combine private and public evidence under `lam`: "learned", "auto" or a number from 0 to infinity.

    `rule` is what a margin is divided by: "margin", or "ratio", the paper's (see `weigh_by_lam`). `roots`: see
    `choose_discrepancy`.
    """
    if lam == "learned":
        return weigh_by_likelihood(evidence, roots)
    if lam == "auto":
        # Averaged over all cells, the noise depends on the mechanism and n, not on where the holders are.
        per_holder = float(np.mean(evidence.private_noise[evidence.cell_nodes])) / evidence.n_private
        lam = automatic_lam(evidence.cell_nodes.size, per_holder, evidence.label_variance)
    return weigh_by_lam(evidence, lam if lam == math.inf else min(float(lam), LARGEST_LAM), rule)


def weigh_by_lam(evidence: Evidence, lam: float, rule: str = "margin") -> Weighted:
    """Weigh by LPCT eq. 8, theta = (A~ + lam A^Q) / (w + lam U^Q), with the paper's noisy denominator made positive.

    The paper divides by U~ + lam U^Q, which the noise can make negative and so flip the class. With the
    mass w > 0 instead, the class is the sign of A~ + lam A^Q, equal to the paper's wherever its denominator
    is positive. lam = 0 is LPCT-P, lam = infinity LPCT-Q (theta 0 with infinite variance where no public
    row is).

    With rule = "ratio" the class is decided as printed: eta = (V~ + lam V^Q) / (U~ + lam U^Q) against 1/2, and 0/0 = 0.
    """
    spread = evidence.label_variance
    private_weight, public_weight = (0.0, 1.0) if math.isinf(lam) else (1.0, lam)
    denominator = private_weight * evidence.private_mass + public_weight * evidence.public_mass
    numerator = private_weight * evidence.private_margin + public_weight * evidence.public_margin
    noise = private_weight**2 * (evidence.private_noise + spread * evidence.private_mass)
    noise = noise + public_weight**2 * evidence.public_variance * evidence.public_mass
    empty = denominator == 0
    safe = np.where(empty, 1.0, denominator)
    nothing = np.zeros_like(numerator)
    theta = np.where(empty, 0.0, numerator / safe)
    if rule == "ratio":
        printed = private_weight * evidence.private_count + public_weight * evidence.public_mass
        theta = np.divide(
            numerator, printed, out=np.full_like(numerator, evidence.empty_cell_estimate), where=printed != 0
        )
    return Weighted(
        lam=lam,
        theta=theta,
        variance=np.where(empty, np.inf, noise / safe**2),
        private_share=np.where(empty, 0.0, private_weight * evidence.private_mass / safe),
        discrepancy=nothing,
        discrepancy_variance=nothing,
        shift=nothing,
        shift_variance=nothing,
        mean_discrepancy=0.0,
        mean_discrepancy_variance=0.0,
        prior=ALIKE,
    )


def weigh_by_likelihood(evidence: Evidence, roots: Sequence[float] = ROOT_GRID) -> Weighted:
    """Let the private totals say how far the public margins are off, cell by cell.

    theta^P = A~ / w with variance v / w^2 + s / w and theta^Q = A^Q / U^Q with variance c s / U^Q, s = 1/4 for two classes and
    c how far public cells are to be trusted (`public_trust`). In the cells, theta^P - theta^Q = D + noise with D a Gaussian
    process on the tree (`DiscrepancyPrior`), chosen by maximum likelihood over a grid that holds 0, less `NATS_PER_COMPONENT`
    for each non-zero component: D stays exactly 0 unless the totals speak against it. Then theta^P and theta^Q + D are combined
    by inverse variance.

    The combination's variance is 1 / (1/var^P + 1/var^Q) + b^2 Var(D), b the public share: the error of the
    combination given D is uncorrelated with theta^P - theta^Q, from which D is learned.

    The public share of evidence counts the public margin with the variance that the chosen process allows it.
    """
    return weigh_under(evidence, choose_discrepancy(evidence.levels, *_differences(evidence), roots))


def likely_priors(evidence: Evidence, roots: Sequence[float]) -> list[tuple[DiscrepancyPrior, float]]:
    """Each process that the totals leave likely, with its share of their likelihood.

    `weigh_by_likelihood` takes one, and a simple one until the totals speak against it; how unsure that leaves us is said by
    all of them, none preferred.
    """
    return likely_discrepancies(evidence.levels, *_differences(evidence), roots)


def weigh_under(evidence: Evidence, prior: DiscrepancyPrior) -> Weighted:
    """The evidence combined as `weigh_by_likelihood` does, where the discrepancy is known to be such a process."""
    private_theta, private_variance, public_theta, public_variance = _apart(evidence)
    observed, variance = _differences(evidence)
    innovation = prior.innovation(evidence.levels.max_depth)
    believed = posterior(evidence.levels, observed, variance, innovation)
    at = evidence.cell_nodes
    share = np.zeros(evidence.levels.n_nodes)
    share[at] = evidence.private_mass[at] / evidence.private_mass[at].sum()
    shift = _over_public_rows(evidence, believed.mean)
    shift_variance = _over_public_rows(evidence, np.sqrt(believed.variance)) ** 2
    private_precision, public_precision = 1.0 / private_variance, 1.0 / public_variance
    precision = private_precision + public_precision
    part = public_precision / precision
    allowed = np.cumsum(prior.innovation(evidence.levels.max_depth))[evidence.levels.depth_of_nodes]
    trusted = 1.0 / (public_variance + allowed)
    return Weighted(
        lam=None,
        theta=(1.0 - part) * private_theta + part * (public_theta + shift),
        variance=1.0 / precision + part**2 * shift_variance,
        private_share=private_precision / (private_precision + trusted),
        discrepancy=believed.mean,
        discrepancy_variance=believed.variance,
        shift=shift,
        shift_variance=shift_variance,
        mean_discrepancy=float(share @ believed.mean),
        mean_discrepancy_variance=variance_of_sum(evidence.levels, variance, innovation, share),
        prior=prior,
    )


def _over_public_rows(evidence: Evidence, per_node: Floats) -> Floats:
    """[nodes] mean of the cells' values over the public rows below each node; 0 where there are none."""
    summed = evidence.rolled_up((per_node * evidence.public_mass)[evidence.cell_nodes])
    return np.divide(summed, evidence.public_mass, out=np.zeros_like(summed), where=evidence.public_mass > 0)


def _differences(evidence: Evidence) -> tuple[Floats, Floats]:
    """theta^P - theta^Q in the cells and its variance, each [nodes]; not a number and infinite elsewhere."""
    private_theta, private_variance, public_theta, public_variance = _apart(evidence)
    at = evidence.cell_nodes
    observed = np.full(evidence.levels.n_nodes, np.nan)
    variance = np.full(evidence.levels.n_nodes, np.inf)
    observed[at] = private_theta[at] - public_theta[at]
    variance[at] = private_variance[at] + public_variance[at]
    return observed, variance


def _apart(evidence: Evidence) -> tuple[Floats, Floats, Floats, Floats]:
    """Return theta and variance from the reports alone, then from the public rows alone (0 and infinite for none)."""
    spread, mass, public = evidence.label_variance, evidence.private_mass, evidence.public_mass
    is_seen = public > 0
    safe = np.where(is_seen, public, 1.0)
    return (
        evidence.private_margin / mass,
        evidence.private_noise / mass**2 + spread / mass,
        np.where(is_seen, evidence.public_margin / safe, 0.0),
        np.where(is_seen, evidence.public_variance / safe, np.inf),
    )


PSEUDO_ROWS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 1000.0)
"""How many public rows a cell the belief that cells are equally full may be worth (`public_shares`)."""


def cell_masses(private: Floats, noise: Floats, public: Floats, n_private: float) -> Floats:
    """Estimate the private people of each cell by shrinking the noisy private count to the public share.

    With the cells' shares of people as the public rows give them (`public_shares`), m_j = n_P share_j,

        w_j = m_j + s2 / (s2 + noise_j + m_j) (U~_j - m_j),   s2 = max(mean_j((U~_j - m_j)^2 - noise_j -
        m_j), 0),

    and at least m_j / 10 and 1: a cell's noisy count may be negative, its mass may not.

    Args:
        private: [L] unbiased noisy private counts U~.
        noise: [L] their noise variances.
        public: [L] public counts U^Q.
        n_private: holders who have a cell.
    """
    expected = n_private * public_shares(public)
    excess = private - expected
    spread = max(float(np.mean(excess**2 - noise - expected)), 0.0)
    shrunk = expected + spread / (spread + noise + expected) * excess
    masses: Floats = np.maximum(np.maximum(shrunk, expected / 10.0), 1.0)
    return masses


def public_shares(public: Floats) -> Floats:
    """[L] expected shares of people in the cells, given public counts [L]; each above 0, together 1.

    Posterior mean under a Dirichlet prior of even shares that is worth `PSEUDO_ROWS` rows a cell, averaged over these by
    the likelihood of the counts. Where few public rows lie in many cells, an empty cell is no sign of few people:
    with half a row a cell instead, learned weighting was .004 below lam = "auto" at depth 8 of the LPCT synthetic pair
    (gamma 0.5, 50 rows, eps 2 and 4, 40 runs), and is equal now.
    """
    n_cells, n_rows = public.size, float(public.sum())
    worth = np.array(PSEUDO_ROWS)
    log_odds = np.array([_log_dirichlet_multinomial(public, rows) for rows in worth])
    weights = np.exp(log_odds - log_odds.max())
    weights /= weights.sum()
    shares: Floats = (weights / (n_rows + worth * n_cells)) @ (public[None, :] + worth[:, None])
    return shares


def _log_dirichlet_multinomial(counts: Floats, rows: float) -> float:
    """Log chance of the counts, less what does not depend on `rows`, the parameter of every cell."""
    values, n_cells_of = np.unique(counts, return_counts=True)
    of_cells: float = sum(
        n * (math.lgamma(value + rows) - math.lgamma(rows))
        for value, n in zip(values.tolist(), n_cells_of.tolist(), strict=True)
    )
    return of_cells + math.lgamma(counts.size * rows) - math.lgamma(float(counts.sum()) + counts.size * rows)
