"""fit: everything public of a conversation into a model: weighting, smoothing or pruning, decisions. The curator's; post-
processing, so it costs no privacy. The step is called prune, as the papers call it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.manifest import StoredTranscript
from storage.store import Draft
from tasks.artifacts import write_curves, write_model
from tasks.learning import Asking, read_learning
from tasks.step import step


@step("prune", version="6", home="curator", retries=2, order=9, says="the model")
def fit(
    draft: Draft, *, transcript: StoredTranscript, asking: Asking, reading: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Write the model ("model"), and in rounds its curves ("curves"). `reading`: settings that only the model depends on."""
    learning = read_learning(draft.store, transcript, asking, reading=reading)
    model = learning.fit()
    write_model(draft, model)
    if (curves := learning.draw_curves(model)) is not None:
        write_curves(draft, curves)
    return model.summarize() | {"digest": model.digest}
