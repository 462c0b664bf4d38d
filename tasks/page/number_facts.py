"""Everything a page of numbers says, as plain values: a run whose label is a number, all of it in the label's own unit.

Frozen dataclasses that check themselves. A point of one private person is refused: what is said of held-back rows is said of
bins of at least `SMALLEST_BIN`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from tasks.page.basic_facts import STRICT, Evidence, Span
from tasks.page.model_facts import BranchFacts, ModelScore, PlaceFacts, in_order
from tasks.page.numbers import Measure
from tasks.page.run_facts import RunFacts

SMALLEST_BIN = 10


@dataclass(frozen=True, kw_only=True)
class NumberScore(ModelScore):
    """A regression's figures. The chief one is the mean squared error, and `lead` is this one's less ours.

    metrics   "mse" (required, from 0), and where known "mae" and "r2" (at most 1).
    """

    smaller_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise ValueError where there is no mean squared error."""
        if not 0 <= self.metrics.get("mse", -1) < math.inf:
            raise ValueError(f"the score {self.key!r} needs a mean squared error from 0, got {self.metrics}")

    @property
    def figure(self) -> float:
        """The mean squared error, in the label's unit squared."""
        return self.metrics["mse"]


def check_leads(ours: NumberScore | None, baselines: Iterable[NumberScore]) -> None:
    """Raise ValueError where a lead does not hold the difference it is of."""
    for score in baselines:
        if ours is None or score.lead is None:
            continue
        ahead = score.figure - ours.figure
        slack = 1e-6 * (score.figure + ours.figure)
        if not score.lead.low - slack <= ahead <= score.lead.high + slack:
            raise ValueError(
                f"the lead over {score.key!r} is {score.lead.low} to {score.lead.high}, but the mean squared errors "
                f"differ by {ahead}: it is theirs less ours"
            )


@dataclass(frozen=True, kw_only=True)
class NumberCell(PlaceFacts):
    """One cell of the partition: what was reported there and what is believed after all. Numbers in the label's unit.

    people         estimated number of private people, from reports: no whole number, none negative.
    reports        mean label by the reports of this cell alone; None where they give no usable count. Where reports were asked
                   about a larger cell, theirs, moved as public rows say.
    reports_sd     standard deviation that the holders' noise gives it; None where `reports` is.
    public         mean label of the cell's public rows; None where there is none.
    public_sd      its standard deviation (sampling); None where `public` is.
    value          what is believed after weighting and smoothing, and predicted.
    value_sd       posterior standard deviation of `value`.
    difference     learned private-less-public difference; None where none was asked for.
    difference_sd  its posterior standard deviation; 0 where no difference was found worth having.
    """

    people: float
    reports: float | None
    reports_sd: float | None
    public: float | None
    public_sd: float | None
    value: float
    value_sd: float
    difference: float | None = None
    difference_sd: float | None = None


@dataclass(frozen=True, kw_only=True)
class NumberNode(BranchFacts):
    """One node of the tree.

    people, value       as in NumberCell; at a node that is no cell, the sum and the average over its cells.
    value_sd, evidence  as in NumberCell; None at a node that is no cell.
    """

    people: float
    value: float
    value_sd: float | None
    evidence: Evidence | None
    children: tuple[NumberNode, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BinFacts:
    """Held-back rows whose prediction lies between two numbers.

    low, high   of the predictions.
    n           rows, at least `SMALLEST_BIN`.
    predicted   their mean prediction.
    true        their mean label.
    true_sd     standard deviation of one label among them.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    low: float
    high: float
    n: int
    predicted: float
    true: float
    true_sd: float

    def __post_init__(self) -> None:
        """Raise ValueError where so few rows are behind it that it would show some of them."""
        if self.n < SMALLEST_BIN:
            raise ValueError(f"a bin of {self.n} private rows shows them; at least {SMALLEST_BIN} are needed")

    @property
    def true_error(self) -> float:
        """Standard error of `true`."""
        return self.true_sd / math.sqrt(self.n)


@dataclass(frozen=True, kw_only=True)
class PieceFacts:
    """Values of one column that the tree takes alike, and the fitted function there.

    name       what a category's value is called; "" for a stretch of numbers.
    low, high  ends of the stretch; None for a category's value.
    value      the fitted function: the model's answer averaged over the other columns, as the public rows have them.
    sd         at least its standard deviation; None where the model knows none.
    public     the same of public rows alone; None where there is none at all.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    value: float
    sd: float | None = None
    public: float | None = None
    name: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class CurveFacts:
    """The fitted function along one column.

    column     in plain words.
    strength   share of the variance of the model's answers that its splits bring, 0 to 1.
    pieces     stretches from low to high, then values with names.
    is_smooth  whether the function varies within stretches: it is read at their middles then, which are joined.
    in_noise   the largest share, over the pieces, of averaged answers that are those of cells whose count is within its noise.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    column: str
    strength: float
    pieces: tuple[PieceFacts, ...]
    is_smooth: bool = False
    in_noise: float = 0.0

    @property
    def stretches(self) -> tuple[PieceFacts, ...]:
        """The pieces that are stretches of numbers."""
        return tuple(piece for piece in self.pieces if piece.low is not None)

    @property
    def named(self) -> tuple[PieceFacts, ...]:
        """The pieces that have a name."""
        return tuple(piece for piece in self.pieces if piece.low is None)


@dataclass(frozen=True, kw_only=True)
class NumberFacts(RunFacts):
    """A run whose label is a number.

    unit            what the label is measured in, such as "$"; "" where not declared.
    label_range     private labels are moved into it on their holders' side.
    label_sd        standard deviation of one label within a cell, by the public rows.
    label_noise_sd  standard deviation of the noise of a label that is sent as a number, in its unit; None where it is not.
    push            the most that one dishonest holder can move the sum of labels of one cell; None where not known.
    bins            predicted against true, by the predicted value; () with `evaluate = false`.
    n_few           held-back rows that are in no bin, as too few shared one.
    curves          the fitted function along the strongest columns, the strongest first.
    """

    kind: Literal["regression"] = "regression"
    unit: str = ""
    label_range: Span
    label_sd: float
    label_noise_sd: float | None = None
    push: float | None = None
    ours: NumberScore | None = None
    baselines: tuple[NumberScore, ...] = ()
    cells: tuple[NumberCell, ...] = ()
    tree: NumberNode | None = None
    bins: tuple[BinFacts, ...] = ()
    n_few: int = 0
    curves: tuple[CurveFacts, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError as every run does, or where a lead does not hold the difference it is of."""
        super().__post_init__()
        check_leads(self.ours, self.baselines)

    @property
    def has_all_cells(self) -> bool:
        """Whether every cell that reports were asked about is told of, or all parts of it (`ldptree.families.finer`)."""
        return len(self.cells) >= self.n_cells

    @property
    def measure(self) -> Measure:
        """How the page writes a label."""
        return Measure(self.label_sd, self.unit)

    @property
    def scores(self) -> tuple[NumberScore, ...]:
        """Baselines and ours in the order a reader compares them: references, public models, ours, limits."""
        return in_order(self.ours, self.baselines)

    def baseline(self, key: str) -> NumberScore | None:
        """The baseline of that key, or None where it was not fitted."""
        return next((score for score in self.baselines if score.key == key), None)
