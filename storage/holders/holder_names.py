"""Read names in the holders' column as whole numbers or texts, in one canonical form for each person.

Whole numbers written as floats are whole numbers (7000.0 is 7000), and leading zeros of whole numbers do not count. Texts have
the spelling that a client gives them (`ldptree.protocol.ledger.name_of`), and are otherwise kept: 007 and 7 are two texts, as are
Zoe and zoe. The type of a column is declared, or the file's own, or told by public rows; never by private ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldptree.errors import DataError, ProtocolMismatch
from ldptree.protocol.ledger import name_of
from schemas.dataset import ColumnType, DatasetSpec
from storage.raw import raw_files
from storage.raw.public_rows import PublicSelection
from storage.raw.raw_files import RawFile
from storage.sql import quote

NameType = Literal["integer", "text"]
WORDS = {"integer": "whole numbers", "text": "texts"}
NUMBER = r"^[+-]?\d{1,18}(\.\d*)?([eE][+-]?\d+)?$"
"""What a number looks like that may be a name; with more digits it is a text, of which every digit counts."""
EXACT = 2**53
"""Whole numbers below it are exact in a float."""
NOT_PLAIN = "[^ -~]|^ | $"
"""What a text may have that has more than one spelling; all others are spelled as they are."""


def name_type(
    spec: DatasetSpec,
    files: Sequence[RawFile],
    connection: Any,
    public: PublicSelection,
    rule_types: Mapping[str, ColumnType],
) -> ColumnType:
    """Return the type of the names in the holders' column of raw files, as declared, or else integers or texts.

    Raises DataError where names are texts, and a file has them as floating-point numbers.
    """
    column = spec.holder
    declared = spec.types.get(column)
    families = {file.family(column) for file in files}
    kind: ColumnType
    if declared is not None:
        kind = declared
    elif families <= {"integer", "number"}:
        kind = "integer"
    elif families & {"boolean"}:
        kind = "text"
    else:
        kind = _shown_by_public_rows(column, files, connection, public, rule_types)
    if kind == "text" and "number" in families:
        declare = f'dataset.types = {{"{column}" = "integer"}}'
        raise DataError(
            f'column "{column}" (the holder): floating-point numbers, where names are texts. Write them as texts, or declare '
            f"them whole numbers: {declare}."
        )
    return kind


def check_name_type(column: str, kind: str, known: str | None, where: str) -> None:
    """Raises ProtocolMismatch where names of one column were of another type before."""
    if known is None or known == kind:
        return
    raise ProtocolMismatch(
        f'column "{column}" (the holder): {WORDS[kind]}, and in {where} its names were {WORDS[known]}: one person would count '
        "as two. Nobody was asked. Write the column as it was written first, or, where only the type is told otherwise, set "
        f'dataset.types = {{"{column}" = "{known}"}}.'
    )


def hash_names(path: Path, column: str) -> NDArray[np.uint64]:
    """A 64-bit hash of the name in each row of a Parquet file of typed rows, the same in every work folder.

    Raises DataError where a column that was derived holds numbers that are not whole.
    """
    import duckdb

    names, name = pq.read_table(path, columns=[column]), quote(column)
    kind = names.schema.field(column).type
    if pa.types.is_string(kind):
        names = pa.table({column: pa.chunked_array(map(_spelled, names.column(column).chunks), kind)})
    elif pa.types.is_floating(kind):
        whole = f"TRY_CAST({name} AS BIGINT)"
        name = f"CASE WHEN abs({name}) < {EXACT} AND CAST({whole} AS DOUBLE) = {name} THEN {whole} END"
    # No temporary directory: one would hold names in the working folder.
    with duckdb.connect(config={"temp_directory": ""}) as connection:
        # MD5 as a mixer that no DuckDB release changes, not for secrecy: this stays in the holders' zone.
        query = f"SELECT md5_number_lower(({name})::VARCHAR) AS h FROM names"
        hashed = connection.register("names", names).execute(query).fetchnumpy()["h"]
    if np.ma.is_masked(hashed):
        raise DataError(
            f'column "{column}" (the holder): not a whole number in private rows. Derive a whole number or a text.'
        )
    return np.asarray(hashed, dtype=np.uint64)


def _spelled(names: pa.Array) -> pa.Array:
    """Texts in their one spelling."""
    has_others = pc.match_substring_regex(names, NOT_PLAIN)
    others = [name_of(name) for name in names.filter(has_others).to_pylist()]
    return pc.replace_with_mask(names, has_others, pa.array(others, names.type)) if others else names


def type_of_stored_names(path: Path, column: str) -> NameType:
    """The type of the names in a Parquet file of typed rows."""
    kind = pq.read_schema(path).field(column).type
    return "integer" if pa.types.is_integer(kind) or pa.types.is_floating(kind) else "text"


def type_of_names(kind: ColumnType) -> NameType:
    """The type of the names in a typed column."""
    return "integer" if kind in ("integer", "number") else "text"


def _shown_by_public_rows(
    column: str,
    files: Sequence[RawFile],
    connection: Any,
    public: PublicSelection,
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


Hashes = NDArray[np.uint64]
MANY = 1 << 16


def merge(ordered: Hashes, more: Hashes) -> Hashes:
    """Merge two sorted lists with a stable sort, which merges the two runs that it finds."""
    if not len(ordered):
        return more
    return np.sort(np.concatenate([ordered, more]), kind="stable")


def place_in(ordered: Hashes, hashes: Hashes) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return where each hash first stands in a sorted list, and whether it is there, [n]."""
    if not len(ordered):
        return np.zeros(len(hashes), np.int64), np.zeros(len(hashes), bool)
    at = np.minimum(_search(ordered, hashes), len(ordered) - 1)
    return at, ordered[at] == hashes


def _search(ordered: Hashes, values: Hashes) -> NDArray[np.int64]:
    """`np.searchsorted`, which walks long lists many times faster in their own order."""
    if len(ordered) < MANY or np.all(values[1:] >= values[:-1]):
        return np.searchsorted(ordered, values)
    order = np.argsort(values)
    places = np.empty(len(values), np.int64)
    places[order] = np.searchsorted(ordered, values[order])
    return places
