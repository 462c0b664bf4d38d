"""How many rows of a zone violate each expectation: one query of counts over its Parquet. No value of a row is ever read out.

What follows from the counts, and who may see them, is decided in `tasks.validate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from schemas.dataset import RESERVED
from schemas.expectations import Expectation
from storage.sql import literal, quote


def count_violations(paths: Sequence[Path], expectations: Sequence[Expectation]) -> list[int]:
    """For each expectation the number of rows that violate it (`rows` and `columns`: 1 if violated); no path means no row."""
    import duckdb

    schema_faults = int(any(pq.read_schema(path).names[-1] != RESERVED for path in paths))
    tables = [expectation for expectation in expectations if expectation.expectation == "columns"]
    in_rows = [
        expectation for expectation in expectations if expectation.expectation not in ("columns", "rows")
    ]
    counts = {id(e): schema_faults or int(any(_schema(path) != e.types for path in paths)) for e in tables}
    n_rows = sum(pq.read_metadata(path).num_rows for path in paths)
    counts |= {id(e): int(n_rows < (e.at_least or 0)) for e in expectations if e.expectation == "rows"}
    if any(counts[id(e)] for e in tables) or not paths:
        # Without its columns nothing can be asked of a row: every row is at fault.
        counts |= {id(e): n_rows for e in in_rows}
    elif in_rows:
        asked = ", ".join(f"count(*) FILTER (WHERE {_violated(e)})" for e in in_rows)
        files = ", ".join(literal(str(path)) for path in paths)
        with duckdb.connect(config={"threads": 2, "temp_directory": ""}) as connection:
            row = connection.execute(f"SELECT {asked} FROM read_parquet([{files}])").fetchone()
        counts |= {id(e): int(n) for e, n in zip(in_rows, row or (), strict=True)}
    return [counts[id(e)] for e in expectations]


def _schema(path: Path) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, str(field.type)) for field in pq.read_schema(path) if field.name != RESERVED)


def _violated(expectation: Expectation) -> str:
    """The SQL condition of a row at fault; TRY_CAST, as an error of a plain cast would quote the row's value."""
    column = quote(expectation.column or "")
    number = f"TRY_CAST({column} AS DOUBLE)"
    match expectation.expectation:
        case "known":
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
