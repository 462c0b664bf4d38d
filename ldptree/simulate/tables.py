"""Draw fast by look-up, with categories, quantile functions and bins kept as flat tables, many cells in each.

Only how to draw is here; what the cells mean is said where the tables are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_GUIDE_BITS: Final = 12


@dataclass(frozen=True)
class Guide:
    """Categorical distributions, one for each cell, as 2^12 equally likely values. A draw is one look-up."""

    values: NDArray[np.uint8]  # flat, [cells * 2^12]

    @classmethod
    def of(cls, shares: NDArray[Any]) -> Guide:
        """From shares [..., k], k <= 256; the leading axes, flattened, are the cells. Shares need not sum to
        1."""
        flat = np.asarray(shares, dtype=float).reshape(-1, np.shape(shares)[-1])
        n, k = flat.shape
        cumulative = np.cumsum(flat, axis=1)
        cumulative /= cumulative[:, -1:]
        size = 1 << _GUIDE_BITS
        cells = np.arange(n)[:, None]
        # Cell i's cumulative shares are moved to (i, i + 1], so that one search serves all cells.
        middles = ((np.arange(size) + 0.5) / size + cells).ravel()
        at = np.searchsorted((cumulative + cells).ravel(), middles).reshape(n, size) - cells * k
        return cls(np.minimum(at, k - 1).astype(np.uint8).ravel())

    def draw(self, rng: np.random.Generator, cells: NDArray[Any]) -> NDArray[np.uint8]:
        """One value a row, uint8 [n], from the distribution of the row's cell."""
        u = rng.integers(0, 1 << 16, size=len(cells), dtype=np.uint16) >> (16 - _GUIDE_BITS)
        values: NDArray[np.uint8] = self.values[(cells.astype(np.int32) << _GUIDE_BITS) + u]
        return values


@dataclass(frozen=True)
class Quantiles:
    """Quantile functions, one a cell, linear between evenly spaced probabilities."""

    knots: NDArray[np.float32]  # flat, [cells * n]
    n: int

    @classmethod
    def of(cls, written: dict[str, Any]) -> Quantiles:
        """Read {"rows": [r, n], "cells": [...] numbers of rows}, which has a function used by many cells once."""
        table = np.asarray(written["rows"], dtype=np.float32)[np.asarray(written["cells"])]
        return cls(table.ravel(), table.shape[-1])

    def draw(self, rng: np.random.Generator, cells: NDArray[Any]) -> NDArray[np.float32]:
        """One value a row, float32 [n], from the distribution of the row's cell."""
        place = rng.random(len(cells), dtype=np.float32) * np.float32(self.n - 1)
        below = np.minimum(place.astype(np.int32), self.n - 2)
        place -= below
        below += cells.astype(np.int32) * self.n
        low = self.knots[below]
        values: NDArray[np.float32] = low + (self.knots[below + 1] - low) * place
        return values


@dataclass(frozen=True)
class Steps:
    """The bin numbers of values on a fine grid, as np.digitize gives them, by one look-up."""

    bins: NDArray[np.uint8]
    per_unit: int

    @classmethod
    def of(cls, edges: list[float], per_unit: int) -> Steps:
        """`edges` are multiples of 1 / per_unit."""
        grid = np.arange(math.ceil(max(edges)) * per_unit + 1) / per_unit
        return cls(np.digitize(grid + 1e-9, edges).astype(np.uint8), per_unit)

    def of_values(self, values: NDArray[Any]) -> NDArray[np.uint8]:
        """Bin of each value, uint8 [n]; values are not negative."""
        bins: NDArray[np.uint8] = self.bins[
            np.minimum(values * self.per_unit, len(self.bins) - 1).astype(np.int32)
        ]
        return bins
