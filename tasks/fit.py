"""Fit a model to everything public of a conversation, by weighting, smoothing or pruning, and decisions. Runs with the
curator and costs no privacy, as it is post-processing. The step is called prune, as in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.manifest import StoredTranscript
from storage.store import Draft
from tasks.artifacts import write_curves, write_model
from tasks.learning import Asking, read_learning
from tasks.step import step


@step("prune", version="6", home="curator", retries=2, order=14, says="the model")
def fit(
    draft: Draft, *, transcript: StoredTranscript, asking: Asking, reading: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Write the model ("model"), in rounds also its curves ("curves"). `reading` has the model's own settings."""
    learning = read_learning(draft.store, transcript, asking, reading=reading)
    model = learning.fit()
    write_model(draft, model)
    if (curves := learning.draw_curves(model)) is not None:
        write_curves(draft, curves)
    return model.summarize() | {"digest": model.digest}
