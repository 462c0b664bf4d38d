"""How sure an accuracy is."""

from __future__ import annotations

import numpy as np
import pytest

from ldptree.metrics.intervals import accuracy_interval, paired_lead


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
    assert sum(close) / 2 == pytest.approx(0.01)
    assert sum(wide) / 2 == pytest.approx(0.01)
    assert close[0] > 0 > wide[0]


def test_a_lead_is_against_the_other_and_none_over_oneself():
    ours, other = np.array([True, True, False, True]), np.array([True, False, False, False])
    low, high = paired_lead(ours, other)
    assert paired_lead(other, ours) == (-high, -low)
    assert paired_lead(ours, ours) == (0.0, 0.0)
