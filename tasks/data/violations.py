"""count: how many private rows of a part violate each expectation. Counts stay with the holders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from schemas.dataset import ROW_NUMBER, DatasetSpec
from schemas.expectations import Expectation, Suite, check_columns, suite_of
from schemas.manifest import Manifest
from storage import tables
from storage.sql import UTC, literal, quote
from storage.store import Draft, Store
from tasks.data.source import read_suite
from tasks.step import step


def expected_of(
    store: Store, suite: Manifest | None, dataset: DatasetSpec, columns: Sequence[Sequence[str]]
) -> Suite:
    """Return the expectations of a data set's rows, from an edited suite or its own. Raises ConfigError if it does not
    fit.
    """
    if suite is None:
        return suite_of(dataset, columns)
    (path,) = store.files(suite)
    expected = read_suite(path)
    check_columns(expected, columns, str(path))
    return expected


@step("count", version="2", home="holders", says="how many private rows violate each expectation")
def count(
    draft: Draft,
    *,
    private: Manifest,
    suite: Manifest | None,
    dataset: DatasetSpec,
    columns: Sequence[Sequence[str]],
) -> None:
    """Write what is counted in these rows ("counts": `counts.json`)."""
    paths = tables.typed_parts(draft.store.files(private))
    counts = count_rows(paths, expected_of(draft.store, suite, dataset, columns).expectations)
    (draft.folder("counts") / "counts.json").write_text(json.dumps(counts))


def sum_counts(store: Store, parts: Sequence[Manifest]) -> list[int]:
    """Add up what `count` counted in all parts, as `count_rows` counts."""
    counted = [json.loads(store.file(part, "counts.json").read_bytes()) for part in parts]
    return [sum(counts) for counts in zip(*counted, strict=True)]


def count_violations(paths: Sequence[Path], expectations: Sequence[Expectation]) -> list[int]:
    """Count the rows that violate each expectation (1 for a violated `rows` or `columns`). No path means no row."""
    return violations_of(count_rows(paths, expectations), expectations)


def violations_of(counts: Sequence[int], expectations: Sequence[Expectation]) -> list[int]:
    """Return the violations of each expectation, from the counts of `count_rows`."""
    n_rows, *each = counts
    of_each = [*zip(expectations, each, strict=True)]
    # Without its columns nothing can be asked of a row: every row is at fault.
    unlike = any(n for e, n in of_each if e.expectation == "columns")

    def violations(expectation: Expectation, n: int) -> int:
        match expectation.expectation:
            case "rows":
                return int(n < (expectation.at_least or 0))
            case "columns":
                return int(n > 0)
            case _:
                return n_rows if unlike else n

    return [violations(e, n) for e, n in of_each]


def count_rows(paths: Sequence[Path], expectations: Sequence[Expectation]) -> list[int]:
    """Return the number of rows, then for each expectation a number that adds up over files. It counts all rows for
    `rows`, files with other columns for `columns`, and else rows that violate it.
    """
    import duckdb

    n_rows = sum(pq.read_metadata(path).num_rows for path in paths)
    counts = {id(e): n_rows for e in expectations if e.expectation == "rows"}
    counts |= {
        id(e): sum(_columns(path) != e.types for path in paths)
        for e in expectations
        if e.expectation == "columns"
    }
    in_rows = [e for e in expectations if e.expectation not in ("columns", "rows")]
    unlike = any(counts[id(e)] for e in expectations if e.expectation == "columns")
    if in_rows and paths and not unlike:
        counted = ", ".join(f"count(*) FILTER (WHERE {_violated(e)})" for e in in_rows)
        files = ", ".join(literal(str(path)) for path in paths)
        with duckdb.connect(config={"threads": 2, "temp_directory": ""}) as connection:
            connection.execute(f"SET TimeZone = '{UTC}'")
            row = connection.execute(f"SELECT {counted} FROM read_parquet([{files}])").fetchone()
        counts |= {id(e): int(n) for e, n in zip(in_rows, row or (), strict=True)}
    return [n_rows, *(counts.get(id(e), 0) for e in expectations)]


def _columns(path: Path) -> tuple[tuple[str, str], ...]:
    """Names and types of the columns of a file, but for the number of the row."""
    return tuple((field.name, str(field.type)) for field in pq.read_schema(path) if field.name != ROW_NUMBER)


def _violated(expectation: Expectation) -> str:
    """The SQL condition of a row at fault; TRY_CAST, as an error of a plain cast would quote the row's value."""
    column = quote(expectation.column or "")
    number = f"TRY_CAST({column} AS DOUBLE)"
    match expectation.expectation:
        case "read" | "known":
            return f"{column} IS NULL"
        case "between":
            met = f"{number} BETWEEN {literal(expectation.low)} AND {literal(expectation.high)}"
        case _:
            values = expectation.values or ()
            numbers = [literal(float(value)) for value in values if not isinstance(value, str)]
            texts = [literal(value) for value in values if isinstance(value, str)]
            among = [f"{number} IN ({', '.join(numbers)})"] if numbers else []
            among += [f"CAST({column} AS VARCHAR) IN ({', '.join(texts)})"] if texts else []
            met = " OR ".join(f"coalesce({condition}, FALSE)" for condition in among) or "FALSE"
    return f"{column} IS NOT NULL AND NOT coalesce({met}, FALSE)"
