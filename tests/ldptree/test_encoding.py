"""The encoding: where raw values land, what stands in for missing ones, and that its text is all of it."""

import json
import math

import numpy as np
import pytest

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature, largest_raw, public_range, scale
from ldptree.errors import DataError

NAN = np.nan
COMPANY = ("Flash Cab", "Sun Taxi")


def test_numbers_are_scaled_and_categories_become_one_column_a_level():
    encoding = Encoding((NumericFeature("fare", 0.0, 10.0), CategoricalFeature("company", COMPANY)))
    assert encoding.columns == ("fare", "company")
    assert encoding.names == ("fare", "company = Flash Cab", "company = Sun Taxi")
    X = encoding.encode(np.array([[5.0, 0], [20.0, 1], [-1.0, -1]]))
    assert X.dtype == np.float32
    assert X.tolist() == [[0.5, 1, 0], [1.0, 0, 1], [0.0, 0, 0]]


def test_each_missing_rule_does_what_it_says():
    encoding = Encoding(
        (
            NumericFeature("plain", 0.0, 1.0),
            NumericFeature("filled", 0.0, 1.0, fill=0.25),
            NumericFeature("marked", 0.0, 1.0, fill=0.75, indicator=True),
            CategoricalFeature("bare", COMPANY),
            CategoricalFeature("frequent", COMPANY, fill=1),
            CategoricalFeature("own", COMPANY, missing_level=True),
        )
    )
    X = encoding.encode(np.full((1, 6), NAN))
    expected = [NAN, 0.25, 0.75, 1, NAN, NAN, 0, 1, 0, 0, 1]
    np.testing.assert_array_equal(X[0], np.array(expected, dtype=np.float32))
    assert encoding.names[-1] == "own is missing"
    raw = np.array([[0, NAN, NAN, 0, NAN, NAN], [NAN, 0, 0, 0, 0, 0], [0, 0, 0, NAN, 0, 0]])
    assert encoding.encodable(raw).tolist() == [True, False, False]
    assert encoding.columns_without_rule == ("plain", "bare")


def test_rules_taken_from_public_rows_are_the_median_and_the_most_frequent_level():
    assert NumericFeature.from_public("x", [1, 2, 9, NAN], missing="median").fill == 2.0
    assert NumericFeature.from_public("x", [1, 2, NAN], missing="level").indicator
    assert NumericFeature.from_public("x", [1, 2, NAN]).fill is None
    assert CategoricalFeature.from_public("c", COMPANY, [0, 1, 1, NAN, -1], missing="median").fill == 1
    assert CategoricalFeature.from_public("c", COMPANY, [0], missing="level").missing_level


def test_outside_means_beyond_the_public_range():
    encoding = Encoding((NumericFeature("x", 0.0, 1.0), CategoricalFeature("c", COMPANY)))
    raw = np.array([[0.0, 0], [1.0, -1], [1.0 + 1e-15, 0], [-1e-300, 0], [NAN, 0]])
    assert encoding.is_outside(raw).tolist() == [False, False, True, True, False]


def test_the_text_gives_back_the_same_encoding():
    encoding = Encoding(
        (
            NumericFeature("x", 0, 0.1, fill=0.05, indicator=True),
            CategoricalFeature("c", ("a", 1, 2.5, False), fill=2),
        )
    )
    again = Encoding.from_json(json.loads(json.dumps(encoding.to_json())))
    assert again == encoding
    assert again.digest == encoding.digest
    assert encoding.digest != Encoding(encoding.features[:1]).digest


@pytest.mark.parametrize(
    "make",
    [
        lambda: NumericFeature("x", 1.0, 0.0),
        lambda: NumericFeature("x", 0.0, NAN),
        lambda: NumericFeature("x", 0.0, 1.0, indicator=True),
        lambda: CategoricalFeature("x", ()),
        lambda: CategoricalFeature("x", ("a", "a")),
        lambda: CategoricalFeature("x", ("a",), fill=1),
        lambda: CategoricalFeature("x", ("a",), fill=0, missing_level=True),
        lambda: Encoding(()),
        lambda: Encoding((NumericFeature("x", 0, 1), NumericFeature("x", 0, 1))),
        lambda: Encoding((NumericFeature("x", 0, 1),)).encode(np.zeros((2, 2))),
        lambda: Encoding.from_json({"features": [{"kind": "numeric"}]}),
        lambda: Encoding.from_json({"features": [], "extra": 1}),
    ],
)
def test_an_impossible_encoding_is_refused(make):
    with pytest.raises(DataError):
        make()


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
