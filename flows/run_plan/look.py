"""Look for the steps of a run without running or writing anything. Tells which stand, which must be computed and why,
which stand if those above leave the same, and where the run would be refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, cast

from flows.budget import Cost, Spent, account_of, spent_now
from flows.campaign import Terms
from flows.command.terminal import shards_in_words
from flows.executors import Call, Executor, Inputs, NotComputed, Pending, Shards
from flows.pipeline import Pipeline
from ldptree.errors import BudgetError, DataError, LdptreeError
from schemas.config import RunConfig
from schemas.manifest import Record
from storage.holders.secret import has_secret
from storage.ledger.lost_parts import check_state
from storage.store import Store
from tasks.data import source
from tasks.data.validate import check_passed, failures, foresee_release
from tasks.perturb import check_not_lost
from tasks.step import Step, StepTask

NO_ROOM = "; the ledger would refuse a question that was not asked before"


@dataclass
class PlanExecutor(Executor):
    """A search for steps, with what is known of each in the order of the run. Writes nothing.

    numbers  whether a round's lines say which it is.
    above    the first step that is to be computed, or refused: all below depend on it.
    refused  why the run would stop there.
    spent    what was spent before; where the ledger was asked, and whom the run reaches depends on a step to be computed.
    """

    store: Store | None
    numbers: bool = False
    lines: list[dict[str, str]] = field(default_factory=list)
    above: str = ""
    refused: LdptreeError | None = None
    no_room: tuple[BudgetError, bool] | None = None
    spent: Spent | None = None
    only_looks: ClassVar[bool] = True

    def step(self, task: StepTask, inputs: Inputs, round_number: int = 0) -> Any:
        """The record of a step if it stands, else a stand-in that makes what needs it depend on it."""
        name = task.step.name
        if self.store is None:
            return self._missing(name, "nothing is in the work folder yet", round_number)
        try:
            arguments = inputs()
        except NotComputed:
            return self._missing(name, "", round_number)
        if name == "validate":
            foresee_release(self.store, **arguments)
        record = self.store.find(task.step.place(self.store, arguments))
        if record is None:
            return self._missing(name, self._why(task.step, arguments), round_number)
        self._say(name, "cached", self._end_of_rounds(record), round_number)
        if name == "validate":
            self._look_at_checks(self.store, record)
        return record

    def shards(self, task: StepTask, inputs: Shards, round_number: int = 0) -> Any:
        """The records of a step of all shards if all stand. Where the ledger would refuse it the run would stop here."""
        if task.step.name != "perturb":
            return self._shards(task, inputs, round_number)
        try:
            records = self._shards(task, inputs, round_number)
        finally:
            fault, self.no_room = self.no_room, None
        if fault is not None:
            self._refuse_or_warn(self.lines[-1], *fault)
        return records

    def _shards(self, task: StepTask, inputs: Shards, round_number: int) -> Any:
        name = task.step.name
        if self.store is None:
            return self._missing(name, "", round_number)
        try:
            arguments, shards = inputs()
        except NotComputed:
            return self._missing(name, "", round_number)
        step, store = task.step, self.store
        places = [step.place(store, arguments | shard) for shard in shards]
        if name == "perturb" and arguments["noise_seed"] is None:
            for place in places:
                check_not_lost(store, place)
        records = [store.find(place) for place in places]
        missing = [number for number, record in enumerate(records) if record is None]
        if missing:
            have = "has" if len(missing) == 1 else "have"
            why = f"{len(missing)} of {shards_in_words(len(shards))} {have} not reported"
            if name != "perturb":
                why = self._why(step, arguments | shards[missing[0]])
            return self._missing(name, why, round_number)
        self._say(name, "cached", shards_in_words(len(shards)), round_number)
        return records

    def charge(self, cost: Callable[[], Cost], unknown: Callable[[], Cost]) -> Any:
        """Return what would be spent. Where the ledger would refuse it, the shards' line says so."""
        spent_before, self.spent = self.spent, None
        if self.store is None:
            return Pending()
        try:
            asked, is_known = cost(), True
        except NotComputed:
            is_known = False
        try:
            asked = asked if is_known else unknown()
            spent = asked.foresee()
        except NotComputed:
            self.spent = spent_before
            return Pending()
        except BudgetError as fault:
            self.no_room = (fault, asked.may_already_be_charged())
            return Pending()
        return spent if is_known else Pending()

    def _look_at_checks(self, store: Store, checked: Record) -> None:
        """Refuse the line where an expectation fails, as the run would stop there."""
        try:
            check_passed(failures(store, checked["checks"]), faults=store.zone("holders") / "faults")
        except DataError as fault:
            self._refuse(self.lines[-1], fault)

    def _refuse(self, line: dict[str, str], fault: LdptreeError) -> None:
        """Say that the run would stop at this line; the first of several is the one it would stop at."""
        line |= {"state": "refused", "why": str(fault)}
        self.above = self.above or line["name"]
        self.refused = self.refused or fault

    def _refuse_or_warn(self, line: dict[str, str], fault: BudgetError, may_already_be_charged: bool) -> None:
        """Refuse an unknown question for which the ledger has no room, or warn if it may be charged already."""
        if may_already_be_charged:
            line["why"] += NO_ROOM
        else:
            self._refuse(line, fault)

    def _end_of_rounds(self, record: Record) -> str:
        return "" if record.facts.get("is_left", True) else "nothing is left to ask"

    def _missing(self, name: str, why: str, round_number: int) -> Pending:
        """Record that a step must be computed or may stand. `why` is empty if its inputs are not known."""
        if self.above and (self.store is None or not why):
            may_be_cached = self.store is not None and any(r.step == name for _, r in self.store.records())
            state = "depends" if may_be_cached else "compute"
            why = (
                f"cached if {self.above} gives what it gave before"
                if may_be_cached
                else f"after {self.above}"
            )
            self._say(name, state, why, round_number)
        else:
            self._say(name, "compute", why, round_number)
            self.above = self.above or name
        return Pending()

    def _say(self, name: str, state: str, why: str, round_number: int) -> None:
        if self.numbers and round_number:
            why = ": ".join(part for part in (f"round {round_number}", why) if part)
        self.lines.append({"name": name, "state": state, "why": why})

    def _why(self, step: Step, arguments: Call) -> str:
        assert self.store is not None
        place = step.place(self.store, arguments)
        standing = self.store.read_record(self.store.record_name(place))
        if standing is not None:
            worst = {self.store.condition(part) for part in standing.parts.values()} - {"present"}
            return f"its artifact is {' and '.join(sorted(worst))}"
        if self.store.has_record(place):
            return "its record is damaged"
        earlier = [r for p, r in self.store.records() if r.step == step.name]
        if not earlier:
            return "never computed here"
        if all(r.version != step.version for r in earlier):
            return "the step itself changed"
        differences = []
        for record in earlier:
            made = next(iter(record.parts.values())).made_by
            now, then = place.parameters | place.inputs, made.parameters | made.inputs
            differences.append(sorted(_changed("", now, then)))
        fewest = min(differences, key=len)
        return (
            f"changed: {', '.join(fewest[:4])}{' and more' if len(fewest) > 4 else ''}"
            if fewest
            else "never computed here"
        )


def plan_of(config: RunConfig, work: Path) -> list[dict[str, str]]:
    """Name, state and reason of every step. Raises LdptreeError.

    State is "cached", "compute", "refused", or "depends" where it is cached unless a step above gives something new.
    """
    return look_at(config, work)[0].lines


def look_at(config: RunConfig, work: Path) -> tuple[PlanExecutor, Pipeline]:
    """Walk a run as far as its steps stand, and return what is known of them. Raises LdptreeError."""
    store = _used(work)
    look = PlanExecutor(store, config.model.in_rounds or config.model.settings.may_ask_again)
    if store is None:
        nothing = Terms(config, config.dataset, None, None)
        run = Pipeline(store=cast("Store", None), config=config, executor=look, given=nothing)
    else:
        run = Pipeline(store=store, config=config, executor=look)
        _ = run.named
        ledger = account_of(store, config).read()  # a run is refused where it is not what was written
        ledger.hold_to(config.privacy.lifetime_epsilon)  # as the run will
        look.spent = spent_now(ledger)
    if config.dataset.path:
        source.locate(config.dataset.path)
    source.check_apart(config.dataset)
    run.walk()
    return look, run


def _used(work: Path) -> Store | None:
    """The store of a work folder; None of one that no run has used, which stays as it is. Raises LdptreeError of one that none
    can use.
    """
    store = Store(work, only_reads=True)
    store.check_rights()
    check_state(store)
    return store if has_secret(store.objects) else None


def _changed(prefix: str, now: Any, then: Any) -> set[str]:
    if isinstance(now, dict) and isinstance(then, dict):
        return {
            name
            for key in now.keys() | then.keys()
            for name in _changed(f"{prefix}.{key}" if prefix else key, now.get(key), then.get(key))
        }
    return set() if now == then else {prefix}
