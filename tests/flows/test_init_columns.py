"""`ldptree init` reads columns as people write them: ticked boxes, dates in other languages, consent, unknown labels."""

from __future__ import annotations

import datetime as dt
import io
import json
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from chain import ingest_files

from flows.command.init import init
from schemas.config import load
from storage.raw.recognition.columns import recognise
from storage.raw.recognition.findings import ColumnSample
from storage.sql import scratch_cursor
from tasks.data.ingest_plan import RowRules
from tasks.data.read import ZoneFolders
from tasks.first_look.proposal import MOST_LINES
from tasks.first_look.rehearsal import type_rows
from tasks.first_look.values import look

N = 600
RNG = np.random.default_rng(1)
DAYS = [dt.date(2020, 1, 1) + dt.timedelta(int(day)) for day in RNG.integers(0, 1000, N)]
HOURS = RNG.integers(0, 24, N)
NUMBER = RNG.integers(0, 100, N)
LABEL = np.where(NUMBER + RNG.normal(0, 20, N) > 50, "won", "lost")
MONTHS = {
    "French": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "short French": "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
    "German": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "short German": "Jan. Feb. März Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez.",
    "Spanish": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "Italian": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "Portuguese": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "Dutch": "januari februari maart april mei juni juli augustus september oktober november december",
    "Danish": "januar februar marts april maj juni juli august september oktober november december",
    "Norwegian": "januar februar mars april mai juni juli august september oktober november desember",
    "Swedish": "januari februari mars april maj juni juli augusti september oktober november december",
}


def first_look(folder, capsys, *, target="y", **columns):
    """The configuration that is written for a file of these columns beside a number and a label, and what `--json` says."""
    path, out = folder / "rows.csv", folder / "rows.toml"
    pl.DataFrame({"number": NUMBER, **columns, "y": columns.get("y", LABEL)}).write_csv(path)
    init(path, target=target, public=None, out=out, force=True, ask=False, as_json=True)
    return out, json.loads(capsys.readouterr().out)


def derived(folder, out, names):
    """The values of derived columns, as ingest reads them."""
    spec = load(out).dataset
    seen = folder / "look"
    seen.mkdir()
    typed = type_rows(look(folder / "rows.csv", seen, target="y", public=None), spec, is_number=False)
    return typed.rows.select(names)


FORMS = ["{day} {month} {year}", "{day}. {month} {year}", "{day} de {month} de {year}"]


def in_words(days, language, form):
    names = MONTHS[language].split()
    return [form.format(day=day.day, month=names[day.month - 1], year=day.year) for day in days]


@pytest.mark.parametrize("language", MONTHS)
@pytest.mark.parametrize("form", FORMS)
def test_dates_with_names_of_months_are_recognised(language, form):
    days = DAYS[:60]
    assert {day.month for day in days} == {*range(1, 13)}
    texts = in_words(days, language, form)
    finding = recognise(ColumnSample.of("day", texts))
    assert finding.sentence.startswith("dates, as in ")
    (reading,) = finding.readings
    assert [name for name, _ in reading.derive] == ["day_year", "day_month", "day_weekday"]
    with scratch_cursor() as cursor:
        cursor.register("given", pa.table({"day": texts}))
        found = cursor.execute(f"SELECT {', '.join(sql for _, sql in reading.derive)} FROM given").fetchall()
    assert found == [(day.year, day.month, day.isoweekday()) for day in days]


@pytest.mark.parametrize(
    ("form", "language"), [*zip(FORMS, ["French", "short German", "Spanish"], strict=True)]
)
def test_dates_with_names_of_months_are_read(tmp_path, capsys, language, form):
    out, said = first_look(tmp_path, capsys, when=in_words(DAYS, language, form))
    assert said["columns"]["when"]["note"].startswith("dates, as in ")
    found = derived(tmp_path, out, ["when_year", "when_month", "when_weekday"])
    assert found.rows() == [(day.year, day.month, day.isoweekday()) for day in DAYS]


WRITTEN = {
    "22-11-2021 21.05": ("{:%d-%m-%Y %H.%M}", "dates (the day comes first)"),
    "22/11/2021 21h05": ("{:%d/%m/%Y %Hh%M}", "dates (the day comes first)"),
}


@pytest.mark.parametrize("form", WRITTEN)
def test_times_with_a_point_or_an_h_are_read(tmp_path, capsys, form):
    written, what = WRITTEN[form]
    points = [dt.datetime(d.year, d.month, d.day, int(h), 5) for d, h in zip(DAYS, HOURS, strict=True)]
    out, said = first_look(tmp_path, capsys, when=[written.format(one) for one in points])
    assert said["columns"]["when"]["note"].startswith(what)
    assert derived(tmp_path, out, "when_hour").to_series().to_list() == HOURS.tolist()


@pytest.mark.parametrize("form", ["%d.%m.%y", "%y-%m-%d"])
def test_a_year_of_two_digits_is_the_number_that_has_few_values(tmp_path, capsys, form):
    days = [dt.date(2022, 1, 1) + dt.timedelta(int(after)) for after in RNG.integers(0, 700, N)]
    out, said = first_look(tmp_path, capsys, day=[format(day, form) for day in days])
    first = "day" if form.startswith("%d") else "year"
    assert said["columns"]["day"]["note"].startswith(f"dates (the {first} comes first)")
    found = derived(tmp_path, out, ["day_year", "day_month", "day_weekday"])
    assert found.rows() == [(day.year, day.month, day.isoweekday()) for day in days]


def test_a_month_of_two_digits_may_stand_beside_a_year_of_two(tmp_path, capsys):
    days = [dt.date(int(year), int(month), 1) for year, month in RNG.integers([1, 1], [29, 13], (N, 2))]
    _, said = first_look(tmp_path, capsys, month=[format(day, "%d.%m.%y") for day in days])
    assert "do not tell whether the day comes first or" in said["columns"]["month"]["note"]


@pytest.mark.parametrize("form", ["%G-W%V", "%GW%V"])
def test_weeks_are_read_as_their_mondays(tmp_path, capsys, form):
    out, _ = first_look(tmp_path, capsys, week=[day.strftime(form) for day in DAYS])
    mondays = [day - dt.timedelta(day.weekday()) for day in DAYS]
    found = derived(tmp_path, out, ["week_year", "week_month"])
    assert found.rows() == [(day.year, day.month) for day in mondays]


@pytest.mark.parametrize(
    ("name", "parts", "is_read"), [("created_at", 1, True), ("event_time", 1000, True), ("toll", 1, False)]
)
def test_whole_numbers_are_points_in_time_where_their_name_says_so(tmp_path, capsys, name, parts, is_read):
    points = [
        dt.datetime(d.year, d.month, d.day, int(h), tzinfo=dt.UTC) for d, h in zip(DAYS, HOURS, strict=True)
    ]
    out, said = first_look(tmp_path, capsys, **{name: [int(one.timestamp()) * parts for one in points]})
    assert ("since 1970" in said["columns"][name]["note"]) is is_read
    if is_read:
        assert derived(tmp_path, out, f"{name}_hour").to_series().to_list() == HOURS.tolist()
    else:
        assert not load(out).dataset.derive


@pytest.mark.parametrize("mark", ["X", "1", "true"])
def test_a_box_that_is_ticked_or_left_blank_is_read_so(tmp_path, capsys, mark):
    is_ticked = RNG.random(N) < 0.4
    out, said = first_look(
        tmp_path, capsys, smoker=[mark if one else None for one in is_ticked], const=[mark] * N
    )
    assert "or left blank" in said["columns"]["smoker"]["note"]
    assert said["columns"]["const"]["note"] == "one value"
    assert derived(tmp_path, out, "smoker_given").to_series().to_list() == is_ticked.tolist()
    assert "smoker" in load(out).dataset.drop


def test_a_target_that_is_ticked_or_left_blank_is_learned_so(tmp_path, capsys):
    out, said = first_look(tmp_path, capsys, y=["x" if one == "won" else None for one in LABEL])
    spec = load(out).dataset
    assert (spec.target, spec.positive, said["label"], spec.where) == ("y_given", True, "class", None)
    assert derived(tmp_path, out, "y_given").to_series().to_list() == (LABEL == "won").tolist()


@pytest.mark.parametrize(
    ("unknown", "is_folded"),
    [
        *((one, False) for one in ("k.A.", "unbekannt", "n/a", "?", "No data", "NS/NC", "Prefer not to say")),
        *(("k.A.", True), ("Prefer not to say", True)),
    ],
)
def test_a_label_that_is_not_known_is_no_class(tmp_path, capsys, unknown, is_folded):
    labels = np.where(RNG.random(N) < 0.1, unknown, LABEL)
    if is_folded:
        labels = np.where((labels == "won") & (RNG.random(N) < 0.5), "WON ", labels)
    labels = np.where(RNG.random(N) < 0.05, None, labels)
    out, _ = first_look(tmp_path, capsys, y=labels.tolist())
    config = load(out).dataset
    assert config.positive in ("won", "lost")
    assert config.on_bad_rows == "stop"  # a row without a label is left out, and is no bad row
    seen = tmp_path / "look"
    seen.mkdir()
    rows = type_rows(look(tmp_path / "rows.csv", seen, target="y", public=None), config, is_number=False).rows
    assert set(rows[config.target]) == {"won", "lost"}


def test_a_class_that_looks_like_a_mark_stays_one_where_nothing_else_would_be_left(tmp_path, capsys):
    out, _ = first_look(tmp_path, capsys, y=np.where(LABEL == "won", "unknown", "known"))
    assert not load(out).dataset.where


def test_of_many_columns_that_are_left_out_each_reason_stands_beside_its_columns(tmp_path, capsys):
    many = {f"const {i}": ["same"] * N for i in range(9)} | {
        f"code {i}": [f"id{i}{j}x" for j in range(N)] for i in range(9)
    }
    many["way"] = [f"{one} {'km' if one % 2 else 'mi'}" for one in NUMBER]
    out, _ = first_look(tmp_path, capsys, **many)
    text = out.read_text()
    assert len(text.splitlines()) <= MOST_LINES
    assert sorted(load(out).dataset.drop) == sorted(many)
    reasons = [
        line for line in text.splitlines() if ("#" in line and '"code 0"' in line) or '"const 0"' in line
    ]
    assert [line.partition("# ")[2] for line in reasons] == [
        "identifiers or names: 600 different texts in 600 values",
        "one value",
    ]
    (alone,) = [line for line in text.splitlines() if '"way"' in line]
    assert alone.endswith("# numbers in more than one unit (km, mi): write them in one")
    assert tomllib.loads(text)


@pytest.mark.parametrize(
    ("name", "first", "is_holder"),
    [
        ("taxi_id", 2_000_000, True),
        ("Passenger ID", 1, True),
        ("Premium paid", 1, False),
        ("company_id", 1, False),
        ("Kundennr", 1, True),
        ("Cliente", 1, True),
        ("ménage", 1, True),
        ("device", 1, True),
        ("device kind", 1, False),
    ],
)
def test_a_column_that_names_a_person_or_device_is_proposed_as_the_holder(
    tmp_path, capsys, name, first, is_holder
):
    path, out = tmp_path / "rows.csv", tmp_path / "rows.toml"
    people = first + np.arange(400) // (80 if name == "company_id" else 8)
    pl.read_csv(io.StringIO(plain())).with_columns(pl.Series(name, people)).write_csv(path)
    init(path, target="y", public=None, out=out, force=False, ask=False, as_json=False)
    text = out.read_text()
    assert (f'write holder = "{name}"' in capsys.readouterr().out) is is_holder
    assert (f'# holder = "{name}"' in text) is is_holder
    if not is_holder:
        return
    lines = [line.removeprefix("# ") if line.startswith("# holder") else line for line in text.splitlines()]
    if name in load(out).dataset.drop:
        assert "then take it out of drop" in text
        lines = [line for line in lines if not line.startswith(f'    "{name}",')]
    out.write_text("\n".join(lines))
    assert load(out).dataset.holder == name


def plain(end="", **more):
    """Rows of x, z and y, of which no column tells y, and of more columns; and what stands below them."""
    rng = np.random.default_rng(5)
    y = rng.choice(["a", "b"], 400)
    table = {"x": rng.integers(0, 7, 400), "z": rng.integers(0, 9, 400)}
    table |= {name: [one(i, y[i]) for i in range(400)] for name, one in more.items()}
    return pl.DataFrame(table | {"y": y}).write_csv() + end


REFUSED_BY_RUNS = {
    "a few odd values": (
        plain(odd=lambda i, y: "0.5" if i == 390 else "word" if i == 399 else ""),
        "nearly empty",
    ),
    "a leak in money": (plain(odd=lambda i, y: f"${1 + (y == 'a')}.00"), "by itself it predicts"),
    "a leak in a date": (
        plain(odd=lambda i, y: f"2021-0{1 + (y == 'a')}-0{1 + i % 5}"),
        "by itself it predicts",
    ),
    "a date where it happened": (
        plain(odd=lambda i, y: f"2021-0{1 + i % 7}-0{1 + i % 5}" if y == "a" else ""),
        "by itself it predicts",
    ),
    "a leak in a number, where the classes are digits": (
        plain(odd=lambda i, y: f"{10 * (y == 'a') + i % 9}.5")
        .replace(",a\n", ",1\n")
        .replace(",b\n", ",0\n"),
        "by itself it predicts",
    ),
    "free text where it happened": (
        plain(odd=lambda i, y: f"stopped on day {i} of all days, sadly" if y == "a" else ""),
        "free text: 2",
    ),
    "a short line": (plain("1,2\n"), ""),
    "many short lines": (plain("1,2\n" * 6), ""),
    "a line of totals": (plain("Total,600,\n"), ""),
    "numbers in two notations": (
        plain(odd=lambda i, y: f"{i},25" if i % 2 else f"{i}.25"),
        "more than one way",
    ),
    "infinite numbers": (
        plain(odd=lambda i, y: "inf" if i % 50 == 0 else f"{i % 13}.5"),
        "words that then are missing",
    ),
    "the sign behind": (plain(odd=lambda i, y: f"{i}.5-" if i % 3 else f"{i}.5"), "the sign behind"),
    "blanks around truth": (plain(odd=lambda i, y: " True " if i % 3 else " False "), ""),
    "an empty column": (plain(odd=lambda i, y: ""), "empty"),
}


@pytest.mark.parametrize("name", REFUSED_BY_RUNS)
def test_what_a_run_would_refuse_is_dealt_with_before_it_is_written(tmp_path, capsys, name):
    content, note = REFUSED_BY_RUNS[name]
    (tmp_path / "rows.csv").write_text(content)
    out = tmp_path / "rows.toml"
    init(tmp_path / "rows.csv", target="y", public=None, out=out, force=False, ask=False, as_json=True)
    said = json.loads(capsys.readouterr().out)["columns"]
    assert note in said.get("odd", {"note": ""})["note"]
    assert ("by itself it predicts" in said.get("odd", {"note": ""})["note"]) is (
        "leak" in name or "happened" in name
    )
    spec = load(out).dataset
    zones = ZoneFolders(public=tmp_path / "p", holders=tmp_path / "h", faults=tmp_path / "faults")
    found = ingest_files(RowRules(dataset=spec, seed=0), [Path(path) for path in spec.path], zones)
    features = spec.features([column.name for column in found.columns])
    assert {"x", "x_number"} & set(features)
    assert ("odd" in features) is (name == "blanks around truth")
    numbers = ("numbers in two notations", "infinite numbers", "the sign behind")
    assert ("odd_number" in features) is (name in numbers)


@pytest.mark.parametrize(
    ("given", "typed", "note"),
    [
        (1.0, "stays", "it is missing just where y is stays"),
        (0.9, "stays", ""),
        (1.0, "moves", "it is there just where y is is moved"),
        (1.0, "a fault", "by itself it predicts y"),
        (0.9, "a fault", "where it is there, y is moves in "),
    ],
)
def test_a_column_that_is_missing_or_there_just_for_one_of_several_classes_is_left_out(
    tmp_path, capsys, given, typed, note
):
    rng = np.random.default_rng(6)
    y, is_slip = rng.choice(["stays", "moves", "is moved"], 600), rng.random(600) < 0.01
    others = {"stays": ("stays",), "moves": ("stays", "moves"), "a fault": ("stays",)}[typed]
    is_there = ~np.isin(y, others) & (rng.random(600) < given)
    if typed == "a fault":
        y = np.where(is_slip, "?!", np.where(y == "stays", "stays", "moves"))
    ended = [f"2021-0{1 + i % 7}-0{1 + i % 5}" if there else "" for i, there in enumerate(is_there)]
    pl.DataFrame({"x": rng.integers(0, 7, 600), "ended": ended, "y": y}).write_csv(tmp_path / "rows.csv")
    out = tmp_path / "rows.toml"
    init(tmp_path / "rows.csv", target="y", public=None, out=out, force=False, ask=False, as_json=True)
    said = json.loads(capsys.readouterr().out)["columns"]["ended"]["note"]
    assert said.startswith("dates" if not note else ("dates", note))
    assert note in said
    assert ("ended" in load(out).dataset.drop) is bool(note)


@pytest.mark.parametrize("share", [1.0, 0.9])
def test_a_number_that_is_0_but_for_one_of_several_classes_is_left_out(tmp_path, capsys, share):
    y = RNG.choice(["kept", "returned", "exchanged"], N)
    refund = np.where((y == "returned") & (RNG.random(N) < share), RNG.integers(5, 90, N), 0)
    _, said = first_look(tmp_path, capsys, refund=refund, y=y)
    told = "it is 0 just" if share < 1 else "it is not 0 just where y is returned"
    assert (told in said["columns"]["refund"]["note"]) is (share == 1)


@pytest.mark.parametrize(("noise", "is_left_out"), [(0.0, True), (0.1, False)])
def test_a_multiple_of_a_heavy_tailed_target_is_left_out_and_a_strong_feature_is_none(
    tmp_path, capsys, noise, is_left_out
):
    rng = np.random.default_rng(7)
    y = np.exp(rng.normal(3, 1, 2000)) * np.where(rng.random(2000) < 0.004, 40, 1)
    gross = 1.19 * y * np.exp(rng.normal(0, noise, 2000))
    table = {"x": rng.normal(size=2000).round(2), "gross": gross.round(2), "y": y.round(2)}
    pl.DataFrame(table).write_csv(tmp_path / "rows.csv")
    out = tmp_path / "rows.toml"
    init(tmp_path / "rows.csv", target="y", public=None, out=out, force=False, ask=False, as_json=True)
    capsys.readouterr()
    assert ("gross" in load(out).dataset.drop) is is_left_out


NUMBERS_AND_WORDS = {
    "top-coded": (["0", "1", "2", "3+"], "not only numbers, as in '3+'", ["0", "1", "2", "3+"]),
    "codes": (["01", "02", "2A", "974"], "codes, as in '2A'", ["01", "02", "2A", "974"]),
    "long codes": (
        ["02139", "10001", "n/b", "94105"],
        "codes, as in 'n/b'",
        ["02139", "10001", "94105", "n/b"],
    ),
    "few, and unknown": (
        ["0", "1", "2", "unbekannt"],
        "words that then are missing (25%, as 'unbekannt')",
        None,
    ),
    "bounds": (
        ["<5.0", *(f"{i}.5" for i in range(29))],
        "bounds (4%, as '<5.0') are read without their sign",
        None,
    ),
}


@pytest.mark.parametrize("name", NUMBERS_AND_WORDS)
def test_numbers_and_words_are_a_category_where_the_words_are_values(tmp_path, capsys, name):
    values, note, levels = NUMBERS_AND_WORDS[name]
    (tmp_path / "rows.csv").write_text(plain(odd=lambda i, y: values[i * 7 % len(values)]))
    out = tmp_path / "rows.toml"
    init(tmp_path / "rows.csv", target="y", public=None, out=out, force=False, ask=False, as_json=True)
    assert note in json.loads(capsys.readouterr().out)["columns"]["odd"]["note"]
    spec = load(out).dataset
    zones = ZoneFolders(public=tmp_path / "p", holders=tmp_path / "h", faults=tmp_path / "faults")
    ingest_files(RowRules(dataset=spec, seed=0), [Path(path) for path in spec.path], zones)
    rows = pl.concat((pl.read_parquet(tmp_path / zone / "*.parquet") for zone in "ph"), how="diagonal")
    if levels is None:
        assert rows["odd_number"].dtype == pl.Float64
        assert rows["odd_number"].null_count() == (100 if name == "few, and unknown" else 0)
    else:
        assert sorted(rows["odd"].unique()) == levels
        assert "odd" not in spec.drop


def test_versions_are_no_numbers(tmp_path, capsys):
    counted = [("2.9", "2.10", "2.11", "1.4")[i % 4] for i in range(N)]
    named = [("1.25", "1.75")[i % 2] for i in range(N)]
    out, said = first_look(
        tmp_path,
        capsys,
        part=counted,
        firmware=named,
        weight=named,
        price=[f"{i % 7}.{i % 90}" for i in range(N)],
    )
    notes = {name: one["note"] for name, one in said["columns"].items()}
    assert notes["part"] == "versions and no numbers, as in '2.11'"
    assert notes["firmware"].startswith("versions")
    assert notes["weight"] == notes["price"] == ""
    assert load(out).dataset.types == {"part": "text", "firmware": "text"}


def test_codes_of_a_survey_far_from_its_scale_are_missing(tmp_path, capsys):
    trust = [98 if i % 9 == 0 else 99 if i % 11 == 0 else 1 + i % 7 for i in range(N)]
    days = [-9 if i % 9 == 0 else -8 if i % 11 == 0 else i % 8 for i in range(N)]
    old, cold = [20 + i % 80 for i in range(N)], [i % 30 - 9 for i in range(N)]
    out, said = first_look(tmp_path, capsys, trust=trust, days=days, old=old, cold=cold)
    notes = {name: one["note"] for name, one in said["columns"].items()}
    assert notes["trust"] == "numbers, of which 98 (11%) and 99 (8%) seem to mean missing"
    assert notes["days"] == "numbers, of which -9 (11%) and -8 (8%) seem to mean missing"
    assert notes["old"] == notes["cold"] == ""
    found = derived(tmp_path, out, ["trust_number", "days_number"])
    assert found["trust_number"].to_list() == [None if value > 7 else value for value in trust]
    assert found["days_number"].to_list() == [None if value < 0 else value for value in days]


def test_two_numbers_that_mean_missing_are_both_read_so(tmp_path, capsys):
    age = [-1 if i % 9 == 0 else 999 if i % 11 == 0 else 18 + i % 60 for i in range(N)]
    low, below = [-1 if i % 9 == 0 else i % 60 for i in range(N)], [i % 60 - 2 for i in range(N)]
    out, said = first_look(tmp_path, capsys, age=age, low=low, below=below)
    notes = {name: one["note"] for name, one in said["columns"].items()}
    assert notes["age"] == "numbers, of which -1 (11%) and 999 (8%) seem to mean missing"
    assert notes["low"] == "numbers, of which -1 (11%) seems to mean missing"
    assert notes["below"] == ""
    found = derived(tmp_path, out, ["age_number"])["age_number"]
    assert found.to_list() == [None if value in (-1, 999) else value for value in age]


@pytest.mark.parametrize("name", ["Panel", "Kohorte", "Sociét\u00e9", "Fuente", "Azienda", "Vestiging"])
def test_a_group_is_proposed_as_public_in_other_languages(tmp_path, capsys, name):
    group = np.where(np.arange(N) % 4, "new", "old")
    _, said = first_look(tmp_path, capsys, **{name: group})
    assert said["public"] == "random 0.25"
    (found,) = said["public_proposals"]
    assert found["rule"].endswith(" = 'old'")


@pytest.mark.parametrize(("there", "note"), [(0.95, "where it is there, y is won in 9"), (0.7, "")])
def test_a_column_that_is_there_nearly_for_one_of_two_classes_alone_is_left_out(
    tmp_path, capsys, there, note
):
    rng = np.random.default_rng(3)
    is_there = rng.random(N) < np.where(LABEL == "won", 0.5 * there, 0.5 * (1 - there))
    held = [("sent", "signed", "kept")[i % 3] if one else None for i, one in enumerate(is_there)]
    out, said = first_look(tmp_path, capsys, parcel=held)
    assert said["columns"]["parcel"]["note"].startswith(note)
    assert ("parcel" in load(out).dataset.drop) == bool(note)


def test_each_column_that_is_left_out_has_its_reason_while_there_is_room(tmp_path, capsys):
    texts = {f"text_{i}": [f"{i}{j} words that nobody repeats" for j in range(N)] for i in range(12)}
    out, _ = first_look(tmp_path, capsys, **texts)
    lines = out.read_text().splitlines()
    assert len(lines) <= MOST_LINES
    assert all(sum(f'"{name}", ' in line and "# " in line for line in lines) == 1 for name in texts)


def test_a_target_whose_name_becomes_that_of_another_column_stays_the_target(tmp_path, capsys):
    watts = {"power_W": [f"{one} W" for one in HOURS], "power W": [f"{one} W" for one in NUMBER]}
    out, _ = first_look(tmp_path, capsys, target="power W", **watts)
    spec = load(out).dataset
    assert spec.derive[spec.target].startswith('CAST(replace(replace("power W"')
    assert list(spec.derive) == ["power_W_number", "power_W_number_2"]
    assert derived(tmp_path, out, spec.target).to_series().to_list() == NUMBER.tolist()
