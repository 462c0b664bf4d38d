"""Find public rows by a rule on the content of a row (a predicate) or on its number alone, and sample their values.

What a rule can be is in `schemas.dataset`. Values are sampled batch by batch in one pass, with counts and a sample of bounded
size; what they mean is told in `storage.raw.recognition`, which type they fit by `TypeEvidence`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from schemas.dataset import ColumnType, PublicRule
from storage.digests import mixed
from storage.raw import raw_files, typed_rows
from storage.raw.raw_files import INTERNAL, RawFile
from storage.raw.recognition.findings import LEVELS_LISTED, SPREAD, ColumnSample
from storage.raw.typed_rows import PUBLIC, TypeEvidence, count_evidence
from storage.sql import UTC, by_clock, quote

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True)
class PublicSelection:
    """Which rows of a list of raw files are public."""

    rule: PublicRule
    """As it was written, or for "random" where a raw column names holders, the same of holders (`draw_holders`)."""
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
        rule = by_clock(self.rule.predicate or "", file.timezone or UTC)
        return f"SELECT {named} FROM (SELECT *{typed} FROM ({source})) WHERE TRY(({rule}\n))"


def draw_holders(rule: PublicRule, holder: str, seed: int) -> PublicRule:
    """Return the rule "random" for holders: each with all rows, by a hash of the seed and the name, however that is stored."""
    name = f"coalesce(CAST(TRY_CAST({quote(holder)} AS BIGINT) AS VARCHAR), CAST({quote(holder)} AS VARCHAR))"
    # MD5 as a mixer that no DuckDB release changes, not for secrecy: these coins are public.
    hashed = f"md5_number_lower('{seed} ' || {name})"
    threshold = int((rule.fraction or 0.0) * 2.0**64)
    return PublicRule(kind="predicate", text=rule.text, predicate=f"{hashed} < {threshold}")


def booleans(column: Any, *, missing: bool) -> NDArray[np.bool_]:
    """An Arrow column of booleans, NULL as `missing`."""
    import polars as pl  # pyarrow would import pandas for a scalar

    mask: NDArray[np.bool_] = pl.Series(column).fill_null(missing).to_numpy()
    return mask


SEED = 1
CELLS = 2_000_000
"""Values kept of all columns together, about; of very many columns fewer rows are kept."""
FEWEST_ROWS = 100
DRAW = f"{INTERNAL}_draw"
"""The column of the number that decides whether a row is kept."""


class PublicValues:
    """The public values of some raw columns so far."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.evidence = {column: TypeEvidence() for column in columns}
        self._n_spread = min(SPREAD, max(CELLS // max(len(columns), 1), FEWEST_ROWS))
        self._spread: list[pl.DataFrame] = []
        self._share = 1.0
        self._draws = np.random.default_rng(SEED)
        self._distinct: dict[str, set[str]] = {column: set() for column in columns}

    def add(self, texts: pl.DataFrame) -> None:
        """Add a batch of raw texts, null where missing."""
        import polars as pl

        for column, evidence in count_evidence(texts).items():
            self.evidence[column] += evidence
            known = self._distinct[column]
            if evidence.number < evidence.present and len(known) <= LEVELS_LISTED:
                known |= set(texts[column].drop_nulls().unique().head(LEVELS_LISTED + 1).to_list())
        drawn = texts.with_columns(pl.Series(DRAW, self._draws.random(texts.height)))
        self._spread.append(drawn.filter(pl.col(DRAW) < self._share))
        self._thin_out()

    def sample(self, column: str) -> ColumnSample:
        """Return the sample of a column."""
        evidence = self.evidence[column]
        values = (value for frame in self._spread for value in frame.get_column(column).to_list())
        spread = [value for value in values if value is not None]
        return ColumnSample(
            column=column,
            spread=spread,
            n_distinct=max(len(self._distinct[column]), len(set(spread))),
            is_number=evidence.number == evidence.present,
            is_mostly_number=2 * evidence.number > evidence.present,
            is_whole=evidence.integer == evidence.present,
            is_truth=evidence.boolean == evidence.present,
        )

    def _thin_out(self) -> None:
        """Draw half of the rows if there are too many, from all rows alike, whatever their number turns out to be.

        Every second row would be of one kind where two kinds alternate.
        """
        import polars as pl

        while sum(frame.height for frame in self._spread) > 2 * self._n_spread:
            self._share /= 2
            self._spread = [pl.concat(self._spread).filter(pl.col(DRAW) < self._share)]


def gather(columns: Sequence[str], batches: Iterable[tuple[Any, Sequence[str]]]) -> PublicValues:
    """The values of the columns in Arrow record batches of raw rows; beside each batch the texts that mean "missing"."""
    values = PublicValues(columns)
    for batch, nulls in batches:
        values.add(raw_texts(batch, nulls))
    return values


def raw_texts(batch: Any, nulls: Sequence[str]) -> pl.DataFrame:
    """Raw values as texts without blanks around them; missing ones as null."""
    import polars as pl
    import polars.selectors as cs

    each = pl.all()
    return (
        pl.DataFrame(batch)
        .with_columns(cs.float().fill_nan(None))
        .select(each.cast(pl.String).str.strip_chars())
        .select(each.replace(list(nulls), None))
    )
