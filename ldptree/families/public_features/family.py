"""The family of public features: one report a holder with the whole epsilon; the holders are split, not epsilon (ours).

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
    Agenda,
    Choice,
    Plan,
    Turn,
    added,
    begun,
    chosen,
    divided,
    farther,
    n_first,
    plan,
)
from ldptree.families.public_features.effects import Finding, Learned, findings, learned
from ldptree.families.public_features.label import (
    LABEL_BINS,
    LabelLaw,
    by_precision,
    half_width,
    normal_law,
    usual_variance,
)
from ldptree.families.public_features.questions import (
    FeatureBins,
    LabelBins,
    ResidualQuestion,
    check_label_range,
)
from ldptree.families.public_features.summary import explained, said
from ldptree.families.public_features.surface import fitted
from ldptree.families.public_features.transcript import of_contrasts, of_label, shares_of, visible
from ldptree.mechanisms.numbers import NUMBERS, NumberMechanism
from ldptree.mechanisms.oracles.subset import SubsetSelection
from ldptree.models.public_features import PublicFeatureModel
from ldptree.models.surface import BINS, Surface
from ldptree.protocol.question import PublicView, Question, Transcript

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
    """By the bytes that something was learned from."""

    def __init__(self) -> None:
        self._known: dict[bytes, object] = {}

    def once(self, learn: Callable[[], T], what: bytes, *arrays: NDArray[np.generic]) -> T:
        """What `learn` gives, called the first time only that `what` is learned from these arrays."""
        sha = hashlib.sha256(what)
        for array in arrays:
            sha.update(np.ascontiguousarray(array).data)
        key = sha.digest()
        if key not in self._known:
            self._known[key] = learn()
        return cast("T", self._known[key])


@dataclass(frozen=True, kw_only=True)
class PublicFeatures(RoundsFamily[PublicFeatureModel]):
    """Settings alone, so that a run can stop between rounds.

    Attributes:
        epsilon: of each holder.
        columns: names of the features.
        low, high: ends of each feature's range, in its own unit, which scaled rows were made with.
        label_low, label_high: the label's range; (-1, 1) for two classes.
        is_binary: whether labels are -1 and 1.
        seed: public coins, 0 .. 2^64 - 1.
        ask_private: "auto", "always" or "never" (see `plan`).

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
        check_label_range(self.label_low, self.label_high)

    def ask(self, shown: PublicView, answers: Transcript) -> Question | None:
        """The next question.

        Raises:
            DataError: there are too few holders for every role to have one.
        """
        if shown.n < FEWEST_HOLDERS:
            raise DataError(
                f"n_samples = {shown.n}: nobody is left for a role; at least {FEWEST_HOLDERS} holders are needed, and "
                "hundreds to learn anything"
            )
        turns = self._agenda(shown, answers).turns
        return self._question(turns[len(answers)], shown, answers) if len(answers) < len(turns) else None

    def fit(self, shown: PublicView, answers: Transcript) -> PublicFeatureModel:
        """The surface of the label's answers, and an effect for each contrast asked about."""
        law = self._law(answers)
        shared = self._plan(shown, law)
        surface = self._surface(shown, shared, law, answers)
        found = self._findings(shown, shared, law, answers)
        return PublicFeatureModel(
            columns=self.columns,
            low=self.low,
            high=self.high,
            private=tuple(np.flatnonzero(shown.protects.any(axis=0)).tolist()),
            label_low=self.label_low,
            label_high=self.label_high,
            is_binary=self.is_binary,
            surface=surface,
            effects=tuple(one.effect for one in found),
            epsilon=self.epsilon,
            n_holders=shown.n,
            says=said(
                self.columns,
                shown.protects,
                shared,
                law,
                found,
                self._choice(shown, shared, law, answers).same,
                explained(
                    shown,
                    answers,
                    lambda rows, reports: self._fitted(rows, shared.line, reports, law, shown.n),
                    is_binary=self.is_binary,
                ),
                visible(shown),
                low=self.low,
                high=self.high,
                epsilon=self.epsilon,
            ),
        )

    def _agenda(self, shown: PublicView, answers: Transcript) -> Agenda:
        """All turns that these answers decide on: those that were taken, and the next where there is one."""
        agenda = Agenda(self.seed, [])
        if not self.is_binary:
            agenda.add("label bins", self._n_first(shown.n))
            if not answers:
                return agenda
        law = self._law(answers)
        shared = self._plan(shown, law)
        for feature in shared.binned:
            agenda.add("feature bins", shared.n_bins, feature)
        if len(answers) < len(agenda.turns):
            return agenda
        stakes = self._choice(shown, shared, law, answers).stakes
        report = self._report(shown, law)
        n_label, first = begun(stakes, shared.left, n_line=len(shared.line), report=report)
        agenda.add("label", n_label)
        for place, size in enumerate(first):
            agenda.add("contrast", size, place)
        n_done = len(agenda.turns)
        if not stakes or len(answers) < n_done:
            return agenda
        again = [one.stake for one in self._findings(shown, shared, law, answers[:n_done])]
        _, sizes = divided(again, shared.left, n_line=len(shared.line), report=report, asked=n_label)
        more = added(sizes, first, least=1 if self.ask_private == "always" else FEWEST)
        agenda.add("label", shared.left - n_label - sum(first) - sum(more))
        for place, size in enumerate(more):
            agenda.add("contrast", size, place)
        return agenda

    def _question(self, turn: Turn, shown: PublicView, answers: Transcript) -> Question:
        if turn.kind == "label bins":
            oracle = _bins(self.epsilon, LABEL_BINS)
            return LabelBins(turn.part, oracle, self.label_low, self.label_high)
        if turn.kind == "feature bins":
            return FeatureBins(turn.part, _bins(self.epsilon, BINS), turn.about)
        law = self._law(answers)
        half = self._half(shown.n, law)
        if turn.kind == "label":
            return ResidualQuestion(
                turn.part, self._label_mechanism(), Surface.constant(self._centre(law, half)), half
            )
        shared = self._plan(shown, law)
        contrast = self._choice(shown, shared, law, answers).contrasts[turn.about]
        surface = self._surface(shown, shared, law, answers)
        left = max(law.sd**2 - float(surface(visible(shown)).var()), _LEAST_LEFT * law.sd**2)
        narrow = half * float(np.sqrt(left)) / law.sd
        known = self._findings(shown, shared, law, answers)[: turn.about]
        return ResidualQuestion(
            turn.part,
            _number("optimal_label", self.epsilon),
            surface,
            narrow + farther(contrast) * law.sd,
            contrast,
            tuple(one.effect for one in known),
        )

    def _n_first(self, n: int) -> int:
        return n_first(n, self.epsilon)

    def _label_mechanism(self) -> NumberMechanism:
        """Labels of -1 and 1 have Duchi's mechanism, which is randomised response there."""
        return _number("duchi" if self.is_binary else "optimal_label", self.epsilon)

    def _law(self, answers: Transcript) -> LabelLaw:
        if self.is_binary:
            return LabelLaw.known(0.0, 1.0)
        question = answers[0].question
        assert isinstance(question, LabelBins)
        oracle, reports = question.oracle, answers[0].reports
        ratio = float(oracle.ratio)

        def learn() -> LabelLaw:
            return normal_law(oracle.supports(reports), ratio, self.label_low, self.label_high)

        return self._memory.once(learn, b"law", reports)

    def _centre(self, law: LabelLaw, half: float) -> float:
        """That of the law, or as far from it as keeps the interval within the range: no label lies beyond."""
        if self.is_binary:
            return 0.0
        return min(max(law.mean, self.label_low + half), self.label_high - half)

    def _half(self, n: int, law: LabelLaw) -> float:
        if self.is_binary:
            return 1.0
        whole, left = (self.label_high - self.label_low) / 2, n - self._n_first(n)

        def learn() -> float:
            return half_width(law, self._label_mechanism(), left, whole)

        return self._memory.once(learn, b"half", law.means, law.sds, law.weights)

    def _report(self, shown: PublicView, law: LabelLaw, farther: float = 0.0) -> float:
        """Mean square of a report of a number within this much more than R."""
        mechanism = self._label_mechanism()
        if self.is_binary:
            return mechanism.bound**2
        half = self._half(shown.n, law) + farther
        return (usual_variance(mechanism) + _SIGNAL) * half**2

    def _plan(self, shown: PublicView, law: LabelLaw) -> Plan:
        left = shown.n if self.is_binary else shown.n - self._n_first(shown.n)
        return plan(
            shown.protects,
            left,
            spread=law.sd**2,
            report=self._report(shown, law),
            ask_private=self.ask_private,
        )

    def _choice(self, shown: PublicView, shared: Plan, law: LabelLaw, answers: Transcript) -> Choice:
        return chosen(
            shared,
            {j: shares_of(shown, j, answers) for j in shared.private if shared.shapes},
            shown.d,
            sd=law.sd,
            report=lambda farther: self._report(shown, law, farther),
            must=self.ask_private == "always",
        )

    def _surface(self, shown: PublicView, shared: Plan, law: LabelLaw, answers: Transcript) -> Surface:
        rows, reports = of_label(shown, answers)
        return self._memory.once(
            lambda: self._fitted(rows, shared.line, reports, law, shown.n),
            b"surface",
            rows,
            reports,
            np.array([law.sd, *shared.line]),
        )

    def _fitted(self, rows: Floats, line: tuple[int, ...], reports: Floats, law: LabelLaw, n: int) -> Surface:
        if self.is_binary:
            noise = float(reports.var()) / reports.size
            level = by_precision(*_KNOWN_OF_CLASSES, float(reports.mean()), noise)
        else:
            half = self._half(n, law)
            level = law.mean_by(reports, self._centre(law, half), half, (self.label_low, self.label_high))
        return fitted(rows, line, reports, spread=law.sd**2, seed=self.seed, level=level)

    def _findings(
        self, shown: PublicView, shared: Plan, law: LabelLaw, answers: Transcript
    ) -> tuple[Finding, ...]:
        """What the answers to the contrasts say, each shrunk, and whether it is surely no noise."""
        about = of_contrasts(shown, answers)
        return findings(
            [contrast for contrast, _, _ in about],
            [self._learned(rows, shared.line, reports, law) for _, rows, reports in about],
            [reports.size for _, _, reports in about],
            n_contrasts=len(shared.shapes) * len(shared.private),
            spread=law.sd**2,
            d=shown.d,
        )

    def _learned(self, rows: Floats, line: tuple[int, ...], reports: Floats, law: LabelLaw) -> Learned:
        return self._memory.once(
            lambda: learned(rows, line, reports, spread=law.sd**2, seed=self.seed),
            b"effect",
            rows,
            reports,
            np.array([law.sd, *line]),
        )


@lru_cache(maxsize=64)
def _number(name: str, epsilon: float) -> NumberMechanism:
    return NUMBERS[name].for_budget(epsilon)


@lru_cache(maxsize=64)
def _bins(epsilon: float, k: int) -> SubsetSelection:
    return SubsetSelection.for_values(epsilon, k)
