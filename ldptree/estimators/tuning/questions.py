"""What a holder who never trains is asked about k candidate models: one privatised report of their errors.

A holder's losses are private; models, ranges, and who is asked what are public. So the guarantee is that of the report.
`QUESTIONS` is the registry; how models err is in `losses`, which one is chosen in `choice`.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ldptree.coins import (
    RATE_UNIT,
    SMALLEST_RATE,
    checked_epsilon,
    draw_laplace,
    furthest_laplace,
    laplace_variance,
    rounded_up,
)
from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms.numbers import NumberMechanism, OptimalLabel
from ldptree.protocol.stochastic_rounding import round_at_random

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.coins import Words

    Floats = NDArray[np.float64]

EVERY = -1
"""Stands for a candidate where a holder's one report covers all of them."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates of k candidates from reports; lower is better.

    Attributes:
        value: float64 [k], in the question's `measure`.
        sd: float64 [k], standard deviation of each: the mechanism's noise and the holders' spread.
        first_is_known: the first candidate's value is exact and the others are relative to it.
    """

    value: Floats
    sd: Floats
    first_is_known: bool = False

    def sd_of_excess(self, candidate: int) -> float:
        """Standard deviation of how much worse a candidate is than the first (values taken as independent)."""
        mine = float(self.sd[candidate])
        return mine if self.first_is_known else float(np.hypot(mine, self.sd[0]))


@dataclass(frozen=True, eq=False)
class ValidationQuestion(ABC):
    """A question to validation holders; a frozen value, defined by integers and public ranges.

    Attributes:
        ranges: of each candidate's loss, or of the difference of losses; losses are clipped to it.

    Raises:
        ConfigError: fewer than two candidates, or a range that is not positive and finite.
    """

    name: ClassVar[str]
    measure: ClassVar[str]
    """What `Estimates.value` is, in words."""

    ranges: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.ranges) < 2:
            raise ConfigError(f"{self.name}: {len(self.ranges)} candidates; there must be at least 2")
        if not all(0 < value < np.inf for value in self.ranges):
            raise ConfigError(f"{self.name}: ranges of losses must be positive and finite")

    @classmethod
    @abstractmethod
    def for_budget(cls, epsilon: float, ranges: Sequence[float]) -> Self:
        """The question whose report spends at most epsilon.

        Raises:
            ConfigError: epsilon is not positive and finite, or too small for a report to carry information.
        """

    @property
    def n_candidates(self) -> int:
        """k."""
        return len(self.ranges)

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """What one report spends: recomputed from the integers in use, rounded up."""

    @property
    @abstractmethod
    def noise(self) -> float:
        """Noise variance of one candidate's estimate times the number of holders, in squared ranges.

        From n holders the mechanism leaves a variance of about noise x range^2 / n.
        """

    @abstractmethod
    def assign(self, n: int) -> NDArray[np.int64]:
        """The candidate that each of n holders reports on, int64 [n], not decreasing; `EVERY` for all.

        Holders stand in an order drawn by public coins.
        """

    @abstractmethod
    def randomize(self, losses: Floats, assigned: NDArray[np.int64], words: Words) -> NDArray[Any]:
        """One report a holder: the holders' side.

        Args:
            losses: float64 [n, k], the loss of each candidate on the holder's own row.
            assigned: int64 [n], as `assign` gives it.
            words: the coins.

        Raises:
            DataError: shapes do not fit, or a loss is not a number.
        """

    @abstractmethod
    def law(self, losses: Floats, candidate: int) -> list[tuple[NDArray[Any], Fraction]]:
        """Every report of one holder with losses [k], and its exact chance.

        Raises:
            NotImplementedError: there are too many reports to list.
        """

    @abstractmethod
    def estimate(self, reports: NDArray[Any], assigned: NDArray[np.int64]) -> Estimates:
        """Estimate the candidates from these reports: the curator's side.

        Raises:
            DataError: a report is of another shape, or no honest holder can have sent it.
        """

    @property
    @abstractmethod
    def thresholds(self) -> dict[str, Any]:
        """The integers that define the report, in plain values."""

    def to_json(self) -> str:
        """What a holder needs besides the candidate models: canonical JSON."""
        plain = {"question": self.name, "ranges": list(self.ranges), "thresholds": self.thresholds}
        return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of `to_json`."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def about(self, candidate: int) -> str:
        """How the ledger describes the question."""
        whom = f"all {self.n_candidates} candidates" if candidate == EVERY else f"candidate {candidate}"
        return f"tuning, {self.name}: {whom}"

    def checked_losses(self, losses: Floats, assigned: NDArray[np.int64]) -> Floats:
        """The losses as float64 [n, k]. Raises DataError for another shape or a missing loss."""
        losses = np.asarray(losses, dtype=np.float64)
        if losses.shape != (np.size(assigned), self.n_candidates) or np.isnan(losses).any():
            raise DataError(
                f"{self.name}: losses of shape {losses.shape}, expected {(np.size(assigned), self.n_candidates)}, none missing"
            )
        return losses


@dataclass(frozen=True, eq=False)
class OneModel(ValidationQuestion):
    """Each validation holder reports the loss of one candidate, moved to [-1, 1], with the whole epsilon.

    Which candidate is drawn by public coins (holders stand in a drawn order, and each candidate gets an equal run of it), so
    nothing is composed. Noise variance of a candidate's mean of n holders: k v(eps) range^2 / n, where Laplace noise on all k
    errors has 2 k^2 range^2 / (eps^2 n); v is about 1/4 of that of `optimal_label` on [-1, 1].

    Attributes:
        mechanism: one of `ldptree.mechanisms.numbers`; it is unbiased, so each mean is. Reports are its own, [n].
    """

    name: ClassVar[str] = "one-model"
    measure: ClassVar[str] = "mean loss"
    first_assigned: ClassVar[int] = 0

    mechanism: NumberMechanism

    @classmethod
    def for_budget(cls, epsilon: float, ranges: Sequence[float]) -> Self:
        """The question with the least noisy mechanism for one number."""
        return cls(tuple(map(float, ranges)), OptimalLabel.for_budget(epsilon))

    @property
    def epsilon(self) -> float:
        """The number mechanism's: a report is one number."""
        return self.mechanism.epsilon

    @property
    def n_assigned(self) -> int:
        """How many candidates holders report on."""
        return self.n_candidates - self.first_assigned

    @property
    def noise(self) -> float:
        """At a loss in the middle of its range."""
        return self.n_assigned * float(self.mechanism.variance(np.zeros(1))[0]) * self._half**2

    @property
    def _half(self) -> float:
        """Half the width of the numbers to report, in ranges."""
        return 1.0 if self.first_assigned else 0.5

    def assign(self, n: int) -> NDArray[np.int64]:
        """Equal runs of holders, one a candidate."""
        return self.first_assigned + np.arange(n, dtype=np.int64) * self.n_assigned // max(n, 1)

    def numbers(self, losses: Floats, assigned: NDArray[np.int64]) -> Floats:
        """The number that each holder reports, float64 [n] in [-1, 1], from losses [n, k]."""
        losses, each = self.checked_losses(losses, assigned), np.array(self.ranges)[assigned]
        own = losses[np.arange(assigned.size), assigned]
        number = (own - losses[:, 0]) / each if self.first_assigned else 2.0 * own / each - 1.0
        clipped: Floats = np.clip(number, -1.0, 1.0)
        return clipped

    def randomize(self, losses: Floats, assigned: NDArray[np.int64], words: Words) -> NDArray[Any]:
        """The number mechanism's reports."""
        return self.mechanism.randomize(self.numbers(losses, assigned), words)

    def law(self, losses: Floats, candidate: int) -> list[tuple[NDArray[Any], Fraction]]:
        """The number mechanism's."""
        (number,) = self.numbers(np.asarray(losses)[None], np.array([candidate]))
        return list(zip(self.mechanism.outputs, self.mechanism.law(float(number)), strict=True))

    def estimate(self, reports: NDArray[Any], assigned: NDArray[np.int64]) -> Estimates:
        """Mean of each candidate's reports; the standard deviation is that of the reports."""
        assigned = np.asarray(assigned, dtype=np.int64)
        decoded = self.mechanism.decode(reports)
        if decoded.shape != assigned.shape:
            raise DataError(f"{self.name}: {decoded.size} reports of {assigned.size} holders")
        value, sd = np.zeros(self.n_candidates), np.zeros(self.n_candidates)
        for j in range(self.first_assigned, self.n_candidates):
            mine = decoded[assigned == j]
            value[j], sd[j] = self._scaled(j, mine) if mine.size > 1 else (0.0, math.inf)
        return Estimates(value, sd, first_is_known=bool(self.first_assigned))

    def _scaled(self, candidate: int, decoded: Floats) -> tuple[float, float]:
        """A candidate's mean and its standard deviation, at least the mechanism's own: few reports may agree by chance."""
        width, mean = self.ranges[candidate] * self._half, float(decoded.mean())
        own = float(self.mechanism.variance(np.clip([mean], -1.0, 1.0))[0])
        spread = max(float(decoded.var(ddof=1)), own)
        return width * (mean if self.first_assigned else mean + 1.0), width * math.sqrt(spread / decoded.size)

    @property
    def thresholds(self) -> dict[str, Any]:
        """The number mechanism's, and its name."""
        return {"number": self.mechanism.name} | self.mechanism.thresholds


@dataclass(frozen=True, eq=False)
class Difference(OneModel):
    """Each validation holder reports the loss of one candidate minus the loss of the first, in [-D, D].

    A choice needs these differences: the first candidate's own error cancels, no question is spent on it, and values lie near
    0, where `optimal_label` has the least noise. ranges[0] is not used.
    """

    name: ClassVar[str] = "difference"
    measure: ClassVar[str] = "mean loss less the first candidate's"
    first_assigned: ClassVar[int] = 1

    def about(self, candidate: int) -> str:
        """How the ledger describes the question."""
        return f"tuning, {self.name}: candidate {candidate} less candidate 0"


STEPS = 64
"""Levels of an error, less one."""


def advanced_composition(epsilon: float, k: int, delta: float) -> float:
    """eps' of k reports of epsilon each together, at delta: Dwork, Rothblum and Vadhan 2010, Theorem III.3."""
    return math.sqrt(2 * k * math.log(1 / delta)) * epsilon + k * epsilon * math.expm1(epsilon)


@dataclass(frozen=True, eq=False)
class AllErrors(ValidationQuestion):
    """Every validation holder reports the errors of all k candidates with Laplace noise (LPDT D.2), here on the integers.

    The paper adds M^2 sqrt(k) / eps of Laplace noise to each error "by advanced composition" and calls that eps-private. What
    it really spends: each number alone spends eps / sqrt(k) (if M^2 is how far two errors can lie apart; they lie up to
    (2 M)^2 apart, which makes it four times as much), all of them sqrt(k) eps; and by advanced composition (Dwork, Rothblum
    and Vadhan 2010) (eps', delta) with eps' = sqrt(2 ln(1/delta)) eps + sqrt(k) eps (e^(eps / sqrt(k)) - 1), which is above
    eps for every delta below .6, and no pure eps at all. For pure eps the noise must be k range / eps: `for_budget`.
    `AllErrors.as_printed` has the paper's noise, and its `epsilon` is what that spends.

    An error is clipped to its range and rounded at random to one of 65 levels, so its mean is exact; noise is drawn by
    `coins.draw_laplace`, exactly. Noise variance of a candidate's mean of n holders: 2 k^2 range^2 / (eps^2 n).
    Reports are int32 [n, k]: each error in steps of range / 64, with noise of rate / 2^32 a step.

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
            tuple(map(float, ranges)),
            int(Fraction(checked_epsilon(epsilon)) * RATE_UNIT / (STEPS * len(ranges))),
        )

    @classmethod
    def as_printed(cls, epsilon: float, ranges: Sequence[float]) -> Self:
        """The paper's noise, range sqrt(k) / epsilon, which spends sqrt(k) epsilon: to compare with only."""
        return cls.for_budget(checked_epsilon(epsilon) * math.sqrt(len(ranges)), ranges)

    @property
    def epsilon(self) -> float:
        """64 k r, exact or rounded up."""
        return rounded_up(Fraction(self.n_candidates * STEPS * self.rate, RATE_UNIT))

    @property
    def noise(self) -> float:
        """Of one error."""
        return laplace_variance(self.rate) / STEPS**2

    @property
    def bound(self) -> int:
        """Noise is cut off here: one in 2^64 lies beyond."""
        return furthest_laplace(self.rate)

    def assign(self, n: int) -> NDArray[np.int64]:
        """Every holder reports on all candidates."""
        return np.full(n, EVERY, dtype=np.int64)

    def randomize(self, losses: Floats, assigned: NDArray[np.int64], words: Words) -> NDArray[np.int32]:
        """Each error rounded at random, and noise."""
        shares = np.clip(self.checked_losses(losses, assigned) / np.array(self.ranges), 0.0, 1.0)
        levels = round_at_random(shares.ravel(), 0.0, 1.0, STEPS + 1, words)
        noisy = levels + draw_laplace(self.rate, levels.size, words)
        kept: NDArray[np.int32] = np.clip(noisy, -self.bound, self.bound + STEPS).astype(np.int32)
        return kept.reshape(shares.shape)

    def law(self, losses: Floats, candidate: int) -> list[tuple[NDArray[Any], Fraction]]:
        """Too many to list; P(x | level) ~ e^(-r |x - level|) for each error."""
        raise NotImplementedError(f"{self.name}: its reports are too many to list")

    def estimate(self, reports: NDArray[Any], assigned: NDArray[np.int64]) -> Estimates:
        """Means; the standard deviations are those of the reports."""
        reports = np.asarray(reports)
        if (
            reports.dtype != np.int32
            or reports.shape != (len(assigned), self.n_candidates)
            or len(assigned) < 2
        ):
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


QUESTIONS: dict[str, type[ValidationQuestion]] = {
    "difference": Difference,
    "one-model": OneModel,
    "laplace": AllErrors,
}
