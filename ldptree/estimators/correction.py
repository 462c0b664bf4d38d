"""Correction as scikit-learn estimators, with a public model corrected by one randomised report of everybody else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from ldptree.errors import ConfigError, DataError
from ldptree.estimators.estimator import PublicRowsEstimator
from ldptree.estimators.holders import SplitRows, public_seed, target_name
from ldptree.estimators.range_warnings import warn_of_assumed_label
from ldptree.families.correction import Correction
from ldptree.families.correction_plan import CorrectionPlan
from ldptree.families.corrections import Corrections
from ldptree.families.family import converse
from ldptree.families.settings import Collection, CorrectionSettings, Mechanism
from ldptree.models.corrected import CorrectedModel
from ldptree.public_models.fit import with_thresholds
from ldptree.public_models.model import PublicModel
from ldptree.settings import Settings
from ldptree.validation import Noisy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.protocol.protocol import Protocol
    from ldptree.protocol.totals import Totals

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ResidualReports(Settings):
    """The reports of private rows."""

    mechanism: Mechanism = "auto"
    """An oracle's name, "signed_subset", or "auto": of grr, oue and signed_subset the one that leaves least noise."""
    feature_range: Any = None
    """(low, high), numbers or one for each feature; None: of the public rows, or (0, 1) without any."""


class _CorrectionEstimator(PublicRowsEstimator):
    """The parameters and the fit that classifier and regressor share."""

    base: Any
    mechanism: Any

    base_: PublicModel
    corrections_: Corrections
    plan_: CorrectionPlan
    model_: CorrectedModel
    protocols_: tuple[Protocol, ...]
    totals_: tuple[Totals, ...]
    says_: str

    def _learn(self, rows: SplitRows, seeds: Ints | None) -> None:
        encoding = rows.encoding
        if self._fitted_base is not None:
            encoding = with_thresholds(encoding, self._fitted_base)
        settings = self._read(CorrectionSettings)
        family = Correction(
            **settings.values,
            epsilon=float(self.epsilon),
            heading={"target": target_name(encoding.columns)},
            mechanism=str(self.mechanism),
            seed=public_seed(seeds),
        )
        rows = replace(rows, encoding=encoding)
        view = family.summarize(rows.view())
        self.model_, transcript = converse(family, view, rows.respond(seeds))
        answers = transcript[-1]
        self.base_, self.plan_ = view.evidence.base, answers.published.evidence.plan
        self.corrections_ = self.model_.corrections
        self.protocols_, self.totals_ = tuple(turn.protocol for turn in transcript), answers.totals
        self.says_ = self._describe(rows)

    def _describe(self, rows: SplitRows) -> str:
        """Say what was found, in one line; without public rows and a fitted base a constant was corrected."""
        if rows.n_public or self._fitted_base is not None:
            return self.model_.says_of(rows.label)
        base = f"an equal share of {len(rows.label)} classes" if rows.label else "the constant 0"
        return f"There are no public rows. {self.model_.says_of(rows.label, base=base)}"

    @property
    def _fitted_base(self) -> Any:
        """The fitted scikit-learn model that was given, None where one is named."""
        base = self._read(CorrectionSettings).named_base
        return None if isinstance(base, str) else base

    def _check_parameters(self) -> None:
        super()._check_parameters()
        collection = Collection(mechanism=self.mechanism, label="number" if self._is_numeric else "class")
        if refusals := self._read(CorrectionSettings).refusals(collection):
            raise ConfigError("\n".join(refusals))


class CorrectionClassifier(
    Noisy,
    ClassifierMixin,  # type: ignore[misc]
    _CorrectionEstimator,
    settings=(CorrectionSettings, ResidualReports),
    without=("residual_range", "label_range"),
):
    """A public classifier, corrected where private people differ from it.

    A model is fitted on public rows and published. Every private row computes its residual (1 if it has the class, else 0, less
    the model's share), rounds it at random, and sends it with its cell as one epsilon-LDP value. In each cell of a small tree
    the model is corrected by the mean residual, shrunk by how uncertain it is. With more than two classes, each private row
    draws the one class whose residual it reports, and says which.

    Args:
        {parameters}

    Attributes:
        classes_: the labels of the public rows, or those of a fitted base; without either, of all rows.
        base_: the public model (`PublicModel`).
        corrections_: cell by cell: share of people, correction, sd, evidence (`Corrections`).
        says_: one line: what was found, or that it is within noise of nothing.
        plan_, totals_: what was asked of cells, and what came back; more than 2 classes have totals each.
        protocols_: the questions, one or two.
        model_: what is released.
        ledger_: what every private row spent, on what.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    _is_numeric = False

    def _read_labels(
        self, labels: NDArray[Any], is_public: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], tuple[Any, ...]]:
        declared = getattr(self._fitted_base, "classes_", None)
        codes, classes = self._read_classes(labels, is_public, declared)
        if (codes[is_public] < 0).any():
            raise DataError("y: a public row has a label that the base does not know; leave such rows out")
        return codes, classes

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Classes [n] of rows [n, d]."""
        shares = self.predict_proba(X)
        return np.asarray(self.classes_[shares.argmax(axis=1)])

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Expected shares of the classes, float64 [n, C], each in [0, 1]."""
        rows = self._read_rows(X)
        return self.model_.predict_proba(rows)


class CorrectionRegressor(
    Noisy,
    RegressorMixin,  # type: ignore[misc]
    _CorrectionEstimator,
    settings=(CorrectionSettings, ResidualReports),
):
    """A public regressor, corrected where private people differ from it.

    As `CorrectionClassifier`, with the residual label less prediction, clipped to a range that public out-of-fold errors give.

    Args:
        {parameters}

    Attributes:
        base_, corrections_, says_, plan_, protocols_, totals_, model_, ledger_, n_features_in_, feature_names_in_: as of
            `CorrectionClassifier`.
    """

    _is_numeric = True

    residual_range: Any
    label_range: Any

    def _read_labels(
        self, labels: NDArray[Any], is_public: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], tuple[Any, ...]]:
        if (
            self._read(CorrectionSettings).residual_range == "auto"
            and not is_public.any()
            and self._fitted_base is None
        ):
            warn_of_assumed_label(-1.0, 1.0, "residual_range")
        return labels, ()

    def predict(self, X: ArrayLike) -> Floats:
        """Expected labels, float64 [n], of rows [n, d]."""
        rows = self._read_rows(X)
        return self.model_.predict(rows)

    def mean_interval(self, X: ArrayLike, level: float = 0.9) -> tuple[Floats, Floats]:
        """Low and high ends, float64 [n] each, of the mean of the labels of each row's cell with probability `level`.

        They are no prediction intervals: one row's label, and the mean of people just like it, lie outside more often. Errors on
        public rows could not widen them to such, as private people's errors need not be alike.
        """
        rows = self._read_rows(X)
        low, high = self.model_.interval(rows, level)
        return low[:, 0], high[:, 0]
