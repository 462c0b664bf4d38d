"""Regression and classification with some public features, as scikit-learn estimators with one report of every row."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from ldptree.encoding import check_widths
from ldptree.errors import ConfigError, DataError
from ldptree.estimators.estimator import PublicFeaturesEstimator, Shown
from ldptree.estimators.holders import column_names
from ldptree.estimators.range_warnings import warn_of_assumed_features, warn_of_assumed_label
from ldptree.families.public_features import PublicFeatureModel, PublicFeatures
from ldptree.families.settings import PublicFeaturesSettings
from ldptree.inference.shares import raised
from ldptree.models.public_features import scale_rows
from ldptree.settings import Settings
from ldptree.validation import Noisy, check_class_labels, checked_protects, checked_range, classes_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.protocol.question import AnsweredQuestion, PublicView

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class DeclaredClasses(Settings):
    """The labels of a classifier."""

    classes: Any = None
    """The two labels, which are then declared and not taken from y; None: those of y, which become public."""


class _PublicFeatureEstimator(PublicFeaturesEstimator):
    """The parameters and the fit that both estimators share."""

    model_: PublicFeatureModel
    rounds_: list[AnsweredQuestion]

    def _read_mask(self, protects: ArrayLike | None, shape: tuple[int, int]) -> Mask:
        if (protects is None) == (self.private_features is None):
            which = "neither" if protects is None else "both"
            raise ConfigError(
                f"which features are private? {which} of private_features (columns; [] protects the label alone) and protects "
                "(a mask, to fit) is given; give exactly one"
            )
        return checked_protects(protects, self._private_columns(shape[1]), shape, self._column_names)

    def _prepare(self, rows: Floats, mask: Mask, seeds: Ints | None) -> tuple[PublicFeatures, Floats]:
        columns = column_names(self._column_names, rows.shape[1])
        low, high = self._ends(rows, mask, columns)
        settings = self._read(PublicFeaturesSettings)
        label_low, label_high = settings.label_range or (-1.0, 1.0)
        family = PublicFeatures(
            **settings.values,
            epsilon=float(self.epsilon),
            columns=tuple(columns),
            low=tuple(low.tolist()),
            high=tuple(high.tolist()),
            label_low=label_low,
            label_high=label_high,
            is_binary=not self._is_numeric,
            seed=int.from_bytes(os.urandom(8), "little") if seeds is None else int(seeds[0]),
        )
        return family, scale_rows(rows, low, high)

    def _ends(self, rows: Floats, mask: Mask, columns: list[str]) -> tuple[Floats, Floats]:
        """Ends of every feature's range, from what is shown or given. Raises ConfigError or DataError."""
        if self.feature_range is not None:
            return checked_range(self.feature_range, len(columns))
        low = np.where(mask, np.inf, rows).min(axis=0)
        high = np.where(mask, -np.inf, rows).max(axis=0)
        is_shown = np.logical_not(mask.all(axis=0))
        low, high = np.where(is_shown, low, 0.0), np.where(is_shown, high, 1.0)
        warn_of_assumed_features([columns[j] for j in np.flatnonzero(~is_shown)])
        check_widths(low, high, columns)
        return low, high

    def _keep(self, family: PublicFeatures, view: PublicView, transcript: list[AnsweredQuestion]) -> None:
        self.rounds_ = transcript

    def _predict_numbers(self, X: ArrayLike) -> Floats:
        """The expected label, float64 [n]. Raises DataError where a feature that every row showed is missing."""
        rows = self._read_rows(X, ensure_all_finite="allow-nan")
        missing = np.asarray(np.isnan(rows).any(axis=0))
        missing[list(self.model_.private)] = False
        if missing.any():
            column = self.model_.columns[int(np.argmax(missing))]
            raise DataError(
                f'X, column "{column}": NaN in a feature that every row of the fit showed; only a feature that '
                "somebody protects may be missing"
            )
        return self.model_.predict(rows)


class PublicFeatureRegressor(
    Noisy,
    RegressorMixin,  # type: ignore[misc]
    _PublicFeatureEstimator,
    settings=(PublicFeaturesSettings, Shown),
):
    """Locally private regression where some features are public: one report a row, with the whole epsilon (ours).

    Each row is a holder who shows some features, the same for everybody (`private_features`) or chosen by each (`protects`),
    and answers at most one question about its label and protected features. The transcript is epsilon-semi-feature LDP
    (HistOfTree, Ma, Jia and Yang, AISTATS 2025, Definition 3.1): whatever is shown, no other value of the protected features
    and the label makes it less likely by more than e^epsilon. What a row shows is not protected at all.

    Args:
        {parameters}

    Attributes:
        model_: what is released; `model_.says` tells in one line whether private features helped.
        rounds_: the published transcript, one entry a question.
        ledger_: which rows spent epsilon on which question.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    _is_numeric = True

    label_range: Any

    def _read_labels(self, labels: NDArray[Any]) -> Floats:
        if self.label_range is None:
            warn_of_assumed_label(-1.0, 1.0)
        return labels

    def predict(self, X: ArrayLike) -> Floats:
        """Labels, float64 [n], of rows [n, d].

        A feature that somebody protected in the fit may be NaN: the row is then predicted from the others.
        """
        return self._predict_numbers(X)


class PublicFeatureClassifier(
    Noisy,
    ClassifierMixin,  # type: ignore[misc]
    _PublicFeatureEstimator,
    settings=(PublicFeaturesSettings, Shown, DeclaredClasses),
    without=("label_range",),
):
    """Locally private classification of two classes where some features are public: one report a row (ours).

    As `PublicFeatureRegressor` on labels -1 and 1; the label's question is then randomised response, and nobody is asked where
    labels lie.

    Args:
        {parameters}

    Attributes:
        classes_: the two labels, sorted.
        model_, rounds_, ledger_, n_features_in_, feature_names_in_: as in `PublicFeatureRegressor`.
    """

    _is_numeric = False

    classes: Any

    def __sklearn_tags__(self) -> Any:
        """Two classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _read_labels(self, labels: NDArray[Any]) -> Floats:
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
        return np.where(labels == self.classes_[1], 1.0, -1.0)

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Expected shares of the classes, float64 [n, 2]; NaN as in `PublicFeatureRegressor.predict`."""
        share = (1.0 + self._predict_numbers(X)) / 2.0
        return raised(np.column_stack([1.0 - share, share]), self.model_.n_holders)

    def decision_function(self, X: ArrayLike) -> Floats:
        """The expected label of -1 and 1, float64 [n]."""
        return self._predict_numbers(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The likelier class, [n]."""
        is_second = self._predict_numbers(X) > 0
        return np.asarray(self.classes_[is_second.astype(int)])
