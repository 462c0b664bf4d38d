"""What raw columns hold is told from public values: forms that must be read first, names and free text that nobody can use."""

from __future__ import annotations

import random

import pytest

from storage.raw.recognition import odd_texts
from storage.raw.recognition.columns import recognise
from storage.raw.recognition.date_forms import _CALENDARS, month_name_readings
from storage.raw.recognition.findings import FEW, LEVELS_LISTED, ColumnSample, new_name
from storage.sql import scratch_cursor


def is_plain(text):
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.isascii()


def found(values, column="x"):
    is_number = all(map(is_plain, values))
    is_whole = is_number and all(float(v) % 1 == 0 for v in values)
    return recognise(ColumnSample.of(column, values, is_number=is_number, is_whole=is_whole))


def read(values, reading, column="x"):
    """What the derived columns are, by DuckDB."""
    with scratch_cursor() as cursor:
        rows = ", ".join(f"('{value.replace(chr(39), chr(39) * 2)}')" for value in values)
        columns = ", ".join(expression for _, expression in reading.derive)
        return cursor.execute(f"SELECT {columns} FROM (VALUES {rows}) AS t({column})").fetchall()


@pytest.mark.parametrize(
    ("values", "told", "numbers"),
    [
        (["3,326.44", "5.00", "1,234,567.8"], "commas between thousands", [3326.44, 5, 1234567.8]),
        (["1 234,5", "12,25", "7"], "blanks between thousands", [1234.5, 12.25, 7]),
        (["1\u00a0234,5", "12\u202f345,25", "3,1"], "blanks between thousands", [1234.5, 12345.25, 3.1]),
        (["1'234.50", "12’345.00", "3.5"], "apostrophes between thousands", [1234.5, 12345, 3.5]),
        (["1.234.567", "12.345", "850"], "points between thousands", [1234567, 12345, 850]),
        (["3,14", "2,7", "-1,55"], "a decimal comma", [3.14, 2.7, -1.55]),
        (["$123.45", "$3,326.44", "-$5"], "money", [123.45, 3326.44, -5]),
        (["3.326,44 €", "5 €", "12,50 €"], "money", [3326.44, 5, 12.5]),
        (["USD 5", "USD 6.5", "USD 1,200"], "money", [5, 6.5, 1200]),
        (["R$ 5,50", "R$ 1.200,10", "R$ 7,25"], "money", [5.5, 1200.1, 7.25]),
        (["45%", "3.5 %", "−2%"], "percentages", [45, 3.5, -2]),
        (
            ["950", "5.2k", "1.1 M", *map(str, range(9))],
            "numbers, some of them in M or k, as in '5.2k'",
            [950, 5200, 1_100_000, *range(9)],
        ),
        (
            ["٤٥", "-٣٫٥".replace("٫", "."), "7"],
            "numbers in digits of another script, as in '٤٥'",
            [45, -3.5, 7],
        ),
        (
            ["४५,०००.५", "३,५००", "७"],
            "another script: numbers with commas between thousands",
            [45000.5, 3500, 7],
        ),
    ],
)
def test_a_number_in_a_form_of_its_own_is_told_with_the_expression_that_reads_it(values, told, numbers):
    finding = found(values)
    assert told in finding.sentence
    (reading,) = finding.readings
    assert [row[0] for row in read(values, reading)] == pytest.approx(numbers)


def test_numbers_with_a_unit_are_read_where_they_are_more_than_a_few_categories():
    values = [f"{i / 2} km" for i in range(30)]
    (reading,) = found(values).readings
    assert read(values, reading)[7] == (3.5,)
    assert found(["36 months", "60 months"] * 20) is None
    assert found(["5 kg", "500 g"] * 20) is None  # of two units no one number can be made
    assert found(["45%", "0.45", "12%"]) is None


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        (["£391,219", *(f"£{i}" for i in range(9))], "£"),
        ([f"{i} m" for i in range(20)], "m"),
        (["1,234.50", "12.00", "3.5"], ""),
    ],
)
def test_what_numbers_are_measured_in_is_told(values, unit):
    assert found(values).unit == unit


def test_numbers_in_two_units_are_of_no_use_and_numbers_of_houses_are_no_units():
    finding = found([f"{i} {'kg' if i % 2 else 'lb'}" for i in range(60)])
    assert finding.sentence == "numbers in more than one unit (kg, lb): write them in one"
    assert (finding.readings, finding.is_mixed) == ((), True)
    assert found([f"{1 + i % 9}{'ABC'[i % 3]}" for i in range(90)]) is None
    assert found([f"{1 + i % 40}{'st' if i % 2 else 'th'}" for i in range(90)]) is None


@pytest.mark.parametrize(
    "values",
    [
        [f"({i}.50)" if i % 2 else f"{i}.25" for i in range(90)],
        [f"{i}.5-" if i % 3 else f"{i}.5" for i in range(90)],
        [f"{i},25" if i % 2 else f"{i}.25" for i in range(90)],
        [f"{i}_000" for i in range(90)],
        [f"Tue, {1 + i % 28:02} Mar {2001 + i} 08:15:00 GMT" for i in range(90)],
        [f"{2001 + i % 9}-W{10 + i % 40}" for i in range(180)],
    ],
)
def test_a_rare_form_is_of_no_use_and_never_read_as_something_else(values):
    finding = found(values)
    assert finding is None or finding.readings == ()


def test_money_in_two_currencies_is_of_no_use():
    finding = found(["$5.00", "€6.00", "$7.00"])
    assert "more than one currency" in finding.sentence
    assert finding.readings == ()


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        (["2021-12-31", "2022-11-02"], [(2021, 12, 5), (2022, 11, 3)]),
        (["2021-12-31T08:15:00Z", "2021-12-31 10:00:00.5+01:00"], [(8,), (9,)]),
        (["31.12.2021 08:15 +00:00", "31.12.2021 10:00 +01:00"], [(8,), (9,)]),
        (["2021-12-31 08:15:00 +0000", "2021-12-31 10:00:00 +0100"], [(8,), (9,)]),
        (["13/04/2021", "5/6/2022"], [(2021, 4, 2), (2022, 6, 7)]),
        (["04/13/2021", "5/6/2022"], [(2021, 4, 2), (2022, 5, 5)]),
        (["25.03.2022 08:15", "01.04.2022 17:30"], [(3, 8), (4, 17)]),
        (["03/21/2022 08:15:00 PM", "05/01/2022 12:15:00 AM"], [(3, 1, 20), (5, 7, 0)]),
        (["31-12-99", "01-02-99"], [(12, 5), (2, 1)]),
        (["01-Mar-22", "02-APR-22"], [(3, 2), (4, 6)]),
        (["March 1, 2022", "April 2, 2022"], [(3, 2), (4, 6)]),
        (["1 March 2022", "2 April 2022"], [(3, 2), (4, 6)]),
        (["2022-03", "2022-04"], [(3,), (4,)]),
        (["08:15", "23:59"], [(495,), (1439,)]),
        (["8:15 PM", "11:59 AM"], [(1215,), (719,)]),
        (["20220301", "20220402", "20220503"], [(3, 2), (4, 6), (5, 2)]),
        (["8:15 p.m.", "11:59 A.M."], [(1215,), (719,)]),
        (["2021-03-04 8:15 a.m.", "2021-04-05 9:30 P. M."], [(3, 4, 8), (4, 1, 21)]),
        (["٢٠٢١-٠٣-٠٤", "٢٠٢١-٠٤-٠٥"], [(3, 4), (4, 1)]),
        (["2021-12-31", "13/01/2022", "5/6/2022"], [(2021, 12, 5), (2022, 1, 4), (2022, 6, 7)]),
        (["31.12.2021 08:15", "28.02.2022"], [(2021, 12, 5, 8), (2022, 2, 1, 0)]),
    ],
)
def test_dates_and_times_are_told_with_the_parts_that_differ(values, parts):
    finding = found(values)
    (reading,) = finding.readings
    assert read(values, reading) == parts


def test_days_and_months_that_cannot_be_told_apart_are_a_choice():
    finding = found(["03/04/2021", "01/02/2021"])
    assert [reading.label for reading in finding.readings] == ["the day comes first", "the month comes first"]
    values = ["03/04/2021"]
    assert [read(values, reading)[0][0] for reading in finding.readings] == [4, 3]
    assert len(found(["22-03-01", "21-12-31"]).readings) == 2
    assert len(found(["1,234", "45,123", "850"]).readings) == 2  # 1234, or 1.234?


def test_dates_in_several_forms_are_told_with_one_of_each_and_no_form_is_read_as_another():
    finding = found(["2021-12-31", "13/01/2022"])
    assert finding.sentence == "dates in 2 forms, as in '2021-12-31' and '13/01/2022'"
    labels = [reading.label for reading in found(["2021-12-31", "03/04/2022", "01/02/2022"]).readings]
    assert labels == ["the day comes first", "the month comes first"]
    assert found(["13/01/2022", "01/13/2022"] * 9) is None  # one shape, in which no order reads all


def test_a_new_column_keeps_the_letters_of_any_alphabet():
    assert new_name("Eröffnet am", "year") == "Eröffnet_am_year"
    assert new_name("Дата (UTC)", "month") == "Дата_UTC_month"
    assert new_name("€", "number") == "column_number"


def test_dates_in_another_form_than_most_are_told_of():
    days = [f"2021-03-{day:02}" for day in range(1, 29)]
    finding = found([*days, *["5 Mar 2019"] * 7])
    assert (
        finding.sentence
        == "dates, as in '2021-03-01'; 7 of 35 values are not, for example '5 Mar 2019', and become missing"
    )
    assert "become missing" not in found(days).sentence


@pytest.mark.parametrize("values", [["$1.50", "$2.50", "$4.00"], ["2021-03-01", "2021-04-02", "2022-05-03"]])
def test_odd_cells_of_a_column_with_few_values_do_not_lose_it(values):
    finding = found([*values * 99, "gratis", "free"])
    assert finding.sentence.endswith(
        "; 2 of 299 values are not, for example 'free' and 'gratis', and become missing"
    )
    assert len(finding.readings) == 1
    assert not found([*values * 30, "gratis", "free"])  # two of ninety are more than odd


def test_one_number_that_tells_is_enough():
    assert len(found(["1,234", "45,123", "0,125"]).readings) == 1
    assert len(found(["1,234", "8,336,817"]).readings) == 1


def test_commas_are_between_thousands_where_smaller_numbers_go_without():
    long, short = [f"{i},250" for i in range(1, 30)], [str(i) for i in range(700, 730)]
    assert "commas between thousands" in found([*long, *short]).sentence
    assert "whether 1,250 is 1250 or 1.25" in found(long).sentence
    assert len(found([*long, *short, "1000"]).readings) == 2  # a thousand without its comma


def test_points_are_between_thousands_where_smaller_numbers_go_without():
    thousands = [f"{i}.{i:03}" for i in range(1, 40)]
    (reading,) = found([*thousands, *map(str, range(100, 140))]).readings
    assert read(["1.001", "100"], reading) == [(1001.0,), (100.0,)]
    assert found([*thousands, "1000", *map(str, range(100, 140))]) is None
    assert found([*thousands, "0.250", *map(str, range(100, 140))]) is None
    assert found(thousands) is None  # of one scale, whichever it is


def test_numbers_of_which_many_are_in_another_form_are_not_read_without_them():
    sample = ColumnSample(
        column="net",
        spread=[f"({i}.5)" if i % 3 == 0 else f"{i}.5" for i in range(300)],
        n_distinct=LEVELS_LISTED + 1,
        is_mostly_number=True,
    )
    finding = odd_texts.recognise(sample)
    assert "numbers, and 100 of 300 values in another form, as '(0.5)'" in finding.sentence
    assert (finding.readings, finding.is_mixed) == ((), True)


def test_a_few_values_of_another_kind_do_not_hide_a_form():
    values = [f"${i}.50" for i in range(95)] + ["free"] * 5
    (reading,) = found(values).readings
    assert read(["$7.50"], reading) == [(7.5,)]
    assert not found(["$1.50"] * 3 + ["free", "cheap", "dear", "x"])


def test_one_odd_value_among_plain_numbers_makes_no_form():
    for odd in ("12,50 $", "1_000", "$5"):
        values = ["5", "6.5", "7", "8"] * 20 + [odd] * 2
        sample = ColumnSample(column="x", spread=values, n_distinct=5, is_mostly_number=True)
        assert recognise(sample) is None


RANDOM = random.Random(1)
SHUFFLED = RANDOM.sample(range(1, 101), 100)


@pytest.mark.parametrize(
    ("values", "column"),
    [
        (range(1, 51), "x"),
        (range(7, 500, 9), "x"),
        (SHUFFLED, "x"),
        (RANDOM.sample(range(10_000), 1_000), "x"),  # a tenth of the numbers up to 10,000
        ([*RANDOM.sample(range(10_000), 990), *range(10)], "x"),  # a few stand twice
        ([RANDOM.randrange(10**9, 10**10) for _ in range(60)], "x"),
    ],
)
def test_whole_numbers_that_number_the_rows_are_identifiers(values, column):
    finding = found([str(value) for value in values], column)
    assert "identifiers" in finding.sentence
    assert finding.readings == ()


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([RANDOM.randrange(18, 80) for _ in range(200)], "age"),
        ([int(RANDOM.lognormvariate(10.5, 0.5)) for _ in range(300)], "salary"),
        ([RANDOM.randrange(100) for _ in range(300)], "company_id"),
        ([RANDOM.randrange(150) for _ in range(3_000)], "NO2 Id"),
        ([RANDOM.randrange(10**6, 10**7) for _ in range(60)], "body_mass_index"),
        ([RANDOM.randrange(150) for _ in range(3_000)], "paid"),
        ([60_601 + i % 9 for i in range(90)], "area id"),
        (SHUFFLED[: FEW - 1], "x"),  # of few rows it says nothing that none are alike
        ([0, 1] * 40, "paid"),
        ([v / 8 for v in range(1, 101)], "hours"),
    ],
)
def test_numbers_that_count_or_measure_are_features(values, column):
    assert found([str(value) for value in values], column) is None


def test_digits_that_begin_with_noughts_are_a_code():
    assert found(["02139", "10001", "94105"]).is_code
    assert found(["01", "02", "12"]) is None  # months
    assert found(["1E2", "12E1", "204"]).is_code
    assert found(["1E+2", "1.2E1", "204"]) is None
    many = found([f"{RANDOM.randrange(10**5):05}" for _ in range(400)])
    assert not many.is_code
    assert many.readings == ()


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([f"N{i} M" for i in range(50)], "identifiers or names"),
        (
            [" ".join(RANDOM.choices(["the", "ride", "was", "good", "bad", "late"], k=9)) for _ in range(50)],
            "free text",
        ),
        ([f"level {i % 101}" for i in range(1_000)], f"more than {LEVELS_LISTED} different texts"),
        ([f"123e4567-e89b-12d3-a456-42661417400{i}" for i in range(5)], "UUIDs"),
        (["ann@example.org", "bob@example.org"], "e-mail addresses"),
        ([f"The passenger of ride {i} left his umbrella on the seat" for i in range(6)], "free text"),
    ],
)
def test_texts_that_nobody_can_use_are_told(values, told):
    finding = found(values)
    assert told in finding.sentence
    assert finding.readings == ()


@pytest.mark.parametrize(
    "values",
    [
        ["Paris", "London"] * 30,
        [f"area {i % LEVELS_LISTED}" for i in range(1_000)],
        [f"firm {i}" for i in range(FEW - 1)],
        ["10-20", "20-30"] * 20,
        ["$", "$$", "$$$"] * 20,
        ["1.2.3", "2.0.1"] * 20,
        ["A", "B", "May"] * 20,
        ["1st", "2nd", "3rd"] * 20,
        ["12A", "13B"] * 20,
        ["true", "false"] * 20,
        [],
        [""],
    ],
)
def test_categories_stay_categories(values):
    assert found(values) is None


def test_the_lines_to_paste_name_any_column_there_is():
    import tomllib

    for column in ("fare", "Fare ($)", "end", 'a "b"', "naïve", "1st", "%"):
        (reading,) = found(["$1.50", "$2.25"], column).readings
        pasted = tomllib.loads("\n".join(reading.toml_lines()))
        ((_, expression),) = pasted.items()
        quoted = '"' + column.replace('"', '""') + '"'
        assert read(["$2.25"], type(reading)("", (("d", expression),)), quoted) == [(2.25,)]


@pytest.mark.parametrize("names", _CALENDARS, ids=lambda names: names[2])
def test_a_month_is_told_by_its_first_letters_in_every_language(names):
    for number, name in enumerate(names, 1):
        read = [one.month for one in month_name_readings(f"3. {name} 2021")]
        with scratch_cursor() as cursor:
            found = [
                cursor.execute(
                    f"SELECT {one.replace('{}', 'x')} FROM (SELECT '3. {name} 2021' AS x)"
                ).fetchone()
                for one in read
            ]
        assert (number,) in found
        assert len(set(found)) == 1


@pytest.mark.parametrize("months", [("mars", "août"), ("März", "Mai"), ("marzo", "dic."), ("Mar", "July")])
@pytest.mark.parametrize("odd", ["unbekannt", "12. Foo 2022", "Anfang 2022", "2022"])
def test_what_is_no_month_becomes_missing_and_no_month_0(months, odd):
    finding = found([f"{1 + i % 28} {months[i % 2]} {2001 + i % 9}" for i in range(200)] + [odd])
    assert finding.sentence.endswith(f"; 1 of 201 values is not, for example {odd!r}, and becomes missing")
    (reading,) = finding.readings
    (month,) = (expression for name, expression in reading.derive if name == "x_month")
    with scratch_cursor() as cursor:
        assert cursor.execute(f"SELECT TRY({month}) FROM (SELECT {odd!r} AS x)").fetchall() == [(None,)]


def test_of_a_month_in_another_language_the_line_that_reads_the_year_is_told():
    finding = found(
        [f"{1 + i % 28} {('maart', 'mei', 'augustus')[i % 3]} {2001 + i % 9}" for i in range(99)], "dag"
    )
    assert not finding.readings
    assert finding.sentence.endswith('dag_year = "CAST(right(dag, 4) AS INT)"')
