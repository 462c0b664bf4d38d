"""A run over its files in parts: however they are read, counted, cut and added up, each step leaves the same."""

from __future__ import annotations

import json
import re
import shutil
from itertools import product

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from chain import NEW_PEOPLE, Chain, rides, rides_config
from first_fast import first_fast

from flows.executors import InlineExecutor
from ldptree.errors import DataError
from storage import tables
from storage.store import Store

ROWS = 240
NAMED = {"holder": "person", "drop": ["late", "note"]}
RELEASE = {"evaluate": False, "simulation": {"noise_seed": None}}
CASES = {
    "a predicate": {},
    "by public coins": {"dataset": {"public": "random 0.3"}},
    "the first rows": {"dataset": {"public": "first 60"}},
    "files of their own": {"dataset": {"public": "{room}/public{suffix}"}},
    "bad rows in quarantine": {
        "dataset": {"on_bad_rows": "quarantine", "types": {"late": "boolean"}, "drop": []}
    },
    "some are not asked": {"dataset": {"where": "miles < 9"}},
    "rows that are not as expected": {"dataset": {"ranges": {"miles": [0, 9]}}},
    "holders who are named": {"dataset": NAMED},
    "holders who are named, in an order of their own": {"dataset": NAMED} | RELEASE,
    "rows in an order of their own": RELEASE,
    "a campaign that asked a file before": {"campaign": {"name": "weekly"}, "dataset": NEW_PEOPLE} | RELEASE,
    "reports of grr": {"privacy": {"mechanism": "grr"}},
    "reports of olh": {"privacy": {"mechanism": "olh"}},
}
IN_PARQUET = ("files of their own", "bad rows in quarantine", "some are not asked", "holders who are named")
FAST = {
    ("csv", "rows that are not as expected"),
    ("csv", "bad rows in quarantine"),
    ("csv", "holders who are named, in an order of their own"),
    ("csv", "a campaign that asked a file before"),
    ("parquet", "files of their own"),
}


def written(path, n, seed, suffix):
    """Rides; in a CSV some fields have lines in them."""
    notes = [f'"{i}, said\n""{i}""\n"' if i % 7 == 0 else f"n{i % 9}" for i in range(n)]
    rides(path, n, seed, note=notes, late=["maybe" if i % 5 == 0 else "true" for i in range(n)])
    if suffix == ".parquet":
        table = pa_csv.read_csv(path, parse_options=pa_csv.ParseOptions(newlines_in_values=True))
        pq.write_table(table, path.with_suffix(suffix), row_group_size=9)
    return path.with_suffix(suffix)


@pytest.fixture
def files(request, tmp_path):
    """A large file, two small ones and a copy of the large one; and one of public rows."""
    suffix = f".{request.param}"
    paths = [
        written(tmp_path / f"rides-{i}.csv", n, i, suffix) for i, n in enumerate((ROWS, ROWS // 3, ROWS // 8))
    ]
    written(tmp_path / "public.csv", ROWS // 2, 99, suffix)
    return [*paths, shutil.copy(paths[0], tmp_path / f"rides-9{suffix}")]


def changes_of(case, files):
    """A case, with the path of its public file written out, and features alone where it says nothing of others."""
    changes = CASES[case]
    dataset = {"drop": ["person", "late", "note"]} | changes.get("dataset", {})
    if "public" in dataset:
        place = {"room": files[0].parent, "suffix": files[0].suffix}
        dataset["public"] = dataset["public"].format(**place)
    return {"model": {"depth": 2}, "privacy": {"mechanism": "oue"}} | changes | {"dataset": dataset}


def run_in(work, files, monkeypatch, part_bytes, **changes):
    """A run in a work folder with a known secret."""
    monkeypatch.setattr("tasks.data.source.PART_BYTES", part_bytes)
    store = Store(work)
    if store.objects.size("holders/secret") is None:
        store.objects.put("holders/secret", b"s" * 32)
    return Chain(store, rides_config(*files, **changes), executor=InlineExecutor(store))


def rows_of(store, part):
    """The rows of a zone, as typed or as they came, in their order."""
    kinds = {True: [], False: []}
    for path in (path for path in store.files(part) if path.suffix == ".parquet"):
        kinds[path.parent.name == "quarantine"] += pq.read_table(path).to_pylist()
    return kinds


@pytest.mark.parametrize(
    ("files", "case"),
    first_fast(*product(["csv"], CASES), *product(["parquet"], IN_PARQUET), fast=FAST),
    indirect=["files"],
)
def test_in_however_many_parts_a_run_goes_over_its_files_it_asks_and_learns_the_same(
    tmp_path, files, monkeypatch, case
):
    """Large Parquet files are read in pieces, small files together; rows are counted, cut and added up in parts."""
    monkeypatch.setattr("tasks.holders.cut.SHARD_ROWS", 25)
    changes, left = changes_of(case, files), []
    for name, part_bytes, rows, shards in (("whole", 1 << 30, 1 << 20, 64), ("parts", 4000, 50, 2)):
        monkeypatch.setattr("tasks.holders.cut.PART_ROWS", rows)
        monkeypatch.setattr("tasks.answers.add.PART_SHARDS", shards)
        if "campaign" in changes:
            run_in(tmp_path / name, files[1:2], monkeypatch, part_bytes, **changes).walk()
        left.append(run_in(tmp_path / name, files, monkeypatch, part_bytes, **changes))
        assert left[-1].ingested
        assert left[-1].checked
        assert left[-1].held
        assert changes.get("simulation") or left[-1].totals  # else by coins that nobody draws again
    whole, parts = left
    assert len(whole.read) <= 2 < len(parts.read)
    assert len(whole.counted) <= 2 < len(parts.counted)
    is_cut = files[0].suffix == ".parquet"
    assert (len(parts.ingested["private"].files) > len(whole.ingested["private"].files)) == is_cut
    assert parts.ingested.facts == whole.ingested.facts
    for part in ("public", "private"):
        assert rows_of(parts.store, parts.ingested[part]) == rows_of(whole.store, whole.ingested[part])
    texts = [run.store.files(run.checked["counts"])[0].read_text() for run in left]
    assert texts[0] == texts[1]
    assert any(one["violations"] for one in json.loads(texts[0])) == (
        case in ("bad rows in quarantine", "rows that are not as expected")
    )
    assert parts.checked.facts == whole.checked.facts
    assert parts.checked["checks"].digest == whole.checked["checks"].digest
    assert parts.held.facts == whole.held.facts
    for part in ("train", "answers"):
        assert parts.held[part].digest == whole.held[part].digest
    assert len(whole.held["roles"].files) < len(parts.held["roles"].files)
    test = [
        tables.read(run.store.files(run.held["test"])).to_pylist() for run in left if run.held["test"].files
    ]
    assert not test or test[0] == test[1]
    assert all(
        parts.store.condition(part) == "present"
        for part in (*parts.held.parts.values(), *parts.ingested.parts.values())
    )
    monkeypatch.setattr("tasks.holders.cut.PART_ROWS", 1 << 20)
    assert run_in(parts.store.root, files, monkeypatch, 4000, **changes).assigned == parts.assigned
    if not changes.get("simulation"):
        added = [sum(record.step == "add" for record in run.records) for run in left]
        assert added[0] == 1 < added[1]
        assert (parts.totals.facts, parts.totals["totals"].files) == (
            whole.totals.facts,
            whole.totals["totals"].files,
        )


@pytest.mark.parametrize(
    ("files", "case"),
    first_fast(
        *product(
            ["csv", "parquet"],
            (
                "a predicate",
                "by public coins",
                "the first rows",
                "files of their own",
                "bad rows in quarantine",
            ),
        ),
        fast={
            ("csv", "bad rows in quarantine"),
            ("parquet", "files of their own"),
        },
    ),
    indirect=["files"],
)
def test_files_that_are_read_apart_are_put_together_byte_for_byte(tmp_path, files, monkeypatch, case):
    """In the second a line is torn, where it is a CSV and bad rows are put aside."""
    changes = changes_of(case, files)
    if case == "bad rows in quarantine" and files[1].suffix == ".csv":
        lines = files[1].read_text().splitlines()
        files[1].write_text("\n".join([*lines[:9], "torn", *lines[9:]]) + "\n")
    runs = []
    for name, size in (("whole", 1 << 30), ("parts", files[0].stat().st_size)):
        run = run_in(tmp_path / name, files, monkeypatch, size, **changes)
        runs.append((run.ingested, len(run.read)))
    whole, parts = runs
    assert whole[1] <= 2 < parts[1]
    assert parts[0].facts == whole[0].facts
    assert {part: one.digest for part, one in parts[0].parts.items()} == {
        part: one.digest for part, one in whole[0].parts.items()
    }


FAULTS = {
    "no label in a public row": ("open,", ",cash", ","),
    "a torn line": ("closed,", ",cash", ""),
    "no text": ("closed,", ",cash", ",c\0sh"),
}


@pytest.mark.parametrize("n_files", [1, 5])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_a_part_is_told_as_of_its_file(tmp_path, monkeypatch, fault, n_files):
    """In a piece of a file, or in one of many files."""
    zone, was, becomes = FAULTS[fault]
    files = [rides(tmp_path / f"rides-{number}.csv", ROWS // 2, number) for number in range(n_files)]
    faulty = files[3 % n_files]
    lines = faulty.read_text().splitlines()
    for place in [i for i, line in enumerate(lines) if line.startswith(zone) and line.endswith(was)][-3:]:
        lines[place] = lines[place].replace(was, becomes)
    faulty.write_text("\n".join(lines) + "\n")
    said = []
    for work, size in (("whole", 1 << 30), ("parts", faulty.stat().st_size // (5 if n_files == 1 else 1))):
        with pytest.raises(DataError) as error:
            assert run_in(tmp_path / work, files, monkeypatch, size).ingested
        said.append(re.sub(r"details in [^ )]+", "", str(error.value)))
    assert said[0] == said[1]
    assert faulty.name in said[0]
    assert not list((tmp_path / "parts" / "holders" / "ingest").glob("*.json"))


def test_another_file_is_all_that_is_read_anew(tmp_path, monkeypatch):
    files = [rides(tmp_path / f"rides-{number}.csv", ROWS // 2, number) for number in range(5)]
    size = max(file.stat().st_size for file in files)
    types = dict.fromkeys(("zone", "person", "firm", "paid"), "text") | dict.fromkeys(
        ("miles", "hour"), "number"
    )

    def read(n):
        run = run_in(tmp_path / "work", files[:n], monkeypatch, size, dataset={"types": types})
        private = run.ingested["private"].rows
        records = (tmp_path / "work" / "holders" / "read").glob("*.json")
        return private, {path: path.stat().st_mtime_ns for path in records}

    (few, before), (more, now) = read(4), read(5)
    assert (len(before), len(now)) == (4, 5)
    assert before.items() <= now.items()
    assert more > few
