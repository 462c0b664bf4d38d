"""`ldptree init` reads columns as people write them: ticked boxes, dates in other languages, consent, unknown labels."""

from __future__ import annotations

import datetime as dt
import json
import tomllib

import numpy as np
import polars as pl
import pytest

from flows.command.init import init
from schemas.config import load
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


@pytest.mark.parametrize("language", MONTHS)
@pytest.mark.parametrize(
    "form", ["{day} {month} {year}", "{day}. {month} {year}", "{day} de {month} de {year}"]
)
def test_dates_with_names_of_months_are_read(tmp_path, capsys, language, form):
    names = MONTHS[language].split()
    texts = [form.format(day=day.day, month=names[day.month - 1], year=day.year) for day in DAYS]
    out, said = first_look(tmp_path, capsys, when=texts)
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


CONSENTED = {
    "Granted Denied Denied Pending": "consent = 'Granted'",
    "Yes yes No": "lower(trim(consent)) = 'yes'",
    "ja JA nein": "lower(trim(consent)) = 'ja'",
    "erteilt verweigert": "consent = 'erteilt'",
    "Oui Non": "consent = 'Oui'",
    "Rouge Vert": "random 0.25",
}


@pytest.mark.parametrize("answers", CONSENTED)
def test_those_who_plainly_consented_are_proposed_as_public(tmp_path, capsys, answers):
    out, said = first_look(tmp_path, capsys, consent=RNG.choice(answers.split(), N))
    rule = CONSENTED[answers]
    assert load(out).dataset.public == rule == said["public"]
    if "consent" in rule:
        assert not load(out).dataset.derive  # of a column that tells who is public no feature is made
        held = pl.read_csv(tmp_path / "rows.csv")["consent"]
        held = held.str.to_lowercase() if "lower" in rule else held
        assert 0 < (held == rule.split("'")[1]).sum() < N


@pytest.mark.parametrize("unknown", ["k.A.", "unbekannt", "n/a", "?", "No data"])
def test_a_label_that_is_not_known_is_no_class(tmp_path, capsys, unknown):
    labels = np.where(RNG.random(N) < 0.1, unknown, LABEL)
    out, _ = first_look(tmp_path, capsys, y=labels)
    config = load(out).dataset
    assert config.positive in ("won", "lost")
    assert config.where
    seen = tmp_path / "look"
    seen.mkdir()
    rows = type_rows(look(tmp_path / "rows.csv", seen, target="y", public=None), config, is_number=False).rows
    assert set(rows["y"].drop_nulls()) == {"won", "lost"}


def test_a_class_that_looks_like_a_mark_stays_one_where_nothing_else_would_be_left(tmp_path, capsys):
    out, _ = first_look(tmp_path, capsys, y=np.where(LABEL == "won", "unknown", "known"))
    assert not load(out).dataset.where


def test_of_many_columns_that_are_left_out_each_reason_stands_beside_its_columns(tmp_path, capsys):
    many = {f"const {i}": ["same"] * N for i in range(9)} | {
        f"code {i}": [f"id{i}{j}x" for j in range(N)] for i in range(9)
    }
    out, _ = first_look(tmp_path, capsys, **many)
    text = out.read_text()
    assert len(text.splitlines()) <= MOST_LINES
    assert sorted(load(out).dataset.drop) == sorted(many)
    reasons = [
        line for line in text.splitlines() if ("#" in line and '"code 0"' in line) or '"const 0"' in line
    ]
    assert [line.partition("# ")[2] for line in reasons] == ["identifiers or names", "one value"]
    assert tomllib.loads(text)
