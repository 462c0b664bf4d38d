"""The facts of a run that mends a public model: what its reports found, and its scores. What every run has is in `report`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ldptree.models.corrected import CorrectedModel
from ldptree.models.ensemble import Ensemble
from ldptree.protocol.protocol import Protocol
from tasks.class_report import class_scores, spread_of
from tasks.number_report import number_scores
from tasks.page.mended_facts import MendedFacts
from tasks.page.mended_learned import cells_of, corrected_answers, push_of, slope_of, tree_of, usual_of
from tasks.page.places import Names, class_name
from tasks.page.run_words import MENDED

if TYPE_CHECKING:
    from ldptree.families.fit_correction import Public


def mended_facts(
    common: Mapping[str, Any],
    model: CorrectedModel,
    published: Protocol,
    public: Public,
    rows: NDArray[np.float32],
    content: Mapping[str, Any] | None,
    caps: Mapping[str, str],
    *,
    names: Names,
    unit: str,
) -> MendedFacts:
    """Facts of the run from those that every run has, its model, what public rows say, and its scores.

    Args:
        common: what every run has.
        model: the public model and its corrections.
        published: the question.
        public: what public rows say of it.
        rows: the public rows, encoded.
        content: `scores.json`; None without.
        caps: of a baseline that read fewer rows, how many.
        names: what values of columns are called.
        unit: of a label that is a number.
    """
    classes = tuple(class_name(model.target, value, names) for value in model.classes)
    positive = classes[1] if len(classes) == 2 else None
    corrected = corrected_answers(model, public, rows)
    n_reports = max(model.n_private // model.corrections.correction.shape[1], 1)
    return MendedFacts(
        **common,
        **_scored(content, caps),
        label="class" if classes else "number",
        classes=classes,
        positive=positive,
        outputs=(positive,) if positive is not None else classes or (model.target,),
        n_trees=_n_trees(model.base),
        unit="" if classes else unit,
        residual_range=public.plan.range.half,
        n_levels=published.mechanism.n_classes,
        is_nothing=model.corrections.is_nothing,
        chance=model.corrections.chance,
        usual=usual_of(model, public, public.answer),
        usual_corrected=usual_of(model, public, corrected),
        slope=slope_of(model),
        push=push_of(published.mechanism.poisoning_bound(n_reports), public.plan),
        cells=cells_of(model, public, corrected, None if content is None else content["cells"], names),
        tree=tree_of(model, public.plan, names),
    )


def _scored(content: Mapping[str, Any] | None, caps: Mapping[str, str]) -> dict[str, Any]:
    """Scores under the names they have on this page."""
    if content is None:
        return {}
    if content["label"] == "class":
        found = class_scores(content, caps)
    else:
        redraws = sorted(content["redraws"])
        found = number_scores(content, caps, spread_of(redraws) if redraws else None)
    found["ours"] = replace(found["ours"], name=MENDED["ours"])
    found["baselines"] = tuple(replace(score, name=MENDED.get(score.key, "")) for score in found["baselines"])
    return found


def _n_trees(base: Ensemble) -> int:
    return 0 if base.feature.size == 1 else int(base.roots.size)
