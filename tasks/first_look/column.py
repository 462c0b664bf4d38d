"""What was seen of one column of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schemas.dataset import ColumnType
    from storage.raw.recognition.findings import Finding


@dataclass(frozen=True, kw_only=True)
class Column:
    """What one column holds.

    Attributes:
        name: as in the file.
        type: what its values fit; "text" where there are none.
        finding: what is the matter with it, as ingest would say.
        n_values: different values among those looked at.
        n_missing: values that are missing.
        is_declared_text: whether it must be declared a text before it is read.
        apart: values that may stand for "missing", and in how many rows each is.
    """

    name: str
    type: ColumnType
    finding: Finding | None
    n_values: int
    n_missing: int
    is_declared_text: bool = False
    apart: Mapping[int | float | str, int] = field(default_factory=dict)

    def declared_type(self, *, is_feature: bool) -> ColumnType:
        """The type that the configuration declares: a feature that is whole here may well not be so elsewhere."""
        if self.finding is not None and self.finding.readings:
            return "integer" if self.finding.is_whole and self.type in ("integer", "number") else "text"
        if self.is_declared_text:
            return "text"
        return "number" if is_feature and self.type == "integer" else self.type

    def tell_apart(self, n_rows: int) -> str:
        """The values that may stand for "missing", with their counts; "" where there are none."""
        return " and ".join(f"{value} ({n:,} of {n_rows:,} rows)" for value, n in self.apart.items())
