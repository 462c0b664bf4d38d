"""Which answers about private rows have left their holders: `holders/released_checks/`, a file for each, never collected by `gc`.

An answer is whether the private rows of one ingest meet one expectation: a bit that no noise protects. The same answer again
is no new one. Answers add up over all runs of a work folder, as thresholds chosen one after the other find an extreme value.
"""

from __future__ import annotations

import fcntl
from collections.abc import Sequence

from ldptree.errors import BudgetError
from storage.holders.private_files import append_privately, make_private
from storage.store import Store


def release_checks(store: Store, answers: Sequence[str], cap: int) -> None:
    """Keep that these answers leave, before they do. Raises BudgetError as `check_release`, and then keeps nothing."""
    folder = store.zone("holders") / "released_checks"
    folder.mkdir(parents=True, exist_ok=True)
    make_private(store.zone("holders"), folder)
    with append_privately(folder / ".lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        check_release(store, answers, cap)
        for answer in answers:
            store.write_once(folder / answer, lambda aside: aside.touch())


def check_release(store: Store, answers: Sequence[str], cap: int) -> None:
    """Raises BudgetError where these answers and those that left before are more than `cap`. Writes nothing."""
    folder = store.zone("holders") / "released_checks"
    left = {path.name for path in folder.glob("[!.]*")}
    total = len(left | set(answers))
    if total > cap:
        raise BudgetError(
            f"dataset.release_checks: {total - len(left)} answers about private rows would leave their holders, "
            f"{len(left)} have left before, and privacy.max_released_checks = {cap}. Nothing was told. Expect less "
            f"(dataset.expect), raise it to {total}, or leave dataset.release_checks out."
        )
