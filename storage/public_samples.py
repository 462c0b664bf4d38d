"""What the public values of raw columns look like, gathered batch by batch in one pass: counts, and a sample of bounded size.

What the values mean is told in `storage.recognition`; which type they fit, by `Evidence`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from storage.recognition.findings import HEAD, LEVELS_TOLD, SPREAD, ColumnSample
from storage.typed_rows import Evidence, count_evidence

if TYPE_CHECKING:
    import polars as pl


class PublicValues:
    """The public values of one raw column so far."""

    def __init__(self, column: str) -> None:
        self.column = column
        self.evidence = Evidence()
        self._head: list[str] = []
        self._spread: list[str] = []
        self._stride = 1
        self._seen = 0
        self._distinct: set[str] = set()

    def add(self, values: pl.Series, evidence: Evidence) -> None:
        """One batch more: texts that are there, and what they count for."""
        self.evidence += evidence
        if len(self._head) < HEAD:
            self._head += values.head(HEAD - len(self._head)).to_list()
        # Every value, then every second, every fourth: evenly from all rows, whatever their number turns out to be.
        self._spread += values.gather_every(self._stride, -self._seen % self._stride).to_list()
        self._seen += len(values)
        while len(self._spread) > 2 * SPREAD:
            self._spread = self._spread[::2]
            self._stride *= 2
        if len(self._distinct) <= LEVELS_TOLD:
            self._distinct |= set(values.unique().head(LEVELS_TOLD + 1).to_list())

    def sample(self) -> ColumnSample:
        """What is told of the column."""
        found = self.evidence
        return ColumnSample(
            column=self.column,
            head=self._head,
            spread=self._spread,
            n_distinct=len(self._distinct),
            is_number=found.number == found.present,
            is_mostly_number=2 * found.number > found.present,
            is_whole=found.integer == found.present,
            is_truth=found.boolean == found.present,
        )


def gather(columns: Sequence[str], batches: Iterable[tuple[Any, Sequence[str]]]) -> dict[str, PublicValues]:
    """The values of each column in Arrow record batches of raw rows; beside each batch the texts that mean "missing"."""
    total = {column: PublicValues(column) for column in columns}
    for batch, nulls in batches:
        texts = _texts(batch, nulls)
        for column, found in count_evidence(texts).items():
            total[column].add(texts[column].drop_nulls(), found)
    return total


def _texts(batch: Any, nulls: Sequence[str]) -> pl.DataFrame:
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
