"""The text of a public rule becomes one of four kinds, or a message that says what to write."""

from __future__ import annotations

import pytest

from ldptree.errors import ConfigError
from schemas.dataset import parse_public_rule


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
