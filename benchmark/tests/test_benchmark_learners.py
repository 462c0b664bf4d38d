"""What the learners of the benchmark answer with, and what estimators are held to."""

from dataclasses import replace

import numpy as np
import pytest

from ldptree.errors import ConfigError
from ldptree_benchmark.laws import draw_law
from ldptree_benchmark.learners import LEARNERS
from ldptree_benchmark.learners.answers import Trial
from ldptree_benchmark.rows import PUBLIC, TEST

LARGE = {"n_public": 300, "n_private": 6_000, "n_test": 2_000, "where": "everybody"}


@pytest.mark.parametrize(
    ("learner", "shift", "alarm"), [("lpdt", 0.0, 0.0), ("lpdt", 10.0, 1.0), ("correction", 10.0, 1.0)]
)
def test_an_estimator_is_held_to_what_it_says_of_private_people(learner, shift, alarm):
    rows = draw_law("shifted-number", {**LARGE, "shift": shift}, [5])
    settings = {"base": "tree"} if learner == "correction" else {}
    found = LEARNERS[learner].answer(Trial(rows, 4.0, 0, settings))
    assert found.columns["alarm"] == alarm
    assert found.columns["covered"] > 0.5
    wrong = replace(rows, expected=rows.expected + 1000.0)
    assert LEARNERS[learner].answer(Trial(wrong, 4.0, 0, settings)).columns["covered"] == 0.0


def test_a_tree_of_classes_is_held_to_what_it_says_of_class_1():
    rows = draw_law("sloped-share", {"n_test": 2_000}, [5])
    assert LEARNERS["lpct"].answer(Trial(rows, 4.0, 0, {})).columns["covered"] > 0.7
    other = replace(rows, expected=1.0 - rows.expected)
    assert LEARNERS["lpct"].answer(Trial(other, 4.0, 0, {})).columns["covered"] < 0.4


def test_a_corrected_truth_is_the_law_itself():
    rows = draw_law("steps", {"noise": "normal"}, [5])
    found = LEARNERS["correction_of_truth"].answer(Trial(rows, 8.0, 0, {}))
    held_back = rows.of(TEST)
    assert np.mean((found.answers - held_back.expected) ** 2) < 0.01
    assert found.columns == {"alarm": 0.0, "covered": 1.0}
    with pytest.raises(ConfigError, match="only of a law"):
        LEARNERS["correction_of_truth"].answer(Trial(replace(rows, expected=None), 8.0, 0, {}))


@pytest.mark.slow
def test_a_correction_is_that_of_its_estimator_and_its_public_model_is_fitted_once(monkeypatch):
    from ldptree.estimators import CorrectionClassifier
    from ldptree_benchmark.learners import correction

    fits = []
    fit = correction._fit
    monkeypatch.setattr(correction, "_fit", lambda *one: (fits.append(one), fit(*one))[1])
    rows = draw_law("hidden-column", {"n_test": 500, "n_private": 2_000}, [3])
    learn = rows.part != TEST
    for settings in ({}, {"questions": 1}):
        found = LEARNERS["correction"].answer(Trial(rows, 1.0, 0, settings))
        model = CorrectionClassifier(1.0, random_state=0, **settings).fit(
            rows.X[learn], rows.y[learn], public=(rows.part == PUBLIC)[learn]
        )
        assert np.mean(found.answers == model.predict(rows.X[~learn])) > 0.98
        assert (found.seconds_before > 0) is ("questions" in settings)
    alone = LEARNERS["public_model"].answer(Trial(rows, None, 0, {})).answers
    assert np.array_equal(alone, model.model_.public_answers(rows.X[~learn])[:, 0] > 0.5)
    assert len(fits) == 1
    other = draw_law("hidden-column", {"n_test": 500, "n_private": 2_000}, [4])
    LEARNERS["public_model"].answer(Trial(other, None, 0, {"base": "tree"}))
    assert len(fits) == 2
