"""A large Parquet file is cut into pieces: the rows of all pieces together are those of the file, or it is not cut."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.raw import raw_files
from storage.raw.pieces import cut


def rows_of(file):
    with raw_files.connect([file]) as connection:
        query = file.select(file.columns, file.columns)
        return raw_files.guarded(lambda: connection.execute(query).fetchall(), file)


def test_a_text_is_not_cut(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n" + "1,2\n" * 1000)
    assert cut(raw_files.inspect(tmp_path / "rows.csv"), 500) == []


def test_pieces_of_a_parquet_are_its_row_groups(tmp_path):
    table = pa.table({"a": range(1000), "b": [None if n % 3 else str(n) for n in range(1000)]})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=70)
    file = raw_files.inspect(tmp_path / "rows.parquet")
    pieces = cut(file, 2000)
    assert len(pieces) > 2
    assert all(piece.first_row % 70 == 0 for piece in pieces)
    assert [row for piece in pieces for row in rows_of(piece.open(file))] == rows_of(file)


@pytest.mark.parametrize(("columns", "row_group_size"), [(["a", "b"], 1000), (["a", "File_Row_Number"], 70)])
def test_a_parquet_of_one_group_or_with_its_own_numbers_of_rows_is_not_cut(tmp_path, columns, row_group_size):
    table = pa.table({name: range(1000) for name in columns})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=row_group_size)
    assert cut(raw_files.inspect(tmp_path / "rows.parquet"), 500) == []
