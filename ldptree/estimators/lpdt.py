"""LPDT as a scikit-learn regressor, with a small public sample and one randomised report of everybody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin

from ldptree.estimators.range_warnings import warn_of_assumed_label
from ldptree.estimators.tree import TreeEstimator, TreeReports
from ldptree.families.settings import LPDTSettings
from ldptree.families.tree import LPDT
from ldptree.validation import Noisy, checked_label_range

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.encoding import Encoding
    from ldptree.estimators.holders import SplitRows
    from ldptree.models.tree import NumberTree

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class LPDTRegressor(
    Noisy,
    RegressorMixin,  # type: ignore[misc]
    TreeEstimator,
    settings=(LPDTSettings, TreeReports),
):
    """Locally private regression tree with public data (LPDT, NeurIPS 2023), and what goes beyond it.

    A tree is grown on public rows. Every private row sends one epsilon-LDP report of its cell and label. In each cell the
    model weighs the public mean against the private one, and smooths over the tree. The defaults spend the whole epsilon on
    one joint report, with the label rounded at random between levels of its range; they need no tuning.

    The paper's estimator is mechanism = "randomized_response", partition = "max-edge" (LPDT-M) or "cart" (LPDT-V), lam = 0,
    prune = "none", rule = "ratio", with your own depth, rho and min_samples_leaf: by section 2.3 a cell stays whole where a side
    of its split has fewer public rows (n_l).

    Args:
        {parameters}

    Attributes:
        label_range_: the range in use.
        partition_, mechanism_, totals_, model_, protocol_, ledger_, tuning_: as of `LPCTClassifier`; `model_.partition` may split
            the cells of `partition_`, the tree that holders are asked about, further.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    _is_numeric = True
    model_: NumberTree

    label_range: Any

    def predict(self, X: ArrayLike) -> Floats:
        """Expected labels, float64 [n], of rows [n, d]."""
        rows = self._read_rows(X)
        values: Floats = self.model_.predict(rows)
        return values

    def mean_interval(self, X: ArrayLike, level: float = 0.9) -> tuple[Floats, Floats]:
        """Ends of what is believed of the mean label in each row's cell with probability `level`, each float64 [n].

        They are no guarantee. Where private people differ from public ones, all of them or in part of the features' space, those
        of 90 % held for .7 to 1.0 of the rows measured (docs/measured/lpdt.md): parts of a cell that reports are asked about get
        its difference, with no room for how differently they may differ.
        """
        nodes = self._nodes(X)
        low, high = self.model_.interval(level)
        return low[nodes, 0], high[nodes, 0]

    def _read_labels(
        self, labels: NDArray[Any], is_public: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], tuple[Any, ...]]:
        self.label_range_ = checked_label_range(self.label_range, labels[is_public])
        if self.label_range is None and not is_public.any():
            warn_of_assumed_label(*self.label_range_)
        return labels, self.label_range_

    def _family(self, encoding: Encoding, seeds: Ints | None) -> LPDT:
        return LPDT(**self._inputs(encoding, seeds))

    @property
    def _largest_error(self) -> float:
        low, high = self.label_range_
        return (high - low) ** 2

    def _errors_of(self, model: NumberTree, rows: SplitRows) -> Floats:
        return np.asarray(
            (model.predict(rows.private_rows) - np.clip(rows.private_labels, *self.label_range_)) ** 2
        )
