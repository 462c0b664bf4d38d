"""Everything a page says, as plain values. Every family gives one `Run`, the only input of `render`.

Frozen dataclasses that turn into JSON and back. A private row never is here: what belongs to the holders' zone is refused when a
value is made.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from ldptree.models.description import Description, Estimate
from ldptree.protocol.question import QuestionDescription
from schemas.dataset import parse_public_rule

Zone = Literal["public", "private"]
STRICT = {"extra": "forbid"}
FEWEST = 10
"""Held-back rows behind a figure of a cell or a bin, below which it would show some of them."""
ORDER = (
    "majority",
    "constant",
    "public_tree",
    "public_forest",
    "public_only",
    "ours",
    "no_noise",
    "non_private",
)
"""Models in a reader's order of comparison, with references first, then public models, ours and limits."""
METRICS = ("accuracy", "balanced_accuracy", "auc", "log_loss", "rmse", "mae", "r2")


@dataclass(frozen=True, kw_only=True)
class Span:
    """A closed interval."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise ValueError(f"an interval needs finite ends in order, got {self.low} to {self.high}")


@dataclass(frozen=True, kw_only=True)
class Check:
    """One expectation; a private one says yes or no, and has no detail."""

    name: str
    zone: Zone
    ok: bool
    severity: Literal["stop", "warn"] = "stop"
    detail: str = ""

    def __post_init__(self) -> None:
        if self.zone == "private" and self.detail:
            raise ValueError(f"the private check {self.name!r} has a detail, which stays with its people")

    @property
    def state(self) -> str:
        """State in which it ended, in a word."""
        if self.ok:
            return "met"
        return "failed" if self.severity == "stop" else "warning"


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows of one zone that were kept to learn from, held back for the test, read, or set aside (public only)."""

    zone: Zone
    kept: int
    held_out: int = 0
    read: int | None = None
    quarantined: int | None = None

    def __post_init__(self) -> None:
        if self.zone == "private" and (
            self.quarantined is not None or self.read not in (None, self.kept + self.held_out)
        ):
            raise ValueError("counts of a zone's private faults stay with its people: leave them None")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step, with its state, its times in seconds after the run's start, and its number of shards."""

    name: str
    state: Literal["computed", "cached", "failed"]
    spans: tuple[tuple[float, float], ...] = ()
    shards: int | None = None

    @property
    def seconds(self) -> float:
        """Seconds that it took."""
        return sum(seconds for _, seconds in self.spans)


@dataclass(frozen=True, kw_only=True)
class Score:
    """One model on the held-back rows.

    Attributes:
        key: "ours", or a baseline.
        metrics: figures by name; the chief one is the accuracy, or the typical error (the root of the mean square).
        interval: 95 % interval of the chief figure over test rows.
        spread: 5 % to 95 % of it over redraws of the noise; ours only.
        lead: 95 % interval of how far ours is ahead of this one, paired on the same rows; positive: ours is better.
        note: the cap that was in force.
        confusion: counts [true class][said class].
    """

    key: str
    metrics: dict[str, float]
    interval: Span
    spread: Span | None = None
    lead: Span | None = None
    note: str = ""
    confusion: tuple[tuple[int, ...], ...] = ()

    @property
    def figure(self) -> float:
        """The chief figure."""
        return self.metrics.get("accuracy", self.metrics.get("rmse", math.nan))

    @property
    def role(self) -> str:
        """Return the role on the page, which decides its colour and shape."""
        return {"ours": "ours", "public_only": "pub"}.get(self.key, "ref")


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Held-back rows whose predictions lie between two numbers, with their number, mean prediction and mean label."""

    low: float
    high: float
    n: int
    predicted: float
    true: float
    true_sd: float

    def __post_init__(self) -> None:
        if self.n < FEWEST:
            raise ValueError(f"a bin of {self.n} private rows shows them; at least {FEWEST} are needed")

    @property
    def mean(self) -> Estimate:
        """The mean label with its standard error."""
        return Estimate(value=self.true, sd=self.true_sd / math.sqrt(self.n))


@dataclass(frozen=True, kw_only=True)
class CellTest:
    """The results of the public model and ours on the held-back rows of a cell."""

    n: int
    public: float
    ours: float

    def __post_init__(self) -> None:
        if self.n < FEWEST:
            raise ValueError(f"a group of {self.n} rows kept aside shows them; at least {FEWEST} are needed")


@dataclass(frozen=True, kw_only=True)
class AtEpsilon:
    """The chief figure at an epsilon, of each draw of the noise to the same question, from low to high; or the smallest error
    of the public model that reports would find there, as a plan has it.
    """

    epsilon: float
    draws: tuple[float, ...]

    @property
    def median(self) -> float:
        """The one in the middle."""
        return statistics.median(self.draws)


@dataclass(frozen=True, kw_only=True)
class Hidden:
    """The largest difference on average that reports leave open, whatever the public rows say; of several outputs in the one
    that they say least of.

    Attributes:
        difference: above it, and wherever it is, a collection finds it with the power of a plan.
        is_small: whether a plan would call it found: it is no larger on average than what a plan plants.
        output: which of the model's outputs it is of, from 0.
    """

    difference: float
    is_small: bool
    output: int = 0


@dataclass(frozen=True, kw_only=True)
class Scores:
    """All that was measured on held-back rows.

    Attributes:
        models: ours and the baselines.
        n: rows scored.
        redraws: of the noise.
        duplicates: exact copies between training and test rows.
        bins: predicted against true.
        n_few: rows in no bin, as too few shared one.
        cells: of each cell, both models; None where the rows were too few.
        epsilons: the run's own epsilon and others, from low to high; () where nothing was drawn again.
    """

    models: tuple[Score, ...]
    n: int
    redraws: int
    duplicates: int
    bins: tuple[Bin, ...] = ()
    n_few: int = 0
    cells: tuple[CellTest | None, ...] = ()
    epsilons: tuple[AtEpsilon, ...] = ()

    def find(self, key: str) -> Score | None:
        """The score of that key; None where it was not fitted."""
        return next((score for score in self.models if score.key == key), None)

    @property
    def ours(self) -> Score:
        """The released model's."""
        return next(score for score in self.models if score.key == "ours")

    @property
    def ordered(self) -> tuple[Score, ...]:
        """As a reader compares them."""
        rank = {key: i for i, key in enumerate(ORDER)}
        return tuple(sorted(self.models, key=lambda score: rank.get(score.key, len(ORDER))))

    @classmethod
    def of(cls, content: Mapping[str, Any], caps: Mapping[str, str]) -> Self:
        """Read `scores.json`, of numbers with typical errors in place of mean squares.

        `caps` says how many rows a baseline read, if it read fewer.
        """
        typical = _typical if "mse" in content["scores"]["ours"] else float
        redraws = sorted(map(typical, content["redraws"]))
        models = tuple(_score(key, record, redraws, caps) for key, record in content["scores"].items())
        bins = tuple(Bin(**record) for record in content.get("bins", ()))
        return cls(
            models=models,
            n=content["n_test"],
            redraws=len(redraws),
            duplicates=content["duplicates"],
            bins=bins,
            n_few=content["n_test"] - sum(each.n for each in bins) if bins else 0,
            cells=tuple(
                None
                if record is None
                else CellTest(n=record["n"], public=typical(record["public"]), ours=typical(record["ours"]))
                for record in content.get("cells", ())
            ),
            epsilons=tuple(
                AtEpsilon(epsilon=record["epsilon"], draws=tuple(sorted(map(typical, record["redraws"]))))
                for record in content.get("epsilons", ())
            ),
        )


def _typical(square: float) -> float:
    return math.sqrt(max(square, 0.0))


def _score(key: str, record: Mapping[str, Any], redraws: Sequence[float], caps: Mapping[str, str]) -> Score:
    spread, interval, lead = None, record["interval"], record.get("lead")
    if (square := record.get("mse")) is not None:
        record = {**record, "rmse": _typical(square)}
        interval = [_typical(end) for end in interval]
        lead = lead and [record["rmse"] - _typical(square - end) for end in lead]
    if key == "ours" and redraws:
        last = len(redraws) - 1
        spread = Span(low=redraws[round(0.05 * last)], high=redraws[round(0.95 * last)])
    return Score(
        key=key,
        metrics={name: record[name] for name in METRICS if record.get(name) is not None},
        interval=Span(low=interval[0], high=interval[1]),
        spread=spread,
        lead=Span(low=lead[0], high=lead[1]) if lead else None,
        note=caps.get(key, ""),
        confusion=tuple(tuple(row) for row in record.get("confusion", ())),
    )


@dataclass(frozen=True, kw_only=True)
class AskedQuestion:
    """A published question and whom it was put to.

    Attributes:
        question: what it asks, and how it is answered.
        digest: by which it is known.
        n_asked: holders asked.
        column: the name of the feature that it is about; "" where it is about no single one.
    """

    question: QuestionDescription
    digest: str
    n_asked: int
    column: str = ""


@dataclass(frozen=True, kw_only=True)
class Feature:
    """A raw column of a run with some public features, and who protects it (None if that was not sent)."""

    name: str
    declared: Literal["public", "private", "own choice"]
    protects: int | None = None


@dataclass(frozen=True, kw_only=True)
class Influence:
    """The influence of dishonest holders on the totals (`ldptree.mechanisms.oracles.Influence`)."""

    one: float
    one_percent: float
    at_once: int


@dataclass(frozen=True, kw_only=True)
class Boxes:
    """Reports as boxes, one a value that they can name; of large ones the boxes of some cells and levels.

    Attributes:
        cells, levels: those that are drawn, from 0.
        reports: of each report its boxes, cell by cell, then those of "anything else": "" where it does not name it, "x" where
            it does, or the number that is sent of it.
        n_outside: boxes of "anything else".
        n: boxes of a whole report.
    """

    cells: tuple[int, ...]
    levels: tuple[int, ...]
    reports: tuple[tuple[str, ...], ...]
    n_outside: int
    n: int

    @property
    def n_drawn(self) -> int:
        """Number that are drawn of each."""
        return len(self.reports[0])


@dataclass(frozen=True, kw_only=True)
class SentNumber:
    """The number of each report, and what it would be without noise, in the label's unit."""

    true: float
    sent: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Example:
    """The typical public row, its true answer, and reports drawn of it with this run's mechanism from a fixed seed.

    Attributes:
        row: columns and values, the label last. Where some features are public, those that are not.
        cell, level: the true answer: its cell, bin or other value, from 0, and the level that is named, of a number the nearest.
        levels: what they are called; () where a value is named alone.
        boxes: the reports, as far as they name values; None where boxes cannot show one.
        number: what is sent besides, or in place of values.
        rounded: the number or the error that each report rounds to one of the levels; None where none is.
        output: which of the model's outputs the error is of, from 0.
        left_out: share of such reports that do not name the true value, by rounding or by noise; None where that is not known.
    """

    row: tuple[tuple[str, str], ...]
    cell: int
    level: int
    levels: tuple[str, ...] = ()
    boxes: Boxes | None = None
    number: SentNumber | None = None
    rounded: float | None = None
    output: int = 0
    left_out: float | None = None


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """The questions to holders, their cost, and who the holders are.

    Attributes:
        epsilon: claimed, for all of a holder's reports together.
        epsilon_exact: recomputed from the integers in use, rounded up.
        epsilon_spent: what this run has each holder spend, as claimed.
        largest_spend, n_questions: the most that any holder has spent in this work folder, and on how many questions.
        lifetime_epsilon: the most that anyone may spend; None where none was stated.
        mechanism: of every question, as `run.json` has it, such as "joint oue".
        asked: every question, in order.
        most_answers: questions that one holder answered at most.
        n_never_asked: holders who took part and were asked nothing.
        holder: "row", or the column that names the holder.
        seeded: whether the noise came from a seed.
        form: "reports", or "totals" drawn from true counts.
        k: values that a report can take.
        influence: what dishonest holders can do; None where that is not known.
        features: who shows what; () where all features are private.
        mask_release: what was sent of the masks.
        example: a typical row and reports of it; None where none is drawn.
        on_devices: people answered on their own devices, which keep what each has spent.
        shuffler: who shuffles the reports to the last question before they are handed on; "" where nobody is known to.
        shuffled: the epsilon of one of them among all, at a delta of 1e-8; None where none is proved.
    """

    epsilon: float
    epsilon_exact: float = 0.0
    epsilon_spent: float = 0.0
    largest_spend: float = 0.0
    n_questions: int = 0
    lifetime_epsilon: float | None = None
    mechanism: str = ""
    asked: tuple[AskedQuestion, ...] = ()
    most_answers: int = 1
    n_never_asked: int = 0
    holder: str = "row"
    seeded: bool = False
    form: Literal["reports", "totals"] = "reports"
    k: int = 0
    influence: Influence | None = None
    features: tuple[Feature, ...] = ()
    mask_release: Literal["all", "cells", "none"] = "all"
    example: Example | None = None
    on_devices: bool = False
    shuffler: str = ""
    shuffled: float | None = None

    @property
    def was_spent_before(self) -> bool:
        """True if a holder has spent more in this work folder than in this run."""
        return self.largest_spend > self.epsilon_spent * (1 + 1e-9)


@dataclass(frozen=True, kw_only=True)
class Making:
    """The making of the run, with all that is needed to repeat it."""

    created: str
    version: str
    command: str
    seconds: float = 0.0
    peak_rss_mb: float = 0.0
    cores: int = 0
    steps: tuple[Step, ...] = ()
    config: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The place and reason where a run stopped.

    Attributes:
        step: the step that failed, or the last one before the failure; "" where none had begun.
        message: the error's, as the terminal showed it.
        has_asked: whether reports may have been written.
        is_waiting: it is no failure: the question is published, and nobody has answered yet.
    """

    step: str
    message: str
    has_asked: bool = False
    is_waiting: bool = False


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run, of any family.

    Attributes:
        name, title: the run's, and the data's in words.
        noun, nouns: what one row is called, and several.
        question: the question in words; "" where the configuration has none.
        simulated: whether the rows are made up.
        campaign: whose reports of earlier runs are learned from too; "" where there is none.
        estimator, why_chosen: the family that learned; why, where the configuration names none.
        target, label, unit: the label's column, what it is, and what a number is measured in.
        units: what the numbers of other columns are measured in.
        whole: columns whose public numbers are all whole.
        classes: what its values are called, or levels of a number that a report can name.
        levels: what totals are of: classes, or levels of a number or of a public model's error.
        lam, prune: how public rows were weighed and cells smoothed; "" where that was not asked.
        n_private, n_public, n_test: rows that reported (in a campaign those of earlier runs too), public, held back.
        n_earlier: of the rows that reported, those that had before this run began.
        n_cells, depth: of the partition that was asked about.
        public_rule, public_columns, where: which rows are public, which columns are so with it, which rows take part.
        columns_left_out: raw columns that are no features, and why.
        description: what the model says of itself.
        scores: None of a release.
        finds: of a release that corrects a public model, what would be found at its own epsilon and others, from low to high.
        warnings: what to read before relying on the result: each a claim that ends with a full stop, and a sentence.
        failure: None for a run that reached its end.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT

    name: str
    title: str
    estimator: str
    target: str
    privacy: Privacy
    making: Making
    checks: tuple[Check, ...]
    rows: tuple[Rows, ...]
    why_chosen: str = ""
    noun: str = "row"
    nouns: str = "rows"
    question: str = ""
    simulated: bool = False
    campaign: str = ""
    label: Literal["class", "number", ""] = ""
    unit: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    whole: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    lam: str = ""
    prune: str = ""
    n_private: int = 0
    n_earlier: int = 0
    n_public: int = 0
    n_test: int = 0
    n_cells: int = 0
    depth: int = 0
    public_rule: str = ""
    public_columns: tuple[str, ...] = ()
    where: str = ""
    columns_left_out: dict[str, str] = field(default_factory=dict)
    description: Description | None = None
    scores: Scores | None = None
    finds: tuple[AtEpsilon, ...] = ()
    hidden: Hidden | None = None
    warnings: tuple[str, ...] = ()
    failure: Failure | None = None

    def __post_init__(self) -> None:
        """Raise ValueError where a run that reached its end has no model, or somebody spent more than is claimed."""
        if self.failure is not None:
            return
        if self.description is None:
            raise ValueError("a finished run needs the description of its model")
        spent, claimed = self.privacy.epsilon_exact, self.privacy.epsilon
        if not math.isfinite(spent) or spent > claimed * (1 + 1e-9):
            raise ValueError(f"a person spent {spent}, more than epsilon = {claimed}")

    @property
    def n_new(self) -> int:
        """Rows that reported in this run."""
        return self.n_private - self.n_earlier

    @property
    def is_by_coins(self) -> bool:
        """True if public coins chose the public rows, so that private people are like public ones."""
        return bool(self.public_rule) and parse_public_rule(self.public_rule).kind == "random"

    @property
    def is_simulation(self) -> bool:
        """Return whether no holder has randomised anything, as the noise has a seed or was added to true counts."""
        return self.privacy.seeded or self.privacy.form == "totals"

    @property
    def label_sd(self) -> float:
        """Return a typical difference between two labels, which decides their number of decimals."""
        return 1.0 if self.description is None else self.description.spread

    @property
    def model(self) -> Description:
        """The description of a run that reached its end."""
        assert self.description is not None
        return self.description

    def to_dict(self) -> dict[str, Any]:
        """As values that `json.dumps` takes."""
        from pydantic import TypeAdapter

        value: dict[str, Any] = TypeAdapter(type(self)).dump_python(self, mode="json")
        return value

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        """Read what `to_dict` wrote. Raises ValueError on an unknown, missing or ill-typed field."""
        from pydantic import TypeAdapter

        return TypeAdapter(cls).validate_python(value)
