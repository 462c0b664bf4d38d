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
from ldptree.model import Model
from ldptree.paper_pruning import PaperOptions
from ldptree.protocol import Protocol
from schemas.config import PaperConfig
from schemas.manifest import Manifest
from storage.store import Draft, Store
from tasks.aggregate import read_totals
from tasks.checkpoint import step
from tasks.scale import read_protocol, read_scaled


@step("prune", version="4", home="curator", retries=2)
def prune(
    draft: Draft,
    *,
    protocol: Manifest,
    totals: Manifest,
    scaled: Manifest,
    lam: float | str,
    prune: str,
    rule: str,
    paper: PaperConfig | None,
    is_second_query: bool,
    epsilon: float,
) -> Mapping[str, Any]:
    """Write the model ("model"). `paper`: switches of Algorithm 2. `epsilon`: a holder's, over all rounds."""
    published = read_protocol(draft.store, protocol)
    model = fit_model(
        published,
        read_totals(draft.store, totals, published),
        public_counts(draft.store, scaled, published),
        **settings(lam, prune, rule, paper),
        is_second_query=is_second_query,
        epsilon=epsilon,
    )
    (draft.folder("model") / "model.json").write_text(model.to_json())
    return {"digest": model.digest}


def settings(lam: float | str, prune: str, rule: str, paper: PaperConfig | None) -> dict[str, Any]:
    """How totals become a model, as `fit_model` takes it."""
    return {
        "lam": math.inf if lam == "inf" else lam,
        "prune": PaperOptions(**paper.model_dump()) if paper else prune,
        "rule": rule,
    }


def public_counts(store: Store, scaled: Manifest, protocol: Protocol) -> NDArray[np.int64]:
    """Public rows per cell and class, int64 [cells, classes]."""
    X, y = read_scaled(store, scaled)
    return protocol.partition.class_counts(X, y, protocol.n_classes)


def read_model(store: Store, model: Manifest) -> Model:
    """The model in an artifact. Raises DataError."""
    return Model.from_json(store.file(model, "model.json").read_text())
