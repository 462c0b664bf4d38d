"""What a validation question is: one privatised report about the errors of k candidate models, and what reports say of them.

One question, one file beside this one; the registry is in the package. What does not live here: how a model errs (whoever
asks gives losses), the split of the holders and the choice (`private_tuning`).

A holder's losses are private; models, ranges, and who is asked what are public. So the guarantee is that of the report.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ldptree.errors import ConfigError, DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.oracles import Words

    Floats = NDArray[np.float64]

EVERY = -1
"""In the place of a candidate: the holder's one report is about all of them."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """What reports say of k candidates; lower is better.

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
        ranges: of each candidate's loss (or of what is asked instead); losses are clipped to it.

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
            ConfigError: epsilon is not positive and finite, or too small for a report to say anything.
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
        """Noise variance that one report adds to one candidate's estimate, in squared ranges, times reports per holder.

        An estimate from n holders has about noise x range^2 / n of variance from the mechanism.
        """

    @abstractmethod
    def asked(self, n: int) -> NDArray[np.int64]:
        """Whom each of n holders is asked about, int64 [n], not decreasing; `EVERY` for all. Holders are in an order
        drawn by public coins.
        """

    @abstractmethod
    def randomize(self, losses: Floats, asked: NDArray[np.int64], words: Words) -> NDArray[Any]:
        """One report a holder: the holders' side.

        Args:
            losses: float64 [n, k], the loss of each candidate on the holder's own row.
            asked: int64 [n].
            words: the coins.

        Raises:
            DataError: shapes do not fit, or a loss is not a number.
        """

    @abstractmethod
    def law(self, losses: Floats, asked: int) -> list[tuple[NDArray[Any], Fraction]]:
        """Every report of one holder with losses [k], and its exact chance. NotImplementedError where they are too many."""

    @abstractmethod
    def estimate(self, reports: NDArray[Any], asked: NDArray[np.int64]) -> Estimates:
        """What these reports say of the candidates: the curator's side.

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
        """The question as the ledger tells it."""
        whom = f"all {self.n_candidates} candidates" if candidate == EVERY else f"candidate {candidate}"
        return f"tuning, {self.name}: {whom}"

    def checked(self, losses: Floats, asked: NDArray[np.int64]) -> Floats:
        """The losses as float64 [n, k]. Raises DataError where they are not."""
        losses = np.asarray(losses, dtype=np.float64)
        if losses.shape != (np.size(asked), self.n_candidates) or np.isnan(losses).any():
            raise DataError(
                f"{self.name}: losses of shape {losses.shape}, expected {(np.size(asked), self.n_candidates)}, none missing"
            )
        return losses
