"""Raw files in parts: however they are read, ingest puts together the same rows, byte for byte."""

from __future__ import annotations

import re
from itertools import product

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from chain import Chain, rides, rides_config
from first_fast import first_fast

from flows.executors import InlineExecutor
from ldptree.errors import DataError
from storage.store import Store

N_FILES, ROWS = 5, 120
CASES = {
    "a predicate": {},
    "by public coins": {"public": "random 0.3"},
    "the first rows": {"public": "first 60"},
    "files of their own": {"public": "{room}/public{suffix}"},
    "bad rows in quarantine": {
        "on_bad_rows": "quarantine",
        "types": {"hour": "integer"},
    },
    "holders who are named": {"holder": "person", "drop": []},
    "some are not asked": {"where": "miles < 9"},
}
FAST = {*product(["csv"], CASES), ("parquet", "files of their own")}
READ = first_fast(*product(["csv", "parquet"], CASES), fast=FAST)


@pytest.fixture
def files(request, tmp_path):
    """Files of rides, in the second of which a value is none and a line is torn where they are CSV; and one of public rows."""
    paths = [rides(tmp_path / f"rides-{number}.csv", ROWS, number) for number in range(N_FILES)]
    public = rides(tmp_path / "public.csv", ROWS, 99)
    if request.param == "parquet":
        for path in [*paths, public]:
            pq.write_table(pa_csv.read_csv(path), path.with_suffix(".parquet"))
    return [path.with_suffix(f".{request.param}") for path in paths]


def ingested(work, files, monkeypatch, part_bytes, **dataset):
    """What ingest left in a new work folder with a known secret, in how many parts."""
    run = reading(work, files, monkeypatch, part_bytes, **dataset)
    return run.ingested, len(run.read), run.store


def reading(work, files, monkeypatch, part_bytes, **dataset):
    """A run in a work folder with a known secret."""
    monkeypatch.setattr("tasks.data.source.PART_BYTES", part_bytes)
    store = Store(work)
    if store.objects.size("holders/secret") is None:
        store.objects.put("holders/secret", b"s" * 32)
    return Chain(store, rides_config(*files, dataset=dataset), executor=InlineExecutor(store))


@pytest.fixture
def large(request, tmp_path):
    """One file of rides, with lines in some of its fields where it is a CSV; and one of public rows."""
    notes = [f'"{n}, said\n""{n}""\n"' if n % 7 == 0 else f"n{n % 9}" for n in range(ROWS)]
    late = ["maybe" if n % 5 == 0 else "true" for n in range(ROWS)]
    path = rides(tmp_path / "rides.csv", ROWS, 0, note=notes, late=late)
    public = rides(tmp_path / "public.csv", ROWS, 99, note=notes, late=late)
    if request.param == "parquet":
        for one in (path, public):
            options = pa_csv.ParseOptions(newlines_in_values=True)
            table = pa_csv.read_csv(one, parse_options=options)
            pq.write_table(table, one.with_suffix(".parquet"), row_group_size=9)
    return path.with_suffix(f".{request.param}")


@pytest.mark.parametrize(("large", "case"), READ, indirect=["large"])
def test_a_large_file_read_in_pieces_has_its_rows_and_its_people(tmp_path, large, monkeypatch, case):
    """And who is asked, in which shard, is as of the file in one piece."""
    changes = {
        key: value.format(room=tmp_path, suffix=large.suffix) if isinstance(value, str) else value
        for key, value in CASES[case].items()
    }
    if case == "bad rows in quarantine":
        changes["types"] = {"late": "boolean"}
    whole, _, store = ingested(tmp_path / "whole", [large], monkeypatch, 1 << 30, **changes)
    size = large.stat().st_size // 5
    cut, n_parts, other = ingested(tmp_path / "cut", [large], monkeypatch, size, **changes)
    assert cut.facts == whole.facts
    is_cut = case != "bad rows in quarantine" or large.suffix == ".parquet"
    assert (len(cut["private"].files) > len(whole["private"].files)) == is_cut
    assert (n_parts > 2) == is_cut
    for part in ("public", "private"):
        assert rows_of(other, cut[part]) == rows_of(store, whole[part])
    held = [reading(tmp_path / work, [large], monkeypatch, size, **changes).held for work in ("whole", "cut")]
    for part in ("train", "answers"):
        assert held[0][part].digest == held[1][part].digest
    assert rows_of(store, held[0]["test"]) == rows_of(other, held[1]["test"])


def rows_of(store, part):
    """The rows of a zone, as typed or as they came, in their order."""
    paths = [path for path in store.files(part) if path.suffix == ".parquet"]
    kinds = {"quarantine": [], "typed": []}
    for path in paths:
        kinds["quarantine" if path.parent.name == "quarantine" else "typed"] += pq.read_table(
            path
        ).to_pylist()
    return kinds


FAULTS = {
    "no label in a public row": ("open,", ",cash", ","),
    "a torn line": ("closed,", ",cash", ""),
    "no text": ("closed,", ",cash", ",c\0sh"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_a_piece_is_told_as_of_the_file(tmp_path, monkeypatch, fault):
    zone, was, becomes = FAULTS[fault]
    large = rides(tmp_path / "rides.csv", ROWS, 0)
    lines = large.read_text().splitlines()
    for place in [n for n, line in enumerate(lines) if line.startswith(zone) and line.endswith(was)][-3:]:
        lines[place] = lines[place].replace(was, becomes)
    large.write_text("\n".join(lines) + "\n")
    said = []
    for work, size in (("whole", 1 << 30), ("cut", large.stat().st_size // 5)):
        with pytest.raises(DataError) as error:
            ingested(tmp_path / work, [large], monkeypatch, size)
        said.append(re.sub(r"details in [^ )]+", "", str(error.value)))
    assert said[0] == said[1]
    assert "rides.csv" in said[0]
    assert not list((tmp_path / "cut" / "holders" / "ingest").glob("*.json"))


@pytest.mark.parametrize(("files", "case"), READ, indirect=["files"])
def test_in_however_many_parts_files_are_read_the_rows_are_the_same(tmp_path, files, monkeypatch, case):
    changes = {
        key: value.format(room=tmp_path, suffix=files[0].suffix) if isinstance(value, str) else value
        for key, value in CASES[case].items()
    }
    if case == "bad rows in quarantine" and files[1].suffix == ".csv":
        lines = files[1].read_text().splitlines()
        lines[5] = lines[5].replace(lines[5].split(",")[3], "noon", 1)
        files[1].write_text("\n".join([*lines[:9], "torn", *lines[9:]]) + "\n")
    whole, n_of_whole, _ = ingested(tmp_path / "whole", files, monkeypatch, 1 << 30, **changes)
    size = 2 * files[0].stat().st_size
    parts, n_parts, store = ingested(tmp_path / "parts", files, monkeypatch, size, **changes)
    assert n_of_whole <= 2 < n_parts
    assert parts.facts == whole.facts
    assert {part: one.digest for part, one in parts.parts.items()} == {
        part: one.digest for part, one in whole.parts.items()
    }
    assert all(store.condition(part) == "present" for part in parts.parts.values())


def test_another_file_is_all_that_is_read_anew(tmp_path, monkeypatch):
    files = [rides(tmp_path / f"rides-{number}.csv", ROWS, number) for number in range(N_FILES)]
    size = max(file.stat().st_size for file in files)
    types = {
        "zone": "text",
        "person": "text",
        "miles": "number",
        "hour": "number",
        "firm": "text",
        "paid": "text",
    }
    first, _, _ = ingested(tmp_path / "work", files[:-1], monkeypatch, size, types=types)
    before = {
        path: path.stat().st_mtime_ns for path in (tmp_path / "work" / "holders" / "read").glob("*.json")
    }
    again, _, _ = ingested(tmp_path / "work", files, monkeypatch, size, types=types)
    now = {path: path.stat().st_mtime_ns for path in (tmp_path / "work" / "holders" / "read").glob("*.json")}
    assert len(before) == N_FILES - 1
    assert before.items() <= now.items()
    assert len(now) == N_FILES
    assert again["private"].rows > first["private"].rows


def test_a_fault_in_one_of_many_files_is_told_as_of_one(tmp_path, monkeypatch):
    files = [rides(tmp_path / f"rides-{number}.csv", ROWS, number) for number in range(N_FILES)]
    lines = files[3].read_text().splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("open,"))
    files[3].write_text(
        "\n".join([*lines[:place], f"{lines[place].rpartition(',')[0]},", *lines[place + 1 :]])
    )
    said = []
    for work, size in (("whole", 1 << 30), ("parts", max(file.stat().st_size for file in files))):
        with pytest.raises(DataError) as fault:
            ingested(tmp_path / work, files, monkeypatch, size)
        said.append(str(fault.value).partition("(details")[0])
    assert said[0] == said[1]
    assert "rides-3.csv" in said[0]
    assert not list((tmp_path / "parts" / "holders" / "ingest").glob("*.json"))
