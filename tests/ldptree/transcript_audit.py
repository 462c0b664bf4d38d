"""The audit of estimation in rounds with public features: no transcript tells two private worlds of a holder apart.

Semi-feature LDP (HistOfTree, Ma, Jia and Yang, AISTATS 2025, Definition 3.1): only protected features and the label may change.
Here are the worst likelihood ratio of a holder over whole transcripts, every one of them for tiny sizes (`exact`) or
along drawn ones (`sampled`), in rational numbers from the laws that questions state; and the reports of a question held
against its law. Mechanisms alone are audited by `ldptree.audit`.

A curator is deterministic, so two worlds that lead it to different questions, or to different holders, have transcripts in
common with chance 0: the ratio is infinite, and `why` says that a role depends on a private value. To let such a fault show,
the curator is made anew in every world, from what a faulty one might have looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.audit.exact import fit_of
from ldptree.coins import log_up
from ldptree.errors import DataError
from ldptree.families.family import RoundsFamily
from ldptree.protocol.question import AnsweredQuestion, PublicView, Question, Transcript

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.coins import Words

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

Private = tuple[Any, float]
"""One holder in one world: the complete scaled row, float64 [d], and the label."""
World = tuple[Private, ...]
Make = Callable[[Any, Any], RoundsFamily[Any]]
"""The curator of a world, from rows [n, d] and labels [n]: an honest one is made without looking at either."""

MOST_TRANSCRIPTS = 200_000
MOST_WORLDS = 64
SLACK = 1e-9
"""A ratio may exceed e^epsilon by this factor: the claim is a float."""


@dataclass(frozen=True)
class Finding:
    """The worst that was met.

    Attributes:
        epsilon: logarithm of the largest likelihood ratio of a holder over all its answers, rounded up; infinite where a
            transcript excludes a world.
        claim: what a holder may spend.
        transcripts: how many were gone through.
        holder: whose ratio it is; -1 where there is none.
        why: what was met there, in words.
    """

    epsilon: float
    claim: float
    transcripts: int
    holder: int
    why: str

    @property
    def is_kept(self) -> bool:
        """Whether no ratio exceeds e^claim (1 + 1e-9)."""
        return self.epsilon <= self.claim + math.log1p(SLACK)


def alternatives(shown: PublicView, values: Sequence[float], labels: Sequence[float]) -> list[list[Private]]:
    """For each holder, everything it may be: its protected features from `values`, its label from `labels`."""
    found = []
    for row, protects in zip(shown.values, shown.protects, strict=True):
        options: list[Private] = []
        for hidden in product(values, repeat=int(protects.sum())):
            complete = row.copy()
            complete[protects] = hidden
            options += [(complete, float(label)) for label in labels]
        found.append(options)
    return found


def exact(make: Make, shown: PublicView, options: Sequence[Sequence[Private]], *, epsilon: float) -> Finding:
    """Go through every transcript of every world (of MOST_WORLDS at most: then those one change away from the first).

    Args:
        make: the curator of a world.
        shown: what everybody can see.
        options: what each holder may be (`alternatives`).
        epsilon: the claim.

    Raises:
        DataError: there are over MOST_TRANSCRIPTS transcripts; take fewer holders or a larger epsilon.
        NotImplementedError: a question's outputs are not finite.
    """
    curators = _curators(make, options)
    walk = _Walk(shown, options, epsilon)
    waiting: list[tuple[list[AnsweredQuestion], list[list[Fraction]]]] = [
        ([], [[Fraction(1)] * len(o) for o in options])
    ]
    # nothing is worse than an infinite ratio
    while waiting and walk.worst.epsilon < math.inf:
        answers, likelihoods = waiting.pop()
        question, holders = walk.asked(curators, answers)
        if question is None:
            walk.count()
            continue
        branches = [list(walk.branches(question, int(h), likelihoods[int(h)])) for h in holders]
        ahead = math.prod(len(b) for b in branches) + len(waiting)
        if ahead + walk.worst.transcripts > MOST_TRANSCRIPTS:
            raise DataError(f"audit: over {MOST_TRANSCRIPTS:,} transcripts; take fewer holders, or `sampled`")
        for chosen in product(*branches):
            reports = np.stack([report for report, _ in chosen])
            after = list(likelihoods)
            for holder, (_, likelihood) in zip(holders, chosen, strict=True):
                after[int(holder)] = likelihood
            waiting.append(([*answers, AnsweredQuestion(question, holders, reports)], after))
    return walk.worst


def sampled(
    make: Make,
    shown: PublicView,
    options: Sequence[Sequence[Private]],
    words: Words,
    *,
    epsilon: float,
    transcripts: int,
) -> Finding:
    """Draw transcripts of the first world by `randomize`, and follow each through the worlds one change away.

    Args:
        make, shown, options, epsilon: as in `exact`.
        words: the holders' coins.
        transcripts: how many to draw.
    """
    curators = _curators(make, options, most=1)
    rows = np.stack([o[0][0] for o in options])
    labels = np.array([o[0][1] for o in options])
    walk = _Walk(shown, options, epsilon)
    while walk.worst.transcripts < transcripts and walk.worst.epsilon < math.inf:
        answers: list[AnsweredQuestion] = []
        likelihoods = [[Fraction(1)] * len(o) for o in options]
        while True:
            question, holders = walk.asked(curators, answers)
            if question is None:
                break
            reports = question.randomize(rows[holders], labels[holders], shown.protects[holders], words)
            for holder, report in zip(holders.tolist(), reports, strict=True):
                likelihoods[holder] = walk.drawn(question, holder, likelihoods[holder], report)
            answers.append(AnsweredQuestion(question, holders, reports))
        walk.count()
    return walk.worst


def misfit(
    question: Question, private: Private, protects: Mask, words: Words, *, reports: int = 20_000
) -> float:
    """The chance that reports which follow the question's law fit it as badly as those that one such holder drew."""
    law = question.law(private[0], private[1], protects)
    places = {np.asarray(report).tobytes(): k for k, (report, _) in enumerate(law)}
    many = (np.tile(private[0], (reports, 1)), np.full(reports, private[1]), np.tile(protects, (reports, 1)))
    drawn = question.randomize(*many, words)
    seen = np.zeros(len(law) + 1, dtype=np.int64)
    for report in drawn:
        seen[places.get(np.asarray(report).tobytes(), len(law))] += 1
    return fit_of(seen, np.array([*(float(chance) for _, chance in law), 0.0]))


class _Walk:
    """The worst ratio met so far, and one step of a conversation in all worlds at once."""

    def __init__(self, shown: PublicView, options: Sequence[Sequence[Private]], claim: float) -> None:
        self._shown, self._options = shown, options
        self.worst = Finding(0.0, claim, 0, -1, "no report tells anything")

    def asked(
        self, curators: Sequence[RoundsFamily[Any]], answers: Transcript
    ) -> tuple[Question | None, NDArray[np.int64]]:
        """The question after these answers, the first world's, and whom it is put to; notes where worlds disagree."""
        found: list[tuple[Question | None, NDArray[np.int64]]] = []
        for curator in curators:
            question = curator.ask(self._shown, answers)
            holders = np.zeros(0, dtype=np.int64) if question is None else question.respondents(self._shown)
            found.append((question, holders))
        first, holders = found[0]
        text = None if first is None else first.to_json()
        for question, others in found[1:]:
            if (None if question is None else question.to_json()) != text or not np.array_equal(
                others, holders
            ):
                about = "a question" if first is None else first.about
                self.blame(math.inf, -1, f"{about}: a role or question depends on a private value")
        return first, holders

    def branches(
        self, question: Question, holder: int, before: Sequence[Fraction]
    ) -> Iterator[tuple[NDArray[Any], list[Fraction]]]:
        """Every report of a holder with its likelihood in each of the holder's worlds, earlier answers included."""
        laws = [self._law(question, holder, private) for private in self._options[holder]]
        reports = {key: report for law in laws for key, (report, _) in law.items()}
        for key, report in reports.items():
            after = self.after(question, holder, before, laws, key)
            if any(after):
                yield report, after

    def after(
        self,
        question: Question,
        holder: int,
        before: Sequence[Fraction],
        laws: Sequence[dict[bytes, tuple[NDArray[Any], Fraction]]],
        key: bytes,
    ) -> list[Fraction]:
        """The likelihood in each of the holder's worlds after one report, whose ratio is noted."""
        none = (np.zeros(0), Fraction(0))
        after = [b * law.get(key, none)[1] for b, law in zip(before, laws, strict=True)]
        most, least = max(after), min(after)
        if least == 0 < most:
            self.blame(math.inf, holder, f"{question.about}: a report excludes a world")
        elif most > 0:
            self._note(most / least, holder, question.about)
        return after

    def drawn(
        self, question: Question, holder: int, before: Sequence[Fraction], report: NDArray[Any]
    ) -> list[Fraction]:
        """The same after a report that was drawn."""
        laws = [self._law(question, holder, private) for private in self._options[holder]]
        after = self.after(question, holder, before, laws, np.asarray(report).tobytes())
        if not any(after):
            self.blame(math.inf, holder, f"{question.about}: a report that its law does not know")
        return after

    def _law(
        self, question: Question, holder: int, private: Private
    ) -> dict[bytes, tuple[NDArray[Any], Fraction]]:
        law = question.law(private[0], private[1], self._shown.protects[holder])
        return {np.asarray(report).tobytes(): (np.asarray(report), chance) for report, chance in law}

    def _note(self, ratio: Fraction, holder: int, about: str) -> None:
        # a logarithm rounded up takes long: only where the ratio is the largest yet
        if math.log(ratio) > self.worst.epsilon:
            epsilon = log_up(ratio)
            if epsilon > self.worst.epsilon:
                self.blame(epsilon, holder, f"{about}: the largest ratio")

    def blame(self, epsilon: float, holder: int, why: str) -> None:
        """Keep this as the worst, if it is."""
        if epsilon > self.worst.epsilon:
            self.worst = replace(self.worst, epsilon=epsilon, holder=holder, why=why)

    def count(self) -> None:
        """One transcript more."""
        self.worst = replace(self.worst, transcripts=self.worst.transcripts + 1)


def _curators(
    make: Make, options: Sequence[Sequence[Private]], most: int = MOST_WORLDS
) -> list[RoundsFamily[Any]]:
    """One a world; the same curator made twice stands once."""
    if math.prod(len(o) for o in options) <= most:
        worlds: list[World] = list(product(*options))
    else:
        first = tuple(o[0] for o in options)
        changed = [
            (*first[:i], other, *first[i + 1 :]) for i, held in enumerate(options) for other in held[1:]
        ]
        worlds = [first, *changed]
    made: dict[int, RoundsFamily[Any]] = {}
    for world in worlds:
        curator = make(np.stack([row for row, _ in world]), np.array([label for _, label in world]))
        made.setdefault(id(curator), curator)
    return list(made.values())
