"""One Parquet file written in row groups of a fixed size, so that its bytes depend on its rows alone and not on how they
came in.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from schemas.dataset import RESERVED
from storage.raw.raw_files import batch_rows


class RowGroupWriter:
    """One Parquet file in row groups of a fixed size, made when its first row comes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_rows = 0
        self._waiting: list[Any] = []
        self._n_waiting = 0
        self._writer: Any = None

    def write(self, table: Any) -> None:
        """Take rows in; write every row group that is full."""
        if not table.num_rows:
            return
        self._waiting.append(table)
        self._n_waiting += table.num_rows
        self.n_rows += table.num_rows
        size = batch_rows(table.num_columns)
        while self._n_waiting >= size:
            self._flush(size)

    def close(self) -> None:
        """Write what is left, and the footer."""
        if self._n_waiting:
            self._flush(self._n_waiting)
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _flush(self, size: int) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        whole = pa.concat_tables(self._waiting)
        group, rest = whole.slice(0, size).combine_chunks(), whole.slice(size)
        self._waiting, self._n_waiting = ([rest], rest.num_rows) if rest.num_rows else ([], 0)
        if self._writer is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = parquet.ParquetWriter(
                self.path,
                group.schema,
                compression="zstd",
                use_dictionary=[name for name in group.column_names if name != RESERVED],
                column_encoding={RESERVED: "DELTA_BINARY_PACKED"} if RESERVED in group.column_names else None,
                store_schema=False,
            )
        self._writer.write_table(group, row_group_size=size)
