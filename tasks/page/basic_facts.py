"""What both kinds of page say of a run, one fact at a time: intervals, checks, rows, steps, what dishonest holders can do.

Frozen dataclasses that check themselves. A private row never is here: what belongs to the holders' zone is refused when a
fact is made. What is said of a whole run is in `run_facts`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

Zone = Literal["public", "private"]
Evidence = Literal["private", "public", "both", "neighbours"]
StepState = Literal["computed", "cached", "failed"]
Role = Literal["ours", "public", "reference"]

STRICT = {"extra": "forbid"}
"""Of every fact: an unknown field is refused."""
CLEAR = 2.0
"""Standard deviations from 0 at which a difference is said to have a direction."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """A closed interval on the number line, in the unit of what it belongs to."""

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    low: float
    high: float

    def __post_init__(self) -> None:
        """Raise ValueError where the ends are swapped or not finite."""
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise ValueError(f"an interval needs finite ends in order, got {self.low} to {self.high}")


@dataclass(frozen=True, kw_only=True)
class CheckFacts:
    """One expectation of the validation.

    name      in words: "fare is between 0 and 500".
    severity  "stop" (a failure ends the run) or "warn".
    detail    for public rows only: what was found, with counts and values. A private check says yes or no.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    name: str
    zone: Zone
    ok: bool
    severity: Literal["stop", "warn"] = "stop"
    detail: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError where a private check carries more than yes or no."""
        if self.zone == "private" and self.detail:
            raise ValueError(f"the private check {self.name!r} has a detail; it stays in the holders' zone")


@dataclass(frozen=True, kw_only=True)
class RowFacts:
    """Rows of one zone. `read` = `kept` + `held_out` + `quarantined` + those dropped by a declared rule.

    kept         rows the model learned from (private: holders asked in this run); of a run that its validation
                 stopped, rows that were checked.
    held_out     rows held back for the test.
    read         rows in the files; private: None unless every row was kept or held out, as the rest counts
                 faults.
    quarantined  bad rows set aside; public only, the holders' count stays with them.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    zone: Zone
    kept: int
    held_out: int = 0
    read: int | None = None
    quarantined: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError where counts of private faults would reach the page."""
        if self.zone == "public":
            return
        if self.quarantined is not None:
            raise ValueError("counts of private faults stay in the holders' zone: leave `quarantined` None")
        if self.read is not None and self.read != self.kept + self.held_out:
            raise ValueError("private rows read less rows kept is a count of faults: leave `read` None")


@dataclass(frozen=True, kw_only=True)
class StepFacts:
    """One step of the run.

    seconds  how long this run spent on it (a cached step: finding and checking the artifact).
    start    seconds after the run's start at which it began.
    shards   shards it was mapped over; None where it was not.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    name: str
    state: StepState
    seconds: float = 0.0
    start: float = 0.0
    shards: int | None = None


@dataclass(frozen=True, kw_only=True)
class InfluenceFacts:
    """What dishonest holders can do to the totals, by sending any report they like.

    one          the most one of them can add to, or take from, the estimated count of one cell and class, in
                 holders.
    one_percent  the same for 1 % of all holders together, in holders.
    at_once      in how many cells and labels one report can do so at the same time (oue: in all k).
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    one: float
    one_percent: float
    at_once: int


@dataclass(frozen=True, kw_only=True)
class DiscrepancyFacts:
    """How far private people differ from the public rows, as learned from the totals; in margins in [-1/2, 1/2], or in the
    label's own unit where it is a number.

    is_found  whether the totals spoke for any difference at all.
    varies    whether it differs from cell to cell; False: the same everywhere.
    mean      posterior mean over all private rows; positive: more of the positive class, or a larger
              number, among private people.
    sd        its posterior standard deviation; also of a mean of 0 that was not found to differ.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    is_found: bool
    varies: bool
    mean: float
    sd: float


@dataclass(frozen=True, kw_only=True)
class FailureFacts:
    """Why a run stopped.

    step     the step that stopped it.
    message  the error's message as the terminal showed it (no private value is ever in one).
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    step: str
    message: str
