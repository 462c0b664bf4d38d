"""The plan of a correction, which the curator publishes before any report, with the collection tree, the levels of a
residual, and the oracle.

All of these are chosen from public rows, sizes and epsilon alone.

A holder's residual r = y - f0(x) is clipped to [-R, R] and rounded at random between B equally spaced levels, so that its mean
is exact; (cell, level) is one categorical value of L B + 1, on which the whole epsilon goes. With w people in a cell and S the
unbiased sum of their levels, (S / w - offset) / slope estimates their mean residual; slope and offset undo the clipping, as long
as private errors are shifted by little. What is believed of larger shifts is looked up when all reports are read
(`ResidualRange.unclip`). What public errors leave unsure of the offset is an error that all cells share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ldptree.errors import ConfigError
from ldptree.inference.depth import NUMBER_LEVELS
from ldptree.inference.tree_gaussian import Levels
from ldptree.mechanisms import MECHANISMS, RESIDUAL_CHOICES, Mechanism, mechanism_for
from ldptree.protocol.published_base import mean_products
from ldptree.protocol.stochastic_rounding import expected_shares, label_levels
from ldptree.rounding import round_digits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.inference.discrepancy import DiscrepancyPrior
    from ldptree.models.ensemble import Ensemble
    from ldptree.partition.tree import Partition
    from ldptree.protocol.protocol import Protocol
    from ldptree.protocol.published_base import Contrast
    from ldptree.public_models.model import PublicModel

    Floats = NDArray[np.float64]

_AUTO = ("grr", "oue", "signed_subset")
_mechanism_for = lru_cache(1024)(mechanism_for)
"""A plan tries the same ones at depth after depth; their exact thresholds take long."""
NOISE_OF_SCALE = 0.04
"""Standard deviation that reports may give a cell's mean, in the label's scale, for a public model of unknown error. Of
.1, .05, .04 and .03 on the Chicago trips, .1 is too deep and the others are equal.
"""
MAX_CELLS = 1024
MOST_RMS = 2.0
_ARRAYS = ("public_count", "own_variance", "doubt", "answer", "usual")
LEAST_DROP = 0.1
"""Of the public model's variance, what a deeper tree is to take away more than a shallower one. Of 0, .02 and .1 on regression
sets, alike or with labels half a standard deviation higher, 0 has up to 5 % more error at eps 1, the others are equal."""
LEAST_SLOPE = 0.5
SATURATED = 0.5
"""Of the range of a residual, how far a clipped mean is from 0 where the range was too small for the people who reported."""
FURTHEST = 6.0
"""How many times the range people may then lie beyond twice of it."""
SHIFTS = np.linspace(-2.0, 2.0, 41)


@dataclass(frozen=True, kw_only=True)
class ResidualRange:
    """The range of a residual that is reported.

    Attributes:
        half: R, above 0.
        slope: of E clip(r + delta, -R, R) in delta.
        offset: mean of clip(r) less slope times the mean of r.
        offset_sd: how far public errors leave the offset unsure; large where they have heavy tails.
        moved: float64 [len(SHIFTS)], by how much the mean of clip(r) moves where r is shifted by `SHIFTS` R; () of a share, whose
            range is all that it can be.
    """

    half: float
    slope: float = 1.0
    offset: float = 0.0
    offset_sd: float = 0.0
    moved: tuple[float, ...] = ()

    @classmethod
    def of(cls, errors: Floats, half: float | None = None) -> ResidualRange:
        """Return the range for public out-of-fold errors [n], n >= 1, with R = min(2 rms, max abs) if none is given.

        Raises:
            ConfigError: the errors are all 0 and R is not given.
        """
        if half is None:
            half = min(MOST_RMS * float(np.sqrt(np.mean(errors**2))), float(np.abs(errors).max()))
            half = float(round_digits(half))
        if not half > 0:
            raise ConfigError("residual_range: the public errors are all 0, so they give no range; set it")
        slope = (
            max(float(np.mean(np.abs(errors) < half)), LEAST_SLOPE) if np.abs(errors).max() > half else 1.0
        )
        clipped = np.clip(errors, -half, half)
        moved = [np.mean(np.clip(errors + shift * half, -half, half) - clipped) for shift in SHIFTS]
        return cls(
            moved=tuple(map(float, moved)),
            half=half,
            slope=slope,
            offset=float(np.mean(clipped) - slope * np.mean(errors)),
            offset_sd=float(np.std(clipped - slope * errors)) / len(errors) ** 0.5,
        )

    def read(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Mean residuals and their variances, float64 [L], from means of clipped ones, as if they were shifted by little."""
        return (mean - self.offset) / self.slope, variance / self.slope**2

    def unclip(self, mean: Floats) -> Floats:
        """Return the mean residuals, of any shape, behind clipped means. Public errors that are all shifted by a mean
        residual are clipped to the given mean. At most 2 R; 0 stays 0.
        """
        if not self.moved:
            return mean
        unclipped: Floats = np.interp(mean * self.slope, self.moved, self.half * SHIFTS)
        return np.where(mean == 0, 0.0, unclipped)

    def as_read(self, mean: Floats) -> Floats:
        """The mean residuals that `unclip` made these of."""
        return self._shown(mean) / self.slope if self.moved else mean

    def _shown(self, mean: Floats) -> Floats:
        """By how much the mean of clipped residuals moves, where all are shifted by so much."""
        return np.interp(mean, self.half * SHIFTS, self.moved)

    def hidden(self, mean: Floats) -> Floats:
        """Return how much further from 0 than `mean` mean residuals may be, of its shape, where not all people are shifted
        alike.

        Where a part of them is, the same way, the mean of clipped residuals shows the least of it: the direction is right, the
        size too small. Here a third of them is at least, by 2 R at most.
        """
        if not self.moved:
            return np.zeros_like(mean)
        shifts, shown = self.half * SHIFTS, self._shown(mean)
        most, furthest = (np.where(mean > 0, ends[-1], ends[0]) for ends in (self.moved, shifts))
        share = np.divide(shown, most, out=np.zeros_like(shown), where=most != 0)
        of_third = np.interp(3.0 * shown, self.moved, shifts) / 3.0
        of_part: Floats = np.abs(np.where(share > 1.0 / 3.0, share * furthest, of_third))
        return np.maximum(of_part - np.abs(mean), 0.0)

    def beyond(self, mean: Floats) -> Floats:
        """Return how much further still mean residuals may be, of its shape, where most people lie beyond an end of the range."""
        if not self.moved:
            return np.zeros_like(mean)
        share = np.abs(self._shown(mean)) / self.half
        return np.where(share > SATURATED, FURTHEST * share * self.half, 0.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class CorrectionPlan:
    """One question to n holders, asking for their cell and for the public model's error on their row.

    Attributes:
        partition: the collection tree, L cells.
        mechanism: on L cells and B levels.
        range: of a residual.
        mean_square: of a rounded residual, as public errors have it.
        scale: the label's scale, in which discrepancies are measured: 2 standard deviations of a number, 1 for a share.
        public_count: float64 [L], public rows.
        own_variance: float64 [L, M], variance of the public model's own mean error; 0 where it does not know.
        doubt: float64 [L, M], the same for the sd of a correction alone: where the public model does not know its own, as much as
            the mean of the public labels of a cell has by their out-of-fold errors.
        expected_sd: what a report's noise leaves unknown of the mean residual of a cell of 1/L of the people.
    """

    partition: Partition
    mechanism: Mechanism
    range: ResidualRange
    mean_square: float
    scale: float
    public_count: Floats
    own_variance: Floats
    doubt: Floats
    expected_sd: float

    @property
    def common_sd(self) -> float:
        """Return the standard error that all mean residuals share, which the offset leaves unsure."""
        return self.range.offset_sd / self.range.slope

    @property
    def common_variance(self) -> float:
        """The same as a variance, in squares of the label's scale."""
        return (self.common_sd / self.scale) ** 2

    def shared_part(self, prior: DiscrepancyPrior, on_tree: Floats) -> float:
        """Return the part of a posterior mean on the tree [nodes] that all cells share, in the label's unit.

        Root and shared error are seen in their sum alone, of which each has a part as its variance is.
        """
        if not self.common_variance:
            return 0.0
        root = float(on_tree[self.partition.parent < 0][0])
        return self.common_variance / (self.common_variance + prior.root) * root * self.scale

    def on_nodes(self, mean: Floats, variance: Floats) -> tuple[Levels, Floats, Floats]:
        """The tree, and what was seen of its nodes with which variance, in the label's scale; mean, variance [L]."""
        tree, leaves = Levels.of(self.partition.parent), self.partition.leaves
        values, of_nodes = np.full(tree.n_nodes, np.nan), np.full(tree.n_nodes, np.inf)
        values[leaves], of_nodes[leaves] = mean / self.scale, variance / self.scale**2
        return tree, values, of_nodes

    @property
    def levels(self) -> tuple[float, ...]:
        """The B levels of a residual, equally spaced from -R to R."""
        return label_levels(-self.range.half, self.range.half, self.mechanism.n_classes)


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicEvidence:
    """The evidence of public rows before any epsilon, with a public model and the parts of a plan.

    Attributes:
        base: the public model.
        usual: float64 [M], its mean answer over the public rows.
        X: float32 [n, d], encoded public rows; n may be 0.
        answered: float64 [n, M], its answers to them.
        errors: float64 [m], out-of-fold errors of the public model (of all outputs together), or what stands in for them.
        range: of a residual.
        scale: see `CorrectionPlan`.
        grow: the collection tree of a given depth.
        own_variance: [L, M] of a collection tree; 0 where the public model does not know how unsure it is.
    """

    base: PublicModel
    usual: Floats
    X: NDArray[np.float32]
    answered: Floats
    errors: Floats
    range: ResidualRange
    scale: float
    grow: Callable[[int], Partition]
    own_variance: Callable[[Partition], Floats]

    def expected_shares(self, n_levels: int) -> Floats:
        """The share of public errors that is rounded to each level, float64 [n_levels]."""
        return expected_shares(self.errors, -self.range.half, self.range.half, n_levels)

    def with_base(self, ensemble: Ensemble) -> Self:
        """The same with a base that was published before, whatever these public rows would give."""
        base = replace(self.base, ensemble=ensemble)
        answered = base.answers(self.X)
        usual = answered.mean(axis=0) if len(self.X) else self.usual
        return replace(self, base=base, answered=answered, usual=usual)


def make_plan(
    evidence: PublicEvidence,
    *,
    epsilon: float,
    n_holders: int,
    depth: int | str = "auto",
    least_depth: int = 1,
    n_levels: int | str = "auto",
    mechanism: str = "auto",
) -> CorrectionPlan:
    """Choose tree, levels and oracle; no private row is looked at.

    Levels and oracle minimise the variance of the mean residual of a cell of 1/L of the people. Depth "auto" is the one with
    the largest expected drop of posterior variance, sum over cells of share V^2 / (V + E), V the public model's own
    variance and E the reports', but for depths that gain next to nothing. Where it does not know its own (V = 0), it is the
    deepest with sqrt(E) at most `NOISE_OF_SCALE` of the scale, and not above `least_depth`.

    Args:
        evidence: what is public.
        epsilon: of a report.
        n_holders: how many will report on one output, at least 1.
        depth: "auto", or the deepest a cell may lie.
        least_depth: of "auto", where the public model does not know its own variance.
        n_levels: "auto", or B.
        mechanism: one of `ldptree.mechanisms.RESIDUAL_CHOICES`; "auto": of grr, oue and signed_subset the one that leaves the
            smallest variance.

    Raises:
        ConfigError: the mechanism is not known, or refuses epsilon or sizes.
    """
    if mechanism not in RESIDUAL_CHOICES:
        raise ConfigError(f'mechanism = "{mechanism}": known are {", ".join(RESIDUAL_CHOICES)}')
    on = partial(
        _on,
        evidence,
        cache(evidence.expected_shares),
        epsilon=epsilon,
        n_holders=max(n_holders, 1),
        n_levels=n_levels,
        mechanism=mechanism,
    )
    if depth != "auto":
        return on(evidence.grow(int(depth)))
    plans: list[CorrectionPlan] = []
    for plan in _deeper(evidence, on):
        plans.append(plan)
        if (
            not plan.own_variance.any()
            and plan.expected_sd > NOISE_OF_SCALE * plan.scale
            and len(plans) > least_depth
        ):
            break  # deeper is noisier still
    if any(plan.own_variance.any() for plan in plans):
        return _worth_its_cells(plans)
    quiet = [at for at, plan in enumerate(plans) if plan.expected_sd <= NOISE_OF_SCALE * plan.scale]
    return plans[min(max([least_depth, *quiet]), len(plans) - 1)]


def _worth_its_cells(plans: Sequence[CorrectionPlan]) -> CorrectionPlan:
    """Return the deepest plan that takes `LEAST_DROP` more of the public model's variance than shallower ones, as a
    correction common to all cells gets noisier with their number.
    """
    best = plans[0]
    share = best.public_count / max(float(best.public_count.sum()), 1.0)
    least = LEAST_DROP * float(np.sum(share[:, None] * best.own_variance))
    for plan in plans[1:]:
        if expected_drop(plan) > expected_drop(best) + least:
            best = plan
    return best


def expected_drop(plan: CorrectionPlan) -> float:
    """Return the share of the public model's variance that reports of this plan are expected to remove, averaged over people."""
    total = plan.public_count.sum()
    if not total:
        return 0.0
    share = (plan.public_count / total)[:, None]
    variance = plan.own_variance
    return float(np.sum(share * variance**2 / (variance + _expected_noise(plan.expected_sd, share))))


def _expected_noise(sd: float, share: Floats) -> Floats:
    """Variance of the mean residual of cells of these shares; sd, of a cell of 1/L of the people."""
    noise: Floats = (sd / (len(share) * np.maximum(share, 1e-9))) ** 2
    return noise


def _deeper(evidence: PublicEvidence, on: Callable[[Partition], CorrectionPlan]) -> Iterator[CorrectionPlan]:
    """Plans of depth 0, 1, ... for as long as the tree is not too large; a tree that did not grow is left out."""
    before = 0
    for depth in range(MAX_CELLS.bit_length()):
        tree = evidence.grow(depth)
        if tree.n_leaves > MAX_CELLS:
            return
        if tree.n_leaves != before:
            yield on(tree)
        before = tree.n_leaves


def _on(
    evidence: PublicEvidence,
    shares: Callable[[int], Floats],
    tree: Partition,
    *,
    epsilon: float,
    n_holders: int,
    n_levels: int | str,
    mechanism: str,
) -> CorrectionPlan:
    choices = [
        _noise(evidence, shares(b), _mechanism_for(name, epsilon, tree.n_leaves, b), n_holders)
        for name in (_AUTO if mechanism == "auto" else (mechanism,))
        for b in _level_counts(name, n_levels)
        if mechanism != "auto" or MECHANISMS[name].for_classes in (None, b)
    ]
    best = min(choices, key=lambda choice: choice[0])
    return _plan(evidence, tree, *best)


def _level_counts(mechanism: str, n_levels: int | str) -> Sequence[int]:
    """To how many levels residuals may be rounded for it."""
    if n_levels != "auto":
        return (int(n_levels),)
    only = MECHANISMS[mechanism].for_classes
    return NUMBER_LEVELS if only is None else (only,)


def plan_published(
    evidence: PublicEvidence, tree: Partition, mechanism: Mechanism, n_holders: int
) -> CorrectionPlan:
    """Return the plan of a question published before, with its tree and mechanism and today's public rows."""
    shares = evidence.expected_shares(mechanism.n_classes)
    return _plan(evidence, tree, *_noise(evidence, shares, mechanism, max(n_holders, 1)))


def _plan(
    evidence: PublicEvidence, tree: Partition, variance: float, mean_square: float, mechanism: Mechanism
) -> CorrectionPlan:
    public_count = np.bincount(tree.apply(evidence.X), minlength=tree.n_leaves).astype(np.float64)
    own = evidence.own_variance(tree)
    return CorrectionPlan(
        partition=tree,
        mechanism=mechanism,
        range=evidence.range,
        mean_square=mean_square,
        scale=evidence.scale,
        public_count=public_count,
        own_variance=own,
        doubt=np.where(own > 0, own, _doubt_of_means(evidence, public_count)),
        expected_sd=variance**0.5,
    )


def _doubt_of_means(evidence: PublicEvidence, public_count: Floats) -> Floats:
    """Variance of the mean of the public labels of a cell, [L, 1], by their out-of-fold errors."""
    variance: Floats = float(np.mean(evidence.errors**2)) / np.maximum(public_count, 1.0)[:, None]
    return variance


def _noise(
    evidence: PublicEvidence, shares: Floats, mechanism: Mechanism, n: int
) -> tuple[float, float, Mechanism]:
    """Variance of the mean residual of a cell of n / L people, mechanism and rounding together; the mean square. `shares`: of
    the levels.
    """
    n_cells, half = mechanism.n_cells, evidence.range.half
    weights = np.array(label_levels(-half, half, mechanism.n_classes))
    mean_square = float(shares @ weights**2)
    inside = shares * n / n_cells
    noise = mechanism.cell_variance(weights, [1], inside[None], np.append(np.tile(inside, n_cells), 0.0))[0]
    variance = (float(noise) + n / n_cells * mean_square) / (evidence.range.slope * n / n_cells) ** 2
    return variance, mean_square, mechanism


@dataclass(frozen=True, eq=False)
class Halves:
    """The place of the halves of K contrasts in L cells, by public rows.

    Attributes:
        balance: float64 [L, K], the mean sign in each cell; 0 where there is no row.
        overlap: float64 [K, K], the mean product of two contrasts' signs less their balance.
    """

    balance: Floats
    overlap: Floats

    @classmethod
    def of(cls, contrasts: Sequence[Contrast], partition: Partition, X: NDArray[np.float32]) -> Self:
        """Of encoded public rows X, float32 [n, d], n >= 1."""
        cells = partition.apply(X)
        count = np.bincount(cells, minlength=partition.n_leaves)
        sums = [np.bincount(cells, weights=c.signs(X), minlength=len(count)) for c in contrasts]
        balance = np.stack(sums, axis=1) / np.maximum(count, 1)[:, None]
        return cls(balance, mean_products(contrasts, X) - (balance.T * count) @ balance / len(X))


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicSummary:
    """The public rows' part in reading the answers to a published question, computed once.

    Attributes:
        plan: the question.
        answer: float64 [L, M], the public model's mean answer over the public rows of each cell; `usual` where there is none.
        usual: float64 [M], the same over all.
        n_public: public rows.
        errors: float64 [n], the out-of-fold errors of the public model, where another question follows that is made of them.
        halves: where a question about contrasts came before, how these lie in the cells.
    """

    plan: CorrectionPlan
    answer: Floats
    usual: Floats
    n_public: int
    errors: Floats | None = None
    halves: Halves | None = None

    @classmethod
    def of(cls, evidence: PublicEvidence, plan: CorrectionPlan) -> Self:
        """Of the evidence that a plan was made of."""
        X, n_cells = evidence.X, plan.partition.n_leaves
        answer = np.tile(evidence.usual, (n_cells, 1))
        if len(X):
            cells, is_met = plan.partition.apply(X), plan.public_count > 0
            sums = np.stack(
                [np.bincount(cells, weights=column, minlength=n_cells) for column in evidence.answered.T],
                axis=1,
            )
            answer[is_met] = sums[is_met] / plan.public_count[is_met][:, None]
        return cls(plan=plan, answer=answer, usual=evidence.usual, n_public=len(X))

    def to_json(self) -> dict[str, Any]:
        """Plain values, without what the protocol says."""
        plan, clip_range, halves = self.plan, self.plan.range, self.halves
        data = {
            "range": [clip_range.half, clip_range.slope, clip_range.offset, clip_range.offset_sd],
            "moved": list(clip_range.moved),
            "mean_square": plan.mean_square,
            "scale": plan.scale,
            "expected_sd": plan.expected_sd,
            "n_public": self.n_public,
            "public_count": plan.public_count.tolist(),
            "own_variance": plan.own_variance.tolist(),
            "doubt": plan.doubt.tolist(),
            "answer": self.answer.tolist(),
            "usual": self.usual.tolist(),
        }
        data |= {} if self.errors is None else {"errors": self.errors.tolist()}
        return data | (
            {} if halves is None else {"halves": [halves.balance.tolist(), halves.overlap.tolist()]}
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any], protocol: Protocol) -> Self:
        """Read what `to_json` wrote, and the protocol it was written beside."""
        half, slope, offset, offset_sd = data["range"]
        arrays = {name: np.array(data[name], dtype=np.float64) for name in _ARRAYS}
        plan = CorrectionPlan(
            partition=protocol.partition,
            mechanism=protocol.mechanism,
            range=ResidualRange(
                half=half,
                slope=slope,
                offset=offset,
                offset_sd=offset_sd,
                moved=tuple(data["moved"]),
            ),
            mean_square=data["mean_square"],
            scale=data["scale"],
            public_count=arrays["public_count"],
            own_variance=arrays["own_variance"],
            doubt=arrays["doubt"],
            expected_sd=data["expected_sd"],
        )
        errors = np.array(data["errors"], dtype=np.float64) if "errors" in data else None
        halves = Halves(*map(np.array, data["halves"])) if "halves" in data else None
        return cls(
            plan=plan,
            answer=arrays["answer"],
            usual=arrays["usual"],
            n_public=data["n_public"],
            errors=errors,
            halves=halves,
        )
