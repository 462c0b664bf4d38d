"""What a run's questions cost whom: charged whole, before any holder answers, or refused. How spends add up is in
`ldptree.protocol.ledger`, where they are kept in `storage.ledger.accounts`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Protocol

import numpy as np

from flows.asked import check_reported, shards_with_copy_index
from ldptree.errors import BudgetError
from ldptree.protocol.ledger import Charge, Ledger, Names, RowRange
from schemas.config import RunConfig
from schemas.manifest import Manifest, Record
from storage.ledger.accounts import Account
from storage.ledger.seal import seal_state
from storage.store import Store
from tasks.artifacts import read_protocol
from tasks.page.captions import NOBODY
from tasks.step import faults_stay_in_zone

PROTECTS_NOBODY = f"{NOBODY} Leave simulation.noise_seed out to ask people."
"""What a run says that asks in earnest with seeded noise."""
PAGE_IS_NOT_PRIVATE = (
    "Epsilon covers the model, not the page: scores and comparisons read private rows without noise."
)
"""What a release says that is scored on private rows."""
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
    """What the curator learns of the ledger: never who.

    largest    the largest spend of any holder, over everything asked in this account.
    questions  on how many questions that was spent.
    cap        the smallest lifetime cap ever stated; None where none was.
    """

    largest: float
    questions: int
    cap: float | None


def seal(store: Store) -> None:
    """Seal what is kept of who was asked: after a charge and before anybody answers, and again when they have answered."""
    with faults_stay_in_zone(store, "ledger", "holders"):
        seal_state(store)


def keep_apart(store: Store, config: RunConfig, held: Record) -> None:
    """Keep which of a run's shards that hold the same is which, before they are charged: questions are known by it."""
    with faults_stay_in_zone(store, "ledger", "holders"):
        shards_with_copy_index(store, config, held, keep=True)


def keep_cap(store: Store, config: RunConfig) -> None:
    """Keep the lifetime cap that a run states, which holds from then on, also where the run is refused by it."""
    with faults_stay_in_zone(store, "ledger", "holders"):
        account_of(store, config).charge([], config.privacy.lifetime_epsilon)


def may_stand(store: Store, config: RunConfig, held: Record) -> bool:
    """Whether a question that is not known yet may be one that its holders were charged for: then it would cost nothing."""
    if config.model.may_ask_again:
        return True  # its first question costs a part of epsilon
    asked = {
        _asks(question.name)
        for form in ("reports", "totals", IN_ROUNDS)
        for question in questions_of(store, config, held, UNKNOWN, (1,), form)
    }
    entries = account_of(store, config).read().entries
    return any(
        _asks(entry.question) in asked and np.isclose(entry.epsilon, config.privacy.epsilon)
        for entry in entries
    )


def _asks(question: str) -> str:
    """Of a question's name the round and who is asked, without what is asked."""
    return question.rpartition(" round ")[2]


def keep_answers(
    store: Store,
    config: RunConfig,
    held: Record,
    protocol: Manifest,
    form: str,
    reports: Mapping[str, Manifest],
) -> None:
    """Keep in the ledger that a run's questions were answered, and by which files: `reports`, under the names of the shards.

    Of seeded simulations only what their campaign received: they draw lost reports again, and the same ones.
    """
    if config.noise_seed is None:
        with faults_stay_in_zone(store, "ledger", "holders"):
            published = read_protocol(store, protocol)
            for question in questions_of(
                store, config, held, published.digest_unmarked, published.rounds, form
            ):
                files = [name for shard in question.shards for name in reports[shard].names]
                account_of(store, config).keep_answer(question.name, files)
    seal(store)


@dataclass(frozen=True, kw_only=True)
class _Question:
    """One round's question to a raw file. `name`: whatever makes perturb give the reports that stand."""

    name: str
    round: int
    source: str
    rows: Sequence[int]
    shards: Sequence[str]


def questions_of(
    store: Store, config: RunConfig, held: Record, digest: str, rounds: Sequence[int], form: str
) -> list[_Question]:
    """Each round's question to each raw file with somebody to ask."""
    shards = {shard.files[0].name: shard.digest for shard, _ in shards_with_copy_index(store, config, held)}
    drawn = None if config.noise_seed is None else [config.noise_seed, form]
    asked = json.loads(store.file(held["answers"], "files.json").read_bytes())
    found = []
    for source, file in asked.items():
        # Of a campaign's shard its name, else what it holds, and which it is of those that hold the same.
        known_by = sorted(
            file["shards"] if config.campaign.name else [shards[name] for name in file["shards"]]
        )
        reports = store.hasher("holders").of_value([drawn, known_by])[:16]
        found += [
            _Question(
                name=f"{digest} round {number} reports {reports}",
                round=number,
                source=source,
                rows=file["rows"],
                shards=file["shards"],
            )
            for number in rounds
        ]
    return found


def _rest(config: RunConfig, asked: Sequence[Charge]) -> list[Charge]:
    """What a run that asks in rounds has left for a later one after its first: it is refused before any of them."""
    return [
        replace(charge, question=f"after {charge.question}", epsilon=config.privacy.epsilon - charge.epsilon)
        for charge in asked
        if " round 1 " in charge.question and charge.epsilon < config.privacy.epsilon
    ]


def spent_now(ledger: Ledger) -> Spent:
    """What the curator learns of it."""
    largest = ledger.largest_spend()
    return Spent(largest=largest.epsilon, questions=len(largest.on), cap=ledger.cap)


def account_of(store: Store, config: RunConfig) -> Account:
    """The account that a run is charged to."""
    return Account(store, config.noise_seed)


class Cost(Protocol):
    """What is asked, and what it costs whom."""

    def charge(self) -> Spent:
        """Charge every holder whom it asks, or nobody; the same again costs nothing more. Raises BudgetError."""

    def foresee(self) -> Spent:
        """What `charge` would return. Writes nothing. Raises as it does."""

    def may_stand(self) -> bool:
        """Whether it is not known yet, and may be one that its holders were charged for: then it would cost nothing."""

    def check_question(self, number: int, digest: str) -> None:
        """Keep which question is put in a round, before it is. Raises BudgetError where another one was paid for."""

    def keep_answers(self, number: int, shards: Sequence[Manifest], reports: Sequence[Record]) -> None:
        """Keep in the ledger that a round was answered, and by which files. Raises ArtifactCorrupt where not by everybody."""


@dataclass(frozen=True)
class _Asked(ABC):
    """Who is asked, and what each of them is charged: the holders of a run in its raw files."""

    store: Store
    config: RunConfig
    raw: Manifest
    held: Record

    def charges(
        self, form: str, digest: str, *, epsilon: float, rounds: Sequence[int] = (1,), subject: str = ""
    ) -> list[Charge]:
        """What a question with this digest spends: in each raw file with somebody to ask, the file's rows, by their numbers and
        as who they are (in whatever file they come again), and the holders whom a column names.

        By their numbers rows are charged whole, held-back and public ones between them too, and whoever names the holders: so
        the same file asked first by rows and then by names is known again, and so is one that an earlier version asked.
        `subject`: how the question is named, beside the run's own name; "" where it is not published.
        """
        store, config, held = self.store, self.config, self.held
        title = config.campaign.name or config.name
        names = {entry.digest: entry.name for entry in reversed(self.raw.files)}
        found = []
        for question in questions_of(store, config, held, digest, rounds, form):
            start, stop = question.rows
            who: list[RowRange | Names] = [RowRange(source=question.source, start=start, stop=stop)]
            asked = np.load(store.file(held["answers"], f"{question.source}.npy"))
            if config.dataset.holder == "row":
                who.append(Names(asked, are_rows=True))
            else:
                theirs = np.load(store.file(held["answers"], f"{question.source}.rows.npy"))
                named_by = (config.dataset.holder, held.facts["holder_type"])
                who += [Names(theirs, are_rows=True), Names(asked, named_by=named_by)]
            found += [
                Charge(
                    question=question.name,
                    epsilon=epsilon / len(rounds),
                    who=holders,
                    about=f"{title} ({subject}, round {question.round})" if subject else title,
                    where=names.get(question.source, ""),
                )
                for holders in who
            ]
        return found

    def charge(self) -> Spent:
        """Charge every holder whom it asks, or nobody; the same again costs nothing more. Raises BudgetError."""
        keep_apart(self.store, self.config, self.held)
        spent = self._spent(self.account.charge)
        seal(self.store)
        return spent

    def foresee(self) -> Spent:
        """What `charge` would return. Writes nothing. Raises as it does."""
        return self._spent(self.account.foresee)

    @property
    def account(self) -> Account:
        """The account that is charged."""
        return account_of(self.store, self.config)

    @abstractmethod
    def _spent(self, spend: Spend) -> Spent:
        """What the curator learns once the charges are spent."""


@dataclass(frozen=True)
class QuestionCost(_Asked):
    """What one question costs. `protocol`: None where it is not published yet, and is taken for a new one. `form`: reports, or
    totals.
    """

    protocol: Manifest | None
    form: str

    def charge(self) -> Spent:
        """Charge every holder whom it asks, or nobody; the same again costs nothing more. Raises BudgetError."""
        assert self.protocol is not None
        return super().charge()

    def may_stand(self) -> bool:
        """Whether it is not known yet, and may be one that its holders were charged for."""
        return self.protocol is None and may_stand(self.store, self.config, self.held)

    def check_question(self, number: int, digest: str) -> None:
        """Nothing: it is the question that was charged."""

    def keep_answers(self, number: int, shards: Sequence[Manifest], reports: Sequence[Record]) -> None:
        """Keep in the ledger that it was answered, and by which files. Raises ArtifactCorrupt where not by everybody."""
        assert self.protocol is not None
        check_reported(shards, reports)
        written = {shard.files[0].name: one["reports"] for shard, one in zip(shards, reports, strict=True)}
        keep_answers(self.store, self.config, self.held, self.protocol, self.form, written)

    def _spent(self, spend: Spend) -> Spent:
        with faults_stay_in_zone(self.store, "ledger", "holders"):
            asked = self._charges()
            return spent_now(spend(asked, self.config.privacy.lifetime_epsilon, _rest(self.config, asked)))

    def _charges(self) -> list[Charge]:
        if self.protocol is None:
            return self.charges(self.form, UNKNOWN, epsilon=self.config.privacy.epsilon)
        published = read_protocol(self.store, self.protocol)
        return self.charges(
            self.form,
            published.digest_unmarked,
            epsilon=published.epsilon,
            rounds=published.rounds,
            subject=f"protocol {published.digest[:8]}",
        )


@dataclass(frozen=True)
class TrialCost:
    """What a trial costs: nothing, since nobody is asked, and trials are not added up.

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

    def may_stand(self) -> bool:
        """Nothing is kept that it could be."""
        return False

    def check_question(self, number: int, digest: str) -> None:
        """Nothing: nobody paid for another one."""

    def keep_answers(self, number: int, shards: Sequence[Manifest], reports: Sequence[Record]) -> None:
        """Nothing is kept. Raises ArtifactCorrupt where one question was not answered by everybody."""
        if not self.asks_parts:
            check_reported(shards, reports)


def conversation_key(
    store: Store, config: RunConfig, encoding: Manifest, shown: Manifest, label_range: Sequence[float]
) -> str:
    """By what a conversation in rounds is known in the ledger: what its curator knows before the first question.

    It says what it said when the step that asks was called so, for charges of earlier versions stand under it.
    """
    known = {
        "transcripts": [],
        "estimator": config.model.estimator,
        "settings": config.question_settings(0),
        "epsilon": config.privacy.epsilon,
        "label_range": list(label_range),
        "seed": config.seed,
    }
    inputs = {"encoding": encoding.digest, "shown": shown.digest}
    return store.place("curator", "ask", "3", inputs=inputs, parameters=known).key


@dataclass(frozen=True)
class ConversationCost(_Asked):
    """What several rounds cost: the whole epsilon, charged before the first question.

    A conversation is known by what its curator knows before the first question (what is shown, the settings, the seed) and by
    who is asked: the same run again goes on with it and costs nothing more; any other is charged anew, though some of its
    questions may be the same and be answered by reports that stand.

    key    digest of what its curator knows before the first question.
    """

    key: str

    def charge(self) -> Spent:
        """Charge every holder the whole epsilon, over all rounds, before the first question; the same conversation costs it once.

        Whoever is asked nothing in the end, and whoever one question only, has been charged no less: the ledger need not know
        whom the public coins chose.

        Raises:
            BudgetError: a holder would spend more than the smallest lifetime cap ever stated; nothing is spent.
            ArtifactCorrupt: answers that were received in any of its rounds are missing.
        """
        return super().charge()

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
                    f"round {number}: its holders were put another question in this round before, by a program that asked "
                    "differently, and their epsilon paid for that one. Nothing was asked. Finish the run with the version of "
                    "ldptree that began it, or set another seed: that is a new conversation, charged anew."
                )

    def keep_answers(self, number: int, shards: Sequence[Manifest], reports: Sequence[Record]) -> None:
        """Keep in the ledger that a round was answered, and by which files. Not of seeded simulations, which draw lost reports
        again, and the same ones.
        """
        if self.config.is_seeded:
            return
        files = {
            shard.files[0].name: name
            for shard, record in zip(shards, reports, strict=True)
            for name in record["reports"].names
        }
        with faults_stay_in_zone(self.store, "ledger", "holders"):
            for question in questions_of(
                self.store, self.config, self.held, self._digest, (number,), IN_ROUNDS
            ):
                self.account.keep_answer(question.name, [files[shard] for shard in question.shards])
        seal(self.store)

    def may_stand(self) -> bool:
        """Whether it is not known yet, and may be one that its holders were charged for."""
        return self.key == UNKNOWN_CONVERSATION and may_stand(self.store, self.config, self.held)

    @property
    def _digest(self) -> str:
        """Who is asked is part of it: a later round's question rests on the answers of all of them."""
        return self.store.hasher("holders").of_value([self.key, self.held["train"].digest])

    def _names(self, number: int) -> list[str]:
        """Of a round's question, for each raw file."""
        asked = questions_of(self.store, self.config, self.held, self._digest, (number,), IN_ROUNDS)
        return [question.name for question in asked]

    def _spent(self, spend: Spend) -> Spent:
        with faults_stay_in_zone(self.store, "ledger", "holders"):
            for number in count(2):  # the first round's are looked for with the charge
                answered = [self.account.is_answered(name) for name in self._names(number)]
                if not all(answered):
                    break
            epsilon, subject = self.config.privacy.epsilon, f"questions {self.key[:8]}"
            asked = self.charges(IN_ROUNDS, self._digest, epsilon=epsilon, subject=subject)
            asked = [replace(charge, about=charge.about.replace("round 1", "all rounds")) for charge in asked]
            return spent_now(spend(asked, self.config.privacy.lifetime_epsilon, []))
