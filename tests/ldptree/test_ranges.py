"""Public ranges: scaling never surprises, and raw thresholds agree with scaled ones on every float."""

import math

import numpy as np
import pytest

from ldptree.encoding import largest_raw, public_range, scale
from ldptree.errors import DataError

RANGES = [
    (0.0, 1.0),
    (-3.0, 7.5),
    (0.1, 0.3),
    (-1e-310, 1e-310),
    (-1.7e308, 1.7e308),
    (1e15, 1e15 + 4),
    (5.0, 5.0),
]


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_scaled_values_lie_in_the_unit_interval_and_keep_their_order(low, high):
    rng = np.random.default_rng(1)
    x = np.sort(
        np.concatenate([rng.normal(0, 10, 200), [low, high, -np.inf, np.inf, 0.0], rng.uniform(0, 1, 50)])
    )
    scaled = scale(x, low, high)
    assert scaled.dtype == np.float32
    assert ((scaled >= 0) & (scaled <= 1)).all()
    assert (np.diff(scaled) >= 0).all()


def test_a_constant_column_scales_to_zero_and_a_missing_value_stays_missing():
    assert scale([-1.0, 5.0, np.inf], 5.0, 5.0).tolist() == [0.0, 0.0, 0.0]
    assert np.isnan(scale([np.nan], 5.0, 5.0)).all()
    assert np.isnan(scale([np.nan], 0.0, 1.0)).all()


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_the_largest_raw_value_is_the_last_one_that_scales_to_the_threshold(low, high):
    rng = np.random.default_rng(2)
    thresholds = [
        *rng.uniform(0, 1, 40),
        0.0,
        0.5,
        np.nextafter(0.5, 0),
        1.0,
        2.0,
        *scale(rng.uniform(-3, 7, 20), -3, 7),
    ]
    for threshold in thresholds:
        raw = largest_raw(float(threshold), low, high)
        if math.isfinite(raw):
            above = np.nextafter(raw, np.inf)
            assert float(scale(raw, low, high)) <= threshold < float(scale(above, low, high))
        else:
            assert raw == math.inf
            assert float(scale(np.inf, low, high)) <= threshold
    assert largest_raw(-0.1, low, high) == -math.inf


def test_a_public_range_needs_a_value_and_refuses_infinity():
    assert public_range([3, np.nan, -1], "fare") == (-1.0, 3.0)
    with pytest.raises(DataError, match='"fare": every public value is missing'):
        public_range([np.nan], "fare")
    with pytest.raises(DataError, match="infinite"):
        public_range([1.0, np.inf], "fare")


def test_public_values_whose_distance_is_no_float_are_refused():
    assert public_range([-8e307, 8e307], "fare") == (-8e307, 8e307)
    said = '"fare": public values go from -1e\\+308 to 1e\\+308, so far apart .* divide the column'
    with pytest.raises(DataError, match=said):
        public_range([-1e308, np.nan, 1e308], "fare")
