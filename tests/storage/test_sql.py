"""A rule from a configuration is one expression over one row, or it is refused."""

from __future__ import annotations

import duckdb
import pytest

from ldptree.errors import ConfigError
from storage.sql import FUNCTIONS, by_clock, check_predicate, expression_type, literal, quote

COLUMNS = ("company", "Fare", "trip miles")


@pytest.mark.parametrize("name", ["a", 'a"b', "a b", "größe", "select", '";DROP TABLE x;--', "a\nb"])
def test_a_quoted_name_is_that_name_and_nothing_else(name):
    with duckdb.connect() as connection:
        assert connection.sql(f"SELECT 1 AS {quote(name)}").columns == [name]


@pytest.mark.parametrize("value", ["it's", "';--", "", "a\nb", 3, -(2**62), 0.1, 1e300, True, None])
def test_a_literal_is_its_value(value):
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT {literal(value)}").fetchall() == [(value,)]


def test_a_number_without_a_literal_is_refused():
    with pytest.raises(ValueError, match="no SQL literal"):
        literal(float("nan"))


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("company = 'Flash Cab' AND fare > 5", ("company", "Fare")),
        ("FARE BETWEEN 1 AND 2 OR NOT (company IS NULL)", ("Fare", "company")),
        ("company IN ('a', 'b', 'c', 'd', 'e', 'f', 'g')", ("company",)),
        ("lower(company) LIKE 'f%'", ("company",)),
        ('"trip miles" / 2 >= CASE WHEN fare > 1 THEN 3 END', ("trip miles", "Fare")),
        ("CAST(fare AS INTEGER) % 7 = 0 -- every seventh", ("Fare",)),
        ("hour(TRY_CAST(company AS TIMESTAMP)) < 6", ("company",)),
        ("TRUE", ()),
    ],
)
def test_an_expression_over_one_row_is_allowed_and_its_columns_are_found(text, used):
    assert check_predicate(text, COLUMNS) == used


@pytest.mark.parametrize(
    "text",
    [
        "fare = 1; DROP TABLE x",
        "fare = 1) FROM x WHERE (TRUE",
        "fare = 1), (2 = 2",
        "fare = 1) UNION SELECT (1",
        "fare = 1) --",
        "fare IN (SELECT 1)",
        "EXISTS (SELECT 1)",
        "(SELECT content FROM read_text('/etc/passwd')) = 'x'",
        "read_text('/etc/passwd') = 'x'",
        "getenv('HOME') = 'x'",
        "current_setting('threads') = '1'",
        "random() < 0.5",
        "now() > '2020-01-01'",
        "nextval('s') = 1",
        "sum(fare) > 1",
        "count(*) > 1",
        "row_number() OVER () = 1",
        "abs(fare) FILTER (WHERE fare = 1) = 1",
        "COLUMNS(*) > 1",
        "*",
        "$1 = fare",
        "fare = ?",
        "list_transform([1], x -> x)[1] = 1",
        "company[1] = 'a'",
        "main.abs(fare) = 1",
        "t.fare = 1",
        "CAST(fare AS INTEGER[]) = [1]",
        "x'ab' = company",
        "company = 'unterminated",
        "fare >",
        "",
        "fare = 1 /* open",
        "+".join(["fare"] * 1500) + " > 1",
        "fare = '\0'",
        "fare = " + "1" * 30_000,
    ],
)
def test_anything_that_looks_beyond_the_row_is_refused_in_one_line(text):
    with pytest.raises(ConfigError, match=r"^dataset\.public: ") as refusal:
        check_predicate(text, COLUMNS)
    assert "\n" not in str(refusal.value)


def test_no_allowed_function_is_an_aggregate_or_depends_on_anything_but_its_arguments():
    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT function_name, function_type, stability FROM duckdb_functions() WHERE function_name IN "
            f"({', '.join(literal(name) for name in sorted(FUNCTIONS))})"
        ).fetchall()
    assert {kind for _, kind, _ in found} <= {"scalar", "macro"}
    assert {stability for _, _, stability in found} <= {"CONSISTENT", None}


def test_an_unknown_column_is_named_with_the_near_one_and_all_columns():
    with pytest.raises(ConfigError) as refusal:
        check_predicate("compny = 'Flash Cab'", COLUMNS, "dataset.where")
    message = str(refusal.value)
    assert message.startswith('dataset.where: unknown column "compny" (did you mean "company"?)')
    assert "company, Fare, trip miles" in message


def test_the_type_of_an_expression_is_known_without_data():
    types = {"a": "BIGINT", "s": "VARCHAR"}
    assert expression_type("a > 1", types, "k") == "BOOLEAN"
    assert expression_type("a / 2", types, "k") == "DOUBLE"
    with pytest.raises(ConfigError, match=r"^dataset\.derive\.x: "):
        expression_type("year(a)", types, "dataset.derive.x")


AT = ("2024-06-01 19:30:00+02:00", "2024-06-01T17:30:00Z", "2024-06-01 17:30:00.0 UTC")
"""One instant, which is half past two on Sunday, the second, in Tokyo."""


@pytest.mark.parametrize("session", ["UTC", "America/Chicago", "Asia/Tokyo"])
@pytest.mark.parametrize(
    ("text", "shown", "without"),
    [
        ("hour(CAST(t AS TIMESTAMPTZ))", 2, 19),
        ("hour(CAST(t AS TIMESTAMP)) * 60 + minute(TRY_CAST(t AS TIMESTAMP))", 150, 1170),
        ("isodow(t::DATE)", 7, 6),
        ("day(date_trunc('day', t::TIMESTAMPTZ))", 2, 1),
        ("CASE WHEN CAST(t AS TIMESTAMPTZ) < CAST('2024-06-02' AS TIMESTAMP) THEN 1 END", None, 1),
        ("epoch(CAST(t AS TIMESTAMPTZ))", 1717263000, 1717237800),
        ("hour(t::TIMESTAMPTZ AT TIME ZONE 'Europe/Berlin')", 19, 12),
        ("hour(CAST(CAST(t AS TIMESTAMPTZ) AS TIMESTAMP))", 2, 19),
    ],
)
def test_an_instant_is_read_by_the_clock_of_a_zone_whatever_the_sessions_is(session, text, shown, without):
    assert check_predicate(text, ("t",)) == ("t",)
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = '{session}'")
        query = f"SELECT {by_clock(text, 'Asia/Tokyo')} FROM (SELECT unnest(?::VARCHAR[]) AS t)"
        found = connection.execute(query, [[*AT, "2024-06-01 19:30:00"]]).fetchall()
    assert found == [(shown,)] * len(AT) + [(without,)]


def test_an_offset_in_a_format_is_read_and_what_names_no_instant_stays_as_it_is():
    text = by_clock("hour(try_strptime(t, '%d.%m.%Y %H:%M %z'))", "Asia/Tokyo")
    for session in ("UTC", "America/Chicago"):
        with duckdb.connect() as connection:
            connection.execute(f"SET TimeZone = '{session}'")
            assert connection.execute(
                f"SELECT {text} FROM (SELECT '1.6.2024 19:30 +0200' AS t)"
            ).fetchone() == (2,)
    for same in ("fare > 5 -- a remark", "hour(strptime(t, '%H:%M'))", "t < CAST('2024-06-01' AS DATE)"):
        assert by_clock(same, "Asia/Tokyo") == same
