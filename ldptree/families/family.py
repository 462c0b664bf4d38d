"""The interface of a family, which is one way to learn. It asks until nothing is left to ask, then fits.

Estimators, tests and the pipeline hold the same conversation with every family.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ldptree.protocol.question import AnsweredQuestion, PublicView, Question

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ldptree.encoding import Encoding
    from ldptree.protocol.protocol import Protocol
    from ldptree.protocol.totals import Totals

View = TypeVar("View")
"""What everybody can see before anything is asked."""
Asked = TypeVar("Asked")
"""A question."""
Answered = TypeVar("Answered")
"""A question with its answers, as an entry of the transcript."""
Released = TypeVar("Released")
"""What is released."""
Evidence = TypeVar("Evidence")
"""What public rows say of a published question."""


class Family(ABC, Generic[View, Asked, Answered, Released]):
    """One way to learn. It holds settings only, so that a run can stop between two questions and go on later."""

    def summarize(self, public: Any) -> View:
        """Return the public view, computed once before all questions. Most families take public rows as they are."""
        view: View = public
        return view

    @abstractmethod
    def ask(self, view: View, transcript: Sequence[Answered]) -> Asked | None:
        """The next question after these answers, or None where nothing is left to ask. It depends on public things alone."""

    @abstractmethod
    def fit(self, view: View, transcript: Sequence[Answered]) -> Released:
        """The model after the last answers."""


def collect_answers(
    family: Family[View, Asked, Answered, Released], view: View, respond: Callable[[Asked], Answered]
) -> list[Answered]:
    """Ask until nothing is left to ask; the transcript. Arguments as of `converse`."""
    transcript: list[Answered] = []
    while (question := family.ask(view, transcript)) is not None:
        transcript.append(respond(question))
    return transcript


def converse(
    family: Family[View, Asked, Answered, Released], view: View, respond: Callable[[Asked], Answered]
) -> tuple[Released, list[Answered]]:
    """Ask until nothing is left to ask, then fit.

    Args:
        family: who asks.
        view: what everybody can see.
        respond: the holders' side, which charges the ledger before it answers.

    Returns:
        The model, and the transcript it was fitted on.
    """
    transcript = collect_answers(family, view, respond)
    return family.fit(view, transcript), transcript


RoundsFamily = Family[PublicView, Question, AnsweredQuestion, Released]
"""A family whose questions go to a part of the holders each, by what everybody can see of them."""


def respond_in_rounds(
    view: PublicView, answer: Callable[[Question, NDArray[np.int64]], NDArray[Any]]
) -> Callable[[Question], AnsweredQuestion]:
    """The holders' side of a conversation in rounds.

    Args:
        view: what everybody can see.
        answer: the reports of these holders to a question; it charges the ledger before it answers.
    """

    def respond(question: Question) -> AnsweredQuestion:
        holders = question.respondents(view.n)
        return AnsweredQuestion(question, holders, answer(question, holders))

    return respond


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicRows:
    """The view of a family that asks about one tree.

    Attributes:
        encoding: how rows are read.
        X: float32 [n, d], encoded public rows.
        y: their labels, [n]: class indices, or numbers.
        label: the declared classes, or the two ends of a number's range.
        n_private: how many holders will be asked.
        weights: of the rows, [n], where a public model is fitted; None: each alike.
    """

    encoding: Encoding
    X: NDArray[np.float32]
    y: NDArray[Any]
    label: tuple[Any, ...]
    n_private: int
    weights: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Published(Generic[Evidence]):
    """A question about one tree, and what public rows say of it.

    Attributes:
        protocol: the question.
        evidence: what public rows say of it, computed when it is first read.
        is_last: whether surely no question follows it.
    """

    protocol: Protocol
    _summarize: Callable[[], Evidence]
    is_last: bool = False
    _found: list[Evidence] = field(default_factory=list)

    @property
    def evidence(self) -> Evidence:
        """See the class."""
        if not self._found:
            self._found.append(self._summarize())
        return self._found[0]


@dataclass(frozen=True, eq=False)
class Counted(Generic[Evidence]):
    """A question about one tree, and the unbiased totals of its answers, one for each output."""

    published: Published[Evidence]
    totals: tuple[Totals, ...]

    @property
    def protocol(self) -> Protocol:
        """The question."""
        return self.published.protocol


class OneTreeFamily(Family[View, Published[Evidence], Counted[Evidence], Released]):
    """A family that asks every holder about one tree. What public rows say of its question may be written down and read again."""

    @abstractmethod
    def expect(self, view: View, n_private: int) -> View:
        """The same view where so many holders will be asked."""

    def predict_publicly(self, view: View, X: NDArray[np.float32]) -> NDArray[Any] | None:
        """Predict encoded rows by the family's public model, before anybody answers, as class indices or numbers, [n].
        Return None if it has no public model.
        """
        return None

    def doubt(self, evidence: Evidence) -> NDArray[np.float64] | None:
        """Variance that public rows leave open of the public model's mean error in each cell of the question, float64 [L], of the
        first output. None where the family has no public model.
        """
        return None

    @abstractmethod
    def read_evidence(self, data: Mapping[str, Any], protocol: Protocol) -> Evidence:
        """The evidence whose `to_json` wrote `data`, beside the protocol it was written for."""
