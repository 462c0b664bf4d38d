"""Everything the page says, as plain values: the only input of `render`.

Frozen dataclasses that check themselves and turn into JSON and back. No sentence, no layout and no file is
here. A private row never is either: what belongs to the holders' zone is refused when a fact is made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

Zone = Literal["public", "private"]
Evidence = Literal["private", "public", "both", "neighbours"]
StepState = Literal["computed", "cached", "failed"]
Role = Literal["ours", "public", "reference"]

_STRICT = {"extra": "forbid"}


@dataclass(frozen=True, kw_only=True)
class Span:
    """A closed interval on the number line, in the unit of what it belongs to."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

    low: float
    high: float

    def __post_init__(self) -> None:
        """Raise ValueError where the ends are swapped or not finite."""
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise ValueError(f"an interval needs finite ends in order, got {self.low} to {self.high}")


@dataclass(frozen=True, kw_only=True)
class ScoreFacts:
    """One model's figures on the held-back private rows.

    key       "ours", or a baseline: "majority", "public_only" (the same partition, public rows alone),
              "public_tree", "public_forest", "no_noise" (ours with exact totals), "non_private" (a plain tree
              on private rows).
    name      what a person calls it; the page's own words where empty.
    metrics   "accuracy" (required, 0 to 1), and where known "balanced_accuracy", "auc", "log_loss" (nats).
    interval  95 % interval of the accuracy over test rows.
    spread    5 % to 95 % of the accuracy over redraws of the holders' noise; ours only, None where not drawn.
    lead      baselines only: 95 % interval of ours' accuracy less this one's, paired on the same test rows.
              None where not computed: the finding then rests on the two intervals, which is more cautious.
    note      the cap that was in force, such as "fitted on 20,000 of 24,102 public rows"; empty where none was.
    confusion counts [true class][said class], in the order of `Facts.classes`; empty where unknown.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

    key: str
    metrics: dict[str, float]
    name: str = ""
    interval: Span | None = None
    spread: Span | None = None
    lead: Span | None = None
    note: str = ""
    confusion: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError where there is no accuracy between 0 and 1."""
        if not 0 <= self.metrics.get("accuracy", -1) <= 1:
            raise ValueError(f"the score {self.key!r} needs an accuracy between 0 and 1, got {self.metrics}")

    @property
    def accuracy(self) -> float:
        """Share of the held-back rows answered correctly, 0 to 1."""
        return self.metrics["accuracy"]

    @property
    def role(self) -> Role:
        """Which of the page's three colours and shapes it is drawn with."""
        if self.key == "ours":
            return "ours"
        return "public" if self.key.startswith("public") else "reference"


@dataclass(frozen=True, kw_only=True)
class CellFacts:
    """One cell of the partition: what was reported there and what is believed after all.

    A *margin* is in [-1/2, 1/2]. Two classes: the share of the positive class less 1/2. Several classes: half
    the lead of the decided class over the next one. Raw margins may leave that range, as noise does.

    path            the conditions that lead here, in raw units and plain words, one a column ("trip miles
                    below 3.5").
    share_private   estimated share of the private rows in this cell, 0 to 1 (from reports; post-processed).
    share_public    share of the public rows, 0 to 1.
    raw_margin      from the reports of this cell alone; None where they give no usable count.
    raw_sd          standard deviation of raw_margin, the holders' noise included; None where raw_margin is.
    public_margin   from the public rows of this cell alone; None where there is none.
    public_sd       standard deviation of public_margin (sampling); None where public_margin is.
    margin          what is believed after weighting and smoothing.
    margin_sd       posterior standard deviation of `margin`.
    discrepancy     learned private-minus-public difference of the margin; None where none was learned.
    discrepancy_sd  its posterior standard deviation.
    private_weight  share of the evidence (precision) that comes from private reports, 0 to 1; None where not
                    defined.
    evidence        what the belief chiefly rests on: "private", "public", "both", or "neighbours" (smoothed
                    from other cells).
    decision        the class predicted here, a name from `Facts.classes`.
    probability     the model's probability of `decision`, 0 to 1.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

    path: tuple[str, ...]
    share_private: float
    share_public: float
    raw_margin: float | None
    raw_sd: float | None
    margin: float
    margin_sd: float
    evidence: Evidence
    decision: str
    probability: float
    public_margin: float | None = None
    public_sd: float | None = None
    discrepancy: float | None = None
    discrepancy_sd: float | None = None
    private_weight: float | None = None


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """One node of the tree; the root holds the others.

    condition      what leads here from the parent, in raw units and plain words; "" at the root.
    cells          number of cells at or below the node.
    decision, probability, margin, share_private   as in CellFacts, for all rows below.
    margin_sd      as in CellFacts; None at a node that is no cell.
    children       none (a cell) or two.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

    condition: str
    cells: int
    share_private: float
    margin: float
    margin_sd: float | None
    decision: str
    probability: float
    children: tuple[NodeFacts, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CheckFacts:
    """One expectation of the validation.

    name      in words: "fare is between 0 and 500".
    severity  "stop" (a failure ends the run) or "warn".
    detail    for public rows only: what was found, with counts and values. A private check says yes or no.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

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

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

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

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

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

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

    one: float
    one_percent: float
    at_once: int


@dataclass(frozen=True, kw_only=True)
class DiscrepancyFacts:
    """How far private people differ from the public rows, as learned from the totals; margins in [-1/2, 1/2].

    is_found  whether the totals spoke for any difference at all.
    varies    whether it differs from cell to cell; False: the same everywhere.
    mean      posterior mean over all private rows; positive: more of the positive class among private people.
    sd        its posterior standard deviation.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

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

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

    step: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Facts:
    """One run, as the page tells it. Fields after `steps` keep their defaults where a run failed before them.

    Identity
        name            the run's name, from the configuration.
        title           what the data are, in words: "Chicago taxi trips, card against cash".
        noun, nouns     what one row is called, and several: "trip", "trips".
        simulated_data  True where the rows themselves are made up; "simulated" is then said wherever they are
                        named.
        created         ISO 8601 date and time of the run, with offset.
        version         ldptree's version.
        command         the command line that repeats the run.
    What was asked
        estimator, partition, mechanism, oracle
                        as in the configuration, "auto" resolved: "lpct", "cart", "joint", "oue" ("" where the mechanism is not
                        joint).
        lam, prune      as in the configuration: "learned", "smooth".
        target          the label's column.
        classes         label values in the order of the encoding.
        positive        the positive class where there are two; None where more.
    Privacy
        k               number of values a report can take (cells times labels, with one more for "outside").
        p, q            probabilities that a true and another value (bit) is reported, as the integer
                        thresholds give them; None for noise that is added.
        label_p         probability that a label sent apart is the true one; None where it is not sent apart.
        noise_sd        standard deviation of the noise added to each number of a report; None where none is.
        epsilon         claimed, for all of a holder's reports together.
        epsilon_exact   recomputed from the integer thresholds in use, rounded up.
        epsilon_spent   what the protocol of this run has each holder spend, as claimed; not a sum over runs. 0 where
                        nothing was drawn.
        rounds          reports per holder.
        largest_spend   the most any holder has spent on everything asked in this work folder (of seeded runs: with this
                        noise seed), as the ledger has it; 0 where it was not asked.
        n_questions     how many questions that was spent on.
        lifetime_epsilon
                        the most that anyone may spend, the smallest ever stated; None where none was.
        holder          "row" (each row is declared to be a person's only one) or the column that names the
                        holder.
        public_rule     which rows are public, as configured.
        public_columns  columns that are public by construction (those of the public rule).
        where           the filter that decides which rows take part at all; "" where none. Taking part
                        reveals it.
        seeded          True where the holders' noise came from a seed: a simulation that protects nobody.
        form            "reports" (one written for each holder) or "totals" (a simulation: the sums drawn from the
                        true counts, no report written).
        influence       what dishonest holders can do; None where the oracle does not know.
    Sizes
        n_private       private rows that reported; in a campaign those of earlier runs too.
        n_public        public rows that were learned from.
        n_test          private rows held back.
        n_scored        how many of them were scored; 0 with `evaluate = false`.
        n_features      features after the encoding.
        n_cells, depth  cells of the partition, and the depth of the deepest.
    Findings
        ours, baselines scores on held-back rows; None and () with `evaluate = false`.
        redraws         how many redraws of the noise the spread is over.
        cells           every cell, in any order.
        tree            the root.
        discrepancy     None where lam is not "learned".
        duplicates      exact copies between training and test rows; None where not counted.
    Making
        checks, rows    the validation and the counts, of both zones.
        steps           in the order of the run.
        seconds         wall time of the run up to the page.
        peak_rss_mb     peak memory of the largest process, in MB; 0 where unknown.
        cores           processor cores the run could use; 0 where unknown.
        config          the whole configuration flattened, "privacy.epsilon" to "2.0".
        versions        library to version.
        digests         artifact to hex digest; nothing of the holders' zone but keyed hashes.
        warnings        sentences to read before relying on the result.
        failure         None for a run that reached its end.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

    name: str
    title: str
    simulated_data: bool
    created: str
    version: str
    command: str
    estimator: str
    epsilon: float
    target: str
    checks: tuple[CheckFacts, ...]
    rows: tuple[RowFacts, ...]
    steps: tuple[StepFacts, ...]
    noun: str = "row"
    nouns: str = "rows"
    partition: str = ""
    mechanism: str = ""
    oracle: str = ""
    lam: str = ""
    prune: str = ""
    classes: tuple[str, ...] = ()
    positive: str | None = None
    k: int = 0
    p: float | None = None
    q: float | None = None
    label_p: float | None = None
    noise_sd: float | None = None
    epsilon_exact: float = 0.0
    epsilon_spent: float = 0.0
    rounds: int = 1
    largest_spend: float = 0.0
    n_questions: int = 0
    lifetime_epsilon: float | None = None
    holder: str = "row"
    public_rule: str = ""
    public_columns: tuple[str, ...] = ()
    where: str = ""
    seeded: bool = False
    form: Literal["reports", "totals"] = "reports"
    influence: InfluenceFacts | None = None
    n_private: int = 0
    n_public: int = 0
    n_test: int = 0
    n_scored: int = 0
    n_features: int = 0
    n_cells: int = 0
    depth: int = 0
    ours: ScoreFacts | None = None
    baselines: tuple[ScoreFacts, ...] = ()
    redraws: int = 20
    cells: tuple[CellFacts, ...] = ()
    tree: NodeFacts | None = None
    discrepancy: DiscrepancyFacts | None = None
    duplicates: int | None = None
    seconds: float = 0.0
    peak_rss_mb: float = 0.0
    cores: int = 0
    config: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    failure: FailureFacts | None = None

    def __post_init__(self) -> None:
        """Raise ValueError where a run that reached its end has no model to tell of."""
        if self.failure is None and (self.tree is None or len(self.cells) != self.n_cells or not self.cells):
            raise ValueError(
                f"a finished run needs its tree and all of its {self.n_cells} cells, got {len(self.cells)}"
            )
        if self.positive is not None and self.positive not in self.classes:
            raise ValueError(f"the positive class {self.positive!r} is not among the classes {self.classes}")

    @property
    def is_evaluated(self) -> bool:
        """Whether private rows were held back and scored."""
        return self.ours is not None

    @property
    def scores(self) -> tuple[ScoreFacts, ...]:
        """Baselines and ours in the order a reader compares them: references, public models, ours, limits."""
        order = ("majority", "public_only", "public_tree", "public_forest", "ours", "no_noise", "non_private")
        every = (*self.baselines, *((self.ours,) if self.ours else ()))
        rank = {key: i for i, key in enumerate(order)}
        return tuple(sorted(every, key=lambda score: rank.get(score.key, len(order))))

    def baseline(self, key: str) -> ScoreFacts | None:
        """The baseline of that key, or None where it was not fitted."""
        return next((score for score in self.baselines if score.key == key), None)

    def to_dict(self) -> dict[str, Any]:
        """As values that `json.dumps` takes."""
        from pydantic import TypeAdapter

        value: dict[str, Any] = TypeAdapter(Facts).dump_python(self, mode="json")
        return value

    @staticmethod
    def from_dict(value: dict[str, Any]) -> Facts:
        """The facts that `to_dict` wrote; raises ValueError on an unknown, missing or ill-typed field."""
        from pydantic import TypeAdapter

        return TypeAdapter(Facts).validate_python(value)
