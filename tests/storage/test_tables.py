"""Rows out of Parquet as arrays, and Parquet whose bytes depend on the rows alone."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from storage import tables

ENCODING = Encoding(
    (
        NumericFeature("miles", 0.0, 10.0),
        CategoricalFeature("firm", ("ash", "birch")),
        CategoricalFeature("area", (8, 32)),
        CategoricalFeature("shared", (False, True)),
    )
)


def rows(**changes):
    return pa.table(
        {
            "shared": pa.array([True, None, False]),
            "miles": pa.array([1, None, 300], pa.int16()),
            "area": pa.array([32, 9, None], pa.int8()),
            "firm": pa.array(["birch", "cedar", None]),
        }
        | changes
    )


def test_numbers_stay_levels_become_their_index_and_missing_ones_nan():
    nan = np.nan
    expected = [[1, 1, 1, 1], [nan, -1, -1, nan], [300, nan, nan, 0]]
    np.testing.assert_array_equal(tables.raw_matrix(rows(), ENCODING), expected)


def test_a_matrix_of_some_columns_has_them_in_the_order_asked_for():
    expected = [[1, 1], [-1, np.nan], [np.nan, 300]]
    np.testing.assert_array_equal(tables.raw_matrix(rows(), ENCODING, ["firm", "miles"]), expected)
    assert tables.raw_matrix(rows(), ENCODING, []).shape == (3, 0)


def test_a_matrix_does_not_depend_on_how_a_table_is_cut():
    whole = rows()
    cut = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 0), whole.slice(1)])
    np.testing.assert_array_equal(tables.raw_matrix(cut, ENCODING), tables.raw_matrix(whole, ENCODING))
    assert tables.raw_matrix(whole.slice(0, 0), ENCODING).shape == (0, 4)


@pytest.mark.parametrize(
    "column", [pa.array([1.0, 2.0, 3.0]), pa.array([1, 2, 3], pa.uint64()), pa.array([1, 2, 3], pa.int8())]
)
def test_numeric_columns_of_any_width_give_the_same_numbers(column):
    assert tables.raw_matrix(rows(miles=column), ENCODING, ["miles"]).ravel().tolist() == [1.0, 2.0, 3.0]


def test_a_label_that_is_missing_or_not_listed_is_minus_one():
    assert tables.label_codes(rows().column("firm"), ["birch", "ash"]).tolist() == [0, -1, -1]
    assert tables.label_codes(rows().column("area"), [8, 32]).tolist() == [1, -1, -1]


def test_equal_rows_are_equal_bytes(tmp_path):
    table = rows()
    cut = pa.concat_tables([table.slice(0, 2), table.slice(2)]).combine_chunks()
    noted = table.replace_schema_metadata({"when": str(datetime.datetime.now(tz=datetime.UTC))})
    for name, content in (("a", table), ("b", cut), ("c", noted)):
        tables.write(tmp_path / name, content)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()


def test_rows_come_back_in_order_a_row_group_at_a_time(tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    for number, path in enumerate(paths):
        pq.write_table(pa.table({"i": np.arange(5) + 5 * number, "j": np.zeros(5)}), path, row_group_size=2)
    found = list(tables.batches(paths, ["i"]))
    assert [t.num_rows for t in found] == [2, 2, 1, 2, 2, 1]
    assert pa.concat_tables(found).column("i").to_pylist() == list(range(10))
    assert tables.read(paths, ["i"]).equals(pa.concat_tables(found))
    assert list(tables.batches([])) == []
