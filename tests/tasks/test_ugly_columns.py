"""Ingest looks before it runs: nothing is silently read as what it is not, and no private row has a say in it."""

from __future__ import annotations

import ast
import datetime
import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import ingest_files, zones_of

from ldptree.errors import ConfigError, DataError
from schemas.config import load
from schemas.dataset import DatasetSpec
from storage.raw.recognition.findings import LEVELS_LISTED
from tasks.data.ingest_plan import RowRules
from tasks.data.source import locate

N = 90
CANARY = "CANARY77"


@pytest.fixture
def ingest(tmp_path):
    """Write a table whose every third row is public, ingest it, and hand over the result and the rows of each zone."""
    number = 0

    def run(columns, *, parquet=False, numeric=False, protected=(), **changes):
        nonlocal number
        number += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        size = len(next(iter(columns.values())))
        table = {"zone": ["closed" if i % 3 else "open" for i in range(size)]} | columns
        table.setdefault("paid", [i // 3 % 2 for i in range(size)])
        path = folder / ("t.parquet" if parquet else "t.csv")
        if parquet:
            pq.write_table(pa.table(table), path)
        else:
            rows = zip(*table.values(), strict=True)
            lines = [",".join(f'"{cell}"' for cell in row) for row in [table, *rows]]
            path.write_text("\n".join(lines) + "\n")
        spec = DatasetSpec.model_validate(
            {"name": "t", "path": "x", "target": "paid", "public": "zone = 'open'"} | changes
        )
        result = ingest_files(
            RowRules(dataset=spec, seed=7, protected=tuple(protected)),
            [path],
            zones_of(folder),
            numeric=numeric,
        )
        public, private = (
            [
                row
                for part in sorted((folder / zone).glob("part-*.parquet"))
                for row in pq.read_table(part).to_pylist()
            ]
            for zone in ("public", "holders")
        )
        return result, public, private

    return run


def hours():
    return [i % 24 for i in range(N)]


def pasted(refusal):
    """The lines of `[dataset.derive]` in a refusal, as TOML reads them."""
    lines = [line.strip() for line in str(refusal.value).splitlines()]
    return tomllib.loads("\n".join(line for line in lines if ' = "' in line and not line.startswith("#")))


MOMENTS = [datetime.datetime(2022, 1, 1) + datetime.timedelta(hours=17 * i) for i in range(N)]
UGLY = {
    "Fare ($)": [f"${i * 41.5:,.2f}" for i in range(N)],
    "share": [f"{i / 2} %" for i in range(N)],
    "weight": [f"{i},5" for i in range(N)],
    "day": [moment.strftime("%d/%m/%Y") for moment in MOMENTS],
    "Start Time": [moment.strftime("%m/%d/%Y %I:%M:%S %p") for moment in MOMENTS],
    "end": [moment.isoformat() for moment in MOMENTS],
    "clock": [moment.strftime("%H:%M") for moment in MOMENTS],
    "stamp": [moment.strftime("%Y%m%d") for moment in MOMENTS],
}
NAMED_ALIKE = {"power_W": 1, "Power W": 2, "power-W": 3}


def test_what_must_be_read_first_is_refused_at_once_and_the_pasted_lines_work(ingest, tmp_path):
    with pytest.raises(DataError) as refusal:
        ingest(UGLY | {"hour": hours()})
    message = str(refusal.value)
    assert message.startswith(f"t.csv: {len(UGLY)} columns hold numbers or dates that must be read first")
    assert all(f"\n  {column}: " in message for column in UGLY)
    assert "hour:" not in message
    assert not list(tmp_path.rglob("*.parquet"))

    found, public, private = ingest(UGLY | {"hour": hours()}, derive=pasted(refusal))
    assert not {column.name for column in found.columns} & set(UGLY)
    assert set(found.columns_left_out) == set(UGLY)
    assert all(
        why == "only what dataset.derive makes of it is used" for why in found.columns_left_out.values()
    )
    numbers = [*range(0, N, 3), *(i for i in range(N) if i % 3)]
    for i, row in zip(numbers, public + private, strict=True):
        moment = MOMENTS[i]
        assert row["Fare_number"] == pytest.approx(i * 41.5)
        assert row["share_number"] == i / 2
        assert row["weight_number"] == i + 0.5
        assert row["day_month"] == row["stamp_month"] == moment.month
        assert row["day_weekday"] == moment.isoweekday()
        assert row["Start_Time_hour"] == row["end_hour"] == moment.hour
        assert row["clock_minutes"] == 60 * moment.hour + moment.minute


def test_columns_whose_names_become_one_another_are_read_into_columns_of_their_own(ingest):
    watts = {name: [f"{times * i} W" for i in range(N)] for name, times in NAMED_ALIKE.items()}
    table = watts | {"power_W_number_2": hours()}
    with pytest.raises(DataError) as refusal:
        ingest(table)
    derive = pasted(refusal)
    assert list(derive) == ["power_W_number", "Power_W_number_3", "power_W_number_4"]
    written = refusal.value.in_python
    assert ast.literal_eval(written[written.index("derive={") + 7 : written.index("}") + 1]) == derive
    _, public, private = ingest(table, derive=derive)
    numbers = [*range(0, N, 3), *(i for i in range(N) if i % 3)]
    for i, row in zip(numbers, public + private, strict=True):
        assert [row[name] for name in derive] == [times * i for times in NAMED_ALIKE.values()]


def test_what_the_user_declares_or_drops_is_not_questioned(ingest):
    table = UGLY | {"hour": hours()}
    halves = list(UGLY)[:5], list(UGLY)[5:]
    _, public, _ = ingest(table, categorical=halves[0], types=dict.fromkeys(halves[1], "text"))
    assert all(str(public[1][column]) == UGLY[column][3] for column in UGLY)
    with pytest.raises(DataError, match=r"a column holds numbers or dates .*\n  share: "):
        ingest(table, drop=[column for column in UGLY if column != "share"])


def test_of_very_many_columns_the_first_are_listed(ingest):
    with pytest.raises(DataError, match="40 columns hold") as refusal:
        ingest({f"fare{i}": UGLY["Fare ($)"] for i in range(40)})
    assert "and so on; the first 30 are listed" in str(refusal.value)
    assert len(pasted(refusal)) == 30


def test_a_choice_of_orders_is_left_to_the_user(ingest):
    days = [f"{1 + i % 12:02}/{1 + i % 11:02}/2022" for i in range(N)]
    with pytest.raises(DataError, match="# day, if the day comes first:") as refusal:
        ingest({"day": days, "hour": hours()})
    assert pasted(refusal) == {}  # pasted as a whole it chooses nothing
    line = next(text for text in str(refusal.value).splitlines() if "# day_month" in text and "%m/%d" in text)
    _, public, _ = ingest(
        {"day": days, "hour": hours()}, derive=tomllib.loads(line.strip().removeprefix("# "))
    )
    assert [row["day_month"] for row in public[:3]] == [1, 4, 7]


def test_dates_and_identifiers_of_a_parquet_are_told_too(ingest):
    table = {
        "id": list(range(100, 100 + N)),
        "floated": [float(i) for i in range(N)],
        "when": pa.array(MOMENTS, pa.timestamp("ms", tz="UTC")),
        "day": pa.array([moment.date() for moment in MOMENTS]),
        "hour": hours(),
    }
    with pytest.raises(DataError, match="2 columns hold") as refusal:
        ingest(table, parquet=True)
    found, public, _ = ingest(table, parquet=True, derive=pasted(refusal))
    assert set(found.columns_left_out) == {"id", "floated", "when", "day"}
    assert public[1]["when_hour"] == MOMENTS[3].hour
    assert public[1]["day_month"] == MOMENTS[3].month


def test_what_nobody_can_use_is_left_out_with_the_reason(ingest):
    table = {
        "id": list(range(N)),
        "name": [f"N{i}" for i in range(N)],
        "note": [f"the {i}th ride of the day was on time" for i in range(N)],
        "firm": ["ash", "oak", "fir", "elm", "yew"] * (N // 5),
        "zip": ["02139", "10001", "94105", "60601", "73301"] * (N // 5),
        "hour": hours(),
    }
    found, public, _ = ingest(table)
    assert list(found.columns_left_out) == ["id", "name", "note"]
    assert [column.name for column in found.columns] == ["zone", "firm", "zip", "hour", "paid"]
    assert public[0]["zip"] == "02139"
    assert found.types["id"] == "text"


def test_the_users_word_holds(ingest):
    table = {"id": list(range(N)), "name": [f"N{i}" for i in range(N)], "hour": hours()}
    for said in ({"types": {"id": "integer", "name": "text"}}, {"categorical": ["id", "name"]}):
        assert not ingest(table, **said)[0].columns_left_out
    found, _, _ = ingest(table, ranges={"id": [0, 1000]}, levels={"name": ["N1", "N3"]})
    assert not found.columns_left_out
    many = {
        "many": [f"c{i // 3 % (LEVELS_LISTED + 1)}" for i in range(900)],
        "hour": [i % 24 for i in range(900)],
    }
    assert ingest(many)[0].columns_left_out == {"many": f"more than {LEVELS_LISTED} different texts"}
    assert not ingest(many, categorical=["many"])[0].columns_left_out
    with pytest.raises(ValueError, match="1,001 levels; a category has at most 1,000"):
        DatasetSpec(
            name="t", path="x", target="y", public="first 5", levels={"a": tuple(map(str, range(1001)))}
        )


def test_a_file_of_nothing_but_identifiers_is_refused_with_what_they_are(ingest, tmp_path):
    with pytest.raises(DataError, match=r"no features are left.*id: row numbers.*name: identifiers"):
        ingest({"id": list(range(N)), "name": [f"N{i}" for i in range(N)]})
    assert not list(tmp_path.rglob("*.parquet"))


def test_private_values_have_no_say(ingest):
    """Whatever private rows hold, what is told of the columns is the same, and quotes none of them."""
    plain = {"miles": [1.5 + i % 7 for i in range(N)], "firm": ["ash", "oak", "fir", "elm", "yew"] * (N // 5)}
    base, _, _ = ingest(plain)
    for wild in ([f"{CANARY} {i}" for i in range(N)], UGLY["Fare ($)"], UGLY["day"]):
        firm = [wild[i] if i % 3 else value for i, value in enumerate(plain["firm"])]
        assert ingest(plain | {"firm": firm})[0] == base
    fares = [f"${i}.50" if i % 3 == 0 else f"{CANARY}{i}" for i in range(N)]
    with pytest.raises(DataError) as refusal:
        ingest(plain | {"fare": fares})
    assert CANARY not in str(refusal.value)


def test_a_value_that_the_expression_cannot_read_is_missing(ingest):
    fares = [f"${i}.50" for i in range(N)]
    with pytest.raises(DataError) as refusal:
        ingest({"fare": fares, "hour": hours()})
    fares[1] = "on the house"
    _, _, private = ingest({"fare": fares, "hour": hours()}, derive=pasted(refusal))
    assert [row["fare_number"] for row in private[:2]] == [None, 2.5]


def test_a_target_of_money_is_refused_with_its_derivation(ingest):
    table = {"paid": UGLY["Fare ($)"], "hour": hours()}
    with pytest.raises(DataError, match=r"Then name the new column in dataset\.target") as refusal:
        ingest(table, numeric=True)
    derive = pasted(refusal)
    found, public, _ = ingest(table, numeric=True, derive=derive, target=next(iter(derive)))
    assert public[1]["paid_number"] == pytest.approx(3 * 41.5)
    assert [column.name for column in found.columns] == [
        "zone",
        "hour",
        "paid_number",
    ]  # the label gives nothing away


@pytest.mark.parametrize("text", ["1_000", "1_0.5", "1e1_0"])
@pytest.mark.parametrize("zone", ["open", "closed"])
def test_an_underscore_makes_no_number(ingest, text, zone):
    miles = [str(1.5 + i % 7) for i in range(N)]
    miles[0 if zone == "open" else 1] = text
    for types in ({}, {"miles": "number"}):
        if zone == "open":
            with pytest.raises(
                DataError, match=rf"\"miles\": not a number in 1 public row at row 1: '{text}'"
            ):
                ingest({"miles": miles}, types=types)
        else:
            assert ingest({"miles": miles}, types=types)[2][0]["paid"] is None


@pytest.mark.parametrize("text", ["1_000", "0x1F", "0b11", "0X1f"])
def test_an_integer_is_written_in_digits(ingest, text):
    count = [str(i % 7) for i in range(N)]
    count[0] = text
    with pytest.raises(DataError, match=r'"count": not an integer in 1 public row'):
        ingest({"count": count}, types={"count": "integer"})


def test_a_column_that_holders_protect_is_not_left_out(ingest):
    table = {"id": list(range(N)), "hour": hours()}
    assert not ingest(table, protected=["id"])[0].columns_left_out


def test_what_is_made_of_a_protected_column_is_protected_though_the_raw_one_is_left_out(ingest):
    table = {"fare": UGLY["Fare ($)"], "hour": hours()}
    with pytest.raises(DataError) as refusal:
        ingest(table)
    derive = pasted(refusal)
    assert ingest(table, derive=derive, protected=["fare_number"])[0].columns_left_out
    with pytest.raises(ConfigError, match=r'dataset\.where: uses "fare", which holders protect'):
        ingest(table, derive=derive, protected=["fare_number"], where="fare <> '$0.00'")


def test_an_expression_sees_a_column_that_is_left_out_as_it_was_told(ingest):
    table = {"id": list(range(N)), "hour": hours()}
    found, public, _ = ingest(table, derive={"parity": "id % 2"}, where="id < 60")
    assert "id" in found.columns_left_out
    assert [row["parity"] for row in public[:4]] == [0, 1, 0, 1]
    assert found.left_out_public == 10


def test_the_rows_at_the_end_of_a_long_file_are_looked_at_too(ingest):
    size = 60_000
    table = {
        "id": list(range(size)),
        "day": [
            f"{1 + i // 2000:02}/03/2022" for i in range(size)
        ],  # the first 24,000 rows do not tell the order
        "fare": ["4" if i < size - 900 else f"${4 + i // 48 % 2}" for i in range(size)],
        "hour": [i % 23 for i in range(size)],
    }
    with pytest.raises(DataError) as refusal:
        ingest(table)
    assert "day: dates (the day comes first)" in str(refusal.value)
    found, public, _ = ingest(table, derive=pasted(refusal))
    assert set(found.columns_left_out) == {"id", "day", "fare"}
    assert {row["fare_number"] for row in public} == {4.0, 5.0}


def test_units_that_alternate_are_not_hidden_by_how_rows_are_drawn(ingest):
    size = 30_000
    table = {"weight": [f"{20 + i // 6 % 60} {'kg' if i // 3 % 2 else 'lb'}" for i in range(size)]}
    found, _, _ = ingest(table | {"hour": [i % 23 for i in range(size)]})
    assert found.columns_left_out == {"weight": "numbers in more than one unit (kg, lb): write them in one"}


LARGE = [pytest.param(name, marks=pytest.mark.slow) for name in ("census", "chicago")]


@pytest.mark.parametrize("name", [*LARGE, "chicago_fare", "wine", "abalone"])
def test_of_the_ready_made_sets_nothing_is_left_out(name, data_home, tmp_path):
    config = load(name)
    spec = config.dataset
    found = ingest_files(
        RowRules(dataset=spec, seed=config.seed),
        locate(spec.path),
        zones_of(tmp_path),
        public_paths=locate([spec.rule.path]) if spec.rule.path else (),
        numeric=config.is_numeric,
    )
    assert found.columns_left_out == {}
