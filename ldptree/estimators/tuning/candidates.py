"""The candidates, and how they are trained: on the reports of training holders, as few groups of them as will do.

Public coins draw the training and validation holders before anybody answers. A holder is in one group only and sends one report
with the whole epsilon.

Candidates that differ in `READINGS` are fitted to the same reports. Those that differ in `CUTS` share the reports on the
deepest, finest tree, and are truncated. Candidates that differ in `OWN_QUESTION` divide the training holders.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.errors import DataError
from ldptree.estimators.holders import Conversation, SplitRows
from ldptree.estimators.tuning.losses import cell_answers, have_same_cells
from ldptree.inference.depth import default_min_samples_leaf

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.families.tree import LPCT, LPDT
    from ldptree.models.tree import AnyTree

    Ints = NDArray[np.int64]

READINGS = ("lam", "prune", "rule")
CUTS = ("depth", "min_samples_leaf")
OWN_QUESTION = ("mechanism", "partition", "rho")
PARAMETERS = (*READINGS, *CUTS, *OWN_QUESTION)
"""What a candidate may set."""
MOST_CANDIDATES = 64
_PUBLIC_COINS = 71


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
