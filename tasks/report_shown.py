"""report, where some features are public: what a run in rounds learned, gathered into one `Run`, and the page made of it.

With scores on it the page belongs to the simulation's zone; without (`evaluate = false`) to the curator's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from ldptree.families.asked import describe_round
from ldptree.models.curves import Along
from ldptree.models.description import Evidence, name_columns
from ldptree.protocol.question import PublicView, Question
from schemas.config import RunConfig
from schemas.manifest import Manifest
from storage.store import Draft
from tasks.artifacts import read_model, read_question, read_shown
from tasks.page.data import Feature, Privacy, Run, Span
from tasks.report import gather, make, write_page
from tasks.step import NotInKey, step


def _zone(arguments: Mapping[str, Any]) -> Any:
    return "curator" if arguments["scores"] is None else "simulation"


@step("report_shown", version="4", home=_zone, retries=2, order=18, says="the run's page")
def report_shown(
    draft: Draft,
    *,
    config: RunConfig,
    checks: Manifest,
    model: Manifest,
    curves: Manifest,
    shown: Manifest,
    questions: Sequence[Manifest],
    scores: Manifest | None,
    ingested: Mapping[str, Any],
    held: Mapping[str, Any],
    fitted: Mapping[str, Any],
    rounds: Sequence[Mapping[str, Any]],
    spent: Mapping[str, Any],
    timeline: NotInKey,
    command: NotInKey,
) -> Mapping[str, Any]:
    """Write `report.html` and `facts.json` ("page"). `rounds`: of each question its facts, among them its digest."""
    store = draft.store
    learned, everybody = read_model(store, model), read_shown(store, shown)
    by_digest = {one.digest: one for one in questions}
    asked = [read_question(store, by_digest[one["artifact"]]) for one in rounds]
    low, high = fitted["label_range"]
    columns = name_columns(learned.encoding)
    spends, answers = _spends(asked, everybody)
    along = Along.from_json(store.file(curves, "curves.json").read_bytes())
    run = Run(
        **gather(config, store, checks, scores, ingested, held, fitted),
        privacy=Privacy(
            epsilon=config.privacy.epsilon,
            epsilon_exact=float(spends.max()),
            epsilon_spent=learned.epsilon,
            largest_spend=spent["largest"],
            n_questions=spent["questions"],
            lifetime_epsilon=spent["cap"],
            asked=tuple(
                describe_round(question, int(question.respondents(everybody).size), columns, (low, high))
                for question in asked
            ),
            most_answers=int(answers.max()),
            n_never_asked=int((answers == 0).sum()),
            holder=config.dataset.holder,
            seeded=config.is_seeded,
            features=_features(config, learned.encoding, everybody),
            mask_release=cast("Literal['all', 'cells', 'none']", config.mask_release),
        ),
        making=make(
            config,
            command.value,
            timeline.value,
            {
                "model": learned.digest,
                "what is shown": shown.digest,
                **{f"question {number}": one["digest"] for number, one in enumerate(rounds, start=1)},
            },
        ),
        label_range=Span(low=low, high=high),
        n_private=held["n_private"],
        description=learned.describe(
            Evidence(names=config.dataset.names, shown=everybody, along=along, label_range=(low, high))
        ),
    )
    write_page(draft, run)
    return {}


def _spends(
    questions: Sequence[Question], shown: PublicView
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """What each holder spent, float64 [n], by the integers in use; and how many questions they answered, int64 [n]."""
    spends, answers = np.zeros(shown.n), np.zeros(shown.n, dtype=np.int64)
    for question in questions:
        asked = question.respondents(shown)
        spends[asked] += question.epsilon
        answers[asked] += 1
    return spends, answers


def _features(config: RunConfig, encoding: Any, shown: PublicView) -> tuple[Feature, ...]:
    """Every raw column, and how many protect it by the public mask."""
    found, at = [], 0
    for feature in encoding.features:
        declared: Literal["public", "private", "own choice"] = "public"
        if feature.column in config.features.private or config.mask_release != "all":
            declared = "private"
        elif feature.column in config.features.protects:
            declared = "own choice"
        protects = int(shown.protects[:, at].sum()) if config.mask_release == "all" else None
        found.append(Feature(name=feature.column.replace("_", " "), declared=declared, protects=protects))
        at += len(feature.names)
    return tuple(found)
