"""A data set's specification is checked whole, once, where it enters."""

from __future__ import annotations

import tomllib

import pytest
from pydantic import ValidationError

from schemas.dataset import DatasetSpec

SMALLEST = {"name": "trips", "path": "trips.csv", "target": "paid", "public": "random 0.1"}


def spec(**changes):
    return DatasetSpec.model_validate(SMALLEST | changes)


def test_ten_lines_of_toml_are_a_data_set():
    table = tomllib.loads("""
        name = "trips"
        path = ["a.csv", "b/*.csv"]
        target = "paid"
        positive = 1
        classes = [0, 1]
        public = "company = 'Flash Cab'"
        drop = ["id"]
        categorical = ["company", "area"]
        ranges = { miles = [0, 10.5] }
        levels = { area = [1, 2, 8] }
    """)
    read = DatasetSpec.model_validate(table)
    assert read.path == ("a.csv", "b/*.csv")
    assert read.classes == (0, 1)
    assert read.rule.kind == "predicate"
    assert DatasetSpec.model_validate_json(read.model_dump_json()) == read


def test_features_are_what_is_left_of_target_holder_rule_and_dropped_columns():
    read = spec(holder="person", drop=["id"])
    columns = ("id", "person", "company", "miles", "paid", "area", "_row")
    assert read.features(columns, rule_columns=("company",)) == ("miles", "area")
    assert spec().features(("paid", "row", "miles")) == ("row", "miles")


def test_no_value_is_bent_to_fit_its_type():
    for changes in (
        {"drop": "id", "rows": "7", "simulated": True},
        {"test_fraction": "0.2"},
        {"simulated": 1},
    ):
        with pytest.raises(ValidationError):
            spec(**changes)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"targt": "x"}, "targt"),
        ({"path": []}, "path"),
        ({"public": "random 2"}, "above 0 and below 1"),
        ({"public": ""}, "which rows are public"),
        ({"drop": ["paid"]}, "is the target"),
        ({"holder": "paid"}, "is the target"),
        ({"categorical": ["paid"]}, "is the target"),
        ({"holder": "id", "drop": ["id"]}, "is the holder column"),
        ({"drop": ["a", "b", "a"]}, "named twice: a"),
        ({"classes": [1]}, "at least two"),
        ({"classes": [1, "1"]}, "stands twice"),
        ({"classes": [0, 1], "positive": 2}, "not among classes"),
        ({"ranges": {"miles": [3, 1]}}, "the lower first"),
        ({"ranges": {"miles": [0, float("inf")]}}, "two finite numbers"),
        ({"ranges": {"area": [0, 1]}, "types": {"area": "text"}}, "not numeric"),
        ({"levels": {"area": []}}, "at least one"),
        ({"levels": {"area": [1, 1]}}, "different values"),
        ({"types": {"area": "float"}}, "types.area"),
        ({"rows": 10}, "only a simulated data set"),
        ({"test_fraction": 1.0}, "test_fraction"),
        ({"max_bad_fraction": -0.1}, "max_bad_fraction"),
        ({"delimiter": ";;"}, "delimiter"),
        ({"derive": {"_row": "1"}}, "ldptree adds"),
        ({"columns": ["a", "paid"], "derive": {"a": "1"}}, "new name"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(changes, told):
    with pytest.raises(ValidationError, match=told):
        spec(**changes)


def test_several_faults_are_told_together():
    with pytest.raises(ValidationError) as refusal:
        spec(drop=["paid"], categorical=["paid"])
    assert "drop: " in str(refusal.value)
    assert "categorical: " in str(refusal.value)
