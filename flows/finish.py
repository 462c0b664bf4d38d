"""How a run ends: its folder, its summary, the warehouse, what the Prefect UI shows of it; or the page that says why it
stopped.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact
from prefect.runtime import flow_run

from ldptree.protocol.number_range import levels
from schemas.config import RunConfig
from schemas.manifest import Manifest, Record
from storage.formats import stamped
from storage.store import Store
from storage.warehouse import all_runs, build
from tasks.page.facts import AnyFacts
from tasks.page.mended_facts import MendedFacts
from tasks.page.render import render, summary_markdown
from tasks.report import failed_facts, peak_rss_mb, read_facts
from tasks.timeline import Timeline
from tasks.validate import check_passed, failures


def finish(
    store: Store, config: RunConfig, records: Sequence[Record], timeline: Timeline, protocol: Manifest
) -> dict[str, Any]:
    """Write the run's folder and tell Prefect's UI; returns the summary that `ldptree run --json` prints."""
    by_step = {record.step: record for record in records}
    page, model = by_step["report"]["page"], by_step["prune"]["model"]
    facts = read_facts(store, page)
    run = run_folder(store)
    for manifest, name in ((page, "report.html"), (model, "model.json"), (protocol, "protocol.json")):
        store.replace(run / name, store.file(manifest, name).read_bytes())
    write_json(store, run / "tables.json", _tables(config, facts, by_step))
    write_records(store, run, records)
    summary = summary_of(config, facts, timeline, by_step) | {
        "run": run.name,
        "report": str(run / "report.html"),
        "model": str(run / "model.json"),
    }
    write_json(store, run / "run.json", summary)
    build(store, all_runs(store))
    show_in_prefect(summary_markdown(facts), facts.title, summary)
    return summary


def stop_where_failed(
    store: Store, config: RunConfig, ingested: Record, checked: Record, timeline: Timeline, command: str
) -> None:
    """Raises DataError naming every expectation that failed, after its page is written; a `warn` one does not stop."""
    failed = failures(store, checked["checks"])
    if not failed:
        return
    facts = failed_facts(store, config, ingested, checked, timeline, command)
    run = run_folder(store)
    store.replace(run / "report.html", render(facts).encode())
    write_records(store, run, (ingested, checked))
    create_markdown_artifact(summary_markdown(facts), key="run-summary", description=facts.title)
    check_passed(failed, run / "report.html")


def summary_of(
    config: RunConfig, facts: AnyFacts, timeline: Timeline, by_step: Mapping[str, Record]
) -> dict[str, Any]:
    """The run in one JSON object, without its paths."""
    return {
        "name": facts.name,
        "estimator": config.model.estimator,
        "epsilon": facts.epsilon,
        "epsilon_exact": facts.epsilon_exact,
        "epsilon_spent": facts.epsilon_spent,
        "largest_spend": facts.largest_spend,
        "mechanism": f"{facts.mechanism} {facts.oracle}".strip(),
        "form": facts.form,
        "seeded": facts.seeded,
        "n_private": facts.n_private,
        "n_public": facts.n_public,
        "n_test": facts.n_test,
        "n_features": facts.n_features,
        "columns_left_out": facts.columns_left_out,
        "cells": facts.n_cells,
        "depth": facts.depth,
        **_of_its_estimator(config, facts, by_step),
        "metrics": facts.ours.metrics if facts.ours else {},
        "baselines": {score.key: score.metrics for score in facts.baselines},
        "steps": steps_of(timeline, by_step),
        "seconds": round(timeline.elapsed, 2),
        "peak_rss_mb": peak_rss_mb(),
    }


def _of_its_estimator(config: RunConfig, facts: AnyFacts, by_step: Mapping[str, Record]) -> dict[str, Any]:
    """What private evidence was weighed with; of a correction what was mended, and in one line what was found."""
    if not isinstance(facts, MendedFacts):
        return {"lam": config.model.weighting}
    return {
        "lam": None,
        "target": config.dataset.target,
        "label": config.label,
        "base": config.correction.base,
        "base_trees": facts.n_trees,
        "says": by_step["prune"].facts["says"],
    }


def steps_of(timeline: Timeline, by_step: Mapping[str, Record]) -> list[dict[str, Any]]:
    """Every step of the run: whether it was computed, how long it took, what it left."""
    return [
        {
            "name": step.name,
            "state": step.state,
            "seconds": round(step.seconds, 2),
            "artifact": next((part.path for part in by_step[step.name].parts.values()), ""),
        }
        for step in timeline.steps()
        if step.name in by_step
    ]


def _tables(config: RunConfig, facts: AnyFacts, by_step: dict[str, Record]) -> dict[str, Any]:
    """What the warehouse takes of this run."""
    return {
        "totals": by_step["aggregate"]["totals"].path,
        "classes": _labels(facts),
        "outputs": list(facts.outputs) if isinstance(facts, MendedFacts) and len(facts.outputs) > 1 else [],
        "nodes": by_step["report"].facts["nodes"],
        "facts": {
            "name": config.name,
            "protocol": facts.digests["protocol"],
            "mechanism": f"{facts.mechanism} {facts.oracle}".strip(),
            "k": facts.k,
            "epsilon": facts.epsilon,
            "epsilon_exact": facts.epsilon_exact,
            "n_private": facts.n_private,
            "n_public": facts.n_public,
            "cells": facts.n_cells,
            "depth": facts.depth,
        },
    }


def _labels(facts: AnyFacts) -> list[str]:
    """What totals are of: classes, or levels of a number, or of a public model's error."""
    if isinstance(facts, MendedFacts):
        half = facts.residual_range
        return [f"{level:g}" for level in levels(-half, half, facts.n_levels)]
    return list(facts.classes)


def write_json(store: Store, path: Path, value: Mapping[str, Any]) -> None:
    """A JSON object of the format that its file is named for, whole or not at all: a later run reads it."""
    store.replace(path, stamped(path.stem, value, indent=1))


def write_records(store: Store, run: Path, records: Sequence[Record]) -> None:
    """Which records a run refers to: `gc` keeps them as long as the run."""
    names = sorted({f"{r.home}/{r.step}/{r.key}.json" for r in records})
    write_json(store, run / "records.json", {"records": names})


def run_folder(store: Store) -> Path:
    """The folder of this run, made."""
    folder = store.root / "runs" / (flow_run.name or f"run-{os.getpid()}")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def show_in_prefect(markdown: str, title: str, summary: Mapping[str, Any]) -> None:
    """The run's summary, its scores and its page, as artifacts."""
    create_markdown_artifact(markdown, key="run-summary", description=title)
    if summary["metrics"]:
        rows = [{"model": "ldptree"} | summary["metrics"]]
        rows += [{"model": name} | metrics for name, metrics in summary["baselines"].items()]
        create_table_artifact(rows, key="scores", description="Scores on held-back private rows (simulation)")
    create_link_artifact(Path(summary["report"]).as_uri(), key="run-page", link_text="The run's page")
