"""Each validation holder is asked about ONE candidate, and the whole epsilon goes on the answer.

Which one is drawn by public coins (holders stand in a drawn order, and each candidate gets an equal run of it), so nothing is
composed. Noise variance of a candidate's mean of n holders: k v(eps) range^2 / n, where Laplace noise on all k errors has
2 k^2 range^2 / (eps^2 n); v is about 1/4 of that of `optimal_label` on [-1, 1]: a loss in [0, R] is moved there.

`Difference` asks for the loss less the first candidate's, in [-D, D]: what a choice needs, with the first candidate's own
luck gone from it, no question spent on that one, and values near 0, where `optimal_label` is at its best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ldptree.errors import DataError
from ldptree.estimators.tuning.question import Estimates, ValidationQuestion
from ldptree.mechanisms.numbers import NumberMechanism, OptimalLabel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.oracles import Words

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OneModel(ValidationQuestion):
    """The loss of one candidate, as a number of [-1, 1]. Reports are the number mechanism's, [n].

    Attributes:
        mechanism: one of `ldptree.mechanisms.numbers`; unbiased, so each mean is.
    """

    name: ClassVar[str] = "one-model"
    measure: ClassVar[str] = "mean loss"
    first_asked: ClassVar[int] = 0

    mechanism: NumberMechanism

    @classmethod
    def for_budget(cls, epsilon: float, ranges: Sequence[float]) -> Self:
        """With the least noisy number of this budget."""
        return cls(tuple(map(float, ranges)), OptimalLabel.for_budget(epsilon))

    @property
    def epsilon(self) -> float:
        """The number mechanism's: one number is all that is sent."""
        return self.mechanism.epsilon

    @property
    def n_asked(self) -> int:
        """How many candidates holders are asked about."""
        return self.n_candidates - self.first_asked

    @property
    def noise(self) -> float:
        """At a loss in the middle of its range."""
        return self.n_asked * float(self.mechanism.variance(np.zeros(1))[0]) * self._half**2

    @property
    def _half(self) -> float:
        """Half the width of what is asked, in ranges."""
        return 1.0 if self.first_asked else 0.5

    def asked(self, n: int) -> NDArray[np.int64]:
        """Runs of n / n_asked holders."""
        return self.first_asked + np.arange(n, dtype=np.int64) * self.n_asked // max(n, 1)

    def numbers(self, losses: Floats, asked: NDArray[np.int64]) -> Floats:
        """What holders with these losses [n, k] are asked for, float64 [n] in [-1, 1]."""
        losses, each = self.checked(losses, asked), np.array(self.ranges)[asked]
        own = losses[np.arange(asked.size), asked]
        number = (own - losses[:, 0]) / each if self.first_asked else 2.0 * own / each - 1.0
        clipped: Floats = np.clip(number, -1.0, 1.0)
        return clipped

    def randomize(self, losses: Floats, asked: NDArray[np.int64], words: Words) -> NDArray[Any]:
        """The number mechanism's report of the number asked for."""
        return self.mechanism.randomize(self.numbers(losses, asked), words)

    def law(self, losses: Floats, asked: int) -> list[tuple[NDArray[Any], Fraction]]:
        """The number mechanism's."""
        (number,) = self.numbers(np.asarray(losses)[None], np.array([asked]))
        return list(zip(self.mechanism.outputs, self.mechanism.law(float(number)), strict=True))

    def estimate(self, reports: NDArray[Any], asked: NDArray[np.int64]) -> Estimates:
        """The mean of each candidate's reports; the reports themselves say how they spread."""
        asked = np.asarray(asked, dtype=np.int64)
        decoded = self.mechanism.decode(reports)
        if decoded.shape != asked.shape:
            raise DataError(f"{self.name}: {decoded.size} reports of {asked.size} holders")
        value, sd = np.zeros(self.n_candidates), np.zeros(self.n_candidates)
        for j in range(self.first_asked, self.n_candidates):
            mine = decoded[asked == j]
            value[j], sd[j] = self._scaled(j, mine) if mine.size > 1 else (0.0, math.inf)
        return Estimates(value, sd, first_is_known=bool(self.first_asked))

    def _scaled(self, candidate: int, decoded: Floats) -> tuple[float, float]:
        """A candidate's mean and its standard deviation; of few reports that agree by luck, at least the mechanism's own."""
        width, mean = self.ranges[candidate] * self._half, float(decoded.mean())
        own = float(self.mechanism.variance(np.clip([mean], -1.0, 1.0))[0])
        spread = max(float(decoded.var(ddof=1)), own)
        return width * (mean if self.first_asked else mean + 1.0), width * math.sqrt(spread / decoded.size)

    @property
    def thresholds(self) -> dict[str, Any]:
        """The number mechanism's, and its name."""
        return {"number": self.mechanism.name} | self.mechanism.thresholds


@dataclass(frozen=True, eq=False)
class Difference(OneModel):
    """The loss of one candidate less the first one's; ranges[0] is of no matter."""

    name: ClassVar[str] = "difference"
    measure: ClassVar[str] = "mean loss less the first candidate's"
    first_asked: ClassVar[int] = 1

    def about(self, candidate: int) -> str:
        """The question as the ledger tells it."""
        return f"tuning, {self.name}: candidate {candidate} less candidate 0"
