"""Every step of the picture called as a plain function, with no Prefect server: for tests that need what a step leaves.

Each property runs the steps it needs, once. Small tables of made-up rides, protocols and shards are made here too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from flows import calls
from flows.budget import Spent, charge
from flows.campaign import Terms
from ldptree.encoding import Encoding, NumericFeature
from ldptree.mechanisms import mechanism_for
from ldptree.partition.tree import Partition
from ldptree.protocol.protocol import Protocol
from schemas.config import RunConfig, parse
from schemas.manifest import Manifest, Record
from storage import tables
from storage.store import Store
from tasks import source
from tasks.aggregate import aggregate
from tasks.artifacts import read_model, read_protocol
from tasks.checkpoint import Aside
from tasks.evaluate import evaluate
from tasks.ingest import ingest
from tasks.partition import partition
from tasks.perturb import perturb
from tasks.prune import prune
from tasks.report import report
from tasks.scale import scale
from tasks.split import split
from tasks.timeline import Timeline
from tasks.validate import validate


@dataclass
class Chain:
    """One run of `config` in `store`, as far as it is asked for."""

    store: Store
    config: RunConfig

    @cached_property
    def named(self) -> Terms:
        return Terms.of(self.store, self.config)

    @cached_property
    def settled(self) -> Terms:
        return calls.settled(self.named, self.raw, source.public_files(self.store, self.named.dataset))

    @cached_property
    def terms(self) -> Terms:
        return self.settled.with_label_of(self.ingested)

    @cached_property
    def raw(self) -> Manifest:
        data = self.named.dataset
        if data.simulated and not data.path:
            return source.simulate.fn(self.store, **calls.source(self.named))["raw"]
        return self.named.in_order(source.raw_files(self.store, data, self.config.seed))

    @cached_property
    def ingested(self) -> Record:
        second = source.public_files(self.store, self.settled.dataset)
        return ingest.fn(self.store, **calls.ingest(self.settled, self.raw, second))

    @cached_property
    def checked(self) -> Record:
        suite = source.suite_file(self.store, self.terms.dataset)
        return validate.fn(self.store, **calls.validate(self.terms, self.ingested, suite))

    @cached_property
    def held(self) -> Record:
        return split.fn(self.store, **calls.split(self.terms, self.raw, self.ingested))

    @cached_property
    def scaled(self) -> Record:
        return scale.fn(self.store, **calls.scale(self.terms, self.ingested))

    @cached_property
    def published(self) -> Record:
        return partition.fn(self.store, **calls.partition(self.terms, self.held, self.scaled))

    @cached_property
    def protocol(self) -> Manifest:
        return self.terms.publish(self.raw, self.ingested, self.held, self.published)

    @cached_property
    def spent(self) -> Spent:
        return charge(
            self.store, **calls.charge(self.terms, self.raw, self.protocol, self.held, self.published)
        )

    @cached_property
    def reports(self) -> list[Record]:
        assert self.spent
        call = calls.perturb(self.terms, self.protocol, self.held, self.published)
        shards = calls.shards(self.store, self.terms, self.held)
        return [perturb.fn(self.store, **shard, **call) for shard in shards]

    @cached_property
    def totals(self) -> Record:
        return aggregate.fn(self.store, **calls.aggregate(self.terms, self.protocol, self.reports))

    @cached_property
    def model(self) -> Record:
        return prune.fn(
            self.store, **calls.prune(self.terms, self.protocol, self.totals, self.scaled, self.published)
        )

    @cached_property
    def scores(self) -> Record:
        call = calls.evaluate(self.terms, self.protocol, self.model, self.scaled, self.held, self.published)
        return evaluate.fn(self.store, **call)

    @cached_property
    def page(self) -> Record:
        call = calls.report(
            self.terms,
            (self.protocol,),
            self.spent,
            ingested=self.ingested,
            checked=self.checked,
            held=self.held,
            scaled=self.scaled,
            published=self.published,
            totals=self.totals,
            model=self.model,
            scores=self.scores if self.config.evaluate else None,
        )
        return report.fn(self.store, **call, timeline=Aside(Timeline()), command=Aside(""))


def published(chain: Chain) -> Protocol:
    """The protocol that was published, read."""
    return read_protocol(chain.store, chain.protocol)


def learned(chain: Chain) -> Any:
    """The released model, read."""
    return read_model(chain.store, chain.model["model"])


def scores_of(chain: Chain) -> dict[str, Any]:
    """What evaluate wrote."""
    found: dict[str, Any] = json.loads(chain.store.file(chain.scores["scores"], "scores.json").read_text())
    return found


def rides(path: Path, n: int, seed: int, **columns: Any) -> Path:
    """A CSV of `n` made-up rides, a third of them public (zone "open"); `columns` replace or add to its own."""
    rng = np.random.default_rng(seed)
    miles = rng.gamma(2.0, 3.0, n).round(2)
    hour = rng.integers(0, 24, n)
    firm = rng.choice(["ash", "birch", "cedar"], n, p=[0.5, 0.3, 0.2])
    card = rng.random(n) < 0.2 + 0.5 * (miles > 6) + 0.2 * (firm == "ash")
    table = {
        "zone": np.where(np.arange(n) % 3 == 0, "open", "closed"),
        "person": [f"p{i}" for i in rng.integers(0, max(n // 3, 1), n)],
        "miles": miles,
        "hour": hour,
        "firm": firm,
        "paid": np.where(card, "card", "cash"),
    } | columns
    lines = [",".join(table), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def rides_config(*paths: Path, **changes: Any) -> RunConfig:
    """A configuration for `rides`: shallow, seeded; `changes` are tables laid over it, as dataset={"holder": "person"}."""
    content: dict[str, Any] = {
        "name": "rides",
        "seed": 7,
        "dataset": {
            "name": "rides",
            "path": [str(path) for path in paths],
            "target": "paid",
            "positive": "card",
            "public": "zone = 'open'",
            "drop": ["person"],
        },
        "model": {"depth": 3},
        "privacy": {"epsilon": 2.0},
        "simulation": {"noise_seed": 11},
        "evaluation": {"redraws": 3},
    }
    for key, value in changes.items():
        content[key] = content.get(key, {}) | dict(value) if isinstance(value, Mapping) else value
    return parse(content)


def fares(path: Path, n: int, seed: int, **columns: Any) -> Path:
    """`rides` with a fare in dollars: 4 and 2.5 a mile, more where the zone is closed, and noise; no label of classes."""
    rng = np.random.default_rng(seed)
    miles = rng.gamma(2.0, 3.0, n).round(2)
    is_closed = np.arange(n) % 3 != 0
    fare = (4 + 2.5 * miles + 3 * is_closed + rng.normal(0, 2, n)).clip(1, 60).round(2)
    return rides(path, n, seed, **({"miles": miles, "paid": fare} | columns))


def fares_config(*paths: Path, **changes: Any) -> RunConfig:
    """`rides_config` for `fares`: estimator lpdt, the column "paid" a number."""
    model = {"estimator": "lpdt", "depth": 3} | changes.pop("model", {})
    dataset = {"positive": None, "unit": "$"} | changes.pop("dataset", {})
    return rides_config(*paths, model=model, dataset=dataset, **changes)


def mended(make: Callable[..., RunConfig], *paths: Path, **changes: Any) -> RunConfig:
    """`rides_config` or `fares_config` with a public model that is mended instead: a smoothed tree, which is quick to fit."""
    model = {"estimator": "correction"} | changes.pop("model", {})
    return make(*paths, model=model, correction={"base": "tree"} | changes.pop("correction", {}), **changes)


def example_protocol(mechanism: str = "grr", *, epsilon: float = 1.0, **changes: Any) -> Protocol:
    """A tree with one split, at x = 4 of 0 to 8, over columns x and y, and two classes; `changes` are its fields."""
    fields: dict[str, Any] = {
        "encoding": Encoding((NumericFeature("x", 0.0, 8.0), NumericFeature("y", 0.0, 1.0, fill=0.0))),
        "partition": Partition.of([0, -1, -1], [0.5, 0.0, 0.0], [1, -1, -1], [2, -1, -1]),
        "target": "label",
        "classes": ("no", "yes"),
        "positive": "yes",
        "epsilon": epsilon,
    } | changes
    sizes = fields["partition"].n_leaves, len(fields["classes"])
    fields.setdefault("simulation", mechanism == "laplace")
    return Protocol(mechanism=mechanism_for(mechanism, epsilon, *sizes), **fields)


def publish(store: Store, protocol: Protocol) -> Manifest:
    """A protocol as an artifact of the curator's."""
    place = store.place("curator", "partition", "1", inputs={}, parameters={"test": protocol.digest})
    with store.draft(place) as draft:
        (draft.folder("protocol") / "protocol.json").write_text(protocol.to_json())
        return draft.finish({}, 0.0)["protocol"]


def shards_of(store: Store, *shards: Mapping[str, Any]) -> list[Manifest]:
    """Tables of private rows as the shards that split leaves."""
    parts = [pa.table(dict(shard)) for shard in shards]
    label = store.hasher("holders").of_value([table.to_pydict() for table in parts])
    place = store.place("holders", "split", "1", inputs={}, parameters={"test": label})
    with store.draft(place) as draft:
        for number, table in enumerate(parts):
            name = f"{store.hasher('holders').of_value([label, number])[:32]}.parquet"
            tables.write(draft.folder("train") / name, table)
            draft.count("train", name, table.num_rows)
        made = draft.finish({}, 0.0)["train"].one_by_one()
    found = [tables.read(store.files(shard)) for shard in made]  # in order of name, which tells nothing
    return [made[next(i for i, rows in enumerate(found) if rows.equals(table))] for table in parts]
