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
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np

from ldptree.audit.exact import fit_of
from ldptree.coins import log_up
from ldptree.errors import DataError
from ldptree.protocol.question import AnsweredQuestion

MOST_TRANSCRIPTS = 200_000
MOST_WORLDS = 64
SLACK = 1e-9
"""A ratio may exceed e^epsilon by this factor: the claim is a float."""


@dataclass(frozen=True)
class Finding:
    """The worst that was met: the logarithm of a holder's largest likelihood ratio over all its answers, rounded up (infinite
    where a transcript excludes a world), what a holder may spend, how many transcripts were gone through, and why.
    """

    epsilon: float
    claim: float
    transcripts: int
    why: str

    @property
    def is_kept(self):
        """Whether no ratio exceeds e^claim (1 + 1e-9)."""
        return self.epsilon <= self.claim + math.log1p(SLACK)


def alternatives(shown, values, labels):
    """For each holder, everything it may be: (row, label), its protected features from `values`, its label from `labels`."""
    found = []
    for row, protects in zip(shown.values, shown.protects, strict=True):
        options = []
        for hidden in product(values, repeat=int(protects.sum())):
            complete = row.copy()
            complete[protects] = hidden
            options += [(complete, float(label)) for label in labels]
        found.append(options)
    return found


def exact(make, shown, options, *, epsilon):
    """Go through every transcript of every world (of MOST_WORLDS at most: then those one change away from the first).

    `make(rows, labels)` gives the curator of a world: an honest one is made without looking at either. Raises DataError where
    there are over MOST_TRANSCRIPTS.
    """
    curators, walk = _curators(make, options), _Walk(shown, options, epsilon)
    waiting = [([], [[Fraction(1)] * len(o) for o in options])]
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
            after = list(likelihoods)
            for holder, (_, likelihood) in zip(holders, chosen, strict=True):
                after[int(holder)] = likelihood
            reports = np.stack([report for report, _ in chosen])
            waiting.append(([*answers, AnsweredQuestion(question, holders, reports)], after))
    return walk.worst


def sampled(make, shown, options, words, *, epsilon, transcripts):
    """Draw transcripts of the first world by `randomize`, and follow each through the worlds one change away."""
    curators, walk = _curators(make, options, most=1), _Walk(shown, options, epsilon)
    rows, labels = np.stack([o[0][0] for o in options]), np.array([o[0][1] for o in options])
    while walk.worst.transcripts < transcripts and walk.worst.epsilon < math.inf:
        answers, likelihoods = [], [[Fraction(1)] * len(o) for o in options]
        while (asked := walk.asked(curators, answers))[0] is not None:
            question, holders = asked
            reports = question.randomize(rows[holders], labels[holders], shown.protects[holders], words)
            for holder, report in zip(holders.tolist(), reports, strict=True):
                likelihoods[holder] = walk.drawn(question, holder, likelihoods[holder], report)
            answers.append(AnsweredQuestion(question, holders, reports))
        walk.count()
    return walk.worst


def misfit(question, private, protects, words, *, reports=20_000):
    """The chance that reports which follow the question's law fit it as badly as those that one such holder drew."""
    law = question.law(*private, protects)
    places = {np.asarray(report).tobytes(): k for k, (report, _) in enumerate(law)}
    many = (np.tile(private[0], (reports, 1)), np.full(reports, private[1]), np.tile(protects, (reports, 1)))
    seen = np.zeros(len(law) + 1, dtype=np.int64)
    for report in question.randomize(*many, words):
        seen[places.get(np.asarray(report).tobytes(), len(law))] += 1
    return fit_of(seen, np.array([*(float(chance) for _, chance in law), 0.0]))


class _Walk:
    """The worst ratio met so far, and one step of a conversation in all worlds at once."""

    def __init__(self, shown, options, claim):
        self._shown, self._options = shown, options
        self.worst = Finding(0.0, claim, 0, "no report tells anything")

    def asked(self, curators, answers):
        """The question after these answers, the first world's, and whom it is put to; notes where worlds disagree."""
        found = []
        for curator in curators:
            question = curator.ask(self._shown, answers)
            holders = np.zeros(0, dtype=np.int64) if question is None else question.respondents(self._shown.n)
            found.append((question, holders, None if question is None else question.to_json()))
        first, holders, text = found[0]
        if any(other != text or not np.array_equal(who, holders) for _, who, other in found[1:]):
            about = "a question" if first is None else first.about
            self._blame(math.inf, f"{about}: a role or question depends on a private value")
        return first, holders

    def branches(self, question, holder, before):
        """Every report of a holder with its likelihood in each of the holder's worlds, earlier answers included."""
        laws = self._laws(question, holder)
        for key, report in {key: report for law in laws for key, (report, _) in law.items()}.items():
            after = self._after(question, before, laws, key)
            if any(after):
                yield report, after

    def drawn(self, question, holder, before, report):
        """The likelihoods after a report that was drawn."""
        after = self._after(question, before, self._laws(question, holder), np.asarray(report).tobytes())
        if not any(after):
            self._blame(math.inf, f"{question.about}: a report that its law does not know")
        return after

    def count(self):
        """One transcript more."""
        self.worst = replace(self.worst, transcripts=self.worst.transcripts + 1)

    def _after(self, question, before, laws, key):
        """The likelihood in each of the holder's worlds after one report, whose ratio is noted."""
        after = [b * law.get(key, (None, Fraction(0)))[1] for b, law in zip(before, laws, strict=True)]
        most, least = max(after), min(after)
        if least == 0 < most:
            self._blame(math.inf, f"{question.about}: a report excludes a world")
        # a logarithm rounded up takes long: only where the ratio is the largest yet
        elif most > 0 and math.log(most / least) > self.worst.epsilon:
            self._blame(log_up(most / least), f"{question.about}: the largest ratio")
        return after

    def _laws(self, question, holder):
        """Of each of the holder's worlds: reports and their chances, by the bytes of a report."""
        protects = self._shown.protects[holder]
        laws = [question.law(row, label, protects) for row, label in self._options[holder]]
        return [{np.asarray(r).tobytes(): (np.asarray(r), chance) for r, chance in law} for law in laws]

    def _blame(self, epsilon, why):
        """Keep this as the worst, if it is."""
        if epsilon > self.worst.epsilon:
            self.worst = replace(self.worst, epsilon=epsilon, why=why)


def _curators(make, options, most=MOST_WORLDS):
    """One a world; the same curator made twice stands once."""
    first = tuple(o[0] for o in options)
    if math.prod(len(o) for o in options) <= most:
        worlds = list(product(*options))
    else:
        changed = [
            (*first[:i], other, *first[i + 1 :]) for i, held in enumerate(options) for other in held[1:]
        ]
        worlds = [first, *changed]
    made = {}
    for world in worlds:
        curator = make(np.stack([row for row, _ in world]), np.array([label for _, label in world]))
        made.setdefault(id(curator), curator)
    return list(made.values())
