"""What actors do: runs in the pipeline's order over the real store, ledger, campaigns, seal and reports; a reader; and `gc`.

A run here learns nothing: its steps write small files. What is seen is noted, and compared when it is seen again.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flows.provenance import collect_garbage, in_use
from ldptree.errors import ArtifactCorrupt, BudgetError, ConfigError, LdptreeError, ProtocolMismatch
from ldptree.protocol.ledger import Charge, Names, RowRange
from simulation import disk
from simulation.bucket import Bucket
from simulation.disk import Disk
from simulation.schedule import Plan, Schedule, Violation
from storage.digests import Hasher
from storage.formats import stamped
from storage.holders.secret import secret_of
from storage.ledger.accounts import Account
from storage.ledger.campaigns import AskedSince, Campaign
from storage.ledger.released_checks import release_checks
from storage.ledger.seal import check_state, seal_state
from storage.objects.bucket import BucketObjects
from storage.store import Store
from tasks.perturb import mark_of, write_once
from tasks.step import NotInKey, Step, StepTask

CAP = 1.0
"""Enough for one of the two releases."""
SHARDS = ("0.parquet", "1.parquet")
ROWS = 4
CHECKS = ("a" * 32, "b" * 32)


OF_A_FAULT = ("does not answer as it should", "no space left on the disk", *map(os.strerror, disk.ERRORS))
"""What is said where the machine or the network failed."""


@dataclass(frozen=True)
class Run:
    """A run: which question it asks, in which campaign, and the seed of a simulation's noise (None: a release)."""

    question: str
    campaign: str | None = None
    seed: int | None = None


ONE, TWO, SEEDED = Run("one", campaign="rides"), Run("two"), Run("seeded", seed=5)
PROGRAMS = {"first": (ONE,), "second": (ONE,), "third": (TWO,), "fourth": (TWO, ONE), "fifth": (SEEDED,)}
"""The runs of each process, in order."""
MACHINES = {"first": "here", "third": "here"}


@dataclass
class House:
    """A work folder, who uses it, and what was seen in it."""

    plan: Plan
    schedule: Schedule
    root: Path
    charge_first: bool = True
    seen: dict[object, object] = field(default_factory=dict)
    refused: set[Run] = field(default_factory=set)
    done: set[Run] = field(default_factory=set)
    draws: int = 0

    def __post_init__(self) -> None:
        is_bucket = self.plan.where == "bucket"
        self.world = Bucket(self.schedule) if is_bucket else Disk(self.root, self.schedule)

    def open(self, machine: str) -> Store:
        """The store, as a machine sees it."""
        if isinstance(self.world, Disk):
            return Store(self.root)
        store = Store.__new__(Store)
        store.objects = BucketObjects(self.world, "memory://bucket", self.root / machine)
        store.root = store.objects.root
        store.root.mkdir(exist_ok=True)
        return store

    def in_use(self, store: Store):
        """Hold the work folder as a run does."""
        return in_use(store.root) if isinstance(self.world, Disk) else contextlib.nullcontext()

    def note(self, what: object, value: object) -> None:
        """Raises Violation where the same was seen to be something else."""
        if self.seen.setdefault(what, value) != value:
            raise Violation(f"{what} was {self.seen[what]!r} and is {value!r}")

    def actor(self, name: str) -> Callable[[], None]:
        """What an actor does, until it is done."""
        if name == "gc":
            return self._collect
        machine = MACHINES.get(name, "there")
        if name == "reader":
            return lambda: [self._try(lambda: self.look(machine)) for _ in range(3)] and None
        return lambda: [self._until_done(run, machine) for run in PROGRAMS[name]] and None

    def _until_done(self, run: Run, machine: str) -> None:
        while run not in self.refused:
            if self._try(lambda: self.walk(run, machine)):
                self.done.add(run)
                return

    def _try(self, act: Callable[[], object]) -> bool:
        """Whether it was done; where a machine or network fault stopped it, not. Raises what must not happen."""
        try:
            act()
        except (ArtifactCorrupt, ProtocolMismatch) as fault:
            raise Violation(f"nothing was damaged, and it says: {fault}") from fault
        except (LdptreeError, OSError) as fault:
            if not self.plan.faults or not any(words in str(fault) for words in OF_A_FAULT):
                raise Violation(f"no such fault, and it says: {fault}") from fault
            return False
        return True

    def _collect(self) -> None:
        swept = 0
        for _ in range(40):
            before = self._released()
            try:
                collect_garbage(self.root, keep=swept % 2, dry_run=False)
                swept += 1
            except (ConfigError, OSError):  # a run is going on
                self.schedule.give_way()
            if not before <= self._released():
                raise Violation("reports of a release are gone after `gc`")
            if swept == 3:
                return

    def _released(self) -> set[Path]:
        reports = self.root.glob("curator/reports/*/*/*.parquet")
        return {path for path in reports if b"simulation" not in path.read_bytes()}

    def walk(self, run: Run, machine: str) -> None:
        """One run, to its end; one that the budget refuses is noted."""
        store = self.open(machine)
        with self.in_use(store):
            check_state(store)
            self._note_reports(store)
            held = SPLIT.fn(store, house=NotInKey(self))
            question = ASK.fn(store, question=run.question, rows=held["train"])["question"]
            campaign = Campaign(store, run.campaign) if run.campaign else None
            if campaign is not None:
                self._publish(store, campaign, question, held)
            account = Account(store, run.seed)
            copies = campaign.copy_index() if campaign else account.copy_index()
            shards = held["train"].one_by_one()
            numbers = copies.numbers([(one.digest, [owner(one)]) for one in shards], keep=True)
            self.note(("which copy", run.campaign, run.seed), numbers)
            if sorted(numbers) != [0, 1]:
                raise Violation(f"two shards that hold the same are numbers {numbers}")
            release_checks(store.objects, CHECKS, len(CHECKS))
            name = f"{question.digest} round 1 reports {run.campaign}"
            if self.charge_first and not self._pay(store, account, run, name):
                return
            reports = [
                PERTURB.fn(
                    store,
                    question=question,
                    shard=shard,
                    owner=owner(shard),
                    run=NotInKey((self, run, name)),
                    seed=run.seed,
                    campaign=run.campaign,
                )["reports"]
                for shard in shards
            ]
            if not self.charge_first and not self._pay(store, account, run, name):
                return
            if run.seed is None:
                account.keep_answer(name, [file for one in reports for file in one.names])
            seal_state(store)
            totals = TOTAL.fn(store, reports=reports)
            self.note(("totals", run), totals["totals"].digest)
            records = [f"curator/sim-total/{totals.key}.json"]
            folder = f"runs/{run.question}-20260101-000000-{self.schedule.random.randrange(10**6):06d}"
            store.objects.put(f"{folder}/records.json", stamped("records", {"records": records}))

    def _publish(self, store: Store, campaign: Campaign, question, held) -> None:
        terms = {"epsilon": 1.0}
        frozen = campaign.publish(question, terms, "reports")
        self.note("published", frozen.protocol.digest)
        files = {"rows.csv": "f" * 64}
        campaign.check_files(files)
        while True:
            try:
                campaign.ask(files, store.files(held["answers"]), known=campaign.asked())
                break
            except AskedSince:  # another run did: here it chose the same people
                pass
        if campaign.answered(files.values()).tolist() != list(range(ROWS)):
            raise Violation("who was asked was not kept")

    def _pay(self, store: Store, account: Account, run: Run, name: str) -> bool:
        who = (
            RowRange(source="f" * 64, start=0, stop=ROWS),
            Names(np.arange(ROWS, dtype=np.uint64), are_rows=True),
        )
        try:
            account.charge(
                [Charge(question=name, epsilon=1.0, who=one, about=run.question) for one in who], CAP
            )
        except BudgetError:
            self.refused.add(run)
            return False
        seal_state(store)
        return True

    def draw(self, store: Store, run: Run, name: str, owner: str):
        """A shard's reports, of which no two draws are equal but those of a seed."""
        if run.seed is None:
            ledger = Account(store, None).read()
            kept = [entry.name for entry in store.objects.entries("holders/ledger/release")]
            charges = [one for one in kept if one.endswith(".charge")]
            if all(entry.question != name for entry in ledger.entries) or not all(
                map(self.world.lasts, charges)
            ):
                raise Violation(f"holders answer {run.question!r}, and no charge for it is sure to last")
        self.draws += 1
        return pa.table({"value": pa.array([self.draws if run.seed is None else run.seed] * 2, pa.uint32())})

    def look(self, machine: str) -> None:
        """Look at everything that is kept, as a reader does. Raises Violation."""
        store = self.open(machine)
        with self.in_use(store):
            check_state(store)
            self.note("secret", secret_of(store.objects))
            for name in store.all_record_names():
                record = store.whole_record(name)
                for part in record.parts.values():
                    if record.step == "perturb" and store.condition(part) != "present":
                        raise Violation(f"{name} is there, and its reports are not")
            for name in store.objects.folders("curator/campaigns"):
                Campaign(store, name.rpartition("/")[2]).reports()
            for name in (None, SEEDED.seed):
                spent = Account(store, name).read().largest_spend().epsilon
                if spent > CAP:
                    raise Violation(f"a holder spent {spent}, and the cap is {CAP}")
            self._note_reports(store)

    def _note_reports(self, store: Store) -> None:
        """What stands never changes, and is whole."""
        for entry in store.objects.entries("curator/reports", deep=True):
            if entry.name.endswith(".parquet"):
                self.note(entry.name, store.objects.get(entry.name))
                pq.read_schema(store.objects.path(entry.name))

    def check_end(self) -> None:
        """When all is done: nothing is lost, the same runs find what they found, and nobody is asked again. Raises Violation."""
        runs = {run for name in self.plan.actors for run in PROGRAMS.get(name, ())}
        if self.done | self.refused != runs or len(self.refused) != ({ONE, TWO} <= runs):
            raise Violation(f"done: {self.done}; refused: {self.refused}")
        drawn = self.draws
        if "gc" in self.plan.actors:
            collect_garbage(self.root, keep=1, dry_run=False)
        for run in sorted(self.done - {SEEDED}, key=str):
            self._settle(lambda of=run: self.walk(of, "another"))
        self._settle(lambda: self.look("another"))
        if self.draws != drawn:
            raise Violation("runs that were done drew again")

    def _settle(self, act: Callable[[], None]) -> None:
        if not self._try(act):
            raise Violation("no fault is left, and it does not end")


def owner(shard) -> str:
    """Whose a shard is."""
    return f"{int(shard.files[0].name[0]):032x}"


def _split(draft, *, house):
    for name in SHARDS:
        pq.write_table(pa.table({"row": [1, 2]}), draft.folder("train") / name)
    np.save(draft.folder("answers") / f"{'f' * 64}.npy", np.arange(ROWS, dtype=np.uint64))


def _ask(draft, *, question, rows):
    (draft.folder("question") / "protocol.json").write_text(json.dumps({"question": question}))


def _perturb(draft, *, question, shard, owner, run, seed, campaign):
    house, of, name = run.value
    received = write_once(
        draft,
        question=question,
        asked=question.digest,
        round_number=1,
        drawn=None if seed is None else [seed],
        identity=owner,
        metadata={"holders": "2", "protocol": question.digest, **mark_of(seed)},
        table=lambda: house.draw(draft.store, of, name, owner),
    )
    if campaign:
        Campaign(draft.store, campaign).add_report(received)
    draft.refer("reports", received)
    return {"seeded": seed is not None}


def _total(draft, *, reports):
    digests = sorted(Hasher().of_file(path) for one in reports for path in draft.store.files(one))
    (draft.folder("totals") / "totals.json").write_text(json.dumps(digests))


SPLIT = StepTask(Step("sim-split", "1", "holders"), _split, 0)
ASK = StepTask(Step("partition", "1", "curator"), _ask, 0)
PERTURB = StepTask(Step("perturb", "1", "holders"), _perturb, 0)
TOTAL = StepTask(Step("sim-total", "1", "curator"), _total, 0)
