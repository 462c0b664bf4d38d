"""The four questions with public features; every holder is put one of them at most, and it takes the whole epsilon.

Each says what is asked, what is sent back, and the exact law of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ldptree.errors import ConfigError, ProtocolMismatch
from ldptree.families.public_features.allocation import Part
from ldptree.families.public_features.label import LABEL_BINS, label_bin_of
from ldptree.limits import label_ends
from ldptree.mechanisms.numbers import NUMBER_JSON, NumberMechanism
from ldptree.mechanisms.oracles.subset import SubsetSelection
from ldptree.models.public_features import Effect
from ldptree.models.surface import BINS, Contrast, Surface, bin_of
from ldptree.protocol.question import PlayedAnswer, Question, QuestionDescription
from ldptree.serialize import Codec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.coins import Words

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Law = list[tuple[NDArray[Any], Fraction]]


BINS_JSON = {
    "codec": Codec(
        write=lambda oracle: oracle.thresholds,
        read=lambda data: SubsetSelection.from_thresholds(BINS - 1, 1, data),
    )
}
"""The integers of an oracle of bins in the text of a question. Labels and features have the same number of bins."""


@dataclass(frozen=True)
class BinQuestion(Question):
    """The bin of a number, reported by subset selection as a set of bins, packed in two bytes.

    Attributes:
        part: who is asked.
        oracle: how the bin is sent.
    """

    part: Part
    oracle: SubsetSelection = field(metadata=BINS_JSON)

    @property
    def epsilon(self) -> float:
        """Of the oracle's integers."""
        return self.oracle.epsilon

    def respondents(self, n: int) -> NDArray[np.int64]:
        """The part's holders."""
        return self.part.select(n)

    def is_valid(self, reports: NDArray[Any]) -> Mask:
        """As the oracle says."""
        return self.oracle.is_valid(reports)

    def law(self, row: Floats, label: float, protects: Mask) -> Law:
        """The oracle's."""
        law = self.oracle.law(int(self._bins(row[None, :], np.array([label]))[0]))
        return [(np.frombuffer(key, dtype=np.uint8), chance) for key, chance in law.items()]

    def randomize(self, rows: Floats, labels: Floats, protects: Mask, words: Words) -> NDArray[Any]:
        """Sets of bins, uint8 [m, 2]."""
        return self.oracle.randomize(self._bins(rows, labels), words)

    def play(self, row: Floats, label: float, protects: Mask, words: Words) -> PlayedAnswer:
        """The bin, and the set of bins."""
        bins = self._bins(row[None, :], np.array([label]))
        named = self.oracle.aggregate(self.oracle.randomize(bins, words)) > 0
        return PlayedAnswer(true=float(bins[0]), values=np.arange(self.oracle.k), named=named)

    @property
    def _sizes(self) -> dict[str, float]:
        """Bins, how many of them a report names, and how far one moves the count of a bin."""
        return {"values": self.oracle.k, "size": self.oracle.size, "force": 1.0 / self.oracle.gap}

    def _bins(self, rows: Floats, labels: Floats) -> NDArray[np.int64]:
        raise NotImplementedError


@dataclass(frozen=True)
class LabelBins(BinQuestion):
    """The question of round 0, for the bin of the label in its range.

    Attributes:
        low, high: the range.

    Raises:
        ConfigError: not low < high, both finite, or the oracle is for another number of bins.
    """

    kind: ClassVar[str] = "public_features_label_bins"

    low: float
    high: float

    def __post_init__(self) -> None:
        label_ends((self.low, self.high))
        _check_bins(self.oracle, LABEL_BINS)

    @property
    def about(self) -> str:
        """In words."""
        return f"the label's bin of {self.oracle.k}"

    def describe(self) -> QuestionDescription:
        """The label's bin, of how many."""
        return QuestionDescription(
            about="label bin", mechanism=self.oracle.name, epsilon=self.epsilon, figures=self._sizes
        )

    def _bins(self, rows: Floats, labels: Floats) -> NDArray[np.int64]:
        return label_bin_of(labels, self.low, self.high)


@dataclass(frozen=True)
class FeatureBins(BinQuestion):
    """The bin of one private feature in [0, 1].

    Attributes:
        feature: its column.

    Raises:
        ConfigError: a negative column, or the oracle is for another number of bins.
    """

    kind: ClassVar[str] = "public_features_feature_bins"

    feature: int

    def __post_init__(self) -> None:
        _check_bins(self.oracle, BINS)
        if type(self.feature) is not int or self.feature < 0:
            raise ConfigError(f"feature bins: column {self.feature!r}")

    @property
    def about(self) -> str:
        """In words."""
        return f"the bin of column {self.feature} of {self.oracle.k}"

    def describe(self) -> QuestionDescription:
        """The feature's bin, of how many."""
        return QuestionDescription(
            about="feature bin",
            mechanism=self.oracle.name,
            epsilon=self.epsilon,
            figures=self._sizes,
            feature=self.feature,
        )

    def _bins(self, rows: Floats, labels: Floats) -> NDArray[np.int64]:
        return bin_of(rows[:, self.feature])


@dataclass(frozen=True, eq=False)
class ResidualQuestion(Question):
    """The label less its published part, clipped to [-half, half], times any contrast, reported as one number.

    Attributes:
        part: who is asked.
        mechanism: how the number is sent.
        surface: what is taken off the label.
        half: R, in the label's unit.
        contrast: what it is multiplied by; None: nothing.
        effects: of private features, from earlier answers: taken off the label as well, as each holder knows its own values.

    Raises:
        ConfigError: half is not positive and finite.
    """

    kind: ClassVar[str] = "public_features_residual"

    part: Part
    mechanism: NumberMechanism = field(metadata=NUMBER_JSON)
    surface: Surface
    half: float
    contrast: Contrast | None = None
    effects: tuple[Effect, ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.half) and self.half > 0):
            raise ConfigError(f"residual question: half width {self.half!r}; it must be positive and finite")

    @property
    def epsilon(self) -> float:
        """Of the mechanism's integers."""
        return self.mechanism.epsilon

    @property
    def about(self) -> str:
        """In words."""
        if self.contrast is None:
            return f"the label by {self.mechanism.name}"
        return f"the label's residual times the {self.contrast.shape} of column {self.contrast.feature}"

    def describe(self) -> QuestionDescription:
        """The label around what is published of it, or its residual times a contrast."""
        if self.contrast is None:
            middle = self.surface.intercept
            return QuestionDescription(
                about="label",
                mechanism=self.mechanism.name,
                epsilon=self.epsilon,
                figures={
                    "low": middle - self.half,
                    "high": middle + self.half,
                    "force": self.mechanism.bound,
                },
            )
        return QuestionDescription(
            about="residual",
            mechanism=self.mechanism.name,
            epsilon=self.epsilon,
            figures={"low": -self.half, "high": self.half, "force": self.mechanism.bound},
            feature=self.contrast.feature,
            shape=self.contrast.shape,
        )

    def respondents(self, n: int) -> NDArray[np.int64]:
        """The part's holders."""
        return self.part.select(n)

    def randomize(self, rows: Floats, labels: Floats, protects: Mask, words: Words) -> NDArray[Any]:
        """Reports of the number mechanism, [m]."""
        return self.mechanism.randomize(self._numbers(rows, labels), words)

    def play(self, row: Floats, label: float, protects: Mask, words: Words) -> PlayedAnswer:
        """The residual times the contrast; where there is none, what is published of the label is added again."""
        numbers = self._numbers(row[None, :], np.array([label]))
        published = 0.0 if self.contrast is not None else float(self.surface(row[None, :])[0])
        sent = self.decode(self.mechanism.randomize(numbers, words))
        return PlayedAnswer(true=published + self.half * float(numbers[0]), sent=published + float(sent[0]))

    def is_valid(self, reports: NDArray[Any]) -> Mask:
        """As the mechanism says."""
        return self.mechanism.is_valid(reports)

    def decode(self, reports: NDArray[Any]) -> Floats:
        """Unbiased numbers, float64 [m], in the label's unit; DataError for a report nobody honest sends."""
        return self.half * self.mechanism.decode(reports)

    def law(self, row: Floats, label: float, protects: Mask) -> Law:
        """The mechanism's, where its outputs are finite."""
        number = float(self._numbers(row[None, :], np.array([label]))[0])
        pairs = zip(self.mechanism.outputs, self.mechanism.law(number), strict=True)
        return [(report, chance) for report, chance in pairs if chance]

    def _numbers(self, rows: Floats, labels: Floats) -> Floats:
        left = labels - self.surface(rows)
        for effect in self.effects:
            left = left - effect(rows)
        numbers: Floats = np.clip(left / self.half, -1.0, 1.0)
        return numbers if self.contrast is None else numbers * self.contrast(rows)

    def to_json(self) -> dict[str, Any]:
        """Plain values; effects are left out where there are none."""
        plain = super().to_json()
        return plain if self.effects else {name: value for name, value in plain.items() if name != "effects"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The question that `to_json` wrote. Raises ProtocolMismatch."""
        if isinstance(data, Mapping) and data.get("effects", [None]) == []:
            raise ProtocolMismatch(f"question {cls.kind}: effects are left out where there are none")
        return super().from_json({"effects": [], **data} if isinstance(data, Mapping) else data)


QUESTIONS: dict[str, type[Question]] = {q.kind: q for q in (LabelBins, FeatureBins, ResidualQuestion)}


def _check_bins(oracle: SubsetSelection, bins: int) -> None:
    if oracle.k != bins:
        raise ConfigError(f"question: an oracle of {oracle.k} values for {bins} bins")
