"""Tuning for the estimators: which candidates share a report, who is asked what, and what is kept.

What lives here: the candidates (their checks, a grid of one's own, which need reports of their own) and the order of the
parts. What does not: the questions and the choice (`private_tuning`), growing, asking and fitting (the estimators).

Candidates that differ in `lam`, `prune` or `rule` are other readings of the same reports. Those that differ in `depth` or
`min_samples_leaf` share the reports on the deepest, finest tree and cut it back (`cut`). Only where another question would
be asked (mechanism, partition, rho) training holders are divided.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.errors import ConfigError, LdptreeError
from ldptree.estimators.private_tuning import (
    MOST_CANDIDATES,
    Groups,
    Tuning,
    draw_groups,
    is_checked_share,
    tune,
)
from ldptree.estimators.tuning.choice import CHOICES
from ldptree.inference.algorithm_2 import PaperOptions
from ldptree.inference.depth import fewest_public_rows
from ldptree.limits import is_number
from ldptree.models.tree import AnyTree
from ldptree.oracles import Words
from ldptree.validation import one_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.estimators.tuning import ValidationQuestion
    from ldptree.protocol.ledger import Ledger
    from ldptree.protocol.protocol import Protocol
    from ldptree.protocol.totals import Totals

    Floats = NDArray[np.float64]

READINGS = ("lam", "prune", "rule")
CUTS = ("depth", "min_samples_leaf")
QUESTIONS = ("mechanism", "partition", "rho")
_PUBLIC_COINS = 71
_VALIDATION = 73


@dataclass(frozen=True, eq=False)
class Asked:
    """What one group of training holders was asked, what they said, and how a model is made of it.

    Attributes:
        protocol: the question.
        totals: the answers.
        read: the model, from lam, prune and rule.
    """

    protocol: Protocol
    totals: Totals
    read: Callable[..., Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class Parts:
    """How an estimator does what tuning needs of it.

    Attributes:
        ask: (estimator, row numbers, seeds, first place) -> `Asked`: has these private rows report once.
        depth: (estimator, number of holders) -> the depth that its `depth` stands for.
        public_losses: model -> float64 [n_Q], its loss on each public row.
        private_losses: (model, row numbers) -> float64 [n]: the holders' side.
        n_public: public rows.
        loss_bound: the most that a loss can be.
        difference_bound: (first model, another) -> the most that their losses on a row can differ.
    """

    ask: Callable[[Any, NDArray[np.int64], NDArray[np.int64] | None, int], Asked]
    depth: Callable[[Any, int], int]
    public_losses: Callable[[Any], Floats]
    private_losses: Callable[[Any, NDArray[np.int64]], Floats]
    n_public: int
    loss_bound: float
    difference_bound: Callable[[Any, Any], float]


def check_tuning(estimator: Any, check: Callable[[Any], object]) -> None:
    """Everything about tuning that can be wrong before a row is looked at; `check` checks one candidate's parameters.

    Raises:
        ConfigError: with one message.
    """
    if estimator.tune is None:
        if estimator.candidates is not None:
            raise ConfigError(
                'candidates are given and tune is None; set tune = "private", or leave them out'
            )
        return
    one_of("tune", estimator.tune, ("private",), "or None")
    one_of("tune_mechanism", estimator.tune_mechanism, CHOICES)
    if not (is_number(estimator.validation_share) and is_checked_share(estimator.validation_share)):
        raise ConfigError(
            f"validation_share must be a number above 0 and below 1, got {estimator.validation_share!r}"
        )
    candidates = estimator.candidates
    if candidates is None:
        _check_prune(estimator, "prune")
        return
    if not isinstance(candidates, list | tuple) or not all(isinstance(c, Mapping) for c in candidates):
        raise ConfigError(f"candidates must be a list of dicts of parameters, got {candidates!r}")
    if not 2 <= len(candidates) <= MOST_CANDIDATES:
        raise ConfigError(f"candidates: {len(candidates)} of them; there must be 2 to {MOST_CANDIDATES}")
    for place, candidate in enumerate(candidates):
        _check_candidate(estimator, candidate, f"candidates[{place}]", check)


def _check_candidate(
    estimator: Any, candidate: Mapping[str, Any], where: str, check: Callable[[Any], object]
) -> None:
    known = [name for name in (*READINGS, *CUTS, *QUESTIONS) if name in estimator.get_params(deep=False)]
    for name in candidate:
        one_of(f"{where}: a parameter", name, known)
    try:
        one = with_settings(estimator, candidate)
        check(one)
    except LdptreeError as error:
        raise ConfigError(f"{where}: {error}") from None
    _check_prune(one, f"{where}: prune")


def _check_prune(one: Any, where: str) -> None:
    if one.prune == "paper" or isinstance(one.prune, PaperOptions):
        raise ConfigError(
            f'{where}: "paper" asks holders twice and chooses by itself, so it is no candidate; set another, or tune = None'
        )


def with_settings(estimator: Any, settings: Mapping[str, Any]) -> Any:
    """A shallow copy with other parameters, not tuned; what it has learned so far it has in common with the original."""
    one = copy.copy(estimator)
    for name, value in {**settings, "tune": None, "candidates": None}.items():
        setattr(one, name, value)
    return one


def default_candidates(estimator: Any, depth: int, *, n_public: int) -> list[dict[str, Any]]:
    """As given; shallower than that; public and private rows weighed otherwise; cells of their own: all from the same reports.

    Args:
        estimator: whose other parameters hold.
        depth: the one its own `depth` stands for.
        n_public: public rows; without any there is nothing to weigh.
    """
    has_leaf, is_margin = hasattr(estimator, "min_samples_leaf"), estimator.rule == "margin"
    prunes = ("smooth", "fallback" if has_leaf else "variance") if is_margin else ()
    lams = ("learned", "auto", 0.0, math.inf) if is_margin and n_public else ()
    settings: list[dict[str, Any]] = [{}]
    settings += [{"depth": depth - less} for less in (1, 2, 4) if depth - less >= 1]
    settings += [{"lam": lam} for lam in lams if lam != estimator.lam]
    settings += [{"prune": prune} for prune in prunes if prune != estimator.prune]
    if has_leaf and n_public:
        settings.append({"min_samples_leaf": 4 * _fewest(estimator, n_public)})
    return settings


def _fewest(estimator: Any, n_public: int) -> int:
    """Public rows that a cell must have, where an estimator (of numbers) has a parameter for it."""
    wanted = getattr(estimator, "min_samples_leaf", 1)
    return fewest_public_rows("numbers", n_public, wanted=wanted)


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained:
    """Candidates and their models.

    Attributes:
        candidates: settings.
        groups: of the private rows.
        asked: of each candidate, the reports it rests on; candidates of one group share them.
        models: of each.
        n_training: of each, holders who reported.
    """

    candidates: Sequence[Mapping[str, Any]]
    groups: Groups
    asked: list[Asked]
    models: list[AnyTree]
    n_training: list[int]


def tuned(
    estimator: Any, parts: Parts, *, n_private: int, seeds: NDArray[np.int64] | None, ledger: Ledger
) -> tuple[Asked, AnyTree, Tuning]:
    """Have training holders report, fit all candidates, have validation holders choose: reports and model of the best.

    Args:
        estimator: checked; what is fitted from public rows is in it.
        parts: what tuning needs of it.
        n_private: private rows.
        seeds: of a simulation, or None.
        ledger: charged for either group.

    Raises:
        ConfigError, DataError, BudgetError: as its parts.
    """
    found = trained(estimator, parts, n_private=n_private, seeds=seeds)
    models, validation = found.models, found.groups.rows(found.groups.validation)
    tuning = tune(
        found.candidates,
        first_like=_first_like(models),
        choice=estimator.tune_mechanism,
        epsilon=float(estimator.epsilon),
        public_losses=np.stack([parts.public_losses(model) for model in models], axis=1),
        private_losses=np.stack([parts.private_losses(model, validation) for model in models], axis=1),
        loss_bound=parts.loss_bound,
        difference_bounds=[parts.difference_bound(models[0], model) for model in models],
        n_training=found.n_training,
        start=found.groups.validation[0],
        ledger=ledger,
        words_for=lambda question: _words(question, seeds),
    )
    return found.asked[tuning.chosen], models[tuning.chosen], tuning


def trained(estimator: Any, parts: Parts, *, n_private: int, seeds: NDArray[np.int64] | None) -> Trained:
    """Draw the groups by public coins, and have each training group report once for the candidates that share its reports."""
    entropy = int.from_bytes(os.urandom(16), "little") if seeds is None else [*seeds.tolist(), _PUBLIC_COINS]
    candidates = estimator.candidates
    groups = draw_groups(
        n_private,
        n_training=1 if candidates is None else len(_grouped(candidates)),
        validation_share=float(estimator.validation_share),
        coins=np.random.default_rng(np.random.SeedSequence(entropy)),
    )
    if candidates is None:
        n = len(groups.rows(groups.training[0]))
        depth = parts.depth(with_settings(estimator, {}), n)
        candidates = default_candidates(estimator, depth, n_public=parts.n_public)
    asked: dict[int, Asked] = {}
    models: dict[int, AnyTree] = {}
    n_training: dict[int, int] = {}
    for number, (members, part) in enumerate(zip(_grouped(candidates), groups.training, strict=True)):
        wanted = [with_settings(estimator, candidates[j]) for j in members]
        reports, found = _share(wanted, parts, groups.rows(part), _seeds_of(seeds, number), part[0])
        for j, model in zip(members, found, strict=True):
            asked[j], models[j], n_training[j] = reports, model, part[1] - part[0]
    places = range(len(candidates))
    return Trained(
        candidates=candidates,
        groups=groups,
        asked=[asked[j] for j in places],
        models=[models[j] for j in places],
        n_training=[n_training[j] for j in places],
    )


def _grouped(candidates: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Places of candidates that can share a report, group by group."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for place, candidate in enumerate(candidates):
        key = tuple((name, candidate[name]) for name in QUESTIONS if name in candidate)
        found.setdefault(key, []).append(place)
    return list(found.values())


def _share(
    wanted: Sequence[Any],
    parts: Parts,
    rows: NDArray[np.int64],
    seeds: NDArray[np.int64] | None,
    start: int,
) -> tuple[Asked, list[AnyTree]]:
    """One report each of these rows, on the deepest and finest tree that any of these estimators wants; each one's model."""
    depths = [parts.depth(one, len(rows)) for one in wanted]
    least = [_fewest(one, parts.n_public) for one in wanted]
    # An "auto" that goes deepest stays one: only so public rows part its cells further.
    is_auto = any(
        one.depth == "auto" and depth == max(depths) for one, depth in zip(wanted, depths, strict=True)
    )
    shared: dict[str, Any] = {"depth": "auto" if is_auto else max(depths)}
    if hasattr(wanted[0], "min_samples_leaf"):
        shared["min_samples_leaf"] = min(least)
    asked = parts.ask(with_settings(wanted[0], shared), rows, seeds, start)
    found = []
    for one, depth, min_rows in zip(wanted, depths, least, strict=True):
        model = asked.read(lam=one.lam, prune=one.prune, rule=one.rule)
        deepest = depth if one.depth != "auto" or depth < max(depths) else model.partition.max_depth
        is_cut = deepest < model.partition.max_depth or min_rows > min(least)
        found.append(model.truncate(depth=deepest, min_rows=min_rows) if is_cut else model)
    return asked, found


def answers(model: AnyTree) -> NDArray[Any]:
    """What each cell is told: a class or a number, [cells]."""
    return np.asarray(model.answers[model.partition.leaves])


def is_on_same_tree(one: AnyTree, other: AnyTree) -> bool:
    """Whether cells of the two are the same."""
    return one.partition.digest == other.partition.digest and one.encoding == other.encoding


def _first_like(models: Sequence[AnyTree]) -> NDArray[np.int64]:
    """The first model that says the same everywhere, int64 [k]."""
    found = np.arange(len(models))
    for j, model in enumerate(models):
        for i in range(j):
            same = is_on_same_tree(models[i], model) and np.array_equal(answers(models[i]), answers(model))
            if same and answers(models[i])[0] == answers(model)[0] and _root(models[i]) == _root(model):
                found[j] = i
                break
    return found


def _root(model: AnyTree) -> float:
    """What a row without a cell is told."""
    return float(model.answers[0])


def _seeds_of(seeds: NDArray[np.int64] | None, group: int) -> NDArray[np.int64] | None:
    """Two groups never share coins, even where they are asked the same."""
    if seeds is None or group == 0:
        return seeds
    return np.random.SeedSequence([*seeds.tolist(), group]).generate_state(4).astype(np.int64)


def _words(question: ValidationQuestion, seeds: NDArray[np.int64] | None) -> Words:
    if seeds is None:
        return Words.system()
    return Words.seeded(np.random.SeedSequence([*seeds.tolist(), _VALIDATION, int(question.digest, 16)]))
