"""report, where some features are public: what a run in rounds learned, gathered into facts, and the page made of them.

With scores on it the page belongs to the simulation's zone; without (`evaluate = false`) to the curator's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from ldptree.models.curves import Along
from schemas.config import RunConfig
from schemas.manifest import Manifest
from storage.store import Draft
from tasks.artifacts import read_model, read_question, read_scores, read_shown
from tasks.number_report import number_scores
from tasks.page.render import render
from tasks.report import caps_of, identity, read_checks, rows_of, steps_of, warnings_of
from tasks.rounds_report import rounds_facts
from tasks.step import NotInKey, step


def _zone(arguments: Mapping[str, Any]) -> Any:
    return "curator" if arguments["scores"] is None else "simulation"


@step("report_shown", version="3", home=_zone, retries=2, order=18, says="the run's page")
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
    learned = read_model(store, model)
    by_digest = {one.digest: one for one in questions}
    asked = [read_question(store, by_digest[one["artifact"]]) for one in rounds]
    content = read_scores(store, scores)
    caps = caps_of(config.evaluation, fitted["n_public"], held["n_private"])
    low, high = fitted["label_range"]
    facts = rounds_facts(
        dict(
            **identity(config, command.value),
            largest_spend=spent["largest"],
            n_questions=spent["questions"],
            lifetime_epsilon=spent["cap"],
            holder=config.dataset.holder,
            checks=read_checks(store, checks),
            rows=rows_of(config, ingested, held, fitted),
            steps=steps_of(timeline.value),
            seconds=timeline.value.elapsed,
            n_private=held["n_private"],
            n_public=fitted["n_public"],
            public_columns=tuple(ingested["rule_columns"]),
            columns_left_out=ingested["columns_left_out"],
            n_test=held["n_test"],
            n_features=fitted["n_features"],
            digests={
                "model": learned.digest,
                "what is shown": shown.digest,
                **{f"question {number}": one["digest"] for number, one in enumerate(rounds, start=1)},
            },
            warnings=(*_devices(config), *warnings_of(config, store, scores)),
        ),
        number_scores(content, caps, None) if content else {},
        model=learned,
        along=Along.from_json(store.file(curves, "curves.json").read_bytes()),
        shown=read_shown(store, shown),
        questions=asked,
        label_range=(low, high),
        features=config.features,
        release=cast("Literal['all', 'cells', 'none']", config.mask_release),
        unit=config.dataset.unit,
        names=config.dataset.names,
    )
    folder = draft.folder("page")
    (folder / "report.html").write_text(render(facts), encoding="utf-8")
    (folder / "facts.json").write_text(json.dumps(facts.to_dict(), ensure_ascii=False), encoding="utf-8")
    return {}


def _devices(config: RunConfig) -> list[str]:
    """What of this run no real collection may do."""
    said = []
    if config.is_seeded:
        said.append(
            "The holders' noise came from a seed (simulation.noise_seed): this is a simulation, and it protects nobody."
        )
    if config.model.estimator == "histoftree" and config.histoftree.label == "laplace":
        said.append(
            "Labels were sent with floating-point Laplace noise (histoftree.label): a simulation device, whose outputs can give "
            "their input away. optimal_label is without that leak."
        )
    return said
