"""Executors of steps: as functions, as Prefect tasks, or from the store alone. The steps are in `pipeline`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from flows.budget import Cost, Spent
from schemas.manifest import Record
from storage.store import Store
from tasks import progress
from tasks.step import StepTask

if TYPE_CHECKING:
    from prefect.tasks import Task

    from flows.runner import Runners

Call = dict[str, Any]
Inputs = Callable[[], Call]
Shards = Callable[[], tuple[Call, Sequence[Call]]]
"""What all shards have in common, and what is each one's own."""


class NotComputed(Exception):  # noqa: N818 - no error: what a step above has yet to make
    """An input of a step is not there yet."""


class Pending:
    """A record that is not there yet. Any use of it raises NotComputed."""

    def __getitem__(self, part: str) -> NoReturn:
        raise NotComputed

    def __getattr__(self, name: str) -> NoReturn:
        raise NotComputed

    def __iter__(self) -> NoReturn:
        raise NotComputed


def known(record: Record) -> Record:
    """A record that is there. Raises NotComputed."""
    if isinstance(record, Pending):
        raise NotComputed
    return record


class Executor(ABC):
    """Run steps, or look them up. An executor that only looks writes nothing, and answers `Pending` for what is not there."""

    only_looks: ClassVar[bool]

    @abstractmethod
    def step(self, task: StepTask, inputs: Inputs, round_number: int = 0) -> Any:
        """Return the record of a step. `round_number` is set for a step of one round."""

    @abstractmethod
    def shards(self, task: StepTask, inputs: Shards, round_number: int = 0) -> Any:
        """The records of a step that runs once for each shard."""

    @abstractmethod
    def charge(self, cost: Callable[[], Cost], unknown: Callable[[], Cost]) -> Any:
        """Charge the holders, and return what is spent. `unknown` gives the cost while the question is not known."""

    def show(self, markdown: str, title: str, summary: Mapping[str, Any] | None = None) -> None:  # noqa: B027 - optional
        """Show how a run ended, where there is a place for it. `summary` belongs to a run that did not stop early."""

    def stop(self, message: str, page: Path | None, command: str, *, has_started: bool) -> None:  # noqa: B027 - optional
        """Show why a run stopped, where there is a place for it. `page` is the run's own page, if any, `command` goes on
        with the run, and `has_started` tells whether any step had begun.
        """


@dataclass
class InlineExecutor(Executor):
    """Run steps as plain functions, for tests and without a server."""

    store: Store
    only_looks: ClassVar[bool] = False

    def step(self, task: StepTask, inputs: Inputs, round_number: int = 0) -> Record:
        """The record of a step, found or made."""
        return task.fn(self.store, **inputs())

    def shards(self, task: StepTask, inputs: Shards, round_number: int = 0) -> list[Record]:
        """The records of all shards, one after the other."""
        common, shards = inputs()
        return [task.fn(self.store, **common, **own) for own in shards]

    def charge(self, cost: Callable[[], Cost], unknown: Callable[[], Cost]) -> Spent:
        """Charge everybody who is asked. Raises BudgetError."""
        return cost().charge()


@dataclass
class PrefectExecutor(InlineExecutor):
    """Run steps as Prefect tasks of the current flow, with shards mapped by `runners`, and log what they leave."""

    runners: Runners

    def step(self, task: StepTask, inputs: Inputs, round_number: int = 0) -> Record:
        """The record of a step, found or made."""
        from flows.server.run_log import log_step
        from flows.server.step_tasks import is_cached

        label = _label(task, round_number)
        state: Any = self._as_task(task)(self.store, label, **inputs(), return_state=True)
        record: Record = state.result()
        log_step(label, task.step.name, [record], n_cached=int(is_cached(state)))
        return record

    def shards(self, task: StepTask, inputs: Shards, round_number: int = 0) -> list[Record]:
        """The records of all shards, in whatever order they are computed."""
        from prefect import unmapped

        from flows.server.run_log import log_step
        from flows.server.step_tasks import is_cached

        common, shards = inputs()
        mapped = {key: [own[key] for own in shards] for key in shards[0]}
        label = _label(task, round_number)
        labels = [f"{label}: {number} of {len(shards)}" for number in range(1, len(shards) + 1)]
        progress.expect(task.step.name, len(shards))
        arguments: dict[str, Any] = {key: unmapped(value) for key, value in common.items()} | mapped
        call = {"store": unmapped(self.store), "label": labels, "arguments": arguments}
        records, n_cached = [], 0
        for state in self.runners.map(self._as_task(task), task.step.name, call):
            records.append(state.result())
            n_cached += is_cached(state)
        log_step(label, task.step.name, records, n_cached=n_cached)
        return records

    def show(self, markdown: str, title: str, summary: Mapping[str, Any] | None = None) -> None:
        """In the Prefect UI."""
        from flows.server.artifacts import show_run

        show_run(markdown, title, summary)

    def stop(self, message: str, page: Path | None, command: str, *, has_started: bool) -> None:
        """Beside its results; the run's log tells it by itself."""
        from flows.server.artifacts import show_failure
        from flows.server.run_log import describe_failure

        markdown = describe_failure(message, command=command, has_started=has_started)
        show_failure(markdown, None if page is None else str(page))

    def _as_task(self, task: StepTask) -> Task[..., Record]:
        from flows.server.step_tasks import as_task, tag_of

        return as_task(task, is_limited=tag_of(task) in self._limited_tags)

    @cached_property
    def _limited_tags(self) -> frozenset[str]:
        from flows.server.step_tasks import limited_tags

        return limited_tags()


def _label(task: StepTask, round_number: int) -> str:
    """Return the label of a step of a round."""
    return task.step.name + (f" {round_number}" if round_number > 1 else "")


@dataclass
class CachedOnly(Executor):
    """Look steps up in the store, and run none."""

    store: Store
    only_looks: ClassVar[bool] = True

    def step(self, task: StepTask, inputs: Inputs, round_number: int = 0) -> Any:
        """The record of a step, if it stands."""
        try:
            place = task.step.place(self.store, inputs())
        except NotComputed:
            return Pending()
        return self.store.find(place) or Pending()

    def shards(self, task: StepTask, inputs: Shards, round_number: int = 0) -> Any:
        """The records of all shards, if they stand."""
        try:
            common, shards = inputs()
        except NotComputed:
            return Pending()
        records = [self.store.find(task.step.place(self.store, common | own)) for own in shards]
        return Pending() if None in records else records

    def charge(self, cost: Callable[[], Cost], unknown: Callable[[], Cost]) -> Any:
        """Nothing."""
        return Pending()
