"""Choosing among candidate models by the reports of holders who never train: LPDT D.2, and better for the same epsilon.

What lives here: who trains and who validates, asking, and what is kept on record; the estimators and the pipeline's tasks
call the same functions. What does not: what is reported and how one chooses (`validation`), how candidates are fitted.

The split and the candidate that each validation holder is asked about are drawn by public coins, before anybody answers; a
holder is in one group only and sends one report, of training or of validation, with the whole epsilon. The candidates
depend on training holders' reports, which are published, so each holder's guarantee stays that of the one report.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.errors import ConfigError, DataError
from ldptree.estimators.tuning import ValidationQuestion
from ldptree.estimators.tuning.choice import choose, excess, question_for
from ldptree.protocol.ledger import Charge, Ledger, RowRange

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.oracles import Words

    Floats = NDArray[np.float64]

MOST_CANDIDATES = 64


@dataclass(frozen=True, eq=False)
class Groups:
    """Private rows in a drawn order, cut into groups of training and one of validation: nobody is in two.

    Attributes:
        order: int64 [n], row numbers in the order drawn.
        training: (start, stop) in that order, one a group.
        validation: (start, stop), behind them.
    """

    order: NDArray[np.int64]
    training: tuple[tuple[int, int], ...]
    validation: tuple[int, int]

    def rows(self, part: tuple[int, int]) -> NDArray[np.int64]:
        """Row numbers of a group."""
        return self.order[part[0] : part[1]]


def draw_groups(n: int, *, n_training: int, validation_share: float, coins: np.random.Generator) -> Groups:
    """Draw who trains in which group, and who validates, by public coins.

    Args:
        n: private rows.
        n_training: groups of training, equal in size.
        validation_share: of the rows, above 0 and below 1.
        coins: public ones.

    Raises:
        DataError: there are too few rows for everybody to be asked something.
    """
    n_validation = round(n * validation_share)
    if n_validation < 2 or n - n_validation < n_training:
        raise DataError(
            f"tune: of {n} private rows {n_validation} would validate and {n - n_validation} train in {n_training} group(s), "
            "too few to tell anything; set tune = None, or change validation_share"
        )
    edges = [(n - n_validation) * g // n_training for g in range(n_training + 1)]
    return Groups(
        coins.permutation(n).astype(np.int64),
        tuple(itertools.pairwise(edges)),
        (edges[-1], n),
    )


def ask(
    question: ValidationQuestion,
    losses: Floats,
    *,
    epsilon: float,
    start: int,
    ledger: Ledger,
    words: Words,
    source: str = "private rows",
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Charge the ledger, have each validation holder answer once: (reports [n, ...], whom they are about [n]).

    Args:
        question: what is asked.
        losses: float64 [n, k] of the candidates on each holder's own row, in the order drawn; the holders' side.
        epsilon: what each is charged, at least `question.epsilon`.
        start: the first one's place in `source`.
        ledger: charged before a report is drawn.
        words: the coins.
        source: of the ledger's rows.

    Raises:
        BudgetError: a holder has reported before, and the cap leaves no room.
        ConfigError: the question spends more than epsilon.
    """
    if question.epsilon > epsilon:
        raise ConfigError(
            f"tuning, {question.name}: a report spends epsilon {question.epsilon:g}, more than the {epsilon:g} claimed"
        )
    asked = question.asked(len(losses))
    edges = np.flatnonzero(np.diff(asked)) + 1
    runs = [run for run in np.split(np.arange(asked.size), edges) if run.size]
    ledger.spend(
        [
            Charge(
                question=f"{question.digest} {asked[run[0]]}",
                epsilon=epsilon,
                who=RowRange(source=source, start=start + int(run[0]), stop=start + int(run[-1]) + 1),
                about=question.about(int(asked[run[0]])),
            )
            for run in runs
        ]
    )
    return question.randomize(losses, asked, words), asked


@dataclass(frozen=True, eq=False, kw_only=True)
class Tuning:
    """What tuning found, and what it cost.

    Attributes:
        candidates: the settings of each; the first is what stays where nothing is surely better.
        chosen: place of the one that was kept.
        mechanism: the question's name; "none" where nothing was to be asked.
        measure: what `value` is, in words; lower is better.
        value, sd: float64 [k], estimate of each candidate from reports alone, and its standard deviation (0: exact, infinite:
            nobody was asked).
        excess, excess_sd: float64 [k], how much worse than the first each is held to be, public rows counted in
            (`validation.choice`); the choice rests on these.
        n_training: int [k], holders whose reports the candidate was fitted to.
        n_validation: holders who were asked about candidates instead.
        epsilon: what a validation holder spent, from the integers in use; 0 where all candidates were the same model and
            nobody was asked.
    """

    candidates: tuple[Mapping[str, Any], ...]
    chosen: int
    mechanism: str
    measure: str
    value: Floats
    sd: Floats
    excess: Floats
    excess_sd: Floats
    n_training: NDArray[np.int64]
    n_validation: int
    epsilon: float

    @property
    def chosen_candidate(self) -> Mapping[str, Any]:
        """Settings of the one that was kept."""
        return self.candidates[self.chosen]

    def __repr__(self) -> str:
        lines = [
            f"{'>' if j == self.chosen else ' '} {value:.4g} +- {sd:.2g}  {dict(candidate) or 'as given'}"
            for j, (candidate, value, sd) in enumerate(zip(self.candidates, self.value, self.sd, strict=True))
        ]
        return "\n".join([f"Tuning by {self.n_validation:,} holders ({self.measure}):", *lines])


def tune(
    candidates: Sequence[Mapping[str, Any]],
    *,
    first_like: NDArray[np.int64],
    choice: str,
    epsilon: float,
    public_losses: Floats,
    private_losses: Floats,
    loss_bound: float,
    difference_bounds: Sequence[float],
    n_training: Sequence[int],
    start: int,
    ledger: Ledger,
    words_for: Any,
) -> Tuning:
    """Ask validation holders about the candidates that differ, and choose.

    Args:
        candidates: their settings.
        first_like: int [k], the first candidate that is the same model: no report is spent on telling twins apart.
        choice: one of `CHOICES`.
        epsilon: of a validation holder.
        public_losses: float64 [n_Q, k].
        private_losses: float64 [n_V, k], the holders' own: they are seen through reports alone.
        loss_bound, difference_bounds: as `question_for`.
        n_training: [k], for the record.
        start: place of the first validation holder among the ledger's rows.
        ledger: charged.
        words_for: the coins for a question, from the question.

    Raises:
        ConfigError, BudgetError: as `question_for` and `ask`.
    """
    distinct = np.unique(first_like)
    place = np.searchsorted(distinct, first_like)
    record: dict[str, Any] = {
        "candidates": tuple(candidates),
        "n_training": np.array(n_training, dtype=np.int64),
        "n_validation": len(private_losses),
    }
    if distinct.size == 1:
        nothing = np.zeros(len(candidates))
        record["n_validation"] = 0
        arrays: dict[str, Any] = dict.fromkeys(("value", "sd", "excess", "excess_sd"), nothing)
        return Tuning(
            **record, **arrays, chosen=0, mechanism="none", measure="all are the same model", epsilon=0.0
        )
    question = question_for(
        choice,
        epsilon,
        public_losses=public_losses[:, distinct],
        loss_bound=loss_bound,
        difference_bounds=[difference_bounds[j] for j in distinct],
        n_validation=len(private_losses),
    )
    reports, asked = ask(
        question,
        private_losses[:, distinct],
        epsilon=epsilon,
        start=start,
        ledger=ledger,
        words=words_for(question),
    )
    estimates = question.estimate(reports, asked)
    worse, worse_sd = excess(estimates, public_losses[:, distinct])
    return Tuning(
        **record,
        chosen=int(distinct[choose(worse, worse_sd)]),
        mechanism=question.name,
        measure=question.measure,
        excess=worse[place],
        excess_sd=worse_sd[place],
        value=estimates.value[place],
        sd=estimates.sd[place],
        epsilon=question.epsilon,
    )


def squared_errors(predictions: Floats, labels: Floats, low: float, high: float) -> Floats:
    """float64 [n, k] of predictions [n, k] and labels [n] moved into [low, high], as private labels are."""
    return np.asarray((predictions - np.clip(labels, low, high)[:, None]) ** 2)


def is_checked_share(share: Any) -> bool:
    """Whether this is a share of the holders: a number above 0 and below 1."""
    return (
        type(share) is not bool and isinstance(share, int | float) and 0 < share < 1 and math.isfinite(share)
    )
