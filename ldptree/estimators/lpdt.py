"""LPDT as a scikit-learn regressor: a small public sample, and one randomised report of everybody else.

What lives here: the parameters, their checks, and the order of the parts. What does not: any arithmetic; the pipeline's
tasks call the same parts. `fit` plays the holders on this machine (`holders`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ldptree.errors import ConfigError, DataError
from ldptree.estimators.holders import encoding_of, public_seed, respond_with, target_name
from ldptree.estimators.private_tuning import Tuning, squared_errors
from ldptree.estimators.range_warnings import warn_of_assumed_label
from ldptree.estimators.tuned import Asked, Parts, answers, check_tuning, is_on_same_tree, tuned
from ldptree.estimators.tuning.choice import largest_difference
from ldptree.families.family import PublicRows, collect_answers
from ldptree.families.fit_numbers import check_settings
from ldptree.families.tree import LPDT
from ldptree.inference.pruning import NUMBER_PRUNINGS
from ldptree.inference.weighting import RULES
from ldptree.limits import is_number
from ldptree.mechanisms import CHOICES
from ldptree.mechanisms.number_label import checked_rho
from ldptree.partition import PARTITIONS
from ldptree.protocol.ledger import Ledger
from ldptree.validation import (
    Noisy,
    check_depth,
    check_lam,
    check_seed,
    check_simulated,
    checked_epsilon,
    checked_label_range,
    checked_mask,
    one_of,
    validated,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.encoding import Encoding
    from ldptree.models.tree import NumberTree
    from ldptree.partition import Partition

    Floats = NDArray[np.float64]


class LPDTRegressor(Noisy, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Locally private regression tree with public data (LPDT, NeurIPS 2023), and what goes beyond it.

    A tree is grown on public rows; every private row sends one epsilon-LDP report of its cell and label; public and private
    means are weighed against each other, cell by cell, and smoothed over the tree. By default the whole epsilon goes on one
    joint report, the label rounded at random between levels of its range, and nothing is to be tuned.

    The paper's estimator is mechanism = "randomized_response", partition = "max-edge" (LPDT-M) or "cart" (LPDT-V), lam = 0,
    prune = "none", rule = "ratio", with a depth, min_samples_leaf and rho of one's own.

    Args:
        epsilon: the budget of each private row, above 0 and at most 64.
        mechanism: one of `ldptree.mechanisms.CHOICES`: an oracle's name for the joint report over it ("auto": the quieter
            of grr and oue), "randomized_response" for the paper's (eqs 3 and 4), "signed_subset" or "discrete_laplace" of the
            two ends of the range, or "laplace" to compare with (a simulation device, refused without `random_state`).
        partition: "cart", "max-edge" or "random-edge"; without public rows always one of the edges.
        depth: "auto", or the deepest a cell may lie, at most 62. "auto": reports are asked about no more cells than n and
            epsilon carry (`ldptree.inference.depth.number_depths`), and public rows part these further where lam is not 0 and
            prune = "smooth".
        min_samples_leaf: fewest public rows in a cell, or "auto" (`inference.depth.fewest_public_rows`); without public rows of
            no matter.
        lam: "learned", "auto", or the weight of a public row in private people: 0 for private alone, infinity for public.
        prune: "smooth", "fallback" (a cell whose evidence is too weak takes an ancestor's), or "none".
        rule: "margin", or "ratio" as printed in LPDT eq. 5, 0/0 = 0 (with a fixed lam).
        rho: share of epsilon that the cell gets where it is sent apart from the label (LPDT D.1).
        label_range: (low, high) that private labels are moved into; None: that of the public labels, or (-1, 1) without any.
        outside: private values out of range are moved to the border ("clip"), or their row reports "outside" ("drop").
        feature_range: (low, high), numbers or one for each feature; None: of the public rows, or (0, 1) without any.
        tune: None, or "private": a share of the private rows never reports for training and chooses among candidates by one
            privatised report each of their errors (docs/tuning.md).
        candidates: dicts of lam, prune, rule, depth, min_samples_leaf, mechanism, partition, rho, the first of which stays unless
            another is surely better; None: a grid around these parameters that shares its training reports.
        validation_share: of the private rows, where there is tuning.
        tune_mechanism: what validation rows report, one of `ldptree.estimators.tuning.choice.CHOICES`.
        random_state: None draws the holders' coins from the operating system. A number makes a simulation that can be
            repeated, and protects nobody.

    Attributes:
        label_range_: the range in use.
        partition_, mechanism_, totals_, model_, protocol_, ledger_, tuning_: as of `LPCTClassifier`; `model_.partition` may part
            the cells of `partition_`, the tree that holders are asked about, further.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    def __init__(
        self,
        epsilon: float,
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

    def fit(self, X: ArrayLike, y: ArrayLike, public: ArrayLike | None = None) -> Self:
        """Grow the tree on public rows, ask every private row once, and fit the model.

        Args:
            X: numbers [n, d], a numpy array or a pandas or polars frame.
            y: numbers [n].
            public: bool [n], which rows are public; None: all are private.

        Raises:
            ConfigError: a parameter is wrong (a ValueError).
            DataError: the rows are (a ValueError).
        """
        epsilon = self._check_parameters()
        rows: Floats
        labels: Floats
        rows, labels = validated(self, X, y, dtype=np.float64, y_numeric=True)
        is_public = checked_mask(public, len(labels), X)
        if is_public.all():
            raise DataError(
                "public: every row is public, so nobody is left to report; leave out LPDT, or mark fewer rows"
            )
        seeds = (
            None
            if self.random_state is None
            else check_random_state(self.random_state).randint(2**31, size=4)
        )
        self.label_range_ = checked_label_range(self.label_range, labels[is_public])
        if self.label_range is None and not is_public.any():
            warn_of_assumed_label(*self.label_range_)
        encoding = encoding_of(rows[is_public], getattr(self, "feature_names_in_", None), self.feature_range)
        X_public, y_public = encoding.encode(rows[is_public]), labels[is_public]
        X_private, y_private = rows[~is_public], labels[~is_public]
        self.ledger_ = Ledger(cap=epsilon)

        def ask(
            one: LPDTRegressor, at: NDArray[np.int64] | slice, coins: NDArray[np.int64] | None, start: int = 0
        ) -> Asked:
            return one._ask(encoding, X_public, y_public, X_private[at], y_private[at], coins, start)

        self.tuning_: Tuning | None = None
        if self.tune is None:
            asked = ask(self, slice(None), seeds)
            model: Any = asked.read(lam=self.lam, prune=self.prune, rule=self.rule)
        else:
            parts = Parts(
                ask=ask,
                depth=lambda one, n: (
                    one._family(encoding, seeds).depths_for(self._view(encoding, X_public, y_public, n)).asked
                ),
                public_losses=lambda m: self._errors(m, rows[is_public], y_public),
                private_losses=lambda m, at: self._errors(m, X_private[at], y_private[at]),
                n_public=len(y_public),
                loss_bound=(self.label_range_[1] - self.label_range_[0]) ** 2,
                difference_bound=self._difference_bound,
            )
            asked, model, self.tuning_ = tuned(
                self, parts, n_private=len(y_private), seeds=seeds, ledger=self.ledger_
            )
        self.protocol_, self.totals_ = asked.protocol, asked.totals
        self.partition_: Partition = self.protocol_.partition
        self.mechanism_ = self.protocol_.mechanism
        self.model_: NumberTree = model
        return self

    def _ask(
        self,
        encoding: Encoding,
        X_public: NDArray[np.float32],
        y_public: Floats,
        X: Floats,
        y: Floats,
        seeds: NDArray[np.int64] | None,
        start: int,
    ) -> Asked:
        """Publish the question, have each of these private rows answer once, and add the answers up."""
        family, view = self._family(encoding, seeds), self._view(encoding, X_public, y_public, len(y))
        respond = respond_with(X, lambda part: y[part], ledger=self.ledger_, seeds=seeds, start=start)
        transcript = collect_answers(family, view, respond)
        (totals,) = transcript[-1].totals

        def read(**reading: Any) -> NumberTree:
            return replace(family, **reading).fit(view, transcript)

        return Asked(transcript[-1].protocol, totals, read)

    def _view(
        self, encoding: Encoding, X_public: NDArray[np.float32], y_public: Floats, n_private: int
    ) -> PublicRows:
        return PublicRows(
            encoding=encoding, X=X_public, y=y_public, label=self.label_range_, n_private=n_private
        )

    def _family(self, encoding: Encoding, seeds: NDArray[np.int64] | None) -> LPDT:
        return LPDT(
            epsilon=float(self.epsilon),
            heading={"target": target_name(encoding.columns), "outside": self.outside},
            mechanism=self.mechanism,
            partition=self.partition,
            depth="auto" if self.depth == "auto" else int(self.depth),
            min_samples_leaf=self.min_samples_leaf,
            seed=public_seed(seeds),
            lam=self.lam,
            prune=self.prune,
            rule=self.rule,
            rho=self.rho,
        )

    def _errors(self, model: NumberTree, X: Floats, y: Floats) -> Floats:
        return squared_errors(model.predict(X)[:, None], y, *self.label_range_)[:, 0]

    def _difference_bound(self, first: NumberTree, other: NumberTree) -> float:
        low, high = self.label_range_
        if not is_on_same_tree(first, other):
            return (high - low) ** 2
        return largest_difference(answers(first), answers(other), low, high)

    def predict(self, X: ArrayLike) -> Floats:
        """Expected labels, float64 [n], of rows [n, d]."""
        nodes = self._nodes(X)
        values: Floats = self.model_.estimate[nodes, 0]
        return values

    def predict_interval(self, X: ArrayLike, level: float = 0.9) -> tuple[Floats, Floats]:
        """Ends of what is believed of the mean label in each row's cell with probability `level`, each float64 [n].

        They are no guarantee. Where private people differ from public ones in part of the features' space only, those of 90 %
        held in .6 to .9 of the cases measured (docs/lpdt.md): parts of a cell that reports are asked about get its difference,
        with no room for how differently they may differ. At a small epsilon a large difference common to all is held less
        often, too.
        """
        nodes = self._nodes(X)
        low, high = self.model_.interval(level)
        return low[nodes, 0], high[nodes, 0]

    def _nodes(self, X: ArrayLike) -> NDArray[np.int32]:
        check_is_fitted(self)
        return self.model_.nodes(validated(self, X, dtype=np.float64, reset=False))

    def _check_parameters(self) -> float:
        """Everything that can be wrong before a row is looked at; epsilon."""
        epsilon = checked_epsilon(self.epsilon)
        check_seed(self.random_state)
        one_of("mechanism", self.mechanism, CHOICES)
        check_simulated(
            "mechanism", self.mechanism, self.random_state, devices=("laplace",), instead="discrete_laplace"
        )
        one_of("partition", self.partition, PARTITIONS)
        one_of("rule", self.rule, RULES)
        one_of("outside", self.outside, ("clip", "drop"))
        one_of("prune", self.prune, NUMBER_PRUNINGS)
        check_depth(self.depth)
        check_lam(self.lam)
        least = self.min_samples_leaf
        if least != "auto" and not (is_number(least, whole=True) and least >= 1):
            raise ConfigError(f'min_samples_leaf must be "auto" or a whole number from 1, got {least!r}')
        if not is_number(self.rho):
            raise ConfigError(f"rho must be a number between 0 and 1, got {self.rho!r}")
        checked_rho(self.rho)
        check_settings(lam=self.lam, prune=self.prune, rule=self.rule)
        check_tuning(self, LPDTRegressor._check_parameters)
        return epsilon
