"""Smooth figures that can only get better with more people or a larger epsilon, as a larger collection may ask some, or
look at fewer cells.

Simulated figures rise and fall by chance, and by where a question gets more cells; a verdict that follows them would turn back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

TOLERANCE = 1e-6
"""Of the range of the values, at which they no longer move."""
MOST_STEPS = 1_000


def rise(values: Floats) -> Floats:
    """Return the nearest values by least squares that fall along neither axis of [n, m], by isotonic regressions along
    either in turn, with the projections of Dykstra and Boyle (1986).
    """
    risen = np.asarray(values, dtype=np.float64)
    close = TOLERANCE * (float(np.ptp(risen)) + 1e-300)
    left = [np.zeros_like(risen), np.zeros_like(risen)]
    for _ in range(MOST_STEPS):
        before = risen
        for axis in (0, 1):
            wanted = risen + left[axis]
            risen = _rise_along(wanted, axis)
            left[axis] = wanted - risen
        if np.abs(risen - before).max() <= close:
            break
    return np.asarray(np.maximum.accumulate(risen, axis=0))  # what the last step has left undone


def fall(values: Floats) -> Floats:
    """The smallest value of [n, m] so far along both axes."""
    return np.asarray(np.minimum.accumulate(np.minimum.accumulate(values, axis=0), axis=1))


def _rise_along(values: Floats, axis: int) -> Floats:
    from sklearn.isotonic import isotonic_regression

    return np.apply_along_axis(isotonic_regression, axis, values)
