"""How far the public rows are believed beside the private totals: one margin per node, with its variance.

What lives here: the masses of the cells, a fixed or automatic lam (LPCT eq. 8), and the learned weighting,
which reads off the private totals how far the public margins are from the private ones. What does not: the
drawing of strength from neighbouring cells (`pruning`) and the choice of a class (`model`).

The margin of a class in a cell is (its people) - (all people) / C for C classes, and theta is the margin
per person: the class's share less 1/C, in [-1/C, 1 - 1/C]. For C = 2 that is LPCT's eta - 1/2. Margins of
different cells have uncorrelated noise under every oracle, since their weights add up to 0 within a cell. Where
the label is a number, the margin is the sum of labels about their public mean, in units in which theta is of the
same size (`fit_numbers`).

Everything here is post-processing of private totals and costs no privacy.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ldptree.errors import ConfigError
from ldptree.tree_gaussian import Levels, log_likelihood, posterior, variance_of_sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ldptree.partition.tree import Partition

    Floats = NDArray[np.float64]

T = TypeVar("T")
ROOT_GRID = (0.0, 0.002, 0.02)
STEP_GRID = (0.0, 0.002, 0.006, 0.02, 0.06)
DECAY_GRID = (0.5, 1.0)
RULES = ("margin", "ratio")
PSEUDO_ROWS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 1000.0)
"""How many public rows a cell the belief that cells are equally full may be worth (`public_shares`)."""
LEAST_SHARE = 1e-3
"""Of the likelihood of all processes, below which one is of no matter."""
NATS_PER_COMPONENT = 3.0
"""What a non-zero component must add to the log likelihood: 1.5 gives in to small samples' noise, 5 is slow
to learn (measured on real and synthetic pairs)."""


@dataclass(frozen=True, kw_only=True)
class DiscrepancyPrior:
    """The Gaussian process of D = private theta - public theta on the tree.

    D_root ~ N(0, root) and D_child = D_parent + N(0, t_k) with t_k = step * decay^(k - 1) at depth k. All
    zero: public and private people are alike.
    """

    root: float
    step: float
    decay: float

    def innovation(self, max_depth: int) -> Floats:
        """[max_depth + 1] variances, the root's first."""
        steps = self.step * self.decay ** np.arange(max_depth, dtype=np.float64)
        return np.concatenate([[self.root], steps])

    @property
    def n_components(self) -> int:
        """How many of the root's and the steps' variances are not zero."""
        return (self.root > 0) + (self.step > 0)


ALIKE = DiscrepancyPrior(root=0.0, step=0.0, decay=1.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """What the reports and the public rows say about one class or number, at every node.

    Attributes:
        private_margin: [nodes] unbiased sum of the private margins below the node.
        private_noise: [nodes] the mechanism's variance of `private_margin`.
        private_count: [nodes] unbiased noisy count of private people below the node, which may be negative.
        count_noise: [nodes] the mechanism's variance of `private_count`, cells taken apart.
        private_mass: [nodes] estimated private people below the node, at least 1 a cell (see `cell_masses`).
        public_margin: [nodes] the same sum over public rows.
        public_mass: [nodes] public rows below the node.
        levels: the tree.
        cell_nodes: [L] the node of each cell.
        below: (cells, nodes), every pair of a cell and one of its ancestors or itself.
        n_private: holders who have a cell (noisy, so not always a whole number).
        label_variance: sampling variance of one person's margin.
        theta_of_nobody: theta that a share or label of 0 has: the papers' 0/0 = 0.
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
    theta_of_nobody: float

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


def cell_masses(private: Floats, noise: Floats, public: Floats, n_private: float) -> Floats:
    """Estimate the private people of each cell: the noisy private count shrunk to the public share.

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


def gather(
    partition: Partition,
    *,
    private_margin: Floats,
    private_count: Floats,
    margin_noise: Floats,
    mass_noise: Floats,
    public_margin: Floats,
    public_count: Floats,
    n_private: float,
    label_variance: float,
    theta_of_nobody: float,
) -> Evidence:
    """Put the totals of one class or number together, rolled up to every node.

    Args:
        partition: the tree, L leaves.
        private_margin, private_count: [L] unbiased private totals.
        margin_noise, mass_noise: [L] noise variances of the two.
        public_margin, public_count: [L] the same of public rows.
        n_private: holders who have a cell.
        label_variance: sampling variance of one person's margin.
        theta_of_nobody: see `Evidence`.
    """
    below = partition.paths()

    def rolled(per_cell: Floats) -> Floats:
        return roll_up(below, per_cell, partition.n_nodes)

    return Evidence(
        private_margin=rolled(private_margin),
        private_noise=rolled(margin_noise),
        private_count=rolled(private_count),
        count_noise=rolled(mass_noise),
        private_mass=rolled(cell_masses(private_count, mass_noise, public_count, n_private)),
        public_margin=rolled(public_margin),
        public_mass=rolled(public_count),
        levels=Levels.of(partition.parent),
        cell_nodes=partition.leaves,
        below=below,
        n_private=n_private,
        label_variance=label_variance,
        theta_of_nobody=theta_of_nobody,
    )


def gather_class(
    partition: Partition,
    *,
    private: Floats,
    margin_noise: Floats,
    mass_noise: Floats,
    public: Floats,
    n_private: float,
    class_index: int,
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
    """
    n_classes = private.shape[1]
    private_count, public_count = private.sum(axis=1), public.sum(axis=1).astype(np.float64)
    return gather(
        partition,
        private_margin=private[:, class_index] - private_count / n_classes,
        private_count=private_count,
        margin_noise=margin_noise,
        mass_noise=mass_noise,
        public_margin=public[:, class_index] - public_count / n_classes,
        public_count=public_count,
        n_private=n_private,
        # where classes are even: 1/4 for two
        label_variance=(1.0 - 1.0 / n_classes) / n_classes,
        theta_of_nobody=-1.0 / n_classes,
    )


def automatic_lam(n_cells: int, margin_variance: float, label_variance: float = 0.25) -> float:
    """The inverse-variance lam, 1 + 4 L v_A for two classes: right where public and private people are alike.

    A cell of n_P / L people has private margin variance n_P v_A + n_P s / L, s = 1/4 for two classes, which is L v_A / s + 1
    times that of as many public rows. No private row is looked at.

    Args:
        n_cells: L.
        margin_variance: v_A, the mechanism's variance of a cell's margin per holder.
        label_variance: s, the sampling variance of one person's margin.
    """
    return 1.0 + n_cells * margin_variance / label_variance


def weigh(evidence: Evidence, lam: float | str, rule: str = "margin") -> Weighted:
    """Combine private and public evidence under `lam`: "learned", "auto" or a number from 0 to infinity.

    `rule` is what a margin is divided by: "margin", or "ratio", the paper's (see `fixed`).

    Raises:
        ConfigError: `lam` or `rule` is none of these, or "ratio" is asked for where lam is learned.
    """
    check_weighting(lam, rule)
    if lam == "learned":
        return learned(evidence)
    if lam == "auto":
        # Averaged over all cells, the noise depends on the mechanism and n, not on where the holders are.
        per_holder = float(np.mean(evidence.private_noise[evidence.cell_nodes])) / evidence.n_private
        lam = automatic_lam(evidence.cell_nodes.size, per_holder, evidence.label_variance)
        return fixed(evidence, lam, rule)
    return fixed(evidence, float(lam), rule)


def check_weighting(lam: float | str, rule: str) -> None:
    """Raises ConfigError where lam or rule is not known, or "ratio" is asked for where lam is learned."""
    if rule not in RULES:
        raise ConfigError(f'rule = "{rule}": known are {", ".join(RULES)}')
    if lam == "learned" and rule == "ratio":
        raise ConfigError('rule = "ratio" is the paper\'s, for a fixed lam; set lam = "auto" or a number')
    if lam not in ("learned", "auto") and (isinstance(lam, str) or not lam >= 0):
        raise ConfigError(f'lam = {lam!r}: use "learned", "auto", or a number from 0 (private alone) to inf')


def fixed(evidence: Evidence, lam: float, rule: str = "margin") -> Weighted:
    """LPCT eq. 8: theta = (A~ + lam A^Q) / (w + lam U^Q) with the paper's noisy denominator made positive.

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
    noise = noise + public_weight**2 * spread * evidence.public_mass
    empty = denominator == 0
    safe = np.where(empty, 1.0, denominator)
    nothing = np.zeros_like(numerator)
    theta = np.where(empty, 0.0, numerator / safe)
    if rule == "ratio":
        printed = private_weight * evidence.private_count + public_weight * evidence.public_mass
        theta = np.divide(
            numerator, printed, out=np.full_like(numerator, evidence.theta_of_nobody), where=printed != 0
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


def learned(evidence: Evidence) -> Weighted:
    """Let the private totals say how far the public margins are off, cell by cell.

    theta^P = A~ / w with variance v / w^2 + s / w and theta^Q = A^Q / U^Q with variance s / U^Q, s = 1/4
    for two classes. In the cells, theta^P - theta^Q = D + noise with D a Gaussian process on the tree
    (`DiscrepancyPrior`), chosen by maximum likelihood over a grid that holds 0, less `NATS_PER_COMPONENT`
    for each non-zero component: D stays exactly 0 unless the totals speak against it. Then theta^P and
    theta^Q + D are combined by inverse variance.

    The combination's variance is 1 / (1/var^P + 1/var^Q) + b^2 Var(D), b the public share: the error of the
    combination given D is uncorrelated with theta^P - theta^Q, from which D is learned.

    The public share of evidence counts the public margin with the variance that the chosen process allows it.
    """
    private_theta, private_variance, public_theta, public_variance = _apart(evidence)
    at = evidence.cell_nodes
    observed = np.full(evidence.levels.n_nodes, np.nan)
    variance = np.full(evidence.levels.n_nodes, np.inf)
    observed[at] = private_theta[at] - public_theta[at]
    variance[at] = private_variance[at] + public_variance[at]
    prior = choose_discrepancy(evidence.levels, observed, variance)
    innovation = prior.innovation(evidence.levels.max_depth)
    believed = posterior(evidence.levels, observed, variance, innovation)
    share = np.zeros(evidence.levels.n_nodes)
    share[at] = evidence.private_mass[at] / evidence.private_mass[at].sum()

    def over_public_rows(per_node: Floats) -> Floats:
        summed = evidence.rolled_up((per_node * evidence.public_mass)[at])
        return np.divide(
            summed, evidence.public_mass, out=np.zeros_like(summed), where=evidence.public_mass > 0
        )

    shift = over_public_rows(believed.mean)
    shift_variance = over_public_rows(np.sqrt(believed.variance)) ** 2
    private_precision, public_precision = 1.0 / private_variance, 1.0 / public_variance
    precision = private_precision + public_precision
    public_part = public_precision / precision
    allowed = np.cumsum(prior.innovation(evidence.levels.max_depth))[evidence.levels.depth_of_nodes]
    trusted = 1.0 / (public_variance + allowed)
    return Weighted(
        lam=None,
        theta=(1.0 - public_part) * private_theta + public_part * (public_theta + shift),
        variance=1.0 / precision + public_part**2 * shift_variance,
        private_share=private_precision / (private_precision + trusted),
        discrepancy=believed.mean,
        discrepancy_variance=believed.variance,
        shift=shift,
        shift_variance=shift_variance,
        mean_discrepancy=float(share @ believed.mean),
        mean_discrepancy_variance=variance_of_sum(evidence.levels, variance, innovation, share),
        prior=prior,
    )


def choose_discrepancy(
    levels: Levels, observed: Floats, variance: Floats, roots: Sequence[float] = ROOT_GRID
) -> DiscrepancyPrior:
    """The process of the grid with the largest penalised likelihood of `observed`; of equals, the simplest.

    Args:
        levels: the tree.
        observed: [nodes] differences private - public theta, ignored where `variance` is infinite.
        variance: [nodes] their noise variances.
        roots: what the root's variance may be, 0 first.
    """

    def score(prior: DiscrepancyPrior) -> float:
        fit = log_likelihood(levels, observed, variance, prior.innovation(levels.max_depth))
        return fit - NATS_PER_COMPONENT * prior.n_components

    return max(discrepancy_grid(roots), key=score)


def likely_discrepancies(
    levels: Levels, observed: Floats, variance: Floats, roots: Sequence[float] = ROOT_GRID
) -> list[tuple[DiscrepancyPrior, float]]:
    """The processes of the grid with the share of their likelihood, those with next to none left out.

    `choose_discrepancy` takes a simple one until the totals speak against it; how unsure that leaves us is said by all of them,
    none preferred. Arguments as there.
    """
    grid = discrepancy_grid(roots)
    return by_likelihood(
        grid, [log_likelihood(levels, observed, variance, p.innovation(levels.max_depth)) for p in grid]
    )


def by_likelihood(found: Sequence[T], fits: Sequence[float]) -> list[tuple[T, float]]:
    """Each with its share of the likelihood, given log likelihoods; those with less than `LEAST_SHARE` left out."""
    shares = np.exp(np.array(fits) - max(fits))
    shares = np.where(shares > LEAST_SHARE * shares.sum(), shares, 0.0)
    return [(one, float(s)) for one, s in zip(found, shares / shares.sum(), strict=True) if s]


def discrepancy_grid(roots: Sequence[float]) -> list[DiscrepancyPrior]:
    """Every process that is tried, the simplest first."""
    steps = [(0.0, 1.0), *itertools.product(STEP_GRID[1:], DECAY_GRID)]
    return [DiscrepancyPrior(root=r, step=s, decay=d) for r, (s, d) in itertools.product(roots, steps)]


def _apart(evidence: Evidence) -> tuple[Floats, Floats, Floats, Floats]:
    """theta and variance from the reports alone, then from the public rows alone (none: 0 and infinite)."""
    spread, mass, public = evidence.label_variance, evidence.private_mass, evidence.public_mass
    is_seen = public > 0
    safe = np.where(is_seen, public, 1.0)
    return (
        evidence.private_margin / mass,
        evidence.private_noise / mass**2 + spread / mass,
        np.where(is_seen, evidence.public_margin / safe, 0.0),
        np.where(is_seen, spread / safe, np.inf),
    )
