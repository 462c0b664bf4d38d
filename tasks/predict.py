"""Scoring a table with a model: Parquet in, Parquet out, a row group at a time. No step of a run: what a user does with
its model.
"""

from __future__ import annotations

import difflib
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
    source = _open(data)
    check_output(out, "--out")
    if any(out.exists() and out.samefile(path) for path in (model, data)):
        raise ConfigError(f"--out {out}: that is what is read. Name another file.")
    twice = [column for column in loaded.encoding.columns if source.schema_arrow.names.count(column) > 1]
    if twice:
        raise DataError(f"{data}: has the column {twice[0]!r} twice. Rename one.")
    missing = [column for column in loaded.encoding.columns if column not in source.schema_arrow.names]
    if missing:
        near = difflib.get_close_matches(missing[0], source.schema_arrow.names, n=1)
        hint = f" (there is {near[0]!r})" if near else ""
        raise DataError(f"{data}: lacks the column {missing[0]!r}{hint}, which the model reads.")
    empty = _answered(loaded, np.empty((0, len(loaded.encoding.columns))))
    rows = 0
    with written_whole(out, "--out") as aside, tables.writer(aside, empty.schema) as sink:
        for group in range(source.num_row_groups):
            predicted = _answered(loaded, _read(source, group, loaded.encoding, data))
            sink.write_table(predicted)
            rows += predicted.num_rows
    return rows


def _answered(model: Model, raw: NDArray[np.float64]) -> pa.Table:
    """What the model says of raw rows [n, columns], a row each; two classes may be one text, so names may be the same."""
    columns = model.predict_columns(raw)
    texts = [pa.array(values, pa.string() if values.dtype == object else None) for _, values in columns]
    return pa.table(texts, names=[name for name, _ in columns])


def _open(data: Path) -> pq.ParquetFile:
    if (fault := read_fault(data)) is not None:
        raise DataError(f"{shown_path(data)}: {fault}. Name a Parquet file.")
    try:
        return pq.ParquetFile(data)
    except (OSError, pa.ArrowInvalid):
        raise DataError(f"{data}: not a whole Parquet file.") from None


def _read(source: pq.ParquetFile, group: int, encoding: Encoding, data: Path) -> NDArray[np.float64]:
    """The raw matrix of a row group. Raises DataError."""
    try:
        table = source.read_row_group(group, columns=list(encoding.columns))
    except (OSError, pa.ArrowException):
        raise DataError(f"{data}: damaged in row group {group}.") from None
    try:
        return foreign_tables.raw_matrix(table, encoding)
    except DataError as fault:
        raise DataError(f"{data}: {fault}.") from None
