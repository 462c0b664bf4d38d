"""Read a user's own rows, in a file or in memory, as a run's ingest read its rows (`RowFormat`).

Who they belong to is not known, so no message holds a value or a line of theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ldptree.encoding import CategoricalFeature, Encoding
from ldptree.errors import DataError
from schemas.dataset import ROW_NUMBER, TypedColumn
from schemas.row_format import RowFormat
from storage import tables
from storage.raw import raw_files
from storage.raw.formats.contents import file_kind
from storage.raw.public_rows import booleans
from storage.raw.raw_files import RawFile
from storage.raw.typed_rows import BAD, FAULT_COLUMN, FAULT_KIND, SQL_TYPES, TypedQuery, storage_type
from storage.sql import check_predicate, list_columns, literal, quote, scratch_cursor, suggest_name


@dataclass(frozen=True)
class OtherRows:
    """Rows of a file or of a table in memory, as a model reads them.

    made_of: the derived columns that are made here, and the raw columns that each is made of.
    """

    file: RawFile
    encoding: Encoding
    query: TypedQuery
    made_of: dict[str, tuple[str, ...]]
    where: str

    @classmethod
    def of(cls, source: Path | pa.Table, encoding: Encoding, rows: RowFormat, where: str) -> OtherRows:
        """Raises DataError where the source cannot be read, lacks a column, or has one of another type; `where` names it.

        A derived column is made of its raw columns where all of them are there, and else taken as it is.
        """
        made_of = {
            name: check_predicate(rows.derive[name], tuple(rows.types), f"derive.{name}")
            for name in encoding.columns
            if name in rows.derive
        }
        if isinstance(source, pa.Table):
            file = replace(raw_files.of_table(source, where), missing=rows.missing, timezone=rows.timezone)
        else:
            needed = [{name, *made_of.get(name, ())} for name in encoding.columns]
            file = _open(source, rows, needed)
        made_of = {
            name: used
            for name, used in made_of.items()
            if name not in file.columns or set(used) <= set(file.columns)
        }
        read = dict.fromkeys(c for name in encoding.columns for c in made_of.get(name, (name,)))
        _check_columns(file, tuple(read), made_of, where, rows)
        for feature in encoding.features:
            if isinstance(feature, CategoricalFeature) and feature.column in read:
                _check_written(file, feature, rows, where)
        kept = tuple(
            TypedColumn(name=name, type=rows.types[name], storage=storage_type(rows.types[name], None))
            for name in encoding.columns
        )
        query = TypedQuery(
            types={name: rows.types[name] for name in read},
            derive={name: rows.derive[name] for name in made_of},
            kept=kept,
            target="",
            holder=None,
            public=None,
            where=None,
        )
        return cls(file, encoding, query, made_of, where)

    def batches(self) -> Generator[NDArray[np.float64]]:
        """Raw matrices [rows, columns], as `ldptree.encoding` describes them. Raises DataError."""
        present: Counter[str] = Counter()
        made: Counter[str] = Counter()
        size = raw_files.batch_rows(len(self.query.types))
        with closing(raw_files.connect([self.file])) as connection:
            with closing(raw_files.stream(connection, self._with_sources(), self.file, size)) as batches:
                for batch in batches:
                    if booleans(batch.column(BAD), missing=True).any():
                        break
                    for name in self.made_of:
                        present[name] += pc.sum(batch.column(_of(name))).as_py() or 0
                        made[name] += batch.num_rows - batch.column(name).null_count
                    yield tables.raw_matrix(pa.Table.from_batches([batch]), self.encoding)
                else:
                    self._check_made(present, made)
                    return
            raise DataError(self._fault(connection))

    def _with_sources(self) -> str:
        """The typed rows, and for each column made here whether all that it is made of is there."""
        if not self.made_of:
            return self.query.rows(self.file)
        are_there = ", ".join(
            f"{' AND '.join(f'{quote(c)} IS NOT NULL' for c in used) or 'TRUE'} AS {quote(_of(name))}"
            for name, used in self.made_of.items()
        )
        return self.query.rows(self.file, more=are_there)

    def _check_made(self, present: Counter[str], made: Counter[str]) -> None:
        """Raises DataError where no row has a column that every row with its parts should have."""
        lost = [name for name in self.made_of if present[name] and not made[name]]
        if lost:
            parts = list_columns(self.made_of[lost[0]])
            raise DataError(
                f'{self.where}: "{lost[0]}" cannot be derived in any row. Write {parts} as in the rows that were learned from.'
            )

    def _fault(self, connection: Any) -> str:
        faults = self.query.faults(self.file)
        query = (
            f"SELECT {FAULT_COLUMN}, {FAULT_KIND}, {ROW_NUMBER} FROM ({faults}) ORDER BY {ROW_NUMBER} LIMIT 1"
        )
        ((column, kind, row),) = raw_files.guarded(lambda: connection.execute(query).fetchall(), self.file)
        return f'{self.where}, column "{column}": {kind}, first in row {row + 1:,}. Correct such values, or leave them empty.'


def _of(name: str) -> str:
    return f"{raw_files.INTERNAL}_of_{name}"


def _open(path: Path, rows: RowFormat, needed: Sequence[set[str]]) -> RawFile:
    """The file as the run's own was written; or below a header, which has one of each set `needed`. Raises DataError."""
    read = partial(
        raw_files.inspect,
        path,
        delimiter=rows.delimiter,
        nulls=rows.nulls,
        missing=rows.missing,
        encoding=rows.encoding,
        timezone=rows.timezone,
        sheets=rows.sheet if file_kind(path) == "workbook" else (),
        needs_rows=False,
    )
    if rows.skip or rows.columns:
        with suppress(DataError):
            names = read(is_whole=False).columns
            if not any(any_of.isdisjoint(names) for any_of in needed):
                return read()
    return read(skip=rows.skip, columns=rows.columns)


def _check_columns(
    file: RawFile, read: Sequence[str], made_of: dict[str, tuple[str, ...]], where: str, rows: RowFormat
) -> None:
    """Raises DataError where a column that is read is not there, or holds what cannot be read."""
    for name in read:
        if name not in file.columns:
            made = next((derived for derived, used in made_of.items() if name in used), None)
            reads = "which the model reads" if made is None else f"of which {made!r} is derived"
            hint = (
                "" if rows.model else " What a run derives is derived where its run.json is beside the model."
            )
            raise DataError(
                f"{where}: lacks the column {name!r}, {reads}{suggest_name(name, file.columns)}.{hint}"
            )
        if file.family(name) is None:
            raise DataError(f"{where}: lists, structs and bytes cannot be read, as in the column {name!r}.")


def _check_written(file: RawFile, feature: CategoricalFeature, rows: RowFormat, where: str) -> None:
    """Raise DataError if no value of a column's type is written like its levels, all of which would be unknown."""
    family = file.family(feature.column)
    if rows.types[feature.column] != "text" or family in ("text", None):
        return
    texts = ", ".join(literal(str(level)) for level in feature.levels)
    written = f"CAST(TRY_CAST(level AS {SQL_TYPES[family]}) AS VARCHAR) = level"
    counted = scratch_cursor().execute(
        f"SELECT bool_or(coalesce({written}, FALSE)) FROM (SELECT unnest([{texts}]) AS level)"
    )
    if not counted.fetchall()[0][0]:
        raise DataError(
            f"{where}: column {feature.column!r} is of type {family}, another type than the model was learned on: what was "
            "learned are texts, none of them written as such a value is. Write it as text."
        )
