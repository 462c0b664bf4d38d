"""Exact coins: integer thresholds on 64-bit draws, and the epsilon those integers really give.

A coin with threshold t shows heads where a uniform 64-bit word is below t: probability t / 2^64, exactly.
Floating point never decides what a holder sends, so nothing leaks through rounding (Mironov 2012); the
epsilon is recomputed from the integers with rational arithmetic and rounded up.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

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
    """e^epsilon to 60 digits (epsilon above 100 counts as 100: no threshold can tell them apart)."""
    return _CONTEXT.exp(min(Decimal(epsilon), Decimal(_LARGEST_EXPONENT)))


def threshold_above(numerator: Decimal, denominator: Decimal) -> int:
    """The smallest threshold whose probability is at least numerator / denominator."""
    scaled = _CONTEXT.divide(_CONTEXT.multiply(numerator, Decimal(WORD)), denominator)
    return int(scaled.to_integral_value(rounding=ROUND_CEILING))


def rounded_up(exact: Fraction) -> float:
    """The smallest float that is at least this number."""
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def log_up(ratio: Fraction) -> float:
    """The smallest float that is surely at least ln(ratio), for a ratio of at least 1."""
    exact = _CONTEXT.ln(_CONTEXT.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    exact = _CONTEXT.add(exact, _SLACK) if ratio != 1 else Decimal(0)
    nearest = float(exact)
    return nearest if Decimal(nearest) >= exact else math.nextafter(nearest, math.inf)
