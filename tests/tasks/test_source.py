"""Raw files are found or made; what cannot be found is said with what to do."""

from __future__ import annotations

import codecs
import csv
import gzip

import pytest
from chain import Chain, rides, rides_config

from ldptree.errors import ConfigError, DataError
from ldptree.simulate import trips
from schemas.config import load
from schemas.dataset import DatasetSpec
from storage.store import Store
from tasks.data.source import (
    check_named,
    files,
    locate,
    public_files,
    rows_to_make,
    simulate,
    suite_file,
    write_trips,
)


def test_simulated_trips_have_the_challenges_columns_and_the_asked_number(tmp_path):
    path = tmp_path / "trips.csv"
    write_trips(path, rows=1000, seed=3)
    with path.open() as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == list(trips.COLUMNS)
    assert len(rows) == 1001
    assert {len(row) for row in rows} == {13}


def test_simulated_trips_depend_on_their_seed_alone_and_a_longer_file_begins_with_a_shorter(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(trips, "BLOCK", 400)
    texts = {}
    for name, rows, seed in (("a", 1000, 3), ("b", 1000, 3), ("c", 500, 3), ("d", 1000, 4)):
        write_trips(tmp_path / name, rows=rows, seed=seed)
        texts[name] = (tmp_path / name).read_text()
    assert texts["a"] == texts["b"] != texts["d"]
    assert texts["a"].startswith(texts["c"])
    assert texts["a"].count("taxi_id") == 1


def test_a_simulated_file_is_made_once_and_found_again(store):
    first = simulate.fn(store, rows=200, seed=1)
    written = store.files(first["raw"])[0].stat().st_mtime_ns
    assert simulate.fn(store, rows=200, seed=1) == first
    assert store.files(first["raw"])[0].stat().st_mtime_ns == written
    assert simulate.fn(store, rows=200, seed=2)["raw"].digest != first["raw"].digest


def test_files_are_found_in_the_order_written_and_globs_in_order_of_name(tmp_path):
    for name in ("b.csv", "a.csv", "z.csv", "notes.txt"):
        (tmp_path / name).write_text(name)
    found = locate([str(tmp_path / "z.csv"), str(tmp_path / "[ab].csv")])
    assert [path.name for path in found] == ["z.csv", "a.csv", "b.csv"]


def test_a_digest_follows_the_content_and_is_the_work_folders_own(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n")
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    before = files(one, [str(path)])
    assert before == files(one, [str(path)])
    assert before.digest != files(two, [str(path)]).digest
    path.write_text("x\n2\n")
    assert files(one, [str(path)]).digest != before.digest
    assert one.condition(before) == "damaged"


def test_data_sets_of_the_catalogue_are_looked_for_in_their_folder(tmp_path, monkeypatch):
    (tmp_path / "census").mkdir()
    (tmp_path / "census" / "a.csv").write_text("x")
    monkeypatch.setenv("LDPTREE_DATA", str(tmp_path))
    assert locate(["data:census/a.csv"]) == [tmp_path / "census" / "a.csv"]
    with pytest.raises(DataError, match=r"b\.csv: no such file.*Did you mean a\.csv\?.*Set LDPTREE_DATA"):
        locate(["data:census/b.csv"])
    monkeypatch.delenv("LDPTREE_DATA")
    with pytest.raises(DataError, match=r"census/a\.csv: needs the folder of data sets\. Set LDPTREE_DATA"):
        locate(["data:census/a.csv"])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("rids.csv", r"rids\.csv: no such file\. Did you mean rides\.csv\?"),
        ("nowhere/rides.csv", r"There is no folder .*nowhere"),
        ("*.parquet", r"\*\.parquet: no such file"),
        ("folder", r"folder: a folder\. Name a file, or a pattern such as folder/\*\.csv"),
    ],
)
def test_what_is_not_there_is_refused_with_what_to_do(tmp_path, name, said):
    (tmp_path / "rides.csv").write_text("x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match=said) as fault:
        locate([str(tmp_path / name)])
    assert fault.value.exit_code == 3


def test_a_second_file_of_public_rows_and_an_edited_suite_are_looked_for_too(store, tmp_path):
    path, second = rides(tmp_path / "a.csv", 30, 1), rides(tmp_path / "b.csv", 30, 2)
    config = rides_config(path, dataset={"public": str(second), "expect": str(path)})
    assert store.files(public_files(store, config.dataset)) == [second]
    assert store.files(suite_file(store, config.dataset)) == [path]
    plain = rides_config(path).dataset
    assert (public_files(store, plain), suite_file(store, plain)) == (None, None)
    assert store.files(files(store, plain.path)) == [path]
    with pytest.raises(DataError, match="no such file"):
        public_files(store, rides_config(path, dataset={"public": str(tmp_path / "c.csv")}).dataset)


def test_a_simulated_set_needs_a_number_of_rows():
    spec = load("quickstart").dataset.model_copy(update={"rows": None})
    with pytest.raises(ConfigError, match=r"dataset\.rows: missing"):
        rows_to_make(spec)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "a;b\n1;caf\xe9\n".encode("latin1"),
            "not UTF-8 text. Set dataset.encoding, such as",
        ),
        ("a;b\n1;\u20ac\u201c\n".encode("cp1252"), "not UTF-8 text"),
        (
            "a,b\n1,2\n".encode("utf-16"),
            'UTF-16 text. Set dataset.encoding = "utf-16"',
        ),
        ("a,b\n1,2\n3,4\n".encode("utf-16-le"), "has a NUL byte in it, as UTF-16"),
        ("a,b\n1,2\n3,4\n".encode("utf-16-be"), "has a NUL byte in it, as UTF-16"),
        ("a,b\n1,2\n".encode("utf-32"), "UTF-32 text"),
        (gzip.compress("a,b\n1,2\n".encode("utf-16"), mtime=0), "UTF-16 text"),
        (b"a,b\n1,\0\n", "has a NUL byte in it"),
    ],
)
def test_an_encoding_is_told_before_anything_is_begun_and_no_byte_is_quoted(tmp_path, content, said):
    for name in ("a.csv", "public.csv"):
        (tmp_path / name).write_bytes(content if name == "public.csv" else b"a,b\n1,2\n")
    spec = {
        "name": "t",
        "target": "b",
        "path": str(tmp_path / "a.csv"),
        "public": str(tmp_path / "public.csv"),
    }
    with pytest.raises(DataError) as refusal:
        check_named(DatasetSpec.model_validate(spec))
    assert str(refusal.value).startswith(f"public.csv: {said}")
    assert "caf" not in str(refusal.value)
    assert "dataset.encoding" in str(refusal.value)


def test_utf_8_with_or_without_a_mark_is_read(tmp_path):
    for mark in (b"", codecs.BOM_UTF8):
        path = tmp_path / "a.csv"
        # The first block of bytes may end within a letter.
        path.write_bytes(mark + b"a,b\n" + "\u00e9,2\n".encode() * (1 << 20))
        check_named(DatasetSpec(name="t", target="b", path=(str(path),), public="first 5"))


def test_the_configuration_of_the_papers_taxi_reads_a_file_of_the_challenges_columns(store, tmp_path):
    """It has the paper's 93 features, and its tree."""
    write_trips(tmp_path / "ground_truth.csv", rows=4000, seed=1)
    given = [
        f"dataset.path={tmp_path / 'ground_truth.csv'}",
        "dataset.public=company_id = 12",
        "model.depth=2",
    ]
    chain = Chain(store, load("taxi_paper", given))
    assert chain.scaled.facts["n_features"] == 93
    assert chain.config.model.settings.partition == "max-edge"
    assert chain.published.facts["cells"] == 4


def test_files_whose_columns_differ_are_refused_before_anything_is_read(tmp_path):
    for name, header in (("a.csv", "a,b"), ("b.csv", "b,c")):
        (tmp_path / name).write_text(f"{header}\n1,2\n")
    spec = DatasetSpec(name="t", target="b", path=(str(tmp_path / "*.csv"),), public="first 5")
    with pytest.raises(DataError, match=r"b\.csv: not the columns of a\.csv: it lacks a"):
        check_named(spec)
