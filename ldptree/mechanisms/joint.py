"""The joint report: cell and label together are one categorical value, and the whole epsilon goes on it.

With L cells and C classes the alphabet has K = L C + 1 values: cell * C + label, and "outside" last (a label
not declared, a row that cannot be placed). Any frequency oracle reports it, so one report is eps-LDP in
(x, y) together. The papers send cell and label apart (LPCT eqs 5 and 6, each with half of epsilon), at 40 / eps^2
of noise variance a holder for a cell's margin A = (class 1) - (cell) / 2; the joint report with oue
has 2 e^eps / (e^eps - 1)^2, 1.8 instead of 40 at epsilon 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.errors import DataError
from ldptree.oracles import ORACLES, Oracle

# in the order of preference where two are equally good
_CHOICE = ("grr", "oue")


def alphabet(n_cells: int, n_classes: int) -> int:
    """K = L C + 1."""
    return n_cells * n_classes + 1


def report_values(cells: ArrayLike, labels: ArrayLike, *, n_cells: int, n_classes: int) -> NDArray[np.int64]:
    """The value each holder reports: int64 [n] in 0 .. K - 1.

    Args:
        cells: int [n], 0 .. n_cells - 1; -1 (no cell) is outside.
        labels: int [n], 0 .. n_classes - 1; -1 (not declared) is outside.
        n_cells: L.
        n_classes: C.

    Raises:
        DataError: the lengths differ, or a cell or label is out of range.
    """
    cells, labels = np.asarray(cells, dtype=np.int64), np.asarray(labels, dtype=np.int64)
    if cells.shape != labels.shape or cells.ndim != 1:
        raise DataError(f"joint: cells have shape {cells.shape}, labels {labels.shape}; both must be [n]")
    for name, array, size in (("cell", cells, n_cells), ("label", labels, n_classes)):
        if array.size and (array.min() < -1 or array.max() >= size):
            raise DataError(f"joint: a {name} is not in -1 .. {size - 1}")
    is_outside = (cells < 0) | (labels < 0)
    return np.where(is_outside, n_cells * n_classes, cells * n_classes + labels)


def choose_oracle(epsilon: float, k: int) -> Oracle:
    """Of grr and oue over k values, the one with the smallest mean noise variance if all are equally likely.

    grr wins for small k or large epsilon, oue for large k. No private row is looked at.
    """
    return min((ORACLES[name].for_budget(epsilon, k) for name in _CHOICE), key=Oracle.mean_variance)


def margin_variance_per_holder(oracle: str, epsilon: float, n_cells: int, n_classes: int) -> float:
    """v_A: noise variance of a cell's margin A = (class 1) - (cell) / 2, over the number of holders.

    The exact linear form (covariances included), of which the part is taken that does not depend on where the
    holders are; the rest is the share of the cell times a constant, 1/4 for oue. With two classes:
    oue 2 e^eps / (e^eps - 1)^2, grr q / (2 (p - q)^2).
    """
    chosen = ORACLES[oracle].for_budget(epsilon, alphabet(n_cells, n_classes))
    return float(
        chosen.variance_of_sums(
            weights=1 - n_classes / 2, squares=n_classes / 4, weighted=0, weighted_squares=0, n=1
        )
    )
