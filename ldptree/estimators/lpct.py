"""LPCT as a scikit-learn classifier: a small public sample, and one randomised report of everybody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin

from ldptree.encoding import Encoding
from ldptree.estimators.tree import TreeEstimator
from ldptree.estimators.tuning.losses import Loss, ZeroOneLoss
from ldptree.families.fit_classes import check_settings
from ldptree.families.tree import LPCT
from ldptree.inference.algorithm_2 import PaperOptions
from ldptree.inference.pruning import PRUNINGS
from ldptree.models.tree import ClassTree
from ldptree.validation import Noisy, one_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class LPCTClassifier(Noisy, ClassifierMixin, TreeEstimator):  # type: ignore[misc]
    """Locally private classification tree with public data (LPCT, Ma and Yang, JMLR 2024), and what goes beyond it.

    A tree is grown on public rows. Every private row sends one epsilon-LDP report of its cell and label. In each cell the
    model weighs public labels against reports. The defaults spend the whole epsilon on one joint report, learn from the
    totals how far public and private people differ, and smooth cells over the tree; they need no tuning.

    Args:
        epsilon: the budget of each private row, above 0 and at most 64.
        mechanism: one of `ldptree.mechanisms.CHOICES`: an oracle's name for the joint report over it ("auto": the quieter
            of grr and oue), "signed_subset" for two classes with less noise of their difference, "discrete_laplace" or
            "randomized_response" for the papers', "laplace" to compare with the paper (a simulation
            device, refused without `random_state`).
        partition: "cart" (in its cells `ldptree.inference.depth.default_min_samples_leaf`), "max-edge" or
            "random-edge"; without public rows always one of the edges.
        depth: "auto", or the deepest a cell may lie, at most 62.
        lam: "learned", "auto", or how many private people one public row counts for: 0 is LPCT-P, infinity LPCT-Q.
        prune: "smooth", "variance", "none", or LPCT's Algorithm 2: "paper", or `PaperOptions`.
        rule: "margin", or "ratio" as printed in LPCT eq. 8 (with a fixed lam).
        outside: private values out of range are moved to the border ("clip"), or their row reports "outside" ("drop").
        feature_range: (low, high), numbers or one for each feature; None: of the public rows, or (0, 1) without any.
        tune: None, or "private": a share of the private rows does not train, and chooses among candidates by one private
            report each of their errors (docs/measured/tuning.md).
        candidates: dicts of lam, prune, rule, depth, mechanism, partition, the first of which stays unless
            another is surely better; None: a grid around these parameters that shares its training reports.
        validation_share: of the private rows, where there is tuning.
        tune_mechanism: what validation rows report, one of `ldptree.estimators.tuning.reports.CHOICES`.
        random_state: None draws the holders' coins from the operating system. A number makes a simulation that can be
            repeated, and protects nobody.

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

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        mechanism: str = "auto",
        partition: str = "cart",
        depth: str | int = "auto",
        lam: str | float = "learned",
        prune: str | PaperOptions = "smooth",
        rule: str = "margin",
        outside: str = "clip",
        feature_range: tuple[ArrayLike, ArrayLike] | None = None,
        tune: str | None = None,
        candidates: Sequence[Mapping[str, Any]] | None = None,
        validation_share: float = 0.2,
        tune_mechanism: str = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon: Any = epsilon
        self.mechanism: Any = mechanism
        self.partition: Any = partition
        self.depth: Any = depth
        self.lam: Any = lam
        self.prune: Any = prune
        self.rule: Any = rule
        self.outside: Any = outside
        self.feature_range: Any = feature_range
        self.tune: Any = tune
        self.candidates: Any = candidates
        self.validation_share: Any = validation_share
        self.tune_mechanism: Any = tune_mechanism
        self.random_state: Any = random_state

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Classes [n] of rows [n, d]."""
        nodes = self._nodes(X)
        return np.asarray(self.classes_[self.model_.decision[nodes]])

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Expected shares of the classes, float64 [n, C], of private people in each row's cell."""
        nodes = self._nodes(X)
        return np.asarray(self.model_.probability[nodes])

    def decision_function(self, X: ArrayLike) -> Floats:
        """Float64: of two classes [n], the margin, which is the share of class 1 less 1/2; of more [n, C], each class's
        expected share less 1/C, of which the predicted class has the largest.
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

    def _check_parameters(self) -> None:
        """What is wrong whatever the number of classes."""
        if not isinstance(self.prune, PaperOptions):
            one_of("prune", self.prune, (*PRUNINGS, "paper"))
        super()._check_parameters()

    def _check_reading(self, n_classes: int = 2) -> None:
        check_settings(lam=self.lam, prune=self._pruning, rule=self.rule, n_classes=n_classes)

    def _read_labels(
        self, labels: NDArray[Any], is_public: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], tuple[Any, ...]]:
        codes, classes = self._read_classes(labels, is_public)
        self._check_reading(len(classes))
        return codes, classes

    def _family(self, encoding: Encoding, seeds: Ints | None) -> LPCT:
        return LPCT(
            **self._tree_settings(encoding, seeds), prune=self._pruning, has_positive=self.classes_.size == 2
        )

    def _loss(self) -> Loss:
        return ZeroOneLoss()

    @property
    def _pruning(self) -> str | PaperOptions:
        return PaperOptions() if isinstance(self.prune, str) and self.prune == "paper" else self.prune
