"""The histogram of the private features: t bins of equal length on each of s features, t^s cells (HistOfTree section 3.2).

No row is needed to make one: bins are cut from the range alone, which is what a private feature allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ldptree.errors import ConfigError, DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MAX_BINS = 254
"""A bin, or the absence of one, is one byte in a report."""


@dataclass(frozen=True)
class Histogram:
    """Bins on [0, 1]^s; a cell's number has the bin of the first feature as its highest digit.

    Attributes:
        features: the s columns, each once; none for a single cell.
        bins: t, 1 to 254.

    Raises:
        ConfigError: a feature stands twice or is negative, or t is out of range.
    """

    features: tuple[int, ...]
    bins: int

    def __post_init__(self) -> None:
        if len(set(self.features)) != len(self.features) or min(self.features, default=0) < 0:
            raise ConfigError(f"histogram: features {list(self.features)} must be different column numbers")
        if not 1 <= self.bins <= MAX_BINS:
            raise ConfigError(f"histogram: t = {self.bins} bins; must be 1 to {MAX_BINS}")

    @property
    def n_cells(self) -> int:
        """t^s."""
        return int(self.bins ** len(self.features))

    @property
    def places(self) -> NDArray[np.int64]:
        """What a bin of each feature adds to the cell's number, int64 [s]."""
        s = len(self.features)
        return self.bins ** np.arange(s - 1, -1, -1, dtype=np.int64)

    def digits(self, X: Floats) -> NDArray[np.int64]:
        """The bins of scaled rows [n, d], int64 [n, s]; bin k is [k / t, (k + 1) / t), the last one closed."""
        binned = np.asarray(X, dtype=np.float32)[:, list(self.features)]
        digits: NDArray[np.int64] = np.floor(binned * np.float32(self.bins)).astype(np.int64)
        return np.clip(digits, 0, self.bins - 1)

    def apply(self, X: Floats) -> NDArray[np.int64]:
        """The cell of each scaled row [n, d], int64 [n]."""
        cells: NDArray[np.int64] = self.digits(X) @ self.places
        return cells

    def to_json(self) -> dict[str, Any]:
        """Plain values, from which `from_json` makes an equal histogram."""
        return {"features": list(self.features), "bins": self.bins}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The histogram that `to_json` wrote. Raises DataError where it is none."""
        if not isinstance(data, Mapping) or set(data) != {"features", "bins"}:
            raise DataError("histogram: expected exactly the fields features and bins")
        features, bins = data["features"], data["bins"]
        if (
            type(bins) is not int
            or not isinstance(features, list)
            or any(type(f) is not int for f in features)
        ):
            raise DataError("histogram: features must be a list of whole numbers, and bins one")
        return cls(tuple(features), bins)
