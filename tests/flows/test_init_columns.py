"""`ldptree init` reads columns as people write them: one file with a column of each kind, what is said of it, and its values as
ingest reads them by the configuration that is written.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from chain import ingest_files

from flows.command.init import init
from schemas.config import load
from tasks.data.ingest_plan import RowRules
from tasks.data.read import ZoneFolders
from tasks.first_look.rehearsal import type_rows
from tasks.first_look.values import look, numbers_among_words, values_apart

N = 600
ROW = np.arange(N)
RNG = np.random.default_rng(1)
DAYS = [dt.date(2020, 1, 1) + dt.timedelta(int(day)) for day in RNG.integers(0, 1000, N)]
HOURS = RNG.integers(0, 24, N)
TIMES = [
    dt.datetime(d.year, d.month, d.day, int(h), 5, tzinfo=dt.UTC) for d, h in zip(DAYS, HOURS, strict=True)
]
NUMBER = RNG.integers(0, 100, N)
LABEL = np.where(NUMBER + RNG.normal(0, 20, N) > 50, "won", "lost")
MONTHS = {
    "French": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "short French": "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
    "German": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "short German": "Jan. Feb. März Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez.",
    "Spanish": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
}
FORMS = ["{day} {month} {year}", "{day}. {month} {year}", "{day} de {month} de {year}"]


def first_look(folder, *, target="y", **columns):
    """The configuration that is written for a file of these columns beside a number and a label, and what `--json` says."""
    path, out = folder / "rows.csv", folder / "rows.toml"
    pl.DataFrame({"number": NUMBER, **columns, "y": columns.get("y", LABEL)}).write_csv(path)
    return out, looked_at(path, out, target=target)


def looked_at(path, out, *, target="y"):
    """What `--json` says of a file."""
    said = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    with contextlib.redirect_stdout(said):
        init(path, target=target, public=None, out=out, force=True, as_json=True)
    return json.loads(said.buffer.getvalue())


def typed(folder, out):
    """The rows as ingest reads them."""
    return type_rows(
        look(folder / "rows.csv", target="y", public=None),
        load(out).dataset,
        is_number=load(out).is_numeric,
    ).rows


def in_words(days, language, form):
    names = MONTHS[language].split()
    return [form.format(day=day.day, month=names[day.month - 1], year=day.year) for day in days]


def calendar(days):
    """What is derived of a column of dates."""
    return {
        "_year": [day.year for day in days],
        "_month": [day.month for day in days],
        "_weekday": [day.isoweekday() for day in days],
    }


def months(days, of=1):
    """What is derived of a column of months, or of the first ones of so many each."""
    return {
        "_year": [day.year for day in days],
        "_month": [(day.month - 1) // of * of + 1 for day in days],
    }


SHORT = [dt.date(2022, 1, 1) + dt.timedelta(int(after)) for after in RNG.integers(0, 700, N)]
UNKNOWN_MONTH = [dt.date(int(year), int(month), 1) for year, month in RNG.integers([1, 1], [29, 13], (N, 2))]
IS_TICKED = RNG.random(N) < 0.4
TICKED = {"_given": IS_TICKED.tolist()}
WON = LABEL == "won"
HOUR = calendar(DAYS) | {"_hour": HOURS.tolist()}
ONLY_AT_WIN = "...by itself it predicts"
COLUMNS = {
    # values, how their note begins (ends with ...: what is in it), and what is derived of them
    **{
        f"in_{language.replace(' ', '_')}": (in_words(DAYS, language, FORMS[i % 3]), "dates, as in ", calendar(DAYS))
        for i, language in enumerate(MONTHS)
    },
    **{f"form_{i}": (in_words(DAYS, "French", form), "dates, as in ", calendar(DAYS)) for i, form in enumerate(FORMS)},
    "of_weekdays": (in_words(DAYS, "French", "mercredi {day} {month} {year}"), "dates, as in ", calendar(DAYS)),
    "of_months": (in_words(DAYS, "Spanish", "{month} de {year}"), "dates, as in ", months(DAYS)),
    "of_quarters": ([f"{d.year}Q{(d.month + 2) // 3}" for d in DAYS], "dates, as in ", months(DAYS, 3)),
    "in_order": (sorted(map(str, DAYS)), "dates, as in ", calendar(sorted(DAYS))),  # so that no rule uses a column
    "pointed": ([f"{t:%d-%m-%Y %H.%M}" for t in TIMES], "dates (the day comes first)", HOUR),
    "with_h": ([f"{t:%d/%m/%Y %Hh%M}" for t in TIMES], "dates (the day comes first)", HOUR),
    "short_day": ([f"{d:%d.%m.%y}" for d in SHORT], "dates (the day comes first)", calendar(SHORT)),
    "short_year": ([f"{d:%y-%m-%d}" for d in SHORT], "dates (the year comes first)", calendar(SHORT)),
    "short_both": ([f"{d:%d.%m.%y}" for d in UNKNOWN_MONTH], "...do not tell whether the day comes first or", {}),
    "week": ([d.strftime("%G-W%V") for d in DAYS], "more than 100 different texts", None),
    "created_at": ([int(t.timestamp()) for t in TIMES], "identifiers, or points in time", None),
    "ticked": (["X" if one else None for one in IS_TICKED], "...or left blank", TICKED),
    "mark_1": (["1" if one else None for one in IS_TICKED], "...or left blank", TICKED),
    "mark_true": (["true" if one else None for one in IS_TICKED], "...or left blank", TICKED),
    **{f"constant_{mark}": ([mark] * N, "one value", None) for mark in ("X", "1", "true")},
    "top_coded": ([("0", "1", "2", "3+")[i % 4] for i in ROW], "not only numbers, as in '3+'", {}),
    "codes": ([("01", "02", "2A", "974")[i % 4] for i in ROW], "codes, as in '2A'", {}),
    "long_codes": ([("02139", "10001", "n/b", "94105")[i % 4] for i in ROW], "codes, as in 'n/b'", {}),
    "few": (
        [("0", "1", "2", "unbekannt")[i % 4] for i in ROW],
        "numbers; 150 of 600 values are not, for example 'unbekannt', and become missing",
        {"_number": [(0, 1, 2, None)[i % 4] for i in ROW]},
    ),
    "bounds": (
        ["<5.0" if i % 30 == 0 else f"{i % 30 - 1}.5" for i in ROW],
        "numbers; 20 of 600 values are not, for example '<5.0', and become missing",
        {"_number": [None if i % 30 == 0 else i % 30 - 0.5 for i in ROW]},
    ),
    "part": ([("2.9", "2.10", "2.11", "1.4")[i % 4] for i in ROW], "versions and no numbers, as in '2.11'", {}),
    "weight": ([("1.25", "1.75")[i % 2] for i in ROW], "", {}),
    "price": ([f"{i % 7}.{i % 90}" for i in ROW], "", {}),
    "odd": (["0.5" if i == 590 else "word" if i == 599 else "" for i in ROW], "nearly empty", None),
    "empty": ([""] * N, "empty", None),
    "leaking_money": ([f"${1 + won}.00" for won in WON], ONLY_AT_WIN, {"_number": (1 + WON).tolist()}),
    "leaking_date": ([f"2021-0{1 + won}-0{1 + i % 5}" for i, won in enumerate(WON)], ONLY_AT_WIN, {}),
    "happened": ([f"2021-0{1 + i % 7}-0{1 + i % 5}" if w else "" for i, w in enumerate(WON)], ONLY_AT_WIN, {}),
    "told": ([f"stopped on day {i} of all days, sadly" if w else "" for i, w in enumerate(WON)], "free text: ", None),
    "two_notations": (
        [f"{i},25" if i % 2 else f"{i}.25" for i in ROW], "...that dataset.derive must read", None,
    ),
    "infinite": (
        ["inf" if i % 50 == 0 else f"{i % 13}.5" for i in ROW],
        "numbers; 12 of 600 values are not, for example 'inf', and become missing",
        {"_number": [None if i % 50 == 0 else i % 13 + 0.5 for i in ROW]},
    ),
    "sign_behind": (
        [f"{i}.5-" if i % 3 else f"{i}.5" for i in ROW],
        "...that dataset.derive must read",
        None,
    ),
    "truth": ([" True " if i % 3 else " False " for i in ROW], "", {}),
}  # fmt: skip
"""None: the column itself is left out. {}: it is a feature as it is, or by one of several readings."""


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A look at one file of all these columns, and its rows as a run reads them."""
    folder = tmp_path_factory.mktemp("wide")
    out, said = first_look(folder, **{name: values for name, (values, _, _) in COLUMNS.items()})
    spec = load(out).dataset
    zones = ZoneFolders(public=folder / "p", holders=folder / "h", faults=folder / "faults")
    read = ingest_files(RowRules(dataset=spec, seed=0), [Path(path) for path in spec.path], zones)
    features = spec.features([column.name for column in read.columns])
    return SimpleNamespace(said=said, spec=spec, rows=typed(folder, out), features={*features})


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_told_and_read_as_people_write_it(wide, name):
    _, note, derived = COLUMNS[name]
    told = wide.said["columns"][name]["note"]
    assert note.removeprefix("...") in told if note.startswith("...") else told.startswith(note)
    assert bool(told) is bool(note)
    made = {one for one in wide.features if one.startswith(f"{name}_") and one not in COLUMNS}
    assert (name in wide.features) is (derived == {} and not made)
    if derived is not None:
        assert name in wide.features or made
        assert made == {f"{name}{suffix}" for suffix in derived} or derived == {}
        for suffix, values in derived.items():
            assert wide.rows[f"{name}{suffix}"].to_list() == values


def test_a_mark_and_a_reason_stand_in_the_configuration(wide):
    assert "ticked" in wide.spec.drop
    assert {name: kind for name, kind in wide.spec.types.items() if kind == "text"}.keys() >= {"part"}


def test_a_target_that_is_ticked_or_left_blank_is_learned_so(tmp_path):
    out, said = first_look(tmp_path, y=["x" if one == "won" else None for one in LABEL])
    spec = load(out).dataset
    assert (spec.target, spec.positive, said["label"], spec.where) == ("y_given", True, "class", None)
    assert typed(tmp_path, out)["y_given"].to_list() == (LABEL == "won").tolist()


@pytest.mark.parametrize(
    ("unknown", "is_folded"),
    [
        *((one, False) for one in ("k.A.", "unbekannt", "n/a", "?", "No data", "NS/NC", "Prefer not to say")),
        *(("k.A.", True), ("Prefer not to say", True)),
    ],
)
def test_a_label_that_is_not_known_is_no_class(tmp_path, unknown, is_folded):
    labels = np.where(RNG.random(N) < 0.1, unknown, LABEL)
    if is_folded:
        labels = np.where((labels == "won") & (RNG.random(N) < 0.3), "WON ", labels)
    labels = np.where(RNG.random(N) < 0.05, None, labels)
    out, _ = first_look(tmp_path, y=labels.tolist())
    config = load(out).dataset
    assert config.positive in ("won", "lost")
    assert config.on_bad_rows == "stop"  # a row without a label is left out, and is no bad row
    assert set(typed(tmp_path, out)[config.target]) == {"won", "lost"}


def test_a_class_that_looks_like_a_mark_stays_one_where_nothing_else_would_be_left(tmp_path):
    out, _ = first_look(tmp_path, y=np.where(LABEL == "won", "unknown", "known"))
    assert not load(out).dataset.where


def test_columns_that_are_left_out_for_the_same_reason_share_a_line_with_it(tmp_path):
    many = {f"const {i}": ["same"] * N for i in range(90)} | {
        f"code {i}": [f"id{i}{j}x" for j in range(N)] for i in range(9)
    }
    many["way"] = [f"{one} {'km' if one % 2 else 'mi'}" for one in NUMBER]
    out, _ = first_look(tmp_path, **many)
    assert sorted(load(out).dataset.drop) == sorted(many)
    lines = [line for line in out.read_text().splitlines() if line.startswith("    ")]
    assert sorted(line.partition("# ")[2] for line in lines) == [
        "identifiers or names: 600 different texts in 600 values",
        "numbers in more than one unit (km, mi): write them in one",
        "one value",
    ]


@pytest.mark.parametrize(
    ("name", "first", "each", "is_listed"),
    [
        ("taxi_id", 2_000_000, 8, True),
        ("Cliente", 1, 8, True),
        ("whoever", 1, 3, True),
        ("passenger", 1, 80, False),
        ("person", 1, 1, False),
    ],
)
def test_a_column_that_repeats_is_listed_as_one_that_may_name_the_holder(
    tmp_path, capsys, name, first, each, is_listed
):
    path, out = tmp_path / "rows.csv", tmp_path / "rows.toml"
    ids = RNG.permutation(first + ROW // each)
    pl.DataFrame({"x": NUMBER / 8, name: ids, "y": LABEL}).write_csv(path)
    init(path, target="y", public=None, out=out, force=False, as_json=False)
    text = out.read_text()
    assert (f"Columns that repeat: {name}. Where one of them" in capsys.readouterr().out) is is_listed
    assert (f'# holder = "{name}"' in text) is is_listed
    if is_listed:
        out.write_text(text.replace("# holder", "holder"))
        assert load(out).dataset.holder == name


def ended(given, typed_so):
    """A column that is there for some classes alone, and the label, of which a few are typing errors."""
    rng = np.random.default_rng(6)
    y, is_slip = rng.choice(["stays", "moves", "is moved"], N), rng.random(N) < 0.01
    others = {"stays": ("stays",), "moves": ("stays", "moves"), "a fault": ("stays",)}[typed_so]
    is_there = ~np.isin(y, others) & (rng.random(N) < given)
    if typed_so == "a fault":
        y = np.where(is_slip, "?!", np.where(y == "stays", "stays", "moves"))
    return [f"2021-0{1 + i % 7}-0{1 + i % 5}" if there else "" for i, there in enumerate(is_there)], y


@pytest.mark.parametrize(
    ("given", "typed_so", "is_told"),
    [
        (1.0, "stays", True),
        (0.9, "stays", False),
        (1.0, "moves", True),
        (1.0, "a fault", True),
        (0.9, "a fault", False),
    ],
)
def test_a_column_that_is_missing_or_there_just_for_one_of_several_classes_is_named_and_stays(
    tmp_path, given, typed_so, is_told
):
    values, y = ended(given, typed_so)
    out, told = first_look(tmp_path, ended=values, y=y)
    assert ("by itself it predicts y" in told["columns"]["ended"]["note"]) is is_told
    assert ("add it to drop" in out.read_text()) is is_told
    assert any(name.startswith("ended_") for name in load(out).dataset.derive)


@pytest.mark.parametrize("share", [1.0, 0.9])
def test_a_number_that_is_0_but_for_one_of_several_classes_is_named(tmp_path, share):
    y = RNG.choice(["kept", "returned", "exchanged"], N)
    refund = np.where((y == "returned") & (RNG.random(N) < share), RNG.integers(5, 90, N), 0)
    _, told = first_look(tmp_path, refund=refund, y=y)
    assert ("by itself it predicts y" in told["columns"]["refund"]["note"]) is (share == 1)


@pytest.mark.parametrize("size", [60, 300, 600])
def test_a_number_that_tells_classes_which_are_digits_is_named_in_a_file_of_any_size(tmp_path, size):
    path, out = tmp_path / "rows.csv", tmp_path / "rows.toml"
    odd = [f"{10 * won + i % 9}.5" for i, won in enumerate(WON)]
    pl.DataFrame({"x": NUMBER, "odd": odd, "y": WON * 1}).head(size).write_csv(path)
    assert "by itself it predicts" in looked_at(path, out)["columns"]["odd"]["note"]
    assert load(out).dataset.drop == ()


@pytest.mark.parametrize("numbers", [RNG.permutation(N), ROW])
@pytest.mark.parametrize("has_effect", [True, False])
def test_whole_numbers_that_are_all_different_are_used_where_the_label_goes_with_them(
    tmp_path, numbers, has_effect
):
    y = np.where(numbers * has_effect + RNG.normal(0, N / 4, N) > N / 2 * has_effect, "won", "lost")
    out, told = first_look(tmp_path, points=1000 + numbers, y=y)
    assert ("points" in load(out).dataset.drop) is not has_effect
    assert ("identifiers" in told["columns"]["points"]["note"]) is not has_effect


def test_a_column_of_lists_is_left_out_and_the_rest_is_learned(tmp_path):
    path, out = tmp_path / "rows.parquet", tmp_path / "rows.toml"
    pl.DataFrame({"x": NUMBER, "y": LABEL}).with_columns(held=pl.lit([1])).write_parquet(path)
    assert "lists" in looked_at(path, out)["columns"]["held"]["note"]
    zones = ZoneFolders(public=tmp_path / "p", holders=tmp_path / "h", faults=tmp_path / "faults")
    read = ingest_files(RowRules(dataset=load(out).dataset, seed=0), [path], zones)
    assert [column.name for column in read.columns] == ["x", "y"]


@pytest.mark.parametrize(("noise", "is_named"), [(0.0, True), (0.1, False)])
def test_a_multiple_of_a_heavy_tailed_target_is_named_and_a_strong_feature_is_not(tmp_path, noise, is_named):
    rng = np.random.default_rng(7)
    y = np.exp(rng.normal(3, 1, 2000)) * np.where(rng.random(2000) < 0.004, 40, 1)
    gross = 1.19 * y * np.exp(rng.normal(0, noise, 2000))
    table = {"x": rng.normal(size=2000).round(2), "gross": gross.round(2), "y": y.round(2)}
    pl.DataFrame(table).write_csv(tmp_path / "rows.csv")
    told = looked_at(tmp_path / "rows.csv", tmp_path / "rows.toml")["columns"]["gross"]["note"]
    assert ("by itself it predicts" in told) is is_named


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_columns_that_tell_the_target_together_are_named(tmp_path, noise):
    rng = np.random.default_rng(8)
    a, b = rng.random((2, 1500)) < 0.5
    y = np.where((a ^ b) ^ (rng.random(1500) < noise), "won", "lost")
    table = {"x": rng.normal(size=1500).round(2), "begun": a * 1, "ended": b * 1, "y": y}
    pl.DataFrame(table).write_csv(tmp_path / "rows.csv")
    told = looked_at(tmp_path / "rows.csv", tmp_path / "rows.toml")["columns"]
    note = "" if noise else "together begun, ended predict y almost perfectly"
    assert sorted(column["note"] for column in told.values()) == sorted(["", "", note, note])


@pytest.mark.parametrize("end", ["1,2\n", "1,2\n" * 6])
def test_lines_below_the_rows_that_are_none_stop_no_run(tmp_path, end):
    path, out = tmp_path / "rows.csv", tmp_path / "rows.toml"
    path.write_text(pl.DataFrame({"x": NUMBER, "z": HOURS, "y": LABEL}).write_csv() + end)
    looked_at(path, out)
    spec = load(out).dataset
    zones = ZoneFolders(public=tmp_path / "p", holders=tmp_path / "h", faults=tmp_path / "faults")
    read = ingest_files(RowRules(dataset=spec, seed=0), [Path(path) for path in spec.path], zones)
    assert {"x", "x_number"} & {*spec.features([column.name for column in read.columns])}


def test_a_target_whose_name_becomes_that_of_another_column_stays_the_target(tmp_path):
    watts = {"power_W": [f"{one} W" for one in HOURS], "power W": [f"{one} W" for one in NUMBER]}
    out, _ = first_look(tmp_path, target="power W", **watts)
    spec = load(out).dataset
    assert spec.derive[spec.target].startswith('CAST(replace(replace("power W"')
    assert list(spec.derive) == ["power_W_number", "power_W_number_2"]
    assert typed(tmp_path, out)[spec.target].to_list() == NUMBER.tolist()


SPELLINGS = {
    "a stop": (["It's won", "it's  WON.", "lost", "Lost .", "lost 2"], ["It's won", "It's won", "lost", "lost", "lost 2"]),
    "capitals and a stop": (["Ja", "ja", "JA ", "Nee", "nee."], ["Ja", "Ja", "Ja", "Nee", "Nee"]),
    "a stop alone": (["high", "high.", "Low", "low", "low ."], ["high", "high", "Low", "Low", "Low"]),
    "nothing": (["a b", "ab", "a.b", ".ab", "ab!"], ["a b", "ab", "a.b", ".ab", "ab!"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SPELLINGS)
def test_class_names_that_differ_in_blanks_capitals_or_a_stop_are_joined_as_the_commonest(tmp_path, name):
    spellings, names = SPELLINGS[name]
    kind = np.random.default_rng(2).choice(5, N, p=[0.3, 0.12, 0.28, 0.2, 0.1])
    kind = np.argsort(np.argsort([names.index(one) for one in names], kind="stable"))[kind]
    out, told = first_look(tmp_path, y=[spellings[k] for k in kind], feature=[spellings[k] for k in kind])
    spec = load(out).dataset
    assert (spec.target, "y" in spec.drop) == (("y", False) if name == "nothing" else ("y_joined", True))
    assert typed(tmp_path, out)[spec.target].to_list() == [names[k] for k in kind]
    assert ("feature" in spec.drop) is (name != "nothing")
    if name != "nothing":
        assert len({*typed(tmp_path, out)["feature_lower"]}) == len({*names})
        assert f"{spellings[1]!r} is {spellings[0]!r}" in told["columns"]["y"]["note"]


def test_a_category_of_which_half_the_rows_hold_a_number_is_pinned_as_a_text(tmp_path):
    """Told from the rows that a run draws, it would be a number of which the other half are faults."""
    truck = np.where(ROW > 0.43 * N, "-9", np.where(RNG.random(N) < 0.1, "Yes", "No"))
    out, _ = first_look(tmp_path, truck=truck)
    assert load(out).dataset.types == {"number": "number", "truck": "text", "y": "text"}
    assert typed(tmp_path, out)["truck"].to_list() == truck.tolist()


@pytest.mark.parametrize("values", [["02139", "10001", "00501"], ["1E2", "1E3", "204"]])
def test_digits_that_are_names_are_pinned_as_texts(tmp_path, values):
    out, _ = first_look(tmp_path, zip=RNG.choice(values, N), y=WON * 1)
    assert load(out).dataset.types["zip"] == "text"


@pytest.mark.parametrize("zone", ["Asia/Tokyo", None])
def test_an_instant_has_one_hour_in_a_text_with_offsets_and_in_a_parquet(tmp_path, zone):
    moments = [dt.datetime(2024, 3, 30, tzinfo=dt.UTC) + dt.timedelta(hours=i) for i in range(N)]
    offsets = [dt.timezone(dt.timedelta(hours=int(h))) for h in RNG.choice([-5, 0, 1], N)]
    written = [moment.astimezone(offset).isoformat() for moment, offset in zip(moments, offsets, strict=True)]
    pl.DataFrame({"when": written, "x": NUMBER, "y": WON * 1}).write_csv(tmp_path / "a.csv")
    held = pl.Series(moments).dt.convert_time_zone("America/Chicago")
    pl.DataFrame({"when": held, "x": NUMBER, "y": WON * 1}).write_parquet(tmp_path / "b.parquet")
    hours = []
    for path in (tmp_path / "a.csv", tmp_path / "b.parquet"):
        told = looked_at(path, tmp_path / f"{path.stem}.toml")["columns"]["when"]["note"]
        assert "hours and days are UTC's, unless dataset.timezone names a zone" in told
        spec = load(tmp_path / f"{path.stem}.toml").dataset.model_copy(update={"timezone": zone})
        seen = look(path, target="y", public=None)
        hours.append(type_rows(seen, spec, is_number=False).rows["when_hour"].to_list())
    assert hours[0] == hours[1] == [(i + (9 if zone else 0)) % 24 for i in range(N)]


@pytest.mark.parametrize(
    ("values", "apart"),
    [
        (["1", "2", "9"], ["9"]),
        (["no", "yes", "9", "-1"], ["-1", "9"]),
        (["no", "9"], []),
        (["under 5", "over 5", "9"], []),
        (["1", "2", "5"], []),
    ],
)
def test_a_class_that_is_a_number_unlike_the_others_may_mean_missing(tmp_path, values, apart):
    out, told = first_look(tmp_path, y=RNG.choice(values, N))
    assert [*told["columns"]["y"]["perhaps_missing"]] == apart
    assert "y: " + apart[0] in out.read_text() if apart else "missing = {" not in out.read_text()


@pytest.mark.parametrize(
    ("texts", "apart"),
    [
        ({"A": 9, "B": 8, "0": 9}, []),  # a blood group
        ({"m": 90, "f": 80, "9": 9}, ["9"]),
        ({"left": 90, "right": 80, "77": 9, "88": 9, "99": 9}, ["77", "88", "99"]),
    ],
)
def test_a_number_among_letters_is_one_more_unless_it_is_rare(texts, apart):
    assert [*numbers_among_words(texts)] == apart


BODY = np.random.default_rng(3).normal(120, 15, 2000).round()
SCALE = np.random.default_rng(4).integers(0, 11, 2000)
AWAY = {
    "one code": (BODY, {999: 80}),
    "a code, and a fault of typing beyond it": (BODY, {999: 80, 1210: 1}),
    "a code, and faults on both sides of it": (BODY, {999: 80, 1210: 1, 550: 1, 12_000: 1}),
    "a code below, and a fault below it": (BODY, {-999: 80, -5_000: 1}),
    "nought, and a fault below it": (BODY, {0: 50, -1: 1}),
    "five codes above a scale": (SCALE, dict.fromkeys(range(95, 100), 60)),
    "nine codes below a scale": (SCALE % 5 + 1, dict.fromkeys(range(-9, 0), 40)),
    "codes of which one is most rows": (SCALE * 3, {77: 90, 88: 1_900, 99: 90}),
    "codes of a truth": (SCALE % 2, {7: 80, 8: 80, 9: 80}),
    "codes at both ends": (BODY, {-9_999: 30, 9_999: 30}),
}
NONE_APART = {
    "categories": np.repeat([0, 1, 5], 700),
    "doses": np.repeat([0, 0.5, 1, 2, 10], 400),
    "coins": np.repeat([10, 20, 50, 100, 500], 400),
    "changes": np.repeat([-3, -2, -1, 1, 2, 3], 300),
    "two kinds of price": np.repeat([5, 6, 7, 8, 9, 10, 45, 46, 47, 48, 49, 50, 51, 52], 150),
    "whole degrees": np.random.default_rng(5).normal(5, 9, 2000).round(),
    "counts": np.random.default_rng(6).poisson(1.2, 2000),
    "faults alone": np.append(BODY, [999, 1210]),
}


@pytest.mark.parametrize("name", AWAY)
def test_values_that_repeat_apart_from_the_others_may_mean_missing(name):
    others, codes = AWAY[name]
    held = np.concatenate([others, *(np.full(n, code) for code, n in codes.items())])
    assert values_apart(held) == {code: n for code, n in sorted(codes.items()) if n > 3}


@pytest.mark.parametrize("name", NONE_APART)
def test_few_values_at_uneven_distances_are_no_codes(name):
    assert values_apart(NONE_APART[name]) == {}
