"""The task runner of a run's shards: threads of this process, or the Ray cluster that `[run] ray` names. Nothing else of a run
knows.

Between machines go calls and records, never rows: those are read from the work folder, which all of them have. A shard whose
process or machine is lost is computed again elsewhere: it finds the reports that were drawn, or draws them under the same name,
which is written once.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from prefect.client.schemas.objects import State
from prefect.settings import PREFECT_API_URL
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner
from prefect.tasks import Task

from flows.server.step_tasks import is_cached
from ldptree.errors import ConfigError, LdptreeError
from schemas.manifest import Manifest, Record
from schemas.named_files import BUCKETS
from schemas.tables import RunnerConfig
from tasks import progress

Runner: TypeAlias = TaskRunner[Any]
CONNECT_SECONDS = 5.0
POLL_SECONDS = 5.0
ALONE_SECONDS = 120.0
"""How long a cluster may be without any CPU while machines come and go."""
FINISHED_STAND = "Finished shards are kept; the same command continues from there."


@dataclass
class Runners:
    """The runners of a run's shards: of this machine, and of the cluster if there is one."""

    threads: Runner
    cluster: Runner | None = None

    def map(self, task: Task[..., Any], step: str, call: Mapping[str, Any]) -> Iterator[State[Record]]:
        """Return how each shard ended, in their order, and tell `tasks.progress` of those of other processes. `call`: by
        parameter of the task, as Prefect's runners take it.

        Raises LdptreeError where nothing computes any more.
        """
        if self.cluster is None or _is_of_this_machine(call["arguments"].values()):
            for future in self.threads.map(task, dict(call)):
                future.wait()
                yield future.state
            return
        began = time.monotonic()
        for future in self.cluster.map(task, dict(call)):
            _wait_for(future.wrapped_future, step)  # type: ignore[attr-defined]
            future.wait()
            state = future.state
            if is_cached(state):
                progress.tell_reused(step)
            else:
                took = time.monotonic() - began
                progress.ended_elsewhere(step, is_done=state.is_completed(), seconds=took)
            yield state


@contextmanager
def runners_of(run: RunnerConfig) -> Iterator[Runners]:
    """The runners that a configuration names, ready. Raises ConfigError where the cluster cannot be reached."""
    threads: Runner = ThreadPoolTaskRunner(max_workers=run.workers or os.cpu_count() or 1)
    with ExitStack() as stack:
        cluster = None if run.ray is None else stack.enter_context(_cluster(run.ray))
        yield Runners(stack.enter_context(threads), cluster)


@contextmanager
def _cluster(address: str) -> Iterator[Runner]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        from prefect_ray import RayTaskRunner
    except ImportError as fault:
        raise ConfigError(
            f'run.ray: {fault.name or "Ray"} is not installed. Run `pip install "ldptree-pipeline[ray]"`, or leave run.ray out.'
        ) from None
    if address != "auto":
        _refuse_unreached(address)
    # It prints what happens to its machines on standard output, whatever it is told of logs.
    ray._private.worker.print_to_stdstream = lambda *_, **__: None
    # Without an address Prefect would start a server in each process of the cluster.
    names = (
        "PREFECT_API_AUTH_STRING",
        "PREFECT_LOGGING_LEVEL",
        "PREFECT_LOGGING_SETTINGS_PATH",
        "PREFECT_PROFILES_PATH",
        "PREFECT_SERVER_ANALYTICS_ENABLED",
        "DO_NOT_TRACK",
    )
    own = {name: os.environ[name] for name in names if name in os.environ}
    try:
        ray.init(
            address,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
            runtime_env={"env_vars": own | {"PREFECT_API_URL": str(PREFECT_API_URL.value())}},
        )
    except (ConnectionError, RuntimeError, ValueError, OSError) as fault:
        raise ConfigError(
            f'run.ray = "{address}": this machine is not part of a Ray cluster there, or has another RAY_AUTH_TOKEN, Ray or '
            f"Python ({_first_line(str(fault))}). Run `ray start --address` here first, with the versions of the cluster."
        ) from None
    try:
        with RayTaskRunner() as runner:
            yield runner
    finally:
        ray.shutdown()


def _refuse_unreached(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError):
        raise ConfigError(
            f'run.ray = "{address}": nobody answers there. Start the cluster (`ray start --head`), or leave run.ray out.'
        ) from None


def _first_line(fault: str) -> str:
    return fault.strip().partition("\n")[0].rstrip(".")


def _is_of_this_machine(arguments: Any) -> bool:
    """Return whether any argument is a file that other machines may not have, or have with other bytes."""
    for value in arguments:
        # A list has one for each shard; what all shards share is unmapped.
        several = value if isinstance(value, list) else [getattr(value, "value", value)]
        outside = [manifest for manifest in several if isinstance(manifest, Manifest) and not manifest.path]
        if any(not entry.name.startswith(BUCKETS) for manifest in outside for entry in manifest.files):
            return True
    return False


def _wait_for(answer: Any, step: str) -> None:
    """Wait until a shard is over. Raises ConfigError where a machine of the cluster is not fit for it, LdptreeError where its
    processes died again and again, or no machine is left.
    """
    import ray

    last_seen = time.monotonic()
    while not ray.wait([answer], timeout=POLL_SECONDS)[0]:
        if ray.cluster_resources().get("CPU", 0.0) >= 1:
            last_seen = time.monotonic()
        elif time.monotonic() - last_seen > ALONE_SECONDS:
            raise LdptreeError(f"no machine is left in the Ray cluster. {FINISHED_STAND}")
    try:
        ray.get(answer)
    except (
        ray.exceptions.WorkerCrashedError,
        ray.exceptions.NodeDiedError,
        ray.exceptions.OutOfMemoryError,
    ) as fault:
        raise LdptreeError(
            f"the Ray cluster lost every process that computed a shard ({type(fault).__name__}); is there enough memory? "
            f"{FINISHED_STAND}"
        ) from None
    except Exception as fault:  # before the task began: what it raises itself is in the shard's state
        ours = re.findall(r"^ldptree\.errors\.\w+: (.+)$", str(fault), re.MULTILINE)
        if ours:
            raise ConfigError(f"{step}: {ours[-1].strip()} {FINISHED_STAND}") from None
        raise LdptreeError(
            f"{step}: a machine of the Ray cluster could not begin it ({type(fault).__name__}). Give all machines the same "
            f"ldptree-pipeline and a way to the Prefect server. {FINISHED_STAND}"
        ) from None
