"""How the steps of a run come about: plainly, as Prefect tasks, or only looked for. Which steps there are is in `pipeline`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol

from flows.budget import Cost, Spent
from schemas.manifest import Manifest, Record
from storage.store import Store
from tasks.step import StepTask

if TYPE_CHECKING:
    from prefect.tasks import Task

    from flows.engines.engine import Engine
    from flows.server.artifacts import Artifacts

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

    def makes_in_parts(self, task: StepTask, call: Call, files: Sequence[Manifest]) -> bool:
        """Whether a step is to be made, of parts that others make, who all have these files."""

    def charge(self, cost: Callable[[], Cost], unknown: Callable[[], Cost]) -> Any:
        """What is spent once the holders are charged. `unknown`: what it costs while the question is not known."""

    def show(self, markdown: str, title: str, summary: Mapping[str, Any] | None = None) -> None:
        """Show how a run ended, where there is somewhere to show it. `summary`: of one that did not stop."""

    def stop(self, message: str, page: Path | None, command: str, *, has_started: bool) -> None:
        """Show why a run stopped, where there is somewhere to. `page`: its own, if any; `command`: that goes on with it;
        `has_started`: whether any step had begun.
        """


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

    def makes_in_parts(self, task: StepTask, call: Call, files: Sequence[Manifest]) -> bool:
        """Whether a step is not there yet."""
        return self.store.find(task.step.place(self.store, call)) is None

    def charge(self, cost: Callable[[], Cost], unknown: Callable[[], Cost]) -> Spent:
        """Charge everybody who is asked. Raises BudgetError."""
        return cost().charge()

    def show(self, markdown: str, title: str, summary: Mapping[str, Any] | None = None) -> None:
        """Nothing: whoever called it has what it returns."""

    def stop(self, message: str, page: Path | None, command: str, *, has_started: bool) -> None:
        """Nothing: whoever called it has the error."""


@dataclass
class ByPrefect(Plainly):
    """Steps as Prefect tasks of the current flow, shards mapped by `engine`; what they leave is in its log and among its
    `artifacts`.
    """

    artifacts: Artifacts
    engine: Engine

    def step(self, task: StepTask, inputs: Inputs, round_number: int = 0) -> Record:
        """The record of a step, found or made."""
        from flows.server.run_log import log_step
        from flows.server.step_tasks import is_cached

        label = _label(task, round_number)
        state: Any = self._as_task(task)(self.store, label, **inputs(), return_state=True)
        record: Record = state.result()
        log_step(self.artifacts, label, task.step.name, [record], n_cached=int(is_cached(state)))
        return record

    def shards(self, task: StepTask, inputs: Shards, round_number: int) -> list[Record]:
        """The records of all shards, in whatever order the engine computes them."""
        from prefect import unmapped

        from flows.server.run_log import log_step
        from flows.server.shards import progress_shown
        from flows.server.step_tasks import is_cached

        common, shards = inputs()
        mapped = {key: [own[key] for own in shards] for key in shards[0]}
        label = _label(task, round_number)
        labels = [f"{label}: {number} of {len(shards)}" for number in range(1, len(shards) + 1)]
        with progress_shown(self.artifacts, len(shards), task.step.name):
            arguments: dict[str, Any] = {key: unmapped(value) for key, value in common.items()} | mapped
            call = {"store": unmapped(self.store), "label": labels, "arguments": arguments}
            records, n_cached = [], 0
            for state in self.engine.map(self._as_task(task), task.step.name, call):
                records.append(state.result())
                n_cached += is_cached(state)
        log_step(self.artifacts, label, task.step.name, records, n_cached=n_cached)
        return records

    def makes_in_parts(self, task: StepTask, call: Call, files: Sequence[Manifest]) -> bool:
        """The same, where the engine's machines can read the files."""
        can_read = all(map(self.engine.can_read, files))
        return can_read and super().makes_in_parts(task, call, files)

    def show(self, markdown: str, title: str, summary: Mapping[str, Any] | None = None) -> None:
        """In the Prefect UI."""
        from flows.server.artifacts import show_run

        show_run(self.artifacts, markdown, title, summary)

    def stop(self, message: str, page: Path | None, command: str, *, has_started: bool) -> None:
        """Beside its results; the run's log tells it by itself."""
        from flows.server.artifacts import show_page
        from flows.server.run_log import show_failure

        show_failure(self.artifacts, message, command=command, has_started=has_started)
        if page is not None:
            show_page(self.artifacts, page)

    def _as_task(self, task: StepTask) -> Task[..., Record]:
        from flows.server.step_tasks import as_task, tag_of

        return as_task(task, is_limited=tag_of(task) in self._limited_tags)

    @cached_property
    def _limited_tags(self) -> frozenset[str]:
        from flows.server.step_tasks import limited_tags

        return limited_tags()


def _label(task: StepTask, round_number: int) -> str:
    """What a step of a round is called."""
    return task.step.name + (f" {round_number}" if round_number > 1 else "")


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

    def makes_in_parts(self, task: StepTask, call: Call, files: Sequence[Manifest]) -> bool:
        """No: nothing is made."""
        return False

    def charge(self, cost: Callable[[], Cost], unknown: Callable[[], Cost]) -> Any:
        """Nothing."""
        return Pending()

    def show(self, markdown: str, title: str, summary: Mapping[str, Any] | None = None) -> None:
        """Nothing."""

    def stop(self, message: str, page: Path | None, command: str, *, has_started: bool) -> None:
        """Nothing."""
