"""A table that has columns of the names that an exported query uses inside, for the tests beside this file."""

from __future__ import annotations

import re

import duckdb
import pyarrow as pa


def with_names_of(query: str, table: pa.Table) -> pa.Table:
    """The table and, behind its columns, one for each inner name of the query, of values that are no answer to anything."""
    for name in sorted(set(re.findall(r'"(ldptree [^"]+)"', query)) - set(table.column_names)):
        table = table.append_column(name, pa.array([-1.0 - i for i in range(table.num_rows)]))
    return table


def assert_kept_apart(query: str, table: pa.Table) -> None:
    """The query over "data" says the same of a table that has columns of its inner names as well, and hands those out."""
    more = with_names_of(query, table)
    new = more.column_names[table.num_columns :]
    assert "ldptree cell" in new
    wanted, got = (duckdb.from_arrow(each).query("data", query).to_arrow_table() for each in (table, more))
    assert got.column_names == [*more.column_names, *wanted.column_names[table.num_columns :]]
    # in words: NaN is no NaN's equal
    assert repr(got.select(new).to_pydict()) == repr(more.select(new).to_pydict())
    assert repr(got.drop_columns(new).to_pydict()) == repr(wanted.to_pydict())
