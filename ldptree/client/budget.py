"""Keep the answers of the holders on a device, the cost of each, and the most that they may spend in a lifetime. (The curator
keeps accounts of its own: `ldptree.protocol.ledger`.)

Everything is kept in the client's memory, a mapping of texts to texts, in lists that only grow: one of each holder's answers,
each with its epsilon, and one of the lifetimes that were stated. An entry is added with `setdefault` at the first free number,
so of several processes that add one at a time each sees what the others spent before it spends anything itself. The report
is part of the entry: there is no moment at which one is kept without the other.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Self

from ldptree.errors import BudgetError, DataError
from ldptree.limits import MAX_LIFETIME
from ldptree.protocol.ledger import format_epsilon, format_units, is_over, name_of, units_of

Memory = MutableMapping[str, str]

ANSWERING = threading.RLock()
"""Lock that keeps other threads out while a client looks for and keeps a report, as clients may share a memory."""
os.register_at_fork(
    before=ANSWERING.acquire, after_in_parent=ANSWERING.release, after_in_child=ANSWERING.release
)


@dataclass(frozen=True)
class QuestionKey:
    """The key of a question, answered once. It is a round of a campaign, or else of a protocol, by its digest."""

    campaign: str
    round: int

    def __str__(self) -> str:
        return f"{self.campaign!r:.80}, round {self.round}"


@dataclass(frozen=True)
class KeptAnswer:
    """One entry, with the question, the cost of its report, and the report as it travels."""

    question: QuestionKey
    epsilon: float
    report: str

    def to_json(self) -> str:
        """The text that is kept."""
        asked = [self.question.campaign, self.question.round]
        return json.dumps({"asked": asked, "epsilon": self.epsilon, "report": self.report})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote. Raises DataError."""
        try:
            kept = json.loads(text)
            (campaign, number), epsilon, report = kept["asked"], kept["epsilon"], kept["report"]
            units_of(epsilon, "epsilon")
        except (ValueError, TypeError, KeyError, RecursionError, BudgetError):
            raise _damaged() from None
        if [type(part) for part in (campaign, number, report)] != [str, int, str]:
            raise _damaged()
        return cls(QuestionKey(campaign, number), epsilon, report)


class KeptAnswers:
    """The answers of all holders in one memory.

    Args:
        memory: where they are kept; several processes may share it if its `setdefault` is atomic.
        lifetime: the most that a holder may spend, from now on: the smallest that was ever stated for this memory holds.
        unstated: the same for as long as none was stated.

    Raises:
        DataError: the memory holds something else.
    """

    def __init__(self, memory: Memory, *, lifetime: float | None, unstated: float) -> None:
        self._memory = memory
        self._unstated = min(unstated, MAX_LIFETIME)
        if lifetime is not None:
            with ANSWERING:
                self._state(float(lifetime))

    def given(self, holder: str, question: QuestionKey) -> str | None:
        """The report that a holder gave to a question, None where there is none yet."""
        return next((a.report for a in self._of(holder) if a.question == question), None)

    def keep(self, holder: str, question: QuestionKey, epsilon: float, report: str) -> str:
        """Keep a report with its cost, unless the question has been answered meanwhile; returns the one that is kept.

        Raises:
            BudgetError: the holder would spend more than their lifetime allows.
        """
        mine, known = KeptAnswer(question, epsilon, report), list(self._of(holder))
        while not (kept := [a.report for a in known if a.question == question]):
            # Read after the answers: who lowers the lifetime and then answers takes the number that is written to here.
            self._check(mine, known)
            known.append(KeptAnswer.from_json(self._add(_answer_key(holder, len(known)), mine.to_json())))
        return kept[0]

    def _of(self, holder: str) -> Iterator[KeptAnswer]:
        texts = _entries(self._memory, lambda n: _answer_key(holder, n))
        return (KeptAnswer.from_json(text) for text in texts)

    def _check(self, new: KeptAnswer, known: Sequence[KeptAnswer]) -> None:
        amounts = [units_of(answer.epsilon, "epsilon") for answer in known]
        asked, lifetime = units_of(new.epsilon, "epsilon"), self._lifetime()
        cap = units_of(lifetime, "lifetime_epsilon")
        if is_over(sum(amounts) + asked, cap, len(amounts) + 1):
            raise BudgetError(
                f"the question {new.question} asks for epsilon {format_units(asked)}; {format_units(sum(amounts))} of the "
                f"{format_epsilon(lifetime)} that this holder may spend in a lifetime is spent, on {len(known)} questions. "
                "Nothing was sent. What was answered before is given out again; a lifetime is never raised"
            )

    def _lifetime(self) -> float:
        return min(self._stated(), default=self._unstated)

    def _stated(self) -> list[float]:
        return [_amount(text) for text in _entries(self._memory, _lifetime_key)]

    def _state(self, lifetime: float) -> None:
        stated = self._stated()
        while not stated or lifetime < min(stated):
            stated.append(_amount(self._add(_lifetime_key(len(stated)), repr(lifetime))))

    def _add(self, key: str, text: str) -> str:
        """Keep a text unless there is one; returns the one that is kept."""
        if not isinstance(self._memory, dict):
            kept: str = self._memory.setdefault(key, text)
            return kept
        if key not in self._memory:
            self._memory[key] = text  # setdefault would pass by the __setitem__ of a subclass
        return str(self._memory[key])


def _answer_key(holder: str, n: int) -> str:
    return json.dumps({"answer": n, "holder": name_of(holder)})


def _lifetime_key(n: int) -> str:
    return json.dumps({"lifetime": n})


def _entries(memory: Memory, key: Callable[[int], str]) -> Iterator[str]:
    n = 0
    while (text := memory.get(key(n))) is not None:
        yield text
        n += 1


def _amount(text: str) -> float:
    try:
        amount = float(text)
        units_of(amount, "lifetime_epsilon")
    except (ValueError, TypeError, BudgetError):
        raise _damaged() from None
    return amount


def _damaged() -> DataError:
    return DataError(
        "memory: an entry in it is not what a client keeps. Restore it from a copy: whoever answered before would answer twice"
    )
