"""The interface of respondents. Their rows are in the work folder (`own_holders`), or reports come from outside (`inbox`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.budget import Spent
from flows.conversation import Round
from schemas.manifest import Manifest, Record
from tasks.perturb import Form


@dataclass(eq=False)
class Respondents(ABC):
    """Those who answer in a run. An executor that only looks has them raise NotComputed where a step above is missing.

    run  the pipeline, which calls them.
    """

    run: Any

    @abstractmethod
    def find(self) -> None:
        """Run the steps that decide who is asked."""

    @property
    @abstractmethod
    def n_asked(self) -> int:
        """How many are asked, before they are. Raises NotComputed."""

    @property
    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """How many reported and how many are held back, for the page. Raises NotComputed."""

    @abstractmethod
    def form(self, asked: Round) -> Form:
        """The form of the answers to a question. Raises NotComputed."""

    @property
    @abstractmethod
    def charges_first(self) -> bool:
        """True if the first charge pays for all questions. Raises NotComputed."""

    @abstractmethod
    def charge(self, asked: Round, before: Spent | None) -> Spent:
        """Charge a question before it is answered, and return what is spent; `before` is what was spent until then, if anything.
        Raises BudgetError.
        """

    @abstractmethod
    def answer(self, asked: Round) -> Sequence[Record]:
        """The reports to a question, each drawn once."""

    def has_answers(self, answered: Round) -> bool:
        """Return whether anybody has answered yet, as far as is known."""
        return True

    @abstractmethod
    def sums(self, answered: Round) -> Sequence[Record]:
        """The sums of the reports, of a question about one tree."""

    @abstractmethod
    def received(self, answered: Round) -> Sequence[Manifest]:
        """Every report that counts. Raises NotComputed."""
