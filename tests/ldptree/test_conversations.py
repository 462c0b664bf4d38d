"""Every family, behind one interface: a conversation ends, may be taken up again anywhere, and rests on what was published."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import cycle

import numpy as np
import pytest
from seeded_words import words

from ldptree.coins import left_of
from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import ProtocolMismatch
from ldptree.estimators.holders import respond_with
from ldptree.families import FAMILIES, LearningProblem
from ldptree.families.correction import Correction
from ldptree.families.family import (
    Counted,
    PublicRows,
    Published,
    collect_answers,
    converse,
    respond_in_rounds,
)
from ldptree.families.questions import question_from_json
from ldptree.families.tree import LPCT, LPDT
from ldptree.mechanisms.masked import MASKED
from ldptree.mechanisms.oracles.grr import Grr
from ldptree.protocol.ledger import Ledger
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.question import PublicView

ENCODING = Encoding(tuple(NumericFeature(name, 0.0, 1.0) for name in ("a", "b", "c")))
ASKS = {"epsilon": 2.0, "heading": {"target": "y"}, "seed": 5}
TREES = {
    "lpct": (LPCT(**ASKS), "class"),
    "lpct, Algorithm 2": (LPCT(**ASKS, prune="paper", partition="max-edge", depth=3), "class"),
    "lpdt": (LPDT(**ASKS), "number"),
    "correction of a class": (Correction(**ASKS, base="tree"), "class"),
    "correction of a number": (Correction(**ASKS, base="tree"), "number"),
}
ROUNDS = [name for name, family in FAMILIES.items() if family.in_rounds]
SETTINGS = {"public_features": {"ask_private": "always"}, "histoftree": {}}
"""That make a family ask every kind of question it has."""
SEEDS = np.array([1, 2, 3, 4])


def people(label, n=900, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    y = X[:, 0] + rng.normal(0, 0.1, n)
    return X, (y > 0.5).astype(np.int64) if label == "class" else y


def tree_conversation(name):
    """The family, what it can see, and the holders' side."""
    family, label = TREES[name]
    X, y = people(label, 300, seed=1)
    rows = PublicRows(
        encoding=ENCODING,
        X=ENCODING.encode(X),
        y=y,
        label=(0, 1) if label == "class" else (-0.5, 1.5),
        n_private=900,
    )
    private, labels = people(label)

    def respond():
        return respond_with(private, labels.__getitem__, ledger=Ledger(cap=2.0), seeds=SEEDS)

    return family, family.summarize(rows), respond


def rounds_conversation(name):
    """The same of a family whose questions go to a part of the holders each."""
    X, y = people("number")
    protects = np.tile([False, False, True], (len(X), 1))
    problem = LearningProblem(columns=("a", "b", "c"), epsilon=2.0, label=(-0.5, 1.5), seed=3)
    family = FAMILIES[name].build(problem, **SETTINGS[name])
    view = PublicView.of(X, protects)

    def respond():
        coins = words(7)
        return respond_in_rounds(view, lambda q, at: q.randomize(X[at], y[at], protects[at], coins))

    return family, view, respond


CONVERSATIONS = dict.fromkeys(TREES, tree_conversation) | dict.fromkeys(ROUNDS, rounds_conversation)


@cache
def held(name):
    """A conversation from its beginning to its end: the family, what it sees, its model, and the transcript."""
    family, view, respond = CONVERSATIONS[name](name)
    return family, view, *converse(family, view, respond())


EPSILONS = (0.05, 0.1, 0.3, 0.7, 1.0, 1.1, 2.0, 3.3, 8.0)
RHOS = (0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.9, 0.99)


@pytest.mark.parametrize(("epsilon", "rho"), [*zip(EPSILONS, cycle(RHOS), strict=False)])
@pytest.mark.parametrize("mechanism", MASKED)
def test_the_parts_of_an_epsilon_that_histoftree_splits_are_no_more_than_it_exactly(epsilon, rho, mechanism):
    """Its label is sent by what spends all of its part, as integers may not."""
    X, y = people("number", 40)
    protects = np.tile([False, False, True], (len(X), 1))
    problem = LearningProblem(columns=("a", "b", "c"), epsilon=epsilon, label=(-0.5, 1.5), seed=3)
    family = FAMILIES["histoftree"].build(problem, rho=rho, mechanism=mechanism, label="laplace", t=2, p=1)
    view, coins = PublicView.of(X, protects), words(7)
    answer = respond_in_rounds(view, lambda q, at: q.randomize(X[at], y[at], protects[at], coins))
    label, cells = (one.question for one in collect_answers(family, view, answer))
    assert Fraction(label.epsilon) + Fraction(cells.epsilon) <= Fraction(epsilon)
    coins = [Grr.for_values(cells.epsilon, size).epsilon for size in range(2, 9)]
    assert max(coins) <= cells.epsilon
    assert label.epsilon + cells.epsilon == pytest.approx(epsilon, rel=1e-15)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("share", RHOS)
def test_what_is_left_of_an_epsilon_is_the_most_that_does_not_exceed_it(epsilon, share):
    left = left_of(epsilon, epsilon * share)
    assert Fraction(left) + Fraction(epsilon * share) <= Fraction(epsilon)
    assert Fraction(math.nextafter(left, math.inf)) + Fraction(epsilon * share) > Fraction(epsilon)


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_ends_and_no_question_is_asked_twice(name):
    family, view, _, transcript = held(name)
    assert 1 <= len(transcript) <= 6
    assert family.ask(view, transcript) is None
    digests = [digest_of(answered) for answered in transcript]
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_that_stopped_anywhere_goes_on_with_the_same_question(name):
    """A family keeps no state: what it asks next follows from what was published."""
    _, _, _, transcript = held(name)
    for done, answered in enumerate(transcript):
        again, seen, _ = CONVERSATIONS[name](name)
        assert question_digest(again.ask(seen, transcript[:done])) == digest_of(answered)


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_the_same_answers_give_the_same_model(name):
    _, _, model, transcript = held(name)
    again, seen, _ = CONVERSATIONS[name](name)
    assert again.fit(seen, transcript).digest == model.digest


@pytest.mark.parametrize("name", ROUNDS)
def test_a_question_comes_back_from_its_text_asks_the_same_and_nothing_else_passes_for_it(name):
    _, view, _, transcript = held(name)
    rows, labels = np.random.default_rng(5).random((20, 3)), np.linspace(-0.5, 1.5, 20)
    mask = np.zeros((20, 3), dtype=bool)
    for question, respondents in ((one.question, one.respondents) for one in transcript):
        plain = json.loads(json.dumps(question.to_json()))
        again = question_from_json(json.dumps(plain))
        assert again.to_json() == question.to_json()
        np.testing.assert_array_equal(again.respondents(view.n), respondents)
        sent = (one.randomize(rows, labels, mask, words(3)) for one in (question, again))
        np.testing.assert_array_equal(*sent)
        for key in plain:
            with pytest.raises(ProtocolMismatch):
                question_from_json(json.dumps(plain | {key: {"x": []}}))
            if key != "effects":  # which may be left out
                with pytest.raises(ProtocolMismatch):
                    question_from_json(json.dumps({k: v for k, v in plain.items() if k != key}))


@pytest.mark.parametrize("name", TREES)
def test_a_model_is_the_same_from_public_evidence_that_was_written_down(name):
    family, view, model, transcript = held(name)

    def read_back(counted):
        text = json.dumps(counted.published.evidence.to_json())
        evidence = family.read_evidence(json.loads(text), counted.protocol)
        return Counted(Published(counted.protocol, lambda: evidence), counted.totals)

    assert family.fit(view, [read_back(counted) for counted in transcript]).digest == model.digest


@pytest.mark.parametrize("name", TREES)
def test_a_question_that_was_published_before_is_asked_as_it_is(name):
    """A campaign's later run asks the first one's question, whatever today's public rows would give."""
    family, view, _ = tree_conversation(name)
    published = family.ask(view, [])
    text = published.protocol.to_json()
    later = replace(family, frozen=Protocol.from_json(text), depth=1, mechanism="grr")
    rows = view if isinstance(view, PublicRows) else view.rows
    asked = later.ask(later.summarize(replace(rows, X=rows.X[:200], y=rows.y[:200])), [])
    assert asked.protocol.to_json() == text


@pytest.mark.parametrize("name", TREES)
def test_holders_are_charged_before_they_answer_and_never_more_than_epsilon(name):
    family, view, _ = tree_conversation(name)
    ledger = Ledger(cap=family.epsilon)
    X, y = people(TREES[name][1])
    collect_answers(family, view, respond_with(X, y.__getitem__, ledger=ledger, seeds=SEEDS))
    assert sum(charge.epsilon for charge in ledger.entries) <= family.epsilon * (1 + 1e-12)


def question_digest(asked):
    return asked.protocol.digest if hasattr(asked, "protocol") else asked.digest


def digest_of(answered):
    return question_digest(answered if hasattr(answered, "protocol") else answered.question)
