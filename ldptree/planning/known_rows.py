"""Rows that a plan knows whole, which are public ones, or people whom those play."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.encoding import Encoding

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownRows:
    """Public rows, or people that they play.

    Attributes:
        encoding: how a row is read.
        raw: float64 [n, columns], every row encodable.
        labels: class indices or numbers, [n].
        label: the declared classes, or the two ends of a number's range.
        protects: bool [n, d], what each protects where some features are public; else nothing.
    """

    encoding: Encoding
    raw: Floats
    labels: NDArray[Any]
    label: tuple[Any, ...]
    protects: Mask

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.labels)

    @property
    def is_number(self) -> bool:
        """True if the label is a number."""
        return self.labels.dtype.kind == "f"

    def part(self, rows: NDArray[np.integer]) -> KnownRows:
        """These rows."""
        return replace(self, raw=self.raw[rows], labels=self.labels[rows], protects=self.protects[rows])

    def draw(self, n: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Rows of n people drawn with replacement, int64 [n], increasing."""
        return np.repeat(np.arange(self.n), generator.multinomial(n, np.full(self.n, 1.0 / self.n)))
