"""Generalised randomised response, where a report is one value of k (HistOfTree appendix A.1, eqs 16 and 17, with eps /
2 there, as the label takes the other half).

With probability l = k / (e^eps + k - 1) the holder lies, and a lie is uniform over all k values, the true one
included; so p = e^eps / (e^eps + k - 1) and q = 1 / (e^eps + k - 1). Privacy: eps-LDP, the worst likelihood
ratio is p / q.
Noise variance of one total: n q (1 - q) / (p - q)^2 + c_k (1 - p - q) / (p - q); totals are correlated
(their sum is n), so sums of totals need `linear_variance`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.coins import WORD, Words, checked_epsilon, exp, log_up, threshold_above
from ldptree.errors import ConfigError
from ldptree.mechanisms.mechanism import Form, PoisoningBound, checked_thresholds
from ldptree.mechanisms.oracles.oracle import FrequencyOracle

# holders whose coins are drawn together: the arrays stay in the cache
_BLOCK = 2**16


@dataclass(frozen=True)
class Grr(FrequencyOracle):
    """Generalised randomised response with P(lie) = lie / 2^64. Reports are uint32 [n].

    Raises:
        ConfigError: lie is not in 1 .. 2^64 - 1.
    """

    name: ClassVar[str] = "grr"
    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.uint32)
    form: ClassVar[Form] = "value"

    lie: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.lie < WORD:
            raise ConfigError(
                f"grr: the lie threshold must be in 1 .. 2^64 - 1, found {self.lie} (epsilon too small?)"
            )

    @classmethod
    def for_budget(cls, epsilon: float, n_cells: int, n_classes: int) -> Self:
        """The oracle that spends at most epsilon."""
        e = exp(checked_epsilon(epsilon))
        k = n_cells * n_classes + 1
        oracle = cls(n_cells, n_classes, threshold_above(Decimal(k), e + k - 1))
        while oracle.epsilon > epsilon:  # only where rounding up the logarithm passed the claim
            oracle = cls(n_cells, n_classes, oracle.lie + 1)
        return oracle

    @classmethod
    def from_thresholds(cls, n_cells: int, n_classes: int, thresholds: Mapping[str, int]) -> Self:
        """The oracle with these integers."""
        return cls(n_cells, n_classes, *checked_thresholds(cls.name, thresholds, ("lie",)))

    @property
    def thresholds(self) -> dict[str, int]:
        """The integers that define it."""
        return {"lie": self.lie}

    @cached_property
    def p(self) -> float:
        """P(a report supports its holder's value)."""
        return float(Fraction(WORD - self.lie, WORD) + Fraction(self.lie, WORD * self.k))

    @cached_property
    def q(self) -> float:
        """P(a report supports another given value)."""
        return float(Fraction(self.lie, WORD * self.k))

    @cached_property
    def gap(self) -> float:
        """p - q, from the integers."""
        return float(Fraction(WORD - self.lie, WORD))

    @cached_property
    def epsilon(self) -> float:
        """The epsilon of the integers, rounded up."""
        return log_up(Fraction(self.lie + self.k * (WORD - self.lie), self.lie))

    @property
    def min_entropy(self) -> float:
        """The own value is the likeliest report."""
        return -math.log1p(-self.lie * (self.k - 1) / (WORD * self.k)) / math.log(2)

    @property
    def report_shape(self) -> tuple[int, ...]:
        """One number."""
        return ()

    def randomize(self, values: NDArray[np.int64], words: Words) -> NDArray[np.uint32]:
        """Keep the value or lie, by a coin for each holder, uint32 [n]."""
        reports = self.checked(values).astype(np.uint32)
        threshold = np.uint64(self.lie)
        for start in range(0, reports.size, _BLOCK):
            block = reports[start : start + _BLOCK]
            liars = np.flatnonzero(words.block(block.size) < threshold)
            block[liars] = words.below(self.k, liars.size)
        return reports

    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """A report is below k."""
        valid: NDArray[np.bool_] = self._shaped(reports) < self.k
        return valid

    @property
    def _honest(self) -> str:
        return f"a number below {self.k}"

    def supports(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """A report supports itself."""
        supported: NDArray[np.bool_] = self._shaped(reports)[:, None] == np.arange(self.k)
        return supported

    @property
    def n_supported(self) -> int:
        """Itself."""
        return 1

    @property
    def law_size(self) -> int:
        """k."""
        return self.k

    def law(self, value: int) -> dict[bytes, Fraction]:
        """k reports."""
        lie = Fraction(self.lie, WORD)
        outputs = self.pack(np.arange(self.k, dtype=self.dtype))
        return {output.tobytes(): (1 - lie) * (r == value) + lie / self.k for r, output in enumerate(outputs)}

    def _count(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        return np.bincount(reports.astype(np.int64), minlength=self.k)

    def sample_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """The truthful of each value are binomial, the lies one uniform multinomial (a simulation device)."""
        counts = np.asarray(counts, dtype=np.int64)
        truthful = generator.binomial(counts, self.gap)
        n_lies = int(counts.sum() - truthful.sum())
        totals: NDArray[np.int64] = truthful + generator.multinomial(n_lies, np.full(self.k, 1 / self.k))
        return totals

    def variance_of_sums(
        self,
        *,
        weights: ArrayLike,
        squares: ArrayLike,
        weighted: ArrayLike,
        weighted_squares: ArrayLike,
        n: float,
    ) -> NDArray[np.float64]:
        """Exact, covariances between values included."""
        # a holder with value v adds a_R / (p - q), R the report: mean q A1 + (p - q) a_v, mean square
        # q A2 + (p - q) a_v^2, where A1, A2 are the sums of a and of a^2
        weights, squares, weighted, weighted_squares = (
            np.asarray(a, dtype=np.float64) for a in (weights, squares, weighted, weighted_squares)
        )
        gap, q = self.gap, self.q
        from_lies = n * q * (squares - q * weights**2) / gap**2
        # 1 - gap = lie / 2^64, which keeps its digits where the gap is near 1
        from_values = (self.lie / WORD * weighted_squares - 2 * q * weights * weighted) / gap
        variance: NDArray[np.float64] = from_lies + from_values
        return variance

    def poisoning_bound(self, n: int) -> PoisoningBound:
        """Bound the effect of one report, which supports one value, and so can raise one total and lower another."""
        return self._bound_of_one(n, totals_at_once=2)
