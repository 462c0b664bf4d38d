"""HistOfTree is semi-feature LDP: every transcript gone through, for both kinds of mask, in rational numbers."""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from seeded_words import words as seeded

from ldptree.encoding import Encoding, NumericFeature
from ldptree.families.histoftree import CellsQuestion, HistOfTree
from ldptree.mechanisms.masked import MASKED
from ldptree.partition.product import Histogram, Product
from ldptree.partition.tree import Partition
from ldptree.protocol.question import AnsweredQuestion, PublicView

EPSILON = 1.2
D = 3
ROW, LABEL = np.array([0.2, 0.7, 0.6]), 0.3
OTHERS = np.array([[0.9, 0.1, 0.4], [0.4, 0.8, 0.9]])
MASKS = {
    "aligned": [[True, False, False]] * 3,
    "personalised": [[False, True, False], [True, False, False], [True, False, True]],
    "everything": [[True] * 3] * 3,
    "nothing": [[False] * 3] * 3,
}


def curator(**settings):
    encoding = Encoding(tuple(NumericFeature(f"x{j}", 0.0, 1.0) for j in range(D)))
    known = {"epsilon": EPSILON, "encoding": encoding, "low": -1.0, "high": 1.0, "label": "optimal_label"}
    return HistOfTree(**(known | {"s": 1, "t": 2, "p": 1, "min_samples_leaf": 0} | settings))


def inputs(protects):
    """Rows and labels, at both ends of their range, that agree in what the mask shows."""
    values = [(0.1, 0.95) if private else (value,) for private, value in zip(protects, ROW, strict=True)]
    return [(np.array(row), label) for row in itertools.product(*values) for label in (-1.0, 1.0)]


class Conversation:
    """The first holder's chances of every pair of reports, for two sets of others' labels.

    The questions follow from what is published, so they are made once and serve every row and label.
    """

    def __init__(self, asks, protects, hidden):
        self.protects = protects
        rows = np.vstack([ROW, OTHERS])
        shown = (
            PublicView(np.zeros((3, D)), np.ones((3, D), bool)) if hidden else PublicView.of(rows, protects)
        )
        self.first = asks.ask(shown, [])
        outputs = [report for report, _ in self.first.law(ROW, LABEL, protects[0])]
        self.second = {}
        for others in (0, len(outputs) - 1), (len(outputs) // 2,) * 2:
            for report in outputs:
                reports = np.stack([report, *(outputs[k] for k in others)])
                published = [AnsweredQuestion(self.first, np.arange(3), reports)]
                self.second[others, report.tobytes()] = asks.ask(shown, published)

    def transcripts(self, row, label, own=None):
        """P(both reports | others' labels) of every transcript."""
        own = self.protects[0] if own is None else own
        chances = {report.tobytes(): chance for report, chance in self.first.law(row, label, own)}
        found = {}
        for (others, report), second in self.second.items():
            answers = [(np.empty(0), 1)] if second is None else second.law(row, label, own)
            for answer, share in answers:
                found[others, report, answer.tobytes()] = chances[report] * share
        return found


def worst_ratio(laws):
    laws = list(laws)
    assert all(law.keys() == laws[0].keys() for law in laws)
    return max(max(law[key] for law in laws) / min(law[key] for law in laws) for key in laws[0])


@pytest.mark.parametrize("mechanism", MASKED)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("splits", ["max-edge", "cart"])
def test_no_transcript_tells_two_holders_with_the_same_public_part_apart(mask, mechanism, splits):
    protects = np.array(MASKS[mask])
    asks = curator(mechanism=mechanism, partition=splits, min_samples_leaf=1 if splits == "cart" else 0)
    talk = Conversation(asks, protects, hidden=False)
    laws = [talk.transcripts(row, label) for row, label in inputs(protects[0])]
    assert all(sum(law.values()) == 2 for law in laws)
    ratio = worst_ratio(laws)
    assert ratio <= math.exp(EPSILON) * (1 + 1e-9)
    assert ratio >= math.exp(EPSILON / 2) * (1 - 1e-9)


@pytest.mark.parametrize("mechanism", MASKED)
def test_with_no_release_of_the_mask_the_mask_itself_is_protected(mechanism):
    """Whatever W and x are, all at once: the transcript is epsilon-LDP in mask, row and label together."""
    asks = curator(mechanism=mechanism, mask_release="none")
    talk = Conversation(asks, np.array(MASKS["personalised"]), hidden=True)
    laws = [
        talk.transcripts(row, label, np.array(own))
        for own in ((False, False, False), (True, False, True), (True, True, True))
        for row, label in inputs([True] * D)
    ]
    assert worst_ratio(laws) <= math.exp(EPSILON) * (1 + 1e-9)


def test_the_paper_s_release_of_cells_gives_the_mask_away():
    """Section 3.4 (ii): W is not sent, but the cells that get a zero tell who shows what."""
    protects = np.array(MASKS["personalised"])
    talk = Conversation(curator(mask_release="cells"), protects, hidden=True)
    of_all, of_none = (talk.transcripts(ROW, LABEL, np.array([own] * D)) for own in (True, False))
    assert not of_all.keys() & of_none.keys()
    laws = [talk.transcripts(row, label) for row, label in inputs(protects[0])]
    assert worst_ratio(laws) <= math.exp(EPSILON) * (1 + 1e-9)


@pytest.mark.parametrize("mechanism", MASKED)
def test_each_question_keeps_to_its_own_epsilon(mechanism):
    protects = np.array(MASKS["personalised"])
    asks = curator(mechanism=mechanism, rho=0.25)
    shown = PublicView.of(np.vstack([ROW, OTHERS]), protects)
    first = asks.ask(shown, [])
    reports = first.randomize(shown.values, np.zeros(3), protects, seeded(0))
    second = asks.ask(shown, [AnsweredQuestion(first, np.arange(3), reports)])
    assert first.epsilon + second.epsilon <= EPSILON * (1 + 1e-12)
    assert second.epsilon == pytest.approx(EPSILON / 4)
    for question in (first, second):
        by_report = [
            {report.tobytes(): chance for report, chance in question.law(row, label, protects[0])}
            for row, label in inputs(protects[0])
        ]
        assert worst_ratio(by_report) <= math.exp(question.epsilon) * (1 + 1e-9)


def test_a_planted_fault_is_found():
    """A holder who draws within all cells, whatever it shows, and one whose coins are those of twice the epsilon."""
    protects = np.array(MASKS["personalised"])
    asks = curator(rho=0.25)

    class Twice(CellsQuestion):
        def law(self, row, label, protects):
            honest = super().law(row, label, protects)
            cell = int(self.partition.apply(row[None])[0]).to_bytes(4, "little")
            told = [chance * (3 if report.tobytes() == cell else 1) for report, chance in honest]
            return [(r, Fraction(c) / sum(told)) for (r, _), c in zip(honest, told, strict=True)]

    tree = Partition.of([1, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1])
    product = Product(Histogram((0,), 2), tree)
    question = Twice(product, MASKED["grr"](0.3, 4))
    by_report = [
        {report.tobytes(): chance for report, chance in question.law(row, label, protects[0])}
        for row, label in inputs(protects[0])
    ]
    assert worst_ratio(by_report) > math.exp(question.epsilon) * 1.5
    assert asks.epsilon == EPSILON


def test_the_model_is_made_of_the_transcript_and_of_what_is_shown():
    """Other private values behind the same reports give the same bytes, from questions read back from JSON too."""
    rng = np.random.default_rng(0)
    X, protects = rng.random((300, D)), rng.random((300, D)) < 0.4
    asks = curator(p=3)
    shown = PublicView.of(X, protects)
    words = seeded(1)
    answers = []
    while (question := asks.ask(shown, answers)) is not None:
        reports = question.randomize(X, np.sin(X[:, 0]), protects, words)
        assert question.is_valid(reports).all()
        answers.append(AnsweredQuestion(question, np.arange(300), reports))
    model = asks.fit(shown, answers)
    again = [
        AnsweredQuestion(type(a.question).from_json(a.question.to_json()), a.respondents, a.reports)
        for a in answers
    ]
    other = np.where(protects, rng.random(X.shape), X)
    assert asks.fit(PublicView.of(other, protects), again).to_json() == model.to_json()


@pytest.mark.parametrize("mechanism", MASKED)
@pytest.mark.parametrize("release", ["all", "cells", "none"])
def test_what_is_drawn_is_what_the_law_says(mechanism, release):
    """Share of each report against its chance: z below 5 (all reports together: false alarms below 1e-4), seed fixed."""
    tree = Partition.of([1, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1])
    question = CellsQuestion(Product(Histogram((0,), 2), tree), MASKED[mechanism](1.0, 4), release)
    own, n = np.array([True, False, False]), 30_000
    words = seeded(3)
    reports = question.randomize(np.tile(ROW, (n, 1)), np.zeros(n), np.tile(own, (n, 1)), words)
    assert question.is_valid(reports).all()
    drawn = defaultdict(int)
    for report in reports:
        drawn[report.tobytes()] += 1
    law = {report.tobytes(): float(chance) for report, chance in question.law(ROW, 0.0, own)}
    assert drawn.keys() <= law.keys()
    assert sum(law.values()) == pytest.approx(1)
    for report, chance in law.items():
        assert abs(drawn[report] - n * chance) <= 5 * math.sqrt(n * chance * (1 - chance)) + 1
