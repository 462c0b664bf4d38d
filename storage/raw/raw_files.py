"""Inspect raw files in CSV, Parquet (`formats`) or memory before they are trusted, and open them in a locked DuckDB.

What the columns mean is not known here: a raw CSV column is text, and `column_types` and `typed_rows` make types of it. No
message holds a value of a row; what DuckDB says about a faulty line (it quotes the line) is put into words of our own.
"""

from __future__ import annotations

import contextlib
import csv
import io
import queue
import re
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from ldptree.errors import DataError
from schemas.dataset import LONGEST_NAME, ROW_NUMBER, Scalar
from storage.machine_faults import machine_fault
from storage.raw.formats.archives import most_unpacked
from storage.raw.formats.contents import (
    NOT_UTF_8,
    PARQUET,
    Content,
    check_text,
    file_kind,
    open_text,
    read_content,
)
from storage.raw.parquet_pages import MOST_PAGES, weigh_pages
from storage.sql import UNSAFE_OPTIMIZER, UTC, list_columns, literal, quote

Result = TypeVar("Result")
Family = Literal["text", "integer", "number", "boolean"]

DELIMITERS = (",", ";", "\t", "|")
DELIMITER_NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
LONGEST_LINE = 2 << 20
BATCH_ROWS = 131_072
BATCH_CELLS = 1 << 24
MOST_EXTRA = 1_000
"""Fields that a line may have beside those of the header: DuckDB keeps a line that it rejects once for each of them."""
MOST_COLUMNS = 4_000
"""Most columns that a run reads, as time and memory of DuckDB's query plans grow faster than their number."""
FREE_ROWS, MOST_ROWS_TO_A_BYTE = 10_000_000, 100
"""Limits of a Parquet file's rows. A file that claims more was made to fill a memory."""
MOST_BATCH_BYTES = 512 << 20
"""Most bytes of one column's texts in a batch, as a dictionary gives any number of rows a long text."""
INTERNAL = "_ldptree"
"""The start of the names that queries use inside; no file may use it."""
TABLE = f"{INTERNAL}_table"
FILE_ROW = "file_row_number"
"""What DuckDB calls the number of a row in a Parquet file."""

CHANGED = "the file changed while it was read, or is damaged"
# What DuckDB's reject table calls a fault, and what we call it.
_LINE_FAULTS = {
    "MISSING COLUMNS": "wrong number of fields",
    "TOO MANY COLUMNS": "wrong number of fields",
    "UNQUOTED VALUE": "broken quotes",
    "LINE SIZE OVER MAXIMUM": "a line of more than 2 MiB",
    "INVALID ENCODING": "not UTF-8",
}
_QUOTED = re.compile(rb'"[^"]*"')
OPEN_QUOTE = "a quote that is not closed"
_IS_OPEN = """(error_type = 'UNQUOTED VALUE' AND length(csv_line) % 2 <> length(replace(csv_line, '"', '')) % 2)
    OR (error_type IN ('UNQUOTED VALUE', 'LINE SIZE OVER MAXIMUM') AND regexp_matches(csv_line, '[\\r\\n]'))"""
"""SQL that is true if a faulty line has a quote still open at its end, after which rows may begin anywhere."""


@dataclass(frozen=True, kw_only=True)
class RawFile:
    """One inspected raw file, with its columns in order and how to read it. A table in memory is one, too."""

    path: Path
    kind: Literal["csv", "parquet", "table"]
    columns: tuple[str, ...]
    families: tuple[Family | None, ...]
    """The type family of each column in the file, text for all of a CSV, and None for a type that cannot be used."""
    delimiter: str = ","
    has_header: bool = True
    records_above: int = 0
    """Records before the first that is read, which were left out or are blank."""
    content: Content | None = field(default=None, repr=False, compare=False)
    """What is read of it; None of a table in memory."""
    nulls: tuple[str, ...] = ("",)
    missing: Mapping[str, Sequence[Scalar]] = field(default_factory=dict)
    """Values of a column that mean "missing"."""
    timezone: str | None = None
    """The zone of its hours and days; None: UTC."""
    table: Any = field(default=None, repr=False, compare=False)
    """The rows of a table in memory."""
    rows: tuple[int, int] | None = None
    """Of a piece of a file, the numbers of its first row and of the row after its last one (`storage.raw.pieces`)."""

    @property
    def name(self) -> str:
        """The file's name, as messages call it."""
        return self.path.name

    @property
    def place(self) -> Path:
        """Path at which it is opened."""
        return self.path if self.content is None else self.content.place

    @property
    def first_row(self) -> int:
        """The number of the first row that is read."""
        return 0 if self.rows is None else self.rows[0]

    def family(self, column: str) -> Family | None:
        """Return the family of `column` by the file's own word."""
        return self.families[self.columns.index(column)]

    def select(self, columns: Sequence[str], aliases: Sequence[str], *, skip_bad_lines: bool = False) -> str:
        """A SELECT of `columns`, in the file's order of rows, under `aliases`; `missing` values are NULL.

        A CSV's columns are text with `nulls` as NULL. With `skip_bad_lines`, lines that cannot be parsed are left
        out and remembered for `rejected_lines`; else they are an error.
        """
        places = {
            column: quote(column) if self.kind != "csv" else f"c{i}" for i, column in enumerate(self.columns)
        }
        chosen = ", ".join(
            f"{without_values(places[column], self.missing.get(column, ()))} AS {quote(alias)}"
            for column, alias in zip(columns, aliases, strict=True)
        )
        if self.kind != "csv":
            return f"SELECT {chosen} FROM {self._table()}"
        names = ", ".join(f"'c{index}': 'VARCHAR'" for index in range(len(self.columns)))
        nulls = ", ".join(literal(text) for text in self.nulls)
        options = [
            "auto_detect = false",
            f"header = {literal(self.has_header)}",
            f"skip = {self.records_above}",
            f"delim = {literal(self.delimiter)}",
            "quote = '\"'",
            "escape = '\"'",
            f"columns = {{{names}}}",
            f"nullstr = [{nulls}]",
            f"compression = {literal('gzip' if self.content and self.content.kind == 'gzip' else 'none')}",
            f"max_line_size = {LONGEST_LINE}",
        ]
        if skip_bad_lines:
            options += ["ignore_errors = true", "store_rejects = true"]
        return f"SELECT {chosen} FROM read_csv({literal(str(self.place))}, {', '.join(options)})"

    def _table(self) -> str:
        """The rows of a table in memory or of a Parquet, as what follows FROM."""
        if self.kind == "table":
            return quote(TABLE)
        place = literal(str(self.place))
        if self.rows is None:
            return f"read_parquet({place})"
        first, stop = self.rows
        return f"read_parquet({place}, {FILE_ROW} = true) WHERE {FILE_ROW} >= {first} AND {FILE_ROW} < {stop}"


def inspect(
    path: Path,
    *,
    delimiter: str | None = None,
    columns: Sequence[str] = (),
    nulls: Sequence[str] = ("",),
    missing: Mapping[str, Sequence[Scalar]] | None = None,
    skip: int = 0,
    sheets: Sequence[str] = (),
    encoding: str | None = None,
    timezone: str | None = None,
    needs_rows: bool = True,
    is_whole: bool = True,
) -> RawFile:
    """Inspect a file. Checks all bytes of a text (encoding, NULs, a gzip's end), a Parquet's footer, the header.

    `columns` names the columns of a file without a header; `skip`, lines above the header; `sheets`, of a workbook.
    Unless `is_whole`, of a text only the first bytes are looked at. `encoding`: of a text that is not UTF-8.
    Raises DataError on a file that is missing, unreadable, empty, in another format, damaged, or whose header is not one;
    where it `needs_rows`, also on one with a header alone.
    """
    content = read_content(
        path, skip=skip, sheets=sheets, has_header=not columns, is_whole=is_whole, encoding=encoding
    )
    if content.kind == "parquet":
        return replace(_inspect_parquet(path, content, needs_rows), missing=missing or {}, timezone=timezone)
    delimiter = content.delimiter or delimiter
    file = _inspect_csv(
        path, content, delimiter, tuple(columns), tuple(nulls) or ("",), needs_rows=needs_rows
    )
    if is_whole:
        _check_fields(file)
    return replace(file, missing=missing or {}, timezone=timezone)


def without_values(raw: str, values: Sequence[Scalar]) -> str:
    """The SQL `raw`, NULL where it is one of the values. Numbers are compared as numbers, however they are written."""
    if not values:
        return raw
    text = f"trim(CAST({raw} AS VARCHAR))"
    numbers = [f"CAST('{value}' AS DOUBLE)" for value in values if not isinstance(value, str | bool)]
    texts = [literal(str(value)) for value in values if isinstance(value, str | bool)]
    is_meant = [f"TRY_CAST({text} AS DOUBLE) IN ({', '.join(numbers)})"] if numbers else []
    is_meant += [f"{text} IN ({', '.join(texts)})"] if texts else []
    return f"CASE WHEN {' OR '.join(is_meant)} THEN NULL ELSE {raw} END"


def of_table(table: Any, name: str) -> RawFile:
    """A table in memory, under the name that messages call it. Raises DataError where its names are not those of columns."""
    path, names = Path(name), tuple(table.schema.names)
    _check_names(path, names)
    for place, kind in enumerate(table.schema.types):
        if str(kind) == "halffloat":  # which DuckDB does not know
            table = table.set_column(place, names[place], table.column(place).cast("float32"))
    families = tuple(_family(kind) for kind in table.schema.types)
    return RawFile(path=path, kind="table", columns=names, families=families, table=table)


def check_start(path: Path) -> None:
    """Raise DataError if the first block of a file already shows that it cannot be read, at no cost in time."""
    if file_kind(path) in ("text", "gzip"):
        check_text(path, path.name, blocks=1)


def connect(files: Sequence[RawFile]) -> Any:
    """Return a DuckDB connection in memory with locked settings, that can read `files`, in their time zone, and nothing else."""
    import duckdb

    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "temp_directory": ""})
    paths = ", ".join(literal(str(file.place)) for file in files if file.table is None)
    for file in files:
        if file.table is not None:
            connection.register(TABLE, file.table)
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET TimeZone = {literal(files[0].timezone or UTC)}")
    # A longer IN list would become a join, whose rows come out of order.
    connection.execute(f"SET disabled_optimizers = 'in_clause,{UNSAFE_OPTIMIZER}'")
    connection.execute(f"SET allowed_paths = [{paths}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def batch_rows(n_columns: int) -> int:
    """Return the rows of a batch and of a row group, 131,072 or a smaller power of two for wide tables."""
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
    """Return what `work` returns; DuckDB's errors as a DataError in our words, those of the machine as what they are.

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
        f"SELECT line, min(error_type::VARCHAR), any_value(csv_line), bool_or({_IS_OPEN}) FROM reject_errors "
        f"GROUP BY line ORDER BY line{most}"
    ).fetchall()
    return [
        (int(line), OPEN_QUOTE if is_open else _LINE_FAULTS.get(kind, "not CSV"), str(text))
        for line, kind, text, is_open in rows
    ]


def _start_of(path: Path) -> str:
    """The first 2 MiB of a text."""
    with open_text(path) as stream:
        return stream.read(LONGEST_LINE).decode("utf-8-sig", errors="ignore")


def _lines_below(text: str, n: int) -> str:
    """A text without its first lines."""
    return "".join(io.StringIO(text, newline=None).readlines()[n:]) if n else text


def _inspect_csv(
    path: Path,
    content: Content,
    delimiter: str | None,
    names: tuple[str, ...],
    nulls: tuple[str, ...],
    *,
    needs_rows: bool,
) -> RawFile:
    start = _start_of(content.place)
    if "\n" not in start and "\r" not in start and len(start) >= LONGEST_LINE // 4:
        raise DataError(f"{path.name}: not a CSV file: no line ends within the first 2 MiB.")
    table = _lines_below(start, content.skip)
    delimiter = _delimiter(path.name, table, delimiter)
    records = _first_records(table, delimiter)
    if not records:
        blank = f"its first {len(start):,} characters are blank lines. Delete them."
        left = f"no line is left below the {content.skip:,} of dataset.skip." if content.skip else blank
        raise DataError(f"{path.name}: {left}")
    has_header = not names
    if has_header:
        if needs_rows and len(records) < 2:
            raise DataError(f"{path.name}: a header and no rows. Name only files that have rows.")
        names = tuple(cell.strip() or f"unnamed_{index + 1}" for index, cell in enumerate(records[0]))
    elif len(records[0]) != len(names):
        raise DataError(
            f"{path.name}: the first line has {len(records[0])} fields, dataset.columns names {len(names)}. "
            "Name every column of a file without a header, or leave `columns` out if it has one."
        )
    _check_names(path, names)
    lines: list[str] = []  # as far as the header
    for line in io.StringIO(start, newline=""):
        lines.append(line)
        if len(lines) > content.skip and line.strip():
            break
    ends = [line[len(line.rstrip("\r\n")) :] for line in lines]
    if len({*ends} - {""}) > 1:  # DuckDB takes all that follows for one line, and reads no row
        raise DataError(
            f"{path.name}: lines above its header end in another way than the header. Delete them."
        )
    return RawFile(
        path=path,
        kind="csv",
        columns=names,
        families=tuple("text" for _ in names),
        delimiter=delimiter,
        has_header=has_header,
        records_above=sum(1 for _ in csv.reader(lines[:-1], delimiter=delimiter)),
        content=content,
        nulls=nulls,
    )


def _check_fields(file: RawFile) -> None:
    """Raises DataError on a line that has far more fields than the header."""
    most, mark = len(file.columns) + MOST_EXTRA, file.delimiter.encode()
    with open_text(file.place) as stream, io.BufferedReader(stream) as text:  # type: ignore[type-var]
        for number, piece in enumerate(iter(partial(text.readline, LONGEST_LINE), b""), 1):
            if len(piece) < most or piece.count(mark) < most:
                continue
            for line in piece.splitlines():  # more than one where they end in a carriage return alone
                n_fields = _QUOTED.sub(b"", line).count(mark) + 1
                if n_fields > most:
                    raise DataError(
                        f"{file.name}, line {number:,}: {n_fields:,} fields, where {len(file.columns):,} columns are "
                        "known. Delete the line, or write it anew."
                    )


def _first_records(start: str, delimiter: str) -> list[list[str]]:
    """The first two records that are not blank."""
    records: list[list[str]] = []
    try:
        for record in csv.reader(io.StringIO(start, newline=""), delimiter=delimiter):
            if len(record) > 1 or any(cell.strip() for cell in record):
                records.append(record)
            if len(records) == 2:
                break
    except csv.Error:  # a field that is too long: a record all the same
        records += [[]] if records else []
    return records


def _delimiter(name: str, start: str, given: str | None) -> str:
    """The delimiter that is given, else a comma; where that does not split the first line, and none is given, what does."""
    fields = {mark: len((_first_records(start, mark) or [[""]])[0]) for mark in (given or ",", *DELIMITERS)}
    best = max(DELIMITERS, key=lambda mark: fields[mark])
    if fields[given or ","] > 1 or fields[best] == 1:
        return given or ","
    if given is None:
        return best
    raise DataError(
        f"{name}: split at {given!r} the first line has one column, split at {DELIMITER_NAMES[best]} it has {fields[best]}. "
        f"Set dataset.delimiter = {best!r}, or write the file with {given!r} between fields."
    )


def _inspect_parquet(path: Path, content: Content, needs_rows: bool) -> RawFile:
    import pyarrow
    from pyarrow import parquet

    fault = ""
    with content.place.open("rb") as stream:
        start = stream.read(4)
        stream.seek(-min(content.place.stat().st_size, 4), io.SEEK_END)
        end = stream.read(4)
    if start != PARQUET:
        fault = "named .parquet, but not a Parquet file."
    elif end != PARQUET or content.place.stat().st_size < 12:
        fault = "the Parquet file is truncated. Fetch or write it again."
    else:
        try:
            with parquet.ParquetFile(content.place) as file:
                schema, n_rows = file.schema_arrow, file.metadata.num_rows
                size = content.place.stat().st_size
                unfolded, heaviest, column = weigh_pages(content.place, file.metadata, BATCH_ROWS)
        except (OSError, pyarrow.ArrowException, ValueError, IndexError):
            fault = f"the Parquet file is damaged, or has more than {MOST_PAGES:,} pages. Fetch or write it again."
        else:
            if needs_rows and n_rows == 0:
                fault = "a schema and no rows."
            elif n_rows > max(FREE_ROWS, MOST_ROWS_TO_A_BYTE * size) or unfolded > most_unpacked(size):
                fault = f"says that its {size:,} bytes are {n_rows:,} rows, of {unfolded:,} bytes: no table is packed so well."
            elif heaviest > MOST_BATCH_BYTES:
                fault = (
                    f'the texts of column "{column}" are so long that some rows of it take {heaviest:,} bytes. Write the '
                    "file without that column, or with shorter texts in it."
                )
    if fault:
        raise DataError(f"{path.name}: {fault}")
    names = tuple(schema.names)
    _check_names(path, names)
    return RawFile(
        path=path,
        kind="parquet",
        columns=names,
        families=tuple(_family(kind) for kind in schema.types),
        content=content,
    )


def _family(kind: Any) -> Family | None:
    """Return our family of an Arrow type; dates and times are text, to be taken apart by `derive`."""
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
        or types.is_null(kind)
    ):
        return "text"
    return None


def _check_names(path: Path, names: tuple[str, ...]) -> None:
    """Raises DataError on a name that stands twice (SQL compares names without case) or is taken."""
    seen: dict[str, str] = {}
    for name in names:
        if len(name) > LONGEST_NAME:
            raise DataError(
                f"{path.name}: a column's name has {len(name):,} characters, at most {LONGEST_NAME:,}. Rename it."
            )
        if name.lower() in seen:
            twice = f'"{name}"' if seen[name.lower()] == name else f'"{seen[name.lower()]}" and "{name}"'
            raise DataError(
                f"{path.name}: duplicate column names, {twice} (case does not tell names apart). Rename one, or name "
                "all in dataset.columns, below dataset.skip lines."
            )
        seen[name.lower()] = name
        if name.lower() == ROW_NUMBER or name.lower().startswith(INTERNAL):
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
    """Describe a DuckDB message in our words, with the kind of fault only."""
    lower = message.lower()
    if "expected number of columns" in lower:
        return "a row with the wrong number of fields"
    if "unterminated quote" in lower or "unquoted" in lower:
        return "a quote that is opened and not closed, or text after a closing quote"
    if "maximum line size" in lower:
        return "a line of more than 2 MiB: not a CSV file, or a quote that is never closed"
    if "invalid unicode" in lower or "not utf-8" in lower:
        return NOT_UTF_8.rstrip(".")
    if "state machine" in lower:
        return (
            "mixed line endings (\\n and \\r\\n), or quotes that do not follow the CSV rules. Let its lines end alike, close "
            "each quote, and double those within a field"
        )
    if "gzip" in lower:
        return "the gzip file is truncated or damaged. Fetch or write it again."
    return CHANGED
