"""Scores of predictions of a number: their definitions, how sure they are, and bins that show nobody."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

from ldptree.errors import DataError
from ldptree.metrics.numbers import (
    MOST_BINS,
    SMALLEST_BIN,
    bins_of,
    mse_interval,
    paired_mse_lead,
    score_numbers,
)


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


def test_labels_that_are_all_equal_have_no_r2():
    assert score_numbers(np.ones(5), np.zeros(5)).to_json() == {"mse": 1.0, "mae": 1.0, "r2": None}


@pytest.mark.parametrize(
    ("labels", "said", "message"),
    [
        (np.ones(2), np.ones(3), "do not fit"),
        (np.ones(0), np.ones(0), "no row"),
        (np.array([1.0, np.nan]), np.ones(2), "no finite number"),
        (np.ones(2), np.array([1.0, np.inf]), "no finite number"),
    ],
)
def test_what_cannot_be_scored_is_refused(labels, said, message):
    with pytest.raises(DataError, match=message):
        score_numbers(labels, said)


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


def test_many_different_predictions_fill_all_the_bins():
    said = np.arange(1200.0)
    assert [b["n"] for b in bins_of(said, said)] == [100] * MOST_BINS


def test_fewer_rows_than_a_bin_holds_give_none():
    assert bins_of(np.zeros(SMALLEST_BIN - 1), np.zeros(SMALLEST_BIN - 1)) == []
