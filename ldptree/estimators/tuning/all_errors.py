"""Every validation holder sends the errors of all k candidates with Laplace noise (LPDT D.2), here on the integers.

The paper adds M^2 sqrt(k) / eps of Laplace noise to each error "by advanced composition" and calls that eps-private. What it
really spends: each number alone spends eps / sqrt(k) (if M^2 is how far two errors can lie apart; they lie up to (2 M)^2
apart, which makes it four times as much), all of them sqrt(k) eps; and by advanced composition (Dwork, Rothblum and Vadhan
2010) (eps', delta) with eps' = sqrt(2 ln(1/delta)) eps + sqrt(k) eps (e^(eps / sqrt(k)) - 1), which is above eps for every
delta below .6, and no pure eps at all. For pure eps the noise must be k range / eps: `for_budget`.
`AllErrors.as_printed` has the paper's noise, and says by `epsilon` what it spends.

An error is clipped to its range and rounded at random to one of 65 levels (two where only 0 and 1 occur), so its mean is
exact; noise is drawn by `oracles.integer_laplace`, exactly. Noise variance of a candidate's mean of n holders:
2 k^2 range^2 / (eps^2 n).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ldptree.errors import ConfigError, DataError
from ldptree.estimators.tuning.question import EVERY, Estimates, ValidationQuestion
from ldptree.oracles import integer_laplace
from ldptree.oracles.coins import checked_epsilon, rounded_up
from ldptree.oracles.integer_laplace import SMALLEST_RATE, UNIT
from ldptree.protocol.stochastic_rounding import round_at_random

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.oracles import Words

    Floats = NDArray[np.float64]

STEPS = 64
"""Levels of an error, less one."""


def advanced_composition(epsilon: float, k: int, delta: float) -> float:
    """eps' of k reports of epsilon each together, at delta: Dwork, Rothblum and Vadhan 2010, Theorem III.3."""
    return math.sqrt(2 * k * math.log(1 / delta)) * epsilon + k * epsilon * math.expm1(epsilon)


@dataclass(frozen=True, eq=False)
class AllErrors(ValidationQuestion):
    """Reports are int32 [n, k]: each error in steps of range / 64, and noise of rate / 2^32 a step.

    Attributes:
        rate: r 2^32; two holders' reports differ in likelihood by at most e^(r 64 k).

    Raises:
        ConfigError: the rate is out of range.
    """

    name: ClassVar[str] = "laplace"
    measure: ClassVar[str] = "mean loss"

    rate: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not SMALLEST_RATE <= self.rate <= 2**40:
            raise ConfigError(
                f"{self.name}: the rate must be in {SMALLEST_RATE} .. 2^40, found {self.rate} (epsilon too small or large?)"
            )

    @classmethod
    def for_budget(cls, epsilon: float, ranges: Sequence[float]) -> Self:
        """epsilon / k for each error: pure epsilon, by basic composition."""
        return cls(
            tuple(map(float, ranges)), int(Fraction(checked_epsilon(epsilon)) * UNIT / (STEPS * len(ranges)))
        )

    @classmethod
    def as_printed(cls, epsilon: float, ranges: Sequence[float]) -> Self:
        """The paper's noise, range sqrt(k) / epsilon, which spends sqrt(k) epsilon: to compare with only."""
        return cls.for_budget(checked_epsilon(epsilon) * math.sqrt(len(ranges)), ranges)

    @property
    def epsilon(self) -> float:
        """64 k r, exact or rounded up."""
        return rounded_up(Fraction(self.n_candidates * STEPS * self.rate, UNIT))

    @property
    def noise(self) -> float:
        """Of one error."""
        return integer_laplace.variance(self.rate) / STEPS**2

    @property
    def bound(self) -> int:
        """Noise is cut off here: one in 2^64 lies beyond."""
        return integer_laplace.furthest(self.rate)

    def asked(self, n: int) -> NDArray[np.int64]:
        """Everybody about all."""
        return np.full(n, EVERY, dtype=np.int64)

    def randomize(self, losses: Floats, asked: NDArray[np.int64], words: Words) -> NDArray[np.int32]:
        """Each error rounded at random, and noise."""
        shares = np.clip(self.checked(losses, asked) / np.array(self.ranges), 0.0, 1.0)
        levels = round_at_random(shares.ravel(), 0.0, 1.0, STEPS + 1, words)
        noisy = levels + integer_laplace.draw(self.rate, levels.size, words)
        kept: NDArray[np.int32] = np.clip(noisy, -self.bound, self.bound + STEPS).astype(np.int32)
        return kept.reshape(shares.shape)

    def law(self, losses: Floats, asked: int) -> list[tuple[NDArray[Any], Fraction]]:
        """Too many to list; P(x | level) ~ e^(-r |x - level|) for each error."""
        raise NotImplementedError(f"{self.name}: its reports are too many to list")

    def estimate(self, reports: NDArray[Any], asked: NDArray[np.int64]) -> Estimates:
        """Means; the reports themselves say how they spread."""
        reports = np.asarray(reports)
        if reports.dtype != np.int32 or reports.shape != (len(asked), self.n_candidates) or len(asked) < 2:
            raise DataError(
                f"{self.name}: reports are int32 [n, {self.n_candidates}] of at least 2 holders, "
                f"found {reports.dtype} of shape {reports.shape}"
            )
        if reports.min() < -self.bound or reports.max() > self.bound + STEPS:
            raise DataError(f"{self.name}: a number is out of bounds; it was made for another question")
        step = np.array(self.ranges) / STEPS
        sd = reports.std(axis=0, ddof=1) / math.sqrt(len(reports))
        return Estimates(step * reports.mean(axis=0), step * sd)

    @property
    def thresholds(self) -> dict[str, Any]:
        """The rate of the noise, times 2^32."""
        return {"rate": self.rate}
