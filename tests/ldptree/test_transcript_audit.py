"""No transcript of a run with public features tells two private worlds of a holder apart; and the audit sees planted faults."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from first_fast import first_fast
from seeded_words import words
from transcript_audit import alternatives, exact, misfit, sampled

from ldptree.errors import DataError
from ldptree.families.family import converse, respond_in_rounds
from ldptree.families.public_features import PublicFeatures
from ldptree.families.public_features.allocation import Part
from ldptree.families.public_features.questions import ResidualQuestion
from ldptree.protocol.question import AnsweredQuestion, PublicView

ROWS = np.array([[0.2, 0.3], [0.6, 0.9], [0.1, 0.5], [0.8, 0.2]])
MASKS = {
    "aligned": np.array([[True, False]] * 4),
    "personalised": np.array([[True, False], [False, True], [True, True], [False, False]]),
}
LABELS = (-1.0, 0.7)


def curator(epsilon, kind=PublicFeatures, **settings):
    return kind(epsilon=epsilon, columns=("a", "b"), low=(0.0, 0.0), high=(1.0, 1.0), **settings)


def holders(mask, n, labels=LABELS):
    shown = PublicView.of(ROWS[:n], MASKS[mask][:n])
    return shown, alternatives(shown, (0.1, 0.9), labels)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("epsilon", "n"), first_fast((2.0, 2), (4.0, 2)))
def test_no_transcript_of_a_regression_exceeds_epsilon(mask, epsilon, n):
    """Every transcript of round 0 and the label's round."""
    honest = curator(epsilon)
    found = exact(lambda rows, labels: honest, *holders(mask, n), epsilon=epsilon)
    assert found.is_kept, found
    assert found.transcripts > 200
    assert found.epsilon > 0.9 * epsilon


@pytest.mark.parametrize("mask", ["aligned", "personalised"])
def test_no_transcript_with_questions_about_private_features_exceeds_epsilon(mask):
    """Every transcript of bins, label and contrast."""
    honest = curator(4.0, is_binary=True, ask_private="always", seed=3)
    shown, options = holders("aligned", 3, (-1.0, 1.0))
    if mask == "personalised":
        # the first holder shows everything
        shown = PublicView.of(ROWS[:3], np.array([[False, False], [True, False], [True, False]]))
        options = alternatives(shown, (0.1, 0.9), (-1.0, 1.0))
    found = exact(lambda rows, labels: honest, shown, options, epsilon=4.0)
    assert found.is_kept, found
    assert found.transcripts == 16 * 2 * 15
    assert "column 0" in found.why or "label" in found.why


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_no_drawn_transcript_exceeds_epsilon_either(mask, epsilon):
    """Regression with all four questions, of more holders than can be gone through."""
    shown = PublicView.of(np.random.default_rng(2).random((8, 2)), np.tile(MASKS[mask], (2, 1)))
    honest = curator(epsilon, ask_private="always", seed=1)
    options = alternatives(shown, (0.1, 0.9), LABELS)
    found = sampled(lambda rows, labels: honest, shown, options, words(0), epsilon=epsilon, transcripts=5)
    assert found.is_kept, found
    assert found.transcripts == 5


def test_no_drawn_transcript_with_effects_taken_off_exceeds_epsilon():
    """Two private features: the second is asked about less what was learned of the first, which every holder has a value of."""
    rows = np.random.default_rng(2).random((40, 2))
    shown = PublicView.of(rows, np.ones((40, 2), dtype=bool))
    honest = curator(3.0, ask_private="always", seed=1)
    coins, at_label = words(0), rows[:, 0] - 0.5
    answer = respond_in_rounds(
        shown, lambda q, at: q.randomize(rows[at], at_label[at], shown.protects[at], coins)
    )
    _, answers = converse(honest, shown, answer)
    assert max(len(getattr(answer.question, "effects", ())) for answer in answers) >= 1
    options = alternatives(shown, (0.1, 0.9), LABELS)
    found = sampled(lambda rows, labels: honest, shown, options, words(0), epsilon=3.0, transcripts=3)
    assert found.is_kept, found


def test_every_holder_answers_at_most_one_question_and_shown_features_are_not_touched():
    rows = np.random.default_rng(2).random((400, 2))
    shown = PublicView.of(rows, np.tile(MASKS["personalised"], (100, 1)))
    before = shown.values.copy()
    asked, answers, who = curator(4.0, ask_private="always"), [], []
    while (question := asked.ask(shown, answers)) is not None:
        at = question.respondents(shown.n)
        reports = question.randomize(rows[at], np.zeros(at.size), shown.protects[at], words(len(answers)))
        answers.append(AnsweredQuestion(question, at, reports))
        who.append(at)
        assert question.epsilon <= 4.0
    everybody = np.concatenate(who)
    assert np.unique(everybody).size == everybody.size == 400
    assert np.array_equal(shown.values, before)


@dataclass(frozen=True, kw_only=True, eq=False)
class Peeking(PublicFeatures):
    """A planted fault: whether the first label is above 0 decides who is asked."""

    labels: tuple[float, ...]

    def ask(self, shown, answers):
        question = super().ask(shown, answers)
        if isinstance(question, ResidualQuestion) and self.labels[0] > 0:
            part = Part(self.seed, question.part.start, question.part.stop - 1)
            return ResidualQuestion(part, question.mechanism, question.surface, question.half)
        return question


def test_a_role_that_depends_on_a_private_value_is_caught():
    def made(rows, labels):
        return curator(4.0, Peeking, labels=tuple(labels))

    shown, options = holders("aligned", 3)
    found = sampled(made, shown, options, words(0), epsilon=4.0, transcripts=1)
    assert not found.is_kept
    assert found.epsilon == math.inf
    assert "role" in found.why
    shown, options = holders("aligned", 3, (-1.0, 1.0))
    assert exact(made, shown, options, epsilon=4.0).epsilon == math.inf


class Twice(PublicFeatures):
    """A planted fault: everybody answers the label's question, whatever they answered before."""

    def ask(self, shown, answers):
        question = super().ask(shown, answers)
        if isinstance(question, ResidualQuestion):
            part = Part(self.seed, 0, shown.n)
            return ResidualQuestion(part, question.mechanism, question.surface, question.half)
        return question


def test_a_holder_who_answers_twice_is_caught():
    faulty = curator(4.0, Twice)
    found = exact(lambda rows, labels: faulty, *holders("aligned", 2, (-1.0, 0.7)), epsilon=4.0)
    assert not found.is_kept
    assert 4.5 < found.epsilon <= 8.0


def test_every_question_follows_the_law_that_is_audited():
    """Chi-square of 20,000 reports of each question; false alarms: 4 at 1e-5."""
    rows = np.random.default_rng(4).random((12, 2))
    shown = PublicView.of(rows, np.tile(MASKS["aligned"], (3, 1)))
    kinds = set()

    def answer(question, at):
        kinds.add(question.about.split()[-1])
        private = (rows[0], 0.3)
        assert misfit(question, private, shown.protects[0], words(9)) > 1e-5
        return question.randomize(rows[at], rows[at, 0], shown.protects[at], words(1))

    converse(curator(3.0, ask_private="always"), shown, respond_in_rounds(shown, answer))
    assert len(kinds) >= 3


def test_a_question_that_draws_otherwise_than_its_law_says_is_caught():
    question = curator(3.0).ask(PublicView.of(ROWS, MASKS["aligned"]), [])

    class Louder(type(question)):
        def randomize(self, rows, labels, protects, words):
            return super().randomize(rows, np.full(len(labels), 0.99), protects, words)

    louder = Louder(question.part, question.oracle, question.low, question.high)
    private = (ROWS[0], -0.9)
    assert misfit(question, private, MASKS["aligned"][0], words(1)) > 1e-5
    assert misfit(louder, private, MASKS["aligned"][0], words(1)) < 1e-9


def test_too_many_transcripts_are_refused_with_what_to_do():
    honest = curator(4.0)
    rows = np.random.default_rng(0).random((9, 2))
    shown = PublicView.of(rows, np.ones((9, 2), dtype=bool))
    with pytest.raises(DataError, match="fewer holders"):
        exact(lambda rows, labels: honest, shown, alternatives(shown, (0.5,), LABELS), epsilon=4.0)


def test_alternatives_are_all_private_values_and_nothing_else():
    shown = PublicView.of(ROWS[:2], MASKS["personalised"][:2])
    options = alternatives(shown, (0.1, 0.9), LABELS)
    assert [len(o) for o in options] == [4, 4]
    assert all(row[1] == ROWS[0, 1] for row, _ in options[0])
    assert all(row[0] == ROWS[1, 0] for row, _ in options[1])


def test_chances_are_whole_numbers_of_2_to_the_minus_64th():
    honest = curator(2.0)
    question = honest.ask(PublicView.of(ROWS, MASKS["aligned"]), [])
    law = question.law(ROWS[0], 0.5, MASKS["aligned"][0])
    assert sum(chance for _, chance in law) == Fraction(1)
