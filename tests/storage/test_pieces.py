"""Large raw files cut into pieces: the rows of all pieces together are those of the file, or it is not cut."""

from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from first_fast import first_fast

from ldptree.errors import DataError
from storage.raw import raw_files
from storage.raw.pieces import cut

WIDE = "x" * 90
CUT = {
    "lines": "a,b\n1,2\n3,4\n5,6\n7,8\n",
    "lines of Windows": "a,b\r\n1,2\r\n3,4\r\n5,6\r\n7,8\r\n",
    "no end of the last line": "a,b\n1,2\n3,4\n5,6\n7,8",
    "a mark": "\ufeffa,b\n1,2\n3,4\n5,6\n7,8\n",
    "a mark and quotes": '\ufeff"a","b"\n"1","2"\n"3","4"\n',
    "lines in a field": 'a,b\n1,"x\ny,\nz\n"\n3,"\n4\n\n"\n5,6\n',
    "quotes in a field": 'a,b\n1,"x ""y"", z"\n3,""""\n5,"\n""\n"\n7,""\n',
    "fields with nothing in them": "a,b\n,\n1,\n,2\n,\n",
    "another delimiter": 'a;b\n1;2,"\n3;"4;\n"\n'.replace(',"', ","),
    "a row larger than pieces": f'a,b\n1,"{WIDE}\n{WIDE}"\n3,4\n',
    "a header larger than pieces": f"a,{WIDE}\n1,2\n3,4\n",
}
WHOLE = {
    "a quote within a field": 'a,b\n1,2"\n3,4\n5,"6\n7\n"\n',
    "text after a quote": 'a,b\n1,"2"x\n3,4\n5,6\n',
    "a quote that is not closed": 'a,b\n1,2\n3,"4\n5,6\n',
    "a blank line": "a,b\n1,2\n\n3,4\n5,6\n",
    "lines that end in two ways": "a,b\n1,2\r\n3,4\n5,6\r\n",
    "lines that end in a return": "a,b\r1,2\r3,4\r5,6\r",
    "a line above the header": "\na,b\n1,2\n3,4\n5,6\n",
    "a mark at the start of a line": "a,b\n\ufeff1,2\n\ufeff3,4\n\ufeff5,6\n",
}


def rows_of(file):
    with raw_files.connect([file]) as connection:
        query = file.select(file.columns, file.columns)
        return raw_files.guarded(lambda: connection.execute(query).fetchall(), file)


def rows_or_fault(files):
    """The rows of files, or why they cannot be read."""
    try:
        return [row for file in files for row in rows_of(file)]
    except DataError as fault:
        return str(fault)


def written(path, text):
    path.write_bytes(text.encode())
    return raw_files.inspect(path)


@pytest.mark.parametrize("case", CUT)
@pytest.mark.parametrize("most_bytes", [1, 5, 13])
def test_pieces_of_a_text_have_its_rows_and_their_numbers(tmp_path, case, most_bytes):
    file = written(tmp_path / "rows.csv", CUT[case])
    pieces = cut(file, most_bytes)
    assert len(pieces) > 1
    whole, at = rows_of(file), 0
    for number, piece in enumerate(pieces):
        found = rows_of(piece.open(file))
        assert (piece.number, piece.first_row, piece.stop_row) == (number, at, at + len(found))
        assert found == whole[at : piece.stop_row]
        at = piece.stop_row
    assert at == len(whole)


def test_a_text_without_a_header_has_its_first_row_in_the_first_piece(tmp_path):
    (tmp_path / "rows.csv").write_text("1,2\n3,4\n5,6\n")
    file = raw_files.inspect(tmp_path / "rows.csv", columns=("a", "b"))
    pieces = cut(file, 4)
    assert [rows_of(piece.open(file)) for piece in pieces] == [[("1", "2")], [("3", "4")], [("5", "6")]]


@pytest.mark.parametrize("case", WHOLE)
def test_a_text_in_which_the_begin_of_a_row_is_in_doubt_is_not_cut(tmp_path, case):
    assert cut(written(tmp_path / "rows.csv", WHOLE[case]), 5) == []


def test_what_is_packed_is_not_cut(tmp_path):
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(CUT["lines"].encode()))
    assert cut(raw_files.inspect(tmp_path / "rows.csv.gz"), 5) == []


@pytest.mark.parametrize("n_texts", first_fast(20, 60))
def test_whatever_a_text_holds_pieces_have_its_rows_or_its_fault(tmp_path, n_texts):
    """Texts drawn at random, most of them no table."""
    rng, n_cut = np.random.default_rng(5), 0
    fields = ["1", "x", "", '"a"', '"a\nb"', '"a,b"', '"a""b"', '"\n"', '""', 'c"', '"d"e', "\r", '"']
    weights = np.array([20, 20, 8, 8, 8, 8, 8, 8, 8, 0.2, 0.2, 0.2, 0.2])
    for number in range(n_texts):
        drawn = rng.choice(fields, (6, 2), p=weights / weights.sum())
        lines = [",".join(row) for row in drawn]
        if number % 5 == 0:
            lines[int(rng.integers(6))] += ",torn"
        file = written(tmp_path / f"{number}.csv", "\n".join(["a,b", *lines]) + "\n")
        pieces = cut(file, int(rng.integers(1, 12)))
        if not pieces:
            continue
        n_cut += 1
        opened = [piece.open(file) for piece in pieces]
        assert rows_or_fault(opened) == rows_or_fault([file])
    assert n_cut > n_texts / 2


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
