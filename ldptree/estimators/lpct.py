"""LPCT as a scikit-learn classifier, with a small public sample and one randomised report of everybody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin

from ldptree.encoding import Encoding
from ldptree.estimators.tree import TreeEstimator, TreeReports
from ldptree.families.settings import LPCTSettings
from ldptree.families.tree import LPCT
from ldptree.models.tree import ClassTree
from ldptree.validation import Noisy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.estimators.holders import SplitRows

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class LPCTClassifier(
    Noisy,
    ClassifierMixin,  # type: ignore[misc]
    TreeEstimator,
    settings=(LPCTSettings, TreeReports),
):
    """Locally private classification tree with public data (LPCT, Ma and Yang, JMLR 2024), and what goes beyond it.

    A tree is grown on public rows. Every private row sends one epsilon-LDP report of its cell and label. In each cell the
    model weighs public labels against reports. The defaults spend the whole epsilon on one joint report, learn from the
    totals how far public and private people differ, and smooth cells over the tree; they need no tuning.

    Args:
        {parameters}

    Attributes:
        classes_: the labels of the public rows; without public rows, those of all rows.
        partition_: the tree on scaled features.
        mechanism_: how holders report.
        totals_: the unbiased totals, with their variances.
        model_: what is released.
        protocol_: what a holder needs to answer.
        ledger_: what every private row spent, on what.
        tuning_: what tuning found, a `Tuning`; None without. Its rows are private rows in the order drawn.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    _is_numeric = False
    model_: ClassTree

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Classes [n] of rows [n, d]."""
        nodes = self._nodes(X)
        return np.asarray(self.classes_[self.model_.decision[nodes]])

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Expected shares of the classes, float64 [n, C], of private people in each row's cell."""
        nodes = self._nodes(X)
        return np.asarray(self.model_.probability[nodes])

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return the margin of two classes, float64 [n], which is the share of class 1 less 1/2. Of more classes,
        return each class's expected share less 1/C, float64 [n, C]. The predicted class has the largest.
        """
        nodes = self._nodes(X)
        if self.classes_.size == 2:
            return np.asarray(self.model_.estimate[nodes, 0])
        return np.asarray(self.model_.probability[nodes] - 1.0 / self.classes_.size)

    def margin_interval(self, X: ArrayLike, level: float = 0.9) -> tuple[Floats, Floats]:
        """Low and high ends of each row's margins, believed with probability `level`; each in the shape of `decision_function`.

        A margin is a class's share less 1/C. Where an interval holds 0 the reports carry no decision, and you may abstain.

        Measured (docs/measured/lpct.md): by default, and with lam = 0, 90 % intervals hold about 90 % where public and
        private people are alike, and less where they differ and epsilon is small. Other settings hold less: lam = "auto" or
        above 0 ignores that public labels chose the cells of a CART, and prune = "variance" or "paper" ignores its own choice
        between a cell and its ancestors.
        """
        nodes = self._nodes(X)
        low, high = (end[nodes] for end in self.model_.estimate_interval(level))
        return (low[:, 0], high[:, 0]) if self.classes_.size == 2 else (low, high)

    def _read_labels(
        self, labels: NDArray[Any], is_public: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], tuple[Any, ...]]:
        codes, classes = self._read_classes(labels, is_public)
        self._check_classes(len(classes))
        return codes, classes

    def _family(self, encoding: Encoding, seeds: Ints | None) -> LPCT:
        return LPCT(**self._inputs(encoding, seeds), has_positive=self.classes_.size == 2)

    _largest_error = 1.0

    def _errors_of(self, model: ClassTree, rows: SplitRows) -> Floats:
        return np.asarray(model.predict(rows.private_rows) != rows.private_labels, dtype=np.float64)
