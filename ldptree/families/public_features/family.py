"""The family of public features. Each holder gives one report, as holders are split and not epsilon (ours).

1. The label's bin, a tenth of the holders or more: its normal law, and from it the interval c +- R of later reports. A label
   of two classes is -1 or 1 and needs none.
2. Where private features can pay: their bins, for ranks.
3. The label, by the least noisy mechanism of one number: a surface of the features that most holders show. As many holders as it
   would have if all private features helped.
4. Where they can pay: the residual from that surface, and from what earlier answers say of private features, times a contrast
   of a private feature. So what two of them say alike is counted once. First a part of the holders that it is worth.
5. Everybody who is left, by what those answers say: the label again, and contrasts that go on. So features of no use cost the
   first parts, and nobody is left out.

Privacy: a holder is in at most one part, parts depend on public coins and the number of holders alone, and every question
on published answers: the transcript of all rounds is epsilon-semi-feature LDP (HistOfTree, Definition 3.1), with no
composition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from ldptree.errors import DataError
from ldptree.families.family import RoundsFamily
from ldptree.families.public_features.allocation import (
    FEWEST,
    Allocation,
    ChosenContrasts,
    Schedule,
    Turn,
    allocate,
    choose_contrasts,
    count_first_round,
    count_further,
    divide_holders,
    extra_reach,
    first_allocation,
)
from ldptree.families.public_features.effects import (
    CoefficientEstimate,
    EffectTest,
    assess_effects,
    estimate_coefficient,
)
from ldptree.families.public_features.label import (
    LABEL_BINS,
    LabelDistribution,
    choose_half_width,
    fit_normal,
    typical_variance,
    weigh_by_precision,
)
from ldptree.families.public_features.questions import (
    FeatureBins,
    LabelBins,
    ResidualQuestion,
)
from ldptree.families.public_features.summary import FitFacts, measure_explained, summarize
from ldptree.families.public_features.surface import fit_surface
from ldptree.families.public_features.transcript import (
    estimate_shares,
    read_contrast_answers,
    read_label_answers,
    visible_rows,
)
from ldptree.families.settings import PublicFeaturesSettings
from ldptree.limits import label_ends
from ldptree.mechanisms.numbers import NUMBERS, NumberMechanism
from ldptree.mechanisms.oracles.subset import SubsetSelection
from ldptree.models.public_features import PublicFeatureModel
from ldptree.models.surface import BINS, Surface
from ldptree.protocol.question import PublicView, Question, Transcript
from ldptree.rounding import round_digits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

T = TypeVar("T")
FEWEST_HOLDERS = 2
# a report's mean square is its variance and that of what it is about, relative to R
_SIGNAL = 0.16
# the residual's variance is at least this share of the label's: the surface's own variance is partly noise
_LEAST_LEFT = 0.25
# of the mean of labels -1 and 1: all are as likely, so 0, and the variance of that
_KNOWN_OF_CLASSES = (0.0, 1 / 3)


class Memory:
    """A memory of what was learned from published answers, by their bytes, so that it is not learned again for the next
    question.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, object] = {}

    def once(self, learn: Callable[[], T], what: bytes, *arrays: NDArray[np.generic]) -> T:
        """Return what `learn` gives; it is called the first time only that `what` is learned from these arrays."""
        sha = hashlib.sha256(what)
        for array in arrays:
            sha.update(np.ascontiguousarray(array).data)
        key = sha.digest()
        if key not in self._known:
            self._known[key] = learn()
        return cast("T", self._known[key])


@dataclass(frozen=True, kw_only=True)
class PublicFeatures(PublicFeaturesSettings, RoundsFamily[PublicFeatureModel]):
    """Settings alone, so that a run can stop between rounds.

    Attributes:
        epsilon: of each holder.
        columns: names of the features.
        low, high: ends of each feature's range, in its own unit, which scaled rows were made with.
        label_low, label_high: the label's range; (-1, 1) for two classes.
        is_binary: whether labels are -1 and 1.
        seed: public coins, 0 .. 2^64 - 1.
        ask_private: "auto", "always" or "never" (see `allocation.allocate`).

    Raises:
        ConfigError: the label's range is inverted or infinite.
    """

    epsilon: float
    columns: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    label_low: float = -1.0
    label_high: float = 1.0
    is_binary: bool = False
    seed: int = 0
    ask_private: str = "auto"
    _memory: Memory = field(default_factory=Memory, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        label_ends((self.label_low, self.label_high))

    def ask(self, view: PublicView, transcript: Transcript) -> Question | None:
        """The next question.

        Raises:
            DataError: there are too few holders for every role to have one.
        """
        if view.n < FEWEST_HOLDERS:
            raise DataError(
                f"n_samples = {view.n}: nobody is left for a role; at least {FEWEST_HOLDERS} holders are needed, and "
                "hundreds to learn anything"
            )
        turns = self._schedule(view, transcript).turns
        return (
            self._make_question(turns[len(transcript)], view, transcript)
            if len(transcript) < len(turns)
            else None
        )

    def fit(self, view: PublicView, transcript: Transcript) -> PublicFeatureModel:
        """The surface of the label's answers, and an effect for each contrast asked about."""
        labels = self._learn_labels(transcript)
        allocation = self._allocate(view, labels)
        surface = self._surface(view, allocation, labels, transcript)
        effects = self._assess_effects(view, allocation, labels, transcript)
        return PublicFeatureModel(
            columns=self.columns,
            low=self.low,
            high=self.high,
            private=tuple(np.flatnonzero(view.protects.any(axis=0)).tolist()),
            label_low=self.label_low,
            label_high=self.label_high,
            is_binary=self.is_binary,
            surface=surface,
            effects=tuple(fact.effect for fact in effects),
            epsilon=self.epsilon,
            n_holders=view.n,
            says=summarize(
                FitFacts(
                    allocation=allocation,
                    labels=labels,
                    effects=effects,
                    constant=self._choose_contrasts(view, allocation, labels, transcript).same,
                    explained=measure_explained(
                        view,
                        transcript,
                        lambda rows, reports: self._fit_surface(
                            rows, allocation.line, reports, labels, view.n
                        ),
                        is_binary=self.is_binary,
                    ),
                ),
                view,
                columns=self.columns,
                ranges=list(zip(self.low, self.high, strict=True)),
                epsilon=self.epsilon,
            ),
        )

    def _schedule(self, view: PublicView, transcript: Transcript) -> Schedule:
        """Return all turns that these answers decide on, past ones and the next if there is one."""
        agenda = Schedule(self.seed, [])
        if not self.is_binary:
            agenda.add("label bins", self._count_first_round(view.n))
            if not transcript:
                return agenda
        labels = self._learn_labels(transcript)
        allocation = self._allocate(view, labels)
        for feature in allocation.binned:
            agenda.add("feature bins", allocation.n_bins, feature)
        if len(transcript) < len(agenda.turns):
            return agenda
        stakes = self._choose_contrasts(view, allocation, labels, transcript).stakes
        report = self._mean_square(view, labels)
        n_label, first = first_allocation(stakes, allocation.left, n_line=len(allocation.line), report=report)
        agenda.add("label", n_label)
        for place, size in enumerate(first):
            agenda.add("contrast", size, place)
        n_done = len(agenda.turns)
        if not stakes or len(transcript) < n_done:
            return agenda
        again = [fact.stake for fact in self._assess_effects(view, allocation, labels, transcript[:n_done])]
        _, sizes = divide_holders(
            again, allocation.left, n_line=len(allocation.line), report=report, asked=n_label
        )
        more = count_further(sizes, first, least=1 if self.ask_private == "always" else FEWEST)
        agenda.add("label", allocation.left - n_label - sum(first) - sum(more))
        for place, size in enumerate(more):
            agenda.add("contrast", size, place)
        return agenda

    def _make_question(self, turn: Turn, view: PublicView, transcript: Transcript) -> Question:
        if turn.kind == "label bins":
            oracle = _bins(self.epsilon, LABEL_BINS)
            return LabelBins(turn.part, oracle, self.label_low, self.label_high)
        if turn.kind == "feature bins":
            return FeatureBins(turn.part, _bins(self.epsilon, BINS), turn.about)
        labels = self._learn_labels(transcript)
        half = self._choose_half(view.n, labels)
        if turn.kind == "label":
            return ResidualQuestion(
                turn.part, self._label_mechanism(), Surface.constant(self._find_centre(labels, half)), half
            )
        allocation = self._allocate(view, labels)
        contrast = self._choose_contrasts(view, allocation, labels, transcript).contrasts[turn.about]
        surface = self._surface(view, allocation, labels, transcript)
        left = max(labels.sd**2 - float(surface(visible_rows(view)).var()), _LEAST_LEFT * labels.sd**2)
        narrow = half * float(np.sqrt(left)) / labels.sd
        known = self._assess_effects(view, allocation, labels, transcript)[: turn.about]
        return ResidualQuestion(
            turn.part,
            _number("optimal_label", self.epsilon),
            surface,
            float(round_digits(narrow + extra_reach(contrast) * labels.sd)),
            contrast,
            tuple(fact.effect for fact in known),
        )

    def _count_first_round(self, n: int) -> int:
        return count_first_round(n, self.epsilon)

    def _label_mechanism(self) -> NumberMechanism:
        """Labels of -1 and 1 have Duchi's mechanism, which is randomised response there."""
        return _number("duchi" if self.is_binary else "optimal_label", self.epsilon)

    def _learn_labels(self, transcript: Transcript) -> LabelDistribution:
        if self.is_binary:
            return LabelDistribution.known(0.0, 1.0)
        question = transcript[0].question
        assert isinstance(question, LabelBins)
        oracle, reports = question.oracle, transcript[0].reports
        ratio = float(oracle.ratio)

        def learn() -> LabelDistribution:
            return fit_normal(oracle.supports(reports), ratio, self.label_low, self.label_high)

        return self._memory.once(learn, b"law", reports)

    def _find_centre(self, labels: LabelDistribution, half: float) -> float:
        """Return the law's centre, moved as far as needed to keep the interval in the range of labels."""
        if self.is_binary:
            return 0.0
        return float(round_digits(min(max(labels.mean, self.label_low + half), self.label_high - half)))

    def _choose_half(self, n: int, labels: LabelDistribution) -> float:
        if self.is_binary:
            return 1.0
        whole, left = (self.label_high - self.label_low) / 2, n - self._count_first_round(n)

        def learn() -> float:
            return float(round_digits(choose_half_width(labels, self._label_mechanism(), left, whole)))

        return self._memory.once(learn, b"half", labels.means, labels.sds, labels.weights)

    def _mean_square(self, view: PublicView, labels: LabelDistribution, farther: float = 0.0) -> float:
        """Mean square of a report of a number within this much more than R."""
        mechanism = self._label_mechanism()
        if self.is_binary:
            return mechanism.bound**2
        half = self._choose_half(view.n, labels) + farther
        return (typical_variance(mechanism) + _SIGNAL) * half**2

    def _allocate(self, view: PublicView, labels: LabelDistribution) -> Allocation:
        left = view.n if self.is_binary else view.n - self._count_first_round(view.n)
        return allocate(
            view.protects,
            left,
            spread=labels.sd**2,
            report=self._mean_square(view, labels),
            ask_private=self.ask_private,
        )

    def _choose_contrasts(
        self, view: PublicView, allocation: Allocation, labels: LabelDistribution, transcript: Transcript
    ) -> ChosenContrasts:
        return choose_contrasts(
            allocation,
            {j: estimate_shares(view, j, transcript) for j in allocation.private if allocation.shapes},
            view.d,
            sd=labels.sd,
            report=lambda farther: self._mean_square(view, labels, farther),
            must=self.ask_private == "always",
        )

    def _surface(
        self, view: PublicView, allocation: Allocation, labels: LabelDistribution, transcript: Transcript
    ) -> Surface:
        rows, reports = read_label_answers(view, transcript)
        return self._memory.once(
            lambda: self._fit_surface(rows, allocation.line, reports, labels, view.n),
            b"surface",
            rows,
            reports,
            np.array([labels.sd, *allocation.line]),
        )

    def _fit_surface(
        self, rows: Floats, line: tuple[int, ...], reports: Floats, labels: LabelDistribution, n: int
    ) -> Surface:
        if self.is_binary:
            noise = float(reports.var()) / reports.size
            level = weigh_by_precision(*_KNOWN_OF_CLASSES, float(reports.mean()), noise)
        else:
            half = self._choose_half(n, labels)
            level = labels.estimate_mean(
                reports, self._find_centre(labels, half), half, (self.label_low, self.label_high)
            )
        return fit_surface(rows, line, reports, spread=labels.sd**2, seed=self.seed, level=level)

    def _assess_effects(
        self, view: PublicView, allocation: Allocation, labels: LabelDistribution, transcript: Transcript
    ) -> tuple[EffectTest, ...]:
        """Estimate the effect of each contrast from its answers, shrunk, and tell whether it is surely no noise."""
        about = read_contrast_answers(view, transcript)
        return assess_effects(
            [contrast for contrast, _, _ in about],
            [self._estimate(rows, allocation.line, reports, labels) for _, rows, reports in about],
            [reports.size for _, _, reports in about],
            n_contrasts=len(allocation.shapes) * len(allocation.private),
            spread=labels.sd**2,
            d=view.d,
        )

    def _estimate(
        self, rows: Floats, line: tuple[int, ...], reports: Floats, labels: LabelDistribution
    ) -> CoefficientEstimate:
        return self._memory.once(
            lambda: estimate_coefficient(rows, line, reports, spread=labels.sd**2, seed=self.seed),
            b"effect",
            rows,
            reports,
            np.array([labels.sd, *line]),
        )


@lru_cache(maxsize=64)
def _number(name: str, epsilon: float) -> NumberMechanism:
    return NUMBERS[name].for_budget(epsilon)


@lru_cache(maxsize=64)
def _bins(epsilon: float, k: int) -> SubsetSelection:
    return SubsetSelection.for_values(epsilon, k)
