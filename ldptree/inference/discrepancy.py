"""The processes that the difference of private and public people may follow on a tree. Lists those that are tried, and
chooses by noisy differences.

What the differences are of is in `weighting` and `families.corrections`, what a choice leaves unsaid in `model_uncertainty`.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ldptree.inference.tree_gaussian import Levels, log_likelihoods

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

T = TypeVar("T")
ROOT_GRID = (0.0, 0.002, 0.02)
STEP_GRID = (0.0, 0.002, 0.006, 0.02, 0.06)
DECAY_GRID = (0.5, 1.0)
LEAST_SHARE = 1e-3
"""Of the likelihood of all processes, below which one is of no matter."""
NATS_PER_COMPONENT = 3.0
"""Least gain in log likelihood of a non-zero component. 1.5 gives in to noise, 5 is slow to learn (as measured)."""


@dataclass(frozen=True, kw_only=True)
class DiscrepancyPrior:
    """The Gaussian process of D = private theta - public theta on the tree.

    D_root ~ N(0, root) and D_child = D_parent + N(0, t_k) with t_k = step * decay^(k - 1) at depth k. All
    zero: public and private people are alike.
    """

    root: float
    step: float
    decay: float

    def innovation(self, max_depth: int, common: float = 0.0) -> Floats:
        """Return [max_depth + 1] variances, the root's first. `common` is of an error that observations share."""
        steps = self.step * self.decay ** np.arange(max_depth, dtype=np.float64)
        return np.concatenate([[self.root + common], steps])

    @property
    def kind(self) -> tuple[bool, bool]:
        """Pair that says whether the root's and the steps' variances are not zero."""
        return self.root > 0, self.step > 0

    @property
    def n_components(self) -> int:
        """Number of them that are not zero."""
        return sum(self.kind)


DIFFERENT = 0.25
"""The prior chance that private people differ from public ones in level, and the same that they differ from cell to cell. Of
1/2, 1/4, 1/8 and 1/21, on laws with and without differences, the first two win most where there are some; the first loses most
where there are none."""

ALIKE = DiscrepancyPrior(root=0.0, step=0.0, decay=1.0)


def choose_discrepancy(
    levels: Levels,
    observed: Floats,
    variance: Floats,
    roots: Sequence[float] = ROOT_GRID,
    common: float = 0.0,
) -> DiscrepancyPrior:
    """The process of the grid with the largest penalised likelihood of `observed`; of equals, the simplest.

    Args:
        levels: the tree.
        observed: [nodes] differences private - public theta, ignored where `variance` is infinite.
        variance: [nodes] their noise variances.
        roots: what the root's variance may be, 0 first.
        common: variance of an error that all observations share, beside their noise.
    """

    grid = discrepancy_grid(roots)
    fits = _fits(grid, levels, observed, variance, common)
    scores = [fit - NATS_PER_COMPONENT * prior.n_components for prior, fit in zip(grid, fits, strict=True)]
    return grid[int(np.argmax(scores))]


def likely_discrepancies(
    levels: Levels,
    observed: Floats,
    variance: Floats,
    roots: Sequence[float] = ROOT_GRID,
    common: float = 0.0,
) -> list[tuple[DiscrepancyPrior, float]]:
    """The processes of the grid with the share of their likelihood, those with next to none left out.

    `choose_discrepancy` takes a simple one until the totals speak against it; how unsure that leaves us is said by all of them,
    none preferred. Arguments as there.
    """
    grid = discrepancy_grid(roots)
    return share_likelihood(grid, _fits(grid, levels, observed, variance, common))


def average_discrepancies(
    levels: Levels,
    observed: Floats,
    variance: Floats,
    roots: Sequence[float] = ROOT_GRID,
    common: float = 0.0,
) -> list[tuple[DiscrepancyPrior, float]]:
    """Return the processes of the grid with their posterior chances, without the least likely, for a Bayesian average.

    A difference in level and one between cells are there with the chance `DIFFERENT` each, of any of the sizes tried. Arguments
    as of `choose_discrepancy`.
    """
    grid = discrepancy_grid(roots)
    kinds = Counter(prior.kind for prior in grid)
    odds = math.log(DIFFERENT / (1.0 - DIFFERENT))
    fits = _fits(grid, levels, observed, variance, common)
    return share_likelihood(
        grid,
        [
            fit + odds * prior.n_components - math.log(kinds[prior.kind])
            for prior, fit in zip(grid, fits, strict=True)
        ],
    )


def _fits(
    grid: Sequence[DiscrepancyPrior], levels: Levels, observed: Floats, variance: Floats, common: float
) -> list[float]:
    innovations = np.stack([prior.innovation(levels.max_depth, common) for prior in grid])
    fits: list[float] = log_likelihoods(levels, observed, variance, innovations).tolist()
    return fits


def share_likelihood(candidates: Sequence[T], fits: Sequence[float]) -> list[tuple[T, float]]:
    """Each with its share of the likelihood, given log likelihoods; those with less than `LEAST_SHARE` left out."""
    shares = np.exp(np.array(fits) - max(fits))
    shares = np.where(shares > LEAST_SHARE * shares.sum(), shares, 0.0)
    return [
        (candidate, float(s)) for candidate, s in zip(candidates, shares / shares.sum(), strict=True) if s
    ]


def discrepancy_grid(roots: Sequence[float]) -> list[DiscrepancyPrior]:
    """Every process that is tried, the simplest first."""
    steps = [(0.0, 1.0), *itertools.product(STEP_GRID[1:], DECAY_GRID)]
    return [DiscrepancyPrior(root=r, step=s, decay=d) for r, (s, d) in itertools.product(roots, steps)]
