"""Names in the holders' column: a whole number or a text, in one canonical form for each person.

Whole numbers written as floats are whole numbers (7000.0 is 7000), and leading zeros of whole numbers do not count. Texts are
trimmed and in Unicode's composed form (NFC), and otherwise kept: 007 and 7 are two texts. The type of a column is declared, or
the file's own, or found from public rows; never from private ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldptree.errors import DataError, ProtocolMismatch
from schemas.dataset import ColumnType, DatasetSpec
from storage.holders.row_digests import BLANKS, EXACT
from storage.raw import raw_files
from storage.raw.public_rows import PublicRows
from storage.raw.raw_files import RawFile
from storage.sql import literal, quote

NameType = Literal["integer", "text"]
WORDS = {"integer": "whole numbers", "text": "texts"}
NUMBER = r"^[+-]?\d{1,18}(\.\d*)?([eE][+-]?\d+)?$"
"""What a number looks like that may be a name; with more digits it is a text, of which every digit counts."""


def name_type(
    spec: DatasetSpec,
    files: Sequence[RawFile],
    connection: Any,
    public: PublicRows,
    rule_types: Mapping[str, ColumnType],
) -> ColumnType:
    """How the names in the holders' column of raw files are read: as integers or texts, or as they are declared.

    Raises DataError where names are texts, and a file has them as floating-point numbers.
    """
    column = spec.holder
    declared = spec.types.get(column)
    families = {file.family(column) for file in files}
    found: ColumnType
    if declared is not None:
        found = declared
    elif families <= {"integer", "number"}:
        found = "integer"
    elif families & {"boolean"}:
        found = "text"
    else:
        found = _shown_by_public_rows(column, files, connection, public, rule_types)
    if found == "text" and "number" in families:
        declare = f'dataset.types = {{"{column}" = "integer"}}'
        raise DataError(
            f'column "{column}" (the holder): floating-point numbers, where names are texts. Write them as texts, or declare '
            f"them whole numbers: {declare}."
        )
    return found


def check_name_type(column: str, found: str, known: str | None, where: str) -> None:
    """Raises ProtocolMismatch where names of one column were of another type before."""
    if known is None or known == found:
        return
    raise ProtocolMismatch(
        f'column "{column}" (the holder): {WORDS[found]}, and in {where} its names were {WORDS[known]}: one person would count '
        "as two. Nobody was asked. Write the column as it was written first, or, where only the type is told otherwise, set "
        f'dataset.types = {{"{column}" = "{known}"}}.'
    )


def hash_names(path: Path, column: str) -> NDArray[np.uint64]:
    """A 64-bit hash of the name in each row of a Parquet file of typed rows, the same in every work folder.

    Raises DataError where a column that was derived holds numbers that are not whole.
    """
    name = quote(column)
    if _is_float(path, column):
        whole = f"TRY_CAST({name} AS BIGINT)"
        name = f"CASE WHEN abs({name}) < {EXACT} AND CAST({whole} AS DOUBLE) = {name} THEN {whole} END"
    is_text = pa.types.is_string(pq.read_schema(path).field(column).type)
    text = f"nfc_normalize(trim({name}, {literal(BLANKS)}))" if is_text else f"({name})::VARCHAR"
    hashed = _hashed(path, text)
    if np.ma.is_masked(hashed):
        raise DataError(
            f'column "{column}" (the holder): not a whole number in private rows. Derive a whole number or a text.'
        )
    return np.asarray(hashed, dtype=np.uint64)


def hash_names_as_floats(path: Path, column: str) -> NDArray[np.uint64]:
    """The same as earlier versions hashed numbers that were floats, or had a declared range: 7000 as 7000.0. [0] of texts."""
    if type_of_stored_names(path, column) == "text":
        return np.empty(0, np.uint64)
    return np.asarray(_hashed(path, f"{quote(column)}::DOUBLE::VARCHAR"), dtype=np.uint64)


def _hashed(path: Path, text: str) -> Any:
    import duckdb

    # No temporary directory: one would hold names in the working folder.
    with duckdb.connect(config={"temp_directory": ""}) as connection:
        # MD5 as a mixer that no DuckDB release changes, not for secrecy: this stays in the holders' zone.
        query = f"SELECT md5_number_lower({text}) AS h FROM read_parquet({literal(str(path))})"
        return connection.execute(query).fetchnumpy()["h"]


def type_of_stored_names(path: Path, column: str) -> NameType:
    """The type of the names in a Parquet file of typed rows."""
    kind = pq.read_schema(path).field(column).type
    return "integer" if pa.types.is_integer(kind) or pa.types.is_floating(kind) else "text"


def _is_float(path: Path, column: str) -> bool:
    return bool(pa.types.is_floating(pq.read_schema(path).field(column).type))


def type_of_names(kind: ColumnType) -> NameType:
    """The type of the names in a typed column."""
    return "integer" if kind in ("integer", "number") else "text"


def _shown_by_public_rows(
    column: str,
    files: Sequence[RawFile],
    connection: Any,
    public: PublicRows,
    rule_types: Mapping[str, ColumnType],
) -> NameType:
    import polars as pl

    n_names = n_numbers = 0
    for index, file in enumerate(files):
        if column in rule_types:  # public whole
            query = file.select([column], [column], skip_bad_lines=file.kind == "csv")
            batches: Iterator[Any] = raw_files.stream(connection.cursor(), query, file, raw_files.BATCH_ROWS)
        else:
            batches = public.raw_batches(connection.cursor(), file, index, [column], rule_types)
        for batch in batches:
            names = pl.DataFrame(batch)[column].cast(pl.String).str.strip_chars()
            names = names.filter(names.is_not_null() & ~names.is_in(list(file.nulls)))
            n_names += len(names)
            n_numbers += int(names.str.contains(NUMBER).sum())
    return "integer" if n_names and n_numbers == n_names else "text"
