"""Choosing among candidates by the reports of holders who do not train (LPDT, NeurIPS 2023, appendix D.2).

A share of the private rows validates: each of its holders reports the errors of all k candidates on their own row, and the
candidate whose reported errors are smallest on average is kept. The others train. Candidates that differ in `READINGS` alone are
read from the same reports; others divide the training holders, where the paper trains each candidate on all of them and does not
count what that costs. Public coins draw the groups before anybody answers; a holder is in one group only and sends one report
with the whole epsilon.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ldptree.coins import (
    RATE_UNIT,
    SMALLEST_RATE,
    Words,
    checked_epsilon,
    draw_laplace,
    furthest_laplace,
    rounded_up,
)
from ldptree.errors import ConfigError, DataError
from ldptree.estimators.holders import Conversation, SplitRows
from ldptree.families.settings import WeighedSettings
from ldptree.protocol.ledger import Charge, RowRange
from ldptree.protocol.stochastic_rounding import round_at_random

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.families.tree import LPCT, LPDT
    from ldptree.models.tree import AnyTree

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

READINGS = WeighedSettings.READS
_ASKED = ("depth", "min_samples_leaf", "mechanism", "partition", "rho")
PARAMETERS = (*READINGS, *_ASKED)
"""Settings that a candidate may have, where the estimator has them."""
MOST_CANDIDATES = 64
STEPS = 64
"""Levels of an error, less one."""
_PUBLIC_COINS, _VALIDATION = 71, 73


@dataclass(frozen=True)
class AllErrors:
    """The report of k errors, each with Laplace noise on the integers.

    The paper adds M^2 sqrt(k) / eps of Laplace noise to each error "by advanced composition" and calls that eps-private. Errors
    of labels in [-M, M] lie up to (2 M)^2 apart, and k numbers with a k-th of epsilon each compose to epsilon only at noise of
    k range / eps; sqrt(k) in its place spends sqrt(k) eps. Here it is k range / eps.

    An error is clipped to its range and rounded at random to one of 65 levels, so that its mean is exact. The noise variance of a
    candidate's mean over n holders is 2 k^2 range^2 / (eps^2 n). Reports are int32 [n, k], in steps of range / 64.

    Attributes:
        n_candidates: k.
        largest: the range; errors lie from 0 to it.
        rate: r 2^32, of noise with P(x) ~ e^(-r |x|); two holders' reports differ in likelihood by at most e^(64 k r).

    Raises:
        ConfigError: the rate is out of range.
    """

    n_candidates: int
    largest: float
    rate: int

    def __post_init__(self) -> None:
        if not SMALLEST_RATE <= self.rate <= 2**40:
            raise ConfigError(
                f"tuning: epsilon is too small or too large for the errors of {self.n_candidates} candidates: the rate of the "
                f"noise is {self.rate}, not {SMALLEST_RATE} .. 2^40"
            )

    @classmethod
    def for_budget(cls, epsilon: float, n_candidates: int, largest: float) -> Self:
        """Return the report that spends at most epsilon, a k-th of it on each error."""
        rate = Fraction(checked_epsilon(epsilon)) * RATE_UNIT / (STEPS * n_candidates)
        return cls(n_candidates, largest, int(rate))

    @property
    def epsilon(self) -> float:
        """64 k r, exact or rounded up."""
        return rounded_up(Fraction(self.n_candidates * STEPS * self.rate, RATE_UNIT))

    def randomize(self, errors: Floats, words: Words) -> NDArray[np.int32]:
        """Report errors, float64 [n, k] with a row per holder, on the holders' side."""
        shares = np.clip(errors / self.largest, 0.0, 1.0)
        noisy = round_at_random(shares.ravel(), 0.0, 1.0, STEPS + 1, words)
        noisy = noisy + draw_laplace(self.rate, noisy.size, words)
        bound = furthest_laplace(self.rate)  # one in 2^64 lies beyond
        kept: NDArray[np.int32] = np.clip(noisy, -bound, bound + STEPS).astype(np.int32)
        return kept.reshape(shares.shape)

    def estimate(self, reports: NDArray[np.int32]) -> tuple[Floats, Floats]:
        """Estimate each candidate's mean error and its standard deviation, float64 [k], on the curator's side."""
        step = self.largest / STEPS
        return step * reports.mean(axis=0), step * reports.std(axis=0, ddof=1) / math.sqrt(len(reports))


@dataclass(frozen=True, eq=False, kw_only=True)
class Tuning:
    """The answers of validation holders, and what they cost.

    Attributes:
        candidates: the parameters of each.
        chosen: place of the one whose reported error is smallest, the first of equal ones.
        error, sd: float64 [k], the mean error of each as reported, and its standard deviation.
        n_training: int [k], holders whose reports the candidate was fitted to.
        n_validation: holders who reported errors instead.
        epsilon: what each of these spent, from the integers in use.
    """

    candidates: tuple[Mapping[str, Any], ...]
    chosen: int
    error: Floats
    sd: Floats
    n_training: Ints
    n_validation: int
    epsilon: float

    @property
    def chosen_candidate(self) -> Mapping[str, Any]:
        """Parameters of the one that was kept."""
        return self.candidates[self.chosen]

    def __repr__(self) -> str:
        lines = [
            f"{'>' if j == self.chosen else ' '} {error:.4g} +- {sd:.2g}  {dict(candidate) or 'as given'}"
            for j, (candidate, error, sd) in enumerate(zip(self.candidates, self.error, self.sd, strict=True))
        ]
        return "\n".join([f"Tuning by {self.n_validation:,} holders (mean error):", *lines])


def tune(
    candidates: Sequence[Mapping[str, Any]],
    family_for: Callable[[Mapping[str, Any], Ints | None], LPCT | LPDT],
    errors_of: Callable[[AnyTree, SplitRows], Floats],
    largest: float,
    rows: SplitRows,
    *,
    validation_share: float,
    seeds: Ints | None,
) -> tuple[Conversation, AnyTree, Tuning]:
    """Train all candidates, let validation holders choose, and return the conversation and the model of the best.

    Args:
        candidates: parameters of each.
        family_for: the family of a candidate, with the seeds of a simulation.
        errors_of: float64 [n], how far a model is off on each private row, from 0 to `largest`; the holders' side.
        largest: the most that an error can be.
        rows: of the fit; their ledger is charged for either group, by places in the order drawn.
        validation_share: of the private rows.
        seeds: of a simulation, or None.

    Raises:
        ConfigError, DataError, BudgetError: epsilon is out of range, rows are too few, a holder has no budget left.
    """
    questions = _group_by_question(candidates)
    *training, validation = draw_groups(
        rows.n_private,
        n_training=len(questions),
        validation_share=validation_share,
        coins=_public_coins(seeds),
    )
    known: dict[int, tuple[Conversation, AnyTree, int]] = {}
    start = 0
    for number, (members, part) in enumerate(zip(questions, training, strict=True)):
        coins = _seeds_of(seeds, number)
        families = [family_for(candidates[j], coins) for j in members]
        conversation = Conversation.hold(families[0], rows.part(part, start), coins)
        start += part.size
        for j, family in zip(members, families, strict=True):
            known[j] = conversation, conversation.fit(**family.for_model), part.size
    trained = [known[j] for j in range(len(candidates))]
    held = rows.part(validation, start)
    errors = np.stack([errors_of(model, held) for _, model, _ in trained], axis=1)
    epsilon = family_for({}, seeds).epsilon
    report = AllErrors.for_budget(epsilon, len(candidates), largest)
    error, sd = report.estimate(_collect_errors(report, errors, held, epsilon, seeds))
    tuning = Tuning(
        candidates=tuple(candidates),
        chosen=int(np.argmin(error)),
        error=error,
        sd=sd,
        n_training=np.array([n for _, _, n in trained], dtype=np.int64),
        n_validation=validation.size,
        epsilon=report.epsilon,
    )
    conversation, model, _ = trained[tuning.chosen]
    return conversation, model, tuning


def draw_groups(
    n: int, *, n_training: int, validation_share: float, coins: np.random.Generator
) -> list[Ints]:
    """Draw groups of row numbers with everybody in one, first equal ones for training, then that of validation.

    Raises:
        DataError: there are too few rows for everybody to report on something.
    """
    n_validation = round(n * validation_share)
    if n_validation < 2 or n - n_validation < n_training:
        raise DataError(
            f"candidates: of {n} private rows (n_samples={n}) {n_validation} would validate and {n - n_validation} train in "
            f"{n_training} group(s), too few to tell anything; leave candidates out, or change validation_share"
        )
    edges = [(n - n_validation) * g // n_training for g in range(1, n_training + 1)]
    return np.split(coins.permutation(n).astype(np.int64), edges)


def _collect_errors(
    report: AllErrors, errors: Floats, held: SplitRows, epsilon: float, seeds: Ints | None
) -> NDArray[np.int32]:
    """Charge the ledger, then have each validation holder report once."""
    held.ledger.spend(
        Charge(
            question="tuning",
            epsilon=epsilon,
            who=RowRange(source="private rows", start=held.start, stop=held.start + len(errors)),
            about=f"tuning: the errors of {report.n_candidates} candidates",
        )
    )
    words = (
        Words.system()
        if seeds is None
        else Words.seeded(np.random.SeedSequence([*seeds.tolist(), _VALIDATION]))
    )
    return report.randomize(errors, words)


def _group_by_question(candidates: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Places of candidates that can share a report, group by group."""
    groups: dict[tuple[tuple[str, Any], ...], list[int]] = {}
    for place, candidate in enumerate(candidates):
        question = tuple((name, candidate[name]) for name in _ASKED if name in candidate)
        groups.setdefault(question, []).append(place)
    return list(groups.values())


def _public_coins(seeds: Ints | None) -> np.random.Generator:
    entropy = int.from_bytes(os.urandom(16), "little") if seeds is None else [*seeds.tolist(), _PUBLIC_COINS]
    return np.random.default_rng(np.random.SeedSequence(entropy))


def _seeds_of(seeds: Ints | None, group: int) -> Ints | None:
    """Two groups never share coins, even where their question is the same."""
    if seeds is None or group == 0:
        return seeds
    return np.random.SeedSequence([*seeds.tolist(), group]).generate_state(4).astype(np.int64)
