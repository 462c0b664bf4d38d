"""Correction of a public model by one report of every holder, who says how wrong it is on their own row.

The public model and the plan of the question are made of public rows; how reports become corrections is in `corrections`, what
a part of the holders may be asked first in `contrasts`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.errors import ConfigError, DataError
from ldptree.families.contrasts import (
    MOST_CUTS,
    NOISE_WITH_PAIRS,
    SHARE,
    choose_contrasts,
    choose_pairs,
    cut_above,
    find_cuts,
    is_worth_asking,
    plan_contrasts,
    widen_range,
)
from ldptree.families.correction_plan import (
    MAX_CELLS,
    CorrectionPlan,
    Halves,
    PublicEvidence,
    PublicSummary,
    ResidualRange,
    make_plan,
    plan_published,
)
from ldptree.families.corrections import correct, estimate_residuals
from ldptree.families.family import Counted, OneTreeFamily, PublicRows, Published
from ldptree.families.settings import CorrectionSettings
from ldptree.families.stumps import Stump, find_stumps
from ldptree.inference.depth import default_min_samples_leaf
from ldptree.limits import check_labels, check_memory
from ldptree.mechanisms import adds_noise_to_every_cell
from ldptree.models.corrected import CorrectedModel, shares_of
from ldptree.models.effects import columns_of
from ldptree.partition import Partition, grow_partition
from ldptree.protocol.protocol import EVERYBODY, Protocol
from ldptree.protocol.published_base import DRAWN, Along, Contrast, PublishedBase
from ldptree.public_models.fit import fit_public, take_public
from ldptree.public_models.model import PublicModel, answers, constant, indicators

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.models.ensemble import Ensemble
    from ldptree.protocol.totals import Totals

    Floats = NDArray[np.float64]
    Rows = NDArray[np.float32]

_BYTES_A_CELL = 128


@dataclass(frozen=True, eq=False)
class _Once:
    """Results on public rows that all questions share.

    Attributes:
        answer: a public model's answers to them.
        grow: a tree on them by its depth.
    """

    answer: Callable[[Ensemble], Floats]
    grow: Callable[[int], Partition]


@dataclass(frozen=True, eq=False)
class PublicModelled:
    """The view before the question, with public rows and a public model of them."""

    rows: PublicRows
    once: _Once
    gather: Callable[[], PublicEvidence]

    @property
    def evidence(self) -> PublicEvidence:
        """The public model, fitted when it is first asked for, and what plans are made of."""
        return self.gather()

    @property
    def labels(self) -> tuple[Any, ...]:
        """The declared classes, none where the label is a number."""
        return _labels(self.rows)

    @property
    def n_holders(self) -> int:
        """Number of holders who will report on each output of the public model."""
        return self.rows.n_private // self.evidence.base.n_outputs


@dataclass(frozen=True, kw_only=True)
class Correction(CorrectionSettings, OneTreeFamily[PublicModelled, PublicSummary, CorrectedModel]):
    """A public model, corrected where private people differ from it.

    Attributes:
        epsilon: of each holder.
        heading: what the protocol says besides, as keyword arguments of `Protocol`: its target at least.
        mechanism: an oracle's name, "signed_subset" or "auto".
        seed: of public coins, where the partition tosses any.
        frozen: a question that was published before; it is asked as it is.
    """

    epsilon: float
    heading: Mapping[str, Any]
    mechanism: str = "auto"
    seed: int = 0
    frozen: Protocol | None = None

    def summarize(self, rows: PublicRows) -> PublicModelled:
        """Return the view with a fitted public model, or one that is fitted at its first use.

        Its evidence raises:
            ConfigError: a setting is unknown; the base is too large: its size is named; or public labels are in such a unit that
                squares of them are no floats.
            DataError: as `public_models.fit.take_public`.
        """
        once = _Once(
            answer=cache(lambda ensemble: answers(ensemble, rows.X, len(_labels(rows)))),
            grow=cache(self._growing(rows)),
        )
        return PublicModelled(rows, once, cache(lambda: self._gather(rows, once)))

    def _gather(self, rows: PublicRows, once: _Once) -> PublicEvidence:
        evidence = self._evidence_of(self._fit(rows), rows, once)
        if self.frozen is not None and self.frozen.base is not None:
            evidence = evidence.with_base(self.frozen.base.ensemble)
        return evidence

    def _fit(self, rows: PublicRows) -> PublicModel:
        encoding, X, y, n_classes = rows.encoding, rows.X, rows.y, len(_labels(rows))
        if not n_classes and len(y):
            check_labels(float(np.min(y)), float(np.max(y)))
        room = (
            self.max_protocol_bytes
            - len(json.dumps(encoding.to_json()))
            - min(self.max_protocol_bytes // 16, MAX_CELLS * _BYTES_A_CELL)
        )
        if room <= 0:
            raise ConfigError(
                f"max_protocol_bytes: {self.max_protocol_bytes:,} bytes leave no room for a public model beside the "
                f"{self.max_protocol_bytes - room:,} that everything else in a protocol may take; raise it"
            )
        base = self.named_base
        if not isinstance(base, str):
            return take_public(base, encoding, X, y, n_classes=n_classes, max_bytes=room)
        if len(y):
            return fit_public(base, X, y, n_classes=n_classes, weights=rows.weights, max_bytes=room)
        even = [0.0] if not n_classes else [0.5] if n_classes == 2 else [1.0 / n_classes] * n_classes
        return constant(np.array(even), n_classes)

    def _evidence_of(
        self, model: PublicModel, rows: PublicRows, once: _Once, half: float | None = None
    ) -> PublicEvidence:
        encoding, X, y = rows.encoding, rows.X, rows.y
        answered = once.answer(model.ensemble)
        usual = answered if len(y) else model.answers(encoding.encode(np.zeros((1, len(encoding.columns)))))
        residual_range, errors, scale = _residuals(
            model, y, half if self.residual_range == "auto" else self.residual_range
        )
        return PublicEvidence(
            base=model,
            usual=usual.mean(axis=0),
            X=X,
            answered=answered,
            errors=errors,
            range=residual_range,
            scale=scale,
            grow=cache(model.top) if self.partition == "cart" and model.top is not None else once.grow,
            own_variance=cache(lambda tree: model.own_variance(tree, X)),
        )

    def _growing(self, rows: PublicRows) -> Callable[[int], Partition]:
        """Return the tree on public rows by its depth."""
        y, n_classes = rows.y, len(_labels(rows))
        grow = partial(
            grow_partition,
            rows.X,
            indicators(y, n_classes)[:, 0] if n_classes == 2 else y,
            kind=self.partition,
            n_classes=max(n_classes, 2),
            criterion="gini" if n_classes > 2 else "variance",
            min_samples_leaf=default_min_samples_leaf("errors", len(y), wanted=self.min_samples_leaf),
            stop_empty=adds_noise_to_every_cell(self.mechanism),
            seed=self.seed,
        )
        return lambda depth: grow(depth=depth)

    def expect(self, view: PublicModelled, n_private: int) -> PublicModelled:
        """See `OneTreeFamily`."""
        return replace(view, rows=replace(view.rows, n_private=n_private))

    def predict_publicly(self, view: PublicModelled, X: Rows) -> NDArray[Any]:
        """See `OneTreeFamily`."""
        answers = view.evidence.base.answers(X)
        if not view.labels:
            return np.asarray(answers[:, 0])
        return np.asarray(shares_of(answers).argmax(axis=1))

    def ask(
        self, view: PublicModelled, transcript: Sequence[Counted[PublicSummary]]
    ) -> Published[PublicSummary] | None:
        """The question about the public model's errors in each cell; where it is worth it, one about contrasts before it.

        Raises:
            ConfigError: what is to be published is too large, or two questions were wanted and cannot be asked.
            DataError: fewer holders than outputs of the public model.
        """
        if not transcript:
            return self._ask_along_columns(view) or self._ask_in_cells(view)
        first = transcript[0]
        if len(transcript) > 1 or first.protocol.asks_everybody:
            return None
        base, known = first.protocol.base, first.published.evidence
        assert base is not None
        assert known.errors is not None
        most = MOST_CUTS if self.depth == "auto" else min(int(self.depth), MOST_CUTS)
        again = PublicModel(ensemble=base.ensemble, errors=known.errors[:, None], n_classes=len(view.labels))
        half = None if view.labels or self.residual_range != "auto" else widen_range(known.plan, first.totals)
        return self._ask_in_cells(
            replace(view, gather=cache(lambda: self._evidence_of(again, view.rows, view.once, half))),
            asked=(SHARE, EVERYBODY[1]),
            cuts=find_cuts(known.plan, base.contrasts, first.totals, view.rows.X, most),
            contrasts=_of_one_column(base.contrasts),
        )

    def _ask_along_columns(self, view: PublicModelled) -> Published[PublicSummary] | None:
        """The question about contrasts to a part of the holders; None where it is not worth it."""
        evidence = view.evidence
        why_not = self._why_one_question(evidence)
        contrasts: tuple[Along, ...] = () if why_not else choose_contrasts(evidence.X)
        if not contrasts:
            if self.questions == 2:
                raise ConfigError(
                    f"questions = 2: {why_not or 'no column parts the public rows'}. Ask one question"
                )
            return None
        plan_of = partial(
            plan_contrasts,
            evidence,
            epsilon=self.epsilon,
            n_holders=view.n_holders,
            n_levels=self.label_levels,
            mechanism=self.mechanism,
        )
        plan = plan_of(contrasts)
        if self.questions == "auto" and not is_worth_asking(plan, evidence):
            return None
        pairs = choose_pairs(evidence.X, _of_one_column(contrasts), columns_of(view.rows.encoding))
        if pairs and self.depth not in (0, 1):
            wide = plan_of((*contrasts, *pairs))
            if is_worth_asking(wide, evidence, NOISE_WITH_PAIRS):
                plan, contrasts = wide, (*contrasts, *pairs)
        protocol = self.publish(view, plan, asked=(0, SHARE), contrasts=contrasts)
        errors = evidence.base.errors[:, 0]  # so that the next question needs no public model fitted anew
        return Published(protocol, lambda: replace(PublicSummary.of(evidence, plan), errors=errors))

    def _why_one_question(self, evidence: PublicEvidence) -> str:
        """Return the reason why no question about contrasts can come first; "" where one can."""
        if self.questions == 1:
            return "one was asked for"
        if self.frozen is not None or (self.heading.get("campaign") is not None and self.questions == "auto"):
            return "a campaign asks one"
        if evidence.base.n_outputs > 1:
            return "of over two classes each holder reports on one already"
        if evidence.own_variance(Partition.single()).any():
            return 'base "tree" has the cells of its own tree'
        return ""

    def _ask_in_cells(
        self,
        view: PublicModelled,
        *,
        asked: tuple[int, int] = EVERYBODY,
        cuts: Sequence[Contrast] = (),
        contrasts: Sequence[Contrast] = (),
    ) -> Published[PublicSummary]:
        """Return the question about cells to this part of the holders. `cuts`, of the `contrasts` that others were asked about,
        separate halves before the tree.
        """
        evidence = view.evidence
        n_holders = view.n_holders * (asked[1] - asked[0]) // EVERYBODY[1]
        if self.frozen is not None:
            plan = _plan_behind(self.frozen, evidence, max(n_holders, 1))
            return Published(self.frozen, lambda: PublicSummary.of(evidence, plan), is_last=True)
        if not n_holders:
            raise DataError(
                f'{view.rows.n_private} private people for the {len(view.labels)} classes of "{self.heading["target"]}": each '
                "reports on one of them, and each class needs one at least. Wait for more, or keep fewer classes (in a run, in "
                "dataset.classes)."
            )
        if cuts:
            groups = columns_of(view.rows.encoding)
            evidence = replace(evidence, grow=cache(partial(_grow_below, evidence, groups, cuts)))
        plan = make_plan(
            evidence,
            epsilon=self.epsilon,
            n_holders=n_holders,
            depth=self.depth,
            least_depth=max(len(cuts), 1),
            n_levels=self.label_levels,
            mechanism=self.mechanism,
        )
        check_memory(plan.partition.n_leaves, plan.mechanism.n_classes)
        protocol = self.publish(view, plan, asked=asked)

        def summarize() -> PublicSummary:
            halves = Halves.of(contrasts, plan.partition, evidence.X) if contrasts else None
            return replace(PublicSummary.of(evidence, plan), halves=halves)

        return Published(protocol, summarize, is_last=True)

    def publish(
        self,
        view: PublicModelled,
        plan: CorrectionPlan,
        *,
        asked: tuple[int, int] = EVERYBODY,
        contrasts: tuple[Along, ...] = (),
    ) -> Protocol:
        """The question about the public model's error: of several outputs, or contrasts, each holder draws one.

        Raises:
            ConfigError: it is larger than `max_protocol_bytes`.
        """
        base = view.evidence.base
        n_residuals = len(contrasts) or base.n_outputs
        protocol = Protocol(
            encoding=view.rows.encoding,
            partition=plan.partition,
            classes=plan.levels,
            positive=None,
            mechanism=plan.mechanism,
            epsilon=self.epsilon,
            round=2 if asked[0] else 1,
            numeric=True,
            asked=asked,
            base=PublishedBase(
                ensemble=base.ensemble,
                labels=view.labels,
                output=0 if n_residuals == 1 else DRAWN,
                contrasts=contrasts,
            ),
            **self.heading,
        )
        size = len(protocol.to_json())
        if size > self.max_protocol_bytes:
            raise ConfigError(
                f"max_protocol_bytes: the protocol has {size:,} bytes, at most {self.max_protocol_bytes:,} are allowed; choose a "
                "smaller depth or base, or raise max_protocol_bytes"
            )
        return protocol

    def fit(self, view: PublicModelled, transcript: Sequence[Counted[PublicSummary]]) -> CorrectedModel:
        """The public model, corrected by the totals of the last answers. Where these found something, also by stumps of the ones
        before.
        """
        *before, last = transcript
        public = last.published.evidence
        model = fit_corrected(last.protocol, public, last.totals, epsilon=self.epsilon)
        stumps: list[Stump] = []
        for earlier in () if model.corrections.has_no_effect else before:
            base = earlier.protocol.base
            assert base is not None
            assert public.halves is not None
            of_columns = _of_one_column(base.contrasts)
            stumps += find_stumps(
                earlier.published.evidence.plan,
                of_columns,
                [t for along, t in zip(base.contrasts, earlier.totals, strict=True) if along in of_columns],
                public.halves,
                public.plan,
                model.corrections,
            )
        n_before = sum(t.n_private for answers in before for t in answers.totals)
        return replace(
            model,
            n_private=model.n_private + n_before,
            label_range=self.label_range,
            stumps=tuple(stumps),
        )

    def doubt(self, evidence: PublicSummary) -> NDArray[np.float64]:
        """See `OneTreeFamily`."""
        return evidence.plan.doubt[:, 0]

    def read_evidence(self, data: Mapping[str, Any], protocol: Protocol) -> PublicSummary:
        """See `OneTreeFamily`."""
        return PublicSummary.from_json(data, protocol)


def _grow_below(
    evidence: PublicEvidence, groups: Sequence[Sequence[int]], cuts: Sequence[Contrast], depth: int
) -> Partition:
    """The tree of a depth, the cuts in it: the first of them at its root. `groups`: the encoded columns of each raw one."""
    tree = evidence.grow(max(depth - len(cuts), 0))
    for cut in reversed(cuts[:depth]):
        tree = cut_above(tree, cut, evidence.X, next(group for group in groups if cut.feature in group))
    return tree


def fit_corrected(
    protocol: Protocol, public: PublicSummary, totals: Sequence[Totals], *, epsilon: float
) -> CorrectedModel:
    """The public model of a protocol, corrected by the totals of its answers.

    Args:
        protocol: the question.
        public: what public rows say of it.
        totals: the answers, one an output. An output that nobody drew is not corrected.
        epsilon: a holder's.

    Raises:
        DataError: totals of another shape, or nobody reported.
    """
    corrections = correct(public.plan, estimate_residuals(public.plan, totals))
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


def _of_one_column(contrasts: Sequence[Along]) -> tuple[Contrast, ...]:
    """The contrasts of one column."""
    return tuple(along for along in contrasts if isinstance(along, Contrast))


def _labels(rows: PublicRows) -> tuple[Any, ...]:
    return () if rows.y.dtype.kind == "f" else rows.label


def _plan_behind(protocol: Protocol, evidence: PublicEvidence, n_holders: int) -> CorrectionPlan:
    """The plan behind a protocol that was published before, with what the public rows of now say of it.

    `n_holders`: on each output.
    """
    half = protocol.label_range[1]
    clip_range = (
        ResidualRange(half=half) if protocol.label_classes else ResidualRange.of(evidence.errors, half)
    )
    return plan_published(
        replace(evidence, range=clip_range), protocol.partition, protocol.mechanism, n_holders
    )


def _residuals(
    base: PublicModel, y: NDArray[Any], given: float | None
) -> tuple[ResidualRange, Floats, float]:
    """The range of a residual, public out-of-fold errors or what stands in for them, and the label's scale."""
    n_classes, errors = base.n_classes, base.errors.ravel()
    if n_classes:
        half = 1.0
        if base.ensemble.n_nodes == 1:
            # a constant's residual of a class has one of two values
            half = float(np.max(np.maximum(base.ensemble.value, 1.0 - base.ensemble.value)))
        return ResidualRange(half=half), errors if errors.size else np.array([-half, half]), 1.0
    sd = float(y.std()) if len(y) else 0.0
    if not np.any(errors):
        given = given or sd or 1.0
        errors = np.linspace(-given, given, 101)
    residual_range = ResidualRange.of(errors, given)
    return residual_range, errors, 2.0 * (sd or residual_range.half)
