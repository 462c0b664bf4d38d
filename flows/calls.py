"""What each step is called with, from the configuration and the records above it: for the flow, which runs them, and the
plan, which does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flows.campaign import Terms
from schemas.manifest import Manifest, Record
from tasks.checkpoint import REGISTERED, StepTask

Call = dict[str, Any]
ROUND = 1


def settled(terms: Terms, raw: Manifest, public_raw: Manifest | None) -> Terms:
    """The terms that a run over these files calls its steps with.

    A campaign's later runs are called with what the first one found out. The first one itself, given again, was not: it is
    told by its artifacts, and finds them.
    """
    if terms.campaign is None or terms.protocol is None:
        return terms
    store, first = terms.campaign.store, replace(terms, dataset=terms.config.dataset, protocol=None)

    def found(step: StepTask, call: Call) -> Record | None:
        return store.find(step.step.place(store, call))

    ingested = found(REGISTERED["ingest"], ingest(first, raw, public_raw))
    if ingested is None or ingested.facts["types"] != terms.dataset.types:
        return terms
    held, scaled = (
        found(REGISTERED["split"], split(first, raw, ingested)),
        found(REGISTERED["scale"], scale(first, ingested)),
    )
    if held is None or scaled is None:
        return terms
    published = found(REGISTERED["partition"], partition(first, held, scaled))
    return first if published is not None and published["protocol"] == terms.protocol else terms


def source(terms: Terms) -> Call:
    """Simulated raw files."""
    return {"rows": terms.dataset.rows, "seed": terms.config.seed}


def ingest(terms: Terms, raw: Manifest, public_raw: Manifest | None) -> Call:
    """Raw files, and the second file of a public rule that names one."""
    return {
        "raw": raw,
        "public_raw": public_raw,
        "dataset": terms.dataset.without_words(),
        "seed": terms.config.seed,
    }


def validate(terms: Terms, ingested: Record, suite: Manifest | None) -> Call:
    """Both zones, and an edited suite where one is named."""
    return {
        "public": ingested["public"],
        "private": ingested["private"],
        "suite": suite,
        "dataset": terms.dataset.without_words(),
        "columns": ingested.facts["columns"],
    }


def split(terms: Terms, raw: Manifest, ingested: Record) -> Call:
    """Private rows, public coins, and who a campaign asked before."""
    config, data = terms.config, terms.dataset
    return {
        "private": ingested["private"],
        "columns": [*ingested.facts["features"], data.target],
        "holder": data.holder,
        "seed": config.seed,
        "test_fraction": data.test_fraction if config.evaluate else 0.0,
        "noise_seed": config.simulation.noise_seed,
        "campaign": config.campaign.name,
        "asked_before": terms.asked_before(raw),
    }


def scale(terms: Terms, ingested: Record) -> Call:
    """Public rows."""
    return {
        "public": ingested["public"],
        "features": ingested.facts["features"],
        "dataset": terms.dataset.without_words(),
        "frozen": terms.protocol,
    }


def partition(terms: Terms, held: Record, scaled: Record) -> Call:
    """Scaled public rows, how many holders will be asked, and what they are promised."""
    config = terms.config
    return {
        "encoding": scaled["encoding"],
        "scaled": scaled["scaled"],
        "n_private": held.facts["n_private"],
        "kind": config.model.partition,
        "depth": config.model.depth,
        "min_samples_leaf": config.model.min_samples_leaf,
        "epsilon": config.privacy.epsilon,
        "mechanism": config.privacy.mechanism,
        "outside": config.privacy.outside,
        "holder": terms.dataset.holder,
        "target": terms.dataset.target,
        "has_positive": terms.dataset.positive is not None,
        "campaign": config.campaign.name,
        "frozen": terms.protocol,
    }


def perturb(terms: Terms, protocol: Manifest, held: Record, published: Record) -> Call:
    """The protocol, for every shard alike."""
    config = terms.config
    return {
        "protocol": protocol,
        "round_number": ROUND,
        "form": terms.form(held, published),
        "noise_seed": config.simulation.noise_seed,
        "campaign": config.campaign.name,
    }


def aggregate(terms: Terms, protocol: Manifest, reports: Sequence[Record]) -> Call:
    """Every report there is."""
    return {"protocol": protocol, "reports": terms.received(reports), "round_number": ROUND}


def prune(terms: Terms, protocol: Manifest, totals: Record, scaled: Record) -> Call:
    """Totals and public rows."""
    return {
        "protocol": protocol,
        "totals": totals["totals"],
        "scaled": scaled["scaled"],
        "lam": terms.config.model.lam,
        "prune": terms.config.model.prune,
    }


def evaluate(terms: Terms, protocol: Manifest, model: Record, scaled: Record, held: Record) -> Call:
    """The model, and the private rows that only a simulation has."""
    config = terms.config
    return {
        "protocol": protocol,
        "model": model["model"],
        "scaled": scaled["scaled"],
        "train": held["train"],
        "test": held["test"],
        "lam": config.model.lam,
        "prune": config.model.prune,
        "evaluation": config.evaluation,
        "seed": config.seed,
        "noise_seed": config.simulation.noise_seed,
    }


def report(
    terms: Terms,
    protocol: Manifest,
    *,
    ingested: Record,
    checked: Record,
    held: Record,
    scaled: Record,
    published: Record,
    totals: Record,
    model: Record,
    scores: Record | None,
) -> Call:
    """Everything the page tells of."""
    return {
        "config": terms.config,
        "checks": checked["checks"],
        "protocol": protocol,
        "totals": totals["totals"],
        "scaled": scaled["scaled"],
        "model": model["model"],
        "scores": None if scores is None else scores["scores"],
        "ingested": ingested.facts,
        "held": held.facts,
        "fitted": scaled.facts,
        "form": perturb(terms, protocol, held, published)["form"],
    }
