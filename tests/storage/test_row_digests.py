"""A row is known by its values, whatever file they are in; equal rows are told apart by their number."""

from __future__ import annotations

import datetime
import gzip

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from storage.digests import Hasher
from storage.holders.row_copies import RowNames
from storage.holders.row_digests import digests_of
from storage.raw import raw_files

ROWS = """id,fare,zone,day,late,note
7000,1.50,north,2026-01-02,True,"a, b"
7001,,south,2026-01-03,False,
7002,0.1,North Côte,2026-01-04,True,x
"""


def digests(path, **settings):
    file = raw_files.inspect(path, **settings)
    with raw_files.connect([file]) as connection:
        return digests_of(connection, file, Hasher(b"secret")).tolist()


def written(folder, text, name="rows.csv"):
    path = folder / name
    path.write_text(text, newline="")
    return path


def as_parquet(folder, **types):
    table = pa.csv.read_csv(pa.py_buffer(ROWS.encode()))
    for column, kind in types.items():
        at = table.column_names.index(column)
        table = table.set_column(at, column, table.column(column).cast(kind))
    path = folder / "rows.parquet"
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text + "\n",
        lambda text: text.rstrip("\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("7000,1.50", "07000,1.5").replace("7001", "7001.0"),
        lambda text: text.replace("7002", " 7002 ").replace("0.1", "1e-1").replace("True", "true"),
        lambda text: text.replace("7001,,", "7001,NA,").replace("False,\n", "False,null\n"),
        lambda text: text.replace("Côte", "Co\u0302te").replace("north", " north "),
        lambda text: text.replace("2026-01-02", "2026-01-02 00:00:00").replace("2026-01-03", "2026-01-03T00:00:00"),
    ],
)  # fmt: skip
def test_a_row_that_is_written_otherwise_is_the_same_row(tmp_path, change):
    assert digests(written(tmp_path, ROWS)) == digests(written(tmp_path, change(ROWS), "other.csv"))


def test_neither_compression_nor_delimiter_nor_the_order_of_columns_counts(tmp_path):
    once = digests(written(tmp_path, ROWS))
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(ROWS.encode()))
    assert digests(tmp_path / "rows.csv.gz") == once
    table = pa.csv.read_csv(tmp_path / "rows.csv")
    turned = table.select(table.column_names[::-1])
    pa.csv.write_csv(turned, tmp_path / "turned.csv", pa.csv.WriteOptions(delimiter=";"))
    assert digests(tmp_path / "turned.csv") == once
    assert digests(tmp_path / "rows.csv", nulls=("-", "")) == once


@pytest.mark.parametrize(
    "types",
    [
        {},
        {"id": pa.float64()},
        {"id": pa.string()},
        {"id": pa.int16(), "fare": pa.float32()},
        {"day": pa.timestamp("us")},
        {"day": pa.string()},
        {"fare": pa.decimal128(10, 2)},
        {"zone": pa.dictionary(pa.int32(), pa.string())},
    ],
)
def test_a_row_in_parquet_is_that_of_its_csv_whatever_its_types(tmp_path, types):
    assert digests(written(tmp_path, ROWS)) == digests(as_parquet(tmp_path, **types))


def test_rows_in_another_order_are_the_same_rows(tmp_path):
    head, *rows = ROWS.splitlines()
    turned = "\n".join([head, *rows[::-1]])
    assert digests(written(tmp_path, turned, "other.csv")) == digests(written(tmp_path, ROWS))[::-1]


def test_an_edited_row_is_another_row_and_the_rest_are_not(tmp_path):
    before = digests(written(tmp_path, ROWS))
    for change in (
        ("1.50", "1.51"),
        ("north", "NORTH"),
        ("7000", "70000"),
        ('"a, b"', ""),
        ("7000,1.50", "1.50,7000"),
    ):
        after = digests(written(tmp_path, ROWS.replace(*change, 1), "other.csv"))
        assert [a == b for a, b in zip(before, after, strict=True)] == [False, True, True]


def test_whole_numbers_beyond_what_floats_hold_count_digit_by_digit(tmp_path):
    path = written(tmp_path, "id,x\n9007199254740993,1\n9007199254740992,1\n09007199254740993,1\n")
    one, other, same = digests(path)
    assert one == same != other
    pq.write_table(pa.table({"id": pa.array([9007199254740993]), "x": [1]}), tmp_path / "one.parquet")
    assert digests(tmp_path / "one.parquet") == [one]


def test_digests_are_under_the_holders_key(tmp_path):
    file = raw_files.inspect(written(tmp_path, ROWS))
    with raw_files.connect([file]) as connection:
        keyed = [digests_of(connection, file, Hasher(secret)).tolist() for secret in (b"one", b"two")]
    assert set(keyed[0]).isdisjoint(keyed[1])


def test_a_moment_is_its_text(tmp_path):
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5)
    pq.write_table(pa.table({"at": pa.array([moment]), "x": [1]}), tmp_path / "m.parquet")
    path = written(tmp_path, "at,x\n2026-01-02 03:04:05,1\n")
    assert digests(path) == digests(tmp_path / "m.parquet")


def numbers(*values):
    return np.array(values, np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def names(*files):
    given = RowNames()
    return [given.of(file).tolist() for file in files]


def test_equal_rows_of_a_file_are_different_people_whatever_their_order():
    (found,) = names(numbers(1, 2, 1, 1))
    (turned,) = names(numbers(1, 1, 1, 2))
    assert len(set(found)) == 4
    assert set(found) == set(turned)


def test_rows_that_are_equal_by_chance_in_two_files_are_different_people():
    rng = np.random.default_rng(0)
    one, other = names(numbers(*rng.integers(0, 8, 60)), numbers(*rng.integers(0, 8, 40)))
    assert len({*one, *other}) == 100


@pytest.mark.parametrize(
    ("first", "second", "new"),
    [
        (range(100), range(100), 0),
        (range(100), [*range(99, -1, -1)], 0),
        (range(100), range(120), 20),
        (range(100), [*range(1, 100), 500, 501], 2),
        (range(100), range(10), 0),
        ([1, 1, 1, 2, 2], [2, 1, 2, 1, 1], 0),
        (range(100), [*range(90, 200)], 100),
    ],
)
def test_rows_that_two_files_have_in_common_beyond_chance_are_the_same_people(first, second, new):
    one, other = names(numbers(*first), numbers(*second))
    assert len({*other} - {*one}) == new


def test_a_file_named_alone_names_its_rows_as_when_it_was_named_first():
    a, b = numbers(1, 2, 2), numbers(2, 3)
    assert names(a, b)[0] == names(a)[0]


def test_names_that_an_earlier_run_gave_stay():
    given = RowNames()
    assert given.of(numbers(1, 2, 3), (np.array([2]), np.array([77], np.uint64))).tolist()[2] == 77
