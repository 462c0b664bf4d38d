"""Score a table with a model, from a file to Parquet or CSV in batches, or as a frame. This is for users of a model and
no step of a run. Beside the `run.json` of its run, a model reads raw rows as that run did (`other_rows`); alone, it
reads columns of its own names.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow.csv import CSVWriter
from pydantic import ValidationError

from ldptree.errors import ArtifactCorrupt, ConfigError, DataError
from ldptree.models import SUMMARY, Model, read_model
from ldptree.models.export.sql import kind_of
from ldptree.plain_text import escape_cell
from schemas.dataset import ColumnType
from schemas.named_files import BUCKETS, MOST_DOCUMENT, check_output, read_fault, shown_path, written_whole
from schemas.row_format import RowFormat
from storage import tables
from storage.formats import unstamped
from storage.frames import FRAME
from storage.raw import raw_files
from storage.raw.other_rows import OtherRows
from storage.raw.typed_rows import SQL_TYPES
from storage.sql import UTC, by_clock, check_predicate, literal, quote

DERIVED, OWN = "ldptree derived", "ldptree row"
"""In SQL, the table with its derived columns, and a whole row of the table."""
TYPES: dict[str, ColumnType] = {"DOUBLE": "number", "BOOLEAN": "boolean", "VARCHAR": "text"}
WRITERS = {".parquet": tables.writer, ".csv": CSVWriter}
"""What writes a table, by the ending of its file."""


def load_model(path: Path) -> Model:
    """The model in a file, or in a run's folder.

    Raises DataError where there is none, ArtifactCorrupt where it is another file or changed.
    """
    path = model_file(path)
    if (fault := read_fault(path, MOST_DOCUMENT)) is not None:
        shown, remedy = shown_path(path), "Name a run's folder, or the model.json in it"
        if shown.startswith(BUCKETS):
            fault, remedy = "in a bucket", "Copy it here, and the run.json beside it"
        raise DataError(f"{shown}: {fault}. {remedy}.")
    beside = path.with_name(SUMMARY)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ArtifactCorrupt(f"{path}: not a model's JSON.") from None
    try:
        return read_model(text, None if read_fault(beside, MOST_DOCUMENT) else beside.read_bytes())
    except DataError as refusal:
        raise ArtifactCorrupt(f"{path}: {refusal}") from None


def model_file(path: Path) -> Path:
    """The file of a model that is named by itself, or by its run's folder."""
    try:
        return path / "model.json" if path.is_dir() else path
    except OSError:  # a name too long: reading tells of it
        return path


def row_format_of(model: Model) -> RowFormat | None:
    """Return how the run of a model read its rows, from its summary if that is of this model.

    Raises ArtifactCorrupt where the summary is damaged.
    """
    if model.summary is None:
        return None
    where = f"{SUMMARY}, beside the model"
    remedy = "Copy it from the run's folder again, or take it away: then the model reads columns of its own names alone."
    try:
        stated = unstamped(model.summary, where, "run", remedy).get("row_format")
        rows = None if stated is None else RowFormat.model_validate(stated)
    except ValidationError:
        raise ArtifactCorrupt(f"{where}: damaged. {remedy}") from None
    return rows if rows is not None and rows.model == model.digest else None


def export_sql(model: Model, table: str) -> str:
    """The model's SELECT over a table (`Model.to_sql`) that derives columns as its run did, where its summary says that.

    Raises ConfigError as `Model.to_sql`, ArtifactCorrupt as `row_format_of`.
    """
    rows = row_format_of(model)
    made = (
        {}
        if rows is None
        else {name: rows.derive[name] for name in model.columns_needed if name in rows.derive}
    )
    plain = (
        []
        if rows is None
        else [name for name in model.columns_needed if name in rows.missing and name not in made]
    )
    if rows is None or not (made or plain):
        return model.to_sql(table)
    about, _, select = model.to_sql(DERIVED).partition("\nWITH ")
    source = quote(table)
    if plain:
        there = (
            f"{raw_files.without_values(quote(name), rows.missing[name])} AS {quote(name)}" for name in plain
        )
        source = f"(SELECT * REPLACE ({', '.join(there)}) FROM {source})"
    if not made:
        return f"{about}\nWITH {quote(DERIVED)} AS (\n  SELECT * FROM {source}\n),\n{select}"
    used = dict.fromkeys(
        column for name, text in made.items() for column in check_predicate(text, tuple(rows.types), name)
    )
    missing = ", ".join(literal(text) for text in dict.fromkeys(("", *rows.nulls)))
    raw = []
    for name in used:
        own = raw_files.without_values(f"{quote(OWN)}.{quote(name)}", rows.missing.get(name, ()))
        text = f"trim(CAST({own} AS VARCHAR))"
        is_there = f"CASE WHEN {text} NOT IN ({missing}) THEN {text} END"
        raw.append(f"TRY_CAST({is_there} AS {SQL_TYPES[rows.types[name]]}) AS {quote(name)}")
    derived = [
        f"TRY_CAST(TRY(({by_clock(text, rows.timezone or UTC)}\n)) AS {SQL_TYPES[rows.types[name]]}) AS {quote(name)}"
        for name, text in made.items()
    ]
    others = f"COLUMNS(lambda name: name NOT IN ({', '.join(map(literal, made))}))"
    return (
        f"{about}\nWITH {quote(DERIVED)} AS (\n  SELECT unnest({quote(OWN)}), {', '.join(derived)}\n"
        f"  FROM (SELECT {quote(OWN)}, {', '.join(raw)} FROM (SELECT {others} FROM {source}) AS {quote(OWN)})\n"
        f"),\n{select}"
    )


def predict_file(model: Path, data: Path, out: Path) -> int:
    """Write what the model answers to every row (`Model.predict_columns`), as the ending of `out` says; returns the rows.

    Raises ArtifactCorrupt: not a whole model; DataError: the data cannot be read, a column is missing or of another
    type; ConfigError: `out` cannot be written, has another ending, or is one of the two.
    """
    loaded = load_model(model)
    answers = predict_rows(loaded, data)
    check_output(out, "--out")
    if out.suffix.lower() not in WRITERS:
        raise ConfigError(
            f"--out {shown_path(out)}: answers are written as Parquet or as CSV. Name a file that ends in {' or '.join(WRITERS)}."
        )
    if any(out.exists() and out.samefile(path) for path in (model_file(model), data)):
        raise ConfigError(f"--out {out}: that is what is read. Name another file.")
    rows = 0
    write = WRITERS[out.suffix.lower()]
    prepare = _for_sheets if write is CSVWriter else lambda table: table
    with written_whole(out, "--out") as aside, write(aside, prepare(_empty(loaded)).schema) as sink:
        for predicted in answers:
            sink.write_table(prepare(predicted))
            rows += predicted.num_rows
    return rows


def _for_sheets(table: pa.Table) -> pa.Table:
    """Return the same table, its classes as no spreadsheet computes and no terminal acts on them."""
    for index, column in enumerate(table.columns):
        if pa.types.is_string(column.type):
            named = column.combine_chunks().dictionary_encode()
            names = pa.array(map(escape_cell, named.dictionary.to_pylist()), pa.string())
            table = table.set_column(index, table.field(index), names.take(named.indices))
    return table.rename_columns(list(map(escape_cell, table.column_names)))


def predict_table(model: Model, source: Path | pa.Table) -> pa.Table:
    """Predict every row, a row each. Raises DataError as `predict_file` does."""
    return pa.Table.from_batches(
        [batch for table in predict_rows(model, source) for batch in table.to_batches()],
        _empty(model).schema,
    )


def predict_rows(model: Model, source: Path | pa.Table) -> Iterator[pa.Table]:
    """Predict the rows of a file or of a frame, a batch at a time. Raises as `read_raw`."""
    return _answers(model, read_raw(model, source))


def read_matrix(model: Model, source: Path | pa.Table) -> NDArray[np.float64]:
    """The rows as one raw matrix [n, columns]. Raises as `read_raw`."""
    with closing(read_raw(model, source)()) as matrices:
        return np.concatenate([_no_rows(model), *matrices])


def read_raw(model: Model, source: Path | pa.Table) -> Callable[[], Generator[NDArray[np.float64]]]:
    """Read the rows of a file or of a frame as raw matrices [n, columns], a batch at a time.

    Raises DataError: at once where the source cannot be read or lacks a column, later where a value is of another type;
    ArtifactCorrupt as `row_format_of`.
    """
    where = FRAME
    if not isinstance(source, pa.Table):
        where = str(source)
        if (fault := read_fault(source)) is not None:
            raise DataError(f"{shown_path(source)}: {fault}. Name a CSV or Parquet file.")
    rows = row_format_of(model) or RowFormat.of_names(
        {feature.column: TYPES[kind_of(feature)] for feature in model.encoding.features}
    )
    return OtherRows.of(source, model.encoding, rows, where).batches


def _answers(model: Model, read: Callable[[], Generator[NDArray[np.float64]]]) -> Generator[pa.Table]:
    with closing(read()) as matrices:
        for raw in matrices:
            yield _answered(model, raw)


def _empty(model: Model) -> pa.Table:
    return _answered(model, _no_rows(model))


def _no_rows(model: Model) -> NDArray[np.float64]:
    return np.empty((0, len(model.encoding.columns)))


def _answered(model: Model, raw: NDArray[np.float64]) -> pa.Table:
    """Return the predictions of raw rows [n, columns], a row each; two classes may be one text, so names may be the same."""
    columns = model.predict_columns(raw)
    texts = [pa.array(values, pa.string() if values.dtype == object else None) for _, values in columns]
    return pa.table(texts, names=[name for name, _ in columns])
