"""From public and private rows to a corrected model: the order in which the parts are called, the holders played here.

What lives here: what the classifier and the regressor of `correction` share. What does not: parameters and their checks, and
any arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.errors import DataError
from ldptree.estimators.holders import check_report, encoding_of, reported, target_name, words_of
from ldptree.families.correction_plan import make_plan
from ldptree.families.fit_correction import Public, PublicSide, corrected, protocol_of
from ldptree.limits import check_memory
from ldptree.protocol.ledger import Ledger
from ldptree.public_models.fit import with_thresholds

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.encoding import Encoding
    from ldptree.families.correction_plan import Plan
    from ldptree.models.corrected import CorrectedModel
    from ldptree.protocol.protocol import Protocol
    from ldptree.protocol.totals import Totals
    from ldptree.public_models.model import PublicModel

    Floats = NDArray[np.float64]
    Labelled = tuple[Floats, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Question:
    """An estimator's checked parameters; `coins` are public ones."""

    epsilon: float
    base: Any
    partition: str
    depth: int | str
    mechanism: str
    n_levels: int | str
    residual_range: float | None
    feature_range: tuple[ArrayLike, ArrayLike] | None
    max_bytes: int
    coins: int
    with_slope: bool = True


@dataclass(frozen=True, eq=False, kw_only=True)
class Mended:
    """Everything that was published, asked and found; totals are one an output."""

    base: PublicModel
    plan: Plan
    protocol: Protocol
    totals: tuple[Totals, ...]
    model: CorrectedModel
    ledger: Ledger


@dataclass(frozen=True, eq=False, kw_only=True)
class Published:
    """The public side, and how its rows are read."""

    encoding: Encoding
    side: PublicSide
    classes: tuple[Any, ...]

    @property
    def base(self) -> PublicModel:
        """The public model."""
        return self.side.base


def published(
    question: Question, public: Labelled, classes: tuple[Any, ...], names: Iterable[Any] | None = None
) -> Published:
    """Fit or take over the public model.

    Args:
        question: the parameters; epsilon is of no matter here.
        public: rows [n, d] and labels [n], numbers or class indices; n may be 0.
        classes: the labels, none for numbers.
        names: of the columns.
    """
    encoding = encoding_of(public[0], names, question.feature_range)
    if not isinstance(question.base, str):
        encoding = with_thresholds(encoding, question.base)
    side = PublicSide.of(
        question.base,
        encoding,
        encoding.encode(public[0]),
        public[1],
        n_classes=len(classes),
        partition=question.partition,
        mechanism=question.mechanism,
        residual_range=question.residual_range,
        max_bytes=question.max_bytes,
        seed=question.coins,
        with_slope=question.with_slope,
    )
    return Published(encoding=encoding, side=side, classes=classes)


def mended(
    question: Question, public: Published, private: Labelled, seeds: NDArray[np.int64] | None
) -> Mended:
    """Publish a plan, have every private row answer once, and mend the public model.

    Args:
        question: the parameters.
        public: the public model.
        private: rows [n, d] and labels [n]; -1 for a class that is not declared.
        seeds: of a simulation, or None for the operating system's coins.
    """
    X, y = private
    base, encoding = public.base, public.encoding
    if len(y) < base.n_outputs:
        raise DataError(
            f"public: {len(y)} private rows for {base.n_outputs} classes; each needs one at least"
        )
    plan = make_plan(
        public.side.known,
        epsilon=question.epsilon,
        n_holders=len(y) // base.n_outputs,
        depth=question.depth,
        n_levels=question.n_levels,
        mechanism=question.mechanism,
    )
    check_memory(plan.partition.n_leaves, plan.mechanism.n_classes)
    check_report(plan.mechanism)
    ledger = Ledger(cap=question.epsilon)
    protocol = protocol_of(
        plan,
        encoding,
        base,
        public.classes,
        target=target_name(encoding.columns),
        epsilon=question.epsilon,
        max_bytes=question.max_bytes,
    )
    sums = reported(protocol, X, y.__getitem__, ledger=ledger, words=words_of(protocol, seeds))
    totals = sums.totals(protocol.rounds[0])
    model = corrected(protocol, Public.of(public.side, plan), totals, epsilon=question.epsilon)
    return Mended(base=base, plan=plan, protocol=protocol, totals=totals, model=model, ledger=ledger)
