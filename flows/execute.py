"""How the steps of a run come about: plainly, as Prefect tasks, or only looked for. Which steps there are is in `pipeline`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Protocol

from flows.budget import Cost, Spent
from schemas.manifest import Record
from storage.store import Store
from tasks.step import StepTask

Call = dict[str, Any]
Inputs = Callable[[], Call]
Shards = Callable[[], tuple[Call, Sequence[Call]]]
"""What all shards have in common, and what is each one's own."""


class NotComputed(Exception):  # noqa: N818 - no error: what a step above has yet to make
    """What a step needs is not there yet."""


class Pending:
    """A record that is not there: whatever is asked of it is known later."""

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


class Execute(Protocol):
    """One way in which steps come about. Those that only look write nothing, and answer `Pending` for what is not there."""

    only_looks: ClassVar[bool]

    def step(self, task: StepTask, inputs: Inputs, round_number: int = 0) -> Any:
        """The record of a step. `round_number`: of a step that is of one round."""

    def shards(self, task: StepTask, inputs: Shards, round_number: int) -> Any:
        """The records of a step that runs once for each shard."""

    def charge(self, cost: Callable[[], Cost], unknown: Callable[[], Cost]) -> Any:
        """What is spent once the holders are charged. `unknown`: what it costs while the question is not known."""

    def show(self, markdown: str, title: str, summary: Mapping[str, Any] | None = None) -> None:
        """Show how a run ended, where there is somewhere to show it. `summary`: of one that did not stop."""


@dataclass
class Plainly:
    """Steps as functions: for tests, and for whoever has no server."""

    store: Store
    only_looks: ClassVar[bool] = False

    def step(self, task: StepTask, inputs: Inputs, round_number: int = 0) -> Record:
        """The record of a step, found or made."""
        return task.fn(self.store, **inputs())

    def shards(self, task: StepTask, inputs: Shards, round_number: int) -> list[Record]:
        """The records of all shards, one after the other."""
        common, shards = inputs()
        return [task.fn(self.store, **common, **own) for own in shards]

    def charge(self, cost: Callable[[], Cost], unknown: Callable[[], Cost]) -> Spent:
        """Charge everybody who is asked. Raises BudgetError."""
        return cost().charge()

    def show(self, markdown: str, title: str, summary: Mapping[str, Any] | None = None) -> None:
        """Nothing: whoever called it has what it returns."""


class ByPrefect(Plainly):
    """Steps as Prefect tasks of the current flow, shards mapped."""

    def step(self, task: StepTask, inputs: Inputs, round_number: int = 0) -> Record:
        """The record of a step, found or made."""
        from flows.server.step_tasks import as_task

        return as_task(task)(self.store, **inputs())

    def shards(self, task: StepTask, inputs: Shards, round_number: int) -> list[Record]:
        """The records of all shards, at most as many at once as the flow has workers."""
        from prefect import unmapped

        from flows.server.step_tasks import as_task
        from flows.shards import progress_shown

        common, shards = inputs()
        mapped = {key: [own[key] for own in shards] for key in shards[0]}
        with progress_shown(len(shards), task.step.name):
            arguments: dict[str, Any] = {key: unmapped(value) for key, value in common.items()} | mapped
            futures = as_task(task).map(unmapped(self.store), **arguments)
            records: list[Record] = futures.result()
            return records

    def show(self, markdown: str, title: str, summary: Mapping[str, Any] | None = None) -> None:
        """In the Prefect UI."""
        from flows.server.artifacts import show_run

        show_run(markdown, title, summary)


@dataclass
class Found:
    """Steps that stand, and nothing else."""

    store: Store
    only_looks: ClassVar[bool] = True

    def step(self, task: StepTask, inputs: Inputs, round_number: int = 0) -> Any:
        """The record of a step, if it stands."""
        try:
            place = task.step.place(self.store, inputs())
        except NotComputed:
            return Pending()
        return self.store.find(place) or Pending()

    def shards(self, task: StepTask, inputs: Shards, round_number: int) -> Any:
        """Nothing: who looks for a protocol looks no further."""
        return Pending()

    def charge(self, cost: Callable[[], Cost], unknown: Callable[[], Cost]) -> Any:
        """Nothing."""
        return Pending()

    def show(self, markdown: str, title: str, summary: Mapping[str, Any] | None = None) -> None:
        """Nothing."""
