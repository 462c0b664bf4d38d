"""How many features are binned, in how many bins, and how deep the tree goes: AdHistOfTree's choice (HistOfTree eq. 15).

From the sizes, epsilon and the mask alone; no label and no value of a feature is looked at. What to do with the choice is in
`curator`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.partition.product import MAX_BINS, MAX_CELLS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

BIAS_WEIGHTS = (0.01, 0.1, 1.0)
"""The constants that the paper tries on the second term (appendix C.1)."""
BIN_SHIFTS = (-1, 0, 1)
"""What the paper adds to t* (appendix C.1)."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Attributes:
    n_binned: s, the features of the histogram.
    bins: t.
    depth: p.
    """

    n_binned: int
    bins: int
    depth: int


def binned_features(protects: Mask, n_binned: int) -> tuple[int, ...]:
    """The s features that most holders protect, increasing; of equals those with the smallest numbers (section 3.3)."""
    return tuple(sorted(_by_protection(protects)[:n_binned].tolist()))


def choose(
    protects: Mask,
    epsilon: float,
    *,
    n_binned: int | None = None,
    bins: int | None = None,
    depth: int | None = None,
    bias_weight: float = 1.0,
    bin_shift: int = 0,
) -> Shape:
    """(s, p) by brute force on (15), then t = 2^(p / (d - s)) rounded, moved by bin_shift, and at least 1.

    The objective is 2^(p (d + s) / (d - s)) log(n) / (n eps^2) delta(p) + bias_weight 2^(-2 p / (d - s)), with delta(p) the
    mean over holders of 2^(p c_i / (d - s)), c_i the features that holder i protects outside the histogram (12). With s = d,
    where it has no meaning, t stands for 2^(p / (d - s)) and p is 0.

    Args:
        protects: bool [n, d].
        epsilon: of the whole.
        n_binned, bins, depth: s, t, p where they are known.
        bias_weight: the constant on the second term.
        bin_shift: added to t*.
    """
    n, d = protects.shape
    order = _by_protection(protects)
    noise = math.log(max(n, 2)) / (max(n, 1) * epsilon**2)
    best: tuple[float, Shape] | None = None
    # c_i, less one column with every s
    outside = protects.sum(axis=1)
    for s in range(d + 1):
        if s:
            outside = outside - protects[:, order[s - 1]]
        if s != n_binned and (n_binned is not None or s == d):
            continue
        holders = np.bincount(outside)
        counts = np.flatnonzero(holders)
        holders = holders[counts]
        depths, fineness = _candidates(n, d, s, bins, depth)
        # 2^(p / (d - s)), the edge count that t must match
        edges = np.exp2(fineness)
        t = np.clip(np.round(edges) + bin_shift, 1, MAX_BINS)
        if bins is not None or not s:
            t[:] = bins if s else 1
        with np.errstate(over="ignore"):  # a partition of that many cells is none anyway
            delta = np.exp2(fineness[:, None] * (counts + d + s)) @ holders / max(n, 1)
        value = noise * delta + bias_weight * edges**-2.0
        value[s * np.log2(t + 1) + depths > math.log2(MAX_CELLS) + 1e-9] = np.inf
        at = int(np.argmin(value))
        if np.isfinite(value[at]) and (best is None or value[at] < best[0] * (1 - 1e-12)):
            best = float(value[at]), Shape(n_binned=s, bins=int(t[at]), depth=int(depths[at]))
    if best is None:  # nothing that was asked for fits: the partition says so
        s = n_binned or 0
        return Shape(n_binned=s, bins=bins or 1, depth=(depth or 0) if s < d else 0)
    return best[1]


def _candidates(
    n: int, d: int, s: int, bins: int | None, depth: int | None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Depths p to try, up to log2 n, and log2 of the edge count of each."""
    deepest = max(1, math.floor(math.log2(max(n, 2))))
    if s == d:
        most = np.arange(1, max(2, round(2 ** (deepest / d))) + 1) if bins is None else np.array([bins])
        return np.zeros(most.size, dtype=np.int64), np.log2(most)
    depths = np.arange(deepest + 1) if depth is None else np.array([depth])
    return depths, depths / (d - s)


def _by_protection(protects: Mask) -> NDArray[np.int64]:
    """Features by how many holders protect them, most first."""
    order: NDArray[np.int64] = np.argsort(-protects.sum(axis=0), kind="stable")
    return order
