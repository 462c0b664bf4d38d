"""Scores equal scikit-learn's and say honestly what cannot be scored."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from ldptree.errors import DataError
from ldptree.metrics.classes import auc, score


def random_predictions(n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    # Rounded, so that there are ties.
    shares = np.round(rng.dirichlet(np.ones(n_classes), 500), 1) + 0.1
    return rng.integers(n_classes, size=500), shares / shares.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_scores_equal_those_of_scikit_learn(n_classes: int) -> None:
    labels, shares = random_predictions(n_classes)
    got, predicted = score(labels, shares), shares.argmax(axis=1)
    assert got.accuracy == pytest.approx(metrics.accuracy_score(labels, predicted))
    assert got.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(labels, predicted))
    assert got.log_loss == pytest.approx(metrics.log_loss(labels, shares))
    expected = (
        metrics.roc_auc_score(labels, shares[:, 1])
        if n_classes == 2
        else metrics.roc_auc_score(labels, shares, multi_class="ovr")
    )
    assert got.auc == pytest.approx(expected)
    np.testing.assert_array_equal(got.confusion, metrics.confusion_matrix(labels, predicted))


def test_auc_of_the_first_class_is_that_of_its_own_probability() -> None:
    labels, shares = random_predictions(2)
    assert score(labels, shares, positive=0).auc == pytest.approx(auc(labels == 0, shares[:, 0]))


def test_a_label_of_no_class_counts_as_missed() -> None:
    got = score(np.array([0, 1, -1, -1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.1, 0.9]]))
    assert (got.n, got.n_outside, got.accuracy, got.balanced_accuracy) == (4, 2, 0.5, 1.0)
    assert got.confusion.sum() == 2


def test_one_class_alone_has_no_auc_and_a_sure_error_a_finite_loss() -> None:
    got = score(np.array([1, 1]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert got.auc is None
    assert got.log_loss == pytest.approx(-np.log(1e-15) / 2)
    assert got.to_json()["confusion"] == [[0, 0], [1, 1]]


@pytest.mark.parametrize("labels", [[], [-1, -1], [2, 0], [-2, 0], [0, 1, 0]])
def test_what_cannot_be_scored_is_refused(labels: list[int]) -> None:
    with pytest.raises(DataError, match="scores"):
        score(np.array(labels, dtype=int), np.full((2, 2), 0.5) if labels else np.empty((0, 2)))
