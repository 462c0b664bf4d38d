"""Correction as scikit-learn estimators: a public model, corrected by one randomised report of everybody else."""

from __future__ import annotations

from dataclasses import replace
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
from ldptree.limits import MAX_PROTOCOL_BYTES, is_number
from ldptree.mechanisms import RESIDUAL_CHOICES
from ldptree.models.corrected import CorrectedModel
from ldptree.partition import PARTITIONS
from ldptree.public_models import BASES
from ldptree.public_models.fit import with_thresholds
from ldptree.public_models.model import PublicModel
from ldptree.validation import Noisy, check_depth, one_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.protocol.protocol import Protocol
    from ldptree.protocol.totals import Totals

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

MOST_LEVELS = 1024


class _CorrectionEstimator(PublicRowsEstimator):
    """What classifier and regressor share."""

    base: Any
    partition: Any
    depth: Any
    mechanism: Any
    label_levels: Any
    questions: Any
    max_protocol_bytes: Any
    residual_range: Any = "auto"

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
        family = Correction(
            epsilon=float(self.epsilon),
            heading={"target": target_name(encoding.columns)},
            base=self._fitted_base if self._fitted_base is not None else str(self.base),
            partition=str(self.partition),
            depth=self.depth,
            mechanism=str(self.mechanism),
            n_levels=self.label_levels,
            residual_range=None if self._is_auto("residual_range") else float(self.residual_range),
            questions=self.questions,
            max_bytes=int(self.max_protocol_bytes),
            seed=public_seed(seeds),
        )
        rows = replace(rows, encoding=encoding)
        view = family.summarize(rows.view())
        self.model_, transcript = converse(family, view, rows.respond(seeds))
        answers = transcript[-1]
        self.base_, self.plan_ = view.evidence.base, answers.published.evidence.plan
        self.corrections_ = self.model_.corrections
        self.protocols_, self.totals_ = tuple(one.protocol for one in transcript), answers.totals
        self.says_ = self._describe(rows)

    def _describe(self, rows: SplitRows) -> str:
        """What was found, in one line; without public rows and a fitted base a constant was corrected, and no public model."""
        if rows.n_public or self._fitted_base is not None:
            return self.corrections_.says_of(rows.label)
        base = f"an equal share of {len(rows.label)} classes" if rows.label else "the constant 0"
        return f"There are no public rows. {self.corrections_.says_of(rows.label, base=base)}"

    @property
    def _fitted_base(self) -> Any:
        """The fitted scikit-learn model that was given, None for one of `BASES`; a `FrozenEstimator` around it is taken off."""
        if self.base is None or isinstance(self.base, str):
            return None
        return self.base.estimator if type(self.base).__name__ == "FrozenEstimator" else self.base

    def _is_auto(self, parameter: str) -> bool:
        value = getattr(self, parameter)
        return isinstance(value, str) and value == "auto"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._fitted_base is None:
            one_of(
                "base",
                self.base,
                ("auto", *BASES),
                "or a fitted scikit-learn tree, forest or histogram boosting",
            )
        one_of("partition", self.partition, PARTITIONS)
        one_of("mechanism", self.mechanism, RESIDUAL_CHOICES)
        check_depth(self.depth)
        if not self._is_auto("questions") and not (
            is_number(self.questions, whole=True) and self.questions in (1, 2)
        ):
            raise ConfigError(f'questions must be "auto", 1 or 2, got {self.questions!r}')
        levels = self.label_levels
        if not self._is_auto("label_levels") and not (
            is_number(levels, whole=True) and 2 <= levels <= MOST_LEVELS
        ):
            raise ConfigError(
                f'label_levels must be "auto" or a whole number from 2 to {MOST_LEVELS}, got {levels!r}'
            )
        if not (is_number(self.max_protocol_bytes, whole=True) and self.max_protocol_bytes > 0):
            raise ConfigError(
                f"max_protocol_bytes must be a whole number above 0, got {self.max_protocol_bytes!r}"
            )
        half = self.residual_range
        if not self._is_auto("residual_range") and not (is_number(half) and half > 0):
            raise ConfigError(f'residual_range must be "auto" or a number above 0, got {half!r}')


class CorrectionClassifier(Noisy, ClassifierMixin, _CorrectionEstimator):  # type: ignore[misc]
    """A public classifier, corrected where private people differ from it.

    A model is fitted on public rows and published. Every private row computes its residual (1 if it has the class, else 0, less
    the model's share), rounds it at random, and sends it with its cell as one epsilon-LDP value. In each cell of a small tree
    the model is corrected by the mean residual, shrunk by how uncertain it is. With more than two classes, each private row
    draws the one class whose residual it reports, and says which.

    Args:
        epsilon: the budget of each private row, above 0 and at most 64.
        base: "auto", which is "blend": forests, boosted trees and a straight line, weighed by their errors on public rows that
            they were not fitted on; "forest", "boosting", "tree" (smoothed, with its uncertainty), or a fitted scikit-learn tree,
            forest or histogram boosting whose training rows you declare public (in a `FrozenEstimator` inside searches, which
            clone it otherwise). Without public rows a constant.
        partition: of the collection tree: "cart", "max-edge" or "random-edge"; without public rows one of the edges.
        depth: of the collection tree: "auto", or the deepest a cell may lie, at most 62.
        mechanism: an oracle's name, "signed_subset", or "auto": of grr, oue and signed_subset the one that leaves least noise.
        label_levels: levels of a residual: "auto", or a whole number from 2.
        questions: 1: everybody reports on a cell. 2: half report first along which column the model is wrong, and the cells
            of the others are cut there. "auto": 2 where public rows and epsilon say that it would be seen.
        feature_range: (low, high), numbers or one for each feature; None: of the public rows, or (0, 1) without any.
        max_protocol_bytes: the largest protocol that is published; a forest shrinks to fit, any other base is refused.
        random_state: None draws the holders' coins from the operating system. A number makes a simulation that can be
            repeated, and protects nobody.

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

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        base: Any = "auto",
        partition: str = "cart",
        depth: str | int = "auto",
        mechanism: str = "auto",
        label_levels: str | int = "auto",
        questions: str | int = "auto",
        feature_range: tuple[ArrayLike, ArrayLike] | None = None,
        max_protocol_bytes: int = MAX_PROTOCOL_BYTES,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.base = base
        self.partition = partition
        self.depth = depth
        self.mechanism = mechanism
        self.label_levels = label_levels
        self.questions = questions
        self.feature_range = feature_range
        self.max_protocol_bytes = max_protocol_bytes
        self.random_state = random_state

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


class CorrectionRegressor(Noisy, RegressorMixin, _CorrectionEstimator):  # type: ignore[misc]
    """A public regressor, corrected where private people differ from it.

    As `CorrectionClassifier`, with the residual label less prediction, clipped to a range that public out-of-fold errors give.

    Args:
        epsilon, base, partition, depth, mechanism, label_levels, questions, feature_range, max_protocol_bytes, random_state: as
            of `CorrectionClassifier`.
        residual_range: residuals are clipped to +- this: "auto" (2 rms of public out-of-fold errors, at most the largest; without
            public rows 1), or a number above 0.

    Attributes:
        base_, corrections_, says_, plan_, protocols_, totals_, model_, ledger_, n_features_in_, feature_names_in_: as of
            `CorrectionClassifier`.
    """

    _is_numeric = True

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        base: Any = "auto",
        partition: str = "cart",
        depth: str | int = "auto",
        mechanism: str = "auto",
        label_levels: str | int = "auto",
        questions: str | int = "auto",
        residual_range: str | float = "auto",
        feature_range: tuple[ArrayLike, ArrayLike] | None = None,
        max_protocol_bytes: int = MAX_PROTOCOL_BYTES,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.base = base
        self.partition = partition
        self.depth = depth
        self.mechanism = mechanism
        self.label_levels = label_levels
        self.questions = questions
        self.residual_range = residual_range
        self.feature_range = feature_range
        self.max_protocol_bytes = max_protocol_bytes
        self.random_state = random_state

    def _read_labels(
        self, labels: NDArray[Any], is_public: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], tuple[Any, ...]]:
        if self._is_auto("residual_range") and not is_public.any() and self._fitted_base is None:
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
