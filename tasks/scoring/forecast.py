"""Forecast a collection from the public part of a run, with its public rows, their encoding and its family. No private
row is read here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.families import FAMILIES
from ldptree.families.family import Family
from ldptree.planning.backwards import Figure, Goal, Need, Sharpness, solve_epsilon, solve_holders
from ldptree.planning.expected import Expected, Forecast
from ldptree.planning.forecast import Forecaster
from ldptree.planning.known_rows import KnownRows
from ldptree.planning.people import Difference, Kind
from schemas.manifest import Manifest
from schemas.tables import FeaturesConfig
from storage import tables
from storage.store import Store
from tasks import progress
from tasks.artifacts import read_encoding
from tasks.holders.show import protects_of
from tasks.learning import Asking, build_family

SIZE_OF_A_CLASS = 0.1
SIZE_OF_A_NUMBER = 0.25
"""Of the standard deviation of public labels."""
MODELS, GRID = "models", "forecasts"
"""Names of the two slow parts of a plan in its progress, fitting public models and simulating people."""
SHARE = 0.5
"""Of people, on whom it is planted."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The sizes and results that a plan is asked for.

    holders, epsilons  the grid.
    figure             an accuracy or a mean squared error that is to be reached.
    detect             an error of the public model that is to be found.
    """

    holders: Sequence[int]
    epsilons: Sequence[float]
    figure: float | None = None
    detect: float | None = None


@dataclass(frozen=True, kw_only=True)
class Backwards:
    """The needs of a wanted result, people by epsilon and epsilon by people, or nobody (`is_reached`)."""

    wanted: float
    is_reached: bool = False
    holders: tuple[Need, ...] = ()
    epsilon: tuple[Need, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CollectionPlan:
    """A plan, with its grounds, the grid, and the needs of wanted results. `epsilon` is the configuration's own,
    `largest_error` how far off a public model can be, and `one_answer` the score of the same answer for everybody on
    public rows.
    """

    n_public: int
    estimator: str
    epsilon: float
    is_number: bool
    difference: Difference
    largest_error: float
    one_answer: float
    by_coins: bool
    likely: Kind | None
    public: dict[str, Expected]
    forecasts: tuple[Forecast, ...]
    reach: Backwards | None = None
    detect: Backwards | None = None

    @property
    def public_alone(self) -> Expected:
        """The figure of public rows alone, on people as those of the forecasts' `figure`."""
        return self.public[self.likely or "alike"]


@dataclass(frozen=True, kw_only=True)
class PublicPart:
    """The public part of a run before its first question. `is_number` is the kind of its label, and `by_coins` tells
    whether public coins chose its public rows.
    """

    store: Store
    public: Manifest
    encoding: Manifest
    features: FeaturesConfig
    is_number: bool
    by_coins: bool


def plan_collection(
    part: PublicPart, asking: Asking, reading: Mapping[str, Any], wanted: Wanted
) -> CollectionPlan:
    """The plan. Raises ConfigError where there are too few public rows, and what the family raises."""
    rows = _read_rows(part, asking)
    size = wanted.detect or planted_size(rows.labels, is_number=rows.is_number)
    difference = Difference(size=size, share=SHARE)

    def build(epsilon: float) -> Family[Any, Any, Any, Any]:
        own = asking.model_copy(update={"epsilon": epsilon, "simulation": True})
        return build_family(own, rows.encoding, rows.label, reading)

    in_rounds = FAMILIES[asking.estimator].in_rounds
    grid = [(n, epsilon) for epsilon in wanted.epsilons for n in wanted.holders]
    with progress.watch(MODELS):
        forecaster = Forecaster(
            rows, build, in_rounds, difference, part.by_coins, asking.seed, grid, progress.advance
        )
    with progress.watch(GRID):
        forecasts = forecaster.forecast(wanted.holders, wanted.epsilons, progress.advance)
        return CollectionPlan(
            n_public=rows.n,
            estimator=asking.estimator,
            epsilon=asking.epsilon,
            is_number=rows.is_number,
            difference=difference,
            largest_error=forecaster.largest_error,
            one_answer=score_one_answer(rows.labels, is_number=rows.is_number),
            by_coins=part.by_coins,
            likely=forecaster.likely,
            public=forecaster.public,
            forecasts=forecasts,
            reach=None if wanted.figure is None else _reach(forecaster, forecasts, wanted, wanted.figure),
            detect=None
            if wanted.detect is None or in_rounds
            else _solve(Sharpness(forecaster, wanted.detect), forecasts, wanted),
        )


def planted_size(labels: NDArray[Any], *, is_number: bool) -> float:
    """Return the difference that is planted by default. `labels` are public."""
    return SIZE_OF_A_NUMBER * float(np.std(labels)) if is_number else SIZE_OF_A_CLASS


def score_one_answer(labels: NDArray[Any], *, is_number: bool) -> float:
    """Return the share of the most frequent class, or the mean squared error of the mean. `labels` are public."""
    return float(np.var(labels)) if is_number else float(np.bincount(labels).max() / len(labels))


def _solve(goal: Goal, forecasts: Sequence[Forecast], wanted: Wanted) -> Backwards:
    return Backwards(
        wanted=goal.wanted,
        holders=tuple(solve_holders(goal, forecasts, epsilon) for epsilon in wanted.epsilons),
        epsilon=tuple(solve_epsilon(goal, forecasts, holders) for holders in wanted.holders),
    )


def _reach(forecaster: Forecaster, forecasts: Sequence[Forecast], wanted: Wanted, figure: float) -> Backwards:
    before = forecaster.public["planted"].mean
    if forecaster.sign * (before - figure) >= 0:
        return Backwards(wanted=figure, is_reached=True)
    return _solve(Figure(forecaster, figure), forecasts, wanted)


def _read_rows(part: PublicPart, asking: Asking) -> KnownRows:
    """Public rows whose label and features can be used."""
    encoding, label = read_encoding(part.store, part.encoding)
    table = tables.read(tables.typed_parts(part.store.files(part.public)))
    raw, column = tables.raw_matrix(table, encoding), table.column(asking.target)
    labels = tables.label_numbers(column) if part.is_number else tables.label_codes(column, label)
    usable = encoding.encodable(raw) & (np.isfinite(labels) if part.is_number else labels >= 0)
    protects = np.zeros((table.num_rows, encoding.n_encoded), bool)
    if FAMILIES[asking.estimator].in_rounds:
        protects = protects_of(encoding, table, part.features)
    return KnownRows(
        encoding=encoding,
        raw=raw[usable],
        labels=labels[usable],
        label=label,
        protects=protects[usable],
    )
