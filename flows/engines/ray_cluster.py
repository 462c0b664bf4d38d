"""Shards computed by a Ray cluster, with Prefect's task runner for it: started on this machine, or one to which this machine
belongs, whose machines are looked at before anybody is charged. A shard whose process or machine is lost is computed again
elsewhere: it finds the reports that were drawn, or draws them under the same name, which is written once.

Between the machines go calls and records, never rows: those are read from the work folder, which all of them have.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect.client.schemas.objects import State
from prefect.settings import PREFECT_API_URL, PREFECT_HOME
from prefect.tasks import Task

from flows.server.health import answers
from flows.server.step_tasks import is_cached
from ldptree.errors import ConfigError, LdptreeError
from schemas.manifest import Manifest, Record
from schemas.named_files import BUCKETS
from storage.objects.addresses import bucket_address
from storage.store import Store
from tasks import progress

if TYPE_CHECKING:
    from prefect_ray import RayTaskRunner

PARTS = ("ldptree-pipeline", "prefect", "prefect-ray")
"""What every machine has in the same version; Ray and Python Ray compares itself."""
CONNECT_SECONDS = 5.0
LOOK_SECONDS = 60.0
"""How long a machine of the cluster may take to answer."""
FREE_SECONDS = 60.0
"""How long none of its CPUs may be free."""
POLL_SECONDS = 5.0
ALONE_SECONDS = 120.0
"""How long a cluster may be without any CPU while machines come and go."""
FINISHED_STAND = "Finished shards stand; the same command goes on from there."
OBJECT_STORE_BYTES = 128 << 20
"""On this machine: only calls and records are in it."""


@dataclass
class Cluster:
    """A Ray cluster that computes shards."""

    runner: RayTaskRunner[Any]
    is_here: bool
    """Whether it is of this machine alone."""

    def can_read(self, files: Manifest) -> bool:
        """Whether they are in the work folder or another bucket, or there is no other machine."""
        is_anywhere = bool(files.path) or all(entry.name.startswith(BUCKETS) for entry in files.files)
        return self.is_here or is_anywhere

    def map(self, task: Task[..., Record], step: str, call: Mapping[str, Any]) -> Iterator[State[Record]]:
        """How each shard ended. Raises LdptreeError where no machine of the cluster is left."""
        began = time.monotonic()
        for future in self.runner.map(task, dict(call)):
            _wait_for(future.wrapped_future)
            future.wait()
            if is_cached(future.state):
                progress.found(step)
            else:
                took = time.monotonic() - began
                progress.ended_elsewhere(step, is_done=future.state.is_completed(), seconds=took)
            yield future.state


@contextlib.contextmanager
def ray_of(address: str | None, workers: int, store: Store) -> Iterator[Cluster]:
    """A cluster that is ready to compute shards of `store`: the one at `address`, else `workers` processes on this machine.

    Raises ConfigError where Ray is not installed here, or cannot compute there; LdptreeError where no CPU of it is free.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        from prefect_ray import RayTaskRunner
    except ImportError as fault:
        raise ConfigError(
            f'run.engine = "ray": {fault.name or "Ray"} is not installed. Give `pip install "ldptree-pipeline[ray]"`, or leave '
            "run.engine out."
        ) from None
    if address is not None and address != "auto":
        _refuse_unreached(address)
    # It prints what happens to its machines on standard output, whatever it is told of logs.
    ray._private.worker.print_to_stdstream = lambda *_, **__: None
    is_ours = address is None
    try:
        ray.init(
            address or "local",
            num_cpus=workers if is_ours else None,
            object_store_memory=OBJECT_STORE_BYTES if is_ours else None,
            include_dashboard=False if is_ours else None,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
            runtime_env={"env_vars": _environment()},
        )
    except (ConnectionError, RuntimeError, ValueError, OSError) as fault:
        raise ConfigError(_refused(address, fault)) from None
    try:
        if address is not None:
            _refuse_unfit(address, store)
        with RayTaskRunner() as runner:
            yield Cluster(runner, is_here=is_ours)
    finally:
        ray.shutdown()


def _environment() -> dict[str, str]:
    """What Prefect in the processes of the cluster has to know: without an address each would start a server of its own."""
    names = ("PREFECT_LOGGING_LEVEL", "PREFECT_SERVER_ANALYTICS_ENABLED", "DO_NOT_TRACK")
    own = {name: os.environ[name] for name in names if name in os.environ}
    return {"PREFECT_API_URL": str(PREFECT_API_URL.value())} | own


def _refuse_unreached(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError):
        raise ConfigError(
            f'run.ray_address = "{address}": nobody answers there. Start the cluster (`ray start --head`), or leave '
            "run.ray_address out: then Ray is started on this machine."
        ) from None


def _refused(address: str | None, fault: Exception) -> str:
    """Why Ray did not begin, in one sentence."""
    if address is None:
        return f"run.engine: Ray does not start on this machine ({_first_line(fault)}). Leave run.engine out, or mend that."
    versions = re.findall(r"(?:Ray|Python): (\S+)", str(fault))
    if len(versions) == 4:
        there, here = (f"Ray {ray} with Python {python}" for ray, python in (versions[:2], versions[2:]))
        return f'run.ray_address = "{address}": the cluster has {there}, this machine {here}. Install the same on both.'
    return (
        f'run.ray_address = "{address}": no Ray cluster of which this machine is one, with the same RAY_AUTH_TOKEN '
        f"({_first_line(fault)}). Start the run on a machine of the cluster, or give `ray start --address` here first."
    )


def _first_line(fault: Exception) -> str:
    return str(fault).strip().partition("\n")[0].rstrip(".")


def _refuse_unfit(address: str, store: Store) -> None:
    """Look at every machine of the cluster, and for a free CPU. Raises ConfigError, LdptreeError."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    mark = f"probe-{secrets.token_hex(8)}"
    look = ray.remote(num_cpus=0)(_look_elsewhere(store.work, mark))
    nodes = [node for node in ray.nodes() if node["Alive"]]
    store.objects.create(mark, b"")
    try:
        looks = [
            look.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            ).remote()
            for node in nodes
        ]
        ray.wait(looks, num_returns=len(looks), timeout=LOOK_SECONDS)
        faults = [_fault_found(one) for one in looks]
    finally:
        store.objects.delete(mark)
    for node, fault in zip(nodes, faults, strict=True):
        if fault is not None:
            raise ConfigError(f'run.ray_address = "{address}": machine {node["NodeManagerHostname"]} {fault}')
    if n_cpus() < 1:
        raise ConfigError(
            f'run.ray_address = "{address}": no machine of the cluster has a CPU for shards. Add one.'
        )
    free = ray.remote(num_cpus=1)(_nothing).remote()
    if not ray.wait([free], timeout=FREE_SECONDS)[0]:
        ray.cancel(free)
        raise LdptreeError(
            f'run.ray_address = "{address}": none of the {n_cpus():g} CPUs of the cluster was free for {FREE_SECONDS:g} seconds. '
            "Wait until other work is done, or add machines."
        )


def _nothing() -> None:
    """Takes a CPU, and no time."""


def n_cpus() -> float:
    """How many CPUs the machines of the cluster that are up have together."""
    import ray

    return float(ray.cluster_resources().get("CPU", 0.0))


def _wait_for(answer: Any) -> None:
    """Wait until a shard is over. Raises LdptreeError where its processes died again and again, or no machine is left."""
    import ray

    last_seen = time.monotonic()
    while not ray.wait([answer], timeout=POLL_SECONDS)[0]:
        if n_cpus() >= 1:
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
    except Exception:  # told by the shard's state
        return


def _look_elsewhere(work: str, mark: str) -> Any:
    """What a machine is asked; a function that is sent there whole, for ldptree may not be there."""
    wanted = {part: version(part) for part in PARTS}
    url, home = PREFECT_API_URL.value(), str(PREFECT_HOME.value())

    def look() -> tuple[dict[str, str | None], str | None]:
        from importlib.metadata import PackageNotFoundError, version

        found: dict[str, str | None] = {}
        for part in wanted:
            try:
                found[part] = version(part)
            except PackageNotFoundError:
                found[part] = None
        if found != wanted:
            return found, None
        from flows.engines.ray_cluster import find_fault

        return found, find_fault(work, mark, home, url)

    return look


def _fault_found(look: Any) -> str | None:
    """Why a machine cannot compute shards, by its answer; None where it can."""
    import ray

    try:
        versions, fault = ray.get(look, timeout=0)
    except ray.exceptions.GetTimeoutError:
        return (
            f"did not answer within {LOOK_SECONDS:g} seconds. Look after it, or take it out of the cluster."
        )
    except ray.exceptions.RayError as unexpected:
        return f"could not be looked at ({type(unexpected).__name__}). Look after it, or take it out of the cluster."
    return find_other_version(versions) or fault


def find_other_version(versions: Mapping[str, str | None]) -> str | None:
    """What a machine has not, or in another version than this one, and what to do; None where all is the same."""
    for part in PARTS:
        here, there = version(part), versions.get(part)
        if there != here:
            has = f"has no {part}" if there is None else f"has {part} {there}, and this one {here}"
            return f"{has}. Install {part} {here} there."
    return None


def find_fault(work: str, mark: str, home: str, url: str) -> str | None:
    """Why this machine cannot compute shards of a run: it has not its work folder, in which there is `mark`, no place for
    Prefect's records, or does not reach its server. None where it can.
    """
    try:
        is_folder = bucket_address(work) is None
        has_mark = Path(work, mark).exists() if is_folder else Store(work).objects.size(mark) is not None
    except (LdptreeError, OSError) as fault:
        return f"cannot use the work folder: {fault}"
    if not has_mark:
        return f"has not the work folder {work}. Name one that all machines have with --work, as s3://bucket/prefix."
    try:
        Path(home).mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        return f"cannot make the folder {home} ({fault.strerror}). Set PREFECT_HOME to one that all machines can make."
    if not answers(url, seconds=CONNECT_SECONDS):
        return f"does not reach the Prefect server {url}. Start one that it reaches, and set PREFECT_API_URL."
    return None
