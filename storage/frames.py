"""Frames of a user's own (polars, pandas, pyarrow), as Arrow tables and as files in the holders' zone. Messages quote no row."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from ldptree.errors import ConfigError, DataError
from ldptree.validation import read_mask
from storage import tables
from storage.sql import quote
from storage.store import Store

FRAME = "the frame"
"""The file of its rows, as messages call it."""
UNNAMED_INDEX = "__index_level_"
"""Of pandas, where rows have labels in no column."""
MASK = "public"
"""The column of a mask of public rows."""


def read_frame(frame: Any, called: str, more: str = "") -> pa.Table:
    """The columns of a frame.

    Raises ConfigError where it is none, naming what was `called` with it and what `more` it takes; DataError where its columns
    are no columns of a table.
    """
    if not hasattr(frame, "__arrow_c_stream__"):
        raise ConfigError(
            f"{called}: a value of type {type(frame).__name__} is no source. Give a frame (polars, pandas 3 or pyarrow) or "
            f"the path of a data file{more}."
        )
    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError):  # its words may quote a row
        _check_names(names := [*getattr(frame, "columns", ())])
        column = next((one for name in names if not _is_held(one := frame[[name]])), None)
        which, row = (
            ("a column", "") if column is None else (f"the column {column.columns[0]!r}", _row(column))
        )
        raise DataError(
            f"{FRAME}: {which} is of a type, or of several, that Arrow cannot hold{row}. Make it all numbers, or all texts."
        ) from None
    _check_names(table.column_names)
    table = table.drop_columns([name for name in table.column_names if name.startswith(UNNAMED_INDEX)])
    # The same rows are the same file, whoever made the frame.
    columns = [_plain(table.column(index)) for index in range(table.num_columns)]
    return pa.table(columns, names=table.column_names)


def of_kind(table: pa.Table, frame: Any) -> Any:
    """A table, a row for each of a frame's, as pandas with the frame's index, or as polars, where the frame is that."""
    kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
    if kind == "pandas.DataFrame":
        return table.to_pandas().set_axis(frame.index)
    return pl.DataFrame(table) if kind == "polars.DataFrame" else table


def with_mask(table: pa.Table, public: Any, frame: Any) -> tuple[pa.Table, str]:
    """The rows of a frame, and the rule that says of them what a mask of public rows says. Raises DataError.

    Columns that hold the mask are the rule, and so no features; where there is none, one is added.
    """
    if len(getattr(public, "shape", (0,))) != 1:
        raise DataError(
            "public: a mask is one True or False for each row of the frame. Where public rows are a frame of their own, put both "
            "under each other, with a mask of the first."
        )
    is_public = read_mask(public, table.num_rows, frame, FRAME)
    if not is_public.any():
        raise DataError(
            "public: the mask is False for every row, so there is nothing to begin from; pass a mask that is True for the rows "
            'that everybody may see, or public="random 0.1" for a tenth of them, drawn by public coins.'
        )
    if is_public.all():
        raise DataError(
            "public: the mask is True for every row, so nobody is left to report; pass a mask that is False for the rows of "
            'those who report, or public="random 0.1" for a tenth that is public, drawn by public coins.'
        )
    mask = pa.chunked_array([is_public])
    held = [name for name in table.column_names if table[name].equals(mask)]
    if not held:
        name = MASK
        while name in table.column_names:
            name += "_"
        table, held = table.append_column(name, mask), [name]
    return table, " AND ".join(map(quote, held))


def keep_frame(table: pa.Table, store: Store) -> Path:
    """The rows of a frame as a file in the holders' zone."""
    name = f"holders/frames/{FRAME}"
    with pa.BufferOutputStream() as buffer:
        with tables.writer(buffer, table.schema) as sink:
            sink.write_table(table)
        store.objects.put(name, buffer.getvalue().to_pybytes())
    return store.objects.path(name)


def _row(column: Any) -> str:
    """Name the first row with which Arrow cannot hold a column."""
    n_above = bisect_left(range(len(column)), True, key=lambda n: not _is_held(column[: n + 1]))
    return f", first in row {n_above + 1:,}"


def _is_held(frame: Any) -> bool:
    """Return whether Arrow can hold a frame."""
    try:
        pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError):
        return False
    return True


def _check_names(names: Iterable[Any]) -> None:
    """Raises DataError where a column is there twice."""
    seen: set[str] = set()
    for name in map(str, names):
        if name in seen:
            raise DataError(f"{FRAME}: has the column {name!r} twice. Rename one.")
        seen.add(name)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column without the types and encodings that other readers of Arrow and Parquet do not have."""
    if pa.types.is_dictionary(column.type):
        kind = _plain_type(column.type.value_type)
        # By way of a dictionary of that type: Arrow decodes none of every type of text.
        return column.cast(pa.dictionary(pa.int32(), kind)).cast(kind)
    return column.cast(_plain_type(column.type))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if kind in (pa.large_string(), pa.string_view()):
        return pa.string()
    return pa.float32() if pa.types.is_float16(kind) else kind
