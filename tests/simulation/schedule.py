"""Who goes next, and what goes wrong: actors take turns at each call of the disk or the bucket, as a plan says.

Everything happens in one thread: the same plan gives the same steps, so a failure can be seen again.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import greenlet

MOST_STEPS = 40_000
TRACED = 40
STALLED = (50, 3000)
WAITED = 30
BEGUN_AGAIN = (0, 20, 500)
"""After how many steps at the earliest a killed process is started again."""
LOOKS = ("look", "answer")


class Crash(BaseException):
    """The process is killed: nothing that it does from here on has an effect."""


class Violation(BaseException):
    """What is promised did not hold."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong, at step `at`; with `near` at the change with this number of those of a name with that in it."""

    at: int
    kind: str
    near: str = ""


@dataclass(frozen=True)
class Plan:
    """One simulation. `restless`: how often another actor goes next; at 1 they take turns."""

    seed: int
    where: str
    faults: tuple[Fault, ...]
    actors: tuple[str, ...]
    restless: float


class Schedule:
    """Runs actors, each in a greenlet of its own, which gives way at every step."""

    def __init__(self, plan: Plan) -> None:
        self.random = random.Random(plan.seed)
        self.restless = plan.restless
        self.step = 0
        self.trace: deque[tuple[object, ...]] = deque(maxlen=TRACED)
        self._due = [(fault, 0) for fault in plan.faults]
        self._dead: set[greenlet.greenlet] = set()
        self._names: dict[greenlet.greenlet, str] = {}
        self._hub = greenlet.getcurrent()
        self._last: greenlet.greenlet | None = None
        self._stalled: dict[greenlet.greenlet, int] = {}
        self._then: Callable[[], None] = lambda: None
        self._is_still = False

    @property
    def is_acting(self) -> bool:
        """Whether what runs now is an actor, not the simulation itself."""
        return greenlet.getcurrent() in self._names

    def reach(self, what: tuple[object, ...], fitting: Iterable[str] = ()) -> str:
        """Give way before a step; returns the fault of it, of those `fitting`, or "". Raises Crash in a killed actor."""
        me = greenlet.getcurrent()
        if me not in self._names or self._is_still:
            return ""
        if me not in self._dead:
            self._hub.switch()
        if me in self._dead:
            raise Crash
        self.step += 1
        if self.step > MOST_STEPS:
            raise Violation("the simulation does not come to an end")
        fault = self._next_fault(what, ("kill", "stall", *fitting)) if self._due else ""
        self.trace.append((self.step, self._names[me], *what, fault))
        if fault == "kill":
            self._dead.add(me)
            raise Crash
        if fault == "stall":
            self._stalled[me] = self.step + self.random.randint(*STALLED)
            return self.reach(what, fitting)
        return fault

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Nobody else goes on, and nothing goes wrong, while the simulation looks at something."""
        self._is_still = True
        try:
            yield
        finally:
            self._is_still = False

    def give_way(self) -> None:
        """Let another actor go next: this one waits for it."""
        self._stalled[greenlet.getcurrent()] = self.step + WAITED
        self.reach(("waits",))

    def kill_all(self, then: Callable[[], None]) -> None:
        """Kill every actor, the one that runs too, and do `then` before they begin anew."""
        self._dead |= set(self._names)
        self._then = then

    def last_steps(self) -> str:
        """The last steps, a line each."""
        return "\n".join(
            " ".join(str(part) for part in step if isinstance(part, (int, str, Path))) for step in self.trace
        )

    def _next_fault(self, what: tuple[object, ...], fitting: Iterable[str]) -> str:
        named, is_change = " ".join(map(str, what)), what[0] not in LOOKS
        for place, (fault, seen) in enumerate(self._due):
            if fault.near and is_change and fault.near in named:
                self._due[place] = (fault, seen := seen + 1)
            if fault.kind in fitting and fault.at <= (seen if fault.near else self.step):
                del self._due[place]
                return fault.kind
        return ""

    def _choose(self, living: dict[str, greenlet.greenlet]) -> str:
        """Who goes next."""
        until = {name: self._stalled.get(one, 0) for name, one in living.items()}
        awake = [name for name in living if until[name] <= self.step] or [min(living, key=until.__getitem__)]
        last = next((name for name in awake if living[name] is self._last), None)
        if last is None or self.restless == 1:
            return awake[(awake.index(last) + 1) % len(awake)] if last else self.random.choice(awake)
        return self.random.choice(awake) if self.random.random() < self.restless else last

    def run(self, actors: dict[str, Callable[[], None]]) -> None:
        """Let all actors come to their end; one that was killed begins anew. Raises what one of them raises."""
        living = {name: self._begin(name, act) for name, act in actors.items()}
        try:
            while living:
                name = self._choose(living)
                one = self._last = living[name]
                with suppress(Crash):
                    one.switch()
                if self._dead:
                    dead = [name for name, let in living.items() if let in self._dead]
                    self._bury(living[name] for name in dead)
                    then, self._then = self._then, lambda: None
                    then()
                    for name in dead:
                        living[name] = self._begin(name, actors[name])
                        self._stalled[living[name]] = self.step + self.random.choice(BEGUN_AGAIN)
                elif one.dead:
                    del living[name], self._names[one]
        finally:
            self._dead |= set(self._names)
            self._bury(list(self._names))

    def _begin(self, name: str, act: Callable[[], None]) -> greenlet.greenlet:
        one = greenlet.greenlet(act)
        self._names[one] = name
        return one

    def _bury(self, actors: Iterable[greenlet.greenlet]) -> None:
        """Let killed actors leave, without effect, what they were in."""
        for one in actors:
            while not one.dead:
                with suppress(Crash):
                    one.throw(Crash)
            del self._names[one]
            self._dead.discard(one)
