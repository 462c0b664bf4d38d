"""Scoring a file: the model's own answers, whole or not at all."""

from __future__ import annotations

import gzip
import json

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldptree.errors import ArtifactCorrupt, ConfigError, DataError
from ldptree.estimators import CorrectionClassifier, CorrectionRegressor
from ldptree.models import LEVEL
from storage import tables
from tasks.predict import load_model, predict_file


@pytest.fixture(scope="module")
def model_path(trips):
    return trips.store.file(trips.model["model"], "model.json")


@pytest.fixture
def data(trips, tmp_path):
    """Private rows with columns to spare, in several row groups, as a user may have them."""
    rows = tables.read(trips.store.files(trips.held["test"]))
    path = tmp_path / "rows.parquet"
    pq.write_table(rows, path, row_group_size=700)
    return path


NAMES = ["prediction", "probability of 0", "probability of 1"]
"""The first columns of what any model of two classes answers."""


def answers(path):
    said, *probability = pq.read_table(path, columns=NAMES).columns
    return np.array(said.to_pylist()), np.stack([c.to_numpy() for c in probability], axis=1)


def test_a_file_is_scored_as_the_model_scores_its_rows(model_path, data, tmp_path):
    model, out = load_model(model_path), tmp_path / "out.parquet"
    n = predict_file(model_path, data, out)
    raw = tables.raw_matrix(pq.read_table(data), model.encoding)
    said, probability = answers(out)
    assert n == len(raw) == len(said) > 2000
    assert pq.read_schema(out).names[:3] == NAMES
    np.testing.assert_array_equal(probability, model.predict_proba(raw))
    np.testing.assert_array_equal(said, np.array(model.classes)[probability.argmax(axis=1)])
    assert len(set(said)) == 2


def test_other_numeric_types_missing_values_and_new_levels_are_scored(model_path, data, tmp_path):
    model, rows = load_model(model_path), pq.read_table(data)
    columns = {name: rows.column(name).cast(pa.float64()) for name in model.encoding.columns}
    changed = columns["trip_miles"].to_pylist()
    changed[0] = None
    columns["trip_miles"] = pa.array(changed, pa.float64())
    pickup = rows.column("pickup_community_area").to_pylist()
    pickup[1] = 99
    columns["pickup_community_area"] = pa.array(pickup, pa.int64())
    columns["dropoff_community_area"] = rows.column("dropoff_community_area")
    pq.write_table(pa.table(columns), tmp_path / "wide.parquet")
    predict_file(model_path, tmp_path / "wide.parquet", tmp_path / "wide-out.parquet")
    predict_file(model_path, data, tmp_path / "out.parquet")
    (wide, _), (plain, _) = answers(tmp_path / "wide-out.parquet"), answers(tmp_path / "out.parquet")
    np.testing.assert_array_equal(wide[2:], plain[2:])
    (default,) = model.predict_proba(np.full((1, len(model.encoding.columns)), np.nan))
    assert wide[0] == model.classes[default.argmax()]  # a value is missing that no rule fills


@pytest.mark.parametrize("written", ["utf-8", "with a mark", "semicolons", "gzip", "quoted, with blanks"])
def test_a_csv_is_scored_as_the_parquet_of_its_rows(model_path, data, tmp_path, written):
    frame, path = pl.read_parquet(data).drop("_row", strict=False), tmp_path / "rows.csv"
    if written == "quoted, with blanks":
        frame = frame.with_columns(pl.col(pl.String) + " ")
    text = frame.write_csv(
        separator=";" if written == "semicolons" else ",",
        quote_style="non_numeric" if written == "quoted, with blanks" else "necessary",
    ).encode()
    marks = {"with a mark": b"\xef\xbb\xbf"}
    path.write_bytes(gzip.compress(text) if written == "gzip" else marks.get(written, b"") + text)
    assert predict_file(model_path, path, tmp_path / "of-csv.parquet") == len(frame)
    predict_file(model_path, data, tmp_path / "of-parquet.parquet")
    assert pq.read_table(tmp_path / "of-csv.parquet").equals(pq.read_table(tmp_path / "of-parquet.parquet"))


@pytest.mark.parametrize("name", ["out.csv", "OUT.CSV"])
def test_a_name_that_ends_in_csv_is_written_as_csv(model_path, data, tmp_path, name):
    n = predict_file(model_path, data, tmp_path / name)
    predict_file(model_path, data, tmp_path / "out.parquet")
    written = pl.read_csv(tmp_path / name)
    assert len(written) == n
    assert written.equals(pl.read_parquet(tmp_path / "out.parquet"))


@pytest.mark.parametrize("name", ["out", "out.xlsx", "out.csv.gz"])
def test_a_name_with_another_ending_is_refused(model_path, data, tmp_path, name):
    with pytest.raises(ConfigError, match=rf"--out .*{name}: .* ends in \.parquet or \.csv") as fault:
        predict_file(model_path, data, tmp_path / name)
    assert fault.value.exit_code == 2
    assert not (tmp_path / name).exists()


def test_no_rows_in_no_rows_out(model_path, data, tmp_path):
    pq.write_table(pq.read_table(data).slice(0, 0), tmp_path / "empty.parquet")
    assert predict_file(model_path, tmp_path / "empty.parquet", tmp_path / "out.parquet") == 0
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 0


def test_a_file_may_be_scored_onto_an_old_answer(model_path, data, tmp_path):
    out = tmp_path / "out.parquet"
    out.write_text("old")
    predict_file(model_path, data, out)
    assert pq.read_table(out).num_rows > 0


def test_a_missing_column_is_named_with_the_near_one(model_path, data, tmp_path):
    rows = pq.read_table(data)
    names = ["trip_mile" if name == "trip_miles" else name for name in rows.column_names]
    pq.write_table(rows.rename_columns(names), data)
    with pytest.raises(
        DataError, match=r"lacks the column 'trip_miles', .*did you mean \"trip_mile\"\?"
    ) as fault:
        predict_file(model_path, data, tmp_path / "out.parquet")
    assert fault.value.exit_code == 3
    assert not (tmp_path / "out.parquet").exists()


def test_a_column_of_another_type_is_refused(model_path, data, tmp_path):
    rows = pq.read_table(data)
    texts = pa.array(["far"] * rows.num_rows)
    changed = rows.set_column(rows.column_names.index("trip_miles"), "trip_miles", texts)
    pq.write_table(changed, data)
    with pytest.raises(DataError, match=r'column "trip_miles": not a number, first in row 1'):
        predict_file(model_path, data, tmp_path / "out.parquet")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rows.parquet"]


@pytest.mark.parametrize("content", [None, b"", b"a,b\n1,2\n", b"PAR1 and no more"])
def test_data_that_are_no_parquet_are_refused(model_path, tmp_path, content):
    path = tmp_path / "rows.parquet"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(
        DataError,
        match=r"rows\.parquet: (no such file|named \.parquet, but not|the Parquet file is truncated|the file is empty)",
    ):
        predict_file(model_path, path, tmp_path / "out.parquet")
    with pytest.raises(DataError, match="a folder"):
        predict_file(model_path, tmp_path, tmp_path / "out.parquet")


def test_damage_in_the_middle_of_the_data_leaves_the_old_answer(model_path, data, tmp_path):
    out = tmp_path / "out.parquet"
    out.write_text("old")
    content = bytearray(data.read_bytes())
    middle = pq.ParquetFile(data).metadata.row_group(2).column(0).dictionary_page_offset
    content[middle : middle + 400] = b"\xff" * 400
    data.write_bytes(content)
    with pytest.raises(DataError, match=r"rows\.parquet: the Parquet file is damaged"):
        predict_file(model_path, data, out)
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.parquet", "rows.parquet"]


def test_an_answer_that_cannot_be_written_is_refused(model_path, data, tmp_path):
    with pytest.raises(ConfigError, match=r"--out .*: a folder\. Name a file"):
        predict_file(model_path, data, tmp_path)
    with pytest.raises(ConfigError, match="there is no folder"):
        predict_file(model_path, data, tmp_path / "nowhere" / "out.parquet")
    with pytest.raises(ConfigError, match="cannot be written"):
        predict_file(model_path, data, type(tmp_path)("/proc/out.parquet"))


def test_a_model_that_a_windows_editor_saved_is_read(model_path, tmp_path):
    saved = tmp_path / "model.json"
    saved.write_bytes(model_path.read_text().encode("utf-8-sig"))
    assert load_model(saved).to_json() == load_model(model_path).to_json()


def test_a_model_that_is_none_or_was_changed_is_refused(model_path, data, tmp_path):
    broken = tmp_path / "model.json"
    with pytest.raises(DataError, match="no such file"):
        load_model(broken)
    for content in (b"", b"{}", b"\xff\xfe", model_path.read_bytes()[:-10]):
        broken.write_bytes(content)
        with pytest.raises(ArtifactCorrupt, match=r"model\.json: "):
            load_model(broken)
    changed = json.loads(model_path.read_text())
    changed["n_public"] += 1
    broken.write_text(json.dumps(changed))
    with pytest.raises(ArtifactCorrupt, match="digest"):
        predict_file(broken, data, tmp_path / "out.parquet")


def test_numbers_of_a_tree_are_written_with_their_intervals(run_of, tmp_path):
    run = run_of("lpdt")
    path, rows = (
        run.store.file(run.model["model"], "model.json"),
        tables.read(run.store.files(run.held["test"])),
    )
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=50)
    predict_file(path, tmp_path / "rows.parquet", tmp_path / "out.parquet")
    model, said = load_model(path), pq.read_table(tmp_path / "out.parquet")
    assert said.schema.names == ["prediction", "mean_lower", "mean_upper"]
    nodes = model.nodes(tables.raw_matrix(rows, model.encoding))
    for name, end in zip(("mean_lower", "mean_upper"), model.interval(LEVEL), strict=True):
        np.testing.assert_array_equal(said.column(name).to_numpy(), end[nodes, 0])


# A public model and its corrections


@pytest.fixture(scope="module", params=[0, 2, 3], ids=["number", "two classes", "three classes"])
def mended(request, tmp_path_factory):
    """A corrected model of this many classes, and rows in several row groups, some of them with a hole."""
    rng = np.random.default_rng(request.param)
    X = rng.random((900, 2))
    y = X[:, 0] + (X[:, 1] > 0.5) + rng.normal(0, 0.3, 900)
    kind = CorrectionClassifier if request.param else CorrectionRegressor
    if request.param:
        names = np.array(["bus", "cab", "tram"])[: request.param]
        y = names[np.digitize(y, np.quantile(y, np.arange(1, request.param) / request.param))]
    is_public = np.arange(900) < 200
    if not request.param:
        y[~is_public] += 1.0
    frame = pl.DataFrame(X, schema=["miles", "hours"])
    fitted = kind(8.0, base="boosting", depth=2, random_state=0).fit(frame, y, public=is_public)
    folder = tmp_path_factory.mktemp("mended")
    (folder / "model.json").write_text(fitted.model_.to_json())
    rows = frame.with_columns(more=pl.lit("kept out")).to_arrow()
    holes = pa.array([None if i % 50 == 0 else x for i, x in enumerate(X[:, 0])], pa.float64())
    rows = rows.set_column(0, "miles", holes)
    pq.write_table(rows, folder / "rows.parquet", row_group_size=250)
    return folder


def test_both_parts_of_a_corrected_model_are_written(mended, tmp_path):
    model, out = load_model(mended / "model.json"), tmp_path / "out.parquet"
    n = predict_file(mended / "model.json", mended / "rows.parquet", out)
    raw = tables.raw_matrix(pq.read_table(mended / "rows.parquet"), model.encoding)
    table, said = pq.read_table(out), model.predict_parts(raw)
    assert n == len(raw) == table.num_rows
    found = {name: np.array(table.column(name).to_pylist()) for name in table.column_names}
    if not model.classes:
        low, high = model.interval(raw, LEVEL)
        assert table.column_names == ["prediction", "mean_lower", "mean_upper", "public prediction"]
        for name, values in zip(found, (said.corrected, low, high, said.public), strict=True):
            np.testing.assert_array_equal(found[name], values[:, 0])
        assert np.abs(said.correction).max() > 0.5
        return
    names = [str(name) for name in model.classes]
    whole = ["prediction", *(f"probability of {name}" for name in names)]
    assert table.column_names == [*whole, *(f"public {name}" for name in whole)]
    for prefix, part in (("", said.corrected), ("public ", said.public)):
        shares = said.shares(part)
        np.testing.assert_array_equal(found[f"{prefix}prediction"], np.array(names)[shares.argmax(axis=1)])
        for k, name in enumerate(names):
            np.testing.assert_array_equal(found[f"{prefix}probability of {name}"], shares[:, k])


def test_a_row_that_nobody_could_encode_gets_the_default(mended, tmp_path):
    model, out = load_model(mended / "model.json"), tmp_path / "out.parquet"
    predict_file(mended / "model.json", mended / "rows.parquet", out)
    table = pq.read_table(out)
    (nobody,) = np.full((1, 1, len(model.encoding.columns)), np.nan)
    shares = model.predict_proba(nobody)[0] if model.classes else model.default
    column = f"probability of {model.classes[1]}" if model.classes else "prediction"
    expected = shares[1] if model.classes else shares[0]
    assert table.column(column)[0].as_py() == table.column(f"public {column}")[0].as_py() == expected


def test_a_damaged_corrected_model_is_named(mended, tmp_path):
    broken, text = tmp_path / "model.json", (mended / "model.json").read_text()
    data = json.loads(text)
    without = {name: value for name, value in data.items() if name != "correction"}
    damaged = (
        text[:-10],
        text[: len(text) // 2],
        json.dumps(data | {"epsilon": 9.0}),
        json.dumps(without),
        json.dumps(data | {"base": data["base"] | {"offset": [10**400] * len(data["base"]["offset"])}}),
        text.replace('"epsilon":8.0', '"epsilon":1e999'),
    )
    for content in damaged:
        assert content != text
        broken.write_text(content)
        with pytest.raises(ArtifactCorrupt, match=r"model\.json: "):
            load_model(broken)
