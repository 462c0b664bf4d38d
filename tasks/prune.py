"""prune: totals and public counts into a model: weighting, smoothing or pruning, decisions. The curator's; post-
processing, so it costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.fit import fit_model
from ldptree.fit_numbers import fit_regression
from ldptree.model import Model
from ldptree.paper_pruning import PaperOptions
from ldptree.protocol import Protocol
from ldptree.regression import RegressionModel
from ldptree.released import read_model as read_released
from schemas.config import PaperConfig
from schemas.manifest import Manifest
from storage.store import Draft, Store
from tasks.aggregate import read_totals
from tasks.checkpoint import step
from tasks.partition import read_labels
from tasks.scale import read_protocol, read_scaled


@step("prune", version="4", home="curator", retries=2)
def prune(
    draft: Draft,
    *,
    protocol: Manifest,
    totals: Manifest,
    lam: float | str,
    prune: str,
    rule: str,
    epsilon: float,
    scaled: Manifest | None = None,
    paper: PaperConfig | None = None,
    is_second_query: bool = False,
    labels: Manifest | None = None,
) -> Mapping[str, Any]:
    """Write the model ("model"). `epsilon`: a holder's, over all rounds.

    Of classes `scaled` are the public rows, and `paper` the switches of Algorithm 2; of numbers `labels` are what the public
    rows say of them.
    """
    store = draft.store
    published = read_protocol(store, protocol)
    received = read_totals(store, totals, published)
    how = settings(lam, prune, rule, paper)
    model: Model | RegressionModel
    if labels is not None:
        model = fit_regression(published, received, read_labels(store, labels), **how, epsilon=epsilon)
    else:
        assert scaled is not None
        public = public_counts(store, scaled, published)
        model = fit_model(
            published, received, public, **how, is_second_query=is_second_query, epsilon=epsilon
        )
    (draft.folder("model") / "model.json").write_text(model.to_json())
    return {"digest": model.digest}


def settings(lam: float | str, prune: str, rule: str, paper: PaperConfig | None) -> dict[str, Any]:
    """How totals become a model, as `fit_model` and `fit_regression` take it."""
    return {
        "lam": math.inf if lam == "inf" else lam,
        "prune": PaperOptions(**paper.model_dump()) if paper else prune,
        "rule": rule,
    }


def public_counts(store: Store, scaled: Manifest, protocol: Protocol) -> NDArray[np.int64]:
    """Public rows per cell and class, int64 [cells, classes]."""
    X, y = read_scaled(store, scaled)
    return protocol.partition.class_counts(X, y, protocol.n_classes)


def read_model(store: Store, model: Manifest) -> Model | RegressionModel:
    """The model in an artifact. Raises DataError."""
    return read_released(store.file(model, "model.json").read_text())
