"""Regression and classification where some features are public, as scikit-learn estimators: one report of every row.

What lives here: the parameters, their checks, and the holders played on this machine. What does not: any arithmetic
(`ldptree.families.public_features`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ldptree.encoding import check_widths
from ldptree.errors import ConfigError, DataError
from ldptree.estimators.holders import column_names
from ldptree.estimators.range_warnings import warn_of_assumed_features, warn_of_assumed_label
from ldptree.families.family import converse, respond_in_rounds
from ldptree.families.public_features import PublicFeatureModel, PublicFeatures
from ldptree.limits import is_number, label_ends
from ldptree.models.public_features import scaled
from ldptree.oracles import Words
from ldptree.protocol.ledger import Charge, Ledger, Names
from ldptree.protocol.question import AnsweredQuestion, PublicView, Question
from ldptree.validation import (
    Noisy,
    check_aligned,
    check_class_labels,
    check_seed,
    checked_epsilon,
    checked_range,
    classes_of,
    named_mask,
    one_of,
    validated,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]


class _PublicFeatureEstimator(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: the mask, the range, and the conversation."""

    epsilon: Any
    private_features: Any
    feature_range: Any
    random_state: Any
    n_features_in_: int

    def _converse(
        self,
        rows: Floats,
        labels: Floats,
        protects: ArrayLike | None,
        label_range: tuple[float, float] | None,
    ) -> None:
        """Ask every row at most one question, and fit; label_range None: labels are -1 and 1."""
        epsilon = checked_epsilon(self.epsilon)
        n, d = rows.shape
        names = getattr(self, "feature_names_in_", None)
        mask = _mask(protects, self.private_features, names, (n, d))
        low, high = _range(rows, mask, self.feature_range, names)
        seeds = (
            None
            if self.random_state is None
            else check_random_state(self.random_state).randint(2**31, size=4)
        )
        label_low, label_high = label_range or (-1.0, 1.0)
        curator = PublicFeatures(
            epsilon=epsilon,
            columns=tuple(column_names(names, d)),
            low=tuple(low.tolist()),
            high=tuple(high.tolist()),
            label_low=label_low,
            label_high=label_high,
            is_binary=label_range is None,
            seed=int.from_bytes(os.urandom(8), "little") if seeds is None else int(seeds[0]),
        )
        words = Words.system() if seeds is None else Words.seeded(np.random.SeedSequence(seeds[1:].tolist()))
        points = scaled(rows, low, high)
        self.ledger_ = Ledger(cap=epsilon)

        def answer(question: Question, holders: NDArray[np.int64]) -> NDArray[Any]:
            self.ledger_.spend(_charge(question, holders))
            return question.randomize(points[holders], labels[holders], mask[holders], words)

        self.model_: PublicFeatureModel
        self.rounds_: list[AnsweredQuestion]
        view = PublicView.of(points, mask)
        self.model_, self.rounds_ = converse(curator, view, respond_in_rounds(view, answer))

    def _predicted(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        rows = validated(self, X, dtype=np.float64, reset=False, ensure_all_finite="allow-nan")
        missing = np.isnan(rows).any(axis=0)
        missing[list(self.model_.private)] = False
        if missing.any():
            column = self.model_.columns[int(np.argmax(missing))]
            raise DataError(
                f'X, column "{column}": NaN in a feature that every row of the fit showed; only a feature that '
                "somebody protects may be missing"
            )
        return self.model_.predict(rows)


class PublicFeatureRegressor(Noisy, RegressorMixin, _PublicFeatureEstimator):  # type: ignore[misc]
    """Locally private regression where some features are public: one report a row, with the whole epsilon (ours).

    Each row is a holder who shows some features, the same for everybody (`private_features`) or chosen by each (`protects`),
    and answers at most one question about its label and protected features. The transcript is epsilon-semi-feature LDP
    (HistOfTree, Ma, Jia and Yang, AISTATS 2025, Definition 3.1): whatever is shown, no other value of the protected features
    and the label makes it less likely by more than e^epsilon. What a row shows is not protected at all.

    Args:
        epsilon: the budget of each row, at most 64.
        private_features: columns that everybody protects, by number or name; [] protects the label alone.
        label_range: (low, high), where labels may lie; those beyond are moved to its ends. None: (-1, 1). It must come from
            what is known without looking at private labels. Wide is cheap (a tenth of the rows tell where the labels are,
            to a sixteenth of the range); too narrow is not.
        feature_range: (low, high), numbers or one for each feature, to which features are scaled. None: of the values that
            are shown, and (0, 1) where nobody shows one.
        random_state: None draws coins from the operating system. A number makes a simulation that can be repeated, and
            protects nobody.

    Attributes:
        model_: what is released; `model_.says` tells in one line whether private features helped.
        rounds_: the published transcript, one entry a question.
        ledger_: which rows spent epsilon on which question.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    def __init__(
        self,
        epsilon: float,
        *,
        private_features: Sequence[int | str] | None = None,
        label_range: tuple[float, float] | None = None,
        feature_range: tuple[ArrayLike, ArrayLike] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon: Any = epsilon
        self.private_features: Any = private_features
        self.label_range: Any = label_range
        self.feature_range: Any = feature_range
        self.random_state: Any = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, protects: ArrayLike | None = None) -> Self:
        """Ask every row at most one question, and fit.

        Args:
            X: numbers [n, d], complete rows: a numpy array or a pandas or polars frame.
            y: labels [n].
            protects: bool [n, d], True where a row protects the feature; instead of `private_features`.

        Raises:
            ConfigError: a parameter is wrong (a ValueError).
            DataError: the rows or the mask are (a ValueError).
        """
        check_seed(self.random_state)
        if self.label_range is None:
            warn_of_assumed_label(-1.0, 1.0)
        label_range = (-1.0, 1.0) if self.label_range is None else label_ends(self.label_range)
        rows: Floats
        labels: Floats
        rows, labels = validated(self, X, y, dtype=np.float64, y_numeric=True)
        check_aligned("protects", protects, X)
        self._converse(rows, labels, protects, label_range)
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Labels, float64 [n], of rows [n, d].

        A feature that somebody protected in the fit may be NaN: the row is then predicted from the others.
        """
        return self._predicted(X)


class PublicFeatureClassifier(Noisy, ClassifierMixin, _PublicFeatureEstimator):  # type: ignore[misc]
    """Locally private classification of two classes where some features are public: one report a row (ours).

    As `PublicFeatureRegressor` on labels -1 and 1; the label's question is then randomised response, and nobody is asked where
    labels lie.

    Args:
        epsilon: the budget of each row, at most 64.
        private_features: columns that everybody protects, by number or name; [] protects the label alone.
        classes: the two labels, which are then declared and not taken from y; None: those of y, which become public.
        feature_range: as in `PublicFeatureRegressor`.
        random_state: as in `PublicFeatureRegressor`.

    Attributes:
        classes_: the two labels, sorted.
        model_, rounds_, ledger_, n_features_in_, feature_names_in_: as in `PublicFeatureRegressor`.
    """

    def __init__(
        self,
        epsilon: float,
        *,
        private_features: Sequence[int | str] | None = None,
        classes: Sequence[Any] | None = None,
        feature_range: tuple[ArrayLike, ArrayLike] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon: Any = epsilon
        self.private_features: Any = private_features
        self.classes: Any = classes
        self.feature_range: Any = feature_range
        self.random_state: Any = random_state

    def __sklearn_tags__(self) -> Any:
        """Two classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, protects: ArrayLike | None = None) -> Self:
        """Ask every row at most one question, and fit.

        Args:
            X: numbers [n, d], complete rows.
            y: labels [n] of two classes.
            protects: bool [n, d], True where a row protects the feature; instead of `private_features`.

        Raises:
            ConfigError: a parameter is wrong (a ValueError).
            DataError: the rows, the labels or the mask are (a ValueError).
        """
        check_seed(self.random_state)
        rows: Floats
        rows, labels = validated(self, X, y, dtype=np.float64)
        check_aligned("protects", protects, X)
        declared = labels if self.classes is None else np.asarray(self.classes)
        check_class_labels(declared)
        self.classes_ = classes_of(declared, are_public=False)
        if self.classes_.size > 2:
            raise DataError(
                f"Only binary classification is supported. y has {self.classes_.size} classes; keep two of them, or use "
                "LPCTClassifier"
            )
        if not np.isin(labels, self.classes_).all():
            raise DataError(f"y: a label is none of the declared classes {self.classes_.tolist()}")
        self._converse(rows, np.where(labels == self.classes_[1], 1.0, -1.0), protects, None)
        return self

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Expected shares of the classes, float64 [n, 2]; NaN as in `PublicFeatureRegressor.predict`."""
        share = (1.0 + self._predicted(X)) / 2.0
        return np.column_stack([1.0 - share, share])

    def decision_function(self, X: ArrayLike) -> Floats:
        """The expected label of -1 and 1, float64 [n]."""
        return self._predicted(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The likelier class, [n]."""
        is_second = self._predicted(X) > 0
        return np.asarray(self.classes_[is_second.astype(int)])


def _mask(protects: ArrayLike | None, private: Any, names: Any, shape: tuple[int, int]) -> Mask:
    """W, from exactly one of its two forms. Raises ConfigError or DataError."""
    if (protects is None) == (private is None):
        found = "neither" if protects is None else "both"
        raise ConfigError(
            f"which features are private? {found} of private_features (columns; [] protects the label alone) and protects "
            "(a mask, to fit) is given; give exactly one"
        )
    if protects is not None:
        mask = named_mask(protects, names)
        if mask.dtype != bool or mask.shape != shape:
            raise DataError(
                f"protects is {mask.dtype} of shape {mask.shape}; one True (protected) or False (shown) for each of "
                f"{shape[0]} x {shape[1]} values"
            )
        return mask
    mask = np.zeros(shape, dtype=bool)
    mask[:, _columns(private, names, shape[1])] = True
    return mask


def _columns(private: Any, names: Any, d: int) -> list[int]:
    """Column numbers of features given by number or name. Raises ConfigError."""
    if isinstance(private, str) or not np.iterable(private):
        raise ConfigError(f"private_features must be a list of columns, got {private!r}; write [{private!r}]")
    known = [] if names is None else [str(name) for name in names]
    found = []
    for feature in private:
        if isinstance(feature, str):
            if not known:
                raise ConfigError(
                    f"private_features: {feature!r} is a name, and X has no column names; give numbers"
                )
            one_of("private_features", feature, known)
            found.append(known.index(feature))
        elif is_number(feature, whole=True) and 0 <= feature < d:
            found.append(int(feature))
        else:
            raise ConfigError(f"private_features: {feature!r} is no column; X has 0 to {d - 1}")
    return found


def _range(rows: Floats, mask: Mask, given: Any, names: Any) -> tuple[Floats, Floats]:
    """Ends of every feature's range, from what is shown or configured. Raises ConfigError or DataError."""
    d = rows.shape[1]
    if given is not None:
        return checked_range(given, d)
    is_shown = ~mask
    low = np.where(is_shown, rows, np.inf).min(axis=0)
    high = np.where(is_shown, rows, -np.inf).max(axis=0)
    anybody = is_shown.any(axis=0)
    low, high = np.where(anybody, low, 0.0), np.where(anybody, high, 1.0)
    columns = column_names(names, d)
    warn_of_assumed_features([columns[j] for j in np.flatnonzero(~anybody)])
    check_widths(low, high, columns)
    return low, high


def _charge(question: Question, holders: NDArray[np.int64]) -> Charge:
    return Charge(
        question=question.digest,
        epsilon=question.epsilon,
        who=Names(holders.astype(np.uint64)),
        about=question.about,
    )
