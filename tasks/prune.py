"""prune: totals and public counts into a model: weighting, smoothing or pruning, decisions. The curator's; post-
processing, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.fit import fit_model
from ldptree.model import Model
from ldptree.protocol import Protocol
from schemas.manifest import Manifest
from storage.store import Draft, Store
from tasks.aggregate import read_totals
from tasks.checkpoint import step
from tasks.scale import read_protocol, read_scaled


@step("prune", version="2", home="curator", retries=2)
def prune(
    draft: Draft, *, protocol: Manifest, totals: Manifest, scaled: Manifest, lam: float | str, prune: str
) -> Mapping[str, Any]:
    """Write the model ("model")."""
    published = read_protocol(draft.store, protocol)
    model = fit_model(
        published,
        read_totals(draft.store, totals, published),
        public_counts(draft.store, scaled, published),
        lam=lam,
        prune=prune,
    )
    (draft.folder("model") / "model.json").write_text(model.to_json())
    return {"digest": model.digest}


def public_counts(store: Store, scaled: Manifest, protocol: Protocol) -> NDArray[np.int64]:
    """Public rows per cell and class, int64 [cells, classes]."""
    X, y = read_scaled(store, scaled)
    cells = protocol.partition.apply(X)
    shape = (protocol.partition.n_leaves, len(protocol.classes))
    return np.bincount(cells * shape[1] + y, minlength=shape[0] * shape[1]).reshape(shape)


def read_model(store: Store, model: Manifest) -> Model:
    """The model in an artifact. Raises DataError."""
    return Model.from_json(store.file(model, "model.json").read_text())
