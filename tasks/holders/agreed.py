"""Check that a question in the curator's zone is the one that its holders agreed to answer.

The curator's zone may be somebody else's. Of a question that lies there nothing is believed: its bytes are read once, its epsilon
is that of its integers, and everything else is compared with the configuration of the holders' side, before anybody is
charged and again before the first coin of each shard.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import BudgetError, ProtocolMismatch
from ldptree.families.histoftree import CellsQuestion
from ldptree.families.questions import QUESTIONS
from ldptree.mechanisms import choice_of
from ldptree.mechanisms.numbers import NUMBERS
from ldptree.protocol.protocol import PARTS, Protocol
from ldptree.protocol.question import Question
from schemas.config import RunConfig
from schemas.manifest import Manifest
from storage.store import Store
from tasks.artifacts import QuestionText, read_text


@dataclass(frozen=True, kw_only=True)
class Agreed:
    """The terms that holders answer to.

    epsilon       the most that anybody may spend over all rounds.
    spent         what somebody who is asked has spent in earlier rounds, at most.
    mechanisms    that a report may be made by; none: any.
    mask_release  what leaves a holder about what it protects.
    kinds         of the questions that the estimator asks in rounds; none where it asks about one tree.
    n             how many holders there are.
    digest        of the artifact that the question is.
    number        of its round.
    """

    epsilon: Fraction
    spent: Fraction = Fraction(0)
    mechanisms: tuple[str, ...]
    mask_release: str
    campaign: str | None
    simulation: bool
    kinds: frozenset[str]
    n: int
    digest: str = ""
    number: int = 0


def read_agreed(store: Store, question: Manifest, agreed: Agreed) -> QuestionText:
    """The question in an artifact, its bytes read once.

    Raises:
        ProtocolMismatch: it is not what its holders agreed to.
        BudgetError: it costs more.
    """
    published = read_text(store, question)
    check_question(published, agreed, where=question.names[0])
    return published


def check_question(published: QuestionText, agreed: Agreed, *, where: str = "the question") -> None:
    """Raises ProtocolMismatch where a question is not what its holders agreed to, BudgetError where it costs more."""
    fault = next(_faults(published, agreed), None)
    if fault is not None:
        raise ProtocolMismatch(
            f"round {agreed.number}, {where}: {fault}. Nobody answered it. Find out who wrote to the curator's zone; the same "
            "run goes on once the question is there again that its holders agreed to."
        )
    epsilon = _epsilon_of(published.question)
    if epsilon + agreed.spent > agreed.epsilon:
        before = f", {float(agreed.spent):.12g} of it in earlier rounds" if agreed.spent else ""
        raise BudgetError(
            f"round {agreed.number}, {where}: its holders would spend epsilon {float(epsilon + agreed.spent):.12g}, computed "
            f"from the integers of its coins{before}, and privacy.epsilon is {float(agreed.epsilon):.12g}. Nobody answered it."
        )


def _faults(published: QuestionText, agreed: Agreed) -> Iterator[str]:
    question = published.question
    if published.digest != agreed.digest:
        yield "it is not the question that its holders agreed to; it was changed since"
    is_asked = not agreed.kinds if isinstance(question, Protocol) else question.kind in agreed.kinds
    if not is_asked:
        yield "the configuration's estimator asks no such question"
        return
    if published.simulation is not agreed.simulation:
        marks = {True: "marked as a simulation's", False: "not marked as a simulation's"}
        yield f"it is {marks[published.simulation]}, and this run is {'' if agreed.simulation else 'not '}one"
    mechanism, is_device = _mechanism_of(question)
    if is_device and not agreed.simulation:
        yield f"{mechanism} is a simulation device, its floating-point noise gives holders away"
    if agreed.mechanisms and mechanism not in agreed.mechanisms:
        yield f"it is answered by {mechanism}, and the configuration says {' and '.join(agreed.mechanisms)}"
    if isinstance(question, CellsQuestion) and question.release != agreed.mask_release:
        yield f"it has holders send {question.release} of their mask, and the configuration says {agreed.mask_release}"
    if isinstance(question, Protocol):
        if question.campaign != agreed.campaign:
            yield f"it is of {_named(question.campaign)}, and this run of {_named(agreed.campaign)}"
        if question.round != agreed.number:
            yield f"it is a question of round {question.round}"


def _named(campaign: str | None) -> str:
    return "no campaign" if campaign is None else f"campaign {campaign!r:.80}"


def _mechanism_of(question: Protocol | Question) -> tuple[str, bool]:
    """Return a question's mechanism as a configuration names it, and whether no real holder may use it."""
    if isinstance(question, Protocol):
        return choice_of(question.mechanism), question.mechanism.is_simulation_device
    name = question.describe().mechanism
    return name, name in NUMBERS and NUMBERS[name].is_simulation_device


def _epsilon_of(question: Protocol | Question) -> Fraction:
    """The epsilon of a question's integers; of a protocol the one it claims, which is charged and never smaller."""
    if isinstance(question, Protocol):
        return Fraction(max(question.epsilon_exact, question.epsilon))
    return Fraction(question.epsilon)


class Agreement:
    """The agreement of a run's holders, one question after another. Each question is read once and never changes."""

    def __init__(self, store: Store, config: RunConfig, n: int) -> None:
        """The terms of `n` holders, by the configuration of their side."""
        self._store = store
        self._terms = Agreed(
            epsilon=Fraction(config.privacy.epsilon),
            mechanisms=config.mechanisms(),
            mask_release=config.mask_release,
            campaign=config.campaign.name,
            simulation=config.is_seeded,
            kinds=frozenset(each.kind for each in QUESTIONS.get(config.model.estimator, ())),
            n=n,
        )
        self._agreed: dict[int, tuple[Agreed, Protocol | Question]] = {}
        # Of each holder, or of each part of all, which of these sums it has spent.
        self._sums = [Fraction(0)]
        self._spent = np.zeros(n if config.model.in_rounds else PARTS, np.int64)

    def to(self, number: int, question: Manifest) -> Agreed:
        """A round's question, as its holders agree to it. Raises ProtocolMismatch, BudgetError as `read_agreed`."""
        return self._of(number, question)[0]

    def question(self, number: int, question: Manifest) -> Protocol | Question:
        """The question itself. Raises ProtocolMismatch, BudgetError as `read_agreed`."""
        return self._of(number, question)[1]

    def _of(self, number: int, question: Manifest) -> tuple[Agreed, Protocol | Question]:
        if number not in self._agreed:
            self._agreed[number] = self._agree(number, question)
        elif self._agreed[number][0].digest != question.digest:
            read_agreed(self._store, question, self._agreed[number][0])
        return self._agreed[number]

    def _agree(self, number: int, manifest: Manifest) -> tuple[Agreed, Protocol | Question]:
        terms = replace(self._terms, digest=manifest.digest, number=number)
        text = read_agreed(self._store, manifest, terms)
        question = text.question
        who = self._respondents(question)
        before = np.flatnonzero(np.bincount(self._spent[who]))
        agreed = replace(terms, spent=max((self._sums[place] for place in before), default=Fraction(0)))
        check_question(text, agreed, where=manifest.names[0])
        after = np.zeros(len(self._sums), np.int64)
        after[before] = len(self._sums) + np.arange(len(before))
        self._spent[who] = after[self._spent[who]]
        self._sums += [self._sums[place] + _epsilon_of(question) for place in before]
        return agreed, question

    def _respondents(self, question: Protocol | Question) -> NDArray[np.int64]:
        """Return who is asked, as holders, or as parts of all holders for a question about one tree."""
        return (
            np.arange(*question.asked)
            if isinstance(question, Protocol)
            else question.respondents(self._terms.n)
        )
