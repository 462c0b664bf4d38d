"""A histogram on some features times a tree on the others, and the cells a holder could be in (HistOfTree section 3.3).

What a holder shows leaves it one bin or all of them on each feature of the histogram, and some leaves of the tree: the
potential cells V_i are a product of sets, and are kept as one (`Candidates`), never as holders x cells. `masked` grows the trees.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ldptree.errors import ConfigError, DataError
from ldptree.limits import MAX_BINS
from ldptree.partition.tree import LEAF, Partition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

MAX_CELLS = 2**22
"""Limit of (t + 1)^s 2^p, as sums over potential cells start on a grid with one more place per feature ("any bin")."""
BYTES_A_CELL = 64
ANY = -1


@dataclass(frozen=True)
class Histogram:
    """t bins of equal length on each of s features, in t^s cells (HistOfTree section 3.2), made without rows.

    A cell's number has the bin of the first feature as its highest digit.

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
        """Step in the cell's number for a bin of each feature, int64 [s]."""
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


def check_size(bins: int, n_binned: int, depth: int) -> None:
    """Check that t^s x 2^p cells can be kept.

    Raises:
        ConfigError: they cannot; says how large they are and what the largest is that fits.
    """
    if (bins + 1) ** n_binned * 2**depth <= MAX_CELLS:
        return
    size = bins**n_binned * 2**depth * BYTES_A_CELL / 2**30
    fits_p = max((p for p in range(63) if (bins + 1) ** n_binned * 2**p <= MAX_CELLS), default=None)
    fits_t = max((t for t in range(1, bins) if (t + 1) ** n_binned * 2**depth <= MAX_CELLS), default=None)
    fits_s = max((s for s in range(n_binned) if (bins + 1) ** s * 2**depth <= MAX_CELLS), default=None)
    fitting = [
        f"{name} = {value} with the rest as it is"
        for name, value in (("p", fits_p), ("t", fits_t), ("s", fits_s))
        if value is not None
    ]
    raise ConfigError(
        f"t^s x 2^p = {bins}^{n_binned} x 2^{depth} cells take about {size:,.1f} GiB, and (t + 1)^s x 2^p may be at most "
        f"{MAX_CELLS:,}; the largest that fits: {' or '.join(fitting) or 'p = 0 with t = 1'}"
    )


@dataclass(frozen=True, eq=False)
class Product:
    """The cells A x B of a histogram and a tree; cell number = histogram cell x leaves + leaf.

    Attributes:
        histogram: on the features most protected.
        tree: on [0, 1]^d, testing none of the histogram's features.

    Raises:
        DataError: the tree tests a feature of the histogram.
        ConfigError: more than `MAX_CELLS`.
    """

    histogram: Histogram
    tree: Partition

    def __post_init__(self) -> None:
        if np.isin(self.tree.feature[self.tree.feature != LEAF], self.histogram.features).any():
            raise DataError("product partition: the tree tests a feature that the histogram bins")
        n_binned = len(self.histogram.features)
        if (self.histogram.bins + 1) ** n_binned * self.tree.n_leaves > MAX_CELLS:
            check_size(self.histogram.bins, n_binned, max(self.tree.n_leaves - 1, 1).bit_length())

    @property
    def n_cells(self) -> int:
        """Bins to the power of features, times leaves."""
        return self.histogram.n_cells * self.tree.n_leaves

    def apply(self, X: Floats) -> NDArray[np.int64]:
        """The cell of each complete scaled row [n, d], int64 [n]."""
        leaves = self.tree.apply(np.asarray(X, dtype=np.float32)) if self.tree.n_leaves > 1 else 0
        cells: NDArray[np.int64] = self.histogram.apply(X) * self.tree.n_leaves + leaves
        return cells

    def candidates(self, values: Floats, protects: Mask) -> Candidates:
        """V_i of each holder.

        Args:
            values: float64 [m, d] scaled; what stands where a value is protected is not looked at.
            protects: bool [m, d].
        """
        binned = list(self.histogram.features)
        digits = np.where(protects[:, binned], ANY, self.histogram.digits(values))
        return Candidates(self.histogram.bins, digits, self._leaves(values, protects))

    def _leaves(self, values: Floats, protects: Mask) -> Mask:
        """Return the leaves that some row with what is shown would reach, bool [m, leaves]."""
        tree = self.tree
        values = np.asarray(values, dtype=np.float32)
        reached = np.zeros((tree.n_nodes, len(values)), dtype=np.bool_)
        reached[0] = True
        for node in np.flatnonzero(tree.feature != LEAF):
            feature = tree.feature[node]
            is_left = values[:, feature] <= tree.threshold[node]
            reached[tree.left[node]] = reached[node] & (is_left | protects[:, feature])
            reached[tree.right[node]] = reached[node] & (~is_left | protects[:, feature])
        return np.ascontiguousarray(reached[tree.leaves].T)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of histogram and tree."""
        text = f"ldptree product 1 {self.histogram.features} {self.histogram.bins} {self.tree.digest}"
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Candidates:
    """The potential cells of m holders, each a product of bins and leaves.

    Attributes:
        bins: t.
        digits: int64 [m, s], a bin, or -1 for any.
        leaves: bool [m, L], the leaves that are possible; at least one each.
    """

    bins: int
    digits: NDArray[np.int64]
    leaves: Mask

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """|V_i|, int64 [m]."""
        n_free = (self.digits == ANY).sum(axis=1)
        sizes: NDArray[np.int64] = self.leaves.sum(axis=1, dtype=np.int64) * self.bins**n_free
        return sizes

    def contain(self, cells: NDArray[np.int64]) -> Mask:
        """Return whether each holder's V_i has this cell, bool [m]."""
        bins, leaves = np.divmod(cells, self.leaves.shape[1])
        shown = self.digits != ANY
        is_bin = (~shown | (self.digits == self._digits_of(bins))).all(axis=1)
        contained: Mask = is_bin & self.leaves[np.arange(len(cells)), leaves]
        return contained

    def ranks(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """The place of a cell in its holder's V_i, int64 [m] in 0 .. |V_i| - 1; the cell must be in it."""
        bins, leaves = np.divmod(cells, self.leaves.shape[1])
        before = np.cumsum(self.leaves, axis=1, dtype=np.int64)
        among_leaves = before[np.arange(len(cells)), leaves] - 1
        among_bins = (self._digits_of(bins) * self._free_places).sum(axis=1)
        ranks: NDArray[np.int64] = among_bins * before[:, -1] + among_leaves
        return ranks

    def cells(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the cell at a place of its holder's V_i, int64 [m], which undoes `ranks`."""
        before = np.cumsum(self.leaves, axis=1, dtype=np.int64)
        among_bins, among_leaves = np.divmod(ranks, before[:, -1])
        leaves = np.argmax(before > among_leaves[:, None], axis=1)
        free = self._free_places
        digits = np.where(
            self.digits == ANY, among_bins[:, None] // np.maximum(free, 1) % self.bins, self.digits
        )
        bins = digits @ self._places
        cells: NDArray[np.int64] = bins * self.leaves.shape[1] + leaves
        return cells

    def matrix(self) -> Mask:
        """Return V_i written out, bool [m, t^s L], for few holders at a time."""
        m, s = self.digits.shape
        bins = np.ones((m, 1), dtype=np.bool_)
        for j in range(s):
            digit = self.digits[:, j, None]
            here = (digit == ANY) | (digit == np.arange(self.bins))
            bins = (bins[:, :, None] & here[:, None, :]).reshape(m, -1)
        return (bins[:, :, None] & self.leaves[:, None, :]).reshape(m, -1)

    def spread(self, weights: Floats) -> Floats:
        """sum_i w_i 1{j in V_i} for every cell j and column of weights [m, c], float64 [c, t^s L].

        Weights are first added on the grid of (t + 1)^s digits, "any" among them, so that the cost is that of m x L and
        of the grid, not of m x cells.
        """
        m, s = self.digits.shape
        n_leaves, side = self.leaves.shape[1], self.bins + 1
        codes = np.where(self.digits == ANY, self.bins, self.digits) @ (side ** np.arange(s - 1, -1, -1))
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        spread = np.zeros((weights.shape[1], side**s, n_leaves))
        for start, stop in zip(starts, [*starts[1:], m], strict=True):
            who = order[start:stop]
            spread[:, codes[who[0]]] = weights[who].T @ self.leaves[who].astype(np.float64)
        spread = spread.reshape(-1, *[side] * s, n_leaves)
        for axis in range(1, s + 1):
            known, anywhere = np.split(spread, [self.bins], axis=axis)
            spread = known + anywhere
        return spread.reshape(weights.shape[1], -1)

    @property
    def _places(self) -> NDArray[np.int64]:
        s = self.digits.shape[1]
        return self.bins ** np.arange(s - 1, -1, -1, dtype=np.int64)

    @cached_property
    def _free_places(self) -> NDArray[np.int64]:
        """Return the step in the rank for each bin, int64 [m, s]; 0 where the bin is shown."""
        free = self.digits == ANY
        behind = np.cumsum(free[:, ::-1], axis=1)[:, ::-1] - free
        places: NDArray[np.int64] = np.where(free, self.bins**behind, 0)
        return places

    def _digits_of(self, bins: NDArray[np.int64]) -> NDArray[np.int64]:
        digits: NDArray[np.int64] = bins[:, None] // self._places % self.bins
        return digits
