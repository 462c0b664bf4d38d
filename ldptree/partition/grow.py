"""The partition that settings ask for, from public rows: one place for the estimators and the pipeline. How each kind is cut is
in `partition`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.label_unit import in_range_of_one
from ldptree.mechanisms import MECHANISMS
from ldptree.mechanisms.additive import Additive
from ldptree.partition import PARTITIONS, Partition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.inference.algorithm_2 import PaperOptions


def grow(
    X: NDArray[np.float32],
    y: NDArray[np.int64] | NDArray[np.float64],
    *,
    kind: str,
    depth: int,
    n_classes: int,
    mechanism: str,
    criterion: str = "gini",
    min_samples_leaf: int = 1,
    options: PaperOptions | None = None,
    seed: int = 0,
) -> Partition:
    """Grow a partition on scaled public rows [n, d].

    Where edges are cut, a cell with no public row is cut too, unless the mechanism adds noise to every cell, as the papers'
    do: then such a cell would hold nothing but noise (`max_edge.grow` has the figures).

    Args:
        X, y: public rows and classes, or numbers where criterion is "variance"; none for the edges only.
        kind: one of `PARTITIONS`; "cart" without public rows is "max-edge".
        depth: the deepest a cell may lie.
        n_classes: C (of no matter for "variance").
        mechanism: one of `ldptree.mechanisms.CHOICES`.
        criterion: what a cut is scored by: "gini", "entropy" or "variance".
        min_samples_leaf: fewest public rows in a cell, where above 1.
        options: of LPCT's Algorithm 2, which says itself whether empty cells are cut.
        seed: of the public coins of "random-edge".

    Raises:
        ConfigError, DataError: as the partitions.
    """
    if criterion == "variance":
        y = in_range_of_one(y)
    if kind == "cart" and len(X):
        return PARTITIONS[kind](
            X, y, depth=depth, n_classes=n_classes, criterion=criterion, min_samples_leaf=min_samples_leaf
        )
    is_noisy = mechanism in MECHANISMS and issubclass(MECHANISMS[mechanism], Additive)
    more: dict[str, Any] = {"seed": seed} if kind == "random-edge" else {"criterion": criterion}
    return PARTITIONS["max-edge" if kind == "cart" else kind](
        X,
        y,
        depth=depth,
        n_classes=n_classes,
        min_samples_leaf=min_samples_leaf if min_samples_leaf > 1 else 0,
        stop_empty=len(X) > 0 and (options.stop_empty if options else is_noisy),
        **more,
    )
