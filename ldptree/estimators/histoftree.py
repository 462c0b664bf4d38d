"""HistOfTree and AdHistOfTree as a scikit-learn regressor, with public features and two reports of every row."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin

from ldptree.coins import Words
from ldptree.errors import ConfigError
from ldptree.estimators.estimator import PublicFeaturesEstimator, Shown
from ldptree.estimators.holders import column_names, encoding_between
from ldptree.estimators.range_warnings import (
    warn_of_assumed_features,
    warn_of_assumed_label,
    warn_of_shown_beyond,
)
from ldptree.families.histoftree import HistOfTree, HistOfTreeModel
from ldptree.families.settings import HistOfTreeSettings
from ldptree.protocol.question import PublicView
from ldptree.validation import Noisy, checked_protects, checked_range

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.protocol.question import AnsweredQuestion

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]


class HistOfTreeRegressor(
    Noisy,
    RegressorMixin,  # type: ignore[misc]
    PublicFeaturesEstimator,
    settings=(HistOfTreeSettings, Shown),
):
    """HistOfTree (Ma, Jia and Yang, AISTATS 2025): a histogram on private features times a tree on public ones.

    Each row is a holder who shows some features, the same for everybody (`private_features`) or chosen by each (`protects`),
    and answers two questions: the label, then the cell. Together they are epsilon-semi-feature LDP (Definition 3.1): whatever
    is shown, no other value of the protected features and the label makes the transcript less likely by more than e^epsilon.
    The paper's label noise, "laplace", is a simulation device (floating point): "optimal_label", the default, has less noise.

    With t = s = p = "auto", the default, it is AdHistOfTree: (15) decides from sizes, epsilon and the mask. With bias_weight
    .01 and t_shift -1, both of the paper's grid, nothing is tuned on data; they were set on the law of section 5.1.

    Args:
        {parameters}

    Attributes:
        model_: what is released.
        shape_: s, t and p.
        answers_: the published transcript, one entry a round.
        ledger_: what every row spent, on what.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    _is_numeric = True
    model_: HistOfTreeModel

    label_range: Any
    mask_release: Any

    def predict(self, X: ArrayLike) -> Floats:
        """Labels [n] of complete rows [n, d]."""
        rows = self._read_rows(X)
        return self.model_.predict(rows)

    def _read_labels(self, labels: NDArray[Any]) -> Floats:
        if self.label_range is None:
            warn_of_assumed_label(-1.0, 1.0)
        return labels

    def _read_mask(self, protects: ArrayLike | None, shape: tuple[int, int]) -> Mask:
        if protects is None and self.mask_release != "all":
            raise ConfigError(
                f'mask_release = "{self.mask_release}" hides what each holder protects: give protects=, or leave it out'
            )
        return checked_protects(protects, self._private_columns(shape[1]), shape, self._column_names)

    def _prepare(self, rows: Floats, mask: Mask, seeds: Ints | None) -> tuple[HistOfTree, Floats]:
        family = self._family(rows.shape[1], seeds)
        columns = family.encoding.columns
        low, high = self._ends(len(columns))
        is_shown = ~mask if self.mask_release == "all" else np.zeros_like(mask)
        if self.feature_range is None:
            warn_of_assumed_features([columns[j] for j in np.flatnonzero(~is_shown.any(axis=0))])
        warn_of_shown_beyond(columns, low, high, np.where(is_shown, rows, np.nan))
        return family, family.encoding.encode(rows).astype(np.float64)

    def _view(self, points: Floats, mask: Mask) -> PublicView:
        if self.mask_release == "all":
            return super()._view(points, mask)
        return PublicView(np.zeros_like(points), np.ones_like(mask))

    def _seeded_words(self, seeds: Ints) -> Words:
        return Words.seeded(np.random.SeedSequence(seeds.tolist()))

    def _keep(self, family: HistOfTree, view: PublicView, transcript: list[AnsweredQuestion]) -> None:
        self.shape_ = family.shape(view)
        self.answers_ = transcript

    def _ends(self, d: int) -> tuple[Floats, Floats]:
        """Return the range of each of d features, 0 to 1 if none is given, as protected values cannot tell it."""
        return checked_range((0.0, 1.0) if self.feature_range is None else self.feature_range, d)

    def _family(self, d: int, seeds: Ints | None) -> HistOfTree:
        settings = self._read(HistOfTreeSettings)
        low, high = (-1.0, 1.0) if settings.label_range is None else settings.label_range
        return HistOfTree(
            **settings.values,
            epsilon=float(self.epsilon),
            encoding=encoding_between(column_names(self._column_names, d), *self._ends(d)),
            low=low,
            high=high,
            seed=int.from_bytes(os.urandom(4), "little") if seeds is None else int(seeds[0]),
        )
