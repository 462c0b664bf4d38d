"""From public and private rows to a corrected model: the order in which the parts are called, the holders played here.

What lives here: what the classifier and the regressor of `correction` share. What does not: parameters and their checks, and
any arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.corrected import CorrectedModel
from ldptree.correction import Observed, correct, residuals
from ldptree.correction_plan import Known, Plan, ResidualRange, make_plan
from ldptree.errors import DataError
from ldptree.estimators.holders import answered, check_report, encoding_of, target_name, words_of
from ldptree.grow import grow
from ldptree.ledger import Ledger
from ldptree.mechanisms import describe
from ldptree.parameters import check_memory
from ldptree.protocol import Protocol
from ldptree.public_fit import fit_public, take_public, with_thresholds
from ldptree.public_model import PublicModel, constant, indicators

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.encoding import Encoding
    from ldptree.partition import Partition
    from ldptree.totals import Totals

    Floats = NDArray[np.float64]
    Labelled = tuple[Floats, NDArray[Any]]

MIN_SAMPLES_LEAF = 5
"""Public rows in a cell of a collection tree that is not the public model's own."""


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Mended:
    """Everything that was published, asked and found."""

    base: PublicModel
    plan: Plan
    protocols: tuple[Protocol, ...]
    totals: tuple[Totals, ...]
    model: CorrectedModel
    ledger: Ledger


@dataclass(frozen=True, eq=False, kw_only=True)
class Published:
    """What public rows give, before any epsilon: a public model, and what a plan is made of."""

    encoding: Encoding
    base: PublicModel
    known: Known
    classes: tuple[Any, ...]
    usual: Floats
    n_public: int


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
    rows = encoding.encode(public[0]), public[1]
    base = _public_model(question, encoding, rows, len(classes))
    seen = rows[0] if len(public[1]) else encoding.encode(np.zeros((1, public[0].shape[1])))
    return Published(
        encoding=encoding,
        base=base,
        known=_known(question, base, rows),
        classes=classes,
        usual=base.answers(seen).mean(axis=0),
        n_public=len(public[1]),
    )


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
    base, encoding, n_classes = public.base, public.encoding, len(public.classes)
    if len(y) < base.n_outputs:
        raise DataError(
            f"public: {len(y)} private rows for {base.n_outputs} classes; each needs one at least"
        )
    plan = make_plan(
        public.known,
        epsilon=question.epsilon,
        n_holders=len(y) // base.n_outputs,
        depth=question.depth,
        n_levels=question.n_levels,
        mechanism=question.mechanism,
    )
    check_memory(plan.partition.n_leaves, plan.mechanism.n_classes)
    check_report(plan.mechanism)
    ledger = Ledger(cap=question.epsilon)
    protocols = tuple(
        protocol_of(plan, encoding, k, public.classes, question.epsilon) for k in range(base.n_outputs)
    )
    totals: list[Totals] = []
    groups = _groups(len(y), len(protocols), question.coins)
    for k, (protocol, group) in enumerate(zip(protocols, groups, strict=True)):
        found = residuals(base.ensemble, encoding, X[group], y[group], n_classes)[:, k]
        totals.append(
            answered(
                protocol,
                X[group],
                found.__getitem__,
                ledger=ledger,
                words=words_of(protocol, seeds),
                start=sum(t.n_private for t in totals),
            )
        )
    corrections = correct(plan, [Observed.of(plan, t) for t in totals])
    model = CorrectedModel(
        encoding=encoding,
        base=base.ensemble,
        partition=plan.partition,
        corrections=corrections,
        classes=public.classes,
        default=public.usual + corrections.mean,
        target=protocols[0].target,
        epsilon=question.epsilon,
        mechanism=describe(plan.mechanism),
        n_private=len(y),
        n_public=public.n_public,
        protocol_digests=tuple(p.digest for p in protocols),
    )
    return Mended(base=base, plan=plan, protocols=protocols, totals=tuple(totals), model=model, ledger=ledger)


def _groups(n: int, n_groups: int, coins: int) -> list[NDArray[np.int64]]:
    """Who reports on which output, drawn by public coins: as many for each."""
    order = np.arange(n) if n_groups == 1 else np.random.default_rng(coins).permutation(n)
    return np.array_split(order, n_groups)


def protocol_of(
    plan: Plan, encoding: Encoding, output: int, classes: tuple[Any, ...], epsilon: float
) -> Protocol:
    """The question about one output of the public model."""
    name = target_name(encoding.columns)
    return Protocol(
        encoding=encoding,
        partition=plan.partition,
        target=f"residual of {name}" + (f" {output} ({classes[output]})" if len(classes) > 2 else ""),
        classes=plan.levels,
        positive=None,
        mechanism=plan.mechanism,
        epsilon=epsilon,
        numeric=True,
    )


def _public_model(
    question: Question, encoding: Encoding, known: tuple[NDArray[np.float32], NDArray[Any]], n_classes: int
) -> PublicModel:
    X, y = known
    if not isinstance(question.base, str):
        return take_public(question.base, encoding, X, y, n_classes=n_classes, max_bytes=question.max_bytes)
    if not len(y):
        even = [0.0] if not n_classes else [0.5] if n_classes == 2 else [1.0 / n_classes] * n_classes
        return constant(np.array(even), n_classes)
    return fit_public(question.base, X, y, n_classes=n_classes, max_bytes=question.max_bytes)


def _known(question: Question, base: PublicModel, rows: tuple[NDArray[np.float32], NDArray[Any]]) -> Known:
    (X, y), n_classes = rows, base.n_classes
    errors = base.errors.ravel()
    if n_classes:
        half, scale = 1.0, 1.0
        if base.ensemble.n_nodes == 1:
            # a constant's residual of a class has one of two values
            half = float(np.max(np.maximum(base.ensemble.value, 1.0 - base.ensemble.value)))
        residual_range = ResidualRange(half=half)
        errors = errors if errors.size else np.array([-half, half])
    else:
        sd = float(y.std()) if len(y) else 0.0
        given = question.residual_range
        if not np.any(errors):
            given = given or sd or 1.0
            errors = np.linspace(-given, given, 101)
        residual_range = ResidualRange.of(errors, given)
        scale = 2.0 * (sd or residual_range.half)
    is_own = question.partition == "cart" and base.top is not None
    regrow = partial(
        grow,
        X,
        indicators(y, n_classes)[:, 0] if n_classes == 2 else y,
        kind=question.partition,
        n_classes=max(n_classes, 2),
        mechanism=question.mechanism,
        criterion="gini" if n_classes > 2 else "variance",
        min_samples_leaf=MIN_SAMPLES_LEAF if len(y) else 1,
        seed=question.coins,
    )

    @cache
    def cut(depth: int) -> Partition:
        return base.top(depth) if is_own and base.top else regrow(depth=depth)

    @cache
    def own_variance(tree: Partition) -> Floats:
        return base.own_variance(tree, X)

    return Known(X=X, errors=errors, range=residual_range, scale=scale, grow=cut, own_variance=own_variance)
