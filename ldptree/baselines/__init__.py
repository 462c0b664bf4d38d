"""What the model is held against: one function or class a baseline, and a line in a registry.

`BASELINES` are functions that a run scores beside its model, of classes or of numbers; `PUBLIC_LEARNERS` more of them, and
`REGRESSORS` and `CLASSIFIERS` the papers' rivals as scikit-learn estimators, for benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ldptree.baselines.public import (
    predict_by_boosting,
    predict_by_forest,
    predict_by_line,
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
        """How many of the rows it learns from, where these are not all, otherwise ""."""
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


PUBLIC_LEARNERS: dict[str, Baseline] = {
    "public_boosting": Baseline(
        title="gradient boosting on public rows",
        reads="public",
        fit_predict=predict_by_boosting,
        max_rows=PUBLIC_ROWS,
    ),
    "public_line": Baseline(
        title="linear model on public rows",
        reads="public",
        fit_predict=predict_by_line,
        max_rows=PUBLIC_ROWS,
    ),
}
"""What else people would fit on public rows alone: for benchmarks, a run goes without them."""


def select_baselines(n_classes: int) -> dict[str, Baseline]:
    """The baselines for labels of so many classes; 0: for numbers."""
    label = "class" if n_classes else "number"
    return {name: one for name, one in BASELINES.items() if one.label in (None, label)}


class Classes(Mapping[str, type]):
    """Classes by name, each imported when it is first asked for: they need scikit-learn, which is slow to load."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def module_of(self, name: str) -> str:
        """The module that a class is defined in."""
        return f"ldptree.baselines.{self._places[name].partition(':')[0]}"

    def __getitem__(self, name: str) -> type:
        found: type = getattr(import_module(self.module_of(name)), self._places[name].partition(":")[2])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


REGRESSORS = Classes(
    {
        "phist": "histograms:PHISTRegressor",
        "aphist": "histograms:APHISTRegressor",
        "deconv": "deconv:DeconvolutionRegressor",
        "hist": "histograms:HistRegressor",
        "krr": "krr:KaryResponseRegressor",
        "par_dt": "label_dt:PublicPartTreeRegressor",
        "label_dt": "label_dt:LabelTreeRegressor",
        "dt": "dt:PlainTreeRegressor",
        "dt_pub": "dt:PublicTreeRegressor",
    }
)
"""The rivals of LPDT and HistOfTree. Each module says what it guarantees, and what its paper's description violates."""


CLASSIFIERS = Classes(
    {
        "phist": "phist_classes:PHISTClassifier",
        "pglm": "pglm:PGLMClassifier",
        "psgd_linear": "gradient.psgd:PSGDLinearClassifier",
        "psgd_neural": "gradient.psgd:PSGDNeuralClassifier",
    }
)
"""The rivals of LPCT: `fit(X, y, public=mask)`. PGLM is (epsilon, delta)-LDP, the others are epsilon-LDP."""
