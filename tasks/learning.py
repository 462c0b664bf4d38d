"""A family at work in a run, with all public parts of its conversation as read from artifacts.

A family either adds up what all holders say of one tree, or takes answers one by one from those whom it asks in rounds.
Its two steps are here: partition chooses question n, a tree grown on public rows or what a family asks in a later round, and
knows nothing of private rows but earlier answers; prune, as the papers call it, fits a model to all of it. Both run with the
curator and cost no privacy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldptree.encoding import Encoding
from ldptree.families import FAMILIES, LearningProblem
from ldptree.families.family import Counted, Family, PublicRows, Published
from ldptree.models import Model
from ldptree.models.curves import Along, along
from ldptree.models.public_view import PublicViewModel
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.question import AnsweredQuestion, PublicView, Question
from schemas.manifest import Arguments, Manifest, StoredRound, StoredTranscript
from storage.digests import Hasher
from storage.store import Draft, Store
from tasks.artifacts import (
    read_encoding,
    read_evidence,
    read_protocol,
    read_scaled,
    read_shown,
    read_totals,
    read_transcripts,
    read_weights,
    write_curves,
    write_evidence,
    write_model,
    write_protocol,
    write_question,
)
from tasks.step import step


class Asking(Arguments):
    """The inputs of a run's questions, besides what is public.

    estimator   the family's name.
    settings    its own, those that a question depends on.
    has_positive  one of two classes is looked for.
    simulation  the holders' coins come from a seed, and what is published says so.
    """

    estimator: str
    settings: dict[str, Any]
    epsilon: float
    mechanism: str
    outside: str
    holder: str
    target: str
    campaign: str | None
    seed: int
    has_positive: bool = False
    simulation: bool = False


class Learning(ABC):
    """A family, what it sees, and what was answered so far."""

    family: Family[Any, Any, Any, Any]

    @abstractmethod
    def ask(self) -> Any:
        """The next question; None where nothing is left to ask. Raises what the family raises."""

    @abstractmethod
    def publish(self, draft: Draft, question: Any) -> Mapping[str, Any]:
        """Write a question; what a run says of it."""

    @abstractmethod
    def fit(self) -> Model:
        """Fit the model that is released after the last answers."""

    def draw_curves(self, model: Any) -> Along | None:
        """Draw what a model says along its features, averaged over what holders show; None where they show nothing."""
        return None


@dataclass(frozen=True, eq=False)
class LearningOfTotals(Learning):
    """A family that asks about one tree."""

    family: Family[Any, Any, Any, Any]
    rows: PublicRows
    transcript: Sequence[Counted[Any]]

    def ask(self) -> Published[Any] | None:
        """The next question and its evidence."""
        asked: Published[Any] | None = self.family.ask(self.family.summarize(self.rows), self.transcript)
        return asked

    def publish(self, draft: Draft, question: Published[Any]) -> Mapping[str, Any]:
        """Write the protocol ("question"), and what public rows say of it ("evidence")."""
        write_protocol(draft, question.protocol)
        write_evidence(draft, question.evidence.to_json())
        return describe_protocol(question.protocol) | {"is_last": question.is_last}

    def fit(self) -> Model:
        """The model."""
        # Once totals are there no family looks at more of the public rows than the evidence.
        model: Model = self.family.fit(self.rows, self.transcript)
        return model


@dataclass(frozen=True, eq=False)
class LearningInRounds(Learning):
    """A family that asks in rounds. `digests` are those of the questions' texts in the store."""

    family: Family[Any, Any, Any, Any]
    asking: Asking
    encoding: Encoding
    view: PublicView
    transcript: Sequence[AnsweredQuestion]
    digests: Sequence[str]

    def ask(self) -> Question | None:
        """The next question."""
        question: Question | None = self.family.ask(self.view, self.transcript)
        return question

    def publish(self, draft: Draft, question: Question) -> Mapping[str, Any]:
        """Write the question ("question")."""
        text = write_question(draft, question, simulation=self.asking.simulation)
        return {
            "digest": Hasher().of_bytes(text),
            "about": question.about,
            "epsilon": question.epsilon,
            "n_asked": int(question.respondents(self.view.n).size),
        }

    def fit(self) -> PublicViewModel:
        """The model, with how raw rows are read."""
        protected = np.flatnonzero(self.view.protects.any(axis=0))
        columns = [feature.column for feature in self.encoding.features for _ in feature.names]
        return PublicViewModel(
            encoding=self.encoding,
            target=self.asking.target,
            private=tuple(dict.fromkeys(columns[j] for j in protected)),
            estimator=self.asking.estimator,
            inner=self.family.fit(self.view, self.transcript),
            epsilon=self.asking.epsilon,
            n_private=self.view.n,
            questions=tuple(self.digests),
        )

    def draw_curves(self, model: PublicViewModel) -> Along:
        """Of the model, over what holders show."""
        return along(model.inner, self.encoding, self.view)


def build_family(
    asking: Asking,
    encoding: Encoding,
    label: tuple[Any, ...],
    reading: Mapping[str, Any] | None = None,
    *,
    frozen: Protocol | None = None,
) -> Family[Any, Any, Any, Any]:
    """The family that a run names; arguments as of `read_learning`, `label` as of `LearningProblem`."""
    settings = asking.settings | dict(reading or {})
    heading = {name: getattr(asking, name) for name in ("outside", "holder", "target", "campaign")}
    if asking.simulation and frozen is None:
        heading["simulation"] = True
    registered = FAMILIES[asking.estimator]
    if not registered.in_rounds:
        settings |= {"mechanism": asking.mechanism, "frozen": frozen}
    problem = LearningProblem(
        columns=encoding.names,
        epsilon=asking.epsilon,
        label=label,
        seed=asking.seed,
        heading=heading,
        has_positive=asking.has_positive,
    )
    return registered.build(problem, **settings)


def read_learning(
    store: Store,
    transcript: StoredTranscript,
    asking: Asking,
    *,
    n_private: int = 0,
    reading: Mapping[str, Any] | None = None,
    frozen: Manifest | None = None,
) -> Learning:
    """The family with everything that is public so far.

    Args:
        store: where it lies.
        transcript: what is public.
        asking: what questions depend on.
        n_private: how many holders are asked, before they are.
        reading: the family's settings that only its model depends on.
        frozen: a protocol that was published before, taken as it is.
    """
    encoding, label = read_encoding(store, transcript.encoding)
    family = build_family(
        asking, encoding, label, reading, frozen=None if frozen is None else read_protocol(store, frozen)
    )
    if FAMILIES[asking.estimator].in_rounds:
        assert transcript.shown is not None
        return LearningInRounds(
            family,
            asking,
            encoding,
            read_shown(store, transcript.shown),
            read_transcripts(store, [stored.answers for stored in transcript.rounds]),
            [Hasher().of_file(store.file(stored.question, "question.json")) for stored in transcript.rounds],
        )
    X, y = read_scaled(store, transcript.scaled)
    weights = read_weights(store, transcript.scaled)
    rows = PublicRows(encoding=encoding, X=X, y=y, label=label, n_private=n_private, weights=weights)
    return LearningOfTotals(
        family, rows, [_read_counted(store, family, stored) for stored in transcript.rounds]
    )


def _read_counted(store: Store, family: Any, stored: StoredRound) -> Counted[Any]:
    assert stored.evidence is not None
    protocol, content = read_protocol(store, stored.question), read_evidence(store, stored.evidence)
    published: Published[Any] = Published(protocol, lambda: family.read_evidence(content, protocol))
    return Counted(published, read_totals(store, stored.answers, protocol))


def describe_protocol(protocol: Protocol) -> dict[str, Any]:
    """Describe a protocol in a run's words, with sizes, epsilons and the kind of report."""
    base = protocol.base
    of_base = (
        {} if base is None else {"base_trees": base.ensemble.roots.size, "base_nodes": base.ensemble.n_nodes}
    )
    return of_base | {
        "digest": protocol.digest,
        "cells": protocol.partition.n_leaves,
        "depth": protocol.partition.max_depth,
        "mechanism": protocol.mechanism.full_name,
        "k": protocol.k,
        "report_bytes": protocol.mechanism.report_bytes,
        "epsilon": protocol.epsilon,
        "epsilon_exact": protocol.epsilon_exact,
        "asks_a_part": not protocol.asks_everybody,
    }


@step("prune", version="9", home="curator", retries=2, says="the model")
def fit(
    draft: Draft, *, transcript: StoredTranscript, asking: Asking, reading: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Write the model ("model"), in rounds also its curves ("curves"). `reading` has the model's own settings."""
    learning = read_learning(draft.store, transcript, asking, reading=reading)
    model = learning.fit()
    write_model(draft, model)
    if (curves := learning.draw_curves(model)) is not None:
        write_curves(draft, curves)
    return model.summarize() | {"digest": model.digest}


@step(
    "partition",
    version="8",
    home="curator",
    retries=2,
    says="a question to people, made of public rows",
)
def partition(
    draft: Draft,
    *,
    transcript: StoredTranscript,
    asking: Asking,
    n_private: int,
    frozen: Manifest | None = None,
) -> Mapping[str, Any]:
    """Write the next question ("question"), and what public rows say of it ("evidence") where they say anything.

    `frozen`: a campaign's published question, taken as it is.
    """
    learning = read_learning(draft.store, transcript, asking, n_private=n_private, frozen=frozen)
    question = learning.ask()
    if question is None:
        write_question(draft, None, simulation=False)
        return {"is_left": False, "n_private": n_private}
    return {"is_left": True, "n_private": n_private} | dict(learning.publish(draft, question))
