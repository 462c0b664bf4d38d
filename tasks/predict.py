"""Scoring a table with a model: Parquet or CSV in, Parquet out, a batch at a time; or a frame. No step of a run: what a user does
with its model.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldptree.encoding import Encoding
from ldptree.errors import ArtifactCorrupt, ConfigError, DataError
from ldptree.models import Model, read_model
from schemas.named_files import A_FOLDER, check_output, read_fault, shown_path, written_whole
from storage import foreign_tables, tables
from storage.raw import raw_files
from storage.raw.raw_files import RawFile
from storage.sql import quote


def load_model(path: Path) -> Model:
    """The model in a file. Raises DataError where there is none, ArtifactCorrupt where it is another file or changed."""
    if (fault := read_fault(path)) is not None:
        remedy = "Name the model.json in it" if fault == A_FOLDER else "A run says where its model.json is"
        raise DataError(f"{shown_path(path)}: {fault}. {remedy}.")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ArtifactCorrupt(f"{path}: not a model's JSON.") from None
    try:
        return read_model(text)
    except DataError as refusal:
        raise ArtifactCorrupt(f"{path}: {refusal}") from None


def predict_file(model: Path, data: Path, out: Path) -> int:
    """Write what the model answers to every row (`Model.predict_columns`); returns the rows.

    Raises ArtifactCorrupt: not a whole model; DataError: the data cannot be read, a column is missing or of another
    type; ConfigError: `out` cannot be written, or is one of the two.
    """
    loaded = load_model(model)
    if (fault := read_fault(data)) is not None:
        raise DataError(f"{shown_path(data)}: {fault}. Name a CSV or Parquet file.")
    names, read = _rows_of(data, loaded.encoding)
    check_output(out, "--out")
    if any(out.exists() and out.samefile(path) for path in (model, data)):
        raise ConfigError(f"--out {out}: that is what is read. Name another file.")
    check_columns(loaded, names, str(data))
    empty = _answered(loaded, np.empty((0, len(loaded.encoding.columns))))
    rows = 0
    with (
        written_whole(out, "--out") as aside,
        tables.writer(aside, empty.schema) as sink,
        closing(read()) as batches,
    ):
        for batch in batches:
            predicted = _answered(loaded, _raw_matrix(batch, loaded.encoding, str(data)))
            sink.write_table(predicted)
            rows += predicted.num_rows
    return rows


def predict_table(model: Model, table: pa.Table) -> pa.Table:
    """What a model answers to every row of a table in memory, a row each. Raises DataError as `predict_file` does."""
    check_columns(model, table.column_names, "the table")
    return _answered(model, _raw_matrix(table, model.encoding, "the table"))


def check_columns(model: Model, names: Sequence[str], where: str) -> None:
    """Raises DataError where a column that the model reads is not there, or there twice."""
    twice = [column for column in model.encoding.columns if list(names).count(column) > 1]
    if twice:
        raise DataError(f"{where}: has the column {twice[0]!r} twice. Rename one.")
    missing = [column for column in model.encoding.columns if column not in names]
    if missing:
        near = difflib.get_close_matches(missing[0], names, n=1)
        hint = f" (there is {near[0]!r})" if near else ""
        raise DataError(f"{where}: lacks the column {missing[0]!r}{hint}, which the model reads.")


def _answered(model: Model, raw: NDArray[np.float64]) -> pa.Table:
    """What the model says of raw rows [n, columns], a row each; two classes may be one text, so names may be the same."""
    columns = model.predict_columns(raw)
    texts = [pa.array(values, pa.string() if values.dtype == object else None) for _, values in columns]
    return pa.table(texts, names=[name for name, _ in columns])


def _rows_of(data: Path, encoding: Encoding) -> tuple[Sequence[str], Callable[[], Generator[pa.Table]]]:
    """The columns of a file, and what reads its rows in batches. Raises DataError."""
    if raw_files.file_kind(data) == "parquet":
        source = _open(data)
        return source.schema_arrow.names, partial(_read_groups, source, encoding, data)
    file = raw_files.inspect(data)
    return file.columns, partial(_read_text, file, encoding)


def _open(data: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(data)
    except (OSError, pa.ArrowInvalid):
        raise DataError(f"{data}: not a whole Parquet file.") from None


def _read_groups(source: pq.ParquetFile, encoding: Encoding, data: Path) -> Generator[pa.Table]:
    """The row groups of a Parquet file. Raises DataError."""
    for group in range(source.num_row_groups):
        try:
            yield source.read_row_group(group, columns=list(encoding.columns))
        except (OSError, pa.ArrowException):
            raise DataError(f"{data}: damaged in row group {group}.") from None


def _read_text(file: RawFile, encoding: Encoding) -> Generator[pa.Table]:
    """The rows of a CSV, a batch at a time, every column text without blanks around it. Raises DataError."""
    names = list(dict.fromkeys(encoding.columns))
    with closing(raw_files.connect([file])) as connection:
        trimmed = ", ".join(f"nullif(trim({quote(name)}), '') AS {quote(name)}" for name in names)
        query = f"SELECT {trimmed} FROM ({file.select(names, names)})"
        for batch in raw_files.stream(connection, query, file, raw_files.batch_rows(len(names))):
            yield pa.Table.from_batches([batch])


def _raw_matrix(table: pa.Table, encoding: Encoding, where: str) -> NDArray[np.float64]:
    try:
        return foreign_tables.raw_matrix(table, encoding)
    except DataError as fault:
        raise DataError(f"{where}: {fault}.") from None
