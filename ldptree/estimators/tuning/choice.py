"""Which question is asked, over which ranges, and which candidate its answers choose: all from public things and reports.

What lives here: what public rows are good for in tuning, and the choice. What does not: the reports (the files beside this one).

Public rows have shaped the candidates, so their errors on them are too small, and private people may be others; yet a
candidate that is far off there is far off. So they are a prior that is wide: the difference of two candidates on private
people is that on the public rows, give or take the whole of the first candidate's public error. Without it a candidate that is
hopeless wins whenever its noise is lucky: on eight real sets, nine candidates, eps .5, regret is 45 % without and 8 % with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ldptree.errors import ConfigError
from ldptree.estimators.tuning import QUESTIONS, Difference, Estimates, OneModel, ValidationQuestion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CHOICES = ("auto", *QUESTIONS)
AUTOMATIC = ("difference", "one-model")
"""Among these "auto" takes the one whose estimates public rows say will be quieter."""
MARGIN = 1.0
"""A candidate counts as its excess and this many standard deviations: the less is known of it, the less it is chosen."""
QUANTILES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
"""Of public rows, among which a range is chosen."""


def question_for(
    choice: str,
    epsilon: float,
    *,
    public_losses: Floats,
    loss_bound: float,
    difference_bounds: Sequence[float],
    n_validation: int,
) -> ValidationQuestion:
    """The question about k candidates, ranges of losses chosen from public rows.

    A narrow range clips what it does not hold, a wide one is noisy: of quantiles of the public rows and the bound, the one
    with the least squared clipping bias (on the public rows) and noise variance together.

    Args:
        choice: one of `CHOICES`.
        epsilon: of a report.
        public_losses: float64 [n_Q, k] of the candidates on public rows; n_Q may be 0.
        loss_bound: the most that a loss can be.
        difference_bounds: [k], the most that each candidate's can differ from the first one's.
        n_validation: holders who will be asked.

    Raises:
        ConfigError: the choice is not known, epsilon is out of range, or candidates are fewer than 2.
    """
    if choice not in CHOICES:
        raise ConfigError(f"tune_mechanism = {choice!r}: known are {', '.join(CHOICES)}")
    losses = np.asarray(public_losses, dtype=np.float64)
    made = []
    for name in AUTOMATIC if choice == "auto" else (choice,):
        kind = QUESTIONS[name]
        bounds, asked = [loss_bound] * len(difference_bounds), losses
        if issubclass(kind, Difference):
            # models that differ in no cell but in what rows without a cell are told have a bound of 0
            bounds = [bound or loss_bound for bound in difference_bounds]
            asked = np.abs(losses - losses[:, :1])
        noise = kind.for_budget(epsilon, [1.0] * len(bounds)).noise / max(n_validation, 1)
        ranges = [_range(asked[:, j], bound, noise) for j, bound in enumerate(bounds)]
        made.append(kind.for_budget(epsilon, ranges))
    return min(made, key=lambda question: _expected_variance(question, losses)) if len(made) > 1 else made[0]


def _range(losses: Floats, bound: float, noise: float) -> float:
    """Of one candidate's public losses [n_Q]; noise: variance of its estimate, in squared ranges."""
    if not losses.size or not losses.any():
        return bound
    tried = np.minimum(np.append(np.quantile(losses, QUANTILES), bound), bound)
    tried = tried[tried > 0]
    bias = np.array([float((losses - np.minimum(losses, t)).mean()) for t in tried])
    return float(tried[np.argmin(bias**2 + noise * tried**2)])


def _expected_variance(question: ValidationQuestion, losses: Floats) -> float:
    """Of a candidate's excess over the first, per holder asked; the median one. From public losses [n_Q, k]."""
    ranges, k = np.array(question.ranges), question.n_candidates
    seen = losses if len(losses) > 1 else np.zeros((2, k))
    if isinstance(question, Difference):
        spread = np.clip(seen[:, 1:] - seen[:, :1], -ranges[1:], ranges[1:]).var(axis=0)
        return float(np.median(question.noise * ranges[1:] ** 2 + question.n_asked * spread))
    assert isinstance(question, OneModel)
    each = question.noise * ranges**2 + question.n_asked * np.minimum(seen, ranges).var(axis=0)
    return float(np.median(each[1:] + each[0]))


def excess(estimates: Estimates, public_losses: Floats) -> tuple[Floats, Floats]:
    """How much worse than the first each candidate is held to be, and its standard deviation: float64 [k] each.

    Args:
        estimates: from reports, of k candidates.
        public_losses: float64 [n_Q, k], in the same unit; without rows (n_Q = 0) the reports stand alone.
    """
    worse = estimates.value - estimates.value[0]
    sd = np.array([0.0, *(estimates.sd_of_excess(j) for j in range(1, worse.size))])
    if not len(public_losses):
        return worse, sd
    differences = public_losses - public_losses[:, :1]
    prior = differences.var(axis=0) / len(public_losses) + public_losses[:, 0].mean() ** 2
    precision = np.divide(1.0, sd**2, out=np.zeros_like(sd), where=(sd > 0) & np.isfinite(sd))
    # one that is known exactly stays so: the first; and reports that all said the same are no proof
    weight = precision * prior / (precision * prior + 1.0)
    held = weight * worse + (1.0 - weight) * differences.mean(axis=0)
    held_sd = np.sqrt((1.0 - weight) * prior)
    held[0] = held_sd[0] = 0.0
    return held, held_sd


def choose(worse: Floats, sd: Floats, margin: float = MARGIN) -> int:
    """The candidate whose excess is least if it is taken `margin` standard deviations worse; the first of equal ones.

    Of candidates that are alike the least estimate is the luckiest one: the first, whose excess is 0 for sure, stays
    unless another is better by more than luck of that size.
    """
    pessimistic = np.where(np.isfinite(sd), worse + margin * np.where(np.isfinite(sd), sd, 0.0), np.inf)
    return int(np.argmin(pessimistic))


def largest_difference(first: Floats, other: Floats, low: float, high: float) -> float:
    """The most by which two predictions of the same row can differ in squared error, over labels in [low, high].

    |(f - y)^2 - (g - y)^2| = |f - g| |f + g - 2 y|, largest at an end of the range. Predictions [cells], of the same cells.
    """
    middle = first + other
    reach = np.maximum(np.abs(middle - 2 * low), np.abs(middle - 2 * high))
    return float((np.abs(first - other) * reach).max(initial=0.0))
