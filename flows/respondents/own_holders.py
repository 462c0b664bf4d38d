"""Holders whose rows are in the work folder. Everybody is charged before anybody answers, and each answers once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, cast

from flows.budget import (
    UNKNOWN_CONVERSATION,
    ConversationCost,
    Cost,
    QuestionCost,
    Spent,
    TrialCost,
    conversation_key,
)
from flows.conversation import Round
from flows.executors import Call, known
from flows.respondents.respondents import Respondents
from flows.shards import shards_asked
from ldptree.errors import BudgetError, ProtocolMismatch
from ldptree.protocol.protocol import Protocol
from schemas.manifest import Manifest, Record
from tasks.answers.add import add, parts_to_add
from tasks.holders.agreed import Agreement
from tasks.holders.show import in_order
from tasks.perturb import Collecting, Form, Showing, perturb
from tasks.step import NotInKey


class OwnHolders(Respondents):
    """The holders of a run's own private rows."""

    def find(self) -> None:
        """Decide who reports and who is held back."""
        _ = self.run.assigned, self.run.held

    @property
    def n_asked(self) -> int:
        """All who report. Raises NotComputed."""
        n: int = self.run.held.facts["n_private"]
        return n

    @property
    def facts(self) -> Mapping[str, Any]:
        """How many report and how many are held back. Raises NotComputed."""
        facts: Mapping[str, Any] = self.run.held.facts
        return facts

    def form(self, asked: Round) -> Form:
        """Return "reports", or "totals" where only each shard's are drawn. Raises NotComputed."""
        run = self.run
        return "reports" if run.config.model.in_rounds else run.terms.form(run.held, known(asked.asked))

    @cached_property
    def agreement(self) -> Agreement:
        """Agreement of the holders, by the configuration. Raises NotComputed."""
        return Agreement(self.run.store, self.run.terms.config, known(self.run.held).facts["n_private"])

    def cost(self, asked: Round) -> Cost:
        """Return the cost of a question; where parts of the holders are asked apart, that of all questions.

        Raises:
            NotComputed: the question is not known.
            ProtocolMismatch: it is not what its holders agree to.
            BudgetError: it costs more than the configuration says.
        """
        question = self.agreement.question(asked.number, asked.question())
        config, held = self.run.terms.config, known(self.run.held)
        if config.is_trial:
            return TrialCost(config, asks_parts=self.asks_parts)
        if not self.asks_parts:
            protocol = cast("Protocol", question)
            joining = self.run.terms.joining(self.run.raw, self.run.ingested, held, known(self.run.published))
            return QuestionCost(
                self.run.store, config, self.run.raw, held, protocol, self.form(asked), joining
            )
        return ConversationCost(self.run.store, config, self.run.raw, held, self._key_of_conversation)

    @property
    def _key_of_conversation(self) -> str:
        """Return the ledger's key for all questions, by what the curator knows before the first, or by that one."""
        if not self.run.config.model.in_rounds:
            return self.agreement.question(1, self.run.protocol).digest
        return conversation_key(
            self.run.store,
            self.run.terms.config,
            self.run.scaled["encoding"],
            self.run.shown["shown"],
            self.run.scaled.facts["label_range"],
        )

    def _unknown_cost(self) -> Cost:
        config, held = self.run.terms.config, known(self.run.held)
        if not config.model.in_rounds:
            before = self.run.terms.protocol
            question = None if before is None else self.agreement.question(1, before)
            return QuestionCost(
                self.run.store, config, self.run.raw, held, cast("Protocol | None", question), "reports"
            )
        return ConversationCost(self.run.store, config, self.run.raw, held, UNKNOWN_CONVERSATION)

    def charge(self, asked: Round, before: Spent | None) -> Spent:
        """Charge a question before it is answered, and return what is spent. `before` is what was spent until then, if
        anything. Raises BudgetError.

        Where parts of the holders are asked apart, everybody is charged the whole epsilon before the first question.
        """
        if before is not None and self.asks_parts:
            return before
        self.run.may_have_asked = True
        try:
            spent: Spent = self.run.executor.charge(lambda: self.cost(asked), self._unknown_cost)
        except (BudgetError, ProtocolMismatch):
            # Another run may have asked since: its question then is the campaign's, of which these people may afford more.
            self.run.terms.check_known()
            raise
        return spent

    @cached_property
    def shards(self) -> list[Call]:
        """Each shard of who is asked, and its number among a simulation's that hold the same; by names, or as they are shown."""
        asked = shards_asked(self.run.store, self.run.terms.config, self.run.held)
        own: list[Call] = [{"shard": shard, "copy_index": NotInKey(number)} for shard, number in asked]
        if not self.run.config.model.in_rounds:
            return own
        ordered = in_order(self.run.store, self.run.held["train"], is_seeded=self.run.terms.config.is_seeded)
        by_name = {call["shard"].files[0].name: call for call in own}
        starts = [0, *accumulate(shard.rows for shard in ordered)][:-1]
        return [by_name[s.files[0].name] | {"start": start} for s, start in zip(ordered, starts, strict=True)]

    def answer(self, asked: Round) -> Sequence[Record]:
        """The reports of everybody whom a question asks, each drawn once."""
        looks = self.run.executor.only_looks
        if not looks:
            cost = self.cost(asked)
            if isinstance(cost, ConversationCost):  # one charge pays for questions that it does not name
                cost.check_question(asked.number, asked.question().digest)
        reports = self.run.executor.shards(
            perturb, lambda: (self.of_perturb(asked), self.shards), asked.number
        )
        if not looks:
            shards: list[Manifest] = [record["shard"] for record in self.shards]
            self.cost(asked).keep_answers(asked.number, shards, reports)
            self.run.records.extend(reports)
        return reports  # type: ignore[no-any-return]

    def of_perturb(self, asked: Round) -> Call:
        """The question, for every shard alike."""
        config = self.run.terms.config
        call = {
            "question": asked.question(),
            "round_number": asked.number,
            "noise_seed": config.noise_seed,
            "agreed": NotInKey(self.agreement.to(asked.number, asked.question())),
        }
        if not config.model.in_rounds:
            return call | {"collecting": Collecting(form=self.form(asked), campaign=config.campaign.name)}
        showing = Showing(
            encoding=self.run.scaled["encoding"],
            shown=self.run.shown["shown"],
            features=config.features,
            target=self.run.terms.dataset.target,
        )
        return call | {"showing": showing}

    def sums(self, answered: Round) -> Sequence[Record]:
        """What `add` leaves of each part of the reports; nothing of answers in rounds, which are no sums."""
        if self.run.config.model.in_rounds:
            return ()
        left: list[Record] = self.run.each(add, lambda: self._of_add(answered), answered.number)
        return left

    def _of_add(self, answered: Round) -> tuple[Call, list[Call]]:
        question, reports = answered.question(), self.received(answered)
        call = {"question": question, "round_number": answered.number}
        return call, [{"reports": part} for part in parts_to_add(self.run.store, question, reports)]

    def received(self, answered: Round) -> Sequence[Manifest]:
        """Every report there is, in a campaign those of earlier runs too. Raises NotComputed, ArtifactCorrupt."""
        every: list[Manifest] = self.run.terms.received([*answered.reports])
        return every
