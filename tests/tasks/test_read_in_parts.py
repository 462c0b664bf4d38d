"""Raw files that several tasks read: what ingest puts together of them is what one task writes, byte for byte."""

from __future__ import annotations

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from chain import Chain, rides, rides_config

from flows.execute import Plainly
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
        "max_bad_fraction": 0.5,
        "types": {"hour": "integer"},
    },
    "holders who are named": {"holder": "person", "drop": []},
    "some are not asked": {"where": "miles < 9"},
}


@pytest.fixture(params=["csv", "parquet"])
def files(request, tmp_path):
    """Files of rides, in the second of which a value is none and a line is torn where they are CSV; and one of public rows."""
    paths = [rides(tmp_path / f"rides-{number}.csv", ROWS, number) for number in range(N_FILES)]
    public = rides(tmp_path / "public.csv", ROWS, 99)
    if request.param == "parquet":
        for path in [*paths, public]:
            pq.write_table(pa_csv.read_csv(path), path.with_suffix(".parquet"))
    return [path.with_suffix(f".{request.param}") for path in paths]


def ingested(work, files, monkeypatch, part_bytes, **dataset):
    """What ingest left in a new work folder with a known secret, and the steps that computed it."""
    monkeypatch.setattr("tasks.data.source.PART_BYTES", part_bytes)
    store = Store(work)
    if store.objects.size("holders/secret") is None:
        store.objects.put("holders/secret", b"s" * 32)
    run = Chain(store, rides_config(*files, dataset=dataset), execute=Plainly(store))
    with run.timeline.listening():
        record = run.ingested
    return record, {step.name for step in run.timeline.steps() if step.state == "computed"}, store


@pytest.mark.parametrize("case", CASES)
def test_what_several_read_is_what_one_reads(tmp_path, files, monkeypatch, case):
    changes = {
        key: value.format(room=tmp_path, suffix=files[0].suffix) if isinstance(value, str) else value
        for key, value in CASES[case].items()
    }
    if case == "bad rows in quarantine" and files[1].suffix == ".csv":
        lines = files[1].read_text().splitlines()
        lines[5] = lines[5].replace(lines[5].split(",")[3], "noon", 1)
        files[1].write_text("\n".join([*lines[:9], "torn", *lines[9:]]) + "\n")
    whole, steps, _ = ingested(tmp_path / "whole", files, monkeypatch, 1 << 30, **changes)
    assert steps == {"ingest"}
    size = 2 * files[0].stat().st_size
    parts, steps, store = ingested(tmp_path / "parts", files, monkeypatch, size, **changes)
    assert steps == {"types", "read", "ingest"}
    assert parts.key == whole.key
    assert parts.facts == whole.facts
    assert parts.parts == whole.parts
    assert all(store.condition(part) == "present" for part in parts.parts.values())


def test_another_file_is_all_that_is_read_anew(tmp_path, monkeypatch):
    files = [rides(tmp_path / f"rides-{number}.csv", ROWS, number) for number in range(N_FILES)]
    size = files[0].stat().st_size
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
    files[3].write_text(files[3].read_text().replace(",cash", ",", 1))
    said = []
    for work, size in (("whole", 1 << 30), ("parts", files[0].stat().st_size)):
        with pytest.raises(DataError) as fault:
            ingested(tmp_path / work, files, monkeypatch, size)
        said.append(str(fault.value).partition("(details")[0])
    assert said[0] == said[1]
    assert "rides-3.csv" in said[0]
    assert not list((tmp_path / "parts" / "holders" / "ingest").glob("*.json"))
