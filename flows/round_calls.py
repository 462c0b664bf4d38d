"""What the steps of a run in rounds are called with, where some features are public; the steps it shares with other runs are in
`calls`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import accumulate
from typing import Any

from flows import calls
from flows.budget import Spent
from flows.calls import Call
from flows.campaign import Terms
from schemas.manifest import Manifest, Record
from storage.store import Store
from tasks.checkpoint import REGISTERED
from tasks.show import in_order


def label_range(scaled: Record) -> tuple[float, float]:
    """Ends of the label's range."""
    low, high = scaled.facts["label_range"]
    return float(low), float(high)


def label(terms: Terms, scaled: Record) -> dict[str, Any]:
    """How a label is read (`tasks.show.Label`)."""
    low, high = label_range(scaled)
    return {"target": terms.dataset.target, "low": low, "high": high}


def shards(store: Store, terms: Terms, held: Record) -> list[Call]:
    """The holders' shards in the order in which they are shown: each with the position of its first holder, and which it is of
    those that hold the same.
    """
    ordered = in_order(store, held["train"], is_seeded=terms.config.is_seeded)
    own = {call["shard"].files[0].name: call for call in calls.shards(store, terms, held)}
    starts = [0, *accumulate(shard.rows for shard in ordered)][:-1]
    return [own[s.files[0].name] | {"start": start} for s, start in zip(ordered, starts, strict=True)]


def show(terms: Terms, held: Record, scaled: Record) -> Call:
    """The holders' shards, and what they protect."""
    return {
        "encoding": scaled["encoding"],
        "train": held["train"],
        "features": terms.config.features,
        "release": terms.config.mask_release,
        "is_seeded": terms.config.is_seeded,
    }


def curator(terms: Terms, scaled: Record, shown: Record, transcripts: Sequence[Manifest]) -> Call:
    """Everything a curator knows, and its settings."""
    config = terms.config
    return {
        "encoding": scaled["encoding"],
        "shown": shown["shown"],
        "transcripts": list(transcripts),
        "estimator": config.model.estimator,
        "settings": config.round_settings,
        "epsilon": config.privacy.epsilon,
        "label_range": label_range(scaled),
        "seed": config.seed,
    }


def ask(terms: Terms, scaled: Record, shown: Record, transcripts: Sequence[Manifest]) -> Call:
    """What the curator knows, and whether the holders are simulated: the question then says so."""
    mark = {"simulation": True} if terms.config.is_seeded else {}
    return curator(terms, scaled, shown, transcripts) | mark


def conversation(store: Store, terms: Terms, scaled: Record, shown: Record) -> str:
    """What a conversation is known by in the ledger: all that its curator knows before the first question."""
    return REGISTERED["ask"].step.place(store, curator(terms, scaled, shown, [])).key


def answer(terms: Terms, scaled: Record, shown: Record, asked: Record, number: int) -> Call:
    """The question, for every shard alike."""
    config = terms.config
    return {
        "question": asked["question"],
        "encoding": scaled["encoding"],
        "shown": shown["shown"],
        "round_number": number,
        "features": config.features,
        "label": label(terms, scaled),
        "noise_seed": config.simulation.noise_seed,
    }


def publish(asked: Record, shown: Record, reports: Sequence[Record], number: int) -> Call:
    """Every answer of a round."""
    return {
        "question": asked["question"],
        "shown": shown["shown"],
        "reports": [record["reports"] for record in reports],
        "round_number": number,
    }


def learn(
    terms: Terms, scaled: Record, shown: Record, asked: Sequence[Record], transcripts: Sequence[Manifest]
) -> Call:
    """All rounds."""
    return curator(terms, scaled, shown, transcripts) | {
        "questions": [record.facts["digest"] for record in asked],
        "target": terms.dataset.target,
    }


def evaluate(terms: Terms, scaled: Record, held: Record, model: Record) -> Call:
    """The model, and the private rows that only a simulation has."""
    config = terms.config
    return {
        "encoding": scaled["encoding"],
        "scaled": scaled["scaled"],
        "model": model["model"],
        "train": held["train"],
        "test": held["test"],
        "label": label(terms, scaled),
        "evaluation": config.evaluation,
        "seed": config.seed,
    }


def report(terms: Terms, asked: Sequence[Record], spent: Spent, records: Sequence[Record]) -> Call:
    """Everything the page tells of."""
    by_step = {record.step: record for record in records}
    scored = by_step.get("evaluate_shown")
    return {
        "config": terms.config,
        "checks": by_step["validate"]["checks"],
        "model": by_step["learn"]["model"],
        "curves": by_step["learn"]["curves"],
        "shown": by_step["show"]["shown"],
        "questions": [record["question"] for record in asked],
        "scores": None if scored is None else scored["scores"],
        "ingested": by_step["ingest"].facts,
        "held": by_step["split"].facts,
        "fitted": by_step["scale"].facts,
        "rounds": [dict(record.facts) | {"artifact": record["question"].digest} for record in asked],
        "spent": asdict(spent),
    }
