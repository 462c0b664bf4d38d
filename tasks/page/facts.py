"""Everything a page of classes says, as plain values: the only input of `render`; and which kind a page is of.

Frozen dataclasses that check themselves and turn into JSON and back. No sentence, no layout and no file is
here. A private row never is either: what belongs to the holders' zone is refused when a fact is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tasks.page.basic_facts import (
    CheckFacts,
    DiscrepancyFacts,
    Evidence,
    FailureFacts,
    InfluenceFacts,
    Role,
    RowFacts,
    Span,
    StepFacts,
    StepState,
    Zone,
)
from tasks.page.class_score import ScoreFacts
from tasks.page.mended_facts import MendedFacts
from tasks.page.model_facts import BranchFacts, PlaceFacts, in_order
from tasks.page.number_facts import NumberFacts
from tasks.page.rounds_facts import RoundsFacts
from tasks.page.run_facts import RunFacts


@dataclass(frozen=True, kw_only=True)
class CellFacts(PlaceFacts):
    """One cell of the partition: what was reported there and what is believed after all.

    A *margin* is in [-1/2, 1/2]. Two classes: the share of the positive class less 1/2. Several classes: half
    the lead of the decided class over the next one. Raw margins may leave that range, as noise does.

    raw_margin      from the reports of this cell alone; None where they give no usable count.
    raw_sd          standard deviation that the holders' noise gives raw_margin; None where raw_margin is.
    public_margin   from the public rows of this cell alone; None where there is none.
    public_sd       standard deviation of public_margin (sampling); None where public_margin is.
    margin          what is believed after weighting and smoothing.
    margin_sd       posterior standard deviation of `margin`; of several classes at most that, as errors of two classes may go
                    apart.
    discrepancy     learned private-minus-public difference of the margin; None where none was learned.
    discrepancy_sd  its posterior standard deviation.
    decision        the class predicted here, a name from `Facts.classes`.
    probability     the model's probability of `decision`, 0 to 1.
    """

    raw_margin: float | None
    raw_sd: float | None
    margin: float
    margin_sd: float
    decision: str
    probability: float
    public_margin: float | None = None
    public_sd: float | None = None
    discrepancy: float | None = None
    discrepancy_sd: float | None = None


@dataclass(frozen=True, kw_only=True)
class NodeFacts(BranchFacts):
    """One node of the tree.

    decision, probability, margin   as in CellFacts, for all rows below.
    margin_sd      as in CellFacts; None at a node that is no cell.
    """

    margin: float
    margin_sd: float | None
    decision: str
    probability: float
    children: tuple[NodeFacts, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Facts(RunFacts):
    """A run whose label is a class, or one that failed before its label mattered.

    positive   of two classes the one that margins are of, declared or the second; None where there are more.
    """

    kind: Literal["classification"] = "classification"
    positive: str | None = None
    ours: ScoreFacts | None = None
    baselines: tuple[ScoreFacts, ...] = ()
    cells: tuple[CellFacts, ...] = ()
    tree: NodeFacts | None = None

    def __post_init__(self) -> None:
        """Raise ValueError as every run does, or where the positive class is none."""
        super().__post_init__()
        if self.positive is not None and self.positive not in self.classes:
            raise ValueError(f"the positive class {self.positive!r} is not among the classes {self.classes}")

    @property
    def scores(self) -> tuple[ScoreFacts, ...]:
        """Baselines and ours in the order a reader compares them: references, public models, ours, limits."""
        return in_order(self.ours, self.baselines)

    def baseline(self, key: str) -> ScoreFacts | None:
        """The baseline of that key, or None where it was not fitted."""
        return next((score for score in self.baselines if score.key == key), None)


AnyFacts: TypeAlias = Facts | NumberFacts | MendedFacts


def facts_from(value: dict[str, Any]) -> AnyFacts:
    """The facts of any kind that `to_dict` wrote; raises ValueError on an unknown, missing or ill-typed field."""
    kinds: dict[Any, type[AnyFacts]] = {
        "regression": NumberFacts,
        "rounds": RoundsFacts,
        "correction": MendedFacts,
    }
    return kinds.get(value.get("kind"), Facts).from_dict(value)


__all__ = [
    "AnyFacts",
    "CellFacts",
    "CheckFacts",
    "DiscrepancyFacts",
    "Evidence",
    "Facts",
    "FailureFacts",
    "InfluenceFacts",
    "MendedFacts",
    "NodeFacts",
    "NumberFacts",
    "Role",
    "RoundsFacts",
    "RowFacts",
    "ScoreFacts",
    "Span",
    "StepFacts",
    "StepState",
    "Zone",
    "facts_from",
]
