"""Each validation holder names the candidate with the least loss on their row: one value of k, by a frequency oracle.

The whole epsilon goes on one categorical value, and no range is needed. What it counts is for how many a candidate is the
best, which is not how large its errors are: a candidate that is slightly worse for everybody but far better for a few looks
bad here. Ties are broken by the holder's coins (that is no part of the privacy), which with 0/1 loss is most answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ldptree.estimators.tuning.question import EVERY, Estimates, ValidationQuestion
from ldptree.oracles import ORACLES, Oracle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.oracles import Words

    Floats = NDArray[np.float64]

_CHOICE = ("grr", "ss", "oue")
"""In the order of preference where two are equally good."""


@dataclass(frozen=True, eq=False)
class BestOf(ValidationQuestion):
    """Reports are the oracle's; ranges are of no matter.

    Attributes:
        oracle: over k values.
    """

    name: ClassVar[str] = "best-of"
    measure: ClassVar[str] = "share of holders for whom another candidate is best"
    is_about_losses: ClassVar[bool] = False

    oracle: Oracle

    @classmethod
    def for_budget(cls, epsilon: float, ranges: Sequence[float]) -> Self:
        """With the oracle of the least noise if all candidates are best equally often."""
        k = len(ranges)
        oracles = [ORACLES[name].for_budget(epsilon, max(k, 2)) for name in _CHOICE]
        return cls(tuple(map(float, ranges)), min(oracles, key=Oracle.mean_variance))

    @property
    def epsilon(self) -> float:
        """The oracle's."""
        return self.oracle.epsilon

    @property
    def noise(self) -> float:
        """Of a candidate's share; shares are in no range of losses."""
        return self.oracle.mean_variance()

    def asked(self, n: int) -> NDArray[np.int64]:
        """Everybody about all."""
        return np.full(n, EVERY, dtype=np.int64)

    def best(self, losses: Floats, asked: NDArray[np.int64], words: Words) -> NDArray[np.int64]:
        """Of losses [n, k] the candidate with the least, one of them at random where there are several: int64 [n]."""
        losses = self.checked(losses, asked)
        keys = words.block(losses.size).reshape(losses.shape) >> np.uint64(1)
        is_best = losses == losses.min(axis=1, keepdims=True)
        best: NDArray[np.int64] = np.where(is_best, keys.astype(np.int64), -1).argmax(axis=1)
        return best

    def randomize(self, losses: Floats, asked: NDArray[np.int64], words: Words) -> NDArray[Any]:
        """The oracle's report of the best candidate."""
        return self.oracle.randomize(self.best(losses, asked, words), words)

    def law(self, losses: Floats, asked: int) -> list[tuple[NDArray[Any], Fraction]]:
        """The oracle's, mixed evenly over the best candidates."""
        losses = self.checked(np.asarray(losses)[None], np.array([asked]))[0]
        ties = np.flatnonzero(losses == losses.min())
        laws = [self.oracle.law(int(j)) for j in ties]
        packed = sorted(set().union(*laws))
        reports = self.oracle.unpack(np.stack([np.frombuffer(output, np.uint8) for output in packed]))
        chances = [sum((one.get(output, Fraction(0)) for one in laws), Fraction(0)) for output in packed]
        return [(report, chance / len(laws)) for report, chance in zip(reports, chances, strict=True)]

    def estimate(self, reports: NDArray[Any], asked: NDArray[np.int64]) -> Estimates:
        """One less the share of holders for whom each candidate is the best."""
        n = max(len(asked), 1)
        counts = self.oracle.unbias(self.oracle.aggregate(reports), len(asked))
        likely = np.clip(counts / n, 0.0, 1.0)
        likely /= max(likely.sum(), 1e-12)
        noise = self.oracle.linear_variance(np.eye(self.n_candidates), likely * n, n)
        variance = noise / n**2 + likely * (1 - likely) / n
        return Estimates(1.0 - counts / n, np.sqrt(variance))

    @property
    def thresholds(self) -> dict[str, Any]:
        """The oracle's, and its name."""
        return {"oracle": self.oracle.name} | self.oracle.thresholds
