"""learn: what is shown and what was answered, in all rounds, into a model, and what that says along its features. The
curator's; post-processing, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ldptree.models.curves import along
from ldptree.models.public_view import PublicViewModel
from schemas.manifest import Manifest
from storage.store import Draft
from tasks.artifacts import read_encoding, read_shown, read_transcripts, write_model
from tasks.ask import curator_of
from tasks.step import step


@step(
    "learn",
    version="5",
    home="curator",
    retries=2,
    order=9,
    says="the model, from what is shown and all rounds",
)
def learn(
    draft: Draft,
    *,
    encoding: Manifest,
    shown: Manifest,
    transcripts: Sequence[Manifest],
    questions: Sequence[str],
    estimator: str,
    settings: Mapping[str, Any],
    epsilon: float,
    label_range: tuple[float, float],
    target: str,
    seed: int,
) -> Mapping[str, Any]:
    """Write the model ("model"), and its curves ("curves").

    `questions`: their digests, first round first; the rest as `ask`.
    """
    store = draft.store
    curator = curator_of(store, encoding, estimator, settings, epsilon, label_range, seed)
    everybody = read_shown(store, shown)
    answers = read_transcripts(store, transcripts)
    read, _ = read_encoding(store, encoding)
    protected = np.flatnonzero(everybody.protects.any(axis=0))
    columns = [feature.column for feature in read.features for _ in feature.names]
    model = PublicViewModel(
        encoding=read,
        target=target,
        private=tuple(dict.fromkeys(columns[j] for j in protected)),
        estimator=estimator,
        inner=curator.fit(everybody, answers),
        epsilon=epsilon,
        n_private=everybody.n,
        questions=tuple(questions),
    )
    (draft.folder("curves") / "curves.json").write_text(along(model.inner, read, everybody).to_json())
    write_model(draft, model)
    return {"digest": model.digest}
