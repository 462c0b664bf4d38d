"""What a page says of a whole run, whatever kind its label is.

No sentence, no layout and no file is here. The two kinds are in `facts` (classes) and `number_facts` (numbers).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from tasks.page.basic_facts import (
    STRICT,
    CheckFacts,
    DiscrepancyFacts,
    FailureFacts,
    InfluenceFacts,
    RowFacts,
    StepFacts,
)
from tasks.page.model_facts import BranchFacts, ModelScore, PlaceFacts, in_order


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """One run, as any page tells it. Fields after `steps` keep their defaults where a run failed before them.

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
        label_kind      what it was taken for: "class" or "number"; "" where a run failed before that was known.
        classes         label values in the order of the encoding; of a number, the levels that a report can name.
    Privacy
        k               number of values a report can take (cells times labels, with one more for "outside").
        p, q            probabilities that a true and another value (bit) is reported, as the integer
                        thresholds give them; None for noise that is added.
        label_p         probability that a label sent apart, or beside its kind in a set, is the true one; None where none is.
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
        columns_left_out raw columns that are no features, with what public rows show them to be.
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
        n_cells, depth  cells of the partition that reports were asked about, and the depth of the deepest.
    Findings
        ours, baselines scores on held-back rows; None and () with `evaluate = false`.
        redraws         how many redraws of the noise the spread is over.
        cells           every cell, in any order.
        tree            the root.
        discrepancy     None where lam is not "learned", or there is no public row.
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

    __pydantic_config__: ClassVar[dict[str, str]] = STRICT
    of_one_tree: ClassVar[bool] = True

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
    columns_left_out: dict[str, str] = field(default_factory=dict)
    where: str = ""
    label_kind: str = ""
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
    ours: ModelScore | None = None
    baselines: tuple[ModelScore, ...] = ()
    redraws: int = 20
    cells: tuple[PlaceFacts, ...] = ()
    tree: BranchFacts | None = None
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
        if (
            self.of_one_tree
            and self.failure is None
            and (self.tree is None or not self.has_all_cells or not self.cells)
        ):
            raise ValueError(
                f"a finished run needs its tree and all of its {self.n_cells} cells, got {len(self.cells)}"
            )

    @property
    def has_all_cells(self) -> bool:
        """Whether every cell of the partition is told of."""
        return len(self.cells) == self.n_cells

    @property
    def is_evaluated(self) -> bool:
        """Whether private rows were held back and scored."""
        return self.ours is not None

    @property
    def scores(self) -> tuple[ModelScore, ...]:
        """Baselines and ours in the order a reader compares them: references, public models, ours, limits."""
        return in_order(self.ours, self.baselines)

    def baseline(self, key: str) -> ModelScore | None:
        """The baseline of that key, or None where it was not fitted."""
        return next((score for score in self.baselines if score.key == key), None)

    def to_dict(self) -> dict[str, Any]:
        """As values that `json.dumps` takes."""
        from pydantic import TypeAdapter

        value: dict[str, Any] = TypeAdapter(type(self)).dump_python(self, mode="json")
        return value

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        """The facts that `to_dict` wrote; raises ValueError on an unknown, missing or ill-typed field."""
        from pydantic import TypeAdapter

        return TypeAdapter(cls).validate_python(value)
