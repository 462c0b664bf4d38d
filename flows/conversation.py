"""The rounds of a run, each with a question, its answers and what they spent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flows.budget import Spent
from flows.executors import Call, NotComputed, known
from schemas.manifest import Manifest, Record, StoredRound

NOTHING = Spent(largest=0.0, questions=0, cap=None)


@dataclass(frozen=True)
class Round:
    """One question and what came of it.

    number    of the round, from 1.
    asked     the record that the question stands in.
    question  the question itself, once it is known: of a campaign the first one published.
    reports   everybody's, a record a shard.
    left      what the reports say together: totals, or all answers.
    """

    number: int
    asked: Any
    question: Callable[[], Manifest]
    reports: Sequence[Record] = ()
    left: Any = None

    @property
    def is_last(self) -> bool:
        """True if surely no question follows; False where that is not known yet."""
        return isinstance(self.asked, Record) and self.asked.facts.get("is_last", False)

    @property
    def stored(self) -> StoredRound:
        """The question and its answers as artifacts. Raises NotComputed."""
        (answers,) = known(self.left).parts.values()
        return StoredRound(
            question=self.question(), answers=answers, evidence=known(self.asked).parts.get("evidence")
        )


@dataclass(frozen=True)
class Conversation:
    """The rounds of a run, and what they spent.

    is_open  whether a question may follow that is not known yet: only where steps are looked for.
    """

    rounds: Sequence[Round]
    spent: Spent
    is_open: bool = False

    @property
    def is_unanswered(self) -> bool:
        """True if nobody has answered the last question yet."""
        return bool(self.rounds) and self.rounds[-1].left is None

    @property
    def whole(self) -> Sequence[Round]:
        """All rounds. Raises NotComputed while another may follow."""
        if self.is_open:
            raise NotComputed
        return self.rounds

    @property
    def spending(self) -> Call:
        """Spending as the page is told. Raises NotComputed."""
        return {"largest": self.spent.largest, "questions": self.spent.questions, "cap": self.spent.cap}

    @property
    def last(self) -> Round:
        """The last round. Raises NotComputed while another may follow."""
        return self.whole[-1]
