"""Rows that do not match the spec. Public ones are listed in one message, or put into quarantine as they came.

A private one is asked like any other, and reports "outside": what is wrong with it is in the holders' list of faults alone. But
where its holder has no name, nobody can be asked. Rows are written in row groups of a fixed size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import DataError
from schemas.dataset import ROW_NUMBER
from schemas.families import estimators_for
from storage.private_files import append_privately
from storage.raw import raw_files, typed_rows
from storage.raw.public_rows import PublicSelection, booleans
from storage.raw.raw_files import RawFile, batch_rows
from storage.raw.typed_rows import FAULT_COLUMN, FAULT_KIND, FAULT_VALUE, SELECTED, TypedQuery

FAULTS_LISTED = 1000
COLUMNS_LISTED = 10
Fault = tuple[bool, int, str, str, str]
"""A bad row, with whether it is public, its number, and the column, kind and value of its first fault."""

_NO_NUMBER = (
    "Correct it, or choose another dataset.target. For a label of classes set model.estimator to "
    f'{" or ".join(estimators_for("class"))}, and dataset.label = "class".'
)
_NO_NAME = (
    "Holders are named by whole numbers or by texts: correct it, or declare the names texts "
    '(types = {{"{column}" = "text"}}).'
)
_REMEDIES = {
    "not a number": 'Correct it, or declare the column a text (types = {{"{column}" = "text"}}).',
    "not an integer": 'Correct it, or declare the column a "number" or a "text" (types = {{"{column}" = "text"}}).',
    "not true or false": 'Correct it, or declare the column a text (types = {{"{column}" = "text"}}).',
    typed_rows.LABEL_MISSING: "Fill it in, or leave such rows out with where = '\"{column}\" IS NOT NULL'.",
    typed_rows.FLOAT_NAME: 'Write the names in "{column}" whole, in all their digits (pandas: read them with dtype=str).',
    typed_rows.HOLDER_MISSING: "Every row needs its holder. Fill it in.",
    typed_rows.TOO_WIDE: "Correct it, or widen ranges.",
}


@dataclass(frozen=True)
class FaultList:
    """The holders' list of faults, a text file with a fault on each line, tab-separated."""

    path: Path

    def note(self, *cells: str | None) -> None:
        """One line more."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        line = "\t".join(" ".join((cell or "").split()) for cell in cells) + "\n"
        with append_privately(self.path) as stream:
            stream.write(line.encode())

    def note_lines(self, file: RawFile, lines: Sequence[tuple[int, str, str]]) -> None:
        """The first of the lines of a file that are no rows."""
        for line, kind, text in lines[:FAULTS_LISTED]:
            self.note(file.name, f"line {line}", "", kind, text)

    def __str__(self) -> str:
        """Say where it is."""
        return str(self.path)


@dataclass(frozen=True, kw_only=True)
class BadRows:
    """The bad rows of raw file number `index`, and its lines that are no rows. `piece` is the part of the file read
    here, while faults are reported for the whole file.
    """

    file: RawFile
    piece: RawFile
    name: str
    """Of the Parquet file of the rows that are kept."""
    index: int
    query: TypedQuery
    public: PublicSelection
    faults: FaultList
    skip_bad_lines: bool

    def message(self, connection: Any) -> str:
        """Say what stops a run, with kinds by column, and line, value and count of public rows alone. Private rows stop
        it only by their names, as who takes part is not protected.
        """
        seen: Counter[tuple[bool, str, str]] = Counter()
        examples: dict[tuple[str, str], tuple[int, str]] = {}
        for _, _, faults in self._batches(connection, self.file):
            for is_public, row, column, kind, value in faults:
                if is_public:
                    examples.setdefault((column, kind), (row, value))
                if is_public or column == self.query.holder:
                    seen[is_public, column, kind] += 1
        pairs = list(dict.fromkeys((column, kind) for _, column, kind in seen))
        lines = []
        for column, kind in pairs[:COLUMNS_LISTED]:
            parts = []
            if (column, kind) in examples:
                row, value = examples[column, kind]
                count = seen[True, column, kind]
                rows = "1 public row" if count == 1 else f"{count} public rows, first"
                parts.append(f"{rows} at row {row + 1:,}" + ("" if value is None else f": {value[:60]!r}"))
            if (False, column, kind) in seen:
                parts.append(f"private rows (details in {self.faults})")
            lines.append(f'column "{column}": {kind} in {" and ".join(parts)}')
        if len(pairs) > COLUMNS_LISTED:
            lines.append(f"and so on, {len(pairs)} columns in all")
        column, kind = pairs[0]
        is_label = self.query.numeric and column == self.query.target
        needs_number = is_label and kind in ("not a number", "not an integer")
        remedy = _NO_NUMBER if needs_number else _REMEDIES[kind].format(column=column)
        if column == self.query.holder and kind == "not an integer":
            remedy = _NO_NAME.format(column=column)
        return f'{self.file.name}, {"; ".join(lines)}. {remedy} Or set on_bad_rows = "quarantine".'

    def note(self, connection: Any, public: Path) -> None:
        """Note private ones in the list of faults; write public ones, as raw text with their first fault, into a folder."""
        hidden = {FAULT_COLUMN: "_column", FAULT_KIND: "_kind"}
        with closing(RowGroupWriter(public / "quarantine" / self.name)) as writer:
            for batch, is_public, _ in self._batches(connection, self.piece):
                columns = [*hidden, *self.query.types]
                table = _table(batch, columns).rename_columns([hidden.get(name, name) for name in columns])
                writer.write(table.filter(is_public))

    def rejected_lines(self) -> list[tuple[int, str, str]]:
        """The first lines of a CSV that cannot be parsed, after a read that had to stop."""
        if self.file.kind != "csv":
            return []
        with raw_files.connect([self.file]) as connection:
            everything = self.file.select(self.file.columns, self.file.columns, skip_bad_lines=True)
            try:
                raw_files.guarded(
                    lambda: connection.execute(f"SELECT count(*) FROM ({everything})").fetchall(), self.file
                )
            except DataError:
                return []
            return raw_files.rejected_lines(connection, FAULTS_LISTED)

    def _batches(
        self, connection: Any, file: RawFile
    ) -> Iterator[tuple[Any, NDArray[np.bool_], list[Fault]]]:
        """The bad rows of `file` with their first fault and raw text; which of them are public; their faults, of which the first
        private ones are noted on the way.
        """
        listed = 0
        query = self.query.faults(file, skip_bad_lines=self.skip_bad_lines)
        rows = raw_files.batch_rows(len(self.query.types))
        for batch in raw_files.stream(connection, query, file, rows):
            chosen = batch.filter(booleans(batch.column(SELECTED), missing=True))
            is_public = self.public.among(self.index, chosen, chosen.column(ROW_NUMBER).to_numpy())
            names = (ROW_NUMBER, FAULT_COLUMN, FAULT_KIND, FAULT_VALUE)
            values = (chosen.column(name).to_pylist() for name in names)
            faults: list[Fault] = list(zip(is_public.tolist(), *values, strict=True))
            private = [fault for fault in faults if not fault[0]]
            for _, row, column, kind, value in private[: FAULTS_LISTED - listed]:
                self.faults.note(self.file.name, f"row {row + 1}", column, kind, value)
            listed = min(listed + len(private), FAULTS_LISTED)
            yield chosen, is_public, faults


def _table(batch: Any, columns: Sequence[str]) -> Any:
    import pyarrow as pa

    return pa.table([batch.column(name) for name in columns], names=list(columns))


class RowGroupWriter:
    """One Parquet file in row groups of a fixed size, made when its first row comes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_rows = 0
        self._waiting: list[Any] = []
        self._n_waiting = 0
        self._writer: Any = None

    def write(self, table: Any) -> None:
        """Take rows in; write every row group that is full."""
        if not table.num_rows:
            return
        self._waiting.append(table)
        self._n_waiting += table.num_rows
        self.n_rows += table.num_rows
        size = batch_rows(table.num_columns)
        while self._n_waiting >= size:
            self._flush(size)

    def close(self) -> None:
        """Write what is left, and the footer."""
        if self._n_waiting:
            self._flush(self._n_waiting)
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _flush(self, size: int) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        whole = pa.concat_tables(self._waiting)
        group, rest = whole.slice(0, size).combine_chunks(), whole.slice(size)
        self._waiting, self._n_waiting = ([rest], rest.num_rows) if rest.num_rows else ([], 0)
        if self._writer is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = parquet.ParquetWriter(
                self.path,
                group.schema,
                compression="zstd",
                use_dictionary=[name for name in group.column_names if name != ROW_NUMBER],
                column_encoding={ROW_NUMBER: "DELTA_BINARY_PACKED"}
                if ROW_NUMBER in group.column_names
                else None,
                store_schema=False,
            )
        self._writer.write_table(group, row_group_size=size)
