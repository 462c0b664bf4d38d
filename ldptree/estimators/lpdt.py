"""LPDT as a scikit-learn regressor: a small public sample, and one randomised report of everybody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin

from ldptree.errors import ConfigError
from ldptree.estimators.range_warnings import warn_of_assumed_label
from ldptree.estimators.tree import TreeEstimator
from ldptree.estimators.tuning.losses import Loss, SquaredError
from ldptree.families.fit_numbers import check_settings
from ldptree.families.tree import LPDT
from ldptree.inference.pruning import NUMBER_PRUNINGS
from ldptree.limits import is_number
from ldptree.mechanisms.number_label import checked_rho
from ldptree.validation import Noisy, checked_label_range, one_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.encoding import Encoding
    from ldptree.models.tree import NumberTree

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class LPDTRegressor(Noisy, RegressorMixin, TreeEstimator):  # type: ignore[misc]
    """Locally private regression tree with public data (LPDT, NeurIPS 2023), and what goes beyond it.

    A tree is grown on public rows. Every private row sends one epsilon-LDP report of its cell and label. In each cell the
    model weighs the public mean against the private one, and smooths over the tree. The defaults spend the whole epsilon on
    one joint report, with the label rounded at random between levels of its range; they need no tuning.

    The paper's estimator is mechanism = "randomized_response", partition = "max-edge" (LPDT-M) or "cart" (LPDT-V), lam = 0,
    prune = "none", rule = "ratio", with your own depth, min_samples_leaf and rho.

    Args:
        epsilon: the budget of each private row, above 0 and at most 64.
        mechanism: one of `ldptree.mechanisms.CHOICES`: an oracle's name for the joint report over it ("auto": the quieter
            of grr and oue), "randomized_response" for the paper's (eqs 3 and 4), "signed_subset" or "discrete_laplace" of the
            two ends of the range, or "laplace" to compare with (a simulation device, refused without `random_state`).
        partition: "cart", "max-edge" or "random-edge"; without public rows always one of the edges.
        depth: "auto", or the deepest a cell may lie, at most 62. "auto": reports are about as many cells as n and epsilon
            allow (`ldptree.inference.depth.number_depths`); where lam is not 0 and prune = "smooth", public rows split them
            further.
        min_samples_leaf: fewest public rows in a cell, or "auto" (`inference.depth.default_min_samples_leaf`); not
            used without public rows.
        lam: "learned", "auto", or how many private people one public row counts for: 0 for private alone, infinity for public.
        prune: "smooth", "fallback" (a cell whose evidence is too weak takes an ancestor's), or "none".
        rule: "margin", or "ratio" as printed in LPDT eq. 5, 0/0 = 0 (with a fixed lam).
        rho: share of epsilon that the cell gets where it is sent apart from the label (LPDT D.1).
        label_range: (low, high) that private labels are moved into; None: that of the public labels, or (-1, 1) without any.
        outside: private values out of range are moved to the border ("clip"), or their row reports "outside" ("drop").
        feature_range: (low, high), numbers or one for each feature; None: of the public rows, or (0, 1) without any.
        tune: None, or "private": a share of the private rows does not train, and chooses among candidates by one private
            report each of their errors (docs/measured/tuning.md).
        candidates: dicts of lam, prune, rule, depth, min_samples_leaf, mechanism, partition, rho, the first of which stays unless
            another is surely better; None: a grid around these parameters that shares its training reports.
        validation_share: of the private rows, where there is tuning.
        tune_mechanism: what validation rows report, one of `ldptree.estimators.tuning.reports.CHOICES`.
        random_state: None draws the holders' coins from the operating system. A number makes a simulation that can be
            repeated, and protects nobody.

    Attributes:
        label_range_: the range in use.
        partition_, mechanism_, totals_, model_, protocol_, ledger_, tuning_: as of `LPCTClassifier`; `model_.partition` may split
            the cells of `partition_`, the tree that holders are asked about, further.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    _is_numeric = True
    model_: NumberTree

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        mechanism: str = "auto",
        partition: str = "cart",
        depth: str | int = "auto",
        min_samples_leaf: str | int = "auto",
        lam: str | float = "learned",
        prune: str = "smooth",
        rule: str = "margin",
        rho: float = 0.5,
        label_range: tuple[float, float] | None = None,
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
        self.min_samples_leaf: Any = min_samples_leaf
        self.lam: Any = lam
        self.prune: Any = prune
        self.rule: Any = rule
        self.rho: Any = rho
        self.label_range: Any = label_range
        self.outside: Any = outside
        self.feature_range: Any = feature_range
        self.tune: Any = tune
        self.candidates: Any = candidates
        self.validation_share: Any = validation_share
        self.tune_mechanism: Any = tune_mechanism
        self.random_state: Any = random_state

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

    def _check_parameters(self) -> None:
        one_of("prune", self.prune, NUMBER_PRUNINGS)
        least = self.min_samples_leaf
        if least != "auto" and not (is_number(least, whole=True) and least >= 1):
            raise ConfigError(f'min_samples_leaf must be "auto" or a whole number from 1, got {least!r}')
        if not is_number(self.rho):
            raise ConfigError(f"rho must be a number between 0 and 1, got {self.rho!r}")
        checked_rho(self.rho)
        super()._check_parameters()

    def _check_reading(self) -> None:
        check_settings(lam=self.lam, prune=self.prune, rule=self.rule)

    def _read_labels(
        self, labels: NDArray[Any], is_public: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], tuple[Any, ...]]:
        self.label_range_ = checked_label_range(self.label_range, labels[is_public])
        if self.label_range is None and not is_public.any():
            warn_of_assumed_label(*self.label_range_)
        return labels, self.label_range_

    def _family(self, encoding: Encoding, seeds: Ints | None) -> LPDT:
        return LPDT(
            **self._tree_settings(encoding, seeds),
            min_samples_leaf=self.min_samples_leaf,
            prune=self.prune,
            rho=self.rho,
        )

    def _loss(self) -> Loss:
        return SquaredError(*self.label_range_)
