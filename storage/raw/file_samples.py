"""Sample the rows of a raw file that may be looked at, from all over it, as a run reads them.

Nothing here is part of a run. What the rows hold is told in `tasks.first_look`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ldptree.errors import DataError
from schemas.dataset import DatasetSpec
from schemas.named_files import read_fault, shown_path
from storage.raw import raw_files
from storage.raw.formats.contents import Content, file_kind, read_content
from storage.raw.formats.nameless_files import NamelessFile
from storage.raw.layouts import Layout, read_layout
from storage.raw.public_rows import PublicSelection
from storage.raw.raw_files import RawFile

MOST_ROWS, FEWEST_ROWS, MOST_CELLS = 20_000, 600, 400_000
"""Rows that are kept of a file, at most, of a wide one at least, and values in between."""
COIN, NUMBER = f"{raw_files.INTERNAL}_coin", f"{raw_files.INTERNAL}_number"
"""Columns of a row's coin and of its number while rows are kept."""


@dataclass(frozen=True, kw_only=True)
class NamedFile:
    """A file, and the keys by which a run reads it.

    Attributes:
        file: as it is read.
        layout: of a text; None of a Parquet file.
        sheet: the one that was named, of a workbook.
    """

    file: RawFile
    layout: Layout | None
    sheet: str | None

    @property
    def keys(self) -> dict[str, Any]:
        """The keys of `dataset` that a run has to be told."""
        layout = self.layout
        if layout is None:
            return {}
        keys = {
            "encoding": layout.encoding,
            "delimiter": layout.delimiter if layout.delimiter != "," else None,
            "skip": layout.skip,
            "sheet": self.sheet,
            "columns": layout.columns,
        }
        return {key: value for key, value in keys.items() if value}

    @property
    def has_header(self) -> bool:
        """Whether the file has names of its columns."""
        return self.layout is None or self.layout.has_header


@dataclass(frozen=True, kw_only=True)
class FileSample:
    """Some rows of a file, in their order.

    Attributes:
        file: the rows in a file of their own, raw as they stand.
        rows: the same in memory.
        numbers: of each the number among the rows that may be looked at, from 0.
        n_rows: of these.
        n_rejected: lines of the file that are no rows.
    """

    file: RawFile
    rows: pa.Table
    numbers: NDArray[np.int64]
    n_rows: int
    n_rejected: int

    @property
    def is_whole(self) -> bool:
        """Whether all rows are here that may be looked at."""
        return len(self.numbers) == self.n_rows


def name_file(path: Path, target: str, sheet: str | None = None) -> NamedFile:
    """Look how a file is read. `target` is a column, `sheet` one of a workbook. Raises DataError where it is no table."""
    if (fault := read_fault(path)) is not None:
        raise DataError(f"{shown_path(path)}: {fault}. Name a file that is a table.")
    kind, place, layout = file_kind(path), path, None
    if sheet is not None or kind not in ("text", "gzip"):
        content = read_content(path, sheets=() if sheet is None else (sheet,))
        kind, place = content.kind, content.place
    if kind != "parquet":
        try:
            layout = read_layout(place, path.name, target)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{path.name}: cannot be read, or the gzip file is damaged.") from error
    named = NamedFile(
        file=RawFile(path=path, kind="csv", columns=(), families=()), layout=layout, sheet=sheet
    )
    return replace(named, file=read_like(named, path))


def read_like(named: NamedFile, path: Path) -> RawFile:
    """Inspect a file by the keys of another. Raises DataError."""
    keys = named.keys
    sheets = (keys.pop("sheet"),) if "sheet" in keys else ()
    return raw_files.inspect(path, nulls=DatasetSpec.model_fields["nulls"].default, sheets=sheets, **keys)


def sample_rows(
    file: RawFile, public: PublicSelection, usable: list[str], types: Any, tell: Callable[[int], None]
) -> FileSample:
    """Keep each public row by the same chance, which is halved where they are too many; `tell` how many were seen.

    Raises DataError.
    """
    import polars as pl
    from pyarrow import parquet

    most = min(MOST_ROWS, max(MOST_CELLS // max(len(file.columns), 1), FEWEST_ROWS))
    coins, share, n_rows = np.random.default_rng(0), 1.0, 0
    kept = pl.DataFrame(schema=dict.fromkeys(usable, pl.String) | {COIN: pl.Float64, NUMBER: pl.Int64})
    with raw_files.connect([file]) as connection:
        for batch in public.raw_batches(connection, file, 0, usable, types):
            numbers = np.arange(n_rows, n_rows + batch.num_rows)
            n_rows += batch.num_rows
            tell(n_rows)
            drawn = {COIN: coins.random(batch.num_rows), NUMBER: numbers}
            rows = pl.DataFrame(batch).with_columns(**drawn).filter(pl.col(COIN) < share)
            kept = pl.concat([kept, rows]) if n_rows > batch.num_rows else rows
            while kept.height > most:
                share /= 2
                kept = kept.filter(pl.col(COIN) < share)
        n_rejected = len(raw_files.rejected_lines(connection, 10_000)) if file.kind == "csv" else 0
    table, written = kept.drop(COIN, NUMBER).to_arrow(), NamelessFile()
    parquet.write_table(table, written.stream)
    return FileSample(
        file=replace(
            raw_files.of_table(table, file.name),
            kind="parquet",
            table=None,
            content=Content(kind="parquet", place=written.place, written=written),
            nulls=file.nulls,
        ),
        rows=table,
        numbers=kept[NUMBER].to_numpy(),
        n_rows=n_rows,
        n_rejected=n_rejected,
    )
