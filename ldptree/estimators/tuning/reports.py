"""What validation holders are asked about the candidates, with ranges chosen by public rows, and their reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.errors import ConfigError
from ldptree.estimators.tuning.questions import QUESTIONS, Difference, OneModel, ValidationQuestion
from ldptree.protocol.ledger import Charge, Ledger, RowRange

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.coins import Words
    from ldptree.estimators.tuning.losses import PublicLosses

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

CHOICES = ("auto", *QUESTIONS)
AUTOMATIC = ("difference", "one-model")
""""auto" takes the one of these whose estimates are expected to be less noisy, by public rows."""
QUANTILES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
"""Of public losses, among which a range is chosen."""


def question_for(choice: str, epsilon: float, losses: PublicLosses, n_validation: int) -> ValidationQuestion:
    """The question about k candidates, with ranges chosen by public rows.

    A narrow range clips what it does not hold, a wide one is noisy: of quantiles of the public losses and the bound, the one
    with the least squared clipping bias (on public rows) and noise variance together.

    Args:
        choice: one of `CHOICES`.
        epsilon: of a report.
        losses: of the candidates.
        n_validation: holders who will report.

    Raises:
        ConfigError: the choice is not known, epsilon is out of range, or candidates are fewer than 2.
    """
    if choice not in CHOICES:
        raise ConfigError(f"tune_mechanism = {choice!r}: known are {', '.join(CHOICES)}")
    values = np.asarray(losses.values, dtype=np.float64)
    made = []
    for name in AUTOMATIC if choice == "auto" else (choice,):
        kind = QUESTIONS[name]
        bounds, reported = [losses.bound] * len(losses.difference_bounds), values
        if issubclass(kind, Difference):
            # models that differ only in the prediction of a row without a cell have a bound of 0
            bounds = [bound or losses.bound for bound in losses.difference_bounds]
            reported = np.abs(values - values[:, :1])
        noise = kind.for_budget(epsilon, [1.0] * len(bounds)).noise / max(n_validation, 1)
        ranges = [_choose_range(reported[:, j], bound, noise) for j, bound in enumerate(bounds)]
        made.append(kind.for_budget(epsilon, ranges))
    return min(made, key=lambda question: _expected_variance(question, values)) if len(made) > 1 else made[0]


def _choose_range(losses: Floats, bound: float, noise: float) -> float:
    """Of one candidate's public losses [n_Q]; noise: variance of its estimate, in squared ranges."""
    if not losses.size or not losses.any():
        return bound
    tried = np.minimum(np.append(np.quantile(losses, QUANTILES), bound), bound)
    tried = tried[tried > 0]
    bias = np.array([float((losses - np.minimum(losses, t)).mean()) for t in tried])
    return float(tried[np.argmin(bias**2 + noise * tried**2)])


def _expected_variance(question: ValidationQuestion, losses: Floats) -> float:
    """Variance of a candidate's excess over the first, times the number of holders; the median one. Public losses [n_Q, k]."""
    ranges, k = np.array(question.ranges), question.n_candidates
    seen = losses if len(losses) > 1 else np.zeros((2, k))
    if isinstance(question, Difference):
        spread = np.clip(seen[:, 1:] - seen[:, :1], -ranges[1:], ranges[1:]).var(axis=0)
        return float(np.median(question.noise * ranges[1:] ** 2 + question.n_assigned * spread))
    assert isinstance(question, OneModel)
    each = question.noise * ranges**2 + question.n_assigned * np.minimum(seen, ranges).var(axis=0)
    return float(np.median(each[1:] + each[0]))


def collect_reports(
    question: ValidationQuestion,
    losses: Floats,
    *,
    epsilon: float,
    start: int,
    ledger: Ledger,
    words: Words,
) -> tuple[NDArray[Any], Ints]:
    """Charge the ledger, have each validation holder report once: (reports [n, ...], the candidate of each [n]).

    Args:
        question: what holders answer.
        losses: float64 [n, k] of the candidates on each holder's own row, in the order drawn; the holders' side.
        epsilon: what each is charged, at least `question.epsilon`.
        start: the first one's place among the ledger's rows.
        ledger: charged before a report is drawn.
        words: the coins.

    Raises:
        BudgetError: a holder has reported before, and the cap leaves no room.
        ConfigError: the question spends more than epsilon.
    """
    if question.epsilon > epsilon:
        raise ConfigError(
            f"tuning, {question.name}: a report spends epsilon {question.epsilon:g}, more than the {epsilon:g} claimed"
        )
    assigned = question.assign(len(losses))
    edges = np.flatnonzero(np.diff(assigned)) + 1
    runs = [run for run in np.split(np.arange(assigned.size), edges) if run.size]
    ledger.spend(
        [
            Charge(
                question=f"{question.digest} {assigned[run[0]]}",
                epsilon=epsilon,
                who=RowRange(source="private rows", start=start + int(run[0]), stop=start + int(run[-1]) + 1),
                about=question.about(int(assigned[run[0]])),
            )
            for run in runs
        ]
    )
    return question.randomize(losses, assigned, words), assigned
