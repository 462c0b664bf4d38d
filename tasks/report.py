"""report: what a run learned, gathered into facts, and the page made of them. How the page looks and speaks is in `tasks.page`.

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
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from ldptree.errors import DataError
from ldptree.mechanisms import Mechanism
from ldptree.models.corrected import CorrectedModel
from ldptree.models.tree import AnyTree
from ldptree.protocol.protocol import Protocol
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
from tasks.class_report import class_scores, spread_of
from tasks.mended_report import mended_facts
from tasks.number_report import number_facts, number_scores
from tasks.page.facts import (
    AnyFacts,
    CheckFacts,
    Facts,
    FailureFacts,
    InfluenceFacts,
    RowFacts,
    StepFacts,
    facts_from,
)
from tasks.page.learned import cells_of, class_name, discrepancy_of, tree_of
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


@step("report", version="4", home=_zone, retries=2, order=17, says="the run's page")
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
    public model that is mended.
    """
    store = draft.store
    protocols = [read_protocol(store, protocol) for protocol in asked]
    published, learned = protocols[-1], read_model(store, model)
    names = config.dataset.names
    received = read_totals_of_outputs(store, totals, published)
    n_private = sum(one.n_private for one in received)  # in a campaign more than this run asked
    common = dict(
        **identity(config, command.value),
        **_privacy(protocols, n_private, form),
        largest_spend=spent["largest"],
        n_questions=spent["questions"],
        lifetime_epsilon=spent["cap"],
        checks=read_checks(store, checks),
        rows=rows_of(config, ingested, held, fitted),
        steps=steps_of(timeline.value),
        seconds=timeline.value.elapsed,
        partition=config.model.settings["partition"],
        lam=str(config.model.weighting),
        prune=config.model.settings.get("prune", "smooth"),
        n_private=n_private,
        n_public=fitted["n_public"],
        public_columns=tuple(ingested["rule_columns"]),
        columns_left_out=ingested["columns_left_out"],
        n_test=held["n_test"],
        n_features=fitted["n_features"],
        n_cells=published.n_cells,
        depth=published.partition.max_depth,
        digests={
            "protocol": published.digest,
            "totals": totals.digest,
            "model": learned.digest,
            "public rows, scaled": scaled.digest,
        },
        warnings=warnings_of(config, store, scores),
    )
    content = read_scores(store, scores)
    caps = caps_of(config.evaluation, fitted["n_public"], held["n_private"])
    facts: AnyFacts
    if public is not None:
        known, (rows, _) = read_public(store, public, published), read_scaled(store, scaled)
        facts = mended_facts(
            common, learned, published, known, rows, content, caps, names=names, unit=config.dataset.unit
        )
    elif published.numeric:
        spread = spread_of(sorted(content["redraws"])) if content and content["redraws"] else None
        scored = number_scores(content, caps, spread) if content else {}
        facts = number_facts(
            common, learned, published, received[0], scored, names=names, unit=config.dataset.unit
        )
    else:
        cells = cells_of(learned, received[0], read_public_counts(store, scaled, published), names)
        classes = tuple(class_name(published.target, c, names) for c in published.classes)
        facts = Facts(
            **common,
            **class_scores(content, caps),
            classes=classes,
            positive=classes[1] if len(classes) == 2 else None,
            cells=cells,
            tree=tree_of(learned, names),
            discrepancy=discrepancy_of(learned) if config.model.weighting == "learned" else None,
        )
    folder = draft.folder("page")
    (folder / "report.html").write_text(render(facts), encoding="utf-8")
    (folder / "facts.json").write_text(json.dumps(facts.to_dict(), ensure_ascii=False), encoding="utf-8")
    return {"nodes": _nodes(learned)}


def read_facts(store: Store, page: Manifest) -> AnyFacts:
    """The facts a page was made of."""
    return facts_from(json.loads(store.file(page, "facts.json").read_text(encoding="utf-8")))


def failed_facts(
    store: Store, config: RunConfig, ingested: Record, checked: Record, timeline: Timeline, command: str
) -> Facts:
    """The facts of a run that its validation stopped."""
    checks = read_checks(store, checked["checks"])
    broken = [check for check in checks if not check.ok and check.severity == "stop"]
    return Facts(
        **identity(config, command),
        checks=checks,
        rows=(
            RowFacts(
                zone="public",
                kept=ingested["public"].rows,
                read=ingested["public"].rows + _set_aside(ingested.facts),
                quarantined=ingested.facts["bad_public"],
            ),
            RowFacts(zone="private", kept=ingested["private"].rows),
        ),
        steps=steps_of(timeline),
        seconds=timeline.elapsed,
        holder=config.dataset.holder,
        columns_left_out=ingested.facts["columns_left_out"],
        failure=FailureFacts(step="validate", message="; ".join(f"{c.zone} rows: {c.name}" for c in broken)),
    )


def read_checks(store: Store, checks: Manifest) -> tuple[CheckFacts, ...]:
    """The outcome of every expectation."""
    content = json.loads(store.file(checks, "checks.json").read_text(encoding="utf-8"))
    return tuple(CheckFacts(**check) for check in content)


def steps_of(timeline: Timeline) -> tuple[StepFacts, ...]:
    """The steps so far, as the page shows them."""
    return tuple(
        StepFacts(
            name=entry.name,
            state="failed"
            if entry.state == "failed"
            else "cached"
            if entry.state == "cached"
            else "computed",
            seconds=entry.seconds if entry.is_done else timeline.elapsed - entry.start,
            start=entry.start,
            shards=entry.shards,
        )
        for entry in timeline.steps()
    )


def identity(config: RunConfig, command: str) -> dict[str, Any]:
    """What every page says first: which run, of which data, with which versions."""
    data = config.dataset
    return {
        "name": config.name,
        "title": data.title or data.name,
        "noun": data.noun,
        "nouns": data.nouns,
        "simulated_data": data.simulated,
        "created": datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
        "version": version("ldptree"),
        "command": command,
        "estimator": config.model.estimator,
        "epsilon": config.privacy.epsilon,
        "target": data.target,
        "label_kind": config.label or "",
        "public_rule": data.public.strip(),
        "where": (data.where or "").strip(),
        "seeded": config.is_seeded,
        "config": _flat(
            config.model_dump(mode="json", exclude_defaults=True, exclude={"dataset": {"names"}})
        ),
        "versions": {name: version(name) for name in LIBRARIES},
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0,
        "peak_rss_mb": peak_rss_mb(),
    }


def peak_rss_mb() -> float:
    """Peak memory of this process, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024 * 1024 if sys.platform == "darwin" else 1024), 1)


def _privacy(protocols: Sequence[Protocol], n_private: int, form: str) -> dict[str, Any]:
    protocol = protocols[-1]
    force = protocol.mechanism.poisoning_bound(n_private)
    return {
        **_coins(protocol.mechanism),
        "k": protocol.k,
        "epsilon_exact": math.fsum(p.epsilon_exact for p in protocols),
        "epsilon_spent": math.fsum(p.epsilon for p in protocols),
        "rounds": len(protocols),
        "holder": protocol.holder,
        "form": form,
        "influence": InfluenceFacts(
            one=force.one, one_percent=force.one_percent, at_once=force.totals_at_once
        ),
    }


def _coins(mechanism: Mechanism) -> dict[str, Any]:
    """Of the randomness of one report what the page prints; the rest is absent."""
    one = mechanism.describe()
    facts = {
        "oracle": one.oracle,
        "p": one.p,
        "q": one.q,
        "label_p": one.label_p,
        "noise_sd": one.noise_sd,
    }
    return {"mechanism": one.name} | {name: fact for name, fact in facts.items() if fact is not None}


def caps_of(evaluation: EvaluateConfig, n_public: int, n_private: int) -> dict[str, str]:
    """Of each baseline that read fewer rows than there were, how many."""
    said: dict[str, str] = {}
    if n_public > evaluation.public_rows:
        note = f"fitted on {evaluation.public_rows:,} of {n_public:,} public rows"
        said |= {"public_tree": note, "public_forest": note}
    if n_private > evaluation.private_rows:
        said["non_private"] = f"fitted on about {evaluation.private_rows:,} of {n_private:,} private rows"
    return said


def rows_of(
    config: RunConfig, ingested: Mapping[str, Any], held: Mapping[str, Any], fitted: Mapping[str, Any]
) -> tuple[RowFacts, RowFacts]:
    """Rows of both zones."""
    n_public = fitted["n_public"]
    return (
        RowFacts(
            zone="public",
            kept=n_public,
            read=n_public + fitted["n_unusable"] + _set_aside(ingested),
            quarantined=ingested["bad_public"],
        ),
        RowFacts(zone="private", kept=held["n_private"], held_out=held["n_test"]),
    )


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


def _nodes(model: AnyTree | CorrectedModel) -> list[dict[str, Any]]:
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
