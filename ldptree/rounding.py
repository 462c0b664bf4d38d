"""Numbers that come out the same on every processor.

Libraries of linear algebra pick their code by the processor, and with it the order in which they add up: the last digits of what
they return differ from one machine to the next. What is published is rounded, so that the same rows give the same question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BITS = 30
"""Bits of a number that are kept, for nine decimal digits."""


def round_digits(values: Any) -> NDArray[np.float64]:
    """Each number rounded to `BITS` significant bits, float64 of the same shape."""
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    rounded: NDArray[np.float64] = np.ldexp(np.rint(np.ldexp(mantissa, BITS)), exponent - BITS)
    return rounded
