"""What the steps of a run wrote, read without its page: models, protocols, totals, scores, checks, and the page's text itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from chain import Chain, RoundsChain
from numpy.typing import NDArray

from flows.budget import Spent
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.totals import Totals
from page_truth.reading import Element, read
from schemas.config import RunConfig
from schemas.manifest import Record
from storage.store import Store
from tasks.artifacts import read_protocol, read_published, read_scaled, read_totals


@dataclass
class Run:
    """A run that is over; `chain` has called its steps, and `n_earlier` reports stood before."""

    chain: Chain | RoundsChain
    n_earlier: int = 0

    @property
    def store(self) -> Store:
        return self.chain.store

    @property
    def config(self) -> RunConfig:
        return self.chain.config

    @cached_property
    def html(self) -> str:
        return self.store.file(self.chain.page["page"], "page.html").read_text(encoding="utf-8")

    @cached_property
    def page(self) -> Element:
        return read(self.html)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What the page was made of: only for when it was made, how long it took, and on which machine."""
        found: dict[str, Any] = json.loads(
            self.store.file(self.chain.page["page"], "facts.json").read_text(encoding="utf-8")
        )
        return found

    @cached_property
    def scores(self) -> dict[str, Any] | None:
        """`scores.json`; None of a release."""
        if not self.config.evaluate:
            return None
        found: dict[str, Any] = json.loads(
            self.store.file(self.chain.scores["scores"], "scores.json").read_bytes()
        )
        return found

    @cached_property
    def checks(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(
            self.store.file(self.chain.checked["checks"], "checks.json").read_bytes()
        )
        return found

    @cached_property
    def model(self) -> Any:
        from ldptree.models.public_view import PublicViewModel
        from tasks.artifacts import read_model

        if isinstance(self.chain, RoundsChain):
            return PublicViewModel.from_json(
                self.store.file(self.chain.model["model"], "model.json").read_bytes()
            )
        return read_model(self.store, self.chain.model["model"])

    @cached_property
    def protocol(self) -> Protocol:
        assert isinstance(self.chain, Chain)
        return read_protocol(self.store, self.chain.conversation.last.question())

    @cached_property
    def last(self) -> Any:
        """The last question, a protocol or one of a round."""
        return read_published(self.store, list(self.chain.conversation.whole)[-1].question())

    @cached_property
    def answered(self) -> list[tuple[Totals, ...]]:
        """The totals of every question."""
        return [
            read_totals(self.store, one.left["totals"], read_protocol(self.store, one.question()))
            for one in self.chain.conversation.whole
        ]

    @cached_property
    def totals(self) -> tuple[Totals, ...]:
        assert isinstance(self.chain, Chain)
        return read_totals(self.store, self.chain.conversation.last.left["totals"], self.protocol)

    @cached_property
    def public(self) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """Encoded public rows, and their labels: class numbers, or numbers."""
        return read_scaled(self.store, self.chain.scaled["scaled"])

    @property
    def n_public(self) -> int:
        return len(self.public[1])

    @property
    def held(self) -> Record:
        return self.chain.held

    @cached_property
    def n_private(self) -> int:
        """Private people who reported."""
        if isinstance(self.chain, RoundsChain):
            return int(self.held.facts["n_private"])
        return sum(totals.n_private for one in self.answered for totals in one)

    @property
    def spent(self) -> Spent:
        assert self.chain.spent is not None
        return self.chain.spent

    @property
    def noun(self) -> str:
        return self.config.dataset.noun

    @property
    def nouns(self) -> str:
        return self.config.dataset.nouns

    def rows(self, number: int | None = None) -> str:
        """What rows are called, simulated ones so."""
        noun = self.noun if number == 1 else self.nouns
        return f"simulated {noun}" if self.config.dataset.simulated else noun

    def name(self, value: Any) -> str:
        """What a label is called."""
        names = self.config.dataset.names.get(self.config.dataset.target, {})
        return str(names.get(str(value), value))

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The label's values in the order of the encoding; () of a number."""
        if isinstance(self.chain, RoundsChain):
            return ()
        return tuple(self.name(value) for value in getattr(self.model, "classes", ()))

    @property
    def positive(self) -> str | None:
        """Of two classes, the one that margins and shares are of."""
        return self.classes[1] if len(self.classes) == 2 else None
