"""The engine of a run: what computes shards, and which one a configuration names. Nothing else of a run knows."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from prefect.client.schemas.objects import State
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.tasks import Task

from schemas.manifest import Manifest, Record
from schemas.tables import EngineConfig
from storage.store import Store


class Engine(Protocol):
    """What computes the shards of a step, and tells `tasks.progress` of them."""

    def map(self, task: Task[..., Record], step: str, call: Mapping[str, Any]) -> Iterator[State[Record]]:
        """How each shard ended, in their order. Raises LdptreeError where nothing computes any more. `call`: by parameter of the
        task, as Prefect's runners take it.
        """

    def can_read(self, files: Manifest) -> bool:
        """Whether what computes can read these files."""


@dataclass
class Threads:
    """Threads: numpy, numba, polars and duckdb release the GIL."""

    runner: ThreadPoolTaskRunner[Any]

    def map(self, task: Task[..., Record], step: str, call: Mapping[str, Any]) -> Iterator[State[Record]]:
        """How each shard ended; a step that runs in this process tells of itself."""
        for future in self.runner.map(task, dict(call)):
            future.wait()
            yield future.state

    def can_read(self, files: Manifest) -> bool:
        """Yes: they are this machine's."""
        return True


@contextlib.contextmanager
def engine_of(run: EngineConfig, store: Store) -> Iterator[Engine]:
    """The engine that a configuration names, ready. Raises ConfigError and LdptreeError where it cannot work, before anybody is
    charged.
    """
    workers = run.workers or os.cpu_count() or 1
    if run.engine == "threads":
        threads: ThreadPoolTaskRunner[Any] = ThreadPoolTaskRunner(max_workers=workers)
        with threads as runner:
            yield Threads(runner)
        return
    from flows.engines.ray_cluster import ray_of

    with ray_of(run.ray_address, workers, store) as cluster:
        yield cluster
