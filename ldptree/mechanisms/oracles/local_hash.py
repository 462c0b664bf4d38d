"""Optimised local hashing, where a report is a hash and a bucket, 16 bytes whatever k is (Wang, Blocki, Li, Jha 2017).

The holder draws a hash h(x) = bucket of (a x^2 + b x + c mod P), P = 2^31 - 1 a prime, and sends a, b, c and the bucket
of its value, told by generalised randomised response over the g = round(e^eps) + 1 buckets. A report supports every
value that its hash maps to its bucket. Privacy: eps-LDP given any hash, as the hash is drawn apart from the value; the
worst likelihood ratio is that of the response, and the worst hash, one that parts two values, reaches it.

With a, b, c uniform below P the hashed numbers of any three values are independent and uniform, so unbiased totals and
the variance of any linear form need no ideal hash. Buckets differ in mass by 1 / P: with s_j = their masses and
l = P(lie), p = 1 - l + l / g and q = (1 - l) sum s_j^2 + l / g, exactly. Supports of two values would be independent
with equal masses; as it is, their covariance is below g / P^2, far below the rounding of a float. Noise variance as
`oue`: n q (1 - q) / (p - q)^2 + c_k (1 - p - q) / (p - q), about 4 n e^eps / (e^eps - 1)^2 + c_k.

There are at most 2^15 buckets: beyond epsilon 10.4 the report is as private as ever, and no longer the best of its kind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ldptree.coins import WORD, Words, checked_epsilon, exp
from ldptree.compiled import compiled
from ldptree.errors import ConfigError
from ldptree.mechanisms.mechanism import Form, PoisoningBound, checked_thresholds
from ldptree.mechanisms.oracles.grr import Grr
from ldptree.mechanisms.oracles.oracle import FrequencyOracle

PRIME = 2**31 - 1
MOST_BUCKETS = 2**15

# holders whose coins are drawn together: the arrays stay in the cache
_BLOCK = 2**14
# reports that walk through the values together: their hashes stay in the cache
_WALKED = 1024


@dataclass(frozen=True)
class Olh(FrequencyOracle):
    """Optimised local hashing over `buckets`, with P(lie) = lie / 2^64. Reports are uint32 [n, 4] (a, b, c, bucket).

    Raises:
        ConfigError: more than 2^31 - 1 values, not 2 to 2^15 buckets, or lie is not in 1 .. 2^64 - 1.
    """

    name: ClassVar[str] = "olh"
    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.uint32)
    form: ClassVar[Form] = "hash"

    buckets: int
    lie: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k > PRIME:
            raise ConfigError(f"olh: an alphabet of {self.k} values; it must have at most 2^31 - 1")
        if not 2 <= self.buckets <= MOST_BUCKETS:
            raise ConfigError(f"olh: {self.buckets} buckets; there must be 2 to 2^15")
        if not 1 <= self.lie < WORD:
            raise ConfigError(
                f"olh: the lie threshold must be in 1 .. 2^64 - 1, found {self.lie} (epsilon too small?)"
            )

    @classmethod
    def for_budget(cls, epsilon: float, n_cells: int, n_classes: int) -> Self:
        """The oracle that spends at most epsilon."""
        buckets = min(round(exp(checked_epsilon(epsilon))) + 1, MOST_BUCKETS)
        return cls(n_cells, n_classes, buckets, Grr.for_values(epsilon, buckets).lie)

    @classmethod
    def from_thresholds(cls, n_cells: int, n_classes: int, thresholds: Mapping[str, int]) -> Self:
        """The oracle with these integers."""
        return cls(n_cells, n_classes, *checked_thresholds(cls.name, thresholds, ("buckets", "lie")))

    @property
    def thresholds(self) -> dict[str, int]:
        """Return the integers that define it, the number of buckets and the coin of a lie."""
        return {"buckets": self.buckets, "lie": self.lie}

    @cached_property
    def _response(self) -> Grr:
        """Mechanism that reports the bucket."""
        return Grr.of_values(self.buckets, lie=self.lie)

    @cached_property
    def _edges(self) -> NDArray[np.uint32]:
        """Return the edges of buckets, uint32 [buckets + 1]. Bucket j goes from edge j to before edge j + 1."""
        return (-(-np.arange(self.buckets + 1) * PRIME // self.buckets)).astype(np.uint32)

    @cached_property
    def _collision(self) -> Fraction:
        """P(two values share a bucket)."""
        wide = PRIME % self.buckets
        width = PRIME // self.buckets
        return Fraction(wide * (width + 1) ** 2 + (self.buckets - wide) * width**2, PRIME**2)

    @cached_property
    def p(self) -> float:
        """P(a report supports its holder's value)."""
        return self._response.p

    @cached_property
    def q(self) -> float:
        """P(a report supports another given value)."""
        lie = Fraction(self.lie, WORD)
        return float((1 - lie) * self._collision + lie / self.buckets)

    @cached_property
    def gap(self) -> float:
        """p - q, from the integers."""
        return float(Fraction(WORD - self.lie, WORD) * (1 - self._collision))

    @property
    def epsilon(self) -> float:
        """The epsilon of the integers, rounded up."""
        return self._response.epsilon

    @property
    def min_entropy(self) -> float:
        """Of the three numbers of a hash, and of the response."""
        return 3 * math.log2(PRIME) + self._response.min_entropy

    @property
    def report_shape(self) -> tuple[int, ...]:
        """a, b, c and the bucket."""
        return (4,)

    def randomize(self, values: NDArray[np.int64], words: Words) -> NDArray[np.uint32]:
        """Draw a hash for each holder, and its value's bucket by generalised randomised response, uint32 [n, 4]."""
        values = self.checked(values)
        reports = np.empty((values.size, 4), dtype=np.uint32)
        for start in range(0, values.size, _BLOCK):
            block = reports[start : start + _BLOCK]
            block[:, :3] = words.below(PRIME, block[:, :3].size).reshape(-1, 3)
            buckets = self._buckets(block[:, :3], values[start : start + _BLOCK])
            block[:, 3] = self._response.randomize(buckets, words)
        return reports

    def _buckets(self, hashes: NDArray[np.uint32], values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bucket to which each hash [n, 3] or [n, 1, 3] maps the values [n] or [k]."""
        a, b, c = (hashes[..., i].astype(np.uint64) for i in range(3))
        x = values.astype(np.uint64)
        prime = np.uint64(PRIME)
        hashed = (a * (x * x % prime) + b * x + c) % prime  # below 2^63
        buckets: NDArray[np.int64] = (hashed * np.uint64(self.buckets) // prime).astype(np.int64)
        return buckets

    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """a, b and c are below P, the bucket is one of g."""
        reports = self._shaped(reports)
        valid: NDArray[np.bool_] = reports[:, 3] < self.buckets
        for i in range(3):
            valid &= reports[:, i] < PRIME
        return valid

    @property
    def _honest(self) -> str:
        return f"three numbers below {PRIME} and one below {self.buckets}"

    def supports(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """A report supports the values that its hash maps to its bucket."""
        reports = self._shaped(reports)
        supported: NDArray[np.bool_] = (
            self._buckets(reports[:, None, :3], np.arange(self.k)) == reports[:, 3, None]
        )
        return supported

    @property
    def form_size(self) -> int:
        """Buckets of a hash."""
        return self.buckets

    @property
    def law_size(self) -> int:
        """The buckets, for one hash."""
        return self.buckets

    def law(self, value: int, a: int = 0, b: int | None = None, c: int = 0) -> dict[bytes, Fraction]:
        """Return P(packed report | value, hash) of g reports.

        Hashes are too many to go through, and need not be: each renames or joins buckets. Without a hash given it is
        one that maps as many values as there are buckets to buckets of their own, the worst there is.
        """
        hashed = (a, PRIME // self.buckets + 1 if b is None else b, c)
        outputs = np.empty((self.buckets, 4), dtype=self.dtype)
        outputs[:, :3] = hashed
        outputs[:, 3] = np.arange(self.buckets)
        chances = self._response.law(int(self._buckets(outputs[:1, :3], np.array([value]))[0]))
        return dict(zip((o.tobytes() for o in self.pack(outputs)), chances.values(), strict=True))

    def _count(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        counts = np.zeros(self.k, dtype=np.int64)
        _count_supports(np.ascontiguousarray(reports), self._edges, counts)
        return counts

    def poisoning_bound(self, n: int) -> PoisoningBound:
        """A dishonest holder may choose a hash that maps every value to its bucket (a = b = 0), and shift every total."""
        return self._bound_of_one(n, totals_at_once=self.k)


@compiled
def _count_supports(reports, edges, counts):  # type: ignore[no-untyped-def]
    """Add to counts, int64 [k], the reports uint32 [n, 4] that support each value.

    A block of reports walks through the values together. A polynomial's next value is a sum, h(x + 1) = h(x) + d(x) with
    d(x + 1) = d(x) + 2 a, so there is no multiplication, and the loop over reports becomes vector instructions of 32 bits.
    """
    prime = np.uint32(2**31 - 1)
    unit = np.uint32(1)
    zero = np.uint32(0)
    hashed = np.empty(_WALKED, dtype=np.uint32)
    step = np.empty(_WALKED, dtype=np.uint32)
    twice = np.empty(_WALKED, dtype=np.uint32)
    low = np.empty(_WALKED, dtype=np.uint32)
    high = np.empty(_WALKED, dtype=np.uint32)
    for start in range(0, reports.shape[0], _WALKED):
        size = min(_WALKED, reports.shape[0] - start)
        for i in range(size):
            a = reports[start + i, 0]
            first = np.uint32(a + reports[start + i, 1])
            hashed[i] = reports[start + i, 2]
            step[i] = np.uint32(first - prime) if first >= prime else first
            first = np.uint32(a + a)
            twice[i] = np.uint32(first - prime) if first >= prime else first
            low[i] = edges[reports[start + i, 3]]
            high[i] = edges[reports[start + i, 3] + unit]
        for x in range(counts.size):
            supported = zero
            for i in range(size):
                here = hashed[i]
                supported = np.uint32(supported + (unit if (low[i] <= here) & (here < high[i]) else zero))
                there = np.uint32(here + step[i])
                hashed[i] = np.uint32(there - prime) if there >= prime else there
                there = np.uint32(step[i] + twice[i])
                step[i] = np.uint32(there - prime) if there >= prime else there
            counts[x] += np.int64(supported)
