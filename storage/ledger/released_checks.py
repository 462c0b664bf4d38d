"""Record the answers about private rows that have left their holders in the holders' database.

An answer is whether the private rows of one ingest meet one expectation: a bit that no noise protects. The same answer again
is no new one. Answers add up over all runs of a work folder, as thresholds chosen one after the other find an extreme value.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldptree.errors import BudgetError
from storage.ledger.database import Database
from storage.ledger.schema import RELEASED_CHECKS
from storage.ledger.transactions import Snapshot
from storage.objects.object_store import ObjectStore


def release_checks(objects: ObjectStore, answers: Sequence[str], cap: int) -> None:
    """Keep that these answers leave, before they do. Raises BudgetError as `check_release`, and then keeps nothing."""
    with Database(objects).writing() as kept:
        for answer in _new(kept, answers, cap):
            kept.insert(RELEASED_CHECKS, answer=answer)


def check_release(objects: ObjectStore, answers: Sequence[str], cap: int) -> None:
    """Raises BudgetError where these answers and those that left before are more than `cap`. Writes nothing."""
    with Database(objects).reading() as kept:
        _new(kept, answers, cap)


def _new(kept: Snapshot, answers: Sequence[str], cap: int) -> list[str]:
    """Return those of some answers that have not left before. Raises BudgetError."""
    left = {row.answer for row in kept.rows(RELEASED_CHECKS)}
    new = [answer for answer in dict.fromkeys(answers) if answer not in left]
    total = len(left) + len(new)
    if total > cap:
        raise BudgetError(
            f"dataset.release_checks: {len(new)} answers about private rows would leave their holders, "
            f"{len(left)} have left before, and privacy.max_released_checks = {cap}. Nothing was told. Expect less "
            f"(dataset.expect), raise it to {total}, or leave dataset.release_checks out."
        )
    return new
