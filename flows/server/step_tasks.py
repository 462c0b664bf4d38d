"""Steps as Prefect tasks whose cache is our own store.

A task that finds its step's verified artifact says so itself, by the state that Prefect shows as "Cached". Prefect keeps no
result of a task and no result of a flow: what it reads back may run code, and the store has the records.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

from prefect import get_client, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed
from prefect.tasks import Task

from flows.server.run_log import tell_sentence
from schemas.manifest import Record
from storage.machine_faults import is_passing
from storage.store import Store
from tasks.step import StepTask

AT_ONCE = 200
"""How many limits the API gives at once."""
CACHED = "Cached"
"""Prefect's own name of the state of a task that ran before."""

logging.getLogger("prefect.task_runs").addFilter(tell_sentence)  # here, as a task may run on another machine


def tag_of(step: StepTask) -> str:
    """The tag by which a concurrency limit holds the tasks of a step."""
    return f"ldptree-{step.step.name}"


def limited_tags() -> frozenset[str]:
    """Return the tags with a concurrency limit. Only their tasks are tagged, as Prefect asks for a slot for each tag of
    a task, which takes seconds if the server's database is busy.
    """
    limits: list[str] = []
    with get_client(sync_client=True) as client:
        while page := client.read_global_concurrency_limits(limit=AT_ONCE, offset=len(limits)):
            limits += [limit.name for limit in page]
    return frozenset(name.removeprefix("tag:") for name in limits if name.startswith("tag:"))


def is_cached(state: State[Any]) -> bool:
    """Return whether a task found what its step left."""
    return state.name == CACHED


@functools.cache
def as_task(step: StepTask, *, is_limited: bool) -> Task[..., Record]:
    """The Prefect task of a step; with its tag where that has a concurrency limit."""

    def run(store: Store, label: str, **arguments: Any) -> Any:
        place = step.step.place(store, arguments)
        if (record := step.find(store, place)) is not None:
            return Completed(name=CACHED, data=record)
        return step.make(store, place, arguments)

    run.__doc__ = step.work.__doc__
    return task(
        name=step.step.name,
        task_run_name="{label}",
        tags=[tag_of(step)] if is_limited else None,
        version=step.step.version,
        cache_policy=NO_CACHE,
        persist_result=False,
        retries=step.retries,
        retry_delay_seconds=1.0,
        retry_condition_fn=_is_passing,
    )(run)


def _is_passing(_task: Any, _run: Any, state: Any) -> bool:
    return is_passing(state.result(raise_on_failure=False))
