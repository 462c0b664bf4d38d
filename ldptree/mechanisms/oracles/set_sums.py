"""Draw how many of many random sets hold each element, without drawing the sets. A device of simulations, by which
subset selection (`subset`) and signed subsets draw their totals.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# binomial draws that take as long as a report, at least
_DRAWS_A_REPORT = 30
_FEW_DRAWS = 2**16


def is_cheaper(k: int, size: int, n: int) -> bool:
    """Return whether `sample_others` over k elements takes less than n sets of this size, drawn one by one."""
    return k * k * size <= max(_FEW_DRAWS, _DRAWS_A_REPORT * n)


def sample_others(
    with_own: NDArray[np.int64], without: NDArray[np.int64], size: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Count the sets that hold each element as another's. Sets are uniform among those with, or without, the owner's.

    Elements are taken in turn. Of the sets that still lack r of the m elements to come, each has the next one with
    probability r / m, whatever it has so far; so the number of those that have it is binomial, and only how many sets lack
    how many elements is kept, not the sets. The law is exact, up to numpy's sampler.

    Args:
        with_own: how many sets hold each element as its owner's, and size - 1 others, int64 [k].
        without: how many hold `size` others and not the owner's, int64 [k].
        size: the elements of a set, 1 to k - 1.

    Returns:
        int64 [k], the owner's own not counted.
    """
    k = with_own.size
    lacking = np.arange(size + 1)
    ahead = np.zeros((k, size + 1), dtype=np.int64)  # sets whose owner's element is still to come
    ahead[:, size], ahead[:, size - 1] = without, with_own
    passed = np.zeros(size + 1, dtype=np.int64)
    counts = np.zeros(k, dtype=np.int64)
    for element in range(k):
        to_come = k - element
        groups = np.vstack([passed, ahead[element + 1 :]])
        others = np.full((len(groups), 1), to_come - 1)
        others[0] = to_come
        # a set lacks no more than there are to come: where a group is empty the share is of no set
        having = generator.binomial(groups, np.minimum(lacking / np.maximum(others, 1), 1.0))
        counts[element] = having.sum()
        groups -= having
        groups[:, :-1] += having[:, 1:]
        passed, ahead[element + 1 :] = groups[0] + ahead[element], groups[1:]
    return counts
