"""From public rows to a published question, and from its answers to a corrected model, for estimators and pipeline alike.

What lives here: the order of the parts. What does not: the public model (`public_fit`), the choice of tree, levels and oracle
(`correction_plan`), and what the reports say (`correction`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from ldptree.encoding import Encoding
from ldptree.errors import ConfigError
from ldptree.families.correction_plan import MAX_CELLS, Known, Plan, ResidualRange, plan_on
from ldptree.families.corrections import correct, observed
from ldptree.inference.depth import fewest_public_rows
from ldptree.limits import MAX_PROTOCOL_BYTES, check_labels
from ldptree.mechanisms import adds_noise_to_every_cell
from ldptree.models.corrected import CorrectedModel
from ldptree.partition import grow_partition
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.published_base import DRAWN, PublishedBase
from ldptree.public_models.fit import fit_public, take_public
from ldptree.public_models.model import PublicModel, constant, indicators

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.partition import Partition
    from ldptree.protocol.totals import Totals

    Floats = NDArray[np.float64]
    Rows = NDArray[np.float32]

_BYTES_A_CELL = 128
_ARRAYS = ("public_count", "own_variance", "doubt", "answer", "usual")


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicSide:
    """What public rows give before any epsilon: a public model, and what a plan is made of.

    Attributes:
        base: the public model.
        known: for `correction_plan.make_plan`.
        usual: float64 [M], its mean answer over the public rows.
    """

    base: PublicModel
    known: Known
    usual: Floats

    @classmethod
    def of(
        cls,
        base: Any,
        encoding: Encoding,
        X: Rows,
        y: NDArray[Any],
        *,
        n_classes: int,
        partition: str = "cart",
        mechanism: str = "auto",
        min_samples_leaf: int | Literal["auto"] = "auto",
        residual_range: float | None = None,
        max_bytes: int = MAX_PROTOCOL_BYTES,
        seed: int = 0,
    ) -> Self:
        """Fit the public model, or take over a fitted one.

        Args:
            base: one of `public_fit.BASES`, or a fitted scikit-learn model of the raw columns.
            encoding: how rows are read.
            X, y: encoded public rows [n, d], and numbers or class indices [n]; n may be 0.
            n_classes: C, 0 for numbers.
            partition: of the collection tree, one of `ldptree.partition.PARTITIONS`.
            mechanism: how holders will report.
            min_samples_leaf: fewest public rows in a cell of the collection tree, but of one cut from the base itself; or "auto"
                (`ldptree.inference.depth.fewest_public_rows`).
            residual_range: R, or None for that of the public out-of-fold errors; of no matter for classes.
            max_bytes: the largest protocol.
            seed: of public coins, where the partition tosses any.

        Raises:
            ConfigError: a setting is unknown; the base is too large: its size is named; or public labels are in such a unit that
                squares of them are no floats.
            DataError: as `public_fit.take_public`.
        """
        if not n_classes and len(y):
            check_labels(float(np.min(y)), float(np.max(y)))
        room = (
            max_bytes - len(json.dumps(encoding.to_json())) - min(max_bytes // 16, MAX_CELLS * _BYTES_A_CELL)
        )
        if room <= 0:
            raise ConfigError(
                f"max_protocol_bytes: {max_bytes:,} bytes leave no room for a public model beside the {-room + max_bytes:,} that "
                "everything else in a protocol may take; raise it"
            )
        if not isinstance(base, str):
            model = take_public(base, encoding, X, y, n_classes=n_classes, max_bytes=room)
        elif len(y):
            model = fit_public(base, X, y, n_classes=n_classes, max_bytes=room)
        else:
            even = [0.0] if not n_classes else [0.5] if n_classes == 2 else [1.0 / n_classes] * n_classes
            model = constant(np.array(even), n_classes)
        seen = X if len(y) else encoding.encode(np.zeros((1, len(encoding.columns))))
        how = {
            "kind": partition,
            "stop_empty": adds_noise_to_every_cell(mechanism),
            "min_samples_leaf": fewest_public_rows("errors", len(y), wanted=min_samples_leaf),
            "seed": seed,
        }
        known = _known(model, X, y, residual_range, how)
        return cls(base=model, known=known, usual=model.answers(seen).mean(axis=0))

    def answering_as(self, protocol: Protocol) -> Self:
        """The same with the base that was published before, whatever these public rows would give."""
        assert protocol.base is not None
        base = replace(self.base, ensemble=protocol.base.ensemble)
        usual = base.answers(self.known.X).mean(axis=0) if len(self.known.X) else self.usual
        return replace(self, base=base, usual=usual)


@dataclass(frozen=True, eq=False, kw_only=True)
class Public:
    """What public rows say of a published question, once and for all: all that is needed beside it when the answers are there.

    Attributes:
        plan: the question.
        answer: float64 [L, M], the public model's mean answer over the public rows of each cell; `usual` where there is none.
        usual: float64 [M], the same over all.
        n_public: public rows.
    """

    plan: Plan
    answer: Floats
    usual: Floats
    n_public: int

    @classmethod
    def of(cls, side: PublicSide, plan: Plan) -> Self:
        """Of a public side and a plan that was made of it."""
        X, n_cells = side.known.X, plan.partition.n_leaves
        answer = np.tile(side.usual, (n_cells, 1))
        if len(X):
            cells, said = plan.partition.apply(X), side.base.answers(X)
            is_met = plan.public_count > 0
            sums = np.stack([np.bincount(cells, weights=s, minlength=n_cells) for s in said.T], axis=1)
            answer[is_met] = sums[is_met] / plan.public_count[is_met][:, None]
        return cls(plan=plan, answer=answer, usual=side.usual, n_public=len(X))

    def to_json(self) -> dict[str, Any]:
        """Plain values, without what the protocol says."""
        plan, found = self.plan, self.plan.range
        return {
            "range": [found.half, found.slope, found.offset],
            "mean_square": plan.mean_square,
            "scale": plan.scale,
            "expected_sd": plan.expected_sd,
            "n_public": self.n_public,
            "public_count": plan.public_count.tolist(),
            "own_variance": plan.own_variance.tolist(),
            "doubt": plan.doubt.tolist(),
            "answer": self.answer.tolist(),
            "usual": self.usual.tolist(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], protocol: Protocol) -> Self:
        """What `to_json` wrote, and the protocol it was written beside."""
        half, slope, offset = data["range"]
        arrays = {name: np.array(data[name], dtype=np.float64) for name in _ARRAYS}
        plan = Plan(
            partition=protocol.partition,
            mechanism=protocol.mechanism,
            range=ResidualRange(half=half, slope=slope, offset=offset),
            mean_square=data["mean_square"],
            scale=data["scale"],
            public_count=arrays["public_count"],
            own_variance=arrays["own_variance"],
            doubt=arrays["doubt"],
            expected_sd=data["expected_sd"],
        )
        return cls(plan=plan, answer=arrays["answer"], usual=arrays["usual"], n_public=data["n_public"])


def protocol_of(
    plan: Plan,
    encoding: Encoding,
    base: PublicModel,
    labels: tuple[Any, ...],
    *,
    target: str,
    epsilon: float,
    max_bytes: int = MAX_PROTOCOL_BYTES,
    **said: Any,
) -> Protocol:
    """The question about the public model's error: of several outputs each holder draws one.

    Args:
        plan, encoding, base: what was chosen.
        labels: the declared classes, none for a number.
        target, epsilon, said: as of `Protocol`.
        max_bytes: the largest protocol.

    Raises:
        ConfigError: it is larger than that.
    """
    protocol = Protocol(
        encoding=encoding,
        partition=plan.partition,
        target=target,
        classes=plan.levels,
        positive=None,
        mechanism=plan.mechanism,
        epsilon=epsilon,
        numeric=True,
        base=PublishedBase(ensemble=base.ensemble, labels=labels, output=0 if base.n_outputs == 1 else DRAWN),
        **said,
    )
    size = len(protocol.to_json())
    if size > max_bytes:
        raise ConfigError(
            f"max_protocol_bytes: the protocol has {size:,} bytes, at most {max_bytes:,} are allowed; choose a smaller depth "
            "or base, or raise max_protocol_bytes"
        )
    return protocol


def plan_behind(protocol: Protocol, side: PublicSide, n_holders: int) -> Plan:
    """The plan behind a protocol that was published before, with what the public rows of now say of it.

    `n_holders`: on each output.
    """
    half = protocol.label_range[1]
    found = ResidualRange(half=half) if protocol.label_classes else ResidualRange.of(side.known.errors, half)
    known = replace(side.known, range=found)
    return plan_on(known, protocol.partition, protocol.mechanism, n_holders)


def corrected(
    protocol: Protocol, public: Public, totals: Sequence[Totals], *, epsilon: float
) -> CorrectedModel:
    """The public model of a protocol, mended by the totals of its answers.

    Args:
        protocol: the question.
        public: what public rows say of it.
        totals: the answers, one an output. An output that nobody drew is not corrected.
        epsilon: a holder's.

    Raises:
        DataError: totals of another shape, or nobody reported.
    """
    corrections = correct(public.plan, observed(public.plan, totals))
    assert protocol.base is not None
    return CorrectedModel(
        encoding=protocol.encoding,
        base=protocol.base.ensemble,
        partition=protocol.partition,
        corrections=corrections,
        classes=protocol.base.labels,
        default=public.usual + corrections.mean,
        target=protocol.target,
        epsilon=epsilon,
        mechanism=protocol.mechanism.full_name,
        n_private=sum(t.n_private for t in totals),
        n_public=public.n_public,
        protocol_digests=(protocol.digest,),
    )


def _known(base: PublicModel, X: Rows, y: NDArray[Any], given: float | None, how: Mapping[str, Any]) -> Known:
    n_classes, errors = base.n_classes, base.errors.ravel()
    if n_classes:
        half, scale = 1.0, 1.0
        if base.ensemble.n_nodes == 1:
            # a constant's residual of a class has one of two values
            half = float(np.max(np.maximum(base.ensemble.value, 1.0 - base.ensemble.value)))
        residual_range = ResidualRange(half=half)
        errors = errors if errors.size else np.array([-half, half])
    else:
        sd = float(y.std()) if len(y) else 0.0
        if not np.any(errors):
            given = given or sd or 1.0
            errors = np.linspace(-given, given, 101)
        residual_range = ResidualRange.of(errors, given)
        scale = 2.0 * (sd or residual_range.half)
    is_own = how["kind"] == "cart" and base.top is not None
    regrow = partial(
        grow_partition,
        X,
        indicators(y, n_classes)[:, 0] if n_classes == 2 else y,
        n_classes=max(n_classes, 2),
        criterion="gini" if n_classes > 2 else "variance",
        **how,
    )

    @cache
    def cut(depth: int) -> Partition:
        return base.top(depth) if is_own and base.top else regrow(depth=depth)

    @cache
    def own_variance(tree: Partition) -> Floats:
        return base.own_variance(tree, X)

    return Known(X=X, errors=errors, range=residual_range, scale=scale, grow=cut, own_variance=own_variance)
