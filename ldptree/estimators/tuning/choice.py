"""The candidate that is kept, by the reports of validation holders and by public rows.

The candidates depend on the training holders' reports, which are published, and a validation holder reports on one that public
coins drew; so each holder's guarantee is that of the one report.

Public rows are a wide prior for the choice. They have shaped the candidates, so errors on them are too small, and private people
may differ; yet a candidate that is far off there is far off. So the difference of two candidates on private people is taken to be
that on public rows, give or take the whole of the first candidate's public error. Without it a hopeless candidate wins whenever
its noise is lucky: on eight real sets, nine candidates, eps .5, regret is 45 % without and 8 % with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.coins import Words
from ldptree.estimators.tuning.candidates import FamilyFor, Trained, TuningSettings, train_candidates
from ldptree.estimators.tuning.losses import Loss, PublicLosses
from ldptree.estimators.tuning.questions import Estimates, ValidationQuestion
from ldptree.estimators.tuning.reports import collect_reports, question_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.estimators.holders import Conversation, SplitRows
    from ldptree.models.tree import AnyTree
    from ldptree.protocol.ledger import Ledger

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

MARGIN = 1.0
"""A candidate counts as its excess and this many standard deviations: the less is known of it, the less it is chosen."""
_VALIDATION = 73


def expected_excess(estimates: Estimates, public_losses: Floats) -> tuple[Floats, Floats]:
    """How much worse than the first each candidate is expected to be, and its standard deviation: float64 [k] each.

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
    # one that is known exactly stays so: the first; and equal reports are no proof
    weight = precision * prior / (precision * prior + 1.0)
    expected = weight * worse + (1.0 - weight) * differences.mean(axis=0)
    expected_sd = np.sqrt((1.0 - weight) * prior)
    expected[0] = expected_sd[0] = 0.0
    return expected, expected_sd


def choose(worse: Floats, sd: Floats, margin: float = MARGIN) -> int:
    """The candidate whose excess is least if it is taken `margin` standard deviations worse; the first of equal ones.

    Of candidates that are alike the least estimate is the luckiest one: the first, whose excess is 0 for sure, stays
    unless another is better by more than luck of that size.
    """
    pessimistic = np.where(np.isfinite(sd), worse + margin * np.where(np.isfinite(sd), sd, 0.0), np.inf)
    return int(np.argmin(pessimistic))


@dataclass(frozen=True, eq=False, kw_only=True)
class Tuning:
    """What tuning found, and what it cost.

    Attributes:
        candidates: the parameters of each; the first is kept where nothing is surely better.
        chosen: place of the one that was kept.
        mechanism: the question's name; "none" where there was nothing to ask.
        measure: what `value` is, in words; lower is better.
        value, sd: float64 [k], estimate of each candidate from reports alone, and its standard deviation (0: exact, infinite:
            no holder reported on it).
        excess, excess_sd: float64 [k], how much worse than the first each is expected to be, public rows counted in
            (`expected_excess`); the choice rests on these.
        n_training: int [k], holders whose reports the candidate was fitted to.
        n_validation: holders who reported on candidates instead.
        epsilon: what a validation holder spent, from the integers in use; 0 where all candidates were the same model and
            nobody reported.
    """

    candidates: tuple[Mapping[str, Any], ...]
    chosen: int
    mechanism: str
    measure: str
    value: Floats
    sd: Floats
    excess: Floats
    excess_sd: Floats
    n_training: Ints
    n_validation: int
    epsilon: float

    @property
    def chosen_candidate(self) -> Mapping[str, Any]:
        """Parameters of the one that was kept."""
        return self.candidates[self.chosen]

    def __repr__(self) -> str:
        lines = [
            f"{'>' if j == self.chosen else ' '} {value:.4g} +- {sd:.2g}  {dict(candidate) or 'as given'}"
            for j, (candidate, value, sd) in enumerate(zip(self.candidates, self.value, self.sd, strict=True))
        ]
        return "\n".join([f"Tuning by {self.n_validation:,} holders ({self.measure}):", *lines])


def choose_candidate(
    trained: Trained,
    public_losses: PublicLosses,
    private_losses: Floats,
    *,
    choice: str,
    epsilon: float,
    ledger: Ledger,
    seeds: Ints | None,
) -> Tuning:
    """Ask validation holders about the candidates that differ, and choose.

    Args:
        trained: the candidates.
        public_losses: of all candidates.
        private_losses: float64 [n_V, k], the holders' own: only their reports are seen.
        choice: one of `CHOICES`.
        epsilon: of a validation holder.
        ledger: charged.
        seeds: of a simulation, or None.

    Raises:
        ConfigError, BudgetError: as `question_for` and `collect_reports`.
    """
    distinct, place = np.unique(trained.first_like, return_inverse=True)
    record: dict[str, Any] = {
        "candidates": tuple(trained.candidates),
        "n_training": np.array(trained.n_training, dtype=np.int64),
    }
    if distinct.size == 1:
        nothing = np.zeros(len(trained.candidates))
        arrays: dict[str, Any] = dict.fromkeys(("value", "sd", "excess", "excess_sd"), nothing)
        nobody: dict[str, Any] = {"chosen": 0, "n_validation": 0, "epsilon": 0.0}
        return Tuning(**record, **arrays, **nobody, mechanism="none", measure="all are the same model")
    known = public_losses.select(distinct)
    question = question_for(choice, epsilon, known, len(private_losses))
    reports, assigned = collect_reports(
        question,
        private_losses[:, distinct],
        epsilon=epsilon,
        start=trained.groups.validation[0],
        ledger=ledger,
        words=_words_for(question, seeds),
    )
    estimates = question.estimate(reports, assigned)
    worse, worse_sd = expected_excess(estimates, known.values)
    return Tuning(
        **record,
        chosen=int(distinct[choose(worse, worse_sd)]),
        n_validation=len(private_losses),
        mechanism=question.name,
        measure=question.measure,
        excess=worse[place],
        excess_sd=worse_sd[place],
        value=estimates.value[place],
        sd=estimates.sd[place],
        epsilon=question.epsilon,
    )


def _words_for(question: ValidationQuestion, seeds: Ints | None) -> Words:
    if seeds is None:
        return Words.system()
    return Words.seeded(np.random.SeedSequence([*seeds.tolist(), _VALIDATION, int(question.digest, 16)]))


def tune(
    settings: TuningSettings, family_for: FamilyFor, rows: SplitRows, loss: Loss, seeds: Ints | None
) -> tuple[Conversation, AnyTree, Tuning]:
    """Train all candidates, and let validation holders choose: the reports and the model of the best.

    Args:
        settings: how to tune.
        family_for: the family of a candidate.
        rows: of the fit; their ledger is charged for either group.
        loss: what is compared.
        seeds: of a simulation, or None.

    Raises:
        ConfigError, DataError, BudgetError: as its parts.
    """
    trained = train_candidates(settings, family_for, rows, seeds)
    validation = rows.part(trained.groups.rows(trained.groups.validation), trained.groups.validation[0])
    private = [
        loss.measure(model, validation.private_rows, validation.private_labels) for model in trained.models
    ]
    tuning = choose_candidate(
        trained,
        PublicLosses.of(loss, trained.models, rows),
        np.stack(private, axis=1),
        choice=settings.choice,
        epsilon=family_for({}, seeds).epsilon,
        ledger=rows.ledger,
        seeds=seeds,
    )
    return trained.conversations[tuning.chosen], trained.models[tuning.chosen], tuning
