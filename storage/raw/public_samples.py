"""Sample the public values of raw columns batch by batch in one pass, with counts and a sample of bounded size.

What the values mean is told in `storage.raw.recognition`; which type they fit, by `TypeEvidence`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from storage.raw.raw_files import INTERNAL
from storage.raw.recognition.findings import HEAD, LEVELS_LISTED, SPREAD, ColumnSample
from storage.raw.typed_rows import TypeEvidence, count_evidence

if TYPE_CHECKING:
    import polars as pl

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
        rows = max(CELLS // max(len(columns), 1), FEWEST_ROWS)
        self._n_head, self._n_spread = min(HEAD, rows), min(SPREAD, rows)
        self._head: list[pl.DataFrame] = []
        self._spread: list[pl.DataFrame] = []
        self._share = 1.0
        self._draws = np.random.default_rng(SEED)
        self._seen = 0
        self._distinct: dict[str, set[str]] = {column: set() for column in columns}

    def add(self, texts: pl.DataFrame) -> None:
        """Add a batch of raw texts, null where missing."""
        import polars as pl

        for column, evidence in count_evidence(texts).items():
            self.evidence[column] += evidence
            known = self._distinct[column]
            if evidence.number < evidence.present and len(known) <= LEVELS_LISTED:
                known |= set(texts[column].drop_nulls().unique().head(LEVELS_LISTED + 1).to_list())
        if self._seen < self._n_head:
            self._head.append(texts.head(self._n_head - self._seen))
        drawn = texts.with_columns(pl.Series(DRAW, self._draws.random(texts.height)))
        self._spread.append(drawn.filter(pl.col(DRAW) < self._share))
        self._seen += texts.height
        self._thin_out()

    def sample(self, column: str) -> ColumnSample:
        """Return the sample of a column."""
        evidence = self.evidence[column]
        head, spread = (_values(frames, column) for frames in (self._head, self._spread))
        return ColumnSample(
            column=column,
            head=head,
            spread=spread,
            n_distinct=max(len(self._distinct[column]), len(set(head))),
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


def _values(frames: Sequence[pl.DataFrame], column: str) -> list[str]:
    """The values of a column that are there."""
    return [value for frame in frames for value in frame.get_column(column).to_list() if value is not None]


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
