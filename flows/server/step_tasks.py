"""Steps as Prefect tasks whose cache is our own store.

Prefect calls a task cached when its own record loads; it knows nothing of the artifact. `ArtifactPolicy` keeps the two
together: before a task runs it looks for a verified artifact under the step's key. Where there is one, Prefect is given
a record of it to load (and shows "Cached"); where there is none, or it is damaged, a key that no record has.
"""

from __future__ import annotations

import functools
import logging
import secrets
from dataclasses import dataclass
from typing import Any

from prefect import get_client, task
from prefect.cache_policies import CachePolicy
from prefect.client.schemas.objects import State
from prefect.context import TaskRunContext
from prefect.results import get_result_store
from prefect.tasks import Task

from flows.server.run_log import tell_sentence
from schemas.manifest import Record
from storage.machine_faults import is_passing
from storage.store import Store
from tasks import progress
from tasks.step import Step, StepTask

AT_ONCE = 200
"""How many limits the API gives at once."""

logging.getLogger("prefect.task_runs").addFilter(tell_sentence)  # here, as a task may run on another machine


def tag_of(step: StepTask) -> str:
    """The tag by which a concurrency limit holds the tasks of a step."""
    return f"ldptree-{step.step.name}"


def limited_tags() -> frozenset[str]:
    """The tags that have a concurrency limit. Only their tasks are tagged: for each tag of a task Prefect asks for a slot, which
    takes seconds where the server's database is busy.
    """
    limits: list[str] = []
    with get_client(sync_client=True) as client:
        while found := client.read_global_concurrency_limits(limit=AT_ONCE, offset=len(limits)):
            limits += [limit.name for limit in found]
    return frozenset(name.removeprefix("tag:") for name in limits if name.startswith("tag:"))


@dataclass
class ArtifactPolicy(CachePolicy):
    """Prefect finds a step cached exactly when the store holds its verified artifacts."""

    step: Step | None = None

    def compute_key(
        self,
        task_ctx: TaskRunContext,
        inputs: dict[str, Any],
        flow_parameters: dict[str, Any],
        **kwargs: Any,
    ) -> str | None:
        """A key that Prefect holds a record for, if the artifacts stand; else a key never used before."""
        if self.step is None:
            return None
        arguments = dict(inputs["arguments"])
        store: Store = inputs["store"]
        place = self.step.place(store, arguments)
        record = store.find(place)
        name = f"ldptree-{self.step.name}-{place.key}"
        if record is None:
            return f"{name}-{secrets.token_hex(8)}"
        # The record itself is part of the key, so Prefect can never load another one than the store's.
        key = f"{name}-{store.hasher('curator').of_value(record.model_dump(mode='json'))[:16]}"
        records = get_result_store()
        if not records.exists(key):
            records.write(obj=record, key=key)
        progress.found(self.step.name)
        return key


def is_cached(state: State[Any]) -> bool:
    """Whether Prefect loaded the record of a task and did not run it."""
    return state.name == "Cached"


@functools.cache
def as_task(step: StepTask, *, is_limited: bool) -> Task[..., Record]:
    """The Prefect task of a step; with its tag where that has a concurrency limit."""

    def run(store: Store, label: str, **arguments: Any) -> Record:
        return step.fn(store, **arguments)

    run.__doc__ = step.work.__doc__
    return task(
        name=step.step.name,
        task_run_name="{label}",
        tags=[tag_of(step)] if is_limited else None,
        version=step.step.version,
        cache_policy=ArtifactPolicy(step=step.step),
        persist_result=True,
        result_serializer="json",
        retries=step.retries,
        retry_delay_seconds=1.0,
        retry_condition_fn=_is_passing,
    )(run)


def _is_passing(_task: Any, _run: Any, state: Any) -> bool:
    return is_passing(state.result(raise_on_failure=False))
