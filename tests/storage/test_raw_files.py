"""A raw file is looked at before it is trusted: what is wrong with it is told in one line, and no value of a row with it."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldptree.errors import DataError
from storage.raw import raw_files

TEXT = "a,b\n1,x\n2,y\n"


def written(tmp_path, content, name="trips.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows_of(file, columns=None):
    columns = list(columns or file.columns)
    with raw_files.connect([file]) as connection:
        batches = list(raw_files.stream(connection, file.select(columns, columns), file, 1024))
    return [row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True)]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (TEXT, "a.csv"),
        (TEXT.replace(",", ";"), "a.csv"),
        (TEXT.replace(",", "|"), "a.txt"),
        (TEXT.replace(",", "\t"), "a.tsv"),
        (TEXT.replace("\n", "\r\n"), "a.csv"),
        ("\ufeff" + TEXT, "a.csv"),
        ("\n" + TEXT + "\n", "a.csv"),
        (TEXT.rstrip(), "a.csv"),
        (" a , b \n1,x\n2,y\n", "a.csv"),
        ('"a","b"\n"1","x"\n"2","y"\n', "a.csv"),
        (gzip.compress(TEXT.encode(), mtime=0), "a.csv.gz"),
        (gzip.compress(TEXT.encode(), mtime=0), "misnamed.csv"),
        (TEXT, "a[1]*.csv"),
    ],
)
def test_the_same_table_is_read_however_it_is_written(tmp_path, content, name):
    file = raw_files.inspect(written(tmp_path, content, name))
    assert file.columns == ("a", "b")
    assert rows_of(file) == [("1", "x"), ("2", "y")]


def test_a_parquet_keeps_its_own_types(tmp_path):
    path = tmp_path / "trips.parquet"
    table = {"i": pa.array([1], pa.int8()), "f": [0.5], "s": ["x"], "t": [True], "l": [[1]]}
    pq.write_table(pa.table(table), path)
    file = raw_files.inspect(path)
    assert file.families == ("integer", "number", "text", "boolean", None)
    assert rows_of(file, ["s", "i"]) == [("x", 1)]


def test_a_file_without_a_header_takes_the_names_it_is_given(tmp_path):
    file = raw_files.inspect(written(tmp_path, "1,x\n2,y\n"), columns=("a", "b"))
    assert rows_of(file) == [("1", "x"), ("2", "y")]
    with pytest.raises(DataError, match=r"has 2 fields, dataset\.columns names 3"):
        raw_files.inspect(file.path, columns=("a", "b", "c"))


def test_the_strings_that_mean_missing_are_missing_quoted_or_not(tmp_path):
    file = raw_files.inspect(written(tmp_path, 'a,b\n?,"NA"\n,0\n'), nulls=("", "?", "NA"))
    assert rows_of(file) == [(None, None), (None, "0")]


def test_a_row_is_read_whatever_a_field_of_it_is_long_or_quotes(tmp_path):
    for row in ("x" * 200_000 + ",1", f'"{"," * 2_000}",1'):
        file = raw_files.inspect(written(tmp_path, f"a,b\n{row}\n"))
        with raw_files.connect([file]) as connection:
            assert connection.execute(file.select(["b"], ["b"])).fetchall() == [("1",)]


def test_nameless_columns_get_a_name_to_drop_them_by(tmp_path):
    assert raw_files.inspect(written(tmp_path, ",a,\n1,x,\n")).columns == ("unnamed_1", "a", "unnamed_3")


GZIPPED = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (i * 7919, i * 104729) for i in range(20_000)))
PARQUET = b"PAR1" + b"x" * 100 + b"PAR1"


@pytest.mark.parametrize(
    ("content", "name", "told"),
    [
        (b"", "a.csv", "empty"),
        (b" \n\n", "a.csv", "empty"),
        (b"a,b\n", "a.csv", "a header and no rows"),
        (b"a,b\n1,x\n2,\0y\n", "a.csv", "NUL byte"),
        (b"a,b\n1,caf\xe9\n", "a.csv", "not UTF-8"),
        (b"a,b\n1,x\n2,caf\xc3", "a.csv", "not UTF-8"),
        (b"\xff\xfea\0,\0b\0", "a.csv", "UTF-16"),
        (b"PK\x03\x04\x14\0\0", "a.csv", "truncated or damaged"),
        (b"\x89PNG\r\n\x1a\n\0\0", "a.csv", "unpack or convert it"),
        (b"<!DOCTYPE html><p>no</p>", "a.csv", "HTML"),
        (b'{"a": 1}', "a.csv", "JSON"),
        (GZIPPED[: len(GZIPPED) // 2], "a.csv.gz", "truncated"),
        (GZIPPED[:-8] + bytes(8), "a.csv.gz", "truncated or damaged"),
        (PARQUET[:-4], "a.parquet", "truncated"),
        (PARQUET, "a.parquet", "damaged"),
        (b"a,b\n1,2\n", "a.parquet", "not a Parquet file"),
        (b"a,b,a\n1,2,3\n", "a.csv", "Rename one, or name all in dataset.columns, below dataset.skip"),
        (b"a,b,A\n1,2,3\n", "a.csv", '"a" and "A"'),
        (b"a,_row\n1,2\n", "a.csv", '"_row", a name that ldptree keeps'),
        (b"x" * (3 << 20), "a.csv", "no line ends"),
        (b"a,b\n1,2\n" + b"1," * 1_100, "a.csv", "line 3: 1,101 fields, where 2 columns are known"),
        (b"\r\n" * 3_000_000 + b"a,b\r\n1,2\r\n", "a.csv", "characters are blank lines. Delete them."),
        (b"\r\n\r\na,b\n1,2\n", "a.csv", "lines above its header end in another way"),
        (b"\na,b\r\n1,2\r\n", "a.csv", "lines above its header end in another way"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_by_name_and_fault(tmp_path, content, name, told):
    path = written(tmp_path, content, name)
    with pytest.raises(DataError) as refusal:
        raw_files.inspect(path)
    message = str(refusal.value)
    assert message.startswith(name)
    assert told in message
    assert "\n" not in message


@pytest.mark.parametrize("mark", [";", "|", "\t", ":"])
def test_a_delimiter_is_what_it_is_said_to_be(tmp_path, mark):
    file = raw_files.inspect(written(tmp_path, TEXT.replace(",", mark)), delimiter=mark)
    assert (file.columns, rows_of(file)) == (("a", "b"), [("1", "x"), ("2", "y")])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("blank", ["", " ", "\x0c"])
def test_blank_lines_above_a_header_are_no_rows_whatever_ends_them(tmp_path, end, blank):
    file = raw_files.inspect(
        written(tmp_path, ((blank + end) * 5_000 + end.join(["a,b", "1,x", "2,y", ""])).encode())
    )
    assert (file.columns, rows_of(file)) == (("a", "b"), [("1", "x"), ("2", "y")])


def test_what_is_no_file_is_told(tmp_path):
    with pytest.raises(DataError, match="a folder"):
        raw_files.inspect(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        raw_files.inspect(tmp_path / "absent.csv")


def test_a_wrong_delimiter_is_told_with_the_right_one(tmp_path):
    path = written(tmp_path, TEXT.replace(",", ";"))
    with pytest.raises(DataError, match=r"has one column, split at a semicolon it has 2.*delimiter = ';'"):
        raw_files.inspect(path, delimiter=",")
    for given in (";", None):
        assert raw_files.inspect(path, delimiter=given).columns == ("a", "b")
    commas = written(tmp_path, "a,b;c;d\n1,2;3;4\n")
    assert raw_files.inspect(commas).columns == ("a", "b;c;d")


def test_files_of_one_set_must_have_the_same_columns(tmp_path):
    first = raw_files.inspect(written(tmp_path, TEXT, "1.csv"))
    turned = raw_files.inspect(written(tmp_path, "b,a\nx,1\n", "2.csv"))
    other = raw_files.inspect(written(tmp_path, "a,c\n1,x\n", "3.csv"))
    raw_files.same_columns([first, turned])
    with pytest.raises(DataError, match=r"3\.csv: .*lacks b"):
        raw_files.same_columns([first, turned, other])


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("3", "wrong number of fields"),
        ("3,CANARY,5", "wrong number of fields"),
        ('3,"CANARY', "a quote that is not closed"),
        ('3,"CANARY"x', "broken quotes"),
    ],
)
def test_a_line_that_is_no_row_stops_the_stream_without_a_word_of_it(tmp_path, line, kind):
    file = raw_files.inspect(written(tmp_path, TEXT + line + "\n"))
    with pytest.raises(DataError) as refusal:
        rows_of(file)
    error = refusal.value
    while error is not None:
        assert "CANARY" not in str(error)
        error = error.__cause__ or error.__context__
    with raw_files.connect([file]) as connection:
        query = file.select(["a"], ["a"], skip_bad_lines=True)
        kept = [
            row for batch in raw_files.stream(connection, query, file, 10) for row in batch["a"].to_pylist()
        ]
        (found,) = raw_files.rejected_lines(connection)
    assert kept == ["1", "2"]
    assert found[:2] == (4, kind)


def test_the_connection_reads_the_files_given_and_nothing_else(tmp_path):
    file = raw_files.inspect(written(tmp_path, TEXT))
    other = written(tmp_path, TEXT, "other.csv")
    attempts = (
        f"SELECT * FROM read_csv('{other}')",
        "SELECT * FROM read_text('/etc/hostname')",
        f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
        f"ATTACH '{tmp_path / 'x.db'}'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
    )
    with raw_files.connect([file]) as connection:
        for attempt in attempts:
            with pytest.raises(duckdb.Error):
                connection.execute(attempt)
        assert connection.execute(f"SELECT count(*) FROM ({file.select(['a'], ['a'])})").fetchall() == [(2,)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.csv", "trips.csv"]


def test_rows_come_in_the_order_of_the_file_whatever_is_asked_of_them(tmp_path):
    n = 400_000
    path = tmp_path / "long.csv"
    path.write_text("a,b\n" + "".join(f"{i},{i % 11}\n" for i in range(n)))
    file = raw_files.inspect(path)
    is_in = "b IN ('1', '2', '3', '4', '5', '6', '7', '8')"
    query = f"SELECT CAST(a AS BIGINT) AS a, {is_in} AS hit FROM ({file.select(['a', 'b'], ['a', 'b'])})"
    with raw_files.connect([file]) as connection:
        batches = list(raw_files.stream(connection, query, file, raw_files.BATCH_ROWS))
    assert pa.concat_arrays([batch["a"] for batch in batches]).to_pylist() == list(range(n))
    assert max(batch.num_rows for batch in batches) <= raw_files.BATCH_ROWS


def test_a_stream_that_is_left_early_leaves_no_thread_behind(tmp_path):
    import threading

    path = tmp_path / "long.csv"
    path.write_text("a\n" + "1\n" * 50_000)
    file = raw_files.inspect(path)
    before = threading.active_count()
    with raw_files.connect([file]) as connection:
        stream = raw_files.stream(connection, file.select(["a"], ["a"]), file, 1024)
        next(stream)
        stream.close()
        assert threading.active_count() == before


def test_wide_tables_come_in_fewer_rows_at_a_time():
    assert raw_files.batch_rows(93) == 131_072
    assert raw_files.batch_rows(3_000) == 4096
    assert raw_files.batch_rows(10**6) == 1024


FAR = 300_000
LATE = {
    "too many fields": (b"1,CANARY,3\n", "wrong number of fields"),
    "too few fields": (b"CANARY\n", "wrong number of fields"),
    "a quote that is not closed": (
        b'1,"CANARY\n2,3\n',
        "a quote that is opened and not closed|more than 2 MiB|wrong number",
    ),
    "text after a quote": (b'1,"CANARY"x\n', "a quote that is opened and not closed"),
    "a field of 10 MB": (b'1,"CANARY' + b"z" * 10_000_000 + b'"\n', "more than 2 MiB"),
    "cut within quotes": (b'1,"CANARY', "a quote that is opened and not closed"),
    "other line ends": (b"1,CANARY\r2,x\r", "mixed line endings.*Let its lines end alike"),
    "bytes that are no text": (b"1,CANARY\xff\n", "not UTF-8"),
    "a NUL": (b"1,CANARY\0\n", "NUL byte"),
}


@pytest.mark.parametrize("name", LATE)
def test_a_fault_late_in_a_file_is_bad_data_told_without_a_word_of_it(tmp_path, name):
    line, told = LATE[name]
    rows = b"a,b\n" + b"1,x\n" * FAR
    rest = b"" if name == "cut within quotes" else b"5,y\n" * 10
    path = written(tmp_path, rows + line + rest)
    with pytest.raises(DataError, match=told) as refusal:
        rows_of(raw_files.inspect(path))
    error = refusal.value
    assert str(error).startswith("trips.csv: ")
    while error is not None:
        assert "CANARY" not in str(error)
        error = error.__cause__ or error.__context__


def test_words_of_the_system_in_a_row_do_not_turn_bad_data_into_a_fault_of_the_machine(tmp_path):
    for words in ("Permission denied", "No space left on device", "Out of Memory Error"):
        path = written(tmp_path, "a,b\n" + "1,x\n" * FAR + f"1,{words},3\n")
        with pytest.raises(DataError, match="wrong number of fields"):
            rows_of(raw_files.inspect(path))


@pytest.mark.parametrize("clock", ["UTC", "Asia/Tokyo"])
def test_an_hour_is_that_of_utc_whatever_the_zone_of_the_machine(tmp_path, clock):
    moments = pa.array([datetime(2024, 6, 1, 17, tzinfo=UTC)], pa.timestamp("us", tz="America/Los_Angeles"))
    pq.write_table(pa.table({"when": moments}), tmp_path / "moments.parquet")
    program = (
        "import sys; from pathlib import Path; from storage.raw import raw_files; "
        "file = raw_files.inspect(Path(sys.argv[1])); "
        "query = f'SELECT hour(CAST(\"when\" AS TIMESTAMP)) FROM ({file.select(file.columns, file.columns)})'; "
        "print(raw_files.connect([file]).execute(query).fetchone()[0]); "
        "from storage.sql import scratch_cursor; "
        "print(scratch_cursor().execute(\"SELECT hour(CAST('2024-06-01 17:00Z' AS TIMESTAMPTZ))\").fetchone()[0])"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "moments.parquet"],
        env=os.environ | {"TZ": clock},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "17\n17\n"


@pytest.mark.parametrize(("timezone", "hour"), [(None, 17), ("America/Chicago", 12), ("Asia/Tokyo", 2)])
def test_an_hour_is_that_of_the_zone_that_is_named_in_every_kind_of_table(tmp_path, timezone, hour):
    moments = pa.array([datetime(2024, 6, 1, 17, tzinfo=UTC)], pa.timestamp("us", tz="America/Los_Angeles"))
    table = pa.table({"when": moments})
    pq.write_table(table, tmp_path / "moments.parquet")
    text = written(tmp_path, "when,x\n2024-06-01 19:00:00+02:00,1\n")
    files = [raw_files.inspect(path, timezone=timezone) for path in (tmp_path / "moments.parquet", text)]
    files.append(replace(raw_files.of_table(table, "frame"), timezone=timezone))
    for file in files:
        with raw_files.connect([file]) as connection:
            query = f'SELECT hour(CAST("when" AS TIMESTAMPTZ)) FROM ({file.select(["when"], ["when"])})'
            assert connection.execute(query).fetchone()[0] == hour
