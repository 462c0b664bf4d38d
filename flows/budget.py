"""Charge all questions of a run before any holder answers, or none of them. `ldptree.protocol.ledger` adds up what is
spent, and `storage.ledger.accounts` keeps it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import numpy as np

from flows.shards import check_reported, shards_asked
from ldptree.errors import ArtifactCorrupt, BudgetError
from ldptree.protocol.ledger import Charge, Ledger, Names, RowRange
from ldptree.protocol.protocol import Protocol
from schemas.config import RunConfig
from schemas.manifest import Manifest, Record
from storage.ledger.accounts import Account
from storage.ledger.campaigns import Campaign, Joining
from storage.store import Store
from tasks.page.captions import NOBODY
from tasks.step import faults_stay_in_zone

PROTECTS_NOBODY = f"{NOBODY} Leave simulation.noise_seed out to ask people."
"""What a run says that asks in earnest with seeded noise."""
PAGE_IS_NOT_PRIVATE = (
    "Epsilon covers the model, not the page: scores and comparisons read private rows without noise."
)
"""What a release says that is scored on private rows."""
WHO_ROWS_ARE = 'With holder = "row" nobody can tell whether rows of another file are the same people: {then}.'
"""What a run says whose holders are rows, in a campaign or under a lifetime cap."""
UNKNOWN = "not known yet,"
"""For the digest of a protocol that is not published."""
UNKNOWN_CONVERSATION = "not known yet"
"""For the key of a conversation whose first question depends on a step to be computed."""
Spend = Callable[[Sequence[Charge], float | None, Sequence[Charge]], Ledger]
"""`charge` or `foresee` of an account."""
IN_ROUNDS = "rounds"
"""What tells the reports of several rounds from those of one question."""


@dataclass(frozen=True, kw_only=True)
class Spent:
    """The part of the ledger that the curator learns. It never says who was asked.

    largest    the largest spend of any holder, over everything asked in this account.
    questions  on how many questions that was spent.
    cap        the smallest lifetime cap ever stated; None where none was.
    """

    largest: float
    questions: int
    cap: float | None


def say_who_rows_are(store: Store | None, config: RunConfig) -> list[str]:
    """A sentence where it counts whether rows of another file are the same people, which cannot be known; else none.

    `store`: None where nothing was spent yet. A damaged ledger is left to whoever charges it.
    """
    if config.dataset.holder != "row" or config.is_trial or config.is_collection:
        return []
    if not (config.campaign.name or config.privacy.lifetime_epsilon):
        cap = None
        with suppress(ArtifactCorrupt):
            cap = None if store is None else account_of(store, config).read().cap
        if cap is None:
            return []
    is_stated = config.dataset.new_people
    then = "new_people = true takes them all for others" if is_stated else "another file will be refused"
    return [WHO_ROWS_ARE.format(then=then)]


def may_already_be_charged(store: Store, config: RunConfig, held: Record) -> bool:
    """Return whether a question that is not known yet may be one that was charged already: then it would cost nothing."""
    if config.model.settings.may_ask_again:
        return True  # its first question costs a part of epsilon
    asked = {
        _asks(question.name)
        for form in ("reports", "totals", IN_ROUNDS)
        for question in questions_of(store, config, held, UNKNOWN, 1, form)
    }
    entries = account_of(store, config).read().entries
    return any(
        _asks(entry.question) in asked and np.isclose(entry.epsilon, config.privacy.epsilon)
        for entry in entries
    )


def _asks(question: str) -> str:
    """Return the round and the shards in a question's name, without what is asked."""
    return question.rpartition(" round ")[2]


def _files_of(reports: Iterable[Manifest]) -> dict[str, str]:
    """Return the name and digest of each file of some reports."""
    return {report.name_of(entry): entry.digest for report in reports for entry in report.files}


@dataclass(frozen=True, kw_only=True)
class _Question:
    """One round's question to a raw file. Its `name` changes with anything that makes perturb draw other reports."""

    name: str
    source: str
    rows: Sequence[int]
    shards: Sequence[str]


def questions_of(
    store: Store, config: RunConfig, held: Record, digest: str, number: int, form: str
) -> list[_Question]:
    """A round's question to each raw file with somebody to ask."""
    shards = {shard.files[0].name: shard.digest for shard, _ in shards_asked(store, config, held)}
    drawn = None if config.noise_seed is None else [config.noise_seed, form]
    asked = json.loads(store.file(held["answers"], "files.json").read_bytes())
    questions = []
    for source, file in asked.items():
        # Of a campaign's shard its name, else its own digest.
        known_by = sorted(
            file["shards"] if config.campaign.name else [shards[name] for name in file["shards"]]
        )
        reports = store.hasher("holders").of_value([drawn, known_by])[:16]
        name = f"{digest} round {number} reports {reports}"
        questions.append(_Question(name=name, source=source, rows=file["rows"], shards=file["shards"]))
    return questions


def _rest(config: RunConfig, asked: Sequence[Charge]) -> list[Charge]:
    """Return charges for the rounds after the first, so that a run is refused before any of them."""
    return [
        replace(charge, question=f"after {charge.question}", epsilon=config.privacy.epsilon - charge.epsilon)
        for charge in asked
        if " round 1 " in charge.question and charge.epsilon < config.privacy.epsilon
    ]


def spent_now(ledger: Ledger) -> Spent:
    """Return what the curator learns of a ledger."""
    largest = ledger.largest_spend()
    return Spent(largest=largest.epsilon, questions=len(largest.on), cap=ledger.cap)


def account_of(store: Store, config: RunConfig) -> Account:
    """The account that a run is charged to."""
    return Account(store, config.noise_seed, new_people=config.dataset.new_people)


class Cost(ABC):
    """The cost of a question to those who are asked."""

    @abstractmethod
    def charge(self) -> Spent:
        """Charge every holder whom it asks, or nobody; the same again costs nothing more. Raises BudgetError."""

    @abstractmethod
    def foresee(self) -> Spent:
        """Return what `charge` would return. Writes nothing. Raises as it does."""

    @abstractmethod
    def may_already_be_charged(self) -> bool:
        """Return whether it is not known yet, and may be one that its holders were charged for: then it would cost nothing."""

    @abstractmethod
    def keep_answers(self, number: int, shards: Sequence[Manifest], reports: Sequence[Record]) -> None:
        """Keep in the ledger that a round was answered, and by which files. Raises ArtifactCorrupt where not by everybody."""


@dataclass(frozen=True)
class _Asked(Cost):
    """The holders of a run in its raw files, and the charge to each of them."""

    store: Store
    config: RunConfig
    raw: Manifest
    held: Record

    def charges(
        self, form: str, digest: str, *, epsilon: float, about: str = "", number: int = 1
    ) -> list[Charge]:
        """Return the charges for a round's question with this digest. Each raw file with holders to ask gives one for its rows,
        by number, and another for the holders that a column names.

        Rows are charged whole, held-back and public ones between them too, and whoever names the holders: so the same file asked
        first by rows and then by names is known again. `about`: how the question is named, beside the run's own name; "" where
        it is not published.
        """
        store, config, held = self.store, self.config, self.held
        title = config.campaign.name or config.name
        names = {entry.digest: entry.name for entry in reversed(self.raw.files)}
        charges = []
        for question in questions_of(store, config, held, digest, number, form):
            start, stop = question.rows
            who: list[RowRange | Names] = [RowRange(source=question.source, start=start, stop=stop)]
            if config.dataset.holder != "row":
                asked = np.sort(np.load(store.file(held["answers"], f"{question.source}.asked.npy")))
                asked.flags.writeable = False  # nobody else has it: no copy is made
                who.append(Names(asked, named_by=(config.dataset.holder, held.facts["holder_type"])))
            charges += [
                Charge(
                    question=question.name,
                    epsilon=epsilon,
                    who=holders,
                    about=f"{title} ({about})" if about else title,
                    where=names.get(question.source, ""),
                )
                for holders in who
            ]
        return charges

    def charge(self) -> Spent:
        """Spend the charges in the account."""
        return self._spent(self.account.charge)

    def foresee(self) -> Spent:
        """Say what the account would hold then."""
        return self._spent(self.account.foresee)

    def _keep_answers(
        self,
        digest: str,
        number: int,
        form: str,
        shards: Sequence[Manifest],
        reports: Sequence[Record],
    ) -> None:
        """Record that a round was answered. Of seeded simulations only what their campaign received: they draw lost reports
        again, and the same ones.
        """
        store, config = self.store, self.config
        written = {s.files[0].name: r["reports"] for s, r in zip(shards, reports, strict=True)}
        with faults_stay_in_zone(store, "ledger", "holders"):
            if config.campaign.name:
                Campaign(store, config.campaign.name).add_reports(written.values())
            if config.is_seeded:
                return
            for question in questions_of(store, config, self.held, digest, number, form):
                files = _files_of(written[shard] for shard in question.shards)
                self.account.keep_answer(question.name, files)
            for report in written.values():
                for name in report.names:  # until now a run published it again
                    store.objects.forget_draft(name)

    @property
    def account(self) -> Account:
        """The account that is charged."""
        return account_of(self.store, self.config)

    @abstractmethod
    def _spent(self, spend: Spend) -> Spent:
        """Return what the curator learns once the charges are spent."""


@dataclass(frozen=True)
class QuestionCost(_Asked):
    """The cost of one question, with the `protocol` that its holders agreed to, or None for a new one that is not
    published yet. `form` is reports or totals. `joining`: the campaign in which it is asked, if any.
    """

    protocol: Protocol | None
    form: str
    joining: Joining | None = None

    def charge(self) -> Spent:
        """Charge every holder whom it asks, or nobody, in one transaction with what a campaign keeps; the same again costs
        nothing more. Raises BudgetError, AskedSince.
        """
        assert self.protocol is not None
        return self._spent(partial(self.account.charge, joining=self.joining))

    def may_already_be_charged(self) -> bool:
        """Return whether it is not known yet, and may be one that its holders were charged for."""
        return self.protocol is None and may_already_be_charged(self.store, self.config, self.held)

    def keep_answers(self, number: int, shards: Sequence[Manifest], reports: Sequence[Record]) -> None:
        """Keep it once everybody reported. Raises ArtifactCorrupt."""
        assert self.protocol is not None
        check_reported(shards, reports)
        self._keep_answers(self.protocol.digest_unmarked, number, self.form, shards, reports)

    def _spent(self, spend: Spend) -> Spent:
        with faults_stay_in_zone(self.store, "ledger", "holders"):
            asked = self._charges()
            return spent_now(spend(asked, self.config.privacy.lifetime_epsilon, _rest(self.config, asked)))

    def _charges(self) -> list[Charge]:
        if self.protocol is None:
            return self.charges(self.form, UNKNOWN, epsilon=self.config.privacy.epsilon)
        number = self.protocol.round
        return self.charges(
            self.form,
            self.protocol.digest_unmarked,
            epsilon=self.protocol.epsilon,
            about=f"protocol {self.protocol.digest[:8]}, round {number}",
            number=number,
        )


@dataclass(frozen=True)
class TrialCost(Cost):
    """The cost of a trial, which is zero. A trial asks nobody, and trials do not add up.

    asks_parts  whether a question is put to a part of the holders.
    """

    config: RunConfig
    asks_parts: bool

    def charge(self) -> Spent:
        """Nothing is kept."""
        return self.foresee()

    def foresee(self) -> Spent:
        """Nothing is spent."""
        return Spent(largest=0.0, questions=0, cap=self.config.privacy.lifetime_epsilon)

    def may_already_be_charged(self) -> bool:
        """Nothing is kept that it could be."""
        return False

    def keep_answers(self, number: int, shards: Sequence[Manifest], reports: Sequence[Record]) -> None:
        """Nothing is kept. Raises ArtifactCorrupt where one question was not answered by everybody."""
        if not self.asks_parts:
            check_reported(shards, reports)


def conversation_key(
    store: Store, config: RunConfig, encoding: Manifest, shown: Manifest, label_range: Sequence[float]
) -> str:
    """Return a conversation's key in the ledger, from all that its curator knows before the first question."""
    known = {
        "transcripts": [],
        "estimator": config.model.estimator,
        "settings": config.model.settings.for_questions,
        "epsilon": config.privacy.epsilon,
        "label_range": list(label_range),
        "seed": config.seed,
    }
    inputs = {"encoding": encoding.digest, "shown": shown.digest}
    return store.place("curator", "conversation", "1", inputs=inputs, parameters=known).key


@dataclass(frozen=True)
class ConversationCost(_Asked):
    """The cost of several rounds, where holders pay the whole epsilon before the first question.

    A conversation is known by what its curator knows before the first question (what is shown, the settings, the seed) and by
    who is asked: the same run again goes on with it and costs nothing more; any other is charged anew, though some of its
    questions may be the same and be answered by reports that stand. Whoever is asked nothing in the end, and whoever one question
    only, has been charged no less: the ledger need not know whom the public coins chose.

    key    digest of what its curator knows before the first question.
    """

    key: str

    def check_question(self, number: int, digest: str) -> None:
        """Keep which question is put in a round, before it is. Not of seeded simulations, which protect nobody.

        Raises:
            BudgetError: this conversation put another one in this round, which its charge paid for: this one was not paid for.
        """
        if self.config.is_seeded:
            return
        with faults_stay_in_zone(self.store, "ledger", "holders"):
            if not all(self.account.keep_asked(name, digest) for name in self._names(number)):
                raise BudgetError(
                    f"round {number}: its people were asked another question in this round before, by a program that asked "
                    "differently, and their epsilon paid for that one. Nothing was asked. Finish the run with the version of "
                    "ldptree that began it, or set another seed: that is a new conversation, charged anew."
                )

    def keep_answers(self, number: int, shards: Sequence[Manifest], reports: Sequence[Record]) -> None:
        """Keep it, whoever was asked."""
        self._keep_answers(self._digest, number, IN_ROUNDS, shards, reports)

    def may_already_be_charged(self) -> bool:
        """Return whether it is not known yet, and may be one that its holders were charged for."""
        return self.key == UNKNOWN_CONVERSATION and may_already_be_charged(self.store, self.config, self.held)

    @property
    def _digest(self) -> str:
        """Return a digest of the conversation and of who is asked, as later questions depend on all answers."""
        return self.store.hasher("holders").of_value([self.key, self.held["train"].digest])

    def _names(self, number: int) -> list[str]:
        """Of a round's question, for each raw file."""
        asked = questions_of(self.store, self.config, self.held, self._digest, number, IN_ROUNDS)
        return [question.name for question in asked]

    def _spent(self, spend: Spend) -> Spent:
        with faults_stay_in_zone(self.store, "ledger", "holders"):
            for number in count(2):  # the first round's are looked for with the charge
                answered = [self.account.is_answered(name) for name in self._names(number)]
                if not all(answered):
                    break
            epsilon, about = self.config.privacy.epsilon, f"questions {self.key[:8]}, all rounds"
            asked = self.charges(IN_ROUNDS, self._digest, epsilon=epsilon, about=about)
            return spent_now(spend(asked, self.config.privacy.lifetime_epsilon, []))
