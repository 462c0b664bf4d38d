"""The rivals of the papers, each a class or function and a line in a registry.

`REGRESSORS` and `CLASSIFIERS` are scikit-learn estimators; `PUBLIC_LEARNERS` are functions as the baselines of a run, on public
rows alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from ldptree.baselines import PUBLIC_ROWS, Baseline
from ldptree_benchmark.rivals.public import predict_by_boosting, predict_by_line

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
"""Other learners that people would fit on public rows alone, for benchmarks. A run goes without them."""


class Classes(Mapping[str, type]):
    """Classes by name, each imported at its first use, as they need scikit-learn, which is slow to load."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def module_of(self, name: str) -> str:
        """The module that a class is defined in."""
        return f"ldptree_benchmark.rivals.{self._places[name].partition(':')[0]}"

    def __getitem__(self, name: str) -> type:
        kind: type = getattr(import_module(self.module_of(name)), self._places[name].partition(":")[2])
        return kind

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


REGRESSORS = Classes(
    {
        "phist": "histograms:PHISTRegressor",
        "hist": "histograms:PHISTRegressor",
        "deconv": "deconvolution:DeconvolutionRegressor",
        "krr": "krr:KaryResponseRegressor",
        "par_dt": "label_dt:PublicPartTreeRegressor",
        "label_dt": "label_dt:LabelTreeRegressor",
    }
)
"""The rivals of LPDT and HistOfTree. Each module says what it guarantees, and what its paper's description violates."""


CLASSIFIERS = Classes(
    {
        "phist": "histograms:PHISTClassifier",
        "pglm": "pglm:PGLMClassifier",
        "psgd_linear": "gradient.psgd:PSGDLinearClassifier",
        "psgd_neural": "gradient.psgd:PSGDNeuralClassifier",
    }
)
"""The rivals of LPCT, called as `fit(X, y, public=mask)`. PGLM is (epsilon, delta)-LDP, the others are epsilon-LDP."""
