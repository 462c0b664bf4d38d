"""Record the answers about private rows that have left their holders in `holders/released_checks/`, a file for each,
never collected by `gc`.

An answer is whether the private rows of one ingest meet one expectation: a bit that no noise protects. The same answer again
is no new one. Answers add up over all runs of a work folder, as thresholds chosen one after the other find an extreme value.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from ldptree.errors import BudgetError
from storage.objects.object_store import ObjectStore

FOLDER = "holders/released_checks"


def release_checks(objects: ObjectStore, answers: Sequence[str], cap: int) -> None:
    """Keep that these answers leave, before they do. Raises BudgetError as `check_release`, and then keeps nothing; but where
    another run's answers came between, these count as if they had left.
    """
    check_release(objects, answers, cap)
    kept = {answer for answer in answers if objects.create(f"{FOLDER}/{answer}", b"")}
    check_release(objects, answers, cap, kept)


def check_release(
    objects: ObjectStore, answers: Sequence[str], cap: int, kept: Set[str] = frozenset()
) -> None:
    """Raises BudgetError where these answers and those that left before are more than `cap`. Writes nothing.

    `kept`: those of them that were kept just now, and have not left before.
    """
    left = {entry.name.removeprefix(f"{FOLDER}/") for entry in objects.entries(FOLDER)} - kept
    total = len(left | set(answers))
    if total > cap:
        raise BudgetError(
            f"dataset.release_checks: {total - len(left)} answers about private rows would leave their holders, "
            f"{len(left)} have left before, and privacy.max_released_checks = {cap}. Nothing was told. Expect less "
            f"(dataset.expect), raise it to {total}, or leave dataset.release_checks out."
        )
