"""Raw files as they come, CSV and Parquet, or a table in memory: looked at before they are trusted, opened in a locked DuckDB.

What the columns mean is not known here: a raw CSV column is text, and `tasks.data.ingest` makes types of it. No message
holds a value of a row; what DuckDB says about a faulty line (it quotes the line) is put into words of our own.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import os
import queue
import re
import threading
import zlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar

from ldptree.errors import DataError
from schemas.named_files import A_FOLDER, read_fault, shown_path
from storage.machine_faults import machine_fault
from storage.sql import list_columns, literal, quote

Result = TypeVar("Result")
Family = Literal["text", "integer", "number", "boolean"]

DELIMITERS = (",", ";", "\t", "|")
DELIMITER_NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
BLOCK = 4 << 20
LONGEST_LINE = 2 << 20
LONGEST_PREAMBLE = 64 << 10
"""Bytes that tell a file's format."""
BATCH_ROWS = 131_072
BATCH_CELLS = 1 << 24
MOST_COLUMNS = 4_000
"""Columns that a run reads: DuckDB's plan of a query, and so its time and memory, grow faster than they do."""
ROW = "_row"
INTERNAL = "_ldptree"
"""The start of the names that queries use inside; no file may use it."""
TABLE = f"{INTERNAL}_table"

_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
_OTHER_FORMATS = {
    b"PK\x03\x04": "a zip archive or an Excel workbook. Unpack it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook. Save the sheet as CSV",
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"BZh": "bzip2-compressed. Unpack it, or use gzip",
    b"\xfd7zXZ": "xz-compressed. Unpack it, or use gzip",
    b"\x28\xb5\x2f\xfd": "zstd-compressed. Unpack it, or use gzip",
    b"<": "HTML or XML, perhaps a web page saved in place of the data",
    b"{": "JSON. Convert it to CSV or Parquet",
    b"[{": "JSON. Convert it to CSV or Parquet",
}
_ARFF = re.compile(rb"(?:\s*%[^\n]*\n)*\s*@relation\b", re.IGNORECASE)
_NOT_UTF_8 = (
    "not UTF-8 text. Convert it, for example with: iconv -f cp1252 -t utf-8 (Windows-1252 is what spreadsheets write; "
    "Latin-1 is a part of it), or save it as UTF-8."
)
# The longer marks first: that of UTF-16 begins that of UTF-32.
_WIDE_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
# What DuckDB's reject table calls a fault, and what we call it.
_LINE_FAULTS = {
    "MISSING COLUMNS": "wrong number of fields",
    "TOO MANY COLUMNS": "wrong number of fields",
    "UNQUOTED VALUE": "broken quotes",
    "LINE SIZE OVER MAXIMUM": "a line of more than 2 MiB",
    "INVALID ENCODING": "not UTF-8",
}


@dataclass(frozen=True, kw_only=True)
class RawFile:
    """One raw file that has been looked at: its columns in order, and how to read it. A table in memory is one, too."""

    path: Path
    kind: Literal["csv", "parquet", "table"]
    columns: tuple[str, ...]
    families: tuple[Family | None, ...]
    """What each column is by the file's own word: text for all of a CSV; None where no such type can be used."""
    delimiter: str = ","
    has_header: bool = True
    blank_lines: int = 0
    """Blank lines before the first that is not."""
    is_gzipped: bool = False
    nulls: tuple[str, ...] = ("",)
    table: Any = field(default=None, repr=False, compare=False)
    """The rows of a table in memory."""

    @property
    def name(self) -> str:
        """The file's name, as messages call it."""
        return self.path.name

    def family(self, column: str) -> Family | None:
        """What `column` is by the file's own word."""
        return self.families[self.columns.index(column)]

    def select(self, columns: Sequence[str], aliases: Sequence[str], *, skip_bad_lines: bool = False) -> str:
        """A SELECT of `columns`, in the file's order of rows, under `aliases`.

        A CSV's columns are text with `nulls` as NULL. With `skip_bad_lines`, lines that cannot be parsed are left
        out and remembered for `rejected_lines`; else they are an error.
        """
        if self.kind != "csv":
            chosen = ", ".join(
                f"{quote(column)} AS {quote(alias)}" for column, alias in zip(columns, aliases, strict=True)
            )
            rows = quote(TABLE) if self.kind == "table" else f"read_parquet({literal(str(self.path))})"
            return f"SELECT {chosen} FROM {rows}"
        positions = {column: index for index, column in enumerate(self.columns)}
        chosen = ", ".join(
            f"c{positions[column]} AS {quote(alias)}" for column, alias in zip(columns, aliases, strict=True)
        )
        names = ", ".join(f"'c{index}': 'VARCHAR'" for index in range(len(self.columns)))
        nulls = ", ".join(literal(text) for text in self.nulls)
        options = [
            "auto_detect = false",
            f"header = {literal(self.has_header)}",
            f"skip = {self.blank_lines}",
            f"delim = {literal(self.delimiter)}",
            "quote = '\"'",
            "escape = '\"'",
            f"columns = {{{names}}}",
            f"nullstr = [{nulls}]",
            f"compression = {literal('gzip' if self.is_gzipped else 'none')}",
            f"max_line_size = {LONGEST_LINE}",
        ]
        if skip_bad_lines:
            options += ["ignore_errors = true", "store_rejects = true"]
        return f"SELECT {chosen} FROM read_csv({literal(str(self.path))}, {', '.join(options)})"


def inspect(
    path: Path,
    *,
    delimiter: str | None = None,
    columns: Sequence[str] = (),
    nulls: Sequence[str] = ("",),
    needs_rows: bool = True,
) -> RawFile:
    """Look at one file: every byte of a text (encoding, NULs, a gzip's end), a Parquet's footer, the header.

    `columns` names the columns of a CSV without a header. Raises DataError on a file that is missing, unreadable,
    empty, in another format, damaged, or whose header is not one; where it `needs_rows`, also on one with a header alone.
    """
    kind = file_kind(path)
    if kind == "parquet":
        return _inspect_parquet(path, needs_rows)
    _check_bytes(path, is_gzipped=kind == "gzip")
    return _inspect_csv(
        path, kind == "gzip", delimiter, tuple(columns), tuple(nulls) or ("",), needs_rows=needs_rows
    )


def of_table(table: Any, name: str) -> RawFile:
    """A table in memory, under the name that messages call it. Raises DataError where its names are not those of columns."""
    path, names = Path(name), tuple(table.schema.names)
    _check_names(path, names)
    families = tuple(_family(kind) for kind in table.schema.types)
    return RawFile(path=path, kind="table", columns=names, families=families, table=table)


def first_fields(path: Path, delimiter: str | None = None) -> list[str]:
    """The fields of a text's first line that is not blank, split at `delimiter` or at what splits it into most.

    None of a Parquet. Raises DataError where the start tells already that the file cannot be read.
    """
    kind = file_kind(path)
    if kind == "parquet":
        return []
    check_start(path)
    start = _start_of(path, is_gzipped=kind == "gzip")
    records = _first_records(start, delimiter or _delimiter(path, start, None, 0))
    return [cell.strip() for cell in records[0]] if records else []


def check_start(path: Path) -> None:
    """Raises DataError where the first block of a file tells already that it cannot be read: what costs no time to know."""
    kind = file_kind(path)
    if kind != "parquet":
        _check_bytes(path, is_gzipped=kind == "gzip", blocks=1)


def file_kind(path: Path) -> Literal["parquet", "gzip", "text"]:
    """What the first bytes of a file say that it is. Raises DataError where they say that it cannot be read."""
    if (fault := read_fault(path)) is not None:
        glob = f', or a glob such as "{path.name}/*.csv"' if fault == A_FOLDER else ""
        raise DataError(f"{shown_path(path)}: {fault}. Name a file{glob}.")
    start = _first_bytes(path)
    if not start:
        raise DataError(f"{path.name}: the file is empty (0 bytes). Name another, or leave it out.")
    if start.startswith(_PARQUET) or path.suffix.lower() == ".parquet":
        return "parquet"
    for magic, what in _OTHER_FORMATS.items():
        if start.removeprefix(codecs.BOM_UTF8).startswith(magic):
            raise DataError(f"{path.name}: not a CSV file: it is {what}.")
    if _ARFF.match(start):
        raise DataError(f"{path.name}: not a CSV file: it is ARFF. Convert it to CSV or Parquet.")
    return "gzip" if start.startswith(_GZIP) else "text"


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(LONGEST_PREAMBLE)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({os.strerror(error.errno or 0)}).") from None


def connect(files: Sequence[RawFile]) -> Any:
    """A DuckDB connection in memory that can read `files` and nothing else, and whose settings are locked."""
    import duckdb

    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "temp_directory": ""})
    paths = ", ".join(literal(str(file.path)) for file in files if file.table is None)
    for file in files:
        if file.table is not None:
            connection.register(TABLE, file.table)
    connection.execute("SET enable_progress_bar = false")
    # A longer IN list would become a join, whose rows come out of order. The search for common subexpressions
    # takes minutes on tables of thousands of columns.
    connection.execute("SET disabled_optimizers = 'in_clause,common_subexpressions'")
    connection.execute(f"SET allowed_paths = [{paths}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def batch_rows(n_columns: int) -> int:
    """Rows to a batch and to a row group: 131,072, fewer for wide tables, a power of two."""
    fitting = max(BATCH_CELLS // max(n_columns, 1), 1024)
    return int(min(BATCH_ROWS, 1 << (fitting.bit_length() - 1)))


def stream(connection: Any, query: str, file: RawFile, rows: int) -> Generator[Any]:
    """The result of `query` as Arrow record batches of at most `rows` rows, in the file's order.

    Two batches are read ahead in a thread, so that reading goes on while the caller writes; memory stays bounded.
    Raises DataError, with no value of a row in it or behind it.
    """
    ready: queue.Queue[Any] = queue.Queue(maxsize=2)
    is_over = threading.Event()

    def read() -> None:
        try:
            reader = guarded(lambda: connection.sql(query).to_arrow_reader(rows), file)
            while not is_over.is_set() and (batch := guarded(lambda: next(reader, None), file)) is not None:
                ready.put(batch)
            ready.put(None)
        except BaseException as error:
            ready.put(error)

    thread = threading.Thread(target=read, name=f"read {file.name}", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        is_over.set()
        while thread.is_alive():
            with contextlib.suppress(queue.Empty):
                ready.get(timeout=0.01)


def guarded(work: Callable[[], Result], file: RawFile) -> Result:
    """What `work` returns; DuckDB's errors as a DataError in our words, those of the machine as what they are.

    After its first batch a reader raises DuckDB's errors as an OSError without a number.
    DuckDB quotes the offending line, so its exception must not hang on ours: ours is raised when that one is gone.
    """
    import duckdb
    import pyarrow

    try:
        return work()
    except (duckdb.Error, pyarrow.ArrowException, OSError) as error:
        refused = machine_fault(error)
        fault = _in_words(str(error))
    raise refused or DataError(f"{file.name}: {fault}")


def rejected_lines(connection: Any, limit: int | None = None) -> list[tuple[int, str, str]]:
    """(line number, kind of fault, text of the line) of the lines that `skip_bad_lines` has left out so far."""
    most = "" if limit is None else f" LIMIT {limit}"
    rows = connection.execute(
        f"SELECT line, error_type::VARCHAR, any_value(csv_line) FROM reject_errors GROUP BY ALL ORDER BY line{most}"
    ).fetchall()
    return [(int(line), _LINE_FAULTS.get(kind, "not CSV"), str(text)) for line, kind, text in rows]


def line_of_row(file: RawFile, row: int) -> int | None:
    """The line, from 1, on which data row `row`, from 0, of a CSV begins; None where that cannot be told."""
    if file.kind != "csv":
        return None
    before = 0
    with (
        open_text(file.path, is_gzipped=file.is_gzipped) as stream,
        io.TextIOWrapper(stream, "utf-8-sig", newline="") as text,
    ):
        reader = csv.reader(text, delimiter=file.delimiter)
        target = row + (1 if file.has_header else 0)
        try:
            for record in reader:
                if record or len(file.columns) == 1:
                    if target == 0:
                        return before + 1
                    target -= 1
                before = reader.line_num
        except csv.Error:
            return None
    return None


def open_text(path: Path, *, is_gzipped: bool) -> BinaryIO:
    """The bytes of a text file, unpacked. Raises OSError."""
    return gzip.open(path, "rb") if is_gzipped else path.open("rb")  # type: ignore[return-value]


def _check_bytes(path: Path, *, is_gzipped: bool, blocks: int | None = None) -> None:
    """Read the whole text once, or its first `blocks`: UTF-8, no NUL, something in it; a gzip to its end. Raises DataError."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_blank = True
    fault = ""
    n_read = 0
    try:
        with open_text(path, is_gzipped=is_gzipped) as stream:
            while block := stream.read(BLOCK):
                if not n_read and (wide := _wide_encoding(block)):
                    fault = f"{wide} text. Convert it, for example with: iconv -f {wide.lower()} -t utf-8, or save it as UTF-8."
                    break
                if b"\0" in block:
                    fault = "has a NUL byte in it: not a text file, or a damaged one. Take it out, or name another file."
                    break
                if not block.isascii() or decoder.getstate()[0]:
                    decoder.decode(block)
                is_blank = is_blank and not block.strip()
                n_read += 1
                if n_read == blocks:
                    return
            else:
                decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        fault = _NOT_UTF_8
    except (EOFError, zlib.error, gzip.BadGzipFile):
        fault = "the gzip file is truncated or damaged. Fetch or write it again."
    except OSError as error:
        fault = f"cannot be read ({error.strerror})."
    if not fault and is_blank:
        fault = "the file is empty: nothing but blank lines."
    if fault:
        raise DataError(f"{path.name}: {fault}")


def _wide_encoding(start: bytes) -> str:
    """UTF-16 or UTF-32, by its mark; or, of a text without one, UTF-16 by every second byte being NUL. Else ''."""
    for mark, name in _WIDE_MARKS.items():
        if start.startswith(mark):
            return name
    first = start[: 1 << 12]
    for offset, name in ((1, "UTF-16LE"), (0, "UTF-16BE")):
        if len(first) > 8 and not any(first[offset::2]) and all(first[1 - offset :: 2]):
            return name
    return ""


def _start_of(path: Path, *, is_gzipped: bool) -> str:
    """The first 2 MiB of a text."""
    with open_text(path, is_gzipped=is_gzipped) as stream:
        return stream.read(LONGEST_LINE).decode("utf-8-sig", errors="ignore")


def _inspect_csv(
    path: Path,
    is_gzipped: bool,
    delimiter: str | None,
    names: tuple[str, ...],
    nulls: tuple[str, ...],
    *,
    needs_rows: bool,
) -> RawFile:
    start = _start_of(path, is_gzipped=is_gzipped)
    if "\n" not in start and "\r" not in start and len(start) >= LONGEST_LINE // 4:
        raise DataError(f"{path.name}: not a CSV file: no line ends within the first 2 MiB.")
    delimiter = _delimiter(path, start, delimiter, len(names))
    records = _first_records(start, delimiter)
    has_header = not names
    if has_header:
        if needs_rows and len(records) < 2:
            raise DataError(f"{path.name}: a header and no rows. Name a file that has some, or leave it out.")
        names = tuple(cell.strip() or f"unnamed_{index + 1}" for index, cell in enumerate(records[0]))
    elif len(records[0]) != len(names):
        raise DataError(
            f"{path.name}: the first line has {len(records[0])} fields, dataset.columns names {len(names)}. "
            "Name every column of a file without a header, or leave `columns` out if it has one."
        )
    _check_names(path, names)
    return RawFile(
        path=path,
        kind="csv",
        columns=names,
        families=tuple("text" for _ in names),
        delimiter=delimiter,
        has_header=has_header,
        blank_lines=next((i for i, line in enumerate(start.splitlines()) if line.strip()), 0),
        is_gzipped=is_gzipped,
        nulls=nulls,
    )


def likely_delimiter(path: Path, start: str) -> str:
    """What splits the first line of a text into most fields."""
    return _delimiter(path, start, None, 0)


def _first_records(start: str, delimiter: str) -> list[list[str]]:
    """The first two records that are not blank."""
    records: list[list[str]] = []
    try:
        for record in csv.reader(io.StringIO(start, newline=""), delimiter=delimiter):
            if len(record) > 1 or any(cell.strip() for cell in record):
                records.append(record)
            if len(records) == 2:
                break
    except csv.Error:
        pass
    return records


def _delimiter(path: Path, start: str, given: str | None, n_names: int) -> str:
    """The delimiter given, or the one that splits the first line into most fields. Raises DataError."""
    fields = {mark: len((_first_records(start, mark) or [[""]])[0]) for mark in DELIMITERS}
    best = max(DELIMITERS, key=lambda mark: (fields[mark] == n_names, fields[mark]))
    if given is None:
        return "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") and fields["\t"] > 1 else best
    n_given = len((_first_records(start, given) or [[""]])[0])
    if n_given == 1 and fields[best] > 1:
        raise DataError(
            f"{path.name}: split at {given!r} the first line has one column, split at {DELIMITER_NAMES[best]} it has "
            f"{fields[best]}. Set dataset.delimiter = {best!r}, or leave it out."
        )
    return given


def _inspect_parquet(path: Path, needs_rows: bool) -> RawFile:
    import pyarrow
    from pyarrow import parquet

    fault = ""
    with path.open("rb") as stream:
        start = stream.read(4)
        stream.seek(-min(path.stat().st_size, 4), io.SEEK_END)
        end = stream.read(4)
    if start != _PARQUET:
        fault = "named .parquet, but not a Parquet file."
    elif end != _PARQUET or path.stat().st_size < 12:
        fault = "the Parquet file is truncated. Fetch or write it again."
    else:
        try:
            with parquet.ParquetFile(path) as file:
                schema, n_rows = file.schema_arrow, file.metadata.num_rows
        except (OSError, pyarrow.ArrowException):
            fault = "the Parquet file is damaged. Fetch or write it again."
        else:
            if needs_rows and n_rows == 0:
                fault = "a schema and no rows."
    if fault:
        raise DataError(f"{path.name}: {fault}")
    names = tuple(schema.names)
    _check_names(path, names)
    return RawFile(
        path=path, kind="parquet", columns=names, families=tuple(_family(kind) for kind in schema.types)
    )


def _family(kind: Any) -> Family | None:
    """What an Arrow type is to us; dates and times are text, to be taken apart by `derive`."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return _family(kind.value_type)
    if types.is_integer(kind):
        return "integer"
    if types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_boolean(kind):
        return "boolean"
    if (
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_temporal(kind)
    ):
        return "text"
    return None


def _check_names(path: Path, names: tuple[str, ...]) -> None:
    """Raises DataError on a name that stands twice (SQL compares names without case) or is taken."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            twice = f'"{name}"' if seen[name.lower()] == name else f'"{seen[name.lower()]}" and "{name}"'
            raise DataError(
                f"{path.name}: duplicate column names, {twice} (case does not tell names apart). Rename one."
            )
        seen[name.lower()] = name
        if name.lower() == ROW or name.lower().startswith(INTERNAL):
            raise DataError(
                f'{path.name}: a column is called "{name}", a name that ldptree keeps. Rename it.'
            )


def check_count(file: RawFile, n_columns: int) -> None:
    """Raises DataError where a run would read too many columns."""
    if n_columns > MOST_COLUMNS:
        raise DataError(
            f"{file.name}: {n_columns:,} columns would be read, and at most {MOST_COLUMNS:,} can be. Add those that are "
            "not needed to dataset.drop, or write a file without them."
        )


def same_columns(files: Sequence[RawFile]) -> None:
    """Raises DataError unless all files have the columns of the first, in any order, of the same families."""
    first = files[0]
    for other in files[1:]:
        missing = [column for column in first.columns if column not in other.columns]
        extra = [column for column in other.columns if column not in first.columns]
        if missing or extra:
            what = f"lacks {list_columns(missing)}" if missing else f"has {list_columns(extra)} besides"
            raise DataError(
                f"{other.name}: not the columns of {first.name}: it {what}. All files must have the same."
            )


def _in_words(message: str) -> str:
    """DuckDB's message as ours: the kind of fault only."""
    lower = message.lower()
    if "expected number of columns" in lower:
        return "a row with the wrong number of fields"
    if "unterminated quote" in lower or "unquoted" in lower:
        return "a quote that is opened and not closed, or text after a closing quote"
    if "maximum line size" in lower:
        return "a line of more than 2 MiB: not a CSV file, or a quote that is never closed"
    if "invalid unicode" in lower or "not utf-8" in lower:
        return _NOT_UTF_8.rstrip(".")
    if "state machine" in lower:
        return "mixed line endings (\\n and \\r\\n), or quotes that do not follow the CSV rules"
    if "gzip" in lower:
        return "the gzip file is truncated or damaged. Fetch or write it again."
    return "the file changed while it was read, or is damaged"
