"""`--plan`: which steps a run would find, which it would compute and why, which depend on those, and the epsilon it would spend,
or where the ledger would refuse it.

Runs nothing and writes nothing.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from flows import calls
from flows.budget import account_of, foresee, may_stand
from flows.campaign import Terms
from flows.streams import print_json
from flows.terminal import shards_in_words
from ldptree.errors import BudgetError, DataError, LdptreeError
from schemas.config import RunConfig
from schemas.manifest import ZONES, Manifest, Record
from storage.store import Store, check_work_folder
from tasks import source
from tasks.checkpoint import REGISTERED, Step
from tasks.once import check_not_lost
from tasks.timeline import STEPS
from tasks.validate import check_passed, failures, foresee_release

for _name in STEPS:
    importlib.import_module(f"tasks.{_name}")  # registers the step


NO_ROOM = "; the ledger would refuse a question that was not asked before"


class Later(Exception):  # noqa: N818 - not an error: what a step above has yet to make
    """What a step needs is not there yet."""


@dataclass
class Plan:
    """What is known of each step, in the picture's order."""

    store: Store | None
    lines: list[dict[str, str]] = field(default_factory=list)
    above: str = ""
    refused: LdptreeError | None = None

    def look(self, name: str, call: Callable[[], calls.Call]) -> Any:
        """The record of a step if it stands, else a stand-in that makes what needs it depend on it."""
        if self.store is None and not self.above:
            self._missing(name, "nothing is in the work folder yet")
            return Missing()
        try:
            arguments = call()
        except Later:
            self._say(name, "depends", f"on {self.above}")
            return Missing()
        assert self.store is not None
        step = REGISTERED[name].step
        place = step.place(self.store, arguments)
        record = self.store.find(place)
        if record is None:
            self._missing(name, self._why(step, arguments))
            return Missing()
        self._say(name, "cached", "")
        return record

    def look_at_shards(
        self, call: Callable[[], tuple[calls.Call, Sequence[calls.Call]]], name: str = "perturb"
    ) -> Any:
        """The records of a mapped step if all stand. `call`: what all shards have in common, and what is each one's own."""
        try:
            arguments, shards = call()
        except Later:
            self._say(name, "depends", f"on {self.above}")
            return Missing()
        assert self.store is not None
        step = REGISTERED[name].step
        places = [step.place(self.store, arguments | shard) for shard in shards]
        if arguments["noise_seed"] is None:
            for place in places:
                check_not_lost(self.store, place)
        found = [self.store.find(place) for place in places]
        missing = sum(record is None for record in found)
        if missing:
            have = "has" if missing == 1 else "have"
            self._missing(name, f"{missing} of {shards_in_words(len(shards))} {have} not reported")
            return Missing()
        self._say(name, "cached", shards_in_words(len(shards)))
        return found

    def look_at_ledger(self, call: Callable[[], calls.Call], unknown: Callable[[], calls.Call]) -> Any:
        """What would be spent; where the ledger would refuse it, perturb is where the run would stop. `unknown`: the call
        while the protocol is not, which is a new question unless it was asked before.
        """
        asked = next(line for line in reversed(self.lines) if line["name"] == "perturb")
        try:
            arguments = call()
        except Later:
            with contextlib.suppress(Later):
                self._warn(asked, unknown())
            return Missing()
        assert self.store is not None
        try:
            return foresee(self.store, **arguments)
        except BudgetError as fault:
            self.refuse(asked, fault)
            return Missing()

    def look_at_checks(self, checked: Any) -> None:
        """Where an expectation fails the run would stop."""
        if self.store is None or not isinstance(checked, Record):
            return
        try:
            check_passed(failures(self.store, checked["checks"]))
        except DataError as fault:
            self.refuse(self.lines[-1], fault)

    def refuse(self, line: dict[str, str], fault: LdptreeError) -> None:
        """Say that the run would stop at this line; the first of several is the one it would stop at."""
        line |= {"state": "refused", "why": str(fault)}
        self.above = self.above or line["name"]
        self.refused = self.refused or fault

    def refuse_or_warn(self, line: dict[str, str], fault: BudgetError, *, may_stand: bool) -> None:
        """The ledger has no room for a question that is not known yet: refused, unless it may have been asked before."""
        if may_stand:
            line["why"] += NO_ROOM
        else:
            self.refuse(line, fault)

    def _warn(self, asked: dict[str, str], arguments: calls.Call) -> None:
        assert self.store is not None
        try:
            foresee(self.store, **arguments)
        except BudgetError as fault:
            is_known = arguments["protocol"] is not None
            stands = not is_known and may_stand(self.store, arguments["config"], arguments["held"])
            self.refuse_or_warn(asked, fault, may_stand=stands)

    def _missing(self, name: str, why: str) -> None:
        self._say(name, "compute", why)
        self.above = self.above or name

    def _say(self, name: str, state: str, why: str) -> None:
        self.lines.append({"name": name, "state": state, "why": why})

    def _why(self, step: Step, arguments: calls.Call) -> str:
        assert self.store is not None
        place = step.place(self.store, arguments)
        standing = self.store.read_record(self.store.record_path(place))
        if standing is not None:
            worst = {self.store.condition(part) for part in standing.parts.values()} - {"present"}
            return f"its artifact is {' and '.join(sorted(worst))}"
        if self.store.record_path(place).exists():
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


class Missing:
    """A record that is not there: whatever is asked of it is known later."""

    def __getitem__(self, part: str) -> Any:
        raise Later

    def __getattr__(self, name: str) -> Any:
        raise Later


def plan_of(config: RunConfig, work: Path) -> list[dict[str, str]]:
    """Name, state ("cached", "compute", "depends", "refused") and reason of every step. Raises LdptreeError."""
    return _planned(config, work).lines


def _planned(config: RunConfig, work: Path) -> Plan:
    # A folder that no run has used stays as it is; one that none can use is told of.
    check_work_folder(work)
    store = Store(work) if any((work / zone).exists() for zone in ZONES) else None
    if store is not None:
        store.check_rights()
    terms = Terms.of(store, config) if store else Terms(config, config.dataset, None, None)
    if store:
        account_of(store, config).read()  # a run is refused where the ledger is not what was written
    plan = Plan(store)
    data = terms.dataset
    raw: Any = Missing()
    if not data.path:
        made = plan.look("source", lambda: calls.source(terms))
        raw = made["raw"] if isinstance(made, Record) else made
    else:
        found = source.locate(data.path)
        raw = terms.in_order(source.files(store, data.path)) if store and found else raw
    source.check_apart(data)
    second = source.public_files(store, data) if store else None
    if isinstance(raw, Manifest):
        terms = calls.settled(terms, raw, second)
    ingested = plan.look("ingest", lambda: calls.ingest(terms, known(raw), second))
    if config.model.in_rounds:
        from flows.rounds_plan import rest_in_rounds

        plan.lines = rest_in_rounds(plan, terms, raw, ingested)
        return plan
    if isinstance(ingested, Record):
        terms = terms.with_label_of(ingested)
    checked = look_at_validation(plan, terms, ingested)
    held = plan.look("split", lambda: calls.split(terms, known(raw), ingested))
    scaled = plan.look("scale", lambda: calls.scale(terms, ingested))
    published = plan.look("partition", lambda: calls.partition(terms, held, scaled))

    def protocol() -> Manifest:
        return terms.protocol or known(published["protocol"])

    def ask(published_as: Callable[[], Manifest], number: int) -> tuple[Any, Any]:
        reports = plan.look_at_shards(
            lambda: (
                calls.perturb(terms, published_as(), held, published, number),
                calls.shards(needed(store), terms, known(held)),
            )
        )
        spent = plan.look_at_ledger(
            lambda: calls.charge(terms, known(raw), published_as(), known(held), known(published)),
            lambda: {
                "config": terms.config,
                "raw": known(raw),
                "held": known(held),
                "protocol": terms.protocol,
                "form": "reports",
            },
        )
        return spent, plan.look(
            "aggregate", lambda: calls.aggregate(terms, published_as(), known(reports), number)
        )

    spent, totals = ask(protocol, 1)
    asked = [protocol]
    if config.model.may_ask_again:
        first_totals = totals
        decided = plan.look(
            "terminate", lambda: calls.terminate(terms, protocol(), known(first_totals), scaled)
        )
        if not isinstance(decided, Record):
            totals = Missing()  # whether a second round follows is not known before
        elif decided.facts["is_terminated"]:
            n_lines, second = len(plan.lines), decided["protocol"]
            asked.append(lambda: second)
            spent, totals = ask(asked[-1], 2)
            for line in plan.lines[n_lines:]:
                line["why"] = f"second round{': ' + line['why'] if line['why'] else ''}"
    last, number = asked[-1], len(asked)
    model = plan.look("prune", lambda: calls.prune(terms, last(), totals, scaled, published, number))
    scores = None
    if config.evaluate:
        scores = plan.look(
            "evaluate", lambda: calls.evaluate(terms, last(), model, scaled, held, published, number)
        )
    plan.look(
        "report",
        lambda: calls.report(
            terms,
            tuple(published_as() for published_as in asked),
            known(spent),
            ingested=ingested,
            checked=checked,
            held=held,
            scaled=scaled,
            published=published,
            totals=totals,
            model=model,
            scores=scores,
        ),
    )
    plan.lines.sort(key=lambda line: STEPS.index(line["name"]))
    return plan


def look_at_validation(plan: Plan, terms: Terms, ingested: Any) -> Any:
    """The record of validate. Raises BudgetError where the run would release more answers about private rows than it may."""

    def call() -> calls.Call:
        store = needed(plan.store)
        found = calls.validate(terms, ingested, source.suite_file(store, terms.dataset))
        foresee_release(store, **found)
        return found

    checked = plan.look("validate", call)
    plan.look_at_checks(checked)
    return checked


def show_plan(config: RunConfig, work: Path, *, as_json: bool) -> None:
    """Print the plan. Raises LdptreeError, as the run would where it is refused."""
    plan = _planned(config, work)
    _print_plan(config, plan.lines, as_json=as_json)
    if plan.refused is not None:
        raise plan.refused


def _print_plan(config: RunConfig, lines: list[dict[str, str]], *, as_json: bool) -> None:
    if config.model.in_rounds:
        from flows.rounds_plan import told_in_rounds

        epsilon, said = told_in_rounds(config, lines)
    else:
        epsilon, said = _told(config, lines)
    if as_json:
        print_json({"name": config.name, "steps": lines, "epsilon_to_spend": epsilon})
        return
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2), show_header=False)
    for line in lines:
        table.add_row(line["name"], line["state"], line["why"])
    console.print(table)
    console.print(said)


REFUSED = "the run is refused before any holder is asked: nothing would be spent"
FREE = "no holder would be asked: nothing is spent"


def said_without_room(config: RunConfig, lines: list[dict[str, str]]) -> str | None:
    """What is said where the ledger has no room for a new question, and whether this is one is not known; else None."""
    if not any(line["why"].endswith(NO_ROOM) for line in lines):
        return None
    return (
        f"the ledger has no room for epsilon {config.privacy.epsilon:g} more of each holder asked: unless this question was "
        "asked before, the budget is refused and nothing would be spent"
    )


def _told(config: RunConfig, lines: list[dict[str, str]]) -> tuple[float, str]:
    """The epsilon to spend, and what is said of it."""
    asked = [line["state"] for line in lines if line["name"] == "perturb"]
    reached = next((state for state in asked if state != "cached"), "cached")
    is_open = any(line["name"] == "terminate" and line["state"] != "cached" for line in lines)
    epsilon = 0.0 if reached in ("cached", "refused") else config.privacy.epsilon / len(asked)
    if any(line["state"] == "refused" for line in lines):
        return 0.0, REFUSED
    if said := said_without_room(config, lines):
        return epsilon, said
    if reached == "cached" and is_open:
        epsilon = config.privacy.epsilon / 2
        return epsilon, f"each holder would spend epsilon {epsilon:g} more if Algorithm 2 asks again"
    if not epsilon:
        return epsilon, FREE
    if is_open:
        return (
            epsilon,
            f"each holder asked would spend epsilon {epsilon / 2:g}, and as much once more if Algorithm 2 asks again",
        )
    return epsilon, f"each holder asked would spend epsilon {epsilon:g}, once"


def known(value: Any) -> Any:
    """A record or manifest that stands. Raises Later."""
    if isinstance(value, Missing):
        raise Later
    return value


def needed(store: Store | None) -> Store:
    """The store, if there is one. Raises Later."""
    if store is None:
        raise Later
    return store


def _changed(prefix: str, now: Any, then: Any) -> set[str]:
    if isinstance(now, dict) and isinstance(then, dict):
        return {
            name
            for key in now.keys() | then.keys()
            for name in _changed(f"{prefix}.{key}" if prefix else key, now.get(key), then.get(key))
        }
    return set() if now == then else {prefix}
