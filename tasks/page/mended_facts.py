"""Everything a page of a correction says, as plain values: where a public model was found wrong, by how much, how surely.

Frozen dataclasses that check themselves; no sentence, no layout and no file is here. Shares run from 0 to 1, numbers are in the
label's own unit. A private row never is here: what is said of held-back rows is said of cells with at least `SMALLEST_BIN`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tasks.page.basic_facts import CLEAR, STRICT
from tasks.page.class_score import ScoreFacts
from tasks.page.model_facts import BranchFacts, PlaceFacts, in_order
from tasks.page.number_facts import SMALLEST_BIN, BinFacts, NumberScore, check_leads
from tasks.page.numbers import Measure
from tasks.page.run_facts import RunFacts

SAME = 1e-9
"""Parts of the largest correction by which others may be off it and still be the same."""
Label = Literal["class", "number"]


@dataclass(frozen=True, kw_only=True)
class MendFacts:
    """What is added to one output of the public model.

    correction  positive: the public model says too little.
    sd          its posterior standard deviation; 0 where nothing was found worth adding.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    correction: float
    sd: float

    @property
    def is_clear(self) -> bool:
        """Whether its sign is known: further from 0 than `CLEAR` standard deviations."""
        return self.correction != 0 and abs(self.correction) >= CLEAR * self.sd

    @property
    def strength(self) -> float:
        """Standard deviations from 0; 0 where nothing is added."""
        return 0.0 if self.correction == 0 else abs(self.correction) / max(self.sd, 1e-300)


@dataclass(frozen=True, kw_only=True)
class SlopeFacts:
    """A straight line beside the public model: how much of where it differs is added, beyond what cells are corrected by.

    amount    parts of the difference: 1 would be the line itself in the place of the public model.
    sd        its standard deviation.
    is_found  whether the reports speak for it.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    amount: float
    sd: float
    is_found: bool

    @property
    def is_clear(self) -> bool:
        """Whether it was found and its sign is known."""
        return self.is_found and abs(self.amount) >= CLEAR * self.sd


@dataclass(frozen=True, kw_only=True)
class CellMendFacts(MendFacts):
    """The same in one cell.

    reports     mean error of the public model by the reports of this cell alone; None where they say nothing.
    reports_sd  its standard deviation, the holders' noise included; None where `reports` is.
    public      the public model's mean answer over the cell's public rows; None where it has none.
    corrected   the corrected model's mean answer over them; None where `public` is.
    """

    reports: float | None = None
    reports_sd: float | None = None
    public: float | None = None
    corrected: float | None = None


@dataclass(frozen=True, kw_only=True)
class CellTestFacts:
    """How both models did on held-back private rows of a cell.

    n             rows, at least `SMALLEST_BIN`.
    public, ours  accuracy, or mean squared error where the label is a number.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    n: int
    public: float
    ours: float

    def __post_init__(self) -> None:
        """Raise ValueError where so few rows are behind it that it would show some of them."""
        if self.n < SMALLEST_BIN:
            raise ValueError(
                f"a cell of {self.n} held-back rows shows them; at least {SMALLEST_BIN} are needed"
            )


@dataclass(frozen=True, kw_only=True)
class MendedCell(PlaceFacts):
    """One cell of the collection tree. What its correction rests on is "private" (its own reports), "neighbours" (chiefly the
    reports of other cells) or "public" (nothing was added).

    people   estimated number of private people, from reports: no whole number.
    outputs  one an output of the public model.
    test     None where no row, or too few, were held back.
    """

    people: float
    outputs: tuple[CellMendFacts, ...]
    test: CellTestFacts | None = None

    @property
    def shown(self) -> int:
        """The output whose correction is most clearly off 0."""
        return _clearest(self.outputs)


@dataclass(frozen=True, kw_only=True)
class MendedNode(BranchFacts):
    """One node of the collection tree.

    path     as of a cell.
    people   as of a cell, for all below.
    outputs  averages over the private people below.
    cell     of a cell, its place in `MendedFacts.cells`; None at a node that is none.
    """

    path: tuple[str, ...]
    people: float
    outputs: tuple[MendFacts, ...]
    cell: int | None
    children: tuple[MendedNode, ...] = ()

    @property
    def shown(self) -> int:
        """The output whose average correction is most clearly off 0."""
        return _clearest(self.outputs)


@dataclass(frozen=True, kw_only=True)
class MendedFacts(RunFacts):
    """A run that mends a public model.

    label           what the label is.
    positive        the positive class where there are two; None else.
    outputs         what the public model's outputs are of: the positive class, every class, or the label.
    n_trees         trees that the public model adds up; 0 where it is a constant.
    unit            what a number is measured in; "" where not declared, or of classes.
    residual_range  R: errors are reported from -R to R.
    n_levels        how many levels of an error a report can name.
    is_nothing      whether the reports differ from the public model no more than noise makes them.
    chance          how likely noise alone would make them differ so much.
    usual           of each output, the public model's answer averaged over private people, as public rows of their cells have
                    it; () where some cell has none.
    usual_corrected the same of the corrected model.
    push            the most that one dishonest holder can move the sum of errors in one cell; None where not known.
    slope           what was found of a straight line; None where the question had none.
    bins, n_few     of a number, as in `NumberFacts`.
    """

    kind: Literal["correction"] = "correction"
    label: Label
    positive: str | None = None
    outputs: tuple[str, ...]
    n_trees: int
    unit: str = ""
    residual_range: float
    n_levels: int
    is_nothing: bool
    chance: float
    usual: tuple[float, ...] = ()
    usual_corrected: tuple[float, ...] = ()
    push: float | None = None
    slope: SlopeFacts | None = None
    ours: ScoreFacts | NumberScore | None = None
    baselines: tuple[ScoreFacts | NumberScore, ...] = ()
    cells: tuple[MendedCell, ...] = ()
    tree: MendedNode | None = None
    bins: tuple[BinFacts, ...] = ()
    n_few: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError as every run does, or where cells, nodes and outputs do not fit each other."""
        super().__post_init__()
        m = len(self.outputs)
        if any(len(cell.outputs) != m for cell in self.cells) or len(self.usual) not in (0, m):
            raise ValueError(f"every cell needs one correction for each of the {m} outputs {self.outputs}")
        if len(self.usual_corrected) != len(self.usual):
            raise ValueError("both models' usual answers, or neither's, are known")
        if (self.positive is not None) != (self.label == "class" and m == 1):
            raise ValueError("two classes have one output, the share of the positive one; others have none")
        numbers = [score for score in self.baselines if isinstance(score, NumberScore)]
        check_leads(self.ours if isinstance(self.ours, NumberScore) else None, numbers)

    @property
    def is_zero(self) -> bool:
        """Whether nothing is added anywhere."""
        return all(mend.correction == 0 for cell in self.cells for mend in cell.outputs)

    @property
    def is_shared(self) -> bool:
        """Whether several cells have one and the same correction: the reports do not tell them apart."""
        found = [[mend.correction for mend in cell.outputs] for cell in self.cells]
        largest = max((abs(value) for row in found for value in row), default=0.0)
        spread = max((max(column) - min(column) for column in zip(*found, strict=True)), default=0.0)
        return len(found) > 1 and largest > 0 and spread <= SAME * largest

    @property
    def measure(self) -> Measure:
        """How the page writes a label that is a number."""
        return Measure(self.residual_range / 2, self.unit)

    @property
    def scores(self) -> tuple[ScoreFacts | NumberScore, ...]:
        """Baselines and ours in the order a reader compares them: references, public models, ours, limits."""
        return in_order(self.ours, self.baselines)

    def baseline(self, key: str) -> ScoreFacts | NumberScore | None:
        """The baseline of that key, or None where it was not fitted."""
        return next((score for score in self.baselines if score.key == key), None)


def _clearest(outputs: tuple[CellMendFacts, ...] | tuple[MendFacts, ...]) -> int:
    return max(range(len(outputs)), key=lambda output: (outputs[output].strength, -output))
