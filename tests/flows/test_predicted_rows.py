"""What is predicted is read as the run read its own rows: without a header, with derived columns, as a file or as a frame."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from workbooks import workbook

import ldptree
from flows import in_python
from ldptree.errors import ArtifactCorrupt, ConfigError, DataError
from storage.formats import stamped
from storage.raw.other_rows import OtherRows
from tasks.predict import predict_file, row_format_of

ROWS = 900
HOUR = "hour(strptime(started, '%Y-%m-%d %H:%M'))"


@pytest.fixture(scope="module")
def rides():
    """Raw rows as texts; a dash says that nothing is known."""
    rng = np.random.default_rng(0)
    miles, minute = rng.gamma(2, 3, ROWS).round(2), rng.integers(0, 1440, ROWS)
    card = rng.random(ROWS) < 0.2 + 0.5 * (miles > 6) + 0.2 * (minute > 720)
    return pl.DataFrame(
        {
            "zone": np.where(np.arange(ROWS) % 3 == 0, "open", "closed"),
            "started": [f"2024-03-{1 + i % 28:02} {m // 60:02}:{m % 60:02}" for i, m in enumerate(minute)],
            "miles": ["-" if i % 40 == 0 else str(m) for i, m in enumerate(miles)],
            "firm": rng.choice(["1", "2"], ROWS),
            "paid": np.where(card, "card", "cash"),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rows")


@pytest.fixture(scope="module")
def run(rides, folder):
    """Of a file without a header, its fields parted by semicolons, whose hour is derived from a column that is dropped."""
    rides.write_csv(folder / "rides.txt", separator=";", include_header=False)
    dataset = {
        "columns": rides.columns,
        "delimiter": ";",
        "nulls": ["-"],
        "types": {"firm": "text"},
        "drop": ["started"],
        "derive": {"hour": HOUR},
        "positive": "card",
    }
    return in_python.run(
        folder / "rides.txt",
        target="paid",
        public="zone = 'open'",
        epsilon=4.0,
        seed=7,
        work=folder / "work",
        dataset=dataset,
        model={"estimator": "lpct", "depth": 3},
        evaluation={"redraws": 2},
    )


@pytest.fixture(scope="module")
def answers(run, folder):
    found = run.predict(folder / "rides.txt")
    assert found.num_rows == ROWS
    assert set(found.column("prediction").to_pylist()) == {"card", "cash"}
    return found


def as_numbers(rides):
    """Without the label and the zone, its miles a number."""
    return rides.select("started", pl.col("miles").cast(pl.Float64, strict=False), "firm")


def parquet(rides, path):
    as_numbers(rides).write_parquet(path)
    return path


def text(rides, path, **options):
    rides.write_csv(path, **options)
    return path


def sheet(rides, path):
    path.write_bytes(workbook({"S": [rides.columns, *map(list, rides.rows())]}))
    return path


SOURCES = {
    "a workbook": sheet,
    "a header, other order": lambda rides, path: text(
        rides.select("firm", "miles", "started"), path, separator=";"
    ),
    "Parquet": parquet,
    "polars": lambda rides, _: as_numbers(rides).with_columns(pl.col("firm").cast(pl.Categorical)),
    "pandas": lambda rides, _: as_numbers(rides).to_pandas(),
    "pyarrow": lambda rides, _: as_numbers(rides).to_arrow(),
    "derived before": lambda rides, _: as_numbers(rides).select(
        "miles", "firm", hour=pl.col("started").str.slice(11, 2).cast(pl.Int8)
    ),
}


def test_the_model_alone_reads_rows_as_its_run_did(run, rides, folder, answers):
    for model in (run.model, ldptree.read_model(run.summary["model"])):
        assert model.predict(as_numbers(rides)).equals(pl.DataFrame(answers))
        assert model.predict(str(folder / "rides.txt")).equals(answers)


def test_a_model_without_its_summary_reads_columns_of_its_own_names(run, rides, answers, tmp_path):
    bare = ldptree.read_model(shutil.copy(run.summary["model"], tmp_path / "model.json"))
    named = SOURCES["derived before"](rides, tmp_path)
    assert bare.predict(named).equals(pl.DataFrame(answers))
    with pytest.raises(
        DataError, match=r"the frame: lacks the column 'hour'.* where its run\.json is beside"
    ):
        bare.predict(named.drop("hour"))


@pytest.mark.parametrize("kind", SOURCES)
def test_rows_of_every_kind_are_answered_as_the_runs_own_file(kind, run, rides, folder, answers):
    predicted = run.predict(SOURCES[kind](rides, folder / f"{kind}.data"))
    assert pl.DataFrame(predicted).equals(pl.DataFrame(answers))


def test_the_command_line_reads_them_by_what_stands_beside_the_model(run, folder, answers, tmp_path):
    for named in (Path(run.summary["model"]), run.folder):
        out = tmp_path / f"{named.stem}.parquet"
        assert predict_file(named, folder / "rides.txt", out) == ROWS
        assert pq.read_table(out).equals(answers)


@pytest.mark.parametrize("is_derived_before", [False, True])
def test_sql_derives_columns_as_the_run_did(is_derived_before, run, rides, answers):
    """Whatever a database made of the file's texts; a column of that name in the table is derived anew."""
    table = rides.with_columns(hour=pl.lit(99)) if is_derived_before else rides
    with duckdb.connect() as connection:
        connection.register("arriving", table.with_row_index("number").to_arrow())
        connection.execute(
            "CREATE TABLE rides AS SELECT * REPLACE (nullif(miles, '-') AS miles) FROM arriving"
        )
        got = connection.sql(f"{run.to_sql('rides')} ORDER BY number").pl()
    assert got["prediction"].to_list() == answers["prediction"].to_pylist()
    for name in ("card", "cash"):
        np.testing.assert_allclose(got[f"probability_{name}"], answers[f"probability of {name}"], atol=1e-12)
    assert got.select(rides.columns).height == ROWS


def test_sql_takes_hours_in_the_runs_zone_whatever_zone_a_session_is_in(run, rides, monkeypatch):
    """Of texts with an offset from UTC and without, and of instants."""
    derive = {"hour": "hour(CAST(started AS TIMESTAMPTZ))"}
    rows = row_format_of(run.model).model_copy(update={"derive": derive, "timezone": "Asia/Tokyo"})
    monkeypatch.setattr("tasks.predict.row_format_of", lambda _: rows)
    offset = pl.when(pl.int_range(ROWS) % 2 == 0).then(pl.lit(":00+05:30")).otherwise(pl.lit(":00"))
    texts = as_numbers(rides).with_columns(pl.col("started") + offset)
    instants = texts.with_columns(
        pl.col("started")
        .str.slice(0, 16)
        .str.to_datetime("%Y-%m-%d %H:%M")
        .dt.replace_time_zone("Asia/Kolkata")
    )
    for table in (texts, instants):
        wanted = run.model.predict(table)["prediction"].to_list()
        for session in ("UTC", "Asia/Tokyo", "America/Chicago"):
            with duckdb.connect() as connection:
                connection.execute(f"SET TimeZone = '{session}'")
                connection.register("rides", table.with_row_index("number").to_arrow())
                got = connection.sql(f"{run.to_sql('rides')} ORDER BY number").pl()
            assert got["prediction"].to_list() == wanted
    assert wanted != run.model.predict(as_numbers(rides))["prediction"].to_list()


def test_a_text_in_another_encoding_with_lines_above_its_header_is_read_by_keys(
    run, rides, answers, tmp_path
):
    path = tmp_path / "rides.csv"
    path.write_bytes(f"Fahrten im März\n\n{rides.write_csv(separator=';')}".encode("utf-16"))
    with pytest.raises(DataError, match=r'UTF-16 text\. Set dataset\.encoding = "utf-16"'):
        run.predict(path)
    spec = {"encoding": "utf-16", "skip": 2, "columns": ()}
    rows = row_format_of(run.model).model_copy(update=spec)
    raw = list(OtherRows.of(path, run.model.encoding, rows, "rides.csv").batches())
    assert [*run.model.predict_columns(np.vstack(raw))[0][1]] == answers["prediction"].to_pylist()


def test_the_first_row_of_a_file_without_a_header_may_come_again(run, rides, answers, tmp_path):
    again = pl.concat([rides, rides.head(1)])
    path = text(again, tmp_path / "again.csv", separator=";", include_header=False)
    assert run.predict(path).slice(0, ROWS).equals(answers)
    assert run.predict(path).num_rows == ROWS + 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rides: rides.drop("started"), "lacks the column 'started', of which 'hour' is derived"),
        (lambda rides: rides.rename({"miles": "Miles"}), r"lacks the column 'miles'.*\"Miles\""),
        (
            lambda rides: rides.with_columns(miles=pl.lit("far")),
            'column "miles": not a number, first in row 1',
        ),
        (lambda rides: rides.with_columns(started=pl.lit("today")), '"hour" cannot be derived in any row'),
        (lambda rides: rides.with_columns(firm=pl.lit(1.0)), "'firm' is of type number, another type"),
        (lambda rides: rides.with_columns(firm=pl.lit([1])), "lists, structs and bytes"),
    ],
)
def test_rows_that_are_no_rows_of_the_model_are_refused_in_one_sentence(change, message, run, rides):
    with pytest.raises(DataError, match=message) as refused:
        run.predict(change(as_numbers(rides)))
    assert "\n" not in str(refused.value)
    assert "far" not in str(refused.value)
    assert "today" not in str(refused.value)


def test_a_frame_that_arrow_cannot_hold_is_refused_by_its_column_and_row(run, rides):
    mixed = as_numbers(rides).to_pandas().assign(firm=[1, None, 2, "secret"] * (ROWS // 4))
    with pytest.raises(
        DataError, match=r"the column 'firm' is of a type, .* that Arrow cannot hold, first in row 4"
    ) as refused:
        run.predict(mixed)
    assert "secret" not in str(refused.value)


def test_files_that_are_no_rows_are_refused_and_no_rows_have_no_answers(run, rides, tmp_path):
    path = tmp_path / "rows.csv"
    for content, message in (
        ("", "the file is empty"),
        ("a;b\n1;2\n", r"the first line has 2 fields, dataset\.columns names 5"),
        (
            rides.write_csv(),
            r"has one column, split at a comma it has 5.*or write the file with ';' between fields",
        ),
    ):
        path.write_text(content)
        with pytest.raises(DataError, match=message):
            run.predict(path)
    with pytest.raises(ConfigError, match="predict: a value of type int is no source"):
        run.predict(3)
    path.write_text("started;miles;firm\n")
    assert run.predict(path).num_rows == len(run.predict(as_numbers(rides).head(0))) == 0


def test_a_summary_beside_the_model_counts_only_where_it_is_whole_and_of_that_model(run, folder, tmp_path):
    model, beside = Path(run.summary["model"]), tmp_path / "run.json"
    shutil.copy(model, tmp_path / "model.json")
    content = json.loads(model.with_name("run.json").read_text())
    content["row_format"]["model"] = "0" * 64
    del content["format"]
    beside.write_bytes(stamped("run", content))
    with pytest.raises(DataError, match="lacks the column"):  # the file has no header
        predict_file(tmp_path / "model.json", folder / "rides.txt", tmp_path / "out.parquet")
    beside.write_bytes(model.with_name("run.json").read_bytes().replace(b'"started"', b'"startet"'))
    with pytest.raises(ArtifactCorrupt, match=r"run\.json, beside the model: damaged"):
        predict_file(tmp_path / "model.json", folder / "rides.txt", tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_an_expression_that_came_with_a_model_reads_nothing_but_its_row(run, folder, tmp_path):
    model = Path(run.summary["model"])
    shutil.copy(model, tmp_path / "model.json")
    content = json.loads(model.with_name("run.json").read_text())
    content["row_format"]["derive"]["hour"] = "(SELECT count(*) FROM read_text('/etc/hostname'))"
    del content["format"]
    (tmp_path / "run.json").write_bytes(stamped("run", content))
    with pytest.raises(ConfigError, match=r"derive\.hour: .*subquery"):
        predict_file(tmp_path / "model.json", folder / "rides.txt", tmp_path / "out.parquet")
