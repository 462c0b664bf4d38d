"""Tails of the binomial, beta and chi-square distributions: scipy's where it is installed, else the same with numpy alone, which
takes longer.

Continued fractions and series are those of the Digital Library of Mathematical Functions (8.17.22, 8.11.4, 8.9.2).
"""

from __future__ import annotations

import math
from importlib.util import find_spec

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
_TINY = 1e-300
_CLOSE = 1e-14
_MOST_TERMS = 100_000
_MOST_STEPS = 50

HAS_SCIPY = find_spec("scipy") is not None
_log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])


def beta_share(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Floats:
    """The chance that a number with law Beta(a, b) is at most x, float64 of the shape of all three; a, b > 0, 0 < x < 1.

    A binomial count of n trials of chance x is at least k with chance `beta_share(k, n - k + 1, x)`.
    """
    if HAS_SCIPY:
        from scipy.special import betainc

        return np.asarray(betainc(a, b, x))
    a, b, x = (np.asarray(value, dtype=np.float64) for value in np.broadcast_arrays(a, b, x))
    is_upper = x > (a + 1) / (a + b + 2)
    ln_x, ln_rest = np.log(x), np.log1p(-x)
    tail = np.exp(
        _log_beta_share(
            np.where(is_upper, b, a),
            np.where(is_upper, a, b),
            np.where(is_upper, ln_rest, ln_x),
            np.where(is_upper, ln_x, ln_rest),
        )
    )
    return np.where(is_upper, 1.0 - tail, tail)


def log_beta_quantile(a: ArrayLike, b: ArrayLike, share: float) -> Floats:
    """ln of the x with `beta_share(a, b, x)` = share, float64 of the shape of a and b; both at least 1, share below 1/2.

    ln of the share is concave in ln x where b is at least 1, so that Newton's steps come up to the answer from below.
    """
    if HAS_SCIPY:
        from scipy.special import betaincinv

        return np.asarray(np.log(betaincinv(a, b, share)))
    a, b = (np.asarray(value, dtype=np.float64) for value in np.broadcast_arrays(a, b))
    t = np.log(a / (a + b))
    ln_beta = _log_gamma(a) + _log_gamma(b) - _log_gamma(a + b)
    for _ in range(_MOST_STEPS):
        ln_rest = np.log(-np.expm1(t))
        found = _log_beta_share(a, b, t, ln_rest)
        slope = np.exp(a * t + (b - 1) * ln_rest - ln_beta - found)
        step = (math.log(share) - found) / slope
        t = t + step
        if (np.abs(step) <= 1e-9 * np.abs(t)).all():
            break
    return t


def _log_beta_share(a: Floats, b: Floats, ln_x: Floats, ln_rest: Floats) -> Floats:
    """ln of the chance that a number with law Beta(a, b) is at most x, which is not far above a / (a + b)."""
    x = np.exp(ln_x)
    front = a * ln_x + b * ln_rest - (_log_gamma(a) + _log_gamma(b) - _log_gamma(a + b)) - np.log(a)
    c = np.ones_like(x)
    d = 1.0 / _not_zero(1.0 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1.0 / _not_zero(1.0 + even * d), _not_zero(1.0 + even / c)
        value = value * d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1.0 / _not_zero(1.0 + odd * d), _not_zero(1.0 + odd / c)
        value = value * d * c
        if (np.abs(d * c - 1.0) <= _CLOSE).all():
            break
    found: Floats = front + np.log(value)
    return found


def _not_zero(value: Floats) -> Floats:
    return np.where(np.abs(value) < _TINY, _TINY, value)


def chi_square_above(freedom: float, x: float) -> float:
    """The chance that a chi-square number with so many degrees of freedom, at least 1, is above x."""
    if HAS_SCIPY:
        from scipy.special import chdtrc

        return float(chdtrc(freedom, x))
    a, x = freedom / 2, x / 2
    if x <= 0.0:
        return 1.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1.0 / a
        for n in range(1, _MOST_TERMS):
            term *= x / (a + n)
            total += term
            if term <= total * _CLOSE:
                break
        return 1.0 - front * total
    b, c = x + 1 - a, 1.0 / _TINY
    d = value = 1.0 / b
    for n in range(1, _MOST_TERMS):
        b += 2.0
        odd = -n * (n - a)
        d = 1.0 / (odd * d + b or _TINY)
        c = b + odd / c or _TINY
        value *= d * c
        if abs(d * c - 1.0) <= _CLOSE:
            break
    return front * value
