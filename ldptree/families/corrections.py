"""Read from the reports of a correction where, by how much and how surely a public model is wrong on private people.

All of it is post-processing of private totals and costs no privacy.

In cell j the reports say d_j = mu_j + N(0, E_j) of the mean residual mu_j = D_j + N(0, V_j): V_j is the public model's own
variance, D the discrepancy between public and private people, one of several Gaussian processes on the tree, of which the one
that is 0 is the likeliest beforehand. Given a process the correction is D_j + V_j / (V_j + E_j) (d_j - D_j); it is averaged over
the processes by their posterior chances (`discrepancy.average_discrepancies`). What undoes the clipping is itself an estimate: an
error that all d_j share is told apart from D by its variance (`CorrectionPlan.shared_part`).

The standard deviation of a correction, and of an average over several, prefers none of the processes: each speaks by its
likelihood, and a public model that does not know its own doubt is believed no more than the mean of a cell's public labels
(`CorrectionPlan.doubt`). Given a process, mu_j has mean D_j + w_j (d_j - D_j) and variance w_j E_j + (1 - w_j)^2 var(D_j),
w_j = V_j / (V_j + E_j); its distance from the correction is averaged over processes.

That private people differ is said where a chosen process (`discrepancy.choose_discrepancy`) is not 0, or the reports are further
from the public model than noise makes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ldptree.errors import DataError
from ldptree.inference.discrepancy import (
    ALIKE,
    DiscrepancyPrior,
    average_discrepancies,
    choose_discrepancy,
    likely_discrepancies,
)
from ldptree.inference.tree_gaussian import posterior, variances_of_sums
from ldptree.inference.weighting import cell_masses

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.families.correction_plan import CorrectionPlan, ResidualRange
    from ldptree.protocol.totals import Totals

    Floats = NDArray[np.float64]

ROOTS = (0.0, 0.0005, 0.002, 0.01, 0.05)
"""What the variance of the discrepancy at the root may be, in squares of the label's scale."""
PUBLIC_MODEL = "the public model"
SURELY = 0.05
"""The chance that noise alone looks as strong, below which the reports say something."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ResidualEstimates:
    """The reports of one output, cell by cell, before any prior. All float64 [L].

    Attributes:
        mean: d, the mean residual, read as if residuals were shifted by little (`ResidualRange.read`).
        variance: E, of the mean: the mechanism's noise, rounding and sampling.
        mass: w, people.
    """

    mean: Floats
    variance: Floats
    mass: Floats

    @classmethod
    def of(cls, plan: CorrectionPlan, totals: Totals) -> ResidualEstimates:
        """From the totals of the reports to a plan's question.

        Raises:
            DataError: totals of another shape, or nobody reported.
        """
        if totals.counts.shape != (plan.partition.n_leaves, len(plan.levels)) or totals.n_private < 1:
            raise DataError(
                f"correction: totals of shape {totals.counts.shape} from {totals.n_private} holders; the plan has "
                f"{plan.partition.n_leaves} cells x {len(plan.levels)} levels, and somebody must report"
            )
        weights = np.array(plan.levels)
        if plan.partition.n_leaves == 1:
            mass = np.array([totals.n_inside])
        else:
            mass = cell_masses(totals.cell_counts, totals.count_variance, plan.public_count, totals.n_inside)
        noise = totals.cell_variance(weights) + mass * plan.mean_square
        mean, variance = plan.range.read(totals.counts @ weights / mass, noise / mass**2)
        return cls(mean=mean, variance=variance, mass=mass)

    @classmethod
    def unreported(cls, plan: CorrectionPlan) -> ResidualEstimates:
        """Estimates of an output that nobody reported on."""
        n_cells = plan.partition.n_leaves
        return cls(mean=np.zeros(n_cells), variance=np.full(n_cells, np.inf), mass=np.zeros(n_cells))

    @classmethod
    def exact(cls, plan: CorrectionPlan, cells: NDArray[np.integer], errors: Floats) -> ResidualEstimates:
        """Compute from true cells [n] and residuals [n], as a simulation device to show what the noise costs.

        It gives no privacy at all and must never leave a simulation.
        """
        n_cells = plan.partition.n_leaves
        people = np.bincount(cells, minlength=n_cells).astype(np.float64)
        mass = np.maximum(people, 1.0)
        mean = plan.range.as_read(np.bincount(cells, weights=errors, minlength=n_cells) / mass)
        variance = np.where(people > 0, max(float(errors.var()), 1e-300) / mass, np.inf)
        return cls(mean=mean, variance=variance, mass=mass)


@dataclass(frozen=True, eq=False, kw_only=True)
class Corrections:
    """The amounts added to the M outputs of the public model in each of L cells, in the label's unit.

    Attributes:
        share: float64 [L], share of private people.
        correction: float64 [L, M].
        sd: float64 [L, M], how unsure it is, whether or not the chosen process lets cells differ.
        hidden: float64 [2, L, M], how much further below and above than two sd the mean residual may be, as residuals were
            clipped (`unclip_means`).
        observed: float64 [L, M], the reports' own mean residual, as it was read.
        noise_sd: float64 [L, M], its standard deviation: noise, rounding and sampling.
        discrepancy: float64 [L, M], the part of it that says that private people differ from public ones.
        priors: the chosen discrepancy process of each output: what is said to have been found.
        common_sd: how far all the reports' mean residuals may be off together (`CorrectionPlan.common_sd`).
        chance_alike: how likely the reports would differ so much were private people like public ones: by noise, and by what
            public rows leave open of the public model's error (`CorrectionPlan.doubt`). NaN where it is not known.
    """

    share: Floats
    correction: Floats
    sd: Floats
    hidden: Floats
    observed: Floats
    noise_sd: Floats
    discrepancy: Floats
    priors: tuple[DiscrepancyPrior, ...]
    common_sd: float = 0.0
    chance_alike: float = math.nan

    @property
    def evidence(self) -> Floats:
        """Return float64 [L, M], by how many standard deviations of noise reports differ from the public model."""
        return np.divide(
            self.observed,
            self.noise_sd,
            out=np.zeros_like(self.observed),
            where=np.isfinite(self.noise_sd) & (self.noise_sd > 0),
        )

    @property
    def mean(self) -> Floats:
        """Return float64 [M], the correction averaged over all private people."""
        means: Floats = self.share @ self.correction
        return means

    @cached_property
    def chance(self) -> float:
        """Chance that noise alone makes the reports differ so much from the public model (chi-square)."""
        return _chance_of(self.observed, self.noise_sd, self.common_sd)

    @property
    def has_no_effect(self) -> bool:
        """Return whether noise alone explains the correction, with no discrepancy and ordinary reports."""
        return all(prior == ALIKE for prior in self.priors) and self.chance > SURELY

    def says_of(self, classes: Sequence[object], *, base: str = PUBLIC_MODEL) -> str:
        """Say in a line whether something was found, and how large it is; of several classes with the name of the one whose
        correction is clearest.

        `base`: what was corrected, where that is no public model.
        """
        cells = f"{len(self.share):,} {'cell' if len(self.share) == 1 else 'cells'}"
        if self.has_no_effect:
            return (
                f"Within noise of nothing: in {cells} the reports differ from {base} no more than noise makes them "
                f"(chance {self.chance:.2f}); largest correction {self.correction.flat[np.abs(self.correction).argmax()]:+.3g}."
            )
        if not self.correction.any():
            return (
                f"Nothing is added: in {cells} the reports differ from {base} more than noise alone would make them "
                f"(chance {self.chance:.2g}), but not so that any correction is worth it."
            )
        by = f"{float(self.mean[0]):+.3g} on average, " if self.correction.shape[1] == 1 else ""
        clearest = self._clearest
        most, sd = float(self.correction[clearest]), float(self.sd[clearest])
        of = f"share of {classes[clearest[1]]} " if len(classes) > 2 else ""
        name = f"{base[0].upper()}{base[1:]}"
        if math.isnan(self.chance_alike):
            says = f"{name} is wrong on private people"
        elif self.is_particular:
            says = f"{name} is wrong on private people in particular"
        else:
            says = f"{name} is wrong, perhaps for everybody"
        hidden = float(self.hidden[int(most > 0)][clearest])
        further = f" Most errors are larger than a report can say: it may be {most + math.copysign(hidden, most):+.3g}."
        return (
            f"{says}: {of}corrected by {by}{most:+.3g} (sd {sd:.2g}) where that is clearest, in {cells} (chance that noise "
            f"alone does this {self.chance:.2g}).{further if hidden > abs(most) else ''}"
        )

    @property
    def is_particular(self) -> bool:
        """True if private people surely differ from public ones by more than public rows leave open of the model's error."""
        return self.chance_alike < SURELY

    @property
    def _clearest(self) -> tuple[int, int]:
        """Cell and output whose correction is most standard deviations from 0; of equals the largest."""
        size = np.abs(self.correction)
        strength = np.where(size > 0, size / np.maximum(self.sd, 1e-300), 0.0)
        cell, output = np.unravel_index(np.lexsort((size.ravel(), strength.ravel()))[-1], size.shape)
        return int(cell), int(output)


def estimate_residuals(plan: CorrectionPlan, totals: Sequence[Totals]) -> list[ResidualEstimates]:
    """Estimate the mean residuals of every output from its reports; nobody may have drawn some of the outputs.

    Raises:
        DataError: totals of another shape, or nobody reported at all.
    """
    is_answered = any(t.n_private for t in totals)
    return [
        ResidualEstimates.of(plan, t)
        if t.n_private or not is_answered
        else ResidualEstimates.unreported(plan)
        for t in totals
    ]


def correct(plan: CorrectionPlan, seen: Sequence[ResidualEstimates]) -> Corrections:
    """The corrections that these reports carry, one `ResidualEstimates` an output.

    The sd is how far the residual's mean may be off (`sd_of_cells`). The correction is slow to believe that people differ, and
    takes a public model that does not know its own doubt at its word; the sd does neither.
    """
    n_outputs = plan.own_variance.shape[1]
    if len(seen) != n_outputs:
        raise DataError(f"correction: reports on {len(seen)} outputs, the public model has {n_outputs}")
    columns = [_one(plan, k, estimates) for k, estimates in enumerate(seen)]
    mass = np.sum([estimates.mass for estimates in seen], axis=0)
    correction, sd, hidden = unclip_means(
        plan.range,
        np.stack([c[0] for c in columns], axis=1),
        np.stack([c[1] for c in columns], axis=1),
        np.eye(len(mass)),
    )
    return Corrections(
        share=mass / mass.sum(),
        correction=correction,
        sd=sd,
        hidden=hidden,
        observed=np.stack([estimates.mean for estimates in seen], axis=1),
        noise_sd=np.stack([np.sqrt(estimates.variance) for estimates in seen], axis=1),
        discrepancy=plan.range.unclip(np.stack([c[2] for c in columns], axis=1)),
        priors=tuple(c[3] for c in columns),
        common_sd=plan.common_sd,
        chance_alike=_chance_of(
            np.stack([estimates.mean for estimates in seen], axis=1),
            np.sqrt(np.stack([estimates.variance for estimates in seen], axis=1) + plan.doubt),
            plan.common_sd,
        ),
    )


def _chance_of(observed: Floats, sd: Floats, common_sd: float) -> float:
    """Return the chance that noise of these sds, and of one that the cells of an output share, makes means [L, M] as large as
    observed.
    """
    from scipy.stats import chi2

    heard = np.isfinite(sd) & (sd > 0)
    precision = np.divide(1.0, sd**2, out=np.zeros_like(sd), where=heard)
    pull = (precision * observed).sum(axis=0)
    # of cells that are off together by N(0, common): what their mean says counts the less (Sherman and Morrison 1950)
    together = common_sd**2 * pull**2 / (1.0 + common_sd**2 * precision.sum(axis=0))
    distance = np.sum(precision * observed**2) - np.sum(together)
    n_heard = max(int(np.isfinite(sd).sum()), 1)  # an output may have been drawn by nobody
    return float(chi2.sf(distance, n_heard))


def _roots(plan: CorrectionPlan) -> tuple[float, ...]:
    """`ROOTS`, and a larger one where a range wider than the label's scale says that people may be far from the public model."""
    sd = plan.range.half / (2.0 * plan.scale)
    return ROOTS if plan.range.half <= plan.scale else (*ROOTS, sd**2)


def _one(
    plan: CorrectionPlan, output: int, seen: ResidualEstimates
) -> tuple[Floats, Floats, Floats, DiscrepancyPrior]:
    """Correction, sd, discrepancy and prior of one output."""
    own = plan.own_variance[:, output]
    tree, values, of_nodes = plan.on_nodes(seen.mean, seen.variance + own)
    common = plan.common_variance
    prior = choose_discrepancy(tree, values, of_nodes, _roots(plan), common)
    weight = np.where(np.isinf(seen.variance), 0.0, own / np.where(own > 0, own + seen.variance, 1.0))
    believed, learnt = np.zeros(len(seen.mean)), np.zeros(len(seen.mean))
    for process, chance in average_discrepancies(tree, values, of_nodes, _roots(plan), common):
        on_tree = posterior(tree, values, of_nodes, process.innovation(tree.max_depth, common)).mean
        shared = plan.shared_part(process, on_tree)
        differs = on_tree[plan.partition.leaves] * plan.scale - shared
        believed += chance * differs
        learnt += chance * (differs + weight * (seen.mean - shared - differs))
    return learnt, sd_of_cells(plan, output, seen.mean, seen.variance, learnt), believed, prior


@dataclass(frozen=True, eq=False)
class _Belief:
    """The belief under one process, as likelihood share, mean of mu, variance of D (float64 [L]), innovation."""

    share: float
    mean: Floats
    variance: Floats
    innovation: Floats


@dataclass(frozen=True, eq=False)
class _Seen:
    """One output's reports beside the plan's doubt; trust is w, left is w E."""

    plan: CorrectionPlan
    mean: Floats
    trust: Floats
    left: Floats
    variance: Floats

    @classmethod
    def of(cls, plan: CorrectionPlan, output: int, mean: Floats, noise: Floats) -> _Seen:
        doubt = plan.doubt[:, output]
        trust = np.where(np.isinf(noise), 0.0, doubt / np.where(doubt > 0, doubt + noise, 1.0))
        left = np.where(np.isinf(noise), doubt, trust * np.where(np.isinf(noise), 0.0, noise))
        return cls(plan, np.where(np.isinf(noise), 0.0, mean), trust, left, noise + doubt)

    def beliefs(self) -> Iterator[_Belief]:
        tree, values, variance = self.plan.on_nodes(self.mean, self.variance)
        at, unit = self.plan.partition.leaves, self.plan.scale
        common = self.plan.common_variance
        for prior, share in likely_discrepancies(tree, values, variance, _roots(self.plan), common):
            innovation = prior.innovation(tree.max_depth, common)
            fitted = posterior(tree, values, variance, innovation)
            shared = self.plan.shared_part(prior, fitted.mean)
            mean = fitted.mean[at] * unit - shared
            of_reports = self.mean - shared
            yield _Belief(
                share, mean + self.trust * (of_reports - mean), fitted.variance[at] * unit**2, innovation
            )

    def variance_from(self, correction: Floats, beliefs: Iterable[_Belief]) -> Floats:
        """Return the variance of each cell's mean residual about its correction, float64 [L]."""
        total = np.zeros(len(correction))
        for belief in beliefs:
            apart = belief.mean - correction
            total += belief.share * (self.left + (1.0 - self.trust) ** 2 * belief.variance + apart**2)
        return total


def sd_of_cells(plan: CorrectionPlan, output: int, mean: Floats, noise: Floats, correction: Floats) -> Floats:
    """Standard deviation of each cell's mean residual about its correction, float64 [L].

    Args:
        plan: the question that was answered.
        output: which output of the public model.
        mean, noise: float64 [L], what the reports say, and its variance; infinite where they say nothing.
        correction: float64 [L].
    """
    seen = _Seen.of(plan, output, mean, noise)
    return np.sqrt(seen.variance_from(correction, seen.beliefs()))


def sd_of_means(plan: CorrectionPlan, corrections: Corrections, weights: Floats) -> Floats:
    """The same of weighted means of the corrections, as they were read, float64 [K, M].

    Args:
        plan: the question that was answered.
        corrections: the corrections.
        weights: float64 [K, L], one mean a row.
    """
    made = np.empty((len(weights), len(corrections.priors)))
    for output in range(len(corrections.priors)):
        seen = _Seen.of(plan, output, corrections.observed[:, output], corrections.noise_sd[:, output] ** 2)
        tree, _, variance = plan.on_nodes(seen.mean, seen.variance)
        doubt, correction = weights**2 @ seen.left, plan.range.as_read(corrections.correction[:, output])
        of_nodes = np.zeros((len(weights), tree.n_nodes))
        of_nodes[:, plan.partition.leaves] = weights * (1.0 - seen.trust)
        for belief in seen.beliefs():
            apart = weights @ (belief.mean - correction)
            shared = np.zeros(len(weights))
            if belief.innovation.any():
                shared = variances_of_sums(tree, variance, belief.innovation, of_nodes)
            doubt = doubt + belief.share * (np.maximum(shared, 0.0) * plan.scale**2 + apart**2)
        made[:, output] = np.sqrt(doubt)
    return made


def unclip_means(
    clip_range: ResidualRange, read: Floats, sd: Floats, weights: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return weighted means of mean residuals and their standard deviations, each [K, M], and what clipping hides of
    them, [2, K, M], which is how much further below and above than two standard deviations they may be.

    A mean stays as many standard deviations from 0 as it was read: large residuals are shown too small, never the wrong way,
    as long as those of a cell are shifted the same way. What is hidden (`ResidualRange.hidden`) no mean over cells averages out.

    Args:
        clip_range: the range of a residual.
        read: float64 [L, M], mean residuals as they were read (`ResidualRange.read`).
        sd: float64 [K, M], of the means of these.
        weights: float64 [K, L], at least 0, one mean a row.
    """
    mean, at = clip_range.unclip(read), weights @ read
    size = weights @ np.abs(read)
    spread = sd * np.divide(weights @ np.abs(mean), size, out=np.ones_like(size), where=size > 0)
    hidden = np.zeros((2, *sd.shape))
    for n, side in enumerate((-1.0, 1.0) if clip_range.moved else ()):

        def end(at: Floats, side: float = side) -> Floats:
            of_all = clip_range.unclip(at)
            return side * of_all + np.where(side * of_all > 0, clip_range.hidden(of_all), 0.0)

        reach = weights @ (end(read) - side * mean) + end(at + side * 2.0 * sd) - end(at)
        beyond = np.where(side * mean > 0, clip_range.beyond(mean), 0.0)
        hidden[n] = np.maximum(reach - 2.0 * spread, 0.0) + weights @ beyond
    return weights @ mean, spread, hidden


def own_weights(plan: CorrectionPlan, corrections: Corrections) -> Floats:
    """Weight of each cell's own reports in its correction, 0 to 1, float64 [L, M]."""
    at = plan.partition.leaves
    made = np.zeros_like(corrections.correction)
    for output in range(len(corrections.priors)):
        own, noise = plan.own_variance[:, output], corrections.noise_sd[:, output] ** 2
        heard = np.isfinite(noise)
        trust = np.where(heard, own / np.where(heard & (own > 0), own + noise, 1.0), 0.0)
        tree, values, variance = plan.on_nodes(corrections.observed[:, output], noise + own)
        common, shared = plan.common_variance, np.zeros(len(at))
        for process, chance in average_discrepancies(tree, values, variance, _roots(plan), common):
            innovation = process.innovation(tree.max_depth, common)
            believed = posterior(tree, values, variance, innovation).variance[at]
            shared += chance * np.where(heard, believed / np.where(heard, variance[at], 1.0), 0.0)
        made[:, output] = trust + (1.0 - trust) * shared
    return made
