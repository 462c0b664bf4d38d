"""Find public rows by a rule on the content of a row (a predicate) or on its number alone.

What a rule can be is in `schemas.dataset`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.dataset import ColumnType, PublicRule
from storage.digests import mixed
from storage.raw import raw_files, typed_rows
from storage.raw.raw_files import RawFile
from storage.raw.typed_rows import PUBLIC
from storage.sql import quote


@dataclass(frozen=True, kw_only=True)
class PublicRows:
    """The public rows of a list of raw files."""

    rule: PublicRule
    n_mixed: int
    """Files whose rows the rule divides; those after them are public whole (rule kind "file")."""
    seed: int

    def is_whole(self, index: int) -> bool:
        """Return whether every row of file `index` is public."""
        return self.rule.kind == "file" and index >= self.n_mixed

    def among(self, index: int, batch: Any, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which rows of a typed batch of file `index`, with the numbers `rows`, are public. NULL is private."""
        if self.rule.kind == "predicate":
            return booleans(batch.column(PUBLIC), missing=False)
        return self.by_number(index, rows)

    def by_number(self, index: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which rows are public by their numbers alone, for the rules "random", "first" and "file"."""
        if self.rule.kind == "file":
            return np.full(len(rows), index >= self.n_mixed)
        if self.rule.count is not None:
            return (rows < self.rule.count) & (index == 0)
        threshold = np.uint64(int((self.rule.fraction or 0.0) * 2.0**64))
        key = mixed(mixed(np.zeros(1, dtype=np.uint64), self.seed) ^ np.uint64(index), 0)
        mask: NDArray[np.bool_] = mixed(key + rows.astype(np.uint64), 0) < threshold
        return mask

    def raw_batches(
        self,
        connection: Any,
        file: RawFile,
        index: int,
        columns: Sequence[str],
        rule_types: Mapping[str, ColumnType],
    ) -> Iterator[Any]:
        """Raw `columns` of the public rows of file `index`, before all types are known, as Arrow record batches."""
        if (self.rule.kind == "file" and index < self.n_mixed) or (self.rule.kind == "first" and index > 0):
            return
        query = file.select(columns, columns, skip_bad_lines=file.kind == "csv")
        if self.rule.kind == "predicate":
            query = self._filtered(file, columns, rule_types)
        elif self.rule.kind == "first":
            query = f"{query} LIMIT {self.rule.count}"
        first_row = 0
        for batch in raw_files.stream(connection, query, file, raw_files.batch_rows(len(columns))):
            if self.rule.kind == "random":
                rows = np.arange(first_row, first_row + batch.num_rows)
                first_row += batch.num_rows
                yield batch.filter(self.by_number(index, rows))
            else:
                yield batch

    def _filtered(self, file: RawFile, columns: Sequence[str], rule_types: Mapping[str, ColumnType]) -> str:
        """Return SQL of raw rows for which the predicate, which sees its columns typed, is true."""
        raw = [f"{raw_files.INTERNAL}_raw_{i}" for i in range(len(columns))]
        rule_raw = [f"{raw_files.INTERNAL}_rule_{i}" for i in range(len(rule_types))]
        source = file.select([*columns, *rule_types], [*raw, *rule_raw], skip_bad_lines=file.kind == "csv")
        typed = "".join(
            f", {typed_rows.typed_sql(file, column, quote(alias), kind)} AS {quote(column)}"
            for alias, (column, kind) in zip(rule_raw, rule_types.items(), strict=True)
        )
        named = ", ".join(
            f"{quote(alias)} AS {quote(column)}" for alias, column in zip(raw, columns, strict=True)
        )
        return f"SELECT {named} FROM (SELECT *{typed} FROM ({source})) WHERE TRY(({self.rule.predicate}\n))"


def booleans(column: Any, *, missing: bool) -> NDArray[np.bool_]:
    """An Arrow column of booleans, NULL as `missing`."""
    mask: NDArray[np.bool_] = column.fill_null(missing).to_numpy(zero_copy_only=False)
    return mask
