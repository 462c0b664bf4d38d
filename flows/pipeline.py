"""The picture of a run, once: every step by name, what it is called with, and what it left. `execute` says how steps come about:
as Prefect tasks (`train_flow`), plainly (tests), or only looked for (`plan`).

    source -> ingest -> validate -> split -> scale
        -> [ partition (a question) -> perturb (a shard's reports) -> aggregate (what they say together) ]*
        -> prune (a model) -> evaluate -> report
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from itertools import accumulate, count
from typing import Any

from flows.asked import shards_with_copy_index
from flows.budget import (
    UNKNOWN_CONVERSATION,
    ConversationCost,
    Cost,
    QuestionCost,
    Spent,
    TrialCost,
    conversation_key,
)
from flows.campaign import Terms
from flows.conversation import NOTHING, Conversation, Round
from flows.execute import Call, Execute, Found, NotComputed, known
from schemas.config import RunConfig
from schemas.manifest import Manifest, Record, StoredTranscript
from storage.ledger.campaigns import AskedSince
from storage.store import Store
from tasks.answers.add import add, parts_of
from tasks.answers.aggregate import aggregate
from tasks.data import source, violations
from tasks.data.ingest import ingest, types
from tasks.data.ingest_plan import RowRules
from tasks.data.read import read
from tasks.data.scale import scale
from tasks.data.validate import validate
from tasks.evaluate import evaluate
from tasks.fit import fit
from tasks.holders import stretches
from tasks.holders.roles import RoleRules, roles
from tasks.holders.show import in_order, show
from tasks.holders.split import split
from tasks.learning import Asking
from tasks.partition import partition
from tasks.parts import is_one_part, shards_in_parts
from tasks.perturb import Collecting, Form, Showing, perturb
from tasks.progress import Timeline
from tasks.report import report
from tasks.scoring.known import known as known_of_shards
from tasks.step import NotInKey, StepTask


def step_of(task: StepTask) -> Callable[[Callable[[Any], Call]], cached_property[Record]]:
    """A step of the picture, from the method that says what it is called with: found or made once, when it is asked for."""

    def decorate(inputs: Callable[[Any], Call]) -> cached_property[Record]:
        @wraps(inputs)
        def run(pipeline: Pipeline) -> Record:
            return pipeline.made(pipeline.execute.step(task, lambda: inputs(pipeline)))

        return cached_property(run)

    return decorate


@dataclass(eq=False, kw_only=True)
class Pipeline:
    """One run of `config` in `store`, as far as it is asked for: each step is made when it is first needed, and kept.

    timeline, command  for the page: when steps ran, and the command line that repeats the run.
    name               of the run's folder, below `runs` in the work folder.
    given              the terms, where they are not those of the store.
    files              the raw files, where they were looked at already.
    records            of every step so far.
    may_have_asked     whether holders were charged, or were about to be.
    """

    store: Store
    config: RunConfig
    execute: Execute
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
        _ = self.ingested, self.checked, self.held, self.scaled
        if self.config.model.in_rounds:
            _ = self.shown
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
            return first.terms if first.published["question"] == terms.protocol else terms
        except NotComputed:
            return terms

    def _as_first(self, terms: Terms, raw: Manifest) -> Any:
        """The run as the campaign's first one, before it found anything out; only looked for."""
        config = terms.written or terms.config
        first = replace(terms, config=config, dataset=config.dataset, protocol=None, written=None)
        return type(self)(store=self.store, config=config, execute=Found(self.store), given=first, files=raw)

    @cached_property
    def terms(self) -> Terms:
        """The terms, once ingest has told what the configuration leaves to public rows."""
        found = self.ingested
        return self.settled.with_inferred(found) if isinstance(found, Record) else self.settled

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
        """Raw files, and the second file of a public rule that names one; many of them as others have read them."""
        terms = self.settled
        call = {
            "raw": self.raw,
            "public_raw": source.public_files(self.store, terms.dataset),
            "rules": _row_rules(terms),
            **_label(terms),
        }
        return call | self._read_in_parts(call)

    def _read_in_parts(self, call: Call) -> Call:
        """What ingest puts together where there is more to read than one task's part, and it does not stand."""
        raw: Manifest = call["raw"]
        lists = [(raw, 0, False)]
        if call["public_raw"] is not None:
            lists.append((call["public_raw"], len(raw.files), True))
        files = [one for one, _, _ in lists]
        is_small = all(source.is_one_part(self.store, one) for one in files)
        if is_small or not self.execute.makes_in_parts(ingest, call, files):
            return {}
        found = self.made(self.execute.step(types, lambda: call))
        settled, pieces = found.facts, found.parts.get("pieces")
        parts = [part for one in lists for part in source.parts(self.store, *one, pieces)]
        records = self._made_apart(read, {"rules": call["rules"], "settled": settled}, parts)
        return {"parts": NotInKey((settled, records))}

    def _made_apart(
        self, task: StepTask, of_all: Call, parts: Sequence[Call], round_number: int = 1
    ) -> list[Record]:
        """The parts of a step that others make."""
        records: list[Record] = self.execute.shards(task, lambda: (of_all, parts), round_number)
        self.records.extend(records)
        return records

    @step_of(validate)
    def checked(self) -> Call:
        """Both zones, and an edited suite where one is named."""
        terms, private = self.terms, self.ingested["private"]
        suite = source.suite_file(self.store, terms.dataset)
        expected: Call = {
            "suite": suite,
            "dataset": terms.dataset.without_words(),
            "columns": self.ingested.facts["columns"],
        }
        call = expected | {
            "public": self.ingested["public"],
            "private": private,
            "release": _release_of_checks(terms),
        }
        parts = violations.parts_of(private)
        if len(parts) == 1 or not self.execute.makes_in_parts(validate, call, [suite] if suite else []):
            return call
        apart: list[Call] = [{"private": part} for part in parts]
        return call | {"parts": NotInKey(self._made_apart(violations.count, expected, apart))}

    @step_of(split)
    def held(self) -> Call:
        """Private rows, public coins, and who a campaign asked before. Raises ProtocolMismatch (`Terms.check_names`)."""
        terms = self.terms
        terms.check_names(self.ingested)
        config, data = terms.config, terms.dataset
        rules = RoleRules(
            columns=[*self.ingested.facts["features"], data.target],
            holder=data.holder,
            seed=config.seed,
            test_fraction=data.test_fraction if config.evaluate else 0.0,
            noise_seed=config.noise_seed,
            campaign=config.campaign.name,
            asked_before=terms.asked_before(self.raw),
        )
        private = self.ingested["private"]
        call: Call = {"private": private, "rows": self.ingested["rows"], "rules": rules}
        if is_one_part(private) or not self.execute.makes_in_parts(split, call, []):
            return call
        assigned = self.made(self.execute.step(roles, lambda: call))
        apart = stretches.parts_of(private, assigned["stretches"])
        records = self._made_apart(stretches.cut, {"columns": rules.columns}, apart)
        return call | {"parts": NotInKey((assigned, records))}

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

    def transcript(self, rounds: Sequence[Round]) -> StoredTranscript:
        """All that is public after these rounds. Raises NotComputed."""
        return StoredTranscript(
            encoding=self.scaled["encoding"],
            scaled=self.scaled["scaled"],
            shown=self.shown["shown"] if self.config.model.in_rounds else None,
            rounds=tuple(one.stored for one in rounds),
        )

    @property
    def asking(self) -> Asking:
        """What every question depends on, besides what is public. Raises NotComputed."""
        terms = self.terms
        config = terms.config
        return Asking(
            estimator=config.model.estimator,
            settings=config.question_settings(self.scaled.facts["n_public"]),
            epsilon=config.privacy.epsilon,
            mechanism=config.privacy.mechanism,
            outside=config.privacy.outside,
            holder=terms.dataset.holder,
            target=terms.dataset.target,
            campaign=config.campaign.name,
            seed=config.seed,
            simulation=config.is_seeded,
        )

    def of_partition(self, rounds: Sequence[Round]) -> Call:
        """What was published so far, how many holders will be asked, and what they are promised."""
        return {
            "transcript": self.transcript(rounds),
            "asking": self.asking,
            "n_private": self.held.facts["n_private"],
            "frozen": self.terms.protocol,
        }

    @step_of(partition)
    def published(self) -> Call:
        """Before any answer."""
        return self.of_partition([])

    def ask(self, rounds: Sequence[Round]) -> Round | None:
        """The next question, if there may be one."""
        if rounds and (self.terms.config.asks_once or _is_last(rounds[-1])):
            return None
        if not rounds and not self.config.model.in_rounds:
            if not self.execute.only_looks:
                _ = self.protocol  # before what it rests on is used: it may be made anew
            return Round(1, self.published, lambda: self.protocol)
        number = len(rounds) + 1
        asked = self.made(self.execute.step(partition, lambda: self.of_partition(rounds), number))
        if isinstance(asked, Record) and not asked.facts["is_left"]:
            return None
        return Round(number, asked, lambda: asked["question"])

    @cached_property
    def protocol(self) -> Manifest:
        """The first question; in a campaign the first one published."""
        if self.execute.only_looks:
            return self.terms.protocol or self.published["question"]
        while True:
            try:
                return self.terms.publish(self.raw, self.ingested, self.held, self.published)
            except AskedSince:
                self._begin_again()

    def _begin_again(self) -> None:
        """Forget every step so far: those that are the same are found, and who is asked is chosen anew."""
        self.records.clear()
        for name in [*self.__dict__]:
            if isinstance(getattr(type(self), name, None), cached_property):
                del self.__dict__[name]

    def form(self, asked: Round) -> Form:
        """Whether reports are written, or exact totals drawn. Raises NotComputed."""
        return "reports" if self.config.model.in_rounds else self.terms.form(self.held, known(asked.asked))

    @property
    def charges_first(self) -> bool:
        """Whether the first charge pays for all questions: a holder is asked some of them. Raises NotComputed."""
        return self.config.model.in_rounds or bool(known(self.published).facts.get("asks_a_part"))

    def cost(self, asked: Round) -> Cost:
        """What a question costs; where parts of the holders are asked apart, what all questions do. Raises NotComputed."""
        config, held = self.terms.config, known(self.held)
        if config.is_trial:
            return TrialCost(config, asks_parts=self.charges_first)
        if not self.charges_first:
            return QuestionCost(self.store, config, self.raw, held, asked.question(), self.form(asked))
        return ConversationCost(self.store, config, self.raw, held, self._key_of_conversation)

    @property
    def _key_of_conversation(self) -> str:
        """By what the ledger knows all questions: what the curator knows before the first one, or that one itself."""
        if not self.config.model.in_rounds:
            return str(self.published.facts["digest"])
        return conversation_key(
            self.store,
            self.terms.config,
            self.scaled["encoding"],
            self.shown["shown"],
            self.scaled.facts["label_range"],
        )

    def _unknown_cost(self) -> Cost:
        config, held = self.terms.config, known(self.held)
        if not config.model.in_rounds:
            return QuestionCost(self.store, config, self.raw, held, self.terms.protocol, "reports")
        return ConversationCost(self.store, config, self.raw, held, UNKNOWN_CONVERSATION)

    def charge(self, asked: Round, before: Spent | None) -> Spent:
        """What is spent before a question is answered. `before`: what was, before the last one. Raises BudgetError.

        Where parts of the holders are asked apart, everybody is charged the whole epsilon before the first question.
        """
        if before is not None and self.charges_first:
            return before
        self.may_have_asked = True
        found: Spent = self.execute.charge(lambda: self.cost(asked), self._unknown_cost)
        return found

    @cached_property
    def shards(self) -> list[Call]:
        """Each shard of who is asked, and which it is of those that hold the same; by their names, or as they are shown."""
        apart = shards_with_copy_index(self.store, self.terms.config, self.held)
        own: list[Call] = [{"shard": shard, "alike": NotInKey(number)} for shard, number in apart]
        if not self.config.model.in_rounds:
            return own
        ordered = in_order(self.store, self.held["train"], is_seeded=self.terms.config.is_seeded)
        by_name = {call["shard"].files[0].name: call for call in own}
        starts = [0, *accumulate(shard.rows for shard in ordered)][:-1]
        return [by_name[s.files[0].name] | {"start": start} for s, start in zip(ordered, starts, strict=True)]

    def answer(self, asked: Round) -> Sequence[Record]:
        """The reports of everybody whom a question asks, each drawn once."""
        looks = self.execute.only_looks
        if not looks:
            self.cost(asked).check_question(asked.number, asked.question().digest)
        reports = self.execute.shards(perturb, lambda: (self.of_perturb(asked), self.shards), asked.number)
        if not looks:
            shards: list[Manifest] = [one["shard"] for one in self.shards]
            self.cost(asked).keep_answers(asked.number, shards, reports)
            self.records.extend(reports)
        return reports  # type: ignore[no-any-return]

    def of_perturb(self, asked: Round) -> Call:
        """The question, for every shard alike."""
        config = self.terms.config
        call = {
            "question": asked.question(),
            "round_number": asked.number,
            "noise_seed": config.noise_seed,
        }
        if not config.model.in_rounds:
            return call | {"collecting": Collecting(form=self.form(asked), campaign=config.campaign.name)}
        showing = Showing(
            encoding=self.scaled["encoding"],
            shown=self.shown["shown"],
            features=config.features,
            target=self.terms.dataset.target,
        )
        return call | {"showing": showing}

    def add_up(self, answered: Round) -> Record:
        """What the reports of a round say together."""
        return self.made(self.execute.step(aggregate, lambda: self.of_aggregate(answered), answered.number))

    def of_aggregate(self, answered: Round) -> Call:
        """Every report there is, in a campaign those of earlier runs too."""
        call: Call = {
            "question": answered.question(),
            "reports": self.terms.received([*answered.reports]),
            "round_number": answered.number,
            **({"shown": self.shown["shown"]} if self.config.model.in_rounds else {}),
        }
        parts = parts_of(self.store, call["question"], call["reports"])
        if len(parts) == 1 or not self.execute.makes_in_parts(aggregate, call, []):
            return call
        of_all = {"question": call["question"], "round_number": answered.number}
        apart: list[Call] = [{"reports": part} for part in parts]
        return call | {"parts": NotInKey(self._made_apart(add, of_all, apart, answered.number))}

    # What the family makes of it.

    @step_of(fit)
    def model(self) -> Call:
        """All that was published."""
        return {
            "transcript": self.transcript(self.conversation.whole),
            "asking": self.asking,
            "reading": self.terms.config.model.reading,
        }

    @step_of(evaluate)
    def scores(self) -> Call:
        """The model, and the private rows that only a simulation has."""
        config = self.terms.config
        call: Call = {
            "transcript": self.transcript(self.conversation.whole),
            "asking": self.asking,
            "reading": config.model.reading,
            "model": self.model["model"],
            "train": self.held["train"],
            "test": self.held["test"],
            "evaluation": config.evaluation,
            "noise_seed": config.noise_seed,
        }
        parts = shards_in_parts(call["train"].one_by_one())
        if config.model.in_rounds or len(parts) == 1 or not self.execute.makes_in_parts(evaluate, call, []):
            return call
        of_all = {"question": self.conversation.last.question()}
        apart: list[Call] = [{"shards": part} for part in parts]
        return call | {"parts": NotInKey(self._made_apart(known_of_shards, of_all, apart))}

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
            "questions": [one.question() for one in talk.whole],
            "artifacts": artifacts,
            "facts": {
                "ingested": self.ingested.facts,
                "held": self.held.facts,
                "scaled": self.scaled.facts,
                "spent": talk.spending,
                "form": self.form(talk.last),
                "why_chosen": self.terms.why_chosen,
            },
            "timeline": NotInKey(self.timeline),
            "command": NotInKey(self.command),
        }


def _is_last(asked: Round) -> bool:
    """Whether surely no question follows; False where that is not known yet."""
    return isinstance(asked.asked, Record) and asked.asked.facts.get("is_last", False)


def _row_rules(terms: Terms) -> RowRules:
    """How each row is read, and what holders protect, where some features are public: the label always; where the mask is not
    released, that and all features.
    """
    config, features = terms.config, terms.config.features
    found = RowRules(dataset=terms.dataset.without_words(), seed=config.seed)
    if not config.model.in_rounds:
        return found
    protected = {*features.private, *features.protects, terms.dataset.target}
    if config.mask_release == "all":
        return found.model_copy(update={"protected": tuple(sorted(protected))})
    every = {"protected": tuple(sorted(protected | features.masks)), "every_feature": True}
    return found.model_copy(update=every)


def _label(terms: Terms) -> Call:
    """That the label is a number, where it is; None where public rows are to tell."""
    known: dict[str | None, Call] = {"number": {"numeric": True}, "class": {}, None: {"numeric": None}}
    return known[terms.config.label]


def _release_of_checks(terms: Terms) -> int | None:
    """How many answers about private rows may leave their holders: None is any number, in a simulation, which protects nobody."""
    if terms.config.is_seeded:
        return None
    return terms.config.privacy.max_released_checks if terms.dataset.release_checks else 0
