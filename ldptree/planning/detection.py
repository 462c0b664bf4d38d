"""The smallest error of the public model that reports would find, from the exact variance of totals.

A cell's mean is known up to a variance v_j: the mechanism's noise (`Totals.cell_variance`), rounding and who happens to be in
it. The reports say that something differs where the sum of (difference / sd)^2 over L cells exceeds the 1 - LEVEL quantile of
chi-square with L degrees of freedom. A difference d in a share s of people, f_j of those in cell j, makes that sum noncentral
with lambda = d^2 sum_j f_j^2 / v_j. With w_j of people in each cell sum_j w_j f_j = s, so lambda >= (s d)^2 / sum_j w_j^2 v_j
(Cauchy and Schwarz), wherever these people are. The smallest d that is found is the one for which that reaches the power.

The model may be as wrong on public people. That private people differ is found where the same sum is as large with what public
rows leave open of the model's own error, a variance too, added to each v_j.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ldptree.errors import ConfigError
from ldptree.planning.monotone import fall

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.protocol.protocol import Protocol
    from ldptree.protocol.totals import Totals

    Floats = NDArray[np.float64]

LEVEL = 0.05
"""The chance that noise alone looks as strong."""
POWER = 0.8
"""The chance that the error is found."""


@dataclass(frozen=True)
class Findable:
    """The smallest error that reports would find, in the unit of what is asked about.

    Attributes:
        error: the smallest error of the public model, whoever and wherever those are whom it is wrong on.
        difference: the smallest of private people in particular, beyond what public rows leave open; None: no public model.
    """

    error: float
    difference: float | None


def fall_together(smallest: Sequence[Findable | None], shape: tuple[int, int]) -> list[Findable | None]:
    """Make the smallest findable errors at increasing epsilons [n] with increasing numbers of people [m], shape (n, m),
    monotone: a larger collection finds whatever a smaller one finds, as it may look at fewer cells.
    """
    known = [findable for findable in smallest if findable is not None]
    if len(known) < len(smallest):
        return list(smallest)
    errors = fall(np.reshape([findable.error for findable in known], shape)).ravel()
    differences = fall(
        np.reshape(
            [np.inf if findable.difference is None else findable.difference for findable in known], shape
        )
    )
    return [
        Findable(float(error), None if findable.difference is None else float(difference))
        for findable, error, difference in zip(known, errors, differences.ravel(), strict=True)
    ]


def find_smallest(
    protocol: Protocol, totals: Totals, shares: Floats, share: float, doubt: Floats | None
) -> Findable:
    """Find the smallest error and the smallest difference that reports would show. `doubt`, float64 [L], is the
    variance that public rows leave open. The other arguments are as of `smallest_error`.
    """
    return Findable(
        error=smallest_error(protocol, totals, shares, share),
        difference=None if doubt is None else smallest_error(protocol, totals, shares, share, doubt),
    )


def smallest_error(
    protocol: Protocol, totals: Totals, shares: Floats, share: float, doubt: Floats | float = 0.0
) -> float:
    """The smallest error that is found wherever it is, in the unit of what is asked about.

    Args:
        protocol: the question.
        totals: of simulated reports to it, of one output.
        shares: float64 [L], of people in each cell.
        share: of people, on whom the public model is wrong.
        doubt: float64 [L], what is unsure of a cell's mean besides, a variance.
    """
    variance = mean_variance(protocol, totals, shares) + doubt
    of_mean = float(np.sum((shares / shares.sum()) ** 2 * variance))
    return math.sqrt(noncentrality(len(variance)) * of_mean) / share


def smallest_errors(
    protocol: Protocol, totals: Totals, share: float, epsilons: Iterable[float]
) -> dict[float, float]:
    """The smallest error that as many people's reports to the same question would find at each epsilon; without one at which
    they would carry nothing. `totals`: of what was reported, of one output; other arguments as of `smallest_error`.
    """
    held = np.maximum(totals.cell_counts, 0.0)
    shares = held / held.sum() if held.sum() > 0 else np.full(len(held), 1.0 / len(held))
    errors = {}
    for epsilon in epsilons:
        try:
            mechanism = totals.mechanism.at_epsilon(epsilon)
        except ConfigError:
            continue
        errors[epsilon] = smallest_error(protocol, replace(totals, mechanism=mechanism), shares, share)
    return errors


def mean_variance(protocol: Protocol, totals: Totals, shares: Floats) -> Floats:
    """Return the variance of the mean that reports give for each cell, float64 [L], of a number or an error in its
    unit, or of the share of a class. Arguments as of `smallest_error`. A cell with hardly anybody counts as one with a
    quarter of an even share.
    """
    mass = totals.n_inside * np.maximum(shares, 0.25 / protocol.n_cells)
    weights = class_weights(protocol)
    spread = _mean_square(totals, weights)
    return np.asarray((totals.cell_variance(weights) + mass * spread) / mass**2)


def class_weights(protocol: Protocol) -> Floats:
    """Return the weights of totals in the sum for a cell's mean, float64 [C]. They are numbers about the middle of
    their range, or 1/2 for class 1, which is the positive one of two, and -1/2 for the others.
    """
    if protocol.numeric:
        weights = np.array(protocol.classes, dtype=np.float64)
        return np.asarray(weights - weights.mean())
    halves = np.full(protocol.n_classes, -0.5)
    halves[1] = 0.5
    return halves


def noncentrality(n_cells: int) -> float:
    """The noncentrality at which a chi-square test of so many cells reaches the power."""
    from scipy.optimize import brentq
    from scipy.stats import chi2, ncx2

    limit = chi2.isf(LEVEL, n_cells)
    return float(brentq(lambda size: ncx2.sf(limit, n_cells, size) - POWER, 1e-6, 50.0 + 10.0 * n_cells))


def _mean_square(totals: Totals, weights: Floats) -> float:
    """Return the mean square of the reported number about its mean, which measures how people differ."""
    shares = np.maximum(totals.counts.sum(axis=0), 0.0)
    shares = shares / max(shares.sum(), 1e-300)
    mean = float(shares @ weights)
    return float(shares @ (weights - mean) ** 2)
