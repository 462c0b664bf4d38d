"""Turn a function into a step. An existing artifact is used again, a new one is written whole or not at all, and faults
stay in their zone.

Which step follows which, and what makes a step a cached Prefect task, is in `flows`.
"""

from __future__ import annotations

import ctypes
import importlib
import secrets
import socket
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from ldptree.errors import ConfigError, LdptreeError
from schemas.manifest import Arguments, Manifest, Record, Zone
from storage.machine_faults import is_passing, machine_fault
from storage.store import ArtifactKey, Store
from tasks import progress

Facts = Mapping[str, Any] | None


@dataclass(frozen=True)
class NotInKey:
    """An argument that travels with the call and is no part of its key (times, for the page; what a digest says already)."""

    value: Any


FIRST = NotInKey(0)
"""The number of a shard if no other one with the same content came before it."""


@dataclass(frozen=True)
class Step:
    """One step of the picture.

    name     by which its artifacts are known.
    version  of what it computes.
    home     the zone its record is kept in, or how its arguments decide that.
    says     what it leaves, as `ldptree explain` words it.
    """

    name: str
    version: str
    home: Zone | Callable[[Mapping[str, Any]], Zone]
    says: str = ""

    def zone(self, arguments: Mapping[str, Any]) -> Zone:
        """The zone of the record of a call."""
        return self.home(arguments) if callable(self.home) else self.home

    def place(self, store: Store, arguments: Mapping[str, Any]) -> ArtifactKey:
        """Return the place of this step's record when called with `arguments`. Manifests (one, several, or by name) are
        inputs, and all else parameters.
        """
        inputs: dict[str, str] = {}
        parameters: dict[str, Any] = {}
        for name, value in _each(arguments):
            if isinstance(value, Manifest):
                inputs |= {f"{name}[{i}]": d for i, d in enumerate(value.shards)} or {name: value.digest}
            elif isinstance(value, (list, tuple)) and value and all(isinstance(v, Manifest) for v in value):
                # Which of several files came first tells nothing, and names differ between work folders.
                inputs |= {f"{name}[{i}]": d for i, d in enumerate(sorted(v.digest for v in value))}
            elif isinstance(value, Mapping) and any(isinstance(v, Manifest) for v in value.values()):
                inputs |= {f"{name}.{part}": v.digest for part, v in value.items()}
            else:
                parameters[name] = _plain(value)
        return store.place(
            self.zone(arguments), self.name, self.version, inputs=inputs, parameters=parameters
        )


REGISTERED: dict[str, StepTask] = {}
"""Every step by name, once its module is imported."""


def step(
    name: str,
    *,
    version: str,
    home: Zone | Callable[[Mapping[str, Any]], Zone],
    retries: int = 0,
    says: str = "",
) -> Callable[[Callable[..., Facts]], StepTask]:
    """Make a step of `work(draft, **inputs_and_parameters) -> facts`. `retries` after passing faults, 0 for holders.

    Raises ConfigError where another module has a step of this name.
    """

    def decorate(work: Callable[..., Facts]) -> StepTask:
        if name in REGISTERED and (other := REGISTERED[name].work.__module__) != work.__module__:
            raise ConfigError(f'step "{name}": {other} has a step of this name. Give it another one.')
        REGISTERED[name] = StepTask(Step(name, version, home, says or name), work, retries)
        return REGISTERED[name]

    return decorate


class StepTask:
    """A step to be called by `fn(store, **inputs_and_parameters)`, alone or as a Prefect task (`flows.server.step_tasks`).

    It returns the step's `Record`: found, if the artifact stands under its key, else made by `work`, which writes into the
    draft's folders.
    """

    def __init__(self, step: Step, work: Callable[..., Facts], retries: int) -> None:
        """A step that does `work`."""
        self.__doc__ = work.__doc__
        self.step = step
        self.work = work
        self.retries = retries

    def __reduce__(self) -> Any:
        """In another process it is the step of this name as it is installed there."""
        return _installed_step, (self.work.__module__, self.step.name, self.step.version)

    def fn(self, store: Store, **arguments: Any) -> Record:
        """Run the step, or find what it left, without Prefect."""
        place = self.step.place(store, arguments)
        return self.find(store, place) or self.make(store, place, arguments)

    def find(self, store: Store, place: ArtifactKey) -> Record | None:
        """Find what the step left there, verified; None where it is to be made."""
        record = store.find(place)
        if record is not None:
            progress.tell_reused(self.step.name)
        return record

    def make(self, store: Store, place: ArtifactKey, arguments: Mapping[str, Any]) -> Record:
        """Run the step, which leaves its artifacts there."""
        began = time.monotonic()
        with (
            progress.watch(self.step.name),
            faults_stay_in_zone(store, self.step.name, place.home),
            store.draft(place) as draft,
        ):
            facts = self.work(draft, **arguments)
            seconds = time.monotonic() - began
            if seconds > LONG_SECONDS:
                hand_back_memory()
            return draft.finish(facts or {}, seconds)


LONG_SECONDS = 0.5
"""A step of which is long enough to leave memory that is worth handing back."""


def hand_back_memory() -> None:
    """Return the step's memory to the system, as allocators keep it and the next step's would come on top."""
    import pyarrow

    pyarrow.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # of glibc alone
        ctypes.CDLL(None).malloc_trim(0)


def _installed_step(module: str, name: str, version: str) -> StepTask:
    """Return the step as it is installed here. Raises ConfigError where it is of another version."""
    importlib.import_module(module)
    if REGISTERED[name].step.version != version:
        raise ConfigError(
            f"another ldptree-pipeline is installed on {socket.gethostname()}. Install the same."
        )
    return REGISTERED[name]


@contextmanager
def faults_stay_in_zone(store: Store, what: str, home: Zone) -> Iterator[None]:
    """Turn what nobody expected of `what` (a step, or the run) into one safe message, or say what the machine refused.

    The whole story of a holders' fault stays in their zone.
    """
    try:
        yield
    except BaseException as fault:
        _forget_locals(fault)
        clean = _clean(fault, store, what, home)
        if clean is None:
            raise
        # The fault itself may quote a private value: nothing of it goes along, not even as a context.
        fault.__traceback__ = None
    else:
        return
    try:
        raise clean
    finally:
        clean.__context__ = None


def _clean(fault: BaseException, store: Store, what: str, home: Zone) -> LdptreeError | None:
    """Return the message in place of a fault; None where it can be told as it is."""
    if not isinstance(fault, Exception) or isinstance(fault, LdptreeError):
        return None
    is_private = home in ("holders", "simulation")
    if not is_private and is_passing(fault):
        return None  # Prefect may try the step again
    clean = machine_fault(fault, store.root)
    if clean is not None:
        return type(clean)(f"{what}: {clean}")
    return _note(fault, store, what, home) if is_private else None


def _note(fault: Exception, store: Store, what: str, home: Zone) -> LdptreeError:
    """Return the message of a fault that nobody expected; the whole story of it stays in the zone."""
    message = f"{what}: stopped by an unexpected {type(fault).__name__}"
    with suppress(OSError):
        name = f"{home}/faults/{what}-{secrets.token_hex(4)}.txt"
        store.objects.put(name, "".join(traceback.format_exception(fault)).encode())
        message += f" (details in {name})"
    return LdptreeError(f"{message}.")


def _forget_locals(fault: BaseException | None) -> None:
    """Clear a fault's frames of rows and open connections, as Prefect keeps the fault."""
    while fault is not None:
        traceback.clear_frames(fault.__traceback__)
        fault = fault.__cause__ or fault.__context__


def _each(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the arguments that count in a key, by name. Several grouped in one yield the fields that were given."""
    for name, value in arguments.items():
        if isinstance(value, NotInKey):
            continue
        if isinstance(value, Arguments):
            yield from _each(value.given)
        elif isinstance(value, tuple) and value and all(isinstance(item, Arguments) for item in value):
            for number, item in enumerate(value, start=1):
                yield from ((f"{name} {number}: {field}", part) for field, part in _each(item.given))
        else:
            yield name, value


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return value
