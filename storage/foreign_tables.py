"""Read a table of a user's own with the casts of the exported SELECT (`ldptree.models.export.sql`), in DuckDB.

Tables that a run typed itself are read by `tables`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ldptree.encoding import CategoricalFeature, Encoding, Feature
from ldptree.errors import DataError
from ldptree.models.export.sql import kind_of, levels_of, literal, quote, typed_value

_REMEDIES = {
    "DOUBLE": "not every value is a number",
    "BOOLEAN": "not every value is true or false (also read so: t and f, yes and no, y and n, 1 and 0)",
    "VARCHAR": "it cannot be written as text",
}


def raw_matrix(table: pa.Table, encoding: Encoding) -> NDArray[np.float64]:
    """The raw matrix [rows, columns] of all of the encoding's columns, as `ldptree.encoding` describes it.

    Raises:
        DataError: a column cannot be read as what it was learned as; names it, and quotes no value.
    """
    raw = np.empty((len(encoding.features), table.num_rows))
    with duckdb.connect(":memory:") as connection:
        for i, feature in enumerate(encoding.features):
            column = _plain(table.column(feature.column))
            with _faults_without_values(feature, table.schema.field(feature.column).type):
                # By a name of ours: to DuckDB, names that differ in case only are one.
                connection.register("given", pa.table({"value": column}))
                raw[i] = _coded(feature, _typed(connection, feature))
    return raw.T


def _plain(column: Any) -> Any:
    """Without the encodings that Arrow has and DuckDB has not, or reads as types of their own."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column


def _typed(connection: duckdb.DuckDBPyConnection, feature: Feature) -> Any:
    """The column "value" of the table "given" as it was learned. Raises duckdb.Error, DataError."""
    value = quote("value")
    table = connection.sql(f"SELECT {typed_value(feature, value)} AS {value} FROM given").to_arrow_table()
    if isinstance(feature, CategoricalFeature) and kind_of(feature) == "VARCHAR":
        ((kind, *_),) = connection.execute("SELECT column_type FROM (DESCRIBE given)").fetchall()
        # Of the texts that were learned, one at least must be what a value of this type is written as.
        texts = ", ".join(literal(level) for level in levels_of(feature))
        written = f"CAST(TRY_CAST(level AS {kind}) AS VARCHAR) = level"
        query = f"SELECT bool_or(coalesce({written}, FALSE)) FROM (SELECT unnest([{texts}]) AS level)"
        is_null = pa.types.is_null(table.column("value").type) or table.column("value").null_count == len(
            table
        )
        if not is_null and not connection.execute(query).fetchall()[0][0]:
            raise DataError(
                f"what was learned are texts, none of them written as a {kind} is; write it as text"
            )
    return table.column("value")


def _coded(feature: Feature, column: Any) -> NDArray[np.float64]:
    """Numbers as they are, categories as their index among the levels, NaN where missing."""
    if not isinstance(feature, CategoricalFeature):
        return np.asarray(column.cast(pa.float64()).to_numpy())
    levels = pa.array(levels_of(feature)).cast(column.type)
    codes = pc.fill_null(pc.index_in(column, value_set=levels), -1).to_numpy().astype(np.float64)
    codes[pc.is_null(column).to_numpy()] = np.nan
    return np.asarray(codes)


@contextlib.contextmanager
def _faults_without_values(feature: Feature, kind: pa.DataType) -> Iterator[None]:
    """Replace a library's fault, which may quote values of the column, by one that quotes none."""
    try:
        yield
    except (DataError, duckdb.Error, pa.ArrowException, ValueError) as fault:
        reason = str(fault) if isinstance(fault, DataError) else _REMEDIES[kind_of(feature)]
        raise DataError(
            f"column {feature.column!r} is {kind}, another type than the model was learned on: {reason}"
        ) from None
