"""Baselines that a model is compared with, each a function and a line in a registry.

`BASELINES` are functions that a run scores beside its model, of classes or of numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ldptree.baselines.public import (
    predict_by_forest,
    predict_by_tree,
    predict_constant,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PUBLIC_ROWS, PRIVATE_ROWS = 20_000, 100_000
"""Rows that a baseline learns from at most."""


class FitPredict(Protocol):
    """Learn from encoded rows X [n, d] with their labels [n], and answer for test_X.

    Labels are whole numbers from 0 to C - 1, and answers the shares of these classes, [n_test, C]; or with `n_classes` = 0
    labels and answers are numbers, [n_test].
    """

    def __call__(
        self,
        X: NDArray[np.float32],
        labels: NDArray[Any],
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
        title: what a page calls it. reads: whose rows X and labels are: "public" ones, or "private" ones as they are, without
        any privacy. fit_predict: the baseline itself. max_rows: how many of them it learns from at most, drawn with the seed;
        a caller may set another number. None: it reads all. label: which labels it is for; None: both.
    """

    title: str
    reads: Literal["public", "private"]
    fit_predict: FitPredict
    max_rows: int | None = None
    label: Literal["class", "number"] | None = None

    def describe_cap(self, n_rows: int, max_rows: int) -> str:
        """Say how many of the rows it learns from, where these are not all, otherwise ""."""
        if self.max_rows is None or n_rows <= max_rows:
            return ""
        about = "about " if self.reads == "private" else ""
        return f"fitted on {about}{max_rows:,} of {n_rows:,} {self.reads} rows"


BASELINES: dict[str, Baseline] = {
    "majority": Baseline(
        title="majority class of the public rows",
        reads="public",
        fit_predict=predict_constant,
        label="class",
    ),
    "constant": Baseline(
        title="mean of the public rows",
        reads="public",
        fit_predict=predict_constant,
        label="number",
    ),
    "public_tree": Baseline(
        title="plain tree on public rows",
        reads="public",
        fit_predict=predict_by_tree,
        max_rows=PUBLIC_ROWS,
    ),
    "public_forest": Baseline(
        title="forest on public rows",
        reads="public",
        fit_predict=predict_by_forest,
        max_rows=PUBLIC_ROWS,
    ),
    "non_private": Baseline(
        title="plain tree on private rows, no privacy",
        reads="private",
        fit_predict=predict_by_tree,
        max_rows=PRIVATE_ROWS,
    ),
}


def select_baselines(n_classes: int) -> dict[str, Baseline]:
    """Return the baselines for labels of so many classes, or for numbers if 0."""
    label = "class" if n_classes else "number"
    return {name: baseline for name, baseline in BASELINES.items() if baseline.label in (None, label)}
