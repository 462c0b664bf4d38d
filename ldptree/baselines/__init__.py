"""What the model is held against: one file a baseline, and a line in a registry.

What lives here: `BASELINES` and `REGRESSION_BASELINES`, functions that a run's page scores beside a model of classes
or of numbers; and `REGRESSORS`, the rivals of the regression papers as scikit-learn estimators, for benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal, Protocol

from ldptree.baselines import constant, majority, non_private, public_forest, public_tree

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


class FitPredict(Protocol):
    """Learn from encoded rows X [n, d] with labels y [n]; return the predictions for test_X, float64 [n_test]."""

    def __call__(
        self,
        X: NDArray[np.float32],
        y: NDArray[np.float64],
        test_X: NDArray[np.float32],
        *,
        max_rows: int,
        seed: int,
    ) -> NDArray[np.float64]:
        """See the class."""


@dataclass(frozen=True, kw_only=True)
class RegressionBaseline:
    """A rival of a model of numbers; as `Baseline`."""

    title: str
    reads: Literal["public", "private"]
    max_rows: int
    fit_predict: FitPredict


REGRESSION_BASELINES: dict[str, RegressionBaseline] = {
    "constant": RegressionBaseline(
        title="mean of the public rows",
        reads="public",
        max_rows=20_000,
        fit_predict=constant.fit_predict,
    ),
    "public_tree": RegressionBaseline(
        title="plain tree on public rows",
        reads="public",
        max_rows=20_000,
        fit_predict=public_tree.fit_predict,
    ),
    "public_forest": RegressionBaseline(
        title="forest on public rows",
        reads="public",
        max_rows=20_000,
        fit_predict=public_forest.fit_predict,
    ),
    "non_private": RegressionBaseline(
        title="plain tree on private rows, no privacy",
        reads="private",
        max_rows=100_000,
        fit_predict=non_private.fit_predict,
    ),
}


class _Classes(Mapping[str, type]):
    """Classes by name, each imported when it is first asked for: they need scikit-learn, which is slow to load."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def __getitem__(self, name: str) -> type:
        module, _, kind = self._places[name].partition(":")
        found: type = getattr(import_module(f"ldptree.baselines.{module}"), kind)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


REGRESSORS: Mapping[str, type] = _Classes(
    {
        "phist": "phist:PHISTRegressor",
        "aphist": "aphist:APHISTRegressor",
        "deconv": "deconv:DeconvolutionRegressor",
        "hist": "hist:HistRegressor",
        "krr": "krr:KaryResponseRegressor",
        "par_dt": "par_dt:PublicPartTreeRegressor",
        "label_dt": "label_dt:LabelTreeRegressor",
        "dt": "dt:PlainTreeRegressor",
        "dt_pub": "dt_pub:PublicTreeRegressor",
    }
)
"""The rivals of LPDT and HistOfTree. Each module says what it guarantees, and what its paper's description violates."""
