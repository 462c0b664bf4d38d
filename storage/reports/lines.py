"""Read reports of clients, one a line of JSON, in DuckDB, which puts on disk what memory does not hold.
`tasks.answers.receive` decides which of them are valid.
"""

from __future__ import annotations

import codecs
import contextlib
import glob
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from schemas.named_files import path_fault
from storage.sql import literal
from storage.tables import count_rows

LONGEST_LINE = 2**24
"""Bytes that DuckDB looks at for the end of a line, or up to twice as many."""
FILES = 1_000
"""Most files that are read at once: each of them takes about 20 kB."""
PART = 2**23
"""About as many lines are compared at once by their ids, which DuckDB holds in memory then."""
BATCH = 2**17
BATCH_BYTES = 2**24
SETTINGS = {"memory_limit": "1280MiB", "threads": 2}
"""Each thread takes twice `LONGEST_LINE`."""

_FIELDS = json.dumps(dict.fromkeys(("protocol", "round", "id", "report", "output", "simulation"), "JSON"))
# Fields stay JSON until they are compared, as "1" is no number. Where an object has as many keys as fields, each is there once;
# a line as short as its fields allow, as clients write it, has no others, and its keys need not be listed.
_READ = """
    INSERT INTO lines BY NAME
    WITH objects AS (
        SELECT line, json_transform(line, $fields) AS it
        FROM (
            SELECT CASE WHEN strlen(json) <= $longest THEN json END AS line
            FROM read_ndjson_objects(
                $files, ignore_errors = true, maximum_object_size = $longest_line, compression = 'uncompressed',
                hive_partitioning = false
            )
        )
    ), texts AS (
        SELECT line, it.protocol::VARCHAR AS protocol, it.round::VARCHAR AS round, it.id::VARCHAR AS id,
            it.report::VARCHAR AS report, it.output::VARCHAR AS output, it.simulation::VARCHAR AS simulation
        FROM objects
    ), fields AS (
        SELECT protocol, round, output, simulation IS NOT NULL AS simulation,
            CASE WHEN starts_with(id, '"') AND strlen(id) = 34 AND id = lower(id)
                THEN TRY(unhex(substr(id, 2, 32))::UUID) END AS id,
            CASE WHEN regexp_full_match(report, '"[A-Za-z0-9+/]*={0,2}"')
                THEN TRY(from_base64(substr(report, 2, length(report) - 2))) END AS payload,
            CASE WHEN strlen(line) = 38 + strlen(protocol) + strlen(round) + strlen(id) + strlen(report)
                + coalesce(10 + strlen(output), 0) + coalesce(14 + strlen(simulation), 0) THEN true
                ELSE len(json_keys(line)) = 4 + (output IS NOT NULL)::INT + (simulation IS NOT NULL)::INT END
                AND starts_with(protocol, '"') AND (CASE WHEN round = '1' THEN true ELSE regexp_full_match(round, '-?[0-9]+') END)
                AND coalesce(regexp_full_match(output, '-?[0-9]+'), true) AND coalesce(simulation = 'true', true) AS is_whole
        FROM texts
    ), reports AS (
        SELECT * REPLACE (coalesce(is_whole, false) AND id IS NOT NULL AND payload IS NOT NULL AS is_whole) FROM fields
    )
"""
_TABLES = """
    CREATE TABLE lines (fault VARCHAR, id UUID, output INTEGER, payload BLOB);
    CREATE TABLE dropped (line BIGINT, fault VARCHAR);
    CREATE VIEW kept AS
    SELECT lines.rowid AS line, id, output, payload FROM lines ANTI JOIN dropped ON line = lines.rowid WHERE fault IS NULL
"""
_REPEATED = """
    CREATE OR REPLACE TABLE repeated AS
    SELECT id, min(line) AS first FROM kept WHERE hash(id) % $parts::UBIGINT = $part::UBIGINT GROUP BY id HAVING count(*) > 1
"""
# A query of its own: DuckDB then knows how few there are, before it chooses what it holds in memory.
_DROP_REPEATED = """
    INSERT INTO dropped
    SELECT later.line, CASE
        WHEN later.payload = first.payload AND later.output IS NOT DISTINCT FROM first.output THEN $same ELSE $other
    END
    FROM kept AS later JOIN repeated USING (id) JOIN lines AS first ON first.rowid = repeated.first
    WHERE later.line <> repeated.first
"""
_READ_WRITTEN = "INSERT INTO lines BY NAME SELECT id, output, payload FROM read_parquet($files, hive_partitioning = false)"
_FAULTS = """
    SELECT fault, count(*) FROM (SELECT fault FROM lines UNION ALL SELECT fault FROM dropped)
    WHERE fault IS NOT NULL GROUP BY fault
"""


@dataclass(frozen=True, eq=False)
class ReportLines:
    """Lines of files, each with its fault or else with its id, output and payload.

    Attributes:
        refused: files that were not read, with the reason.
    """

    connection: duckdb.DuckDBPyConnection
    aside: Path
    refused: dict[Path, str] = field(default_factory=dict)

    @classmethod
    @contextlib.contextmanager
    def opened(cls) -> Iterator[ReportLines]:
        """No lines yet, and a folder for what memory does not hold."""
        with (
            tempfile.TemporaryDirectory(prefix="ldptree-") as aside,
            duckdb.connect(config=SETTINGS | {"temp_directory": aside}) as connection,
        ):
            connection.execute("SET enable_progress_bar_print = false")  # it would stand in the output
            connection.execute(_TABLES)
            yield cls(connection, Path(aside))

    def read(self, paths: Sequence[Path], longest: int, judged: str, terms: Mapping[str, Any]) -> None:
        """Add the lines of files, in their order.

        Args:
            paths: the files.
            longest: bytes of a line at most; a longer one is no report.
            judged: a query for the fault, id, output and payload of each of "reports", which has protocol, round and output as
                JSON, id and payload as bytes, whether it is of a simulation, and `is_whole`; else it is no report, and what it
                says nothing.
            terms: the values that it names.
        """
        values = {"fields": _FIELDS, "longest": longest, "longest_line": LONGEST_LINE, **terms}
        files = [(name, path) for path in paths if (name := self._name_of(path))]
        for start in range(0, len(files), FILES):
            self._read(files[start : start + FILES], _READ + judged, values)

    def write(self, path: Path) -> int:
        """Write the lines without a fault to Parquet, in their order; return how many there are."""
        kept = "SELECT id, output, payload FROM kept ORDER BY line"
        self.connection.execute(f"COPY ({kept}) TO {literal(str(path))} (FORMAT parquet, COMPRESSION zstd)")
        return count_rows([path])

    def add_written(self, paths: Sequence[Path]) -> None:
        """Add lines that `write` wrote, in the order of the files."""
        for start in range(0, len(paths), FILES):
            files = [str(path) for path in paths[start : start + FILES]]
            self.connection.execute(_READ_WRITTEN, {"files": files})

    def drop(self, lines: NDArray[np.int64], fault: str) -> None:
        """Give these lines a fault, int64 [n], while `payloads` goes on."""
        with self.connection.cursor() as cursor:
            cursor.register("at_fault", pa.table({"line": lines}))
            cursor.execute("INSERT INTO dropped SELECT line, $fault FROM at_fault", {"fault": fault})

    def drop_repeated(self, same: str, other: str) -> None:
        """Give every line a fault that says the `same` under the id of an earlier one, or something `other`."""
        parts = 1 + self.connection.sql("SELECT count(*) FROM lines").fetchall()[0][0] // PART
        for part in range(parts):
            self.connection.execute(_REPEATED, {"parts": parts, "part": part})
            self.connection.execute(_DROP_REPEATED, {"same": same, "other": other})

    def count_faults(self) -> dict[str, int]:
        """The number of lines with each fault."""
        return dict(self.connection.sql(_FAULTS).fetchall())

    def payloads(self, size: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]]:
        """The lines without a fault in parts of n, their numbers, int64 [n], payloads of one size, uint8 [n, size], and outputs,
        int64 [n], 0 where there is none.
        """
        kept = self.connection.sql("SELECT line, payload, coalesce(output, 0)::BIGINT AS output FROM kept")
        for part in kept.to_arrow_reader(min(BATCH, max(1, BATCH_BYTES // size))):
            payload = part["payload"]
            start = payload.offset * size
            packed = np.frombuffer(payload.buffers()[2], np.uint8)[start : start + len(payload) * size]
            yield part["line"].to_numpy(), packed.reshape(len(payload), size), part["output"].to_numpy()

    def _read(self, files: Sequence[tuple[str, Path]], query: str, values: Mapping[str, Any]) -> None:
        """Add the lines of all files or, where a file cannot be read, those of one half after the other."""
        try:
            self.connection.execute(query, {**values, "files": [name for name, _ in files]})
        except (duckdb.InvalidInputException, duckdb.IOException) as fault:
            middle = len(files) // 2
            if middle:
                self._read(files[:middle], query, values)
                self._read(files[middle:], query, values)
                return
            ((_, path),) = files
            reason = path_fault(path)
            if reason is None and "maximum_object_size" in str(fault):
                reason = f"a line in it has more than {LONGEST_LINE:,} bytes"
            if reason is None:
                raise
            self.refused[path] = reason

    def _name_of(self, path: Path) -> str:
        """The name by which DuckDB reads a file; "" where it cannot."""
        try:
            with path.open("rb") as file:
                is_marked = file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8
            str(path).encode()
        except OSError as fault:
            self.refused[path] = f"cannot be read ({os.strerror(fault.errno or 0)})"
            return ""
        except UnicodeEncodeError:
            self.refused[path] = "its name is no text in UTF-8"
            return ""
        return glob.escape(str(self._without_mark(path) if is_marked else path.absolute()))

    def _without_mark(self, path: Path) -> Path:
        """A copy of a file without its byte-order mark, which DuckDB does not pass over."""
        with path.open("rb") as file, tempfile.NamedTemporaryFile(dir=self.aside, delete=False) as copy:
            file.seek(len(codecs.BOM_UTF8))
            shutil.copyfileobj(file, copy)
        return Path(copy.name)
