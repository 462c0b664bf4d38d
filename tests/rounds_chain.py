"""Every step of a run in rounds called as a plain function, with no Prefect server; and small made-up rows of which some features
are public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flows import calls, round_calls
from flows.budget import Spent
from flows.campaign import Terms
from flows.rounds_budget import Charged
from schemas.config import RunConfig, parse
from schemas.manifest import Manifest, Record
from storage.store import Store
from tasks import source
from tasks.answer import answer
from tasks.ask import ask
from tasks.checkpoint import Aside
from tasks.evaluate_shown import evaluate_shown
from tasks.ingest import ingest
from tasks.learn import learn
from tasks.publish import publish
from tasks.report_shown import report_shown
from tasks.scale import scale
from tasks.show import show
from tasks.split import split
from tasks.timeline import Timeline
from tasks.validate import validate


@dataclass
class RoundsChain:
    """One run of `config` in `store`, as far as it is asked for: `flows.rounds_flow` without Prefect."""

    store: Store
    config: RunConfig
    asked: list[Record] = field(default_factory=list)
    answered: list[list[Record]] = field(default_factory=list)
    transcripts: list[Manifest] = field(default_factory=list)
    spent: Spent | None = None

    @cached_property
    def terms(self) -> Terms:
        return Terms.of(self.store, self.config)

    @cached_property
    def raw(self) -> Manifest:
        return source.raw_files(self.store, self.terms.dataset, self.config.seed)

    @cached_property
    def ingested(self) -> Record:
        return ingest.fn(self.store, **calls.ingest(self.terms, self.raw, None))

    @cached_property
    def checked(self) -> Record:
        return validate.fn(self.store, **calls.validate(self.terms, self.ingested, None))

    @cached_property
    def held(self) -> Record:
        return split.fn(self.store, **calls.split(self.terms, self.raw, self.ingested))

    @cached_property
    def scaled(self) -> Record:
        return scale.fn(self.store, **calls.scale(self.terms, self.ingested))

    @cached_property
    def shown(self) -> Record:
        return show.fn(self.store, **round_calls.show(self.terms, self.held, self.scaled))

    def ask(self) -> Record:
        """The question after the rounds so far."""
        return ask.fn(self.store, **round_calls.ask(self.terms, self.scaled, self.shown, self.transcripts))

    def charged(self, key: str) -> Charged:
        return Charged(self.store, self.config, self.raw, self.held, key)

    def answer(self, question: Record, number: int) -> list[Record]:
        """Everybody's answers to a question."""
        call = round_calls.answer(self.terms, self.scaled, self.shown, question, number)
        shards = round_calls.shards(self.store, self.terms, self.held)
        return [answer.fn(self.store, **shard, **call) for shard in shards]

    def publish(self, question: Record, reports: list[Record], number: int) -> Record:
        return publish.fn(self.store, **round_calls.publish(question, self.shown, reports, number))

    def converse(self) -> RoundsChain:
        """All rounds, as `flows.conversation` has them."""
        charged: Charged | None = None
        for number in count(1):
            question = self.ask()
            if not question.facts["is_left"]:
                return self
            if charged is None:
                charged = self.charged(
                    round_calls.conversation(self.store, self.terms, self.scaled, self.shown)
                )
                self.spent = charged.charge()
            charged.check_question(number, question["question"].digest)
            reports = self.answer(question, number)
            shards = round_calls.shards(self.store, self.terms, self.held)
            charged.keep_answers(number, [one["shard"] for one in shards], reports)
            self.asked.append(question)
            self.answered.append(reports)
            self.transcripts.append(self.publish(question, reports, number)["transcript"])
        raise AssertionError

    @cached_property
    def model(self) -> Record:
        assert self.transcripts, "converse first"
        call = round_calls.learn(self.terms, self.scaled, self.shown, self.asked, self.transcripts)
        return learn.fn(self.store, **call)

    @cached_property
    def scores(self) -> Record:
        return evaluate_shown.fn(
            self.store, **round_calls.evaluate(self.terms, self.scaled, self.held, self.model)
        )

    @cached_property
    def page(self) -> Record:
        records = [self.ingested, self.checked, self.held, self.scaled, self.shown, self.model]
        records += [self.scores] if self.config.evaluate else []
        call = round_calls.report(self.terms, self.asked, self.spent, records)
        return report_shown.fn(self.store, **call, timeline=Aside(Timeline()), command=Aside("the command"))


def shells(path: Path, n: int, seed: int, **columns: Any) -> Path:
    """A Parquet file of `n` made-up shells, a fifth of them public (zone "open"): `size` and `kind` shape the label `rings`,
    `weight` too, and `hides` says with true whose weight is their own; `columns` replace or add to its own.
    """
    rng = np.random.default_rng(seed)
    size, weight = rng.random(n).round(3), rng.random(n).round(3)
    kind = rng.choice(["calm", "wild"], n)
    rings = 8 + 6 * size + 8 * weight + 2 * (kind == "wild") + rng.normal(0, 0.5, n)
    table = {
        "zone": np.where(np.arange(n) % 5 == 0, "open", "closed"),
        "size": size,
        "weight": weight,
        "kind": kind,
        "hides": rng.random(n) < 0.7,
        "rings": rings.clip(0, 30).round(3),
    } | columns
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(table), path)
    return path


def shells_config(*paths: Path, **changes: Any) -> RunConfig:
    """A configuration for `shells`: weight private, seeded, of public_features; `changes` are tables laid over it."""
    return parse(shells_plain(*paths, **changes))


def shells_plain(*paths: Path, **changes: Any) -> dict[str, Any]:
    """`shells_config` before it is checked; a table that is None is left out."""
    content: dict[str, Any] = {
        "name": "shells",
        "seed": 7,
        "dataset": {
            "name": "shells",
            "path": [str(path) for path in paths],
            "target": "rings",
            "unit": "rings",
            "nouns": "shells",
            "noun": "shell",
            "public": "zone = 'open'",
            "drop": ["hides"],
        },
        "model": {"estimator": "public_features", "label_range": [0, 30]},
        "features": {"private": ["weight"]},
        "privacy": {"epsilon": 2.0},
        "simulation": {"noise_seed": 11},
    }
    for key, value in changes.items():
        content[key] = content.get(key, {}) | dict(value) if isinstance(value, Mapping) else value
    return {key: value for key, value in content.items() if value is not None}
