"""What a score, a cell and a node have in common, whatever kind the label is. What only one kind has is in `facts` and
`number_facts`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from tasks.page.basic_facts import STRICT, Evidence, Role, Span

IN_ORDER = (
    "majority",
    "constant",
    "public_only",
    "public_tree",
    "public_forest",
    "ours",
    "no_noise",
    "non_private",
)
"""Models as a reader compares them: references, public models, ours, limits."""


@dataclass(frozen=True, kw_only=True)
class ModelScore:
    """One model's figures on the held-back private rows; which figures, the kind says.

    key       "ours", or a baseline: "majority" and "constant" (one answer for all), "public_only" (the same partition, public
              rows alone), "public_tree", "public_forest", "no_noise" (ours with exact totals), "non_private" (a plain
              tree on private rows).
    name      what a person calls it; the page's own words where empty.
    metrics   figures by name.
    interval  95 % interval of the chief figure over test rows.
    spread    5 % to 95 % of the chief figure over redraws of the holders' noise; ours only, None where not drawn.
    lead      baselines only: 95 % interval of how far ours is ahead of this one, positive where ours is better, paired on
              the same test rows. None where not computed: the finding then rests on the two intervals, which is more
              cautious.
    note      the cap that was in force, such as "fitted on 20,000 of 24,102 public rows"; empty where none was.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT
    smaller_is_better: ClassVar[bool] = False

    key: str
    metrics: dict[str, float]
    name: str = ""
    interval: Span | None = None
    spread: Span | None = None
    lead: Span | None = None
    note: str = ""

    @property
    @abstractmethod
    def figure(self) -> float:
        """The chief figure: what intervals, spread and lead are of."""

    @property
    def role(self) -> Role:
        """Which of the page's three colours and shapes it is drawn with."""
        if self.key == "ours":
            return "ours"
        return "public" if self.key.startswith("public") else "reference"


@dataclass(frozen=True, kw_only=True)
class PlaceFacts:
    """What every cell of a partition has.

    path            the conditions that lead here, in raw units and plain words, one a column ("trip miles
                    below 3.5").
    share_private   estimated share of the private rows in this cell, 0 to 1 (from reports; post-processed).
    share_public    share of the public rows, 0 to 1.
    private_weight  share of the evidence (precision) that comes from private reports, 0 to 1; None where not
                    defined.
    evidence        what the belief chiefly rests on: "private", "public", "both", or "neighbours" (smoothed
                    from other cells).
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    path: tuple[str, ...]
    share_private: float
    share_public: float
    evidence: Evidence
    private_weight: float | None = None


@dataclass(frozen=True, kw_only=True)
class BranchFacts:
    """What every node of a tree has; the root holds the others.

    condition      what leads here from the parent, in raw units and plain words; "" at the root.
    cells          number of cells at or below the node.
    share_private  as of a cell, for all rows below.
    children       none (a cell) or two.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    condition: str
    cells: int
    share_private: float
    children: tuple[BranchFacts, ...] = ()


S = TypeVar("S", bound=ModelScore)


def in_order(ours: S | None, baselines: tuple[S, ...]) -> tuple[S, ...]:
    """Baselines and ours in the order a reader compares them."""
    every = (*baselines, *((ours,) if ours else ()))
    rank = {key: i for i, key in enumerate(IN_ORDER)}
    return tuple(sorted(every, key=lambda score: rank.get(score.key, len(IN_ORDER))))
