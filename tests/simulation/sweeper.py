"""Who sweeps a work folder with `ldptree gc`, alone in a folder, beside runs in a bucket; and what may not be swept away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flows.work_folder import garbage
from ldptree.errors import ConfigError
from simulation.bucket import Bucket
from simulation.losses import needed
from simulation.schedule import Violation

SWEEPS, TRIES = 3, 40
MACHINE = "sweeper"


@dataclass
class Sweeper:
    """Sweeps a house. `n_kept`: how many runs it is about to keep; of those that end meanwhile nothing is known."""

    house: Any
    n_kept: int = 0

    def patched(self, patch) -> None:
        """What is deleted is looked at before; a bucket is opened as the house does."""
        delete = garbage._delete
        patch.setattr(
            garbage, "_delete", lambda store, found: self._check_needed(found) or delete(store, found)
        )
        if self._is_bucket:
            patch.setattr(garbage, "open_existing", lambda _: self.house.open(MACHINE))

    def act(self) -> None:
        """Sweep three times, in a folder as soon as no run is going on."""
        swept = 0
        for _ in range(TRIES):
            before = self._released()
            try:
                self.sweep(keep=0 if self._is_bucket else swept % 2)
                swept += 1
            except (ConfigError, OSError):  # a run is going on, or the network failed
                self.house.schedule.give_way()
            if not before <= self._released():
                raise Violation("reports of a release are gone after `gc`")
            if swept == SWEEPS:
                return

    def sweep(self, keep: int) -> None:
        """Sweep once. In a bucket so much time has gone by that nothing is too young, though a run may be going on."""
        self.n_kept = keep
        if self._is_bucket:
            self.house.world.clock += 2 * garbage.GRACE.total_seconds()
        garbage.collect_garbage(self.house.root, keep=keep, dry_run=False)

    @property
    def _is_bucket(self) -> bool:
        return isinstance(self.house.world, Bucket)

    def _released(self) -> set[str]:
        with self.house.schedule.standing_still():
            objects = self.house.open(MACHINE).objects
            names = [entry.name for entry in objects.entries("curator/reports", deep=True)]
            return {
                name for name in names if name.endswith(".parquet") and b"simulation" not in objects.get(name)
            }

    def _check_needed(self, found) -> None:
        with self.house.schedule.standing_still():
            kept = needed(self.house.open(MACHINE), self.n_kept)
        lost = {one for one in kept for name in found.doomed if f"{one}/".startswith(f"{name}/")}
        if lost:
            raise Violation(f"`gc` deletes what is needed: {sorted(lost)}")
