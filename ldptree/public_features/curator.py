"""The curator of public features: one report a holder with the whole epsilon; the holders are split, not epsilon (ours).

What lives here: the order of the questions and what is learned from their answers. What does not: the questions (`questions`),
how many holders each gets (`plan`), how surfaces are fitted (`surface_fit`).

1. The label's bin, a tenth of the holders or more: its normal law, and from it the interval c +- R of later reports. A label
   of two classes is -1 or 1 and needs none.
2. Where private features can pay: their bins, for ranks.
3. The label, by the least noisy mechanism of one number: a surface of the features that most holders show.
4. Where they can pay: the residual from that surface times a contrast of a private feature.

Privacy: a holder is in at most one part, parts depend on public coins and the number of holders alone, and every question on
published answers: the transcript of all rounds is epsilon-semi-feature LDP (HistOfTree, Definition 3.1), with no composition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from ldptree.errors import DataError
from ldptree.mechanisms.numbers import NUMBERS, NumberMechanism
from ldptree.oracles.subset import SubsetSelection
from ldptree.public_features import contrast as contrasts
from ldptree.public_features import label_law
from ldptree.public_features.contrast import Contrast
from ldptree.public_features.label_law import LabelLaw
from ldptree.public_features.model import Effect, PublicFeatureModel
from ldptree.public_features.plan import Plan, n_first, plan
from ldptree.public_features.questions import FeatureBins, LabelBins, ResidualQuestion, check_label_range
from ldptree.public_features.roles import Part
from ldptree.public_features.says import said
from ldptree.public_features.surface import Surface
from ldptree.public_features.surface_fit import fitted
from ldptree.rounds import Answers, Curator, Question, Shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

T = TypeVar("T")

FEWEST_HOLDERS = 2
# a report's mean square is its variance and that of what it is about, relative to R
_SIGNAL = 0.16
# the residual's variance is at least this share of the label's: the surface's own variance is partly noise
_LEAST_LEFT = 0.25


@dataclass(frozen=True, kw_only=True)
class PublicFeatures(Curator[PublicFeatureModel]):
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
    _known: dict[bytes, object] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was learned from published answers, so that it is not learned again for the next question."""

    def __post_init__(self) -> None:
        check_label_range(self.label_low, self.label_high)

    def ask(self, shown: Shown, answers: Sequence[Answers]) -> Question | None:
        """The next question.

        Raises:
            DataError: there are too few holders for every role to have one.
        """
        if shown.n < FEWEST_HOLDERS:
            raise DataError(
                f"n_samples = {shown.n}: nobody is left for a role; at least {FEWEST_HOLDERS} holders are needed, and "
                "hundreds to learn anything"
            )
        if not self.is_binary and not answers:
            oracle = _bins(self.epsilon, label_law.BINS)
            part = Part(self.seed, 0, self._n_first(shown.n))
            return LabelBins(part, oracle, self.label_low, self.label_high)
        law = self._law(answers)
        wanted = list(self._after_first(shown, law, answers))
        done = len(answers) - (not self.is_binary)
        return wanted[done] if done < len(wanted) else None

    def fit(self, shown: Shown, answers: Sequence[Answers]) -> PublicFeatureModel:
        """The surface of the label's answers, and an effect for each contrast asked about."""
        law = self._law(answers)
        shared = self._plan(shown, law)
        surface = self._surface(shown, shared, law, answers)
        effects = tuple(
            effect
            for answer in answers
            if isinstance(answer.question, ResidualQuestion)
            if (effect := self._effect(shown, shared, law, answer))
        )
        rows = _visible(shown)
        return PublicFeatureModel(
            columns=self.columns,
            low=self.low,
            high=self.high,
            private=tuple(np.flatnonzero(shown.protects.any(axis=0)).tolist()),
            label_low=self.label_low,
            label_high=self.label_high,
            is_binary=self.is_binary,
            surface=surface,
            effects=effects,
            epsilon=self.epsilon,
            n_holders=shown.n,
            says=said(
                self.columns, shown.protects, shared, law, effects, surface(rows), rows, epsilon=self.epsilon
            ),
        )

    def refit(
        self,
        shown: Shown,
        answers: Sequence[Answers],
        released: PublicFeatureModel,
        rng: np.random.Generator,
    ) -> PublicFeatureModel:
        """Every number that was reported is turned over at the released model's answer, or not, by a coin (wild bootstrap, Liu,
        Annals of Statistics 1988): nobody counts twice, so that trees keep questions and values apart. What round 0 and bins
        told is in the questions and stays, and so does which effects vary.
        """
        law = self._law(answers)
        line = self._plan(shown, law).line
        effects = iter(released.effects)
        surface, made = released.surface, list[Effect]()
        for answer in answers:
            question = answer.question
            if not isinstance(question, ResidualQuestion):
                continue
            rows, reports = _visible(shown)[answer.holders], question.decode(answer.reports)
            if question.contrast is None:
                reports = _turned(self._centre(law) + reports, released.surface(rows), rng)
                surface = fitted(rows, line, reports, spread=law.sd**2, seed=self.seed)
                continue
            effect = next(effects)
            turned = _turned(reports / contrasts.SQUARE, effect.coefficient(rows), rng)
            varies = bool(effect.coefficient.features)
            coefficient = self._coefficient(rows, line if varies else (), turned, law)
            made.append(Effect(question.contrast, coefficient))
        return replace(released, surface=surface, effects=tuple(made))

    def _after_first(self, shown: Shown, law: LabelLaw, answers: Sequence[Answers]) -> Iterator[Question]:
        """Every question after round 0; those of contrasts once the label's is answered."""
        shared = self._plan(shown, law)
        at = 0 if self.is_binary else self._n_first(shown.n)
        oracle = _bins(self.epsilon, contrasts.BINS)
        for feature in shared.binned:
            yield FeatureBins(Part(self.seed, at, at + shared.n_bins), oracle, feature)
            at += shared.n_bins
        mechanism, half = self._label_mechanism(), self._half(shown.n, law)
        centre = Surface.constant(self._centre(law))
        yield ResidualQuestion(Part(self.seed, at, at + shared.n_label), mechanism, centre, half)
        at += shared.n_label
        if not shared.contrasts or not any(_is_label(a.question) for a in answers):
            return
        surface = self._surface(shown, shared, law, answers)
        left = max(law.sd**2 - float(surface(_visible(shown)).var()), _LEAST_LEFT * law.sd**2)
        narrow = half * float(np.sqrt(left)) / law.sd
        number = _number("optimal_label", self.epsilon)
        for (feature, shape), size in zip(shared.contrasts, shared.n_contrast, strict=True):
            contrast = Contrast(feature, shape, self._ranks(shown, feature, answers))
            yield ResidualQuestion(Part(self.seed, at, at + size), number, surface, narrow, contrast)
            at += size

    def _n_first(self, n: int) -> int:
        return n_first(n, self.epsilon)

    def _label_mechanism(self) -> NumberMechanism:
        """Labels of -1 and 1 have Duchi's mechanism, which is randomised response there."""
        return _number("duchi" if self.is_binary else "optimal_label", self.epsilon)

    def _law(self, answers: Sequence[Answers]) -> LabelLaw:
        if self.is_binary:
            return LabelLaw.known(0.0, 1.0)
        question = answers[0].question
        assert isinstance(question, LabelBins)
        oracle, reports = question.oracle, answers[0].reports
        ratio = float(oracle.ratio)

        def learn() -> LabelLaw:
            return label_law.normal_law(oracle.supports(reports), ratio, self.label_low, self.label_high)

        return self._once(learn, b"law", reports)

    def _centre(self, law: LabelLaw) -> float:
        return 0.0 if self.is_binary else law.mean

    def _half(self, n: int, law: LabelLaw) -> float:
        if self.is_binary:
            return 1.0
        whole, left = (self.label_high - self.label_low) / 2, n - self._n_first(n)

        def learn() -> float:
            return label_law.half_width(law, self._label_mechanism(), left, whole)

        return self._once(learn, b"half", law.means, law.sds, law.weights)

    def _plan(self, shown: Shown, law: LabelLaw) -> Plan:
        left = shown.n if self.is_binary else shown.n - self._n_first(shown.n)
        mechanism = self._label_mechanism()
        if self.is_binary:
            report = mechanism.bound**2
        else:
            report = (label_law.usual_variance(mechanism) + _SIGNAL) * self._half(shown.n, law) ** 2
        return plan(shown.protects, left, spread=law.sd**2, report=report, ask_private=self.ask_private)

    def _surface(self, shown: Shown, shared: Plan, law: LabelLaw, answers: Sequence[Answers]) -> Surface:
        answer = next(a for a in answers if _is_label(a.question))
        assert isinstance(answer.question, ResidualQuestion)
        reports = self._centre(law) + answer.question.decode(answer.reports)
        rows = _visible(shown)[answer.holders]

        def learn() -> Surface:
            return fitted(rows, shared.line, reports, spread=law.sd**2, seed=self.seed)

        return self._once(learn, b"surface", rows, reports, np.array([law.sd, *shared.line]))

    def _once(self, learn: Callable[[], T], what: bytes, *arrays: NDArray[np.generic]) -> T:
        sha = hashlib.sha256(what)
        for array in arrays:
            sha.update(np.ascontiguousarray(array).data)
        key = sha.digest()
        if key not in self._known:
            self._known[key] = learn()
        return cast("T", self._known[key])

    def _ranks(self, shown: Shown, feature: int, answers: Sequence[Answers]) -> tuple[float, ...]:
        """Of a private feature: from those who show it, where they are many, otherwise from reports of bins."""
        for answer in answers:
            question = answer.question
            if isinstance(question, FeatureBins) and question.feature == feature:
                oracle = question.oracle
                shares = oracle.unbias(oracle.aggregate(answer.reports), len(answer.reports))
                return contrasts.ranks_from_shares(shares)
        values = shown.values[~shown.protects[:, feature], feature]
        return contrasts.ranks_from_shares(
            np.bincount(contrasts.bin_of(values), minlength=contrasts.BINS).astype(np.float64)
        )

    def _effect(self, shown: Shown, shared: Plan, law: LabelLaw, answer: Answers) -> Effect | None:
        """What a contrast's answers say, shrunk; None for the label's answers."""
        question = answer.question
        assert isinstance(question, ResidualQuestion)
        if question.contrast is None:
            return None
        reports = question.decode(answer.reports) / contrasts.SQUARE
        rows = _visible(shown)[answer.holders]
        varies = shared.line and _varies(rows, shared.line, reports, law.sd**2, self.seed)
        return Effect(question.contrast, self._coefficient(rows, shared.line if varies else (), reports, law))

    def _coefficient(self, rows: Floats, line: tuple[int, ...], reports: Floats, law: LabelLaw) -> Surface:
        """Of a contrast: the shrunken mean of its reports, and how they vary with these features."""
        mean = float(reports.mean())
        noise = float(reports.var(ddof=1)) / reports.size if reports.size > 1 else np.inf
        shrunk = mean * max(0.0, 1.0 - noise / mean**2) if mean else 0.0
        if not line:
            return Surface.constant(shrunk)
        varying = fitted(rows, line, reports, spread=law.sd**2, seed=self.seed)
        return Surface(varying.features, varying.stand_ins, shrunk, varying.slopes, varying.trees)


@lru_cache(maxsize=64)
def _number(name: str, epsilon: float) -> NumberMechanism:
    return NUMBERS[name].for_budget(epsilon)


@lru_cache(maxsize=64)
def _bins(epsilon: float, k: int) -> SubsetSelection:
    return SubsetSelection.for_budget(epsilon, k)


def _is_label(question: Question) -> bool:
    return isinstance(question, ResidualQuestion) and question.contrast is None


def _visible(shown: Shown) -> Floats:
    """What is shown, NaN where it is protected."""
    return np.where(shown.protects, np.nan, shown.values)


def _turned(reports: Floats, expected: Floats, rng: np.random.Generator) -> Floats:
    """Each report as far from what is expected of it as it was, on a side that a coin chooses."""
    return np.asarray(expected + rng.choice((-1.0, 1.0), reports.size) * (reports - expected))


def _varies(rows: Floats, line: tuple[int, ...], reports: Floats, spread: float, seed: int) -> bool:
    """Whether a coefficient that varies with public features predicts held-out reports better by over one standard error."""
    is_even = np.arange(reports.size) % 2 == 0
    gains = []
    for fit_on in (is_even, ~is_even):
        if fit_on.sum() < 2 or (~fit_on).sum() < 2:
            return False
        found = fitted(rows[fit_on], line, reports[fit_on], spread=spread, seed=seed)
        held, constant = reports[~fit_on], reports[fit_on].mean()
        gains.append((held - constant) ** 2 - (held - found(rows[~fit_on])) ** 2)
    gain = np.concatenate(gains)
    return bool(gain.mean() > gain.std() / np.sqrt(gain.size))
