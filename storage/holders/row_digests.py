"""Who a row is where each row is a holder: a keyed digest of everything that the raw file says in it, whatever the file's format.

The digest is of values, by the names of their columns: 7000, 7000.0 and 07000 are one value, and so are a date and its text. The
order of rows and of columns, the delimiter, line ends, compression and the run's own settings (types, what is dropped or missing)
have no part in it. Which of several equal rows one is, is in `row_copies`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.compiled import compiled
from schemas.dataset import RESERVED
from storage import tables
from storage.digests import Hasher
from storage.raw import raw_files
from storage.raw.raw_files import INTERNAL, RawFile
from storage.sql import literal, quote
from storage.stable_hash import GOLDEN, mixed

EXACT = 2**53
"""Whole numbers below it are exact in a float; larger ones are compared digit by digit."""
MISSING = ("", "na", "n/a", "nan", "null", "none", "nat", "<na>", "?")
"""What is taken for a missing value, in any case, whatever a run's `nulls` are."""
CHAIN = 64
BLANKS = " \t\n\r\v\f\u00a0\u2007\u202f\u3000\u200b\ufeff"


@dataclass(frozen=True)
class RowDigests:
    """Writes who each private row is: a file of digests, uint64, beside each Parquet file of private rows."""

    folder: Path
    keyed: Hasher
    skip_bad_lines: bool = False

    @contextmanager
    def running(self, connection: Any, file: RawFile) -> Iterator[_Running]:
        """Compute the digests of `file` in a thread, while its rows are written."""
        cursor = connection.cursor()
        with ThreadPoolExecutor(1, "row digests") as pool:
            running = _Running(
                self.folder,
                file.first_row,
                pool.submit(digests_of, cursor, file, self.keyed, skip_bad_lines=self.skip_bad_lines),
            )
            try:
                yield running
            except BaseException:
                cursor.interrupt()
                raise


@dataclass(frozen=True)
class _Running:
    """The digests of one raw file or piece of one, on their way."""

    folder: Path
    first_row: int
    digests: Future[NDArray[np.uint64]]

    def write(self, private: Path) -> None:
        """Keep those of the rows in `private`, in their order. Raises DataError where the raw file cannot be read."""
        rows = [np.asarray(table.column(RESERVED)) for table in tables.batches([private], [RESERVED])]
        places = np.concatenate(rows) - self.first_row
        np.save(self.folder / f"{private.stem}.npy", self.digests.result()[places])


def digests_of(
    connection: Any, file: RawFile, keyed: Hasher, *, skip_bad_lines: bool = False
) -> NDArray[np.uint64]:
    """The digest of every row of a raw file, uint64 [rows], in the file's order."""
    keys = [_key(keyed, column) for column in file.columns]
    query = _canonical_rows(file, skip_bad_lines=skip_bad_lines and file.kind == "csv")
    found = [
        _digests(batch, keys)
        for batch in raw_files.stream(connection, query, file, raw_files.batch_rows(len(file.columns)))
    ]
    return np.concatenate(found) if found else np.empty(0, np.uint64)


def _name(column: str) -> str:
    """A column by its name, whatever its case: SQL does not tell names apart by that either."""
    return unicodedata.normalize("NFC", column.strip(BLANKS)).lower()


def _key(keyed: Hasher, column: str) -> int:
    return int(keyed.of_value(["row", _name(column)])[:16], 16)


def _digests(batch: Any, keys: Sequence[int]) -> NDArray[np.uint64]:
    """A sum over columns, so that their order does not count; what is missing adds nothing."""
    total: NDArray[np.uint64] = batch.column(len(keys)).fill_null(0).to_numpy().copy()
    for index, key in enumerate(keys):
        numbers = batch.column(index).to_numpy(zero_copy_only=False)  # NaN where NULL
        _add_numbers(total, numbers, np.uint64((key + GOLDEN) % 2**64))
    return mixed(total, _seal(keys))


@compiled
def _add_numbers(total: NDArray[np.uint64], numbers: NDArray[np.float64], key: np.uint64) -> None:
    """Add `stable_hash.mixed` of each plain number to its row, in one pass.

    Whole numbers count as they are, others to single precision: a file may have been written in either.
    """
    plain = np.empty(1, np.float64)
    bits = plain.view(np.uint64)
    for row in range(len(numbers)):
        number = numbers[row]
        if not abs(number) < EXACT:  # nothing, or text
            continue
        if number != np.trunc(number):
            number = np.float64(np.float32(number))
        plain[0] = number + 0.0  # -0 becomes 0
        z = bits[0] + key
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        total[row] += z ^ (z >> np.uint64(31))


def _seal(keys: Sequence[int]) -> int:
    """The holders' key for what texts add, whose own hash has none."""
    return sum(keys)


def _canonical_rows(file: RawFile, *, skip_bad_lines: bool) -> str:
    """SQL: of each column its number or NULL (DOUBLE), then a hash of all that is text in the row (UBIGINT) or NULL."""
    aliases = {column: f"{INTERNAL}_{index}" for index, column in enumerate(file.columns)}
    raw = replace(file, nulls=("",)).select(
        file.columns, list(aliases.values()), skip_bad_lines=skip_bad_lines
    )
    values = ", ".join(
        f"{_value(file, column, quote(alias))} AS {quote(alias)}" for column, alias in aliases.items()
    )
    numbers = {column: quote(f"{alias}_number") for column, alias in aliases.items()}
    cast = ", ".join(
        f"TRY_CAST({quote(aliases[column])} AS DOUBLE) AS {number}" for column, number in numbers.items()
    )
    texts = ", ".join(
        _column_text(column, quote(aliases[column]), numbers[column]) for column in sorted(aliases, key=_name)
    )
    # One comparison for a row of plain numbers, as most are: a sum is as large as each of them, and NULL where one is.
    is_plain = f"{_sum([f'abs({number})' for number in numbers.values()])} < {EXACT}"
    # MD5 as a mixer that no DuckDB release changes, not for secrecy: it is mixed with the holders' key, and stays with them.
    text = f"CASE WHEN {is_plain} THEN NULL ELSE md5_number_lower(nullif(concat({texts}), '')) END"
    return f"SELECT {', '.join(numbers.values())}, {text} FROM (SELECT *, {cast} FROM (SELECT {values} FROM ({raw})))"


def _value(file: RawFile, column: str, raw: str) -> str:
    """A number as it is, anything else as text."""
    is_number = file.family(column) in ("integer", "number")
    return raw if is_number or file.kind == "csv" else f"CAST({raw} AS VARCHAR)"


def _column_text(column: str, raw: str, number: str) -> str:
    """What a column adds to the text of a row: nothing where it is missing, or counts as a number."""
    text = f"{literal(_name(column))} || chr(31) || {_text(f'CAST({raw} AS VARCHAR)', number)} || chr(30)"
    return f"CASE WHEN {raw} IS NULL OR isnan({number}) OR abs({number}) < {EXACT} THEN NULL ELSE {text} END"


def _text(raw: str, number: str) -> str:
    """The canonical text of what is no plain number; NULL where it is missing."""
    text = f"trim({raw}, {literal(BLANKS)})"
    missing = ", ".join(literal(word) for word in MISSING)
    whole = f"coalesce(TRY_CAST(TRY_CAST({text} AS HUGEINT) AS VARCHAR), lower({text}))"
    moment = f"coalesce(TRY_CAST(TRY_CAST({text} AS TIMESTAMP) AS VARCHAR), nfc_normalize({text}))"
    return (
        f"CASE WHEN lower({text}) IN ({missing}) THEN NULL WHEN {number} IS NOT NULL THEN {whole} "
        f"WHEN lower({text}) IN ('true', 'false') THEN lower({text}) "
        f"WHEN {text} LIKE '____-__-__%' THEN {moment} ELSE nfc_normalize({text}) END"
    )


def _sum(values: Sequence[str]) -> str:
    """A sum as a tree: a single chain would be as deep as it is long, and depth is limited."""
    if len(values) <= CHAIN:
        return f"({' + '.join(values)})"
    return _sum([_sum(values[i : i + CHAIN]) for i in range(0, len(values), CHAIN)])
