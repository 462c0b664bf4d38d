"""Draw exact randomness, with its source of bits, coins as integers, and Laplace noise on the integers.

A coin with threshold t shows heads where a uniform 64-bit word is below t: probability t / 2^64, exactly. Floating point never
decides what a holder sends, so nothing leaks through rounding (Mironov 2012); the epsilon is recomputed from the integers with
rational arithmetic and rounded up.

Laplace noise, P(noise = x) ~ exp(-r |x|), is drawn from such coins alone (Canonne, Kamath and Steinke 2020, algorithms 1 and
2). r is a whole number of 2^-32ths, so that the epsilon of a number it is added to is rational: r times how far two holders'
numbers lie apart.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import count
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import ConfigError

WORD = 2**64

# 60 digits: the integers have 20, so 40 are left to be right about which way to round
_CONTEXT = Context(prec=60)
_SLACK = Decimal("1e-45")
# beyond this the thresholds do not move any more (2^64 = e^44.4)
_LARGEST_EXPONENT = 100


def checked_epsilon(epsilon: float) -> float:
    """The epsilon, a positive finite number.

    Raises:
        ConfigError: it is not.
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ConfigError(f"epsilon = {epsilon}: must be a positive, finite number")
    return float(epsilon)


def exp(epsilon: float | Decimal) -> Decimal:
    """Return e^epsilon to 60 digits (epsilon above 100 counts as 100, as no threshold can distinguish them)."""
    return _CONTEXT.exp(min(Decimal(epsilon), Decimal(_LARGEST_EXPONENT)))


def threshold_above(numerator: Decimal, denominator: Decimal) -> int:
    """The smallest threshold whose probability is at least numerator / denominator."""
    scaled = _CONTEXT.divide(_CONTEXT.multiply(numerator, Decimal(WORD)), denominator)
    return int(scaled.to_integral_value(rounding=ROUND_CEILING))


def rounded_up(exact: Fraction) -> float:
    """The smallest float that is at least this number."""
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def left_of(epsilon: float, spent: float) -> float:
    """The largest float that together with what is spent is no more than epsilon, exactly."""
    exact = Fraction(epsilon) - Fraction(spent)
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, -math.inf)


def log_up(ratio: Fraction) -> float:
    """The smallest float that is surely at least ln(ratio), for a ratio of at least 1."""
    exact = _CONTEXT.ln(_CONTEXT.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    exact = _CONTEXT.add(exact, _SLACK) if ratio != 1 else Decimal(0)
    nearest = float(exact)
    return nearest if Decimal(nearest) >= exact else math.nextafter(nearest, math.inf)


_LARGEST = np.uint64(2**64 - 1)
# a child of the seed that no block of words shares
_GENERATOR_KEY = 0x6C6470


class Words:
    """A source of uniform uint64 words. Use one per thread, as blocks are drawn in order and never again.

    Words of a seed are refused (ConfigError) in a process that was forked from the one that made them: there they would repeat.
    """

    def __init__(
        self,
        draw: Callable[[int], NDArray[np.uint64]],
        seed: np.random.SeedSequence | None,
        *,
        is_seeded: bool,
    ):
        self._draw = draw
        self._seed = seed
        self._numbers = count()
        self._process = os.getpid()
        self.is_seeded = is_seeded

    @classmethod
    def system(cls) -> Self:
        """Return words of the operating system's generator (getrandom), the only source that protects anybody."""
        return cls(_system_words, None, is_seeded=False)

    @classmethod
    def seeded(cls, seed: np.random.SeedSequence) -> Self:
        """Return words for a repeatable simulation, from numpy's SFC64, whose stream numpy promises not to change.

        SFC64 is the fastest of numpy's generators (2 ns a word) and passes the usual test batteries, but it is not
        cryptographic: a seeded run protects nobody.
        """
        return cls(np.random.SFC64(seed).random_raw, seed, is_seeded=True)

    def block(self, n: int) -> NDArray[np.uint64]:
        """The next n words, uint64 [n]."""
        self._check_process()
        return self._draw(n)

    def below(self, k: int | NDArray[np.uint64], n: int) -> NDArray[np.uint64]:
        """n values, each exactly uniform on 0 .. k - 1, uint64 [n]; k at most 2^63.

        For k [m], one range a column: uint64 [n, m].
        """
        divisor = np.asarray(k, dtype=np.uint64)
        # words of the last, incomplete run of k values would favour the small ones: they are drawn again
        last = _LARGEST - (_LARGEST % divisor + np.uint64(1)) % divisor
        words = self.block(n * divisor.size).reshape(n, *divisor.shape)
        rejected = words > last
        while rejected.any():
            words[rejected] = self.block(int(rejected.sum()))
            rejected = words > last
        values: NDArray[np.uint64] = words - words // divisor * divisor  # numpy has no fast remainder
        return values

    def generator(self) -> np.random.Generator:
        """A numpy generator for `Mechanism.sample_totals`, apart from the blocks and all other generators of these words."""
        self._check_process()
        if self._seed is None:
            child = np.random.SeedSequence(int.from_bytes(os.urandom(32), "little"))
        else:
            number = next(self._numbers)
            key = (*self._seed.spawn_key, _GENERATOR_KEY, *([number] if number else []))
            child = np.random.SeedSequence(self._seed.entropy, spawn_key=key, pool_size=self._seed.pool_size)
        return np.random.Generator(np.random.PCG64DXSM(child))

    def _check_process(self) -> None:
        if self.is_seeded and os.getpid() != self._process:
            raise ConfigError(
                "words: the coins of a seed belong to the process that made them; here they would repeat. Make new ones in "
                "each process, from a seed of its own: Words.seeded(np.random.SeedSequence([1, number]))"
            )


def _system_words(n: int) -> NDArray[np.uint64]:
    return np.frombuffer(bytearray(os.urandom(8 * n)), dtype=np.uint64)


RATE_UNIT = 2**32
"""Parts of 1 of which the rate r of Laplace noise is a whole number."""
SMALLEST_RATE = 90
"""Smallest rate whose noise fits into 32 bits. Below it, 64 ln 2 2^32 / 89 is over 2^31."""


def check_rate(name: str, rate: int) -> None:
    """Raises ConfigError where a mechanism's Laplace noise has a rate that is too small or too large."""
    if not SMALLEST_RATE <= rate <= 2**40:
        raise ConfigError(
            f"{name}: the rate must be in {SMALLEST_RATE} .. 2^40, found {rate} (epsilon too small or too large?)"
        )


def laplace_variance(rate: int) -> float:
    """2 a / (1 - a)^2 with a = e^-r, r = rate / 2^32."""
    r = rate / RATE_UNIT
    return 2 * math.exp(-r) / math.expm1(-r) ** 2


def laplace_min_entropy(rate: int) -> float:
    """Return a lower bound on bits of chance, as 0 is likeliest, with P = (1 - a) / (1 + a) and a = e^-r."""
    return -math.log2(math.tanh(rate / RATE_UNIT / 2))


def furthest_laplace(rate: int) -> int:
    """Return 44.4 / r, beyond which lies one noise in 2^64 and where a mechanism may cut it off."""
    return math.ceil(Decimal(64) * Decimal(2).ln() * RATE_UNIT / rate)


def draw_laplace(rate: int, n: int, words: Words) -> NDArray[np.int64]:
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
    """Draw P(x) ~ e^(-x / 2^32), int64 [n], by a fraction kept with probability e^-fraction, then whole units."""
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
        going_on = going_on[_exponential_coin(np.full(going_on.size, RATE_UNIT, dtype=np.int64), words)]
        whole[going_on] += 1
    return fraction + RATE_UNIT * whole


def _exponential_coin(x: NDArray[np.int64], words: Words) -> NDArray[np.bool_]:
    """True with probability e^(-x / 2^32), for 0 <= x <= 2^32 (algorithm 1).

    The first round k at which a coin of probability (x / 2^32) / k shows tails is odd with that probability.
    """
    is_odd = np.zeros(x.size, dtype=bool)
    open_places, k = np.arange(x.size), 1
    while open_places.size:
        heads = words.below(k * RATE_UNIT, open_places.size) < x[open_places].astype(np.uint64)
        if k % 2:
            is_odd[open_places[~heads]] = True
        open_places, k = open_places[heads], k + 1
    return is_odd
