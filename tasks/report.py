"""report: what a run learned, gathered into one `Run`, and the page made of it; how that looks and speaks is in `tasks.page`.

With scores on it the page belongs to the simulation's zone; without (`evaluate = false`) to the curator's, who can
write it alone.
"""

from __future__ import annotations

import json
import math
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from ldptree.baselines import BASELINES
from ldptree.errors import DataError
from ldptree.families.asked import describe_protocol
from ldptree.models.description import Description, Evidence, name_level
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.stochastic_rounding import label_levels
from schemas.config import RunConfig
from schemas.manifest import Manifest, Record
from schemas.tables import EvaluateConfig
from storage.store import Draft, Store
from tasks.artifacts import (
    read_model,
    read_protocol,
    read_public,
    read_public_counts,
    read_scaled,
    read_scores,
    read_totals_of_outputs,
)
from tasks.page.data import Check, Failure, Influence, Making, Privacy, Rows, Run, Scores, Span, Step
from tasks.page.example import draw_example
from tasks.page.render import render
from tasks.progress import Timeline
from tasks.step import NotInKey, step

LIBRARIES = (
    "ldptree",
    "prefect",
    "polars",
    "pyarrow",
    "numpy",
    "duckdb",
    "great-expectations",
    "scikit-learn",
    "numba",
)
MANY_DUPLICATES = 0.01
NODES_IN_WAREHOUSE = 20_000


def _zone(arguments: Mapping[str, Any]) -> Any:
    return "curator" if arguments["scores"] is None else "simulation"


@step("report", version="5", home=_zone, retries=2, order=17, says="the run's page")
def report(
    draft: Draft,
    *,
    config: RunConfig,
    checks: Manifest,
    asked: Sequence[Manifest],
    totals: Manifest,
    scaled: Manifest,
    model: Manifest,
    scores: Manifest | None,
    ingested: Mapping[str, Any],
    held: Mapping[str, Any],
    fitted: Mapping[str, Any],
    form: str,
    spent: Mapping[str, Any],
    timeline: NotInKey,
    command: NotInKey,
    public: Manifest | None = None,
) -> Mapping[str, Any]:
    """Write `report.html` and `facts.json` ("page"). `asked`: the protocol of each round; `public`: what public rows say of a
    public model that is corrected.
    """
    store = draft.store
    protocols = [read_protocol(store, protocol) for protocol in asked]
    published, learned = protocols[-1], read_model(store, model)
    received = read_totals_of_outputs(store, totals, published)
    n_private = sum(one.n_private for one in received)  # in a campaign more than this run asked
    known = None if public is None else read_public(store, public, published)
    has_counts = known is None and not published.numeric
    description = learned.describe(
        Evidence(
            names=config.dataset.names,
            totals=received,
            asked=published.partition,
            public_counts=read_public_counts(store, scaled, published) if has_counts else None,
            public=known,
            rows=read_scaled(store, scaled)[0],
        )
    )
    ends = published.label_range if published.numeric else (0.0, 0.0)
    if known is not None:
        ends = -known.plan.range.half, known.plan.range.half
    classes = tuple(
        name_level(published.target, value, config.dataset.names) for value in published.label_classes
    )
    named = published.numeric or known is not None
    run = Run(
        **gather(config, store, checks, scores, ingested, held, fitted),
        privacy=_privacy(
            config, protocols, description, n_private, len(received), spent, ends if named else None, form
        ),
        making=make(
            config,
            command.value,
            timeline.value,
            {
                "protocol": published.digest,
                "totals": totals.digest,
                "model": learned.digest,
                "public rows, scaled": scaled.digest,
            },
        ),
        classes=classes,
        levels=tuple(f"{level:g}" for level in label_levels(*ends, published.n_classes))
        if named
        else classes,
        label_range=Span(low=ends[0], high=ends[1]) if published.numeric and known is None else None,
        lam="" if known is not None else str(config.model.weighting),
        prune=config.model.settings.get("prune", "smooth"),
        n_private=n_private,
        n_cells=published.n_cells,
        depth=published.partition.max_depth,
        description=description,
    )
    write_page(draft, run)
    return {"nodes": _nodes(learned)}


def write_page(draft: Draft, run: Run) -> None:
    """The page and its facts."""
    folder = draft.folder("page")
    (folder / "report.html").write_text(render(run), encoding="utf-8")
    (folder / "facts.json").write_text(json.dumps(run.to_dict(), ensure_ascii=False), encoding="utf-8")


def read_facts(store: Store, page: Manifest) -> Run:
    """What a page was made of."""
    return Run.from_dict(json.loads(store.file(page, "facts.json").read_text(encoding="utf-8")))


def gather(
    config: RunConfig,
    store: Store,
    checks: Manifest,
    scores: Manifest | None,
    ingested: Mapping[str, Any],
    held: Mapping[str, Any],
    fitted: Mapping[str, Any],
) -> dict[str, Any]:
    """What every run that reached its end says: its data, checks, rows, sizes, scores and warnings."""
    content = read_scores(store, scores)
    caps = caps_of(config.evaluation, fitted["n_public"], held["n_private"])
    n_public = fitted["n_public"]
    return identify(config) | {
        "checks": read_checks(store, checks),
        "rows": (
            Rows(
                zone="public",
                kept=n_public,
                read=n_public + fitted["n_unusable"] + _set_aside(ingested),
                quarantined=ingested["bad_public"],
            ),
            Rows(zone="private", kept=held["n_private"], held_out=held["n_test"]),
        ),
        "n_public": n_public,
        "n_test": held["n_test"],
        "n_features": fitted["n_features"],
        "public_columns": tuple(ingested["rule_columns"]),
        "columns_left_out": ingested["columns_left_out"],
        "scores": None if content is None else Scores.of(content, caps),
        "warnings": warnings_of(config, store, scores),
    }


def identify(config: RunConfig) -> dict[str, Any]:
    """Which run, of which data."""
    data = config.dataset
    return {
        "name": config.name,
        "title": data.title or data.name,
        "noun": data.noun,
        "nouns": data.nouns,
        "simulated": data.simulated,
        "estimator": config.model.estimator,
        "target": data.target,
        "label": config.label or "",
        "unit": data.unit if config.label == "number" else "",
        "public_rule": data.public.strip(),
        "where": (data.where or "").strip(),
    }


def make(config: RunConfig, command: str, timeline: Timeline, digests: Mapping[str, str]) -> Making:
    """How the run was made."""
    return Making(
        created=datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
        version=version("ldptree"),
        command=command,
        seconds=timeline.elapsed,
        peak_rss_mb=peak_rss_mb(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0,
        steps=steps_of(timeline),
        config=_flat(config.model_dump(mode="json", exclude_defaults=True, exclude={"dataset": {"names"}})),
        versions={name: version(name) for name in LIBRARIES},
        digests=dict(digests),
    )


def failed_facts(
    store: Store, config: RunConfig, ingested: Record, checked: Record, timeline: Timeline, command: str
) -> Run:
    """A run that its validation stopped."""
    checks = read_checks(store, checked["checks"])
    broken = [check for check in checks if not check.ok and check.severity == "stop"]
    return Run(
        **identify(config),
        privacy=Privacy(
            epsilon=config.privacy.epsilon, holder=config.dataset.holder, seeded=config.is_seeded
        ),
        making=make(config, command, timeline, {}),
        checks=checks,
        rows=(
            Rows(
                zone="public",
                kept=ingested["public"].rows,
                read=ingested["public"].rows + _set_aside(ingested.facts),
                quarantined=ingested.facts["bad_public"],
            ),
            Rows(zone="private", kept=ingested["private"].rows),
        ),
        columns_left_out=ingested.facts["columns_left_out"],
        failure=Failure(step="validate", message="; ".join(f"{c.zone} rows: {c.name}" for c in broken)),
    )


def read_checks(store: Store, checks: Manifest) -> tuple[Check, ...]:
    """The outcome of every expectation."""
    content = json.loads(store.file(checks, "checks.json").read_text(encoding="utf-8"))
    return tuple(Check(**check) for check in content)


def steps_of(timeline: Timeline) -> tuple[Step, ...]:
    """The steps so far, as the page shows them."""
    return tuple(
        Step(
            name=entry.name,
            state=_state(entry.state),
            seconds=entry.seconds if entry.is_done else timeline.elapsed - entry.start,
            start=entry.start,
            shards=entry.shards,
        )
        for entry in timeline.steps()
    )


def _state(state: str) -> Literal["computed", "cached", "failed"]:
    if state == "failed":
        return "failed"
    return "cached" if state == "cached" else "computed"


def peak_rss_mb() -> float:
    """Peak memory of this process, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024 * 1024 if sys.platform == "darwin" else 1024), 1)


def _privacy(
    config: RunConfig,
    protocols: Sequence[Protocol],
    description: Description,
    n_private: int,
    n_outputs: int,
    spent: Mapping[str, Any],
    ends: tuple[float, float] | None,
    form: str,
) -> Privacy:
    """What the questions were, and what they cost; `ends`: of what a report names, where that is a number."""
    last = protocols[-1]
    asked = [describe_protocol(protocol, n_private) for protocol in protocols]
    if ends is not None:
        found = asked[-1].figures | {"low": ends[0], "high": ends[1]}
        asked[-1] = replace(asked[-1], figures=found)
    force = last.mechanism.poisoning_bound(n_private)
    each = last.mechanism.poisoning_bound(max(n_private // n_outputs, 1))
    reach = np.sort(np.abs(np.array(description.moves)))[::-1][: each.totals_at_once]
    push = float(each.one * reach.sum()) if reach.size else math.inf
    return Privacy(
        epsilon=config.privacy.epsilon,
        epsilon_exact=math.fsum(protocol.epsilon_exact for protocol in protocols),
        epsilon_spent=math.fsum(protocol.epsilon for protocol in protocols),
        largest_spend=spent["largest"],
        n_questions=spent["questions"],
        lifetime_epsilon=spent["cap"],
        mechanism=asked[-1].mechanism,
        asked=tuple(asked),
        holder=last.holder,
        seeded=config.is_seeded,
        form=form,  # type: ignore[arg-type]
        k=last.k,
        influence=Influence(
            one=force.one,
            one_percent=force.one_percent,
            at_once=force.totals_at_once,
            push=push if math.isfinite(push) else None,
        ),
        example=draw_example(last, config.dataset.names),
    )


def caps_of(evaluation: EvaluateConfig, n_public: int, n_private: int) -> dict[str, str]:
    """Of each baseline that read fewer rows than there were, how many."""
    rows = {"public": (n_public, evaluation.public_rows), "private": (n_private, evaluation.private_rows)}
    said = {name: baseline.describe_cap(*rows[baseline.reads]) for name, baseline in BASELINES.items()}
    return {name: cap for name, cap in said.items() if cap}


def _set_aside(ingested: Mapping[str, Any]) -> int:
    """Public rows that were read and not kept: faulty ones, and those that `dataset.where` leaves out."""
    return int(ingested["bad_public"] + ingested["left_out_public"])


def warnings_of(config: RunConfig, store: Store, scores: Manifest | None) -> tuple[str, ...]:
    """What to read before relying on scores."""
    said = []
    if config.dataset.release_checks and not config.is_seeded:
        said.append(
            "Which expectations the private rows meet has left their holders, exactly and without noise: one bit for each that "
            f"is listed below, at most {config.privacy.max_released_checks} over all runs of this work folder."
        )
    if (content := read_scores(store, scores)) is not None:
        share = content["duplicates"] / max(content["n_test_all"], 1)
        if share > MANY_DUPLICATES:
            said.append(
                f"{share:.0%} of the held-back rows have an exact copy among the rows learned from: "
                "scores look better than on new people."
            )
    return tuple(said)


def _nodes(model: Any) -> list[dict[str, Any]]:
    """Every node with its path, for the warehouse."""
    tree = model.partition
    if tree.n_nodes > NODES_IN_WAREHOUSE:
        raise DataError(
            f"a tree of {tree.n_nodes} nodes is too large for the page and the warehouse. Give model.depth."
        )
    return [
        {
            "node": node,
            "parent": int(tree.parent[node]) if node else None,
            "depth": int(tree.depth[node]),
            "is_leaf": bool(tree.feature[node] < 0),
            "path": model.raw_tree.where(node),
        }
        for node in range(tree.n_nodes)
    ]


def _flat(value: Any, prefix: str = "") -> dict[str, str]:
    if isinstance(value, dict):
        flat: dict[str, str] = {}
        for key, item in value.items():
            flat |= _flat(item, f"{prefix}.{key}" if prefix else key)
        return flat
    return {prefix: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}
