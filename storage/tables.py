"""Rows out of Parquet as the arrays the algorithms take, and Parquet written so that equal rows are equal bytes.

What the arrays mean is in `ldptree.encoding`; which rows go where is in `tasks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldptree.encoding import CategoricalFeature, Encoding

ROW_GROUP = 131_072


def typed_parts(paths: Iterable[Path]) -> list[Path]:
    """Return the Parquet files of typed rows among those of a zone, without the raw texts of rows in quarantine."""
    return [path for path in paths if path.suffix == ".parquet" and path.parent.name != "quarantine"]


def writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a Parquet writer with fixed settings, so that the same rows give the same bytes."""
    return pq.ParquetWriter(path, schema.remove_metadata(), compression="zstd", compression_level=1)


def write(path: Path, table: pa.Table) -> None:
    """Write one table, in row groups of `ROW_GROUP`."""
    with writer(path, table.schema) as sink:
        sink.write_table(table.replace_schema_metadata(None), row_group_size=ROW_GROUP)


def batches(
    paths: Sequence[Path], columns: Sequence[str] | None = None, rows: range | None = None
) -> Iterator[pa.Table]:
    """Yield rows of several Parquet files in order, by row groups, or only `rows` of all files together."""
    at = 0
    for path in paths:
        with pq.ParquetFile(path) as source:
            for group in range(source.num_row_groups):
                n_rows = source.metadata.row_group(group).num_rows
                start, stop = (
                    (0, n_rows) if rows is None else (max(rows.start - at, 0), min(rows.stop - at, n_rows))
                )
                at += n_rows
                if rows is None or start < stop:
                    table = source.read_row_group(group, columns=None if columns is None else list(columns))
                    yield table.slice(start, stop - start)


def count_rows(paths: Sequence[Path]) -> int:
    """Count the rows of several Parquet files by their footers."""
    return sum(pq.read_metadata(path).num_rows for path in paths)


def read(paths: Sequence[Path], columns: Sequence[str] | None = None) -> pa.Table:
    """All rows of several Parquet files with one schema."""
    return pa.concat_tables(
        [pq.read_table(p, columns=None if columns is None else list(columns)) for p in paths]
    )


def raw_matrix(
    table: pa.Table, encoding: Encoding, columns: Sequence[str] | None = None
) -> NDArray[np.float64]:
    """The raw matrix [rows, columns] of a table, for all of the encoding's columns or those named.

    Numeric values as they are, categories as their index among the levels (-1 not listed), missing ones NaN.
    """
    features = {feature.column: feature for feature in encoding.features}
    names = encoding.columns if columns is None else tuple(columns)
    # Column by column in memory, as the table is; the walk down a tree reads few columns of a row.
    raw = np.empty((len(names), table.num_rows))
    for i, name in enumerate(names):
        feature, column = features[name], table.column(name)
        if isinstance(feature, CategoricalFeature):
            levels = pa.array(list(feature.levels)).cast(column.type)
            codes = pc.fill_null(pc.index_in(column, value_set=levels), -1)
            raw[i] = codes.to_numpy()
            if column.null_count:
                raw[i][pc.is_null(column).to_numpy()] = np.nan
        else:
            raw[i] = pc.cast(column, pa.float64()).to_numpy()
    return raw.T


def label_numbers(column: Any) -> NDArray[np.float64]:
    """Labels that are numbers, NaN where missing."""
    return np.asarray(pc.cast(column, pa.float64()).to_numpy(), dtype=np.float64)


def label_codes(column: Any, values: Sequence[Any]) -> NDArray[np.int64]:
    """Index of each label among `values`, -1 where it is missing or not listed."""
    known = pa.array(list(values)).cast(column.type)
    codes = pc.fill_null(pc.index_in(column, value_set=known), -1)
    return np.asarray(codes.to_numpy(), dtype=np.int64)
