"""What the model is held against: one file a baseline with `fit_predict_proba`, and a line in `BASELINES`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from ldptree.baselines import majority, non_private, public_forest, public_tree

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class FitPredictProba(Protocol):
    """Learn from encoded rows X [n, d] with labels [n] in 0 to C - 1; return the class shares of test_X."""

    def __call__(
        self,
        X: NDArray[np.float32],
        labels: NDArray[np.integer],
        test_X: NDArray[np.float32],
        *,
        n_classes: int,
        max_rows: int,
        seed: int,
    ) -> NDArray[np.float64]:
        """See the class."""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A rival of the model.

    Attributes:
        title: what a page calls it.
        reads: whose rows X and labels are: "public" ones, or "private" ones as they are, without any privacy.
        max_rows: how many of them it learns from at most, drawn with the seed; a caller may set another
            number.
        fit_predict_proba: the baseline itself.
    """

    title: str
    reads: Literal["public", "private"]
    max_rows: int
    fit_predict_proba: FitPredictProba


BASELINES: dict[str, Baseline] = {
    "majority": Baseline(
        title="majority class of the public rows",
        reads="public",
        max_rows=20_000,
        fit_predict_proba=majority.fit_predict_proba,
    ),
    "public_tree": Baseline(
        title="plain tree on public rows",
        reads="public",
        max_rows=20_000,
        fit_predict_proba=public_tree.fit_predict_proba,
    ),
    "public_forest": Baseline(
        title="forest on public rows",
        reads="public",
        max_rows=20_000,
        fit_predict_proba=public_forest.fit_predict_proba,
    ),
    "non_private": Baseline(
        title="plain tree on private rows, no privacy",
        reads="private",
        max_rows=100_000,
        fit_predict_proba=non_private.fit_predict_proba,
    ),
}
