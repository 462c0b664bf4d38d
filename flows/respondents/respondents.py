"""The interface of respondents. Their rows are in the work folder (`own_holders`), or reports come from outside (`inbox`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.budget import Spent
from flows.conversation import Round
from flows.executors import known
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
    def asks_parts(self) -> bool:
        """True if each question is for some of them, so that one charge pays for all questions. Raises NotComputed."""
        return self.run.config.model.in_rounds or bool(known(self.run.published).facts.get("asks_a_part"))

    @abstractmethod
    def charge(self, asked: Round, before: Spent | None) -> Spent:
        """Charge a question before it is answered, and return what is spent; `before` is what was spent until then, if anything.
        Raises BudgetError.
        """

    @abstractmethod
    def answer(self, asked: Round) -> Sequence[Record]:
        """The reports to a question, each drawn once."""

    def is_answered(self, answered: Round) -> bool:
        """Return whether the run goes on from these answers, as far as is known."""
        return True

    @abstractmethod
    def sums(self, answered: Round) -> Sequence[Record]:
        """The sums of the reports, of a question about one tree."""

    @abstractmethod
    def received(self, answered: Round) -> Sequence[Manifest]:
        """Every report that counts. Raises NotComputed."""
