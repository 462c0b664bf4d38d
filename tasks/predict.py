"""Scoring a table with a model: Parquet in, Parquet out, a row group at a time. No step of a run: what a user does with
its model.
"""

from __future__ import annotations

import difflib
import secrets
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldptree.errors import ConfigError, DataError
from ldptree.model import Model
from storage import tables


def load_model(path: Path) -> Model:
    """The model in a file. Raises DataError."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file. A run says where its model.json is.") from None
    except (OSError, UnicodeDecodeError):
        raise DataError(f"{path}: not a model's JSON.") from None
    try:
        return Model.from_json(text)
    except DataError as fault:
        raise DataError(f"{path}: {fault}") from None


def predict_file(model: Path, data: Path, out: Path) -> int:
    """Write the predicted class and the probability of each class for every row; returns the rows.

    Raises DataError: the model or the data cannot be read, a column is missing; ConfigError: `out` cannot be written.
    """
    loaded = load_model(model)
    source = _open(data)
    if out.is_dir() or not out.parent.is_dir():
        raise ConfigError(
            f"--out {out}: {'a folder' if out.is_dir() else f'there is no folder {out.parent}'}. Name a file."
        )
    missing = [column for column in loaded.encoding.columns if column not in source.schema_arrow.names]
    if missing:
        near = difflib.get_close_matches(missing[0], source.schema_arrow.names, n=1)
        hint = f" (there is {near[0]!r})" if near else ""
        raise DataError(f"{data}: lacks the column {missing[0]!r}{hint}, which the model reads.")
    names = [f"probability of {value}" for value in loaded.classes]
    schema = pa.schema([("prediction", pa.string()), *((name, pa.float64()) for name in names)])
    aside = out.with_name(f".{out.name}-{secrets.token_hex(4)}")
    rows = 0
    try:
        with tables.writer(aside, schema) as sink:
            for group in range(source.num_row_groups):
                table = source.read_row_group(group, columns=list(loaded.encoding.columns))
                probability = loaded.predict_proba(_raw(table, loaded, data))
                said = np.asarray([str(c) for c in loaded.classes], dtype=object)[probability.argmax(axis=1)]
                sink.write_table(
                    pa.table(
                        [pa.array(said, pa.string()), *(pa.array(p) for p in probability.T)], schema=schema
                    )
                )
                rows += table.num_rows
        aside.replace(out)
    except OSError as fault:
        raise ConfigError(f"--out {out}: cannot be written ({fault.strerror}).") from None
    finally:
        aside.unlink(missing_ok=True)
    return rows


def _open(data: Path) -> pq.ParquetFile:
    if not data.is_file():
        raise DataError(f"{data}: {'a folder' if data.is_dir() else 'no such file'}. Name a Parquet file.")
    try:
        return pq.ParquetFile(data)
    except (OSError, pa.ArrowInvalid):
        raise DataError(f"{data}: not a whole Parquet file.") from None


def _raw(table: pa.Table, model: Model, data: Path) -> NDArray[np.float64]:
    try:
        return tables.raw_matrix(table, model.encoding)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise DataError(f"{data}: a column has another type than the model was learned on.") from None
