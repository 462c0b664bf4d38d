"""Laplace noise on the integers, P(noise = x) ~ exp(-r |x|), drawn exactly from integer coins alone.

Canonne, Kamath, Steinke 2020, algorithms 1 and 2: nothing leaks through floating point. r is a whole number of 2^-32ths, so
the epsilon of a number it is added to is rational: r times how far two holders' numbers lie apart. What it is added to is in
the mechanisms.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from ldptree.oracles.words import Words

UNIT = 2**32
"""r is a whole number of these parts of 1."""
SMALLEST_RATE = 90
"""Below, noise would not fit into 32 bits: 64 ln 2 2^32 / 89 is over 2^31."""


def variance(rate: int) -> float:
    """2 a / (1 - a)^2 with a = e^-r, r = rate / 2^32."""
    r = rate / UNIT
    return 2 * math.exp(-r) / math.expm1(-r) ** 2


def min_entropy(rate: int) -> float:
    """Bits of chance, at least: no number is likelier than 0, of which P is (1 - a) / (1 + a) with a = e^-r."""
    return -math.log2(math.tanh(rate / UNIT / 2))


def furthest(rate: int) -> int:
    """44.4 / r: one noise in 2^64 lies so far out, where a mechanism may cut it off."""
    return math.ceil(Decimal(64) * Decimal(2).ln() * UNIT / rate)


def draw(rate: int, n: int, words: Words) -> NDArray[np.int64]:
    """Exact discrete Laplace variables, int64 [n] (algorithm 2)."""
    noise = np.empty(n, dtype=np.int64)
    open_places = np.arange(n)
    while open_places.size:
        size = open_places.size
        magnitude = _geometric(size, words) // rate
        is_negative = (words.block(size) >> np.uint64(63)).astype(bool)
        drawn = np.where(is_negative, -magnitude, magnitude)
        is_kept = ~(is_negative & (magnitude == 0))  # zero has one sign only
        noise[open_places[is_kept]] = drawn[is_kept]
        open_places = open_places[~is_kept]
    return noise


def _geometric(n: int, words: Words) -> NDArray[np.int64]:
    """P(x) ~ e^(-x / 2^32), int64 [n]: a fraction kept with probability e^-fraction, and whole units after it."""
    fraction = np.empty(n, dtype=np.int64)
    open_places = np.arange(n)
    while open_places.size:
        drawn = (words.block(open_places.size) >> np.uint64(32)).astype(np.int64)
        is_kept = _exponential_coin(drawn, words)
        fraction[open_places[is_kept]] = drawn[is_kept]
        open_places = open_places[~is_kept]
    whole = np.zeros(n, dtype=np.int64)
    going_on = np.arange(n)
    while going_on.size:
        going_on = going_on[_exponential_coin(np.full(going_on.size, UNIT, dtype=np.int64), words)]
        whole[going_on] += 1
    return fraction + UNIT * whole


def _exponential_coin(x: NDArray[np.int64], words: Words) -> NDArray[np.bool_]:
    """True with probability e^(-x / 2^32), for 0 <= x <= 2^32 (algorithm 1).

    The first round k at which a coin of probability (x / 2^32) / k shows tails is odd with that probability.
    """
    is_odd = np.zeros(x.size, dtype=bool)
    open_places, k = np.arange(x.size), 1
    while open_places.size:
        heads = words.below(k * UNIT, open_places.size) < x[open_places].astype(np.uint64)
        if k % 2:
            is_odd[open_places[~heads]] = True
        open_places, k = open_places[heads], k + 1
    return is_odd
