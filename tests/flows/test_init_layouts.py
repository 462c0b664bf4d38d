"""`ldptree init` finds the rows of a file: whatever stands around them, in whatever format, and however many there are."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from first_fast import first_fast
from workbooks import workbook

from flows.command.init import init
from ldptree.errors import DataError
from schemas.config import load
from storage.raw import raw_files
from storage.raw.layouts import deduplicate_names
from tasks.data.ingest_plan import inspect_files

LAID_OUT = {
    "title.csv": (
        "Report of May,,\nx,z,y\n" + "1.5,2,yes\n0.5,1,no\n" * 30,
        {"skip": 1},
        60,
    ),
    "remarks.tsv": (
        "# made by hand, v3\n# x, z\nx\tz\ty\n" + '1.5\t"a, b"\tyes\n0.5\t"c, d"\tno\n' * 30,
        {"delimiter": "\t", "skip": 2},
        60,
    ),
    "units.csv": (
        "x,z,y\n(m),(s),\n" + "1.5,2,yes\n0.5,1,no\n" * 30,
        {"skip": 2, "columns": ["x", "z", "y"]},
        60,
    ),
    "qualtrics.csv": (
        'x,z,y\nHow long?,"Where\nto?",Yes or no?\n'
        + ",".join(f'"{{""ImportId"":""{one}""}}"' for one in ("QID1", "QID2_1", "QID3"))
        + "\n"
        + "1.5,2,yes\n0.5,1,no\n" * 30,
        {"skip": 4, "columns": ["x", "z", "y"]},
        60,
    ),
    "survey.csv": (
        "id,Sex,y\n,Response,Response\n" + "1,Male,yes\n2,Female,no\n" * 30,
        {"skip": 2, "columns": ["id", "Sex", "y"]},
        60,
    ),
    "merged.csv": (
        "id,Which do you eat?,,,y\n,Bread,Fish,Other,Response\n"
        + "1,Bread,,x,yes\n2,,Fish,,no\n3,Bread,Fish,,no\n" * 20,
        {
            "skip": 2,
            "columns": [
                "id",
                "Which do you eat? Bread",
                "Which do you eat? Fish",
                "Which do you eat? Other",
                "y",
            ],
        },
        60,
    ),
    "groups.csv": (
        ";Before;;After;;\nid;Score;Time;Score;Time;y\n" + "a;1;2;3;4;yes\nb;0;1;2;4;no\n" * 30,
        {
            "delimiter": ";",
            "skip": 2,
            "columns": ["id", "Before Score", "Before Time", "After Score", "After Time", "y"],
        },
        60,
    ),
    "made.csv": (
        "Made;2024-01-01;;;\nx;z;v;w;y\n" + "1;2;3;4;yes\n0;1;2;4;no\n" * 30,
        {"delimiter": ";", "skip": 1},
        60,
    ),
    "again.csv": ("x,z,y\n1,2,yes\n0,1,no\nx,z,y\n,,\n" * 9, {}, 18),
    "from_r.csv": (
        "x,z,y\n" + "n1,1,2,yes\nn2,0,1,no\n" * 30,
        {"skip": 1, "columns": ["row", "x", "z", "y"]},
        60,
    ),
    "late_again.csv": (
        "x,z,y\n" + "1,2,yes\n0,1,no\n1,2,no\n" * 60 + "x,z,y\n" + "1,2,yes\n" * 20,
        {},
        200,
    ),
    "totals.csv": (
        "Report\nof: May\n\nx|z|w|y\n" + "1|2|3|yes\n0|1|2|no\n1|2|3|no\n" * 60 + "Total|180|| 90\n",
        {},
        180,
    ),
    "blank_above.csv": (
        "Report\nof: May\n\nx|z|w|y\n" + "1|2|3|yes\n0|1|2|no\n1|2|3|no\n" * 60 + "Source: me|||\n\n",
        {},
        180,
    ),
    "last_end.csv": (
        "x,z,y\r\n" + '"1,5\n5",2,yes\r\n"0,1""",1,no\r\n"1,5\n5",2,no\r\n' * 60 + "\n",
        {},
        180,
    ),
    "ends.csv": (
        "x,z,y\r\n" + "1,2,yes\r\n" * 30 + "0,1,no\n" * 30,
        {},
        60,
    ),
    "broken.csv": ('"x\nm",z,y\n' + "1,2,yes\n0,1,no\n" * 30, {"skip": 2, "columns": ["x m", "z", "y"]}, 60),
    "twice.csv": ("x,X,y\n" + "1,2,yes\n0,1,no\n" * 30, {"skip": 1, "columns": ["x", "X_2", "y"]}, 60),
}


REFUSED = {
    "totals.csv": "1 line of totals or remarks below its rows. Delete it.",
    "blank_above.csv": "1 line of totals or remarks below its rows. Delete it.",
    "last_end.csv": "mixed line endings (\\n and \\r\\n)",
    "ends.csv": "mixed line endings (\\n and \\r\\n)",
}


@pytest.mark.parametrize("name", LAID_OUT)
def test_a_layout_is_read_by_keys_or_refused_with_what_to_do(tmp_path, capsys, name):
    content, keys, n_rows = LAID_OUT[name]
    (tmp_path / name).write_bytes(content.encode())
    out = tmp_path / "rows.toml"
    how = {"target": "y", "public": None, "out": out, "force": False, "as_json": True}
    if name in REFUSED:
        with pytest.raises(DataError, match=re.escape(f"{name}: {REFUSED[name]}")):
            init(tmp_path / name, **how)
        assert not out.exists()
        return
    init(tmp_path / name, **how)
    assert json.loads(capsys.readouterr().out)["keys"] == keys
    (file,) = inspect_files(load(out).dataset, [tmp_path / name])
    with raw_files.connect([file]) as query:
        rows = query.execute(file.select(file.columns, file.columns)).fetchall()
    place = file.columns.index(load(out).dataset.target)
    labels = [row[place] for row in rows if row[place] not in (None, "y")]
    assert {*labels} == {"yes", "no"}
    assert len(labels) == n_rows
    assert (len(labels) < len(rows)) == ("NOT IN ('y')" in (load(out).dataset.where or ""))


@pytest.mark.parametrize("row", ["1,2,yes", "1,2,yes,", "1,2,yes,,"])
@pytest.mark.parametrize("other", ["0,1,no", "0,1,no,"])
def test_empty_fields_at_the_end_of_rows_are_no_column_and_no_fault(tmp_path, capsys, row, other):
    path, out = tmp_path / "rows.csv", tmp_path / "rows.toml"
    path.write_text("x,z,y\n" + f"{row}\n{other}\n1,2,no\n" * 40)
    init(path, target="y", public="random 0.5", out=out, force=False, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert (said["path"], said["keys"], list(said["columns"])) == ("rows.csv", {}, ["x", "z", "y"])
    with raw_files.connect([file := raw_files.inspect(path)]) as query:
        assert len(query.execute(file.select(file.columns, file.columns)).fetchall()) == 120


ROWS = [["x", "z", "y"], *[[1.5 + i, i % 7, "yes" if i % 2 else "no"] for i in range(60)]]
TEXT = "".join(",".join(map(str, row)) + "\n" for row in ROWS)


FORMATS = {
    "rows.xlsx": (workbook({"S": ROWS}), "y"),
    "rows.data": (TEXT.replace(",", "|"), "y"),
    "no_header.data": (TEXT[6:], "3"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_that_a_run_reads_is_named_as_it_is(tmp_path, capsys, name):
    content, target = FORMATS[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    out = tmp_path / "rows.toml"
    init(tmp_path / name, target=target, public="random 0.5", out=out, force=False, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert (said["path"], said["rows_looked_at"] > 20) == (name, True)
    spec = load(out).dataset
    file = raw_files.inspect(Path(spec.path[0]), columns=spec.columns, delimiter=spec.delimiter)
    with raw_files.connect([file]) as query:
        assert len(query.execute(file.select(file.columns, file.columns)).fetchall()) == 60
    assert spec.target == file.columns[2]


@pytest.mark.parametrize("text", [TEXT.replace(",", "  "), "town    y\nKyiv    yes\nLima    no\n" * 9])
def test_fields_that_stand_apart_by_blanks_are_refused_with_what_to_do(tmp_path, text):
    (tmp_path / "rows.data").write_text(text)
    out = tmp_path / "rows.toml"
    with pytest.raises(DataError, match=r"stand apart by blanks\. Write it with commas"):
        init(tmp_path / "rows.data", target="y", public=None, out=out, force=False, as_json=True)
    assert not out.exists()


@pytest.mark.parametrize("title", [[], [["Report of May"]]])
def test_the_sheet_of_a_workbook_is_named_where_there_are_several(tmp_path, capsys, title):
    path, out = tmp_path / "rows.xlsx", tmp_path / "rows.toml"
    path.write_bytes(workbook({"notes": [["none"]], "May": [*title, *ROWS]}))
    how = {"target": "y", "public": "random 0.5", "out": out, "force": False, "as_json": True}
    with pytest.raises(DataError, match=r"2 sheets have cells \(notes, May\).*--sheet"):
        init(path, **how)
    assert not out.exists()
    init(path, sheet="May", **how | {"as_json": False})
    assert "written    a workbook, a header" in capsys.readouterr().out
    spec = load(out).dataset
    assert (spec.sheet, spec.skip) == (("May",), len(title))
    (file,) = inspect_files(spec, [path])
    with raw_files.connect([file]) as query:
        assert len(query.execute(file.select(file.columns, file.columns)).fetchall()) == 60


def late(folder, suffix):
    """A long file whose first nine tenths have one class, no gap and no word."""
    n = 60_000
    rng = np.random.default_rng(1)
    x, z = np.sort(rng.normal(size=n)), rng.normal(size=n).round(3).astype(str)
    z[-4000:] = np.where(np.arange(4000) % 3, z[-4000:], "unknown")
    table = {
        "x": x.round(3),
        "z": z,
        "day": ["2021-03-04"] * n,
        "y": np.where(np.arange(n) < 0.9 * n, "a", "b"),
    }
    path, rows = folder / f"late.{suffix}", pl.DataFrame(table | {"open": np.arange(n) % 2})
    if suffix == "parquet":
        rows.write_parquet(path, row_group_size=n)
    else:
        text = rows.write_csv(line_terminator="\r\n").encode()
        path.write_bytes(gzip.compress(text, 1) if suffix == "csv.gz" else text)
    return path


@pytest.mark.parametrize("suffix", first_fast("csv", "csv.gz", "parquet", fast=("csv", "parquet")))
def test_what_stands_only_at_the_end_of_a_long_file_is_seen(tmp_path, capsys, suffix):
    out = tmp_path / "late.toml"
    init(late(tmp_path, suffix), target="y", public=None, out=out, force=False, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert not said["all_rows"]
    assert "and become missing" in said["columns"]["z"]["note"]
    assert said["columns"]["day"]["note"] == "dates, all public ones alike"
    assert said["label"] == "class"
    assert load(out).dataset.on_bad_rows == "quarantine"


def test_a_long_read_says_how_far_it_is(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("flows.command.init.SECONDS", -1)
    path = late(tmp_path, "csv")
    init(path, target="y", public=None, out=tmp_path / "late.toml", force=False, as_json=True)
    assert "read 60,000 rows" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
@pytest.mark.parametrize("n", [21_000, 26_000, 60_000])
def test_no_row_of_a_long_file_is_looked_at_twice(tmp_path, capsys, suffix, n):
    content = "x,z,y\n" + "".join(f"{i / 7:.4f} °C,{i % 9},{'ab'[i % 3 == 0]}\n" for i in range(n))
    path = tmp_path / f"long.{suffix}"
    path.write_bytes(gzip.compress(content.encode(), 1) if suffix == "csv.gz" else content.encode())
    init(path, target="y", public=None, out=tmp_path / "long.toml", force=False, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert not said["all_rows"]
    assert said["duplicates"] == 0


@pytest.mark.parametrize(
    ("first", "has_header"),
    [
        ("1,2,y", True),
        ("0,1,y", True),
        ("2019,2021,y", True),
        ("# x,z,y", True),
        ("39,State-gov,77516", False),
        ("a,7.5,0.3", False),
        ('NY,"1,250.40",60 months', False),
        ("NY,$40,12 %", False),
    ],
)
def test_a_first_line_that_counts_its_columns_is_a_header_and_one_with_measures_is_none(
    tmp_path, capsys, first, has_header
):
    (tmp_path / "rows.csv").write_text("\n".join([first] + [f"{i % 7},{i % 5},{i % 2}" for i in range(40)]))
    out = tmp_path / "rows.toml"
    target = "y" if has_header else "2"
    init(tmp_path / "rows.csv", target=target, public=None, out=out, force=False, as_json=True)
    assert json.loads(capsys.readouterr().out)["header"] is has_header


def test_names_of_a_header_that_repeats_one_are_told_apart_however_many_there_are():
    names = deduplicate_names(["x"] * 200_000 + ["X_2", "x_200002", "", "", "a\nb", "a b"])
    assert names[:3] == ["x", "x_2", "x_3"]
    assert names[199_999:] == ["x_200000", "X_2_200001", "x_200002", "", "", "a b", "a b_200006"]
    assert len({name.lower() for name in names}) == len(names) - 1
