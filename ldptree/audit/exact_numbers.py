"""What the exact half of an audit needs to know of a label that is a number: the worst ratio, and reports against their law.

The bits of the cell are gone through like every oracle's; the label's noise is on the integers, where the worst ratio is that of
the sensitivity. The two are drawn apart, so their epsilons add up, and a report's law is the product. Which sizes can be gone
through, and what is done with a misfit, is in `audit_law`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ldptree.coins import RATE_UNIT, rounded_up
from ldptree.mechanisms.number_response import NumberResponse

# noise further out than so many scales, or whole numbers, is one symbol
_FAR, _MOST = 12, 2**16
# noise is told apart in so many stretches, and by its two lowest binary digits
_STRETCHES = 8


def worst_ratio(mechanism: NumberResponse, epsilon_of_bits: float) -> float:
    """Its epsilon, rounded up, where the bits' is known: rate times steps more, for labels at the two ends of the range.

    That is exact, also where labels are cut off: P(label y) is proportional to e^(-rate |y - truth|), where the last y stands
    for all further out, and beyond both truths the ratio reaches e^(rate |truth - truth'|).
    """
    return rounded_up(Fraction(epsilon_of_bits) + Fraction(mechanism.steps * mechanism.rate, RATE_UNIT))


def values_of(mechanism: NumberResponse) -> list[int]:
    """The values whose reports are held against the law: each cell with the ends, the first step and the middle; outside."""
    S = mechanism.steps
    steps = sorted({0, 1, S // 2, S})
    return [cell * (S + 1) + step for cell in range(mechanism.n_cells) for step in steps] + [
        mechanism.n_values - 1
    ]


def against_law(
    mechanism: NumberResponse,
    value: int,
    reports: NDArray[np.uint8],
    laws: Sequence[dict[bytes, Fraction]],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Counts and chances of (bits, stretch and lowest digits of the label's noise); `laws` are those of the bits."""
    cells, steps = mechanism.cells_and_parts(np.array([value]))
    law = laws[int(cells[0])]
    labels = np.ascontiguousarray(reports[:, :4]).view("<i4")[:, 0].astype(np.int64)
    symbol, of_noise = _noise(mechanism.rate, labels - int(steps[0]))
    known = {output: place for place, output in enumerate(law)}
    place = np.array([known[bits.tobytes()] for bits in reports[:, 4:]], dtype=np.int64)
    chances = np.outer([float(chance) for chance in law.values()], of_noise).ravel()
    return np.bincount(of_noise.size * place + symbol, minlength=chances.size), chances


def _noise(rate: int, noise: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The symbol of each noise, and the chance of each symbol: stretches of equal chance, and the noise modulo 4."""
    r = rate / RATE_UNIT
    far = min(math.ceil(_FAR / r), _MOST)
    whole = np.arange(-far, far + 1)
    a = math.exp(-r)
    chance = a ** np.abs(whole) * -math.expm1(-r) / (1 + a)
    chance[[0, -1]] = a**far / (1 + a)
    stretch = np.minimum((chance.cumsum() - chance / 2) * _STRETCHES, _STRETCHES - 1).astype(np.int64)
    symbols = 4 * stretch + whole % 4
    chances = np.bincount(symbols, weights=chance, minlength=4 * _STRETCHES).astype(np.float64)
    return symbols[np.clip(noise, -far, far) + far], chances
