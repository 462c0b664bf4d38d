"""A family at work on simulated people, whom it asks and from whose answers it predicts.

Where reports are about one tree, totals are drawn with the exact law of the reports' sum (`Mechanism.sample_totals`): that
takes as long for a million people as for a thousand. Where a family asks in rounds, everybody answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.baselines import BASELINES, PUBLIC_ROWS
from ldptree.coins import Words
from ldptree.families.family import Counted, OneTreeFamily, PublicRows, Published, converse, respond_in_rounds
from ldptree.mechanisms import report_values
from ldptree.planning.detection import Findable, find_smallest
from ldptree.protocol.question import PublicView, Question
from ldptree.protocol.totals import Totals
from ldptree.simulate.redraws import KnownHolders, draw_outputs_again

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.families.family import Family
    from ldptree.planning.known_rows import KnownRows
    from ldptree.planning.people import Split
    from ldptree.protocol.protocol import Protocol
    from ldptree.protocol.published_base import PublishedBase

    Floats = NDArray[np.float64]

Build = Callable[[float], "Family[Any, Any, Any, Any]"]
"""The family by the epsilon of each person."""
FOREST = "public_forest"
"""What stands for public rows alone, where a family has no public model of its own."""


@dataclass(frozen=True)
class Asked:
    """The size of the question about cells, with their number (None without a tree), and the bytes of a report."""

    cells: int | None
    report_bytes: int


class Learner(ABC):
    """A family that learns from the public rows of a split and from simulated people."""

    split: Split

    @abstractmethod
    def learn(
        self, people: KnownRows, n: int, epsilon: float, rows: KnownRows, seed: np.random.SeedSequence
    ) -> NDArray[Any]:
        """Predict rows after n people answered, as class indices or numbers."""

    @abstractmethod
    def prepare(self, n: int, epsilon: float) -> None:
        """Make the first question to n people, before several draws need it at once."""

    @abstractmethod
    def size(self, n: int, epsilon: float) -> Asked:
        """Return the size of its first question to n people."""

    @abstractmethod
    def predict_publicly(self, rows: KnownRows) -> NDArray[Any]:
        """Predict rows from public rows alone."""

    def find_smallest(
        self, people: KnownRows, n: int, epsilon: float, share: float, seed: np.random.SeedSequence
    ) -> Findable | None:
        """Find the smallest error that would be found on a share of n people, or None if no tree is asked about."""
        return None


@dataclass(eq=False)
class LearnerOfTotals(Learner):
    """A family that asks about one tree."""

    build: Build
    split: Split
    seed: int = 0
    _views: dict[str, Any] = field(default_factory=dict)
    _asked: dict[tuple[int, float], tuple[Any, Any, Published[Any]]] = field(default_factory=dict)
    _answers: dict[int, tuple[NDArray[Any], NDArray[np.float32], Floats]] = field(default_factory=dict)
    _sizes: dict[tuple[int, float], Asked] = field(default_factory=dict)

    def ask(self, n: int, epsilon: float) -> tuple[OneTreeFamily[Any, Any, Any], Any, Published[Any]]:
        """The family, what it sees, and its first question to n people."""
        if (n, epsilon) not in self._asked:
            family: Any = self.build(epsilon)
            view = family.expect(self._view(family), n)
            self._asked[n, epsilon] = family, view, family.ask(view, [])
        return self._asked[n, epsilon]

    def prepare(self, n: int, epsilon: float) -> None:
        """See `Learner`."""
        self.ask(n, epsilon)

    def _view(self, family: Any) -> Any:
        """Return public rows' part of the fit, computed once as it does not depend on epsilon."""
        if "view" not in self._views:
            rows = self.split.fitted
            public = PublicRows(
                encoding=rows.encoding,
                X=rows.encoding.encode(rows.raw),
                y=rows.labels,
                label=rows.label,
                n_private=1,
            )
            self._views["view"] = family.summarize(public)
        return self._views["view"]

    def learn(
        self, people: KnownRows, n: int, epsilon: float, rows: KnownRows, seed: np.random.SeedSequence
    ) -> NDArray[Any]:
        """See `Learner`."""
        family, view, _ = self.ask(n, epsilon)
        model = family.fit(view, self._converse(people, n, epsilon, Words.seeded(seed)))
        return np.asarray(model.predict(rows.raw))

    def _converse(self, people: KnownRows, n: int, epsilon: float, words: Words) -> list[Counted[Any]]:
        """Ask n people until nothing is left to ask."""
        family, view, question = self.ask(n, epsilon)
        asked: Published[Any] | None = question
        transcript: list[Counted[Any]] = []
        while asked is not None:
            n_asked = asked.protocol.count_respondents(n)
            transcript.append(Counted(asked, self.respond(asked.protocol, people, n_asked, words)))
            asked = family.ask(view, transcript)
        return transcript

    def respond(self, protocol: Protocol, people: KnownRows, n: int, words: Words) -> tuple[Totals, ...]:
        """The totals of n people's reports, with the law that their reports have, one an output."""
        drawn = people.draw(n, words.generator())
        cells = protocol.cells(people.raw)[drawn]
        if protocol.base is not None:
            base, (X, errors) = protocol.base, self._errors_of(protocol.base, people)

            def residuals_of(output: int, is_on: Any) -> NDArray[np.float32]:
                return np.asarray(base.residuals_of(output, X, errors)[drawn[is_on]], dtype=np.float32)

            return draw_outputs_again(protocol, cells, residuals_of, words)
        labels = people.labels[drawn]
        if protocol.numeric:
            return (KnownHolders(protocol, cells, labels.astype(np.float32)).drawn_again(words),)
        mechanism = protocol.mechanism
        values = report_values(cells, labels, n_cells=protocol.n_cells, n_classes=mechanism.n_levels)
        counts = np.bincount(values, minlength=mechanism.n_values).astype(np.int64)
        return (
            Totals.from_raw(
                mechanism.sample_totals(counts, words.generator()),
                mechanism=mechanism,
                n_private=n,
                depth=protocol.partition.max_depth,
                round=protocol.round,
            ),
        )

    def _errors_of(self, base: PublishedBase, people: KnownRows) -> tuple[NDArray[np.float32], Floats]:
        """Return the people's encoded rows, and the public model's errors on each, float64 [n, outputs]; the model is the same in
        every question.
        """
        raw = people.raw
        # kept with whom they are of, so that no others get their id
        if id(raw) not in self._answers:
            X = people.encoding.encode(raw)
            self._answers[id(raw)] = raw, X, base.answers(X)
        _, X, answered = self._answers[id(raw)]
        return X, base.errors_of(people.labels, answered)

    def size(self, n: int, epsilon: float) -> Asked:
        """See `Learner`."""
        if (n, epsilon) not in self._sizes:
            protocol = self.ask(n, epsilon)[2].protocol
            if not protocol.asks_everybody:
                words = Words.seeded(np.random.SeedSequence(self.seed))
                protocol = self._converse(self.split.people, n, epsilon, words)[-1].protocol
            self._sizes[n, epsilon] = Asked(protocol.n_cells, protocol.mechanism.report_bytes)
        return self._sizes[n, epsilon]

    def find_smallest(
        self, people: KnownRows, n: int, epsilon: float, share: float, seed: np.random.SeedSequence
    ) -> Findable | None:
        """See `Learner`."""
        family, _, published = self.ask(n, epsilon)
        protocol, words = published.protocol, Words.seeded(seed)
        if protocol.asks_everybody:
            totals = self.respond(protocol, people, n, words)
        else:  # of several questions the last one is about the cells
            last = self._converse(people, n, epsilon, words)[-1]
            published, protocol, totals = last.published, last.protocol, last.totals
        doubt = family.doubt(published.evidence)
        return find_smallest(protocol, totals[0], shares_of_cells(protocol, people), share, doubt)

    def predict_publicly(self, rows: KnownRows) -> NDArray[Any]:
        """Predict by the family's own public model, if it has one (see `Learner`)."""
        family: Any = self.build(1.0)
        X = rows.encoding.encode(rows.raw)
        answers = family.predict_publicly(self._view(family), X)
        return predict_by_forest(self.split.fitted, X, self.seed) if answers is None else np.asarray(answers)


@dataclass(eq=False)
class LearnerInRounds(Learner):
    """A family that asks parts of the people in turn, some of whose features are public."""

    build: Build
    split: Split
    seed: int = 0

    def prepare(self, n: int, epsilon: float) -> None:
        """See `Learner`; each draw makes its own questions."""

    def learn(
        self, people: KnownRows, n: int, epsilon: float, rows: KnownRows, seed: np.random.SeedSequence
    ) -> NDArray[Any]:
        """See `Learner`."""
        words = Words.seeded(seed)
        drawn = people.draw(n, words.generator())
        family, view, answer = self._conversation(people, drawn, epsilon, words)
        model, _ = converse(family, view, respond_in_rounds(view, answer))
        return np.asarray(model.predict(_points(rows)))

    def _conversation(
        self, people: KnownRows, drawn: NDArray[np.int64], epsilon: float, words: Words
    ) -> tuple[Any, PublicView, Callable[[Question, NDArray[np.int64]], NDArray[Any]]]:
        points, protects = _points(people)[drawn], people.protects[drawn]
        labels = people.labels[drawn].astype(np.float64)

        def answer(question: Question, holders: NDArray[np.int64]) -> NDArray[Any]:
            return question.randomize(points[holders], labels[holders], protects[holders], words)

        return self.build(epsilon), PublicView.of(points, protects), answer

    def size(self, n: int, epsilon: float) -> Asked:
        """See `Learner`."""
        words, people = Words.seeded(np.random.SeedSequence(self.seed)), self.split.people
        family, view, answer = self._conversation(people, people.draw(n, words.generator()), epsilon, words)
        question = family.ask(family.summarize(view), [])
        reports = np.asarray(answer(question, question.respondents(view.n)[:1]))
        return Asked(None, reports.nbytes)

    def predict_publicly(self, rows: KnownRows) -> NDArray[Any]:
        """See `Learner`."""
        return predict_by_forest(self.split.fitted, _points(rows).astype(np.float32), self.seed)


def shares_of_cells(protocol: Protocol, people: KnownRows) -> Floats:
    """Count the people of each cell, float64 [L]; those outside are in none."""
    cells = protocol.cells(people.raw)
    is_in = cells >= 0
    shares: Floats = np.bincount(cells[is_in], minlength=protocol.n_cells) / people.n
    return shares


def predict_by_forest(fitted: KnownRows, X: NDArray[np.float32], seed: int) -> NDArray[Any]:
    """Class indices or numbers that a forest of public rows predicts of encoded rows."""
    answers = BASELINES[FOREST].fit_predict(
        fitted.encoding.encode(fitted.raw),
        fitted.labels,
        X,
        n_classes=0 if fitted.is_number else len(fitted.label),
        max_rows=PUBLIC_ROWS,
        seed=seed,
    )
    return answers if fitted.is_number else np.asarray(answers.argmax(axis=1))


def _points(rows: KnownRows) -> Floats:
    return np.asarray(rows.encoding.encode(rows.raw), dtype=np.float64)
