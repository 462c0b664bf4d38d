"""Scoring a table with a model: Parquet in, Parquet out, a row group at a time. No step of a run: what a user does with
its model.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import secrets
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldptree.errors import ArtifactCorrupt, ConfigError, DataError
from ldptree.model import Model
from storage import tables


def load_model(path: Path) -> Model:
    """The model in a file. Raises DataError where there is none, ArtifactCorrupt where it is another file or changed."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file. A run says where its model.json is.") from None
    except IsADirectoryError:
        raise DataError(f"{path}: a folder. Name the model.json in it.") from None
    except (OSError, UnicodeDecodeError):
        raise ArtifactCorrupt(f"{path}: not a model's JSON.") from None
    try:
        return Model.from_json(text)
    except DataError as fault:
        raise ArtifactCorrupt(f"{path}: {fault}") from None


def predict_file(model: Path, data: Path, out: Path) -> int:
    """Write the predicted class and the probability of each class for every row; returns the rows.

    Raises ArtifactCorrupt: not a whole model; DataError: the data cannot be read, a column is missing or of another
    type; ConfigError: `out` cannot be written, or is one of the two.
    """
    loaded = load_model(model)
    source = _open(data)
    if out.is_dir() or not out.parent.is_dir():
        raise ConfigError(
            f"--out {out}: {'a folder' if out.is_dir() else f'there is no folder {out.parent}'}. Name a file."
        )
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
    classes = np.array([str(value) for value in loaded.classes], dtype=object)
    names = [f"probability of {value}" for value in classes]
    schema = pa.schema([("prediction", pa.string()), *((name, pa.float64()) for name in names)])
    aside = out.with_name(f".{out.name}-{secrets.token_hex(4)}")
    rows = 0
    try:
        with tables.writer(aside, schema) as sink:
            for group in range(source.num_row_groups):
                nodes = loaded.nodes(_read(source, group, loaded, data))
                said, probability = classes[loaded.decision[nodes]], loaded.probability[nodes]
                sink.write_table(
                    pa.table(
                        [pa.array(said, pa.string()), *(pa.array(p) for p in probability.T)], schema=schema
                    )
                )
                rows += nodes.size
        aside.replace(out)
    except OSError as fault:
        reason = os.strerror(fault.errno) if fault.errno else type(fault).__name__
        raise ConfigError(f"--out {out}: cannot be written ({reason}).") from None
    finally:
        with contextlib.suppress(OSError):  # where it could not be made, it need not go
            aside.unlink(missing_ok=True)
    return rows


def _open(data: Path) -> pq.ParquetFile:
    if not data.is_file():
        raise DataError(f"{data}: {'a folder' if data.is_dir() else 'no such file'}. Name a Parquet file.")
    try:
        return pq.ParquetFile(data)
    except (OSError, pa.ArrowInvalid):
        raise DataError(f"{data}: not a whole Parquet file.") from None


def _read(source: pq.ParquetFile, group: int, model: Model, data: Path) -> NDArray[np.float64]:
    """The raw matrix of a row group. Raises DataError."""
    try:
        table = source.read_row_group(group, columns=list(model.encoding.columns))
    except (OSError, pa.ArrowException):
        raise DataError(f"{data}: damaged in row group {group}.") from None
    try:
        return tables.raw_matrix(table, model.encoding)
    except pa.ArrowException:
        wrong = next(c for c in model.encoding.columns if not _fits(table, model, c))
        raise DataError(
            f"{data}: column {wrong!r} is {table.schema.field(wrong).type}, "
            "another type than the model was learned on."
        ) from None


def _fits(table: pa.Table, model: Model, column: str) -> bool:
    try:
        tables.raw_matrix(table, model.encoding, [column])
    except pa.ArrowException:
        return False
    return True
