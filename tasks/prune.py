"""prune: totals and public counts into a model: weighting, smoothing or pruning, decisions. The curator's; post-
processing, so it costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ldptree.families.fit_classes import fit_model
from ldptree.families.fit_numbers import fit_regression
from ldptree.inference.algorithm_2 import PaperOptions
from ldptree.models import Model
from schemas.families import PaperConfig
from schemas.manifest import Manifest
from storage.store import Draft
from tasks.artifacts import (
    read_labels,
    read_protocol,
    read_public,
    read_public_counts,
    read_totals,
    read_totals_of_outputs,
    read_trust,
    write_model,
)
from tasks.step import step


@step("prune", version="5", home="curator", retries=2, order=14, says="the model")
def prune(
    draft: Draft,
    *,
    protocol: Manifest,
    totals: Manifest,
    epsilon: float,
    lam: float | str = "learned",
    prune: str = "smooth",
    rule: str = "margin",
    scaled: Manifest | None = None,
    paper: PaperConfig | None = None,
    is_second_query: bool = False,
    trust: Manifest | None = None,
    labels: Manifest | None = None,
    public: Manifest | None = None,
) -> Mapping[str, Any]:
    """Write the model ("model"). `epsilon`: a holder's, over all rounds.

    Of classes `scaled` are the public rows, `trust` how far their cells are to be trusted, and `paper` the switches of Algorithm
    2; of numbers `labels` are what the public rows say of them, and `public` of a public model that is mended.
    """
    store = draft.store
    published = read_protocol(store, protocol)
    how = settings(lam, prune, rule, paper)
    model: Model
    if public is not None:
        from ldptree.families.fit_correction import corrected  # with scikit-learn, which takes a second

        known = read_public(store, public, published)
        answers = read_totals_of_outputs(store, totals, published)
        model = corrected(published, known, answers, epsilon=epsilon)
    elif labels is not None:
        received = read_totals(store, totals, published)
        model = fit_regression(published, received, read_labels(store, labels), **how, epsilon=epsilon)
    else:
        assert scaled is not None
        assert trust is not None
        model = fit_model(
            published,
            read_totals(store, totals, published),
            read_public_counts(store, scaled, published),
            **how,
            is_second_query=is_second_query,
            epsilon=epsilon,
            inflation=read_trust(store, trust),
        )
    write_model(draft, model)
    return model.summarize() | {"digest": model.digest}


def settings(lam: float | str, prune: str, rule: str, paper: PaperConfig | None) -> dict[str, Any]:
    """How totals become a model, as `fit_model` and `fit_regression` take it."""
    return {
        "lam": math.inf if lam == "inf" else lam,
        "prune": PaperOptions(**paper.model_dump()) if paper else prune,
        "rule": rule,
    }
