"""Simulates one plan, or many seeds; makes what fails as small as it gets.

python -m simulation.simulate 10000     # in tests/: seeds 0 to 9999
python -m simulation.simulate --seed 7  # one of them
"""

from __future__ import annotations

import argparse
import random
import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from simulation import bucket, disk
from simulation.clients import FOLDER, PROCESSES
from simulation.house import House
from simulation.runs import PROGRAMS, Run
from simulation.schedule import Fault, Plan, Schedule, Violation

PAIRS = (
    ("one", "again"),
    ("one", "again"),
    ("two", "both"),
    ("one", "two"),
    ("again", "two"),
    ("one", "later"),
    ("one", "apart"),
    ("later", "apart"),
    ("later", "two"),
    ("one", "changed"),
    ("two", "otherwise"),
)
"""Processes that want the same, or what only one of them can have."""
OTHERS = {"folder": ("gc", "gc", "gc", "reader"), "bucket": ("gc", "reader")}
CRASHES = {"folder": ("kill", "kill", "power"), "bucket": ("kill", "lost", "late", "conflict")}
FAULTS = {"folder": disk.FAULTS, "bucket": bucket.FAULTS}
RACED = (
    *["begin charge"] * 6,
    "begin",
    "last-transaction",
    "last-transaction",
    "holders/secret",
    "released_checks",
    "charges",
    "files",
    "curator/sim-page",
    "curator/sim-page",
    "round-1/",
    "round-1/",
    "round-1/",
)
KEPT = (
    "charges",
    "charges",
    "round-1/",
    "round-1/",
    "round-1/",
    "holders/perturb",
    "curator/partition",
    "last-transaction",
    "answers",
    "commit",
    "holders/secret",
    "campaigns",
    "files",
)
"""What somebody is slow at, and what faults are near: names of which much depends."""
DEVICE_FAULTS = 3
STEPS = 1_000
"""About as many as a simulation without faults has."""


def plan_of(seed: int) -> Plan:
    """The plan of a seed: half are about who comes between whom, a quarter about crashes, a quarter about anything."""
    chance = random.Random(seed)
    where, theme = ("folder", "bucket")[seed % 2], (0, 1, 0, 2)[seed // 2 % 4]
    kinds, near, least, most = [
        (("stall",), RACED, 2, 4),
        (CRASHES[where], KEPT, 2, 5),
        (FAULTS[where], (*RACED, *KEPT), 0, 6),
    ][theme]
    faults = tuple(_fault(chance, kinds, near) for _ in range(chance.randint(least, most)))
    programs = chance.choice(PAIRS) if theme == 0 else _programs(chance)
    others = [chance.choice(OTHERS[where])] if theme else ["reader"] * chance.randint(0, 1)
    if where == "folder" and seed % 3 == 0:
        others += PROCESSES
        faults += tuple(_fault(chance, kinds, [f"{FOLDER}/"]) for _ in range(DEVICE_FAULTS))
    return Plan(seed, where, faults, (*programs, *others), chance.choice([0.02, 0.1, 0.5, 1]))


def _programs(chance: random.Random) -> list[str]:
    weights = [2 if runs[0].seed is not None else 3 for runs in PROGRAMS.values()]
    return list(dict.fromkeys(chance.choices(list(PROGRAMS), weights, k=chance.choice([1, 1, 2]))))


def _fault(chance: random.Random, kinds: Sequence[str], near: Sequence[str]) -> Fault:
    kind = chance.choice(kinds)
    if chance.random() < 0.9:
        return Fault(chance.randint(1, chance.choice([1, 1, 2, 5, 8])), kind, chance.choice(near))
    return Fault(int(STEPS * chance.random() ** 2), kind)


def simulate(plan: Plan, planted: Callable[[pytest.MonkeyPatch, House], object] | None = None) -> House:
    """Carry a plan out, with a fault of the program where one is planted; what runs with a seed learn is what they learn alone.

    Raises Violation, or whatever the program raises.
    """
    house = _carry_out(plan, planted)
    for run in house.witness.done:
        if run.seed is not None and not house.witness.totals_of(run) <= _learned_alone(run):
            raise Violation(f"{run} has not learned what it learns alone")
    return house


@cache
def _learned_alone(run: Run) -> set[object]:
    program = next(name for name, runs in PROGRAMS.items() if runs == (run,))
    return _carry_out(Plan(0, "folder", (), (program,), 1), None).witness.totals_of(run)


def _carry_out(plan: Plan, planted) -> House:
    schedule = Schedule(plan)
    memory = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        house = House(plan, schedule, Path(folder).resolve())
        if planted is not None:
            planted(patch, house)
        chance = random.Random(plan.seed)
        patch.setattr(secrets, "token_hex", lambda n=32: chance.randbytes(n).hex())
        patch.setattr(secrets, "token_bytes", lambda n=32: chance.randbytes(n))
        waiting = SimpleNamespace(sleep=lambda _: schedule.give_way(), time=time.time)
        patch.setattr("storage.objects.bucket.time", waiting)
        with house.patched(patch):
            try:
                schedule.run({name: house.actor(name) for name in plan.actors})
                house.check_end()
            except (Violation, Exception) as fault:
                fault.add_note(schedule.last_steps())
                raise
        return house


def failure_of(plan: Plan, planted=None) -> BaseException | None:
    """What goes wrong in a plan, None where nothing does."""
    try:
        simulate(plan, planted)
    except (Violation, Exception) as fault:
        return fault
    return None


def shrink(plan: Plan, planted=None) -> Plan:
    """A plan that fails in the same way, with fewer faults and actors and less changing between them."""
    kind, is_smaller = type(failure_of(plan, planted)), True
    while is_smaller:
        is_smaller = False
        for smaller in _smaller(plan):
            if type(failure_of(smaller, planted)) is kind:
                plan, is_smaller = smaller, True
                break
    return plan


def _smaller(plan: Plan):
    for one in plan.faults:
        yield replace(plan, faults=tuple(fault for fault in plan.faults if fault is not one))
    for one in plan.actors:
        if len(plan.actors) > 1:
            yield replace(plan, actors=tuple(actor for actor in plan.actors if actor != one))
    if plan.restless > 0.02:
        yield replace(plan, restless=plan.restless / 5)


def find_failure(seeds: Sequence[int], planted=None) -> int | None:
    """The first of these seeds whose simulation fails."""
    return next((seed for seed in seeds if failure_of(plan_of(seed), planted) is not None), None)


def describe(seed: int, planted=None) -> str:
    """A failure of a seed, as small as it gets: its plan, what went wrong, and the last steps."""
    plan = shrink(plan_of(seed), planted)
    fault = failure_of(plan, planted)
    steps = "\n".join(getattr(fault, "__notes__", ()))
    return f"seed {seed}: {type(fault).__name__}: {fault}\n{plan}\n{steps}\nAgain: make simulate SEED={seed}"


def main() -> int:
    """Simulate what the command line says; 1 where something failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("seeds", nargs="?", type=int, default=1_000)
    parser.add_argument("--seed", type=int)
    said = parser.parse_args()
    seeds = range(said.seeds) if said.seed is None else [said.seed]
    failed = [seed for seed in seeds if failure_of(plan_of(seed)) is not None]
    for seed in failed[:3]:
        print(describe(seed))
    print(f"{len(seeds):,} seeds, {len(failed):,} failed: {failed[:20]}")
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
