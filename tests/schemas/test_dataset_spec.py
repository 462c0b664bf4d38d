"""A data set's specification, its rule of public rows too, is checked whole, once, where it enters."""

from __future__ import annotations

import tomllib

import pytest
from pydantic import ValidationError

from ldptree.errors import ConfigError
from schemas.dataset import DatasetSpec, parse_public_rule

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


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("company = 'Flash Cab'", "predicate"),
        ("random 0.1", "random"),
        ("Random  1e-3", "random"),
        ("first 200", "first"),
        ("  other.csv ", "file"),
        ("folder with blanks/public rows.csv.gz", "file"),
        ("data/*.parquet", "file"),
        ("name = 'x.csv'", "predicate"),
        ("random > 0.1", "predicate"),
    ],
)
def test_each_way_to_name_public_rows_is_told_from_the_others(text, kind):
    assert parse_public_rule(text).kind == kind


def test_a_rule_keeps_its_number_and_prints_as_it_was_written():
    assert parse_public_rule("random 0.25").fraction == 0.25
    assert parse_public_rule("first 200").count == 200
    assert str(parse_public_rule(" first 200 ")) == "first 200"


@pytest.mark.parametrize(
    "text",
    [
        "random 0",
        "random 1",
        "random -0.1",
        "random nan",
        "random x",
        "first 0",
        "first 1.5",
        "first -3",
        " ",
    ],
)
def test_a_rule_that_could_not_divide_the_rows_is_refused(text):
    with pytest.raises(ConfigError, match=r"^dataset\.public: "):
        parse_public_rule(text)


@pytest.mark.parametrize(("key", "value"), [("timezone", "Chicago"), ("encoding", "windows")])
def test_a_zone_and_an_encoding_are_known_ones(key, value):
    spec = {"name": "t", "target": "b", "path": "a.csv", "public": "first 5"}
    with pytest.raises(ValueError, match=f"'{value}' is no "):
        DatasetSpec.model_validate(spec | {key: value})
