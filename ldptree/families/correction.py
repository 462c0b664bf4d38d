"""Correction: a public model, and one report of every holder about how wrong it is on their own row.

The public model and the plan of the question are made of public rows; how reports become corrections is in `corrections`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ldptree.errors import DataError
from ldptree.families.correction_plan import make_plan
from ldptree.families.family import Counted, OneTreeFamily, PublicRows, Published
from ldptree.families.fit_correction import Public, PublicSide, corrected, plan_behind, protocol_of
from ldptree.limits import MAX_PROTOCOL_BYTES, check_memory

if TYPE_CHECKING:
    from ldptree.models.corrected import CorrectedModel
    from ldptree.protocol.protocol import Protocol


@dataclass(frozen=True, eq=False)
class PublicModelled:
    """What is seen before the question: public rows, and a public model fitted on them."""

    rows: PublicRows
    side: PublicSide

    @property
    def labels(self) -> tuple[Any, ...]:
        """The declared classes, none where the label is a number."""
        return _labels(self.rows)

    @property
    def n_holders(self) -> int:
        """How many holders will report on each output of the public model."""
        return self.rows.n_private // self.side.base.n_outputs


@dataclass(frozen=True, kw_only=True)
class Correction(OneTreeFamily[PublicModelled, Public, "CorrectedModel"]):
    """A public model, corrected where private people differ from it.

    Attributes:
        epsilon: of each holder.
        heading: what the protocol says besides, as keyword arguments of `Protocol`: its target at least.
        base: one of `public_models.fit.BASES`, or a fitted scikit-learn model of the raw columns.
        partition, min_samples_leaf, seed: how the tree of cells is grown (`PublicSide.of`).
        depth: "auto", or the deepest a cell may lie.
        mechanism: an oracle's name, or "auto".
        n_levels: levels of a residual, or "auto".
        residual_range: residuals are clipped to +- this; None: by the public out-of-fold errors.
        max_bytes: the largest protocol.
        frozen: a question that was published before; it is asked as it is.
    """

    epsilon: float
    heading: Mapping[str, Any]
    base: Any = "forest"
    partition: str = "cart"
    depth: int | Literal["auto"] = "auto"
    min_samples_leaf: int | Literal["auto"] = "auto"
    mechanism: str = "auto"
    n_levels: int | Literal["auto"] = "auto"
    residual_range: float | None = None
    max_bytes: int = MAX_PROTOCOL_BYTES
    seed: int = 0
    frozen: Protocol | None = None

    def summarize(self, rows: PublicRows) -> PublicModelled:
        """Fit the public model, or take over a fitted one.

        Raises:
            ConfigError, DataError: as `PublicSide.of`.
        """
        side = PublicSide.of(
            self.base,
            rows.encoding,
            rows.X,
            rows.y,
            n_classes=len(_labels(rows)),
            partition=self.partition,
            mechanism=self.mechanism,
            min_samples_leaf=self.min_samples_leaf,
            residual_range=self.residual_range,
            max_bytes=self.max_bytes,
            seed=self.seed,
        )
        return PublicModelled(rows, side if self.frozen is None else side.answering_as(self.frozen))

    def ask(self, view: PublicModelled, transcript: Sequence[Counted[Public]]) -> Published[Public] | None:
        """The question about the public model's errors.

        Raises:
            ConfigError: what is to be published is too large.
            DataError: fewer holders than outputs of the public model.
        """
        if transcript:
            return None
        if self.frozen is not None:
            plan = plan_behind(self.frozen, view.side, max(view.n_holders, 1))
            return Published(self.frozen, lambda: Public.of(view.side, plan))
        if not view.n_holders:
            raise DataError(
                f'{view.rows.n_private} private people for the {len(view.labels)} classes of "{self.heading["target"]}": each '
                "reports on one of them, and each class needs one at least. Wait for more, or keep fewer classes (in a run, in "
                "dataset.classes)."
            )
        plan = make_plan(
            view.side.known,
            epsilon=self.epsilon,
            n_holders=view.n_holders,
            depth=self.depth,
            n_levels=self.n_levels,
            mechanism=self.mechanism,
        )
        check_memory(plan.partition.n_leaves, plan.mechanism.n_classes)
        protocol = protocol_of(
            plan,
            view.rows.encoding,
            view.side.base,
            view.labels,
            epsilon=self.epsilon,
            max_bytes=self.max_bytes,
            **self.heading,
        )
        return Published(protocol, lambda: Public.of(view.side, plan))

    def fit(self, view: PublicModelled, transcript: Sequence[Counted[Public]]) -> CorrectedModel:
        """The public model, corrected by the totals of the answers."""
        (only,) = transcript
        return corrected(only.protocol, only.published.evidence, only.totals, epsilon=self.epsilon)

    def read_evidence(self, data: Mapping[str, Any], protocol: Protocol) -> Public:
        """See `OneTreeFamily`."""
        return Public.from_json(data, protocol)


def _labels(rows: PublicRows) -> tuple[Any, ...]:
    return () if rows.y.dtype.kind == "f" else rows.label
