"""Everything a page of a run in rounds says, as plain values: which features are public, who was asked what, what was learned.

Frozen dataclasses that check themselves; no sentence, no layout and no file is here. What every page of numbers says is in
`number_facts`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from tasks.page.basic_facts import STRICT
from tasks.page.model_facts import BranchFacts
from tasks.page.number_facts import NumberFacts

Asks = Literal["label bin", "feature bin", "label", "residual", "cell"]


@dataclass(frozen=True, kw_only=True)
class FeatureFacts:
    """One raw column.

    name      in plain words.
    protects  holders who protect it, by the public mask; None where the mask was not sent.
    declared  as the configuration has it: everybody shows it, everybody protects it, or each decides.
    strength  its share of the variance of the model's answers, 0 to 1.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    name: str
    protects: int | None
    declared: Literal["public", "private", "own choice"]
    strength: float = 0.0


@dataclass(frozen=True, kw_only=True)
class RoundFacts:
    """One published question.

    asks       what it is about.
    feature    the column that "feature bin" and "residual" are about, in plain words; "" otherwise.
    shape      of a residual's weight: "rise" (low against high values), "bowl" (the middle against both ends); "" otherwise.
    mechanism  how the answer is randomised: "ss", "optimal_label", "duchi", "laplace", "grr", "randomized_response".
    values     how many values there are to tell apart: bins or cells; 0 of a number.
    size       of an answer that is a set of values, how many; 0 otherwise.
    low, high  ends that a number is moved into, in the label's unit; 0 where it is none.
    epsilon    what one answer spends, recomputed from the integers in use.
    n_asked    holders asked.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    asks: Asks
    mechanism: str
    epsilon: float
    n_asked: int
    feature: str = ""
    shape: str = ""
    values: int = 0
    size: int = 0
    low: float = 0.0
    high: float = 0.0


@dataclass(frozen=True, kw_only=True)
class EffectFacts:
    """What a private feature adds to the answer, in the label's unit.

    feature  in plain words.
    shape    "rise" or "bowl", as in RoundFacts.
    swing    from its lowest to its highest value (bowl: from the middle to the ends), on average over what is shown.
    typical  standard deviation of what it adds.
    varies   whether that depends on the public features.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    feature: str
    shape: str
    swing: float
    typical: float
    varies: bool


@dataclass(frozen=True, kw_only=True)
class ShapeFacts:
    """HistOfTree's partition: t^s histogram cells times 2^p leaves.

    binned    the s features of the histogram, in plain words.
    bins      t.
    depth     p, the tree's.
    cells     of the product.
    by_report whether cells were counted by reports; False: they follow from what is shown, exactly.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    binned: tuple[str, ...]
    bins: int
    depth: int
    cells: int
    by_report: bool


@dataclass(frozen=True, kw_only=True)
class BoxFacts:
    """One cell of the histogram in one leaf of HistOfTree's tree.

    place     where it lies along the features of the histogram: "weight up to 2.5"; "" where there is no histogram.
    share     estimated share of the holders, 0 to 1.
    value     what is predicted, in the label's unit.
    is_heard  whether its count stands out of its own noise, by two standard deviations.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    place: tuple[str, ...]
    share: float
    value: float
    is_heard: bool


@dataclass(frozen=True, kw_only=True)
class ShownNode(BranchFacts):
    """A node of HistOfTree's tree, which asks what is outside its histogram.

    value     the average answer below, weighted by estimated shares.
    is_heard  of a leaf without a histogram, as in BoxFacts; otherwise true.
    boxes     at a leaf, what its histogram says: the largest cells, in their order; () at other nodes, and without a histogram.
    """

    value: float
    is_heard: bool = True
    boxes: tuple[BoxFacts, ...] = ()
    children: tuple[ShownNode, ...] = ()

    @property
    def depth(self) -> int:
        """Of the deepest node that is told of; 0 where that is this one."""
        return max((1 + child.depth for child in self.children), default=0)

    @property
    def n_lines(self) -> int:
        """Nodes and cells told of."""
        return 1 + len(self.boxes) + sum(child.n_lines for child in self.children)

    @property
    def span(self) -> tuple[float, float]:
        """The least and the largest value of cells that stand out of the noise; its own where none does."""
        values = self._heard() or [self.value]
        return min(values), max(values)

    def _heard(self) -> list[float]:
        own = [box.value for box in self.boxes if box.is_heard]
        if not self.boxes and not self.children and self.is_heard:
            own = [self.value]
        return own + [value for child in self.children for value in child._heard()]


@dataclass(frozen=True, kw_only=True)
class StepOfTrees:
    """A question that trees ask alike.

    asks     in plain words: "size above about 2.5".
    n_trees  how many of the trees ask it.
    change   what a yes adds, averaged over all trees and people, in the label's unit.
    share    of the variance that the trees' splits bring, 0 to 1.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    asks: str
    n_trees: int
    change: float
    share: float


@dataclass(frozen=True, kw_only=True)
class SurfaceFacts:
    """A line and trees that correct it.

    n_trees   how many; 0 where the reports were too few, or nothing is shown.
    line_sd   standard deviation of the line's part of the answers over what is shown, in the label's unit.
    trees_sd  of the trees' part.
    steps     where the trees step, the strongest first.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    n_trees: int
    line_sd: float
    trees_sd: float
    steps: tuple[StepOfTrees, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RoundsFacts(NumberFacts):
    """A run that asked in rounds, where some features are public.

    n_holders        who took part: their rows less those held back.
    features         every raw column that is learned from.
    asked            the questions in order.
    most_rounds      the most questions that one holder answered.
    n_never_asked    holders who took part and were put no question.
    mask_release     what was sent of the masks: "all", "cells", "none".
    own_choice       whether each holder says for themselves what they protect.
    learned          what the model says of itself in a line; "" where it says nothing.
    is_helped        whether by its own account private features help it.
    effects          of private features, the largest first; () where none was found, or of HistOfTree.
    shape            HistOfTree's partition; None of others.
    predicts         the least and the largest answer over what is shown.
    n_averaged       people over whom strengths and curves are taken: what they show as it is, what they protect drawn from what
                     was learned of it.
    n_refits         fits to answers drawn anew that the curves' band is taken of; 0 where there is no band.
    tree             HistOfTree's tree; None of others, and where it has one cell.
    surface          of public_features; None of others.
    """

    of_one_tree: ClassVar[bool] = False

    kind: Literal["rounds"] = "rounds"  # type: ignore[assignment]
    features: tuple[FeatureFacts, ...] = ()
    asked: tuple[RoundFacts, ...] = ()
    most_rounds: int = 1
    n_never_asked: int = 0
    mask_release: Literal["all", "cells", "none"] = "all"
    own_choice: bool = False
    learned: str = ""
    is_helped: bool = False
    effects: tuple[EffectFacts, ...] = ()
    shape: ShapeFacts | None = None
    predicts: tuple[float, float] = (0.0, 0.0)
    n_averaged: int = 0
    n_refits: int = 0
    tree: ShownNode | None = None  # type: ignore[assignment]
    surface: SurfaceFacts | None = None

    def __post_init__(self) -> None:
        """Raise ValueError as every run of numbers does, or where somebody spent more than is claimed."""
        super().__post_init__()
        if not self.asked:
            raise ValueError("a run in rounds has at least one question")
        if not math.isfinite(self.epsilon_exact) or self.epsilon_exact > self.epsilon * (1 + 1e-9):
            raise ValueError(f"a holder spent {self.epsilon_exact}, more than epsilon = {self.epsilon}")

    @property
    def is_drawn(self) -> bool:
        """Whether the model says how protected features are spread, so that people can be drawn from it."""
        return self.shape is not None or bool(self.effects)

    @property
    def strongest(self) -> tuple[FeatureFacts, ...]:
        """Features by their strength, the strongest first, otherwise as they stand."""
        return tuple(sorted(self.features, key=lambda feature: -feature.strength))

    @property
    def protected(self) -> tuple[FeatureFacts, ...]:
        """Features that at least one holder protects."""
        return tuple(feature for feature in self.features if feature.declared != "public")
