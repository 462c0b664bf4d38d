"""Rows that do not match the spec: listed in one message, or put into quarantine as they came.

The faults of a zone's rows stay in that zone. A message gives line, value and count for public rows only; for private rows it
gives the column and the kind of fault, and the rest is in the holders' list of faults.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import DataError
from schemas.dataset import RESERVED
from schemas.families import estimators_for
from storage.holders.private_files import append_privately
from storage.raw import raw_files, typed_rows
from storage.raw.public_rows import PublicRows, booleans
from storage.raw.raw_files import RawFile
from storage.raw.row_groups import RowGroupWriter
from storage.raw.typed_rows import ASKED, FAULT_COLUMN, FAULT_KIND, FAULT_VALUE, TypedQuery

FAULTS_LISTED = 1000
COLUMNS_LISTED = 10
Kinds = Counter[tuple[str, str]]
"""How many faults of each (column, kind); the column is "" for a line that is no row."""

Fault = tuple[bool, int, str, str, str]
"""Of a bad row: is it public, its number, and its first fault's column, kind and value."""

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
    """The holders' list of faults: a text file, a fault a line, tab-separated."""

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
        """Where it is."""
        return str(self.path)


@dataclass(frozen=True, kw_only=True)
class BadRows:
    """The bad rows of raw file number `index`, and its lines that are no rows. `piece`: what is read of the file here; what is
    wrong is told of the whole file.
    """

    file: RawFile
    piece: RawFile
    name: str
    """Of the Parquet file of the rows that are kept."""
    index: int
    query: TypedQuery
    public: PublicRows
    faults: FaultList
    skip_bad_lines: bool

    def message(self, connection: Any) -> str:
        """What is wrong: kinds by column; line, value and count of public rows alone."""
        found: Counter[tuple[bool, str, str]] = Counter()
        examples: dict[tuple[str, str], tuple[int, str]] = {}
        for _, _, faults in self._batches(connection, self.file):
            for zone, row, column, kind, value in faults:
                found[zone, column, kind] += 1
                if zone:
                    examples.setdefault((column, kind), (row, value))
        pairs = list(dict.fromkeys((column, kind) for _, column, kind in found))
        lines = []
        for column, kind in pairs[:COLUMNS_LISTED]:
            parts = []
            if (column, kind) in examples:
                row, value = examples[column, kind]
                line = raw_files.line_of_row(self.file, row)
                where = f"row {row + 1}" if line is None else f"line {line}"
                count = found[True, column, kind]
                rows = "1 public row" if count == 1 else f"{count} public rows, first"
                parts.append(f"{rows} at {where}" + ("" if value is None else f": {value[:60]!r}"))
            if (False, column, kind) in found:
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

    def quarantine(self, connection: Any, folders: Mapping[bool, Path]) -> Kinds:
        """Write them, as raw text with their first fault, under the folder of their zone (public or not)."""
        hidden = {FAULT_COLUMN: "_column", FAULT_KIND: "_kind"}
        kinds: Kinds = Counter()
        writers = {
            zone: RowGroupWriter(folder / "quarantine" / self.name) for zone, folder in folders.items()
        }
        try:
            for batch, is_public, faults in self._batches(connection, self.piece):
                columns = [RESERVED, *hidden, *self.query.types]
                table = _table(batch, columns).rename_columns([hidden.get(name, name) for name in columns])
                for zone, writer in writers.items():
                    writer.write(table.filter(is_public == zone))
                kinds.update((column, kind) for _, _, column, kind, _ in faults)
        finally:
            for writer in writers.values():
                writer.close()
        return kinds

    def quarantine_lines(self, lines: Sequence[tuple[int, str, str]], holders: Path) -> Kinds:
        """Write lines that are no rows under the holders' folder: whose they are cannot be told, so they are private."""
        import pyarrow as pa

        if not lines:
            return Counter()
        numbers, kinds, texts = (list(column) for column in zip(*lines, strict=True))
        writer = RowGroupWriter(holders / "quarantine" / f"lines-{self.index:04d}.parquet")
        writer.write(pa.table({"_line": pa.array(numbers, pa.int64()), "_kind": kinds, "_text": texts}))
        writer.close()
        self.faults.note_lines(self.file, lines)
        return Counter(("", kind) for kind in kinds)

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
            chosen = batch.filter(booleans(batch.column(ASKED), missing=True))
            is_public = self.public.among(self.index, chosen, chosen.column(RESERVED).to_numpy())
            names = (RESERVED, FAULT_COLUMN, FAULT_KIND, FAULT_VALUE)
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
