"""The picture of a run, once: every step by name, what it is called with, and what it left. `execute` says how steps come about:
as Prefect tasks (`train_flow`), plainly (tests), or only looked for (`plan`).

    source -> ingest -> validate -> split -> scale -> [ question -> reports (shards) -> what they say ]*
        -> model -> scores -> page
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from itertools import count
from typing import Any

from flows.asked import known_apart
from flows.budget import Spent
from flows.campaign import Terms
from flows.execute import Call, Execute, Found, NotComputed
from schemas.config import RunConfig
from schemas.manifest import Manifest, Record
from storage.store import Store
from tasks.data import source
from tasks.data.ingest import ingest
from tasks.data.scale import scale
from tasks.data.split import split
from tasks.data.validate import validate
from tasks.progress import Timeline
from tasks.report import report
from tasks.step import NotInKey, StepTask

NOTHING = Spent(largest=0.0, questions=0, cap=None)


def step_of(task: StepTask) -> Callable[[Callable[[Any], Call]], cached_property[Record]]:
    """A step of the picture, from the method that says what it is called with: found or made once, when it is asked for."""

    def decorate(inputs: Callable[[Any], Call]) -> cached_property[Record]:
        @wraps(inputs)
        def run(pipeline: Pipeline) -> Record:
            return pipeline.made(pipeline.execute.step(task, lambda: inputs(pipeline)))

        return cached_property(run)

    return decorate


@dataclass(frozen=True)
class Round:
    """One question and what came of it.

    number    of the round, from 1.
    asked     the record that the question stands in.
    question  the question itself, once it is known.
    reports   everybody's, a record a shard.
    left      what the reports say together: totals, or a transcript.
    """

    number: int
    asked: Any
    question: Callable[[], Manifest]
    reports: Sequence[Record] = ()
    left: Any = None


@dataclass(frozen=True)
class Conversation:
    """The rounds of a run, and what they spent.

    is_open  whether a question may follow that is not known yet: only where steps are looked for.
    """

    rounds: Sequence[Round]
    spent: Spent
    is_open: bool = False

    @property
    def whole(self) -> Sequence[Round]:
        """All rounds. Raises NotComputed while another may follow."""
        if self.is_open:
            raise NotComputed
        return self.rounds

    @property
    def spending(self) -> Call:
        """What was spent, as the page is told. Raises NotComputed."""
        return {"largest": self.spent.largest, "questions": self.spent.questions, "cap": self.spent.cap}

    @property
    def last(self) -> Round:
        """The last round. Raises NotComputed while another may follow."""
        return self.whole[-1]


@dataclass(eq=False, kw_only=True)
class Pipeline(ABC):
    """One run of `config` in `store`, as far as it is asked for: each step is made when it is first needed, and kept.

    timeline, command  for the page: when steps ran, and the command line that repeats the run.
    given              the terms, where they are not those of the store.
    files              the raw files, where they were looked at already.
    records            of every step so far.
    """

    store: Store
    config: RunConfig
    execute: Execute
    timeline: Timeline = field(default_factory=Timeline)
    command: str = ""
    given: Terms | None = None
    files: Manifest | None = None
    records: list[Record] = field(default_factory=list, init=False)

    def walk(self) -> None:
        """Every step in its order."""
        if not self.named.dataset.path:
            _ = self.source
        _ = self.ingested, self.checked, self.held, self.scaled
        self.before_questions()
        _ = self.conversation, self.model
        if self.config.evaluate:
            _ = self.scores
        _ = self.page

    def made(self, record: Record) -> Record:
        """Keep what a step left."""
        if isinstance(record, Record):
            self.records.append(record)
        return record

    # What a run is called with.

    @cached_property
    def named(self) -> Terms:
        """The terms that the configuration and a campaign name."""
        return self.given or Terms.of(self.store, self.config)

    @cached_property
    def settled(self) -> Terms:
        """The terms that steps are called with.

        A campaign's later runs are called with what the first one found out. The first one itself, given again, was not: it
        is known by its artifacts, and finds them.
        """
        terms = self.named
        if terms.campaign is None or terms.protocol is None:
            return terms
        try:
            first = self._as_first(terms, self.raw)
            frozen = terms.campaign.frozen()
            if frozen is None or first.ingested.facts["types"] != frozen.terms["types"]:
                return terms
            return first.terms if first.published["protocol"] == terms.protocol else terms
        except NotComputed:
            return terms

    def _as_first(self, terms: Terms, raw: Manifest) -> Any:
        """The run as the campaign's first one, before it found anything out; only looked for."""
        data = terms.config.dataset
        if terms.is_label_frozen:
            data = data.model_copy(update={"label": None})
        config = terms.config.model_copy(update={"dataset": data})
        first = replace(terms, config=config, dataset=data, protocol=None, is_label_frozen=False)
        return type(self)(store=self.store, config=config, execute=Found(self.store), given=first, files=raw)

    @cached_property
    def terms(self) -> Terms:
        """The terms, once ingest has told what the label is."""
        found = self.ingested
        return self.settled.with_label_of(found) if isinstance(found, Record) else self.settled

    @cached_property
    def raw(self) -> Manifest:
        """The raw files, in a campaign those asked before first."""
        if self.files is not None:
            return self.files
        data = self.named.dataset
        return self.named.in_order(source.files(self.store, data.path) if data.path else self.source["raw"])

    # The steps that every run begins with.

    @step_of(source.simulate)
    def source(self) -> Call:
        """Simulated raw files."""
        data = self.named.dataset
        return {"rows": source.rows_to_make(data), "seed": self.config.seed}

    @step_of(ingest)
    def ingested(self) -> Call:
        """Raw files, and the second file of a public rule that names one."""
        terms = self.settled
        return {
            "raw": self.raw,
            "public_raw": source.public_files(self.store, terms.dataset),
            "dataset": terms.dataset.without_words(),
            "seed": terms.config.seed,
            **_label(terms),
            **_protected(terms),
        }

    @step_of(validate)
    def checked(self) -> Call:
        """Both zones, and an edited suite where one is named."""
        terms = self.terms
        return {
            "public": self.ingested["public"],
            "private": self.ingested["private"],
            "suite": source.suite_file(self.store, terms.dataset),
            "dataset": terms.dataset.without_words(),
            "columns": self.ingested.facts["columns"],
            "release": _release_of_checks(terms),
        }

    @step_of(split)
    def held(self) -> Call:
        """Private rows, public coins, and who a campaign asked before. Raises ProtocolMismatch (`Terms.check_names`)."""
        terms = self.terms
        terms.check_names(self.ingested)
        config, data = terms.config, terms.dataset
        return {
            "private": self.ingested["private"],
            "rows": self.ingested["rows"],
            "columns": [*self.ingested.facts["features"], data.target],
            "holder": data.holder,
            "seed": config.seed,
            "test_fraction": data.test_fraction if config.evaluate else 0.0,
            "noise_seed": config.simulation.noise_seed,
            "campaign": config.campaign.name,
            "asked_before": terms.asked_before(self.raw),
        }

    @step_of(scale)
    def scaled(self) -> Call:
        """Public rows."""
        terms = self.terms
        config, masks = terms.config, terms.config.features.masks
        return {
            "public": self.ingested["public"],
            "features": [name for name in self.ingested.facts["features"] if name not in masks],
            "dataset": terms.dataset.without_words(),
            "frozen": terms.protocol,
            **_label(terms),
            **({"label_range": config.model.settings.get("label_range")} if config.is_numeric else {}),
        }

    # The conversation: asked, charged, answered and added up, until nothing is left to ask.

    @cached_property
    def conversation(self) -> Conversation:
        """Every question on what was published before it; nobody answers before everybody is charged."""
        rounds: list[Round] = []
        spent: Spent | None = None
        for number in count(1):
            asked = self.ask(rounds)
            if asked is None:
                return Conversation(rounds, spent or NOTHING)
            if number > 1 and not isinstance(asked.asked, Record):
                break  # whether a round follows is not known
            spent = self.charge(asked, spent)
            answered = replace(asked, reports=self.answer(asked))
            rounds.append(replace(answered, left=self.add_up(answered)))
            if not isinstance(rounds[-1].left, Record):
                break
        return Conversation(rounds, spent or NOTHING, is_open=True)

    @cached_property
    def shards(self) -> list[Call]:
        """Each shard of who is asked, and which it is of those that hold the same."""
        return self.own_shards()

    def own_shards(self) -> list[Call]:
        """Each shard, in the order of their names."""
        apart = known_apart(self.store, self.terms.config, self.held)
        return [{"shard": shard, "alike": NotInKey(number)} for shard, number in apart]

    @abstractmethod
    def before_questions(self) -> None:
        """Have what the first question rests on."""

    @abstractmethod
    def ask(self, rounds: Sequence[Round]) -> Round | None:
        """The next question; None where nothing is left to ask."""

    @abstractmethod
    def charge(self, asked: Round, before: Spent | None) -> Spent:
        """What is spent before the question is answered. `before`: what was, before the last one. Raises BudgetError."""

    @abstractmethod
    def answer(self, asked: Round) -> Sequence[Record]:
        """Everybody's reports to one question, each drawn once."""

    @abstractmethod
    def add_up(self, answered: Round) -> Record:
        """What the reports of a round say together."""

    # What a family makes of it.

    @property
    @abstractmethod
    def model(self) -> Record:
        """What was learned."""

    @property
    @abstractmethod
    def scores(self) -> Record:
        """What a simulation measures of it."""

    @step_of(report)
    def page(self) -> Call:
        """Every question, what earlier steps left, and their facts."""
        talk = self.conversation
        artifacts = {"checks": self.checked["checks"], "scaled": self.scaled["scaled"], **self.of_model()}
        if self.terms.config.evaluate:
            artifacts["scores"] = self.scores["scores"]
        return {
            "config": self.terms.config,
            "questions": [one.question() for one in talk.whole],
            "artifacts": artifacts,
            "facts": {
                "ingested": self.ingested.facts,
                "held": self.held.facts,
                "scaled": self.scaled.facts,
                "spent": talk.spending,
                "form": self.form,
            },
            "timeline": NotInKey(self.timeline),
            "command": NotInKey(self.command),
        }

    @property
    def form(self) -> str:
        """Whether reports are written, or exact totals drawn."""
        return "reports"

    @abstractmethod
    def of_model(self) -> dict[str, Manifest]:
        """The model, and the artifacts beside which it describes itself."""


def _protected(terms: Terms) -> Call:
    """What holders protect, where some features are public: the label always; where the mask is not released, that and all
    features.
    """
    config, features = terms.config, terms.config.features
    if not config.model.in_rounds:
        return {}
    protected = {*features.private, *features.protects, terms.dataset.target}
    if config.mask_release == "all":
        return {"protected": sorted(protected)}
    return {"protected": sorted(protected | features.masks), "every_feature": True}


def _label(terms: Terms) -> Call:
    """That the label is a number, where it is; None where public rows are to tell."""
    known: dict[str | None, Call] = {"number": {"numeric": True}, "class": {}, None: {"numeric": None}}
    return known[terms.config.label]


def _release_of_checks(terms: Terms) -> int | None:
    """How many answers about private rows may leave their holders: None is any number, in a simulation, which protects nobody."""
    if terms.config.is_seeded:
        return None
    return terms.config.privacy.max_released_checks if terms.dataset.release_checks else 0
