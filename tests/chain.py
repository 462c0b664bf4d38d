"""Whole runs as plain functions, with no Prefect server: for tests that need what a step leaves. Small tables of made-up rides,
fares and shells, protocols and shards are made here too.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flows.budget import Spent
from flows.conversation import Conversation, Round
from flows.executors import InlineExecutor, Inputs, Shards
from flows.pipeline import Pipeline
from ldptree.encoding import Encoding, NumericFeature
from ldptree.mechanisms import mechanism_for
from ldptree.partition.tree import Partition
from ldptree.protocol.protocol import Protocol
from schemas.config import RunConfig, parse
from schemas.manifest import Manifest, Record
from storage import tables
from storage.formats import stamped
from storage.holders.secret import SECRET, SECRET_BYTES
from storage.ledger.accounts import Account
from storage.ledger.campaigns import AskedSince, Campaign, Joining
from storage.raw import raw_files
from storage.store import Store
from tasks.artifacts import read_model, read_protocol, write_protocol
from tasks.data import source
from tasks.data.ingest import check_all_read, describe_columns
from tasks.data.ingest_plan import RowRules, cut_files, inspect_files, plan_ingest
from tasks.data.read import ZoneFolders, clear_zones, read_files
from tasks.holders.agreed import Agreed
from tasks.learning import partition
from tasks.perturb import Collecting, Form, perturb
from tasks.step import NotInKey, StepTask

MADE_ONCE = ("types", "read", "ingest", "count", "validate")
"""Steps whose artifacts are copied where this process has made them before, from the same files in the same way."""


@cache
def made_before() -> tuple[TemporaryDirectory[str], dict[str, Record]]:
    """The folder of what was made once, and its records by their keys."""
    return TemporaryDirectory(prefix="made-once-"), {}


@cache
def shared_secret() -> bytes:
    """The secret of the holders of work folders that are called "work", in this process."""
    return secrets.token_bytes(SECRET_BYTES)


class Copying(InlineExecutor):
    """Steps as functions; those of `MADE_ONCE` are computed once a process.

    Keys of the holders' zone depend on their secret. New work folders that are called "work" have one secret, the others one of
    their own: a test that two folders learn the same calls them otherwise.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        if store.root.name == "work" and not any(path.is_file() for path in store.root.rglob("*")):
            store.objects.put(SECRET, shared_secret())

    def step(self, task: StepTask, inputs: Inputs, round_number: int = 0) -> Record:
        return self._made(task, inputs())

    def shards(self, task: StepTask, inputs: Shards, round_number: int = 0) -> list[Record]:
        common, shards = inputs()
        return [self._made(task, common | own) for own in shards]

    def _made(self, task: StepTask, call: Mapping[str, Any]) -> Record:
        store = self.store
        if task.step.name not in MADE_ONCE:
            return task.fn(store, **call)
        place = task.step.place(store, call)
        folder, records = made_before()
        kept = Path(folder.name) / place.key
        if (record := records.get(place.key)) is None:
            record = task.fn(store, **call)
            if not (store.zone("holders") / "faults").exists():
                for part in record.parts.values():
                    shutil.copytree(store.root / part.path, kept / part.path)
                records[place.key] = record
            return record
        finals = [store.root / part.path for part in record.parts.values()]
        if store.has_record(place) or any(final.exists() for final in finals):
            return task.fn(store, **call)
        for part in record.parts.values():
            draft = store.objects.draft_folder(part.path.rpartition("/")[0])
            shutil.copytree(kept / part.path, draft, dirs_exist_ok=True)
            store.objects.publish(draft, part.path)
        content = stamped("record", record.model_dump(mode="json"))
        store.objects.put(store.record_name(place), content)
        return record


class Chain(Pipeline):
    """One run of `config` in `store`, as far as it is asked for, without Prefect.

    Of one question its parts can be set (`chain.__dict__["reports"] = ...`); the ledger is not told that it was answered.
    """

    def __init__(self, store: Store, config: RunConfig, **more: Any) -> None:
        super().__init__(store=store, config=config, **({"executor": Copying(store)} | more))

    @cached_property
    def first(self) -> Round:
        found = self.ask([])
        assert found is not None
        return found

    @cached_property
    def spent(self) -> Spent:
        while True:
            try:
                return self.respondents.charge(self.first, None)
            except AskedSince:
                self._begin_again()

    @cached_property
    def reports(self) -> list[Record]:
        assert self.spent
        asked = self.respondents
        records = self.executor.shards(perturb, lambda: (asked.of_perturb(self.first), asked.shards), 1)
        if self.terms.campaign is not None:
            self.terms.campaign.add_reports(record["reports"] for record in records)
        return records

    def keep_answers(self) -> None:
        """Tell the ledger who answered, as a run does."""
        own: Any = self.respondents
        own.cost(self.first).keep_answers(1, [call["shard"] for call in own.shards], self.reports)

    @cached_property
    def totals(self) -> Record:
        return self.add_up(replace(self.first, reports=self.reports))

    @cached_property
    def conversation(self) -> Conversation:
        if self.respondents.asks_parts:
            return super().conversation
        spent = self.spent  # before the question, which may be another since
        return Conversation([replace(self.first, reports=self.reports, left=self.totals)], spent)


class RoundsChain(Pipeline):
    """One run in rounds, as far as it is asked for, without Prefect."""

    def __init__(self, store: Store, config: RunConfig, **more: Any) -> None:
        super().__init__(store=store, config=config, **({"executor": Copying(store)} | more))
        self.rounds: list[Round] = []

    @property
    def asked(self) -> list[Record]:
        return [one.asked for one in self.rounds]

    @property
    def answered(self) -> list[Sequence[Record]]:
        return [one.reports for one in self.rounds]

    @property
    def transcripts(self) -> list[Manifest]:
        return [one.left["transcript"] for one in self.rounds]

    @property
    def spent(self) -> Spent:
        return self.conversation.spent

    def next_question(self) -> Record:
        """What is asked after the rounds so far, or that nothing is."""
        return self.executor.step(partition, lambda: self.of_partition(self.rounds))

    def publish(self, question: Record, reports: Sequence[Record], number: int) -> Record:
        return self.add_up(Round(number, question, lambda: question["question"], reports))

    def add_up(self, answered: Round) -> Record:
        left = super().add_up(answered)
        self.rounds.append(replace(answered, left=left))
        return left

    def converse(self) -> RoundsChain:
        """All rounds."""
        assert self.conversation
        return self


def inputs_of(chain: Any, name: str) -> dict[str, Any]:
    """What a step is called with, by the name that the pipeline has for what it leaves."""
    found: dict[str, Any] = getattr(type(chain), name).func.__wrapped__(chain)
    return found


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


RIDES: dict[str, dict[str, Any]] = {
    "dataset": {
        "name": "rides",
        "target": "paid",
        "positive": "card",
        "public": "zone = 'open'",
        "drop": ["person"],
    },
    "model": {"estimator": "lpct", "depth": 3},
    "privacy": {"epsilon": 2.0},
}
"""What a configuration says of `rides`, wherever they are."""


NEW_PEOPLE = {"holder": "row", "new_people": True}
"""Of a data set whose later files hold people who were never asked."""


def rides_config(*paths: Path, **changes: Any) -> RunConfig:
    """A configuration for `rides`: shallow, seeded; `changes` are tables laid over it, as dataset={"holder": "person"}."""
    content: dict[str, Any] = RIDES | {
        "name": "rides",
        "seed": 7,
        "dataset": RIDES["dataset"] | {"path": [str(path) for path in paths]},
        "simulation": {"noise_seed": 11},
        "evaluation": {"redraws": 3},
    }
    return parse(laid_over(content, changes))


def laid_over(content: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with changes: of a table its keys, else the value."""
    return dict(content) | {
        key: content.get(key, {}) | dict(value) if isinstance(value, Mapping) else value
        for key, value in changes.items()
    }


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
    """`rides_config` or `fares_config` with a public model that is corrected after one question: a quick smoothed tree.
    `correction` are keys of the model, as `model` are.
    """
    usual = {"estimator": "correction", "base": "tree", "questions": 1}
    return make(*paths, model=usual | changes.pop("correction", {}) | changes.pop("model", {}), **changes)


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
    return {key: value for key, value in laid_over(content, changes).items() if value is not None}


def ingest_files(
    rules: RowRules,
    paths: Sequence[Path],
    zones: ZoneFolders,
    *,
    public_paths: Sequence[Path] = (),
    numeric: bool | None = False,
) -> SimpleNamespace:
    """Raw files as typed Parquet below both zones, and what the steps of a run tell of them; nothing is left where one fails."""
    files = inspect_files(rules.dataset, [*paths, *public_paths])
    raw_files.same_columns(files)
    plan = plan_ingest(rules, files, len(paths), numeric=numeric)
    pieces = cut_files(files, source.PART_BYTES)
    done, typed = read_files(plan.in_pieces(pieces), zones), describe_columns(plan)
    try:
        check_all_read(rules, typed, done)
    except BaseException:
        clear_zones(zones)
        raise
    n_public, n_private = (sum(file.rows for file in done.parts[zone]) for zone in (True, False))
    return SimpleNamespace(
        **typed | {"columns": plan.query.kept},
        public=tuple(done.parts[True]),
        private=tuple(done.parts[False]),
        n_public=n_public,
        n_private=n_private,
        bad_public=done.bad,
        left_out_public=done.left_out,
    )


def zones_of(folder: Path) -> ZoneFolders:
    """Both zones below one folder, faults with the holders."""
    holders = folder / "holders"
    return ZoneFolders(public=folder / "public", holders=holders, faults=holders / "faults.txt")


def join_campaign(
    store: Store,
    name: str,
    digests: Mapping[str, str],
    answers: Sequence[Path] = (),
    *,
    protocol: Manifest,
    **other: Any,
) -> None:
    """Join a campaign as a run does that charges nobody; `other` are fields of `Joining`."""
    usual: dict[str, Any] = {"terms": {}, "form": "reports", "known": Campaign(store, name).asked()} | other
    joining = Joining(campaign=name, protocol=protocol, digests=digests, answers=answers, **usual)
    Account(store, None).charge([], None, joining=joining)


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
    store.hasher("holders")  # the secret: rows are read before anything is published
    place = store.place("curator", "partition", "1", inputs={}, parameters={"test": protocol.digest})
    with store.draft(place) as draft:
        write_protocol(draft, protocol)
        return draft.finish({}, 0.0)["question"]


def perturb_shard(
    store: Store, question: Manifest, shard: Manifest, *, form: Form = "reports", **changes: Any
) -> Record:
    """A shard answers about one tree, as its holders agreed to: in round 1, with coins of a seed; `changes` are arguments of
    `perturb`, or a campaign.
    """
    collecting = Collecting(form=form, campaign=changes.pop("campaign", None))
    call = {"round_number": 1, "noise_seed": 11, "collecting": collecting} | changes
    if "agreed" not in call:
        call["agreed"] = agreed_to(store, question)
    return perturb.fn(store, question=question, shard=shard, **call)


def agreed_to(store: Store, question: Manifest, **changes: Any) -> NotInKey:
    """What holders have agreed to who agreed to this protocol."""
    protocol = read_protocol(store, question)
    agreed = Agreed(
        epsilon=Fraction(protocol.epsilon),
        mechanisms=(),
        mask_release="all",
        campaign=protocol.campaign,
        simulation=protocol.simulation,
        kinds=frozenset(),
        n=0,
        digest=question.digest,
        number=protocol.round,
    )
    return NotInKey(replace(agreed, **changes))


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
