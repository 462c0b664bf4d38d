"""Whatever a forged question holds, who reads it is told so by ProtocolMismatch, before anybody answers."""

import json

import numpy as np
import pytest
from seeded_words import words as seeded

from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import ConfigError, ProtocolMismatch
from ldptree.families.family import converse, respond_in_rounds
from ldptree.families.histoftree import HistOfTree, LabelQuestion
from ldptree.families.public_features import PublicFeatures
from ldptree.families.questions import question_from_json
from ldptree.mechanisms.numbers import NUMBERS
from ldptree.protocol.question import PublicView

HUGE = 10**400


def asked():
    """Every question of both curators, as plain values."""
    rng = np.random.default_rng(0)
    rows, labels = rng.random((600, 2)), rng.uniform(-1, 1, 600)
    protects = np.tile([True, False], (600, 1))
    words = seeded(1)
    columns = Encoding((NumericFeature("a", 0.0, 1.0), NumericFeature("b", 0.0, 1.0)))
    curators = (
        HistOfTree(epsilon=2.0, encoding=columns, low=-1.0, high=1.0, seed=0, s=1, t=2, p=1),
        PublicFeatures(
            epsilon=2.0, columns=("a", "b"), low=(0.0,) * 2, high=(1.0,) * 2, ask_private="always"
        ),
    )
    for curator in curators:
        view = PublicView.of(rows, protects)
        answer = respond_in_rounds(view, lambda q, at: q.randomize(rows[at], labels[at], protects[at], words))
        _, answers = converse(curator, view, answer)
        yield from (json.loads(json.dumps(answer.question.to_json())) for answer in answers)


def forged(plain):
    """The value with each of its parts in turn replaced by what does not belong there."""
    yield from ([], {}, [[]], None, "x", HUGE, -HUGE, 1e999)
    if isinstance(plain, dict):
        for name in plain:
            yield {k: v for k, v in plain.items() if k != name}
            yield from ({**plain, name: part} for part in forged(plain[name]))
    elif isinstance(plain, list) and plain:
        yield from ([part, *plain[1:]] for part in forged(plain[0]))


def test_every_forgery_is_a_mismatch_or_a_question():
    """Nothing else is ever raised; where a part may be what it was replaced by, the question can be written again."""
    questions = list(asked())
    assert {q["kind"] for q in questions} >= {
        "histoftree_label",
        "histoftree_cells",
        "public_features_label_bins",
    }
    refused = 0
    for plain in questions:
        for wrong in forged(plain):
            try:
                question_from_json(json.dumps(wrong)).to_json()
            except ProtocolMismatch:
                refused += 1
    assert refused > 500


def label_question(name, thresholds, low=-1.0, high=1.0):
    mechanism = {"name": name, "thresholds": thresholds}
    return json.dumps({"kind": "histoftree_label", "mechanism": mechanism, "low": low, "high": high})


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"kind": ["histoftree_label"]}),
        json.dumps({"kind": {"histoftree_label": 1}}),
        label_question(["laplace"], {"epsilon": 1.0}),
        label_question("laplace", {"epsilon": HUGE}),
        label_question("laplace", {"epsilon": 1.0}, high=HUGE),
        label_question("laplace", {"epsilon": 1.0}, low=-1e308, high=1e308),
        label_question("laplace", {"epsilon": 1.0}, low=0.0, high=5e-324),
        "[" * 100_000,
    ],
)  # fmt: skip
def test_these_are_mismatches(text):
    with pytest.raises(ProtocolMismatch):
        question_from_json(text)


def test_outputs_are_near_enough_that_every_report_decodes():
    """Counts and means that fit, and positions beyond every float: it could be loaded, and not decoded."""
    positions = [-HUGE, -1, 1, HUGE]
    counts = [[1, 2**63 - 1 - j * 2**33, 2**63 - 1 + j * 2**33, 1] for j in (-1, 0, 1)]
    with pytest.raises(ConfigError, match="positions"):
        NUMBERS["optimal_label"].from_thresholds({"steps": 1, "positions": positions, "counts": counts})
    near = NUMBERS["optimal_label"].from_thresholds(
        {"steps": 1, "positions": [-255, -1, 1, 255], "counts": counts}
    )
    assert np.isfinite(near.decode(near.outputs)).all()


@pytest.mark.parametrize("ends", [(-1e308, 1e308), (0.0, 5e-324), (0.0, 1e200)])
def test_a_range_that_floats_cannot_square_asks_nobody(ends):
    with pytest.raises(ConfigError):
        LabelQuestion(NUMBERS["duchi"].for_budget(1.0), *ends)
    with pytest.raises(ConfigError):
        PublicFeatures(
            epsilon=1.0, columns=("a",), low=(0.0,), high=(1.0,), label_low=ends[0], label_high=ends[1]
        )
