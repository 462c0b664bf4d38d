"""Hash 64-bit values into public coins that are the same in every work folder and on every machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

GOLDEN = 0x9E3779B97F4A7C15
"""The step of splitmix64, which is the golden ratio in 64 bits."""


def mixed(values: NDArray[np.uint64], key: int) -> NDArray[np.uint64]:
    """Return a 64-bit hash of 64-bit values under a key, as splitmix64 does (Steele, Lea and Flood, 2014)."""
    with np.errstate(over="ignore"):
        z = values + np.uint64((key + GOLDEN) % 2**64)
        shifted = z >> np.uint64(30)  # in place from here: on millions of values memory is what takes time
        z ^= shifted
        z *= np.uint64(0xBF58476D1CE4E5B9)
        z ^= np.right_shift(z, np.uint64(27), out=shifted)
        z *= np.uint64(0x94D049BB133111EB)
        z ^= np.right_shift(z, np.uint64(31), out=shifted)
    return z
