"""The shared part of rival classifiers. Ranges and classes are of public rows, private rows are charged once."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from ldptree.errors import DataError
from ldptree.estimators.estimator import PublicRowsEstimator
from ldptree.protocol.ledger import Charge, RowRange
from ldptree.validation import Noisy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.encoding import Encoding
    from ldptree.estimators.holders import SplitRows

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class NoisyClassifier(Noisy, ClassifierMixin, PublicRowsEstimator):  # type: ignore[misc]
    """A scikit-learn classifier with `fit(X, y, public=mask)` as `LPCTClassifier`."""

    _is_numeric = False
    _is_binary: ClassVar[bool] = False

    encoding_: Encoding

    _learned: ClassVar[str] = "encoding_"

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Classes [n] of rows [n, d]."""
        codes = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Shares of the classes, float64 [n, C]."""
        rows = self._read_rows(X)
        return self._shares(self.encoding_.encode(rows).astype(np.float64))

    @abstractmethod
    def _learn_from(self, rows: SplitRows, rng: np.random.Generator) -> None:
        """Draw the reports of the private rows, and learn from them."""

    @abstractmethod
    def _shares(self, rows: Floats) -> Floats:
        """Shares of the classes, [n, C], of encoded rows [n, d]."""

    def _read_labels(
        self, labels: NDArray[Any], is_public: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], tuple[Any, ...]]:
        codes, classes = self._read_classes(labels, is_public)
        if self._is_binary and len(classes) > 2:
            raise DataError(
                f"Only binary classification is supported. The type of the target is multiclass: {len(classes)} classes; "
                f"{type(self).__name__} learns two"
            )
        return codes, classes

    def _learn(self, rows: SplitRows, seeds: Ints | None) -> None:
        self.encoding_ = rows.encoding
        entropy = None if seeds is None else seeds.tolist()
        self._learn_from(rows, np.random.default_rng(np.random.SeedSequence(entropy)))

    def _charge(self, rows: SplitRows, about: str) -> None:
        """Enter what every private row spends, before it reports."""
        self.ledger_.spend(
            Charge(
                question=type(self).__name__,
                epsilon=float(self.epsilon),
                who=RowRange(source="private rows", start=0, stop=rows.n_private),
                about=about,
            )
        )

    def __sklearn_tags__(self) -> Any:
        """Whether it learns more than two classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self._is_binary
        return tags


def shares_of(codes: Ints, n_classes: int) -> Floats:
    """Return classes [n] as shares, float64 [n, C], all the same for a label that no public row has (-1)."""
    shares = np.full((codes.size, n_classes), 1 / n_classes)
    known = codes >= 0
    shares[known] = np.eye(n_classes)[codes[known]]
    return shares
