"""What a conversation of several rounds costs: the whole epsilon, charged before its first question; and that it stays the one
that was charged. What a single question costs is in `budget`.

A conversation is known by what its curator knows before the first question (what is shown, the settings, the seed) and by who
is asked: the same run again goes on with it and costs nothing more; any other is charged anew, though some of its questions may
be the same and be answered by reports that stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

from flows.budget import Spent, account_of, charges_of, keep_apart, questions_of, seal, spent_now
from ldptree.errors import BudgetError
from ldptree.protocol.ledger import Charge, Ledger
from schemas.config import RunConfig
from schemas.manifest import Manifest, Record
from storage.ledger.accounts import Account
from storage.store import Store
from tasks.checkpoint import kept_in_zone


@dataclass(frozen=True)
class Charged:
    """A conversation that may be held.

    key    digest of what its curator knows before the first question: `round_calls.conversation`.
    """

    store: Store
    config: RunConfig
    raw: Manifest
    held: Record
    key: str

    def charge(self) -> Spent:
        """Charge every holder the whole epsilon, over all rounds, before the first question; the same conversation costs it once.

        Whoever is asked nothing in the end, and whoever one question only, has been charged no less: the ledger need not know
        whom the public coins chose.

        Raises:
            BudgetError: a holder would spend more than the smallest lifetime cap ever stated; nothing is spent.
            ArtifactCorrupt: answers that were received in any of its rounds are missing.
        """
        keep_apart(self.store, self.config, self.held)
        spent = self._spent(self._account.charge)
        seal(self.store)
        return spent

    def foresee(self) -> Spent:
        """What `charge` would return. Writes nothing. Raises as it does."""
        return self._spent(self._account.foresee)

    def check_question(self, number: int, digest: str) -> None:
        """Keep which question is put in a round, before it is. Not of seeded simulations, which protect nobody.

        Raises:
            BudgetError: this conversation put another one in this round, which its charge paid for: this one was not paid for.
        """
        if self.config.is_seeded:
            return
        with kept_in_zone(self.store, "ledger", "holders"):
            if not all(self._account.keep_asked(name, digest) for name in self._names(number)):
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
            shard.files[0].name: path
            for shard, record in zip(shards, reports, strict=True)
            for path in self.store.files(record["reports"])
        }
        with kept_in_zone(self.store, "ledger", "holders"):
            for question in questions_of(self.store, self.config, self.held, self._digest, (number,), FORM):
                self._account.keep_answer(question.name, [files[shard] for shard in question.shards])
        seal(self.store)

    @property
    def _account(self) -> Account:
        return account_of(self.store, self.config)

    @property
    def _digest(self) -> str:
        """Who is asked is part of it: a later round's question rests on the answers of all of them."""
        return self.store.hasher("holders").of_value([self.key, self.held["train"].digest])

    def _names(self, number: int) -> list[str]:
        """Of a round's question, for each raw file."""
        asked = questions_of(self.store, self.config, self.held, self._digest, (number,), FORM)
        return [question.name for question in asked]

    def _spent(self, spend: Callable[[Sequence[Charge], float | None, Sequence[Charge]], Ledger]) -> Spent:
        with kept_in_zone(self.store, "ledger", "holders"):
            for number in count(2):  # the first round's are looked for with the charge
                answered = [self._account.is_answered(name) for name in self._names(number)]
                if not all(answered):
                    break
            epsilon, told = self.config.privacy.epsilon, f"questions {self.key[:8]}"
            asked = charges_of(
                self.store, self.config, self.raw, self.held, self._digest, (1,), epsilon, told, FORM
            )
            asked = [replace(charge, about=charge.about.replace("round 1", "all rounds")) for charge in asked]
            return spent_now(spend(asked, self.config.privacy.lifetime_epsilon, []))


FORM = "rounds"
"""What tells its reports from those of one question."""
