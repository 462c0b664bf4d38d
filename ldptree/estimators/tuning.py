"""Choosing among candidate models by the reports of holders who never train: LPDT D.2, and better for the same epsilon.

Public coins draw the training and validation holders, and the candidate that each validation holder reports on, before anybody
answers. A holder is in one group only and sends one report with the whole epsilon. The candidates depend on the training
holders' reports, which are published, so each holder's guarantee is that of the one report.

Candidates that differ in `READINGS` are fitted to the same reports. Those that differ in `CUTS` share the reports on the
deepest, finest tree, and are truncated. Candidates that differ in `OWN_QUESTION` divide the training holders.

Public rows are a wide prior for the choice. They have shaped the candidates, so errors on them are too small, and private people
may differ; yet a candidate that is far off there is far off. So the difference of two candidates on private people is taken to be
that on public rows, give or take the whole of the first candidate's public error. Without it a hopeless candidate wins whenever
its noise is lucky: on eight real sets, nine candidates, eps .5, regret is 45 % without and 8 % with it.
"""

from __future__ import annotations

import itertools
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.coins import Words
from ldptree.errors import ConfigError, DataError
from ldptree.estimators.holders import Conversation, SplitRows
from ldptree.estimators.validation_questions import (
    QUESTIONS,
    Difference,
    Estimates,
    OneModel,
    ValidationQuestion,
)
from ldptree.inference.depth import default_min_samples_leaf
from ldptree.protocol.ledger import Charge, Ledger, RowRange

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.families.tree import LPCT, LPDT
    from ldptree.models.tree import AnyTree

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

READINGS = ("lam", "prune", "rule")
CUTS = ("depth", "min_samples_leaf")
OWN_QUESTION = ("mechanism", "partition", "rho")
PARAMETERS = (*READINGS, *CUTS, *OWN_QUESTION)
"""What a candidate may set."""
MOST_CANDIDATES = 64
CHOICES = ("auto", *QUESTIONS)
AUTOMATIC = ("difference", "one-model")
""""auto" takes the one of these whose estimates are expected to be less noisy, by public rows."""
MARGIN = 1.0
"""A candidate counts as its excess and this many standard deviations: the less is known of it, the less it is chosen."""
QUANTILES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
"""Of public losses, among which a range is chosen."""
_PUBLIC_COINS = 71
_VALIDATION = 73


@dataclass(frozen=True, eq=False)
class Groups:
    """Private rows in a drawn order, cut into groups of training and one of validation: nobody is in two.

    Attributes:
        order: int64 [n], row numbers in the order drawn.
        training: (start, stop) in that order, one a group.
        validation: (start, stop), behind them.
    """

    order: Ints
    training: tuple[tuple[int, int], ...]
    validation: tuple[int, int]

    def rows(self, part: tuple[int, int]) -> Ints:
        """Row numbers of a group."""
        return self.order[part[0] : part[1]]


def draw_groups(n: int, *, n_training: int, validation_share: float, coins: np.random.Generator) -> Groups:
    """Draw the training groups and the validation group by public coins.

    Args:
        n: private rows.
        n_training: groups of training, equal in size.
        validation_share: of the rows, above 0 and below 1.
        coins: public ones.

    Raises:
        DataError: there are too few rows for everybody to report on something.
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


class Loss(ABC):
    """How far a prediction is off."""

    @property
    @abstractmethod
    def bound(self) -> float:
        """The most that a loss can be."""

    @abstractmethod
    def measure(self, model: AnyTree, X: Floats, y: NDArray[Any]) -> Floats:
        """Float64 [n], the losses of a model on rows [n, d] with labels [n]."""

    @abstractmethod
    def difference_bound(self, first: AnyTree, other: AnyTree) -> float:
        """The most that the losses of two models on a row can differ."""


class ZeroOneLoss(Loss):
    """1 for a wrong class; labels are class indices, -1 for a label that is not declared."""

    bound = 1.0

    def measure(self, model: AnyTree, X: Floats, y: NDArray[Any]) -> Floats:
        """See `Loss`."""
        return np.asarray(model.predict(X) != y, dtype=np.float64)

    def difference_bound(self, first: AnyTree, other: AnyTree) -> float:
        """See `Loss`."""
        return 1.0


@dataclass(frozen=True)
class SquaredError(Loss):
    """The squared error of a number; labels are moved into [low, high], as private labels are."""

    low: float
    high: float

    @property
    def bound(self) -> float:
        """See `Loss`."""
        return (self.high - self.low) ** 2

    def measure(self, model: AnyTree, X: Floats, y: NDArray[Any]) -> Floats:
        """See `Loss`."""
        return np.asarray((model.predict(X) - np.clip(y, self.low, self.high)) ** 2)

    def difference_bound(self, first: AnyTree, other: AnyTree) -> float:
        """See `Loss`."""
        if not have_same_cells(first, other):
            return self.bound
        return largest_difference(cell_answers(first), cell_answers(other), self.low, self.high)


def largest_difference(first: Floats, other: Floats, low: float, high: float) -> float:
    """The most by which two predictions of the same row can differ in squared error, over labels in [low, high].

    |(f - y)^2 - (g - y)^2| = |f - g| |f + g - 2 y|, largest at an end of the range. Predictions [cells], of the same cells.
    """
    middle = first + other
    reach = np.maximum(np.abs(middle - 2 * low), np.abs(middle - 2 * high))
    return float((np.abs(first - other) * reach).max(initial=0.0))


def cell_answers(model: AnyTree) -> NDArray[Any]:
    """The prediction of each cell: a class or a number, [cells]."""
    return np.asarray(model.answers[model.partition.leaves])


def have_same_cells(one: AnyTree, other: AnyTree) -> bool:
    """Whether the cells of two models are the same."""
    return one.partition.digest == other.partition.digest and one.encoding == other.encoding


@dataclass(frozen=True, kw_only=True)
class TuningSettings:
    """How to tune.

    Attributes:
        candidates: parameters of each candidate; None: `default_candidates`.
        validation_share: of the private rows.
        choice: one of `CHOICES`.
        parameters: those of `PARAMETERS` that the estimator has.
    """

    candidates: Sequence[Mapping[str, Any]] | None
    validation_share: float
    choice: str
    parameters: Sequence[str]

    @property
    def has_min_rows(self) -> bool:
        """Whether candidates may differ in the fewest public rows of a cell."""
        return "min_samples_leaf" in self.parameters

    def min_rows(self, family: LPCT | LPDT, n_public: int) -> int:
        """The fewest public rows of a cell; 1 where that is no parameter."""
        wanted = family.min_samples_leaf if self.has_min_rows else 1
        return default_min_samples_leaf("numbers", n_public, wanted=wanted)


def default_candidates(
    settings: TuningSettings, family: LPCT | LPDT, depth: int, n_public: int
) -> list[dict[str, Any]]:
    """The parameters as given, shallower trees, other weights of public rows, and other pruning: all from the same reports.

    Args:
        settings: which parameters there are.
        family: the parameters as given.
        depth: the one that its own `depth` stands for.
        n_public: public rows; without any there is nothing to weigh.
    """
    is_margin = family.rule == "margin"
    prunes = ("smooth", "fallback" if settings.has_min_rows else "variance") if is_margin else ()
    lams = ("learned", "auto", 0.0, math.inf) if is_margin and n_public else ()
    found: list[dict[str, Any]] = [{}]
    found += [{"depth": depth - less} for less in (1, 2, 4) if depth - less >= 1]
    found += [{"lam": lam} for lam in lams if lam != family.lam]
    found += [{"prune": prune} for prune in prunes if prune != family.prune]
    if settings.has_min_rows and n_public:
        found.append({"min_samples_leaf": 4 * settings.min_rows(family, n_public)})
    return found


FamilyFor = Callable[[Mapping[str, Any], "Ints | None"], "LPCT | LPDT"]
"""(parameters of a candidate, seeds of a simulation) -> its family."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained:
    """Candidates and their models.

    Attributes:
        candidates: parameters of each.
        groups: of the private rows.
        conversations: of each candidate, the reports it rests on; candidates of one group share them.
        models: of each.
        n_training: of each, holders who reported.
    """

    candidates: Sequence[Mapping[str, Any]]
    groups: Groups
    conversations: list[Conversation]
    models: list[AnyTree]
    n_training: list[int]

    @cached_property
    def first_like(self) -> Ints:
        """int64 [k], the first candidate that is the same model: no report is spent on telling equal ones apart."""
        found = np.arange(len(self.models))
        for j, model in enumerate(self.models):
            for i, other in enumerate(self.models[:j]):
                if have_same_cells(other, model) and np.array_equal(_all_answers(other), _all_answers(model)):
                    found[j] = i
                    break
        return found


def _all_answers(model: AnyTree) -> NDArray[Any]:
    """The prediction of each cell, and of a row without one."""
    return np.append(cell_answers(model), model.answers[0])


def train_candidates(
    settings: TuningSettings, family_for: FamilyFor, rows: SplitRows, seeds: Ints | None
) -> Trained:
    """Draw the groups by public coins; each training group reports once, for the candidates that share its reports."""
    entropy = int.from_bytes(os.urandom(16), "little") if seeds is None else [*seeds.tolist(), _PUBLIC_COINS]
    candidates = settings.candidates
    groups = draw_groups(
        rows.n_private,
        n_training=1 if candidates is None else len(_group_by_question(candidates)),
        validation_share=settings.validation_share,
        coins=np.random.default_rng(np.random.SeedSequence(entropy)),
    )
    if candidates is None:
        family = family_for({}, seeds)
        depth = family.depth_for(rows.view(len(groups.rows(groups.training[0]))))
        candidates = default_candidates(settings, family, depth, rows.n_public)
    found: dict[int, tuple[Conversation, AnyTree, int]] = {}
    for number, (members, part) in enumerate(
        zip(_group_by_question(candidates), groups.training, strict=True)
    ):
        group_seeds = _seeds_of(seeds, number)
        families = [family_for(candidates[j], group_seeds) for j in members]
        conversation, models = _train_group(
            settings, families, rows.part(groups.rows(part), part[0]), group_seeds
        )
        for j, model in zip(members, models, strict=True):
            found[j] = conversation, model, part[1] - part[0]
    ordered = [found[j] for j in range(len(candidates))]
    return Trained(
        candidates=candidates,
        groups=groups,
        conversations=[conversation for conversation, _, _ in ordered],
        models=[model for _, model, _ in ordered],
        n_training=[n for _, _, n in ordered],
    )


def _group_by_question(candidates: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Places of candidates that can share a report, group by group."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for place, candidate in enumerate(candidates):
        key = tuple((name, candidate[name]) for name in OWN_QUESTION if name in candidate)
        found.setdefault(key, []).append(place)
    return list(found.values())


def _train_group(
    settings: TuningSettings, families: Sequence[LPCT | LPDT], rows: SplitRows, seeds: Ints | None
) -> tuple[Conversation, list[AnyTree]]:
    """One report of each of these rows, on the deepest and finest tree that any of the families wants; the model of each."""
    depths = [family.depth_for(rows.view()) for family in families]
    min_rows = [settings.min_rows(family, rows.n_public) for family in families]
    # An "auto" that goes deepest stays one: only so public rows part its cells further.
    is_auto = any(
        family.depth == "auto" and depth == max(depths)
        for family, depth in zip(families, depths, strict=True)
    )
    shared = replace(families[0], depth="auto" if is_auto else max(depths))
    if settings.has_min_rows:
        shared = replace(shared, min_samples_leaf=min(min_rows))
    conversation = Conversation.hold(shared, rows, seeds)
    models = []
    for family, depth, fewest in zip(families, depths, min_rows, strict=True):
        model = conversation.fit(**family.reading)
        deepest = depth if family.depth != "auto" or depth < max(depths) else model.partition.max_depth
        is_cut = deepest < model.partition.max_depth or fewest > min(min_rows)
        models.append(model.truncate(depth=deepest, min_rows=fewest) if is_cut else model)
    return conversation, models


def _seeds_of(seeds: Ints | None, group: int) -> Ints | None:
    """Two groups never share coins, even where their question is the same."""
    if seeds is None or group == 0:
        return seeds
    return np.random.SeedSequence([*seeds.tolist(), group]).generate_state(4).astype(np.int64)


@dataclass(frozen=True, eq=False)
class PublicLosses:
    """What everybody knows of the losses of k candidates.

    Attributes:
        values: float64 [n_Q, k], on public rows; n_Q may be 0.
        bound: the most that a loss can be.
        difference_bounds: [k], the most that each candidate's can differ from the first one's.
    """

    values: Floats
    bound: float
    difference_bounds: Sequence[float]

    @classmethod
    def of(cls, loss: Loss, models: Sequence[AnyTree], rows: SplitRows) -> PublicLosses:
        """The losses of these models."""
        values = [loss.measure(model, rows.public_rows, rows.public_labels) for model in models]
        return cls(
            np.stack(values, axis=1), loss.bound, [loss.difference_bound(models[0], m) for m in models]
        )

    def select(self, places: Ints) -> PublicLosses:
        """Those of some candidates."""
        return PublicLosses(self.values[:, places], self.bound, [self.difference_bounds[j] for j in places])


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
