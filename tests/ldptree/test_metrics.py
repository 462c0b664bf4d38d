"""Metrics of classes and of numbers: their definitions, how sure they are, what cannot be scored, and bins that show nobody."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn import metrics
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

from ldptree.errors import DataError
from ldptree.metrics.classes import accuracy_interval, auc, paired_lead, score
from ldptree.metrics.numbers import (
    MOST_BINS,
    SMALLEST_BIN,
    bins_of,
    mse_interval,
    paired_mse_lead,
    score_numbers,
)

# classes


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
    assert (got.n, got.n_outside, got.accuracy) == (4, 2, 0.5)
    assert got.confusion.sum() == 2


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_label_of_no_class_counts_in_every_score_as_a_class_without_a_chance(n_classes: int) -> None:
    labels, shares = random_predictions(n_classes)
    labels[:100] = n_classes  # as scikit-learn has it, which knows a column of zeros
    got = score(np.where(labels == n_classes, -1, labels), shares)
    whole = np.hstack([shares, np.zeros((len(shares), 1))])
    assert got.n_outside == 100
    assert got.balanced_accuracy == pytest.approx(
        metrics.balanced_accuracy_score(labels, whole.argmax(axis=1))
    )
    assert got.log_loss == pytest.approx(metrics.log_loss(labels, np.clip(whole, 1e-15, 1)), rel=1e-6)
    of_each = [metrics.roc_auc_score(labels == k, whole[:, k]) for k in range(n_classes + 1)]
    assert got.auc == pytest.approx(np.mean(of_each[1:] if n_classes == 2 else of_each))


def test_one_class_alone_has_no_auc_and_a_sure_error_a_finite_loss() -> None:
    got = score(np.array([1, 1]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert got.auc is None
    assert got.log_loss == pytest.approx(-np.log(1e-15) / 2)
    assert got.to_json()["confusion"] == [[0, 0], [1, 1]]


@pytest.mark.parametrize(
    ("score_of", "labels", "said", "message"),
    [
        *(
            (score, np.array(labels, dtype=int), np.full((2 * bool(labels), 2), 0.5), "scores")
            for labels in ([], [-1, -1], [2, 0], [-2, 0], [0, 1, 0])
        ),
        (score_numbers, np.ones(2), np.ones(3), "do not fit"),
        (score_numbers, np.ones(0), np.ones(0), "no row"),
        (score_numbers, np.array([1.0, np.nan]), np.ones(2), "no finite number"),
        (score_numbers, np.ones(2), np.array([1.0, np.inf]), "no finite number"),
    ],
)
def test_what_cannot_be_scored_is_refused(score_of, labels, said, message):
    with pytest.raises(DataError, match=message):
        score_of(labels, said)


# how sure an accuracy is


def test_wilsons_interval_is_the_textbooks():
    """Both ends solve |share - p| = z sqrt(p (1 - p) / n), Wilson 1927."""
    for right, n in ((1, 10), (50, 100), (998, 1000)):
        share = right / n
        for end in accuracy_interval(right, n):
            assert abs(share - end) == pytest.approx(1.959964 * np.sqrt(end * (1 - end) / n), rel=1e-5)


@pytest.mark.parametrize(("right", "n"), [(0, 1), (1, 1), (0, 50), (50, 50), (25, 50)])
def test_an_interval_holds_its_share_and_stays_in_range(right, n):
    low, high = accuracy_interval(right, n)
    assert 0.0 <= low <= right / n <= high <= 1.0
    assert high - low > 0


def test_more_rows_make_it_narrower_and_none_leave_everything_open():
    widths = [np.diff(accuracy_interval(7 * n // 10, n))[0] for n in (10, 100, 1000, 10_000)]
    assert widths == sorted(widths, reverse=True)
    assert accuracy_interval(0, 0) == (0.0, 1.0)
    assert paired_lead(np.empty(0, bool), np.empty(0, bool)) == (-1.0, 1.0)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """2,000 samples: 94 to 96.5 % is 2 and 3 standard errors around Wilson's coverage."""
    rng = np.random.default_rng(0)
    hits = [
        low <= 0.8 <= high
        for low, high in (accuracy_interval(int(k), 200) for k in rng.binomial(200, 0.8, 2000))
    ]
    assert 0.94 < np.mean(hits) < 0.965


def test_a_lead_is_surer_where_both_err_on_the_same_rows():
    """Equal accuracies apart by 10 rows of 1,000: shared errors cancel in the pairs."""
    ours = np.arange(1000) < 800
    shared = np.arange(1000) < 790
    other = ~(np.arange(1000) < 210)
    close, wide = paired_lead(ours, shared), paired_lead(ours, other)
    assert 0 < close[0] < 0.01 < close[1] < 0.02
    assert wide[0] < 0 < 0.01 < wide[1]
    assert paired_lead(shared, ours) == (-close[1], -close[0])


def test_a_lead_is_tangos_score_interval() -> None:
    """Airway responsiveness of 21 children, 1 and 7 of whom differ (Fagerland, Lydersen and Laake 2014, table V)."""
    ours, other = np.arange(21) < 1, (np.arange(21) > 0) & (np.arange(21) < 8)
    assert paired_lead(ours, other) == pytest.approx((-0.517, -0.026), abs=5e-4)


def test_models_that_agree_on_every_row_may_differ_on_others() -> None:
    """As often as z^2 / (n + z^2), which is about 4 / n."""
    for n in (1, 15, 2000):
        right = np.arange(n) % 3 > 0
        reach = 1.959964**2 / (n + 1.959964**2)
        assert paired_lead(right, right) == pytest.approx((-reach, reach), rel=1e-6)
    every = np.ones(5, bool)
    assert paired_lead(every, ~every)[1] == 1.0


@pytest.mark.parametrize("n", [10, 15, 30])
@pytest.mark.parametrize("chances", [(0.15, 0.0), (0.2, 0.02), (0.3, 0.3), (0.05, 0.05), (0.6, 0.1)])
def test_a_lead_of_few_rows_holds_the_truth_as_often_as_it_says(n: int, chances: tuple[float, float]) -> None:
    """Summed over all outcomes, so no chance is in it: 93 % at least, where mean and standard error give 5 to 90 %."""
    covered = 0.0
    for ahead in range(n + 1):
        for behind in range(n + 1 - ahead):
            ways = math.comb(n, ahead) * math.comb(n - ahead, behind)
            left = (1 - sum(chances)) ** (n - ahead - behind)
            ours = np.arange(n) < ahead
            other = (np.arange(n) >= ahead) & (np.arange(n) < ahead + behind)
            low, high = paired_lead(ours, other)
            if low <= chances[0] - chances[1] <= high:
                covered += ways * chances[0] ** ahead * chances[1] ** behind * left
    assert covered > 0.93


# numbers


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    truth = rng.gamma(2, 10, 500)
    return truth, truth + rng.normal(0, 3, 500), truth + rng.normal(1, 5, 500)


def test_scores_are_those_of_the_textbooks(rows):
    truth, said, _ = rows
    found = score_numbers(truth, said)
    assert found.mse == pytest.approx(mean_squared_error(truth, said))
    assert found.mae == pytest.approx(mean_absolute_error(truth, said))
    assert found.r2 == pytest.approx(r2_score(truth, said))
    assert score_numbers(truth, truth).to_json() == {"mse": 0.0, "mae": 0.0, "r2": 1.0}
    # of labels that are all equal nothing is explained
    assert score_numbers(np.ones(5), np.zeros(5)).to_json() == {"mse": 1.0, "mae": 1.0, "r2": None}


def test_the_interval_holds_the_true_error_as_often_as_it_says():
    """2,000 samples of 300 errors; 95 % coverage is missed by over .03 with a chance below 1e-9."""
    rng = np.random.default_rng(2)
    errors = rng.normal(0, 2, (2000, 300))
    ends = np.array([mse_interval(np.zeros(300), row) for row in errors])
    assert np.mean((ends[:, 0] <= 4) & (ends[:, 1] >= 4)) == pytest.approx(0.95, abs=0.03)
    assert mse_interval(np.zeros(3), np.array([0.0, 0.0, 9.0]))[0] == 0.0


def test_a_lead_is_above_nothing_where_ours_is_better_and_lies_around_the_difference(rows):
    truth, ours, other = rows
    low, high = paired_mse_lead(truth, ours, other)
    assert (low + high) / 2 == pytest.approx(
        mean_squared_error(truth, other) - mean_squared_error(truth, ours)
    )
    assert 0 < low < high
    assert paired_mse_lead(truth, other, ours) == pytest.approx((-high, -low))
    assert paired_mse_lead(truth, ours, ours) == (0.0, 0.0)


@pytest.mark.parametrize("n", [SMALLEST_BIN, 41, 239, 500, 5003])
@pytest.mark.parametrize("n_predictions", [1, 3, 40, 10**6])
def test_no_bin_is_small_and_every_row_is_in_one(n, n_predictions):
    rng = np.random.default_rng(n + n_predictions)
    said = rng.integers(0, n_predictions, n) / 7
    truth = said + rng.normal(0, 1, n)
    found = bins_of(truth, said)
    assert 1 <= len(found) <= MOST_BINS
    assert sum(b["n"] for b in found) == n
    assert min(b["n"] for b in found) >= SMALLEST_BIN
    assert all(a["high"] < b["low"] for a, b in itertools.pairwise(found))
    for b in found:
        inside = (said >= b["low"]) & (said <= b["high"])
        assert inside.sum() == b["n"]
        assert b["predicted"] == pytest.approx(said[inside].mean())
        assert b["true"] == pytest.approx(truth[inside].mean())
        assert b["true_sd"] == pytest.approx(truth[inside].std())


def test_many_different_predictions_fill_all_the_bins_and_fewer_rows_than_a_bin_holds_none():
    said = np.arange(1200.0)
    assert [b["n"] for b in bins_of(said, said)] == [100] * MOST_BINS
    assert bins_of(said[: SMALLEST_BIN - 1], said[: SMALLEST_BIN - 1]) == []
