"""LPCT as a scikit-learn classifier: a small public sample, and one randomised report of everybody else.

What lives here: the parameters, their checks, and the order of the parts. What does not: any arithmetic; the pipeline's
tasks call the same parts. `fit` plays the holders on this machine: their rows go into it, and only what their reports say
comes out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ldptree.encoding import Encoding, Level
from ldptree.errors import DataError
from ldptree.estimators.holders import encoding_of, public_seed, respond_with, target_name
from ldptree.estimators.private_tuning import Tuning
from ldptree.estimators.tuned import Asked, Parts, check_tuning, tuned
from ldptree.families.family import PublicRows, collect_answers
from ldptree.families.fit_classes import check_settings
from ldptree.families.tree import LPCT
from ldptree.inference.algorithm_2 import PaperOptions
from ldptree.inference.pruning import PRUNINGS
from ldptree.inference.weighting import RULES
from ldptree.mechanisms import CHOICES, Mechanism
from ldptree.models.tree import ClassTree
from ldptree.partition import PARTITIONS
from ldptree.protocol.ledger import Ledger
from ldptree.validation import (
    Noisy,
    check_class_labels,
    check_depth,
    check_lam,
    check_seed,
    check_simulated,
    checked_epsilon,
    checked_mask,
    classes_of,
    one_of,
    validated,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


class LPCTClassifier(Noisy, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Locally private classification tree with public data (LPCT, Ma and Yang, JMLR 2024), and what goes beyond it.

    A tree is grown on public rows; every private row sends one epsilon-LDP report of its cell and label; the two are
    weighed against each other, cell by cell. By default the whole epsilon goes on one joint report, the private totals
    tell how far public and private people differ, and cells are smoothed over the tree: nothing is to be tuned.

    Args:
        epsilon: the budget of each private row, above 0 and at most 64.
        mechanism: one of `ldptree.mechanisms.CHOICES`: an oracle's name for the joint report over it ("auto": the quieter
            of grr and oue), "signed_subset" for two classes with less noise of their difference, "discrete_laplace" or
            "randomized_response" for the papers', "laplace" to compare with the paper (a simulation
            device, refused without `random_state`).
        partition: "cart" (in its cells `ldptree.inference.depth.fewest_public_rows`), "max-edge" or
            "random-edge"; without public rows always one of the edges.
        depth: "auto", or the deepest a cell may lie, at most 62.
        lam: "learned", "auto", or the weight of a public row in private people: 0 is LPCT-P, infinity LPCT-Q.
        prune: "smooth", "variance", "none", or LPCT's Algorithm 2: "paper", or `PaperOptions`.
        rule: "margin", or "ratio" as printed in LPCT eq. 8 (with a fixed lam).
        outside: private values out of range are moved to the border ("clip"), or their row reports "outside" ("drop").
        feature_range: (low, high), numbers or one for each feature; None: of the public rows, or (0, 1) without any.
        tune: None, or "private": a share of the private rows never reports for training and chooses among candidates by one
            privatised report each of their errors (docs/tuning.md).
        candidates: dicts of lam, prune, rule, depth, mechanism, partition, the first of which stays unless
            another is surely better; None: a grid around these parameters that shares its training reports.
        validation_share: of the private rows, where there is tuning.
        tune_mechanism: what validation rows report, one of `ldptree.estimators.tuning.choice.CHOICES`.
        random_state: None draws the holders' coins from the operating system. A number makes a simulation that can be
            repeated, and protects nobody.

    Attributes:
        classes_: the labels of the public rows; without public rows, of all rows (then declared by passing them).
        partition_: the tree on scaled features.
        mechanism_: how holders report.
        totals_: the unbiased totals, with their variances.
        model_: what is released.
        protocol_: what a holder needs to answer.
        ledger_: what every private row spent, on what.
        tuning_: what tuning found, a `Tuning`; None without. Its rows are private rows in the order drawn.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    def __init__(
        self,
        epsilon: float,
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

    def fit(self, X: ArrayLike, y: ArrayLike, public: ArrayLike | None = None) -> Self:
        """Grow the tree on public rows, ask every private row once, and fit the model.

        Args:
            X: numbers [n, d], a numpy array or a pandas or polars frame.
            y: labels [n].
            public: bool [n], which rows are public; None: all are private.

        Raises:
            ConfigError: a parameter is wrong (a ValueError).
            DataError: the rows are (a ValueError).
        """
        epsilon, prune = self._check_parameters()
        rows: NDArray[Any]
        labels: NDArray[Any]
        rows, labels = validated(self, X, y, dtype=np.float64)
        is_public = checked_mask(public, len(labels), X)
        declared = labels[is_public] if is_public.any() else labels
        check_class_labels(declared)
        seeds = (
            None
            if self.random_state is None
            else check_random_state(self.random_state).randint(2**31, size=4)
        )
        self.classes_ = classes_of(declared, are_public=bool(is_public.any()))
        check_settings(lam=self.lam, prune=prune, rule=self.rule, n_classes=self.classes_.size)
        names = getattr(self, "feature_names_in_", None)
        encoding = encoding_of(rows[is_public], names, self.feature_range)
        X_public = encoding.encode(rows[is_public])
        codes = np.searchsorted(self.classes_, labels[is_public])
        X_private, y_private = rows[~is_public], labels[~is_public]
        if is_public.all():
            raise DataError(
                "public: every row is public, so nobody is left to report; leave out LPCT, or mark fewer rows"
            )
        self.ledger_ = Ledger(cap=epsilon)

        def ask(
            one: LPCTClassifier,
            at: NDArray[np.int64] | slice,
            coins: NDArray[np.int64] | None,
            start: int = 0,
        ) -> Asked:
            return one._trained(encoding, X_public, codes, X_private[at], y_private[at], coins, start)

        self.tuning_: Tuning | None = None
        if self.tune is None:
            asked = ask(self, slice(None), seeds)
            model: Any = asked.read(lam=self.lam, prune=prune, rule=self.rule)
        else:
            parts = Parts(
                ask=ask,
                depth=lambda one, n: one._family(encoding, seeds).depth_for(
                    self._view(encoding, X_public, codes, n)
                ),
                public_losses=lambda m: _is_wrong(m, rows[is_public], codes),
                private_losses=lambda m, at: _is_wrong(
                    m, X_private[at], _codes(y_private[at], self.classes_)
                ),
                n_public=len(codes),
                loss_bound=1.0,
                difference_bound=lambda first, other: 1.0,
            )
            asked, model, self.tuning_ = tuned(
                self, parts, n_private=len(y_private), seeds=seeds, ledger=self.ledger_
            )
        self.protocol_, self.totals_ = asked.protocol, asked.totals
        self.model_: ClassTree = model
        self.partition_ = self.protocol_.partition
        self.mechanism_: Mechanism = self.protocol_.mechanism
        return self

    def _trained(
        self,
        encoding: Encoding,
        X_public: NDArray[np.float32],
        codes: NDArray[np.int64],
        X: Floats,
        y: NDArray[Any],
        seeds: NDArray[np.int64] | None,
        start: int,
    ) -> Asked:
        """Grow the tree, have each of these private rows answer once (Algorithm 2: perhaps twice), and add the answers up."""
        family = self._family(encoding, seeds)
        view = self._view(encoding, X_public, codes, len(y))
        transcript = collect_answers(
            family,
            view,
            respond_with(
                X,
                lambda part: _codes(y[part], self.classes_),
                ledger=self.ledger_,
                seeds=seeds,
                start=start,
            ),
        )
        (totals,) = transcript[-1].totals

        def read(**reading: Any) -> ClassTree:
            return replace(family, **reading).fit(view, transcript)

        return Asked(transcript[-1].protocol, totals, read)

    def _view(
        self, encoding: Encoding, X_public: NDArray[np.float32], codes: NDArray[np.int64], n_private: int
    ) -> PublicRows:
        labels = tuple(_plain(label) for label in self.classes_)
        return PublicRows(encoding=encoding, X=X_public, y=codes, label=labels, n_private=n_private)

    def _family(self, encoding: Encoding, seeds: NDArray[np.int64] | None) -> LPCT:
        epsilon, prune = self._check_parameters()
        return LPCT(
            epsilon=epsilon,
            heading={"target": target_name(encoding.columns), "outside": self.outside},
            mechanism=self.mechanism,
            partition=self.partition,
            depth="auto" if self.depth == "auto" else int(self.depth),
            seed=public_seed(seeds),
            lam=self.lam,
            prune=prune,
            rule=self.rule,
            has_positive=self.classes_.size == 2,
        )

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
        """Ends of what is believed of each row's margins with probability `level`, in the shape of `decision_function`.

        A margin is a class's share less 1/C; noise may carry its estimate beyond a share's range.
        Where an interval holds 0 the reports do not carry a decision, and one may abstain.

        Measured (docs/lpct.md), by default those of 90 % hold about that or more where public and private people are alike, as do
        those with lam = 0, and with prune = "none" beside lam = "learned"; where the two differ and epsilon is small, fewer do.
        Other settings hold less even where people are alike: lam = "auto" or above 0 takes the public cells of a CART at
        their word though their own labels chose them, and prune = "variance" or "paper" does not count its choice between a
        cell and its ancestors.
        """
        nodes = self._nodes(X)
        low, high = (end[nodes] for end in self.model_.estimate_interval(level))
        return (low[:, 0], high[:, 0]) if self.classes_.size == 2 else (low, high)

    def _nodes(self, X: ArrayLike) -> NDArray[np.int32]:
        check_is_fitted(self)
        return self.model_.nodes(validated(self, X, dtype=np.float64, reset=False))

    def _check_parameters(self) -> tuple[float, str | PaperOptions]:
        """Everything that can be wrong before a row is looked at; epsilon, and what to prune by."""
        epsilon = checked_epsilon(self.epsilon)
        check_seed(self.random_state)
        one_of("mechanism", self.mechanism, CHOICES)
        check_simulated(
            "mechanism", self.mechanism, self.random_state, devices=("laplace",), instead="discrete_laplace"
        )
        one_of("partition", self.partition, PARTITIONS)
        one_of("rule", self.rule, RULES)
        one_of("outside", self.outside, ("clip", "drop"))
        if not isinstance(self.prune, PaperOptions):
            one_of("prune", self.prune, (*PRUNINGS, "paper"))
        check_depth(self.depth)
        check_lam(self.lam)
        check_tuning(self, LPCTClassifier._check_candidate)
        return epsilon, PaperOptions() if self.prune == "paper" else self.prune

    def _check_candidate(self) -> None:
        """As alone; "paper", the only one that cares for the number of classes, is no candidate."""
        _, prune = self._check_parameters()
        check_settings(lam=self.lam, prune=prune, rule=self.rule, n_classes=2)


def _is_wrong(model: ClassTree, X: Floats, codes: NDArray[np.int64]) -> Floats:
    """0/1 loss, float64 [n]; a label that is not declared (-1) is never met."""
    return np.asarray(model.predict(X) != codes, dtype=np.float64)


def _codes(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """The class index of each label, -1 where it is not among the classes."""
    places = np.minimum(np.searchsorted(classes, labels), classes.size - 1)
    return np.where(classes[places] == labels, places, -1)


def _plain(label: Any) -> Level:
    value = label.item() if isinstance(label, np.generic) else label
    if not isinstance(value, str | int | float | bool):
        raise DataError(
            f"y: a label is of type {type(value).__name__}; labels are texts, numbers or booleans"
        )
    return value
