"""Every estimator with settings that make it quick, rows for it, and one fit of each that tests share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from ldptree.estimators import (
    CorrectionClassifier,
    CorrectionRegressor,
    HistOfTreeRegressor,
    LPCTClassifier,
    LPDTRegressor,
    PublicFeatureClassifier,
    PublicFeatureRegressor,
)

N, N_PUBLIC = 360, 100


@dataclass(frozen=True)
class Case:
    """An estimator with settings that make it quick, and what it learns."""

    kind: Any
    is_class: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    mask: str = "public"
    label_range: str | None = None

    def make(self, epsilon=4.0, **settings):
        return self.kind(epsilon, **{"random_state": 0} | self.settings | settings)

    def rows(self, seed=0):
        """Rows in [0, 1]^3, labels, and what `fit` takes besides."""
        rng = np.random.default_rng(seed)
        X = rng.random((N, 3))
        y = 1.0 * (X[:, 0] > 0.5) + X[:, 1] + 0.1 * rng.standard_normal(N)
        y = (y > 1).astype(int) if self.is_class else y.round(3)
        return X, y, {"public": rng.permutation(N) < N_PUBLIC} if self.mask == "public" else {}

    def fit(self, epsilon=4.0, **settings):
        X, y, besides = self.rows()
        return self.make(epsilon, **settings).fit(X, y, **besides)


PRIVATE = {"private_features": [0]}
TUNED = {"candidates": [{"depth": 1}, {"depth": 2}]}
CASES = {
    "lpct": Case(LPCTClassifier, True, {"depth": 2}),
    "lpct, tuned": Case(LPCTClassifier, True, TUNED),
    "lpdt": Case(LPDTRegressor, False, {"depth": 2}, label_range="label_range"),
    "lpdt, tuned": Case(LPDTRegressor, False, TUNED, label_range="label_range"),
    "correction, classes": Case(CorrectionClassifier, True, {"base": "tree", "depth": 2}),
    "correction, a number": Case(
        CorrectionRegressor, False, {"base": "tree", "depth": 2}, label_range="residual_range"
    ),
    "histoftree": Case(HistOfTreeRegressor, False, PRIVATE | {"t": 2, "p": 2}, "protects", "label_range"),
    "public_features": Case(PublicFeatureRegressor, False, PRIVATE, "protects", "label_range"),
    "public_features, classes": Case(PublicFeatureClassifier, True, PRIVATE, "protects"),
}
OF_PUBLIC_ROWS = [name for name, case in CASES.items() if case.mask == "public"]
OF_PUBLIC_FEATURES = [name for name in CASES if name not in OF_PUBLIC_ROWS]
NUMERIC = [name for name, case in CASES.items() if not case.is_class]
RANGED = [name for name in NUMERIC if CASES[name].label_range == "label_range"]


@cache
def fitted(name):
    """One fit, shared by all tests that only look at it."""
    return CASES[name].fit()


def text_of(estimator):
    return estimator.model_.to_json()
