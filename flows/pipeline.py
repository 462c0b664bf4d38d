"""The picture of a run, once: every step by name, what it is called with, and what it left. `executor` says how steps come about:
as Prefect tasks (`train_flow`), plainly (tests), or only looked for (`plan`).

    source -> types -> read (a part of the files) -> ingest -> count (a part) -> validate
        -> split (who reports) -> cut (some shards) -> scale
        -> [ partition (a question) -> perturb (a shard's reports) -> add (of some shards) -> aggregate ]*
        -> prune (a model) -> evaluate -> report

A step over rows is made once for each part of them; the step after it puts together what the parts left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, wraps
from itertools import count
from typing import Any, cast

from flows.budget import Spent
from flows.campaign import Terms
from flows.conversation import NOTHING, Conversation, Round
from flows.executors import CachedOnly, Call, Executor, NotComputed, Pending, Shards
from flows.respondents.inbox import Inbox
from flows.respondents.own_holders import OwnHolders
from flows.respondents.respondents import Respondents
from schemas.config import RunConfig
from schemas.manifest import Manifest, Record, StoredTranscript
from storage.ledger.campaigns import AskedSince
from storage.store import Store
from tasks.answers.aggregate import aggregate
from tasks.data import source
from tasks.data.ingest import ingest, types
from tasks.data.ingest_plan import RowRules
from tasks.data.read import read
from tasks.data.scale import scale
from tasks.data.validate import validate
from tasks.data.violations import count as count_violations
from tasks.evaluate import evaluate
from tasks.holders.cut import cut, parts_to_cut
from tasks.holders.show import show
from tasks.holders.split import RoleRules, split
from tasks.learning import Asking, fit, partition
from tasks.progress import Timeline
from tasks.report import report
from tasks.step import NotInKey, StepTask


def step_of(task: StepTask) -> Callable[[Callable[[Any], Call]], cached_property[Record]]:
    """Make a step from the method that returns its inputs. It is found or made once, at its first use."""

    def decorate(inputs: Callable[[Any], Call]) -> cached_property[Record]:
        @wraps(inputs)
        def run(pipeline: Pipeline) -> Record:
            return pipeline.made(pipeline.executor.step(task, lambda: inputs(pipeline)))

        return cached_property(run)

    return decorate


@dataclass(eq=False, kw_only=True)
class Pipeline:
    """One run of `config` in `store`. Each step is found or made at its first use, and kept.

    timeline, command  for the page: when steps ran, and the command line that repeats the run.
    name               of the run's folder, below `runs` in the work folder.
    given              the terms, where they are not those of the store.
    files              the raw files, where they were looked at already.
    records            of every step so far.
    may_have_asked     whether holders were charged, or were about to be.
    """

    store: Store
    config: RunConfig
    executor: Executor
    timeline: Timeline = field(default_factory=Timeline)
    command: str = ""
    name: str = "run"
    given: Terms | None = None
    files: Manifest | None = None
    records: list[Record] = field(default_factory=list, init=False)
    may_have_asked: bool = field(default=False, init=False)

    def walk(self) -> None:
        """Every step in its order."""
        if not self.named.dataset.path:
            _ = self.source
        _ = self.typed, self.read, self.ingested, self.counted, self.checked
        self.respondents.find()
        _ = self.scaled
        if self.config.model.in_rounds:
            _ = self.shown
        if self.conversation.is_unanswered:
            return
        _ = self.model
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
            return first.terms if first.published["question"] == terms.protocol else terms
        except NotComputed:
            return terms

    def _as_first(self, terms: Terms, raw: Manifest) -> Any:
        """The run as the campaign's first one, before it found anything out; only looked for."""
        config = terms.written or terms.config
        first = replace(terms, config=config, dataset=config.dataset, protocol=None, written=None)
        return type(self)(
            store=self.store, config=config, executor=CachedOnly(self.store), given=first, files=raw
        )

    @cached_property
    def terms(self) -> Terms:
        """The terms, once ingest has told what the configuration leaves to public rows."""
        ingested = self.ingested
        return self.settled.with_inferred(ingested) if isinstance(ingested, Record) else self.settled

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

    @step_of(types)
    def typed(self) -> Call:
        """Raw files, and the second file of a public rule that names one."""
        terms = self.settled
        return {
            "raw": self.raw,
            "public_raw": self._public_raw,
            "rules": _row_rules(terms),
            **_label(terms),
        }

    @cached_property
    def _public_raw(self) -> Manifest | None:
        return source.public_files(self.store, self.settled.dataset)

    @cached_property
    def read(self) -> list[Record]:
        """The typed rows of each part of the raw files."""
        return self.each(read, self._of_read)

    def _of_read(self) -> tuple[Call, list[Call]]:
        typed = self.typed
        lists = [(self.raw, 0, False)]
        if self._public_raw is not None:
            lists.append((self._public_raw, len(self.raw.files), True))
        parts = [part for files in lists for part in source.parts(self.store, *files, typed["pieces"])]
        return {"rules": _row_rules(self.settled), "typed": typed.facts}, parts

    @cached_property
    def ingested(self) -> Record:
        """What all parts are, with their rows."""
        whole = self.made(self.executor.step(ingest, self._of_ingest))
        return self._with_shards(whole, self.read, "public", "private")

    def _of_ingest(self) -> Call:
        return {
            "counts": [part["counts"] for part in self.read],
            "rules": _row_rules(self.settled),
            "typed": self.typed.facts,
        }

    def each(self, task: StepTask, inputs: Shards, number: int = 0) -> list[Record]:
        """The records of a step that is made once for each part."""
        records: list[Record] = self.executor.shards(task, inputs, number)
        if isinstance(records, list):
            self.records.extend(records)
        return records

    def _with_shards(self, whole: Any, shards: Any, *parts: str) -> Record:
        """A record with what its shards left, each part as one artifact."""
        if not isinstance(whole, Record) or not isinstance(shards, list):
            return cast("Record", Pending())
        gathered = {part: self.store.gather([shard[part] for shard in shards]) for part in parts}
        return whole.model_copy(update={"parts": gathered | whole.parts})

    @cached_property
    def counted(self) -> list[Record]:
        """How many private rows of each part are not what is expected."""
        return self.each(count_violations, self._of_count)

    def _of_count(self) -> tuple[Call, list[Call]]:
        parts = [part for part in self.read if part["private"].rows]
        return self._expected, [{"private": part["private"]} for part in parts or self.read[:1]]

    @property
    def _expected(self) -> Call:
        """Of which rows what is expected. Raises NotComputed."""
        dataset = self.terms.dataset
        return {
            "suite": source.suite_file(self.store, dataset),
            "dataset": dataset.without_words(),
            "columns": self.ingested.facts["columns"],
        }

    @step_of(validate)
    def checked(self) -> Call:
        """Public rows, what was counted of private ones, and an edited suite where one is named."""
        return self._expected | {
            "public": self.ingested["public"],
            "private": self.ingested["private"],
            "release": _release_of_checks(self.terms),
            "counts": [part["counts"] for part in self.counted],
        }

    @step_of(split)
    def assigned(self) -> Call:
        """Rows of both zones, public coins, and who a campaign asked before. Raises ProtocolMismatch (`Terms.check_names`)."""
        terms = self.terms
        terms.check_names(self.ingested)
        config, data = terms.config, terms.dataset
        rules = RoleRules(
            holder=data.holder,
            seed=config.seed,
            test_fraction=data.test_fraction if config.evaluate else 0.0,
            noise_seed=config.noise_seed,
            campaign=config.campaign.name,
            asked_before=terms.asked_before(self.raw),
            **({"is_public_whole": True} if data.holder_column and data.rule.kind == "first" else {}),
        )
        parts = {part: self.ingested[part] for part in ("public", "private", "sources")}
        return {**parts, "rules": rules}

    @cached_property
    def held(self) -> Record:
        """Who reports and who is held back, with their shards."""
        return self._with_shards(self.assigned, self.each(cut, self._of_cut), "train", "test")

    def _of_cut(self) -> tuple[Call, list[Call]]:
        columns = [*self.ingested.facts["features"], self.terms.dataset.target]
        of_all = {"columns": columns, "is_seeded": self.terms.config.is_seeded}
        return of_all, parts_to_cut(self.ingested["private"], self.assigned["roles"])

    @step_of(scale)
    def scaled(self) -> Call:
        """Public rows."""
        terms = self.terms
        config = terms.config
        return {
            "public": self.ingested["public"],
            "features": self._features,
            "dataset": terms.dataset.without_words(),
            "frozen": terms.protocol,
            **_label(terms),
            **(
                {"label_range": getattr(config.model.settings, "label_range", None)}
                if config.is_numeric
                else {}
            ),
        }

    @property
    def _features(self) -> list[str]:
        """The columns that are features. Raises NotComputed."""
        masks = self.terms.config.features.masks
        return [name for name in self.ingested.facts["features"] if name not in masks]

    @step_of(show)
    def shown(self) -> Call:
        """The holders' shards, and what they protect."""
        config = self.terms.config
        return {
            "encoding": self.scaled["encoding"],
            "train": self.held["train"],
            "features": config.features,
            "release": config.mask_release,
            "is_seeded": config.is_seeded,
            "allowed": NotInKey(self._features),
        }

    # The conversation: asked, charged, answered and added up, until nothing is left to ask.

    @cached_property
    def respondents(self) -> Respondents:
        """Those who are asked."""
        return Inbox(self) if self.config.is_collection else OwnHolders(self)

    @cached_property
    def conversation(self) -> Conversation:
        """Every question on what was published before it; nobody answers before everybody is charged."""
        while True:
            try:
                return self._converse()
            except AskedSince:
                self._begin_again()

    def _converse(self) -> Conversation:
        rounds: list[Round] = []
        spent: Spent | None = None
        for number in count(1):
            asked = self.ask(rounds)
            if asked is None:
                return Conversation(rounds, spent or NOTHING)
            if number > 1 and not isinstance(asked.asked, Record):
                break  # whether a round follows is not known
            spent = self.respondents.charge(asked, spent)
            answered = replace(asked, reports=self.respondents.answer(asked))
            if not self.respondents.is_answered(answered):
                return Conversation([*rounds, answered], spent)
            rounds.append(replace(answered, left=self.add_up(answered)))
            if not isinstance(rounds[-1].left, Record):
                break
        return Conversation(rounds, spent or NOTHING, is_open=True)

    def transcript(self, rounds: Sequence[Round]) -> StoredTranscript:
        """All that is public after these rounds. Raises NotComputed."""
        return StoredTranscript(
            encoding=self.scaled["encoding"],
            scaled=self.scaled["scaled"],
            shown=self.shown["shown"] if self.config.model.in_rounds else None,
            rounds=tuple(turn.stored for turn in rounds),
        )

    @property
    def asking(self) -> Asking:
        """Inputs of every question, besides what is public. Raises NotComputed."""
        terms = self.terms
        config = terms.config
        return Asking(
            estimator=config.model.estimator,
            settings=config.model.settings.for_questions,
            epsilon=config.privacy.epsilon,
            mechanism=config.privacy.mechanism,
            outside=config.privacy.outside,
            holder=terms.dataset.holder,
            target=terms.dataset.target,
            has_positive=config.dataset.positive is not None,
            campaign=config.published_as,
            seed=config.seed,
            simulation=config.is_seeded,
        )

    def of_partition(self, rounds: Sequence[Round]) -> Call:
        """Return what was published so far, how many holders will be asked, and what they are promised."""
        return {
            "transcript": self.transcript(rounds),
            "asking": self.asking,
            "n_private": self.respondents.n_asked,
            "frozen": self.terms.protocol,
        }

    @step_of(partition)
    def published(self) -> Call:
        """Before any answer."""
        return self.of_partition([])

    def ask(self, rounds: Sequence[Round]) -> Round | None:
        """The next question, if there may be one."""
        if rounds and (self.terms.config.asks_once or rounds[-1].is_last):
            return None
        if not rounds and not self.config.model.in_rounds:
            return Round(1, self.published, lambda: self.protocol)
        number = len(rounds) + 1
        asked = self.made(self.executor.step(partition, lambda: self.of_partition(rounds), number))
        if isinstance(asked, Record) and not asked.facts["is_left"]:
            return None
        return Round(number, asked, lambda: asked["question"])

    @property
    def protocol(self) -> Manifest:
        """The first question; in a campaign the first one published. Raises NotComputed."""
        return self.terms.protocol or self.published["question"]

    def _begin_again(self) -> None:
        """Forget every step so far, to choose anew who is asked. Steps that stay the same are found in the store."""
        self.records.clear()
        for name in [*self.__dict__]:
            if isinstance(getattr(type(self), name, None), cached_property):
                del self.__dict__[name]

    def add_up(self, answered: Round) -> Record:
        """Add up the reports of a round."""
        sums = self.respondents.sums(answered)
        call = partial(self.of_aggregate, answered, sums)
        return self.made(self.executor.step(aggregate, call, answered.number))

    def of_aggregate(self, answered: Round, sums: Sequence[Record]) -> Call:
        """Every report, with what they add up to or what its holders showed."""
        call = {
            "question": answered.question(),
            "reports": self.respondents.received(answered),
            "round_number": answered.number,
        }
        if self.config.model.in_rounds:
            return call | {"shown": self.shown["shown"]}
        return call | {"sums": [part["sums"] for part in sums]}

    # What the family makes of it.

    @step_of(fit)
    def model(self) -> Call:
        """All that was published."""
        return {
            "transcript": self.transcript(self.conversation.whole),
            "asking": self.asking,
            "reading": self.terms.config.model.settings.for_model,
        }

    @step_of(evaluate)
    def scores(self) -> Call:
        """The model, and the private rows that only a simulation has."""
        config = self.terms.config
        return {
            "transcript": self.transcript(self.conversation.whole),
            "asking": self.asking,
            "reading": config.model.settings.for_model,
            "model": self.model["model"],
            "train": self.held["train"],
            "test": self.held["test"],
            "evaluation": config.evaluation,
            "noise_seed": config.noise_seed,
        }

    @step_of(report)
    def page(self) -> Call:
        """Every question, what earlier steps left, and their facts."""
        talk, config = self.conversation, self.terms.config
        artifacts = {"checks": self.checked["checks"], "scaled": self.scaled["scaled"], **self.model.parts}
        if config.evaluate:
            artifacts["scores"] = self.scores["scores"]
        if config.model.in_rounds:
            artifacts["shown"] = self.shown["shown"]
        else:
            last = talk.last.stored
            artifacts["totals"] = last.answers
            if last.evidence is not None:
                artifacts["evidence"] = last.evidence
        return {
            "config": config,
            "questions": [turn.question() for turn in talk.whole],
            "artifacts": artifacts,
            "facts": {
                "ingested": self.ingested.facts,
                "held": self.respondents.facts,
                "scaled": self.scaled.facts,
                "spent": talk.spending,
                "form": self.respondents.form(talk.last),
                "why_chosen": self.terms.why_chosen,
                "n_earlier": self.terms.count_earlier(self.raw),
            },
            "timeline": NotInKey(self.timeline),
            "command": NotInKey(self.command),
        }


def _row_rules(terms: Terms) -> RowRules:
    """Return how to read each row, and what holders protect if some features are public. They protect the label, and
    all features too if the mask is not released.
    """
    config, features = terms.config, terms.config.features
    rules = RowRules(dataset=terms.dataset.without_words(), seed=config.seed)
    if config.is_collection:
        return rules.model_copy(update={"all_public": True})
    if not config.model.in_rounds:
        return rules
    protected = {*features.private, *features.protects, terms.dataset.target}
    if config.mask_release == "all":
        return rules.model_copy(update={"protected": tuple(sorted(protected))})
    every = {"protected": tuple(sorted(protected | features.masks)), "every_feature": True}
    return rules.model_copy(update=every)


def _label(terms: Terms) -> Call:
    """That the label is a number, where it is; None where public rows are to tell."""
    known: dict[str | None, Call] = {"number": {"numeric": True}, "class": {}, None: {"numeric": None}}
    return known[terms.config.label]


def _release_of_checks(terms: Terms) -> int | None:
    """Return how many answers about private rows may leave their holders, or None for any number, in a simulation that
    protects nobody.
    """
    if terms.config.is_seeded:
        return None
    return terms.config.privacy.max_released_checks if terms.dataset.release_checks else 0
