"""A work folder and who uses it: runs, in the pipeline's order over the real campaigns, budget, steps and store; a reader; `gc`.

What a run is made of is in `runs`, what is compared and counted in `witness`, what must not get lost in `losses`.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq

from flows.campaign import Terms
from flows.shards import shards_asked
from flows.work_folder.provenance import in_use
from ldptree.errors import ArtifactCorrupt, BudgetError, LdptreeError, ProtocolMismatch
from schemas.manifest import Record
from simulation.bucket import Bucket
from simulation.clients import FOLDER, PROCESSES, Device
from simulation.disk import Disk
from simulation.ledger import HoldersDatabase
from simulation.losses import check_losses
from simulation.runs import ASK, PAGE, PERTURB, PROGRAMS, SPLIT, TOTAL, TRIAL, Run
from simulation.schedule import Plan, Schedule, Violation
from simulation.sweeper import Sweeper
from simulation.witness import MOST_TOLD, Witness
from storage.digests import Hasher
from storage.formats import stamped
from storage.holders.secret import secret_of
from storage.ledger.accounts import Account
from storage.ledger.campaigns import AskedSince, campaigns_in
from storage.ledger.database import Database
from storage.ledger.lost_parts import check_state
from storage.ledger.released_checks import release_checks
from storage.ledger.schema import CHARGES
from storage.objects.bucket import BucketObjects
from storage.store import Store
from tasks.step import NotInKey

MACHINES = {"one": "here", "two": "here", "later": "here"}
GONE = ("no such object", os.strerror(errno.ENOENT))
"""What a run says that was about to use what `gc` has taken; given again, it makes it anew."""
INGESTED = SimpleNamespace(facts={"types": {}, "holder_type": "integer"})


@dataclass
class House:
    """A work folder, who uses it, and who watches."""

    plan: Plan
    schedule: Schedule
    root: Path
    charge_first: bool = True
    witness: Witness = field(default_factory=Witness)
    perturbed: dict[str, Callable[[Store], object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        is_bucket = self.plan.where == "bucket"
        self.world = Bucket(self.schedule) if is_bucket else Disk(self.root, self.schedule)
        self.database = HoldersDatabase(self.root, self.world, self.schedule, self.witness)
        self.sweeper = Sweeper(self)
        self.device = Device(self.root / FOLDER, self.witness)

    def patched(self, patch):
        """What runs call is this world's, and what they read of the configuration what runs here have."""
        patch.setattr("flows.campaign._terms", lambda *_: {"types": {}})
        self.sweeper.patched(patch)
        self.database.patched(patch)
        return self.world.patched(patch)

    def open(self, machine: str) -> Store:
        """The store, as a machine sees it."""
        if isinstance(self.world, Disk):
            return Store(self.root)
        store = Store.__new__(Store)
        store.objects = BucketObjects(self.world, "memory://bucket", self.root / machine)
        store.root = store.objects.root
        store.root.mkdir(exist_ok=True)
        return store

    @property
    def is_swept_beside_runs(self) -> bool:
        """Whether `gc` may take from a run what that is about to use."""
        return isinstance(self.world, Bucket) and "gc" in self.plan.actors

    def in_use(self, store: Store):
        """Hold the work folder as a run does."""
        return in_use(store.root) if isinstance(self.world, Disk) else contextlib.nullcontext()

    def actor(self, name: str) -> Callable[[], None]:
        """What an actor does, until it is done."""
        if name == "gc":
            return self.sweeper.act
        if name in PROCESSES:
            return lambda: self._until_done(self.device.answer)
        machine = MACHINES.get(name, "there")
        if name == "reader":
            return lambda: [self._try(lambda: self.look(machine)) for _ in range(3)] and None
        walks = [partial(self.walk, run, machine) for run in PROGRAMS[name]]
        return lambda: [self._until_done(walk) for walk in walks] and None

    def _until_done(self, act: Callable[[], object]) -> None:
        while not self._try(act):
            pass

    def _try(self, act: Callable[[], object]) -> bool:
        """Whether it was done; where a machine or network fault stopped it, not. Raises what must not happen."""
        failures = self.world.failures
        try:
            act()
        except (ArtifactCorrupt, ProtocolMismatch) as fault:
            raise Violation(f"nothing was damaged, and it says: {fault}") from fault
        except (LdptreeError, OSError) as fault:
            has_failed = self.world.failures != failures
            is_told = has_failed and any(words in str(fault) for words in self.world.SAID)
            if not (is_told or (self.is_swept_beside_runs and any(words in str(fault) for words in GONE))):
                raise Violation(f"no such fault, and it says: {fault}") from fault
            return False
        return True

    # A run

    def walk(self, run: Run, machine: str) -> None:
        """One run, to its end; one that the budget refuses is noted."""
        store = self.open(machine)
        with self.in_use(store):
            while True:
                try:
                    self._ask_and_learn(store, run)
                except AskedSince:  # who is asked is chosen anew
                    continue
                except BudgetError:
                    self.witness.refused.add(run)
                else:
                    self.witness.done.add(run)
                return

    def _ask_and_learn(self, store: Store, run: Run) -> None:
        terms = Terms.of(store, run.config)
        self._note_reports(store)
        raw = terms.in_order(run.raw(store))
        held = SPLIT.fn(store, raw=raw, asked_before=terms.asked_before(raw), campaign=run.campaign)
        seen = [file.digest for file in run.files]
        asks = {"question": run.question + run.differs, "name": run.file, "seen": seen}
        published = ASK.fn(store, **asks, rows=held["train"])
        question = terms.protocol or published["question"]
        joining = terms.joining(raw, INGESTED, held, published)
        self._tell(store, run)
        cost = run.cost(store, raw, held, question, joining)
        if self.charge_first:
            cost.charge()
        if terms.campaign is not None:
            self.witness.note_campaign(terms.campaign)
        if run.rounds:
            cost.check_question(1, question.digest)
        shards = shards_asked(store, run.config, held)
        reports = [self._perturb(store, run, cost, held, question, shard) for shard, _ in shards]
        if not self.charge_first:
            cost.charge()
        cost.keep_answers(1, [shard for shard, _ in shards], reports)
        self.witness.receive(run, [one["reports"].names[0] for one in reports])
        received = terms.received(reports)
        totals = TOTAL.fn(store, reports=received)
        self.witness.note(("totals", run, *(one.digest for one in received)), totals["totals"].digest)
        page = PAGE.fn(store, totals=totals["totals"])
        if "gc" not in self.plan.actors:
            self.witness.note(("page", totals["totals"].digest), page["page"].digest)
        self._check_lasting(store, [held, published, *reports, totals, page])
        folder = f"runs/{run.question}-20260101-000000-{self.schedule.random.randrange(10**6):06d}"
        records = [f"curator/{made.step}/{made.key}.json" for made in (totals, page)]
        store.objects.put(f"{folder}/records.json", stamped("records", {"records": records}))
        if isinstance(self.world, Disk):
            os.utime(self.root / folder, (self.world.clock, self.world.clock))

    def _tell(self, store: Store, run: Run) -> None:
        answers = [letter * 32 for letter in run.tells]
        with contextlib.suppress(BudgetError):
            release_checks(store.objects, answers, MOST_TOLD)
            self.witness.tell(answers)

    def _perturb(self, store: Store, run: Run, cost, held: Record, question, shard) -> Record:
        """A shard's reports, which can be asked for again."""
        ((of, people),) = [one for one in run.questions(cost, held) if shard.files[0].name in one[0].shards]
        call = partial(
            PERTURB.fn,
            question=question,
            shard=shard,
            draw=NotInKey(lambda: self._draw(store, run, of.name, people)),
            seed=run.seed,
            campaign=run.campaign,
        )
        record = call(store)
        self.witness.note(record["reports"].names[0], record["reports"].digest)
        if run.seed is None:
            self.perturbed[record["reports"].names[0]] = call
        return record

    def _draw(self, store: Store, run: Run, question: str, people: Sequence[int]):
        """A shard's reports, of which no two draws are equal but those of a seed."""
        if run.seed is not None:
            return pa.table({"value": pa.array([run.seed] * len(people), pa.uint32())})
        with self.schedule.standing_still(), Database(store.objects).reading() as kept:
            if not kept.rows(CHARGES, account="release", question=question):
                raise Violation(f"holders answer {run.question!r}, and no charge for it is committed")
        self.witness.drawn.append((run.campaign or question, people))
        return pa.table({"value": pa.array([len(self.witness.drawn) - 1], pa.uint32())})

    def _check_lasting(self, store: Store, made: Sequence[Record]) -> None:
        """What a run has made is found again, and lasts longer than that it was made."""
        for record in made if not self.is_swept_beside_runs else ():
            name = f"{record.home}/{record.step}/{record.key}.json"
            if store.read_record(name) is None:
                raise Violation(f"{name} is not there, and was just made")
            lost = [one for part in record.parts.values() for one in part.names if not self.world.lasts(one)]
            if lost:
                raise Violation(f"{name} is there, and of what it stands for may be lost: {lost}")

    # A reader

    def look(self, machine: str) -> None:
        """Look at everything that is kept, as a reader does. Raises Violation."""
        store = self.open(machine)
        with self.in_use(store):
            check_state(store)
            self.witness.note("secret", secret_of(store.objects))
            for name in store.all_record_names():
                record = store.whole_record(name)
                for part in record.parts.values():
                    is_kept = record.step == "perturb" or "gc" not in self.plan.actors
                    if is_kept and store.condition(part) != "present":
                        raise Violation(f"{name} is there, and not what it stands for")
            for campaign in campaigns_in(store):
                self.witness.note_campaign(campaign)
            self._note_reports(store)

    def _note_reports(self, store: Store) -> None:
        """What stands never changes, and is whole; what is told of the database never goes back."""
        self.witness.look_at_last(Database(store.objects).outside)
        for entry in store.objects.entries("curator/reports", deep=True):
            if entry.name.endswith(".parquet"):
                self.witness.note(entry.name, Hasher().of_bytes(store.objects.get(entry.name)))
                pq.read_schema(store.objects.path(entry.name))

    # The end

    def check_end(self) -> None:
        """When all is done: nothing is lost, the same runs find what they found, nobody is asked again, and a loss is noticed."""
        store = self.open("another")
        entries = {seed: Account(store, seed).read().entries for seed in (None, TRIAL.seed)}
        runs = {run for name in self.plan.actors for run in PROGRAMS.get(name, ())}
        self.witness.check_outcome(runs, entries)
        drawn, refused = len(self.witness.drawn), set(self.witness.refused)
        for campaign in campaigns_in(store):
            frozen = campaign.frozen()
            if frozen is not None and store.condition(frozen.protocol) != "present":
                raise Violation(f"{campaign.name} published what is not there any more")
        if "gc" in self.plan.actors:
            self.sweeper.sweep(keep=1)
            self.sweeper.sweep(keep=0)
        for run in sorted(self.witness.done, key=str):
            self._settle(lambda of=run: self.walk(of, "another"))
        self._settle(lambda: self.look("another"))
        if len(self.witness.drawn) != drawn or self.witness.refused != refused:
            raise Violation("runs that were done drew again, or were refused")
        tables = [pq.read_table(store.objects.path(name)) for name in sorted(self.perturbed)]
        self.witness.check_drawn(table["value"][0].as_py() for table in tables)
        self.device.check_received()
        check_losses(store, self.world, self.database, self.perturbed, self.schedule.random)

    def _settle(self, act: Callable[[], None]) -> None:
        if not self._try(act):
            raise Violation("no fault is left, and it does not end")
