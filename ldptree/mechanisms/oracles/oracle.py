"""The interface of a frequency oracle, for a locally private report of one value of k and exact sums of many reports.

One oracle, one file beside this one; the registry is in the package.

Notation: p = P(a report supports its holder's value), q = P(it supports any other given value), N~ = unbiased totals.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.coins import Words
from ldptree.errors import DataError
from ldptree.mechanisms.mechanism import JOINT, Mechanism, MechanismDescription, PoisoningBound

# reports that `sample_totals` holds at once
_DRAWN_BYTES = 2**23


@dataclass(frozen=True)
class FrequencyOracle(Mechanism):
    """A frequency oracle over the k = L C + 1 values of L cells and C labels, or over any k values (`for_values`).

    The joint report: cell and label are one value, and the whole epsilon goes on it, so that one report is eps-LDP in (x, y)
    together. The papers send cell and label apart (LPCT eqs 5 and 6, each with half of epsilon), at 40 / eps^2 of noise
    variance a holder for a cell's margin A = (class 1) - (cell) / 2; the joint report with oue has
    2 e^eps / (e^eps - 1)^2, 1.8 instead of 40 at epsilon 1.
    """

    is_joint: ClassVar[bool] = True
    carries_residuals: ClassVar[bool] = True
    sums_values: ClassVar[bool] = True
    fewest_classes: ClassVar[int] = 1

    @classmethod
    def for_values(cls, epsilon: float, k: int) -> Self:
        """The oracle over k values without cells and labels that spends at most epsilon."""
        return cls.for_budget(epsilon, k - 1, 1)

    @classmethod
    def of_values(cls, k: int, **thresholds: int) -> Self:
        """The oracle over k such values with these integers, as `thresholds` gives them."""
        return cls.from_thresholds(k - 1, 1, thresholds)

    @property
    def full_name(self) -> str:
        """Such as "joint oue"."""
        return f"{JOINT} {self.name}"

    @property
    def raw_size(self) -> int:
        """One count of supporting reports a value."""
        return self.k

    @property
    @abstractmethod
    def p(self) -> float:
        """P(a report supports its holder's value)."""

    @property
    @abstractmethod
    def q(self) -> float:
        """P(a report supports another given value)."""

    @property
    @abstractmethod
    def gap(self) -> float:
        """p - q, from the integers (not from the rounded p and q)."""

    @property
    @abstractmethod
    def report_shape(self) -> tuple[int, ...]:
        """Shape of the numbers in a report; () where it is one."""

    @property
    def report_bytes(self) -> int:
        """Size of one report as it is packed."""
        return self.dtype.itemsize * math.prod(self.report_shape)

    def pack(self, reports: NDArray[Any]) -> NDArray[np.uint8]:
        """Return the canonical bytes of each report, its numbers little-endian, uint8 [n, report_bytes].

        Raises:
            DataError: the reports are not of this oracle's type and shape.
        """
        return super().pack(self._shaped(reports))

    def unpack(self, packed: NDArray[np.uint8]) -> NDArray[Any]:
        """The reports that `pack` gave these bytes, whether or not an honest holder could have sent them.

        Raises:
            DataError: the bytes are not uint8 [n, report_bytes].
        """
        return super().unpack(packed).reshape(-1, *self.report_shape)

    @abstractmethod
    def supports(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which values each valid report supports, bool [n, k], for small n."""

    @property
    @abstractmethod
    def law_size(self) -> int:
        """Number of reports that `law` goes through."""

    @abstractmethod
    def law(self, value: int) -> dict[bytes, Fraction]:
        """Return P(packed report | value) for every report, from the integers in use, for small k."""

    def aggregate(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """Count the reports that support each value, int64 [k], on the curator's side. Sums over shards may be added.

        Raises:
            DataError: the reports are not of this oracle's type and shape, or no honest holder could have sent one.
        """
        reports = self._shaped(reports)
        is_valid = self.is_valid(reports)
        if not is_valid.all():
            raise DataError(
                f"{self.name}: report {int(np.argmin(is_valid)) + 1} of {is_valid.size} (and {(~is_valid).sum() - 1} more) "
                f"cannot come from an honest holder: a report is {self._honest}. They were made under another protocol, "
                "or forged"
            )
        return self._count(reports)

    @property
    @abstractmethod
    def _honest(self) -> str:
        """Describe an honest report in words."""

    @abstractmethod
    def _count(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """`aggregate` of reports that are valid."""

    def sample_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw what `aggregate(randomize(...))` would give for holders whose values have these counts.

        `counts` and the result are int64 [k]. A simulation device: whoever calls it has seen the true counts, so it
        gives totals of a trial run, never of real holders. This one draws report by report; an oracle whose totals
        have a closed form draws those, with the same distribution up to numpy's floating-point samplers.
        """
        values = np.repeat(np.arange(self.k), np.asarray(counts, dtype=np.int64))
        words = Words.seeded(np.random.SeedSequence(generator.integers(2**63, size=4).tolist()))
        totals = np.zeros(self.k, dtype=np.int64)
        step = max(1, _DRAWN_BYTES // self.report_bytes)
        for start in range(0, values.size, step):
            totals += self._count(self.randomize(values[start : start + step], words))
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
        """Exact noise variance of sum_k a_k N~_k, from four sums over the k values; arrays entry by entry.

        This one is for oracles where two values are supported independently, so that sums of weights are of no
        matter; an oracle with covariances has its own.

        Args:
            weights: sum of a_k.
            squares: sum of a_k^2.
            weighted: sum of c_k a_k, c_k the number of holders whose value is k.
            weighted_squares: sum of c_k a_k^2.
            n: number of reports, the sum of c_k.
        """
        # only squares count, and p (1 - p) - q (1 - q) = (p - q) (1 - p - q)
        squares, weighted_squares = (np.asarray(a, dtype=np.float64) for a in (squares, weighted_squares))
        from_others = n * self.q * (1 - self.q) / self.gap**2 * squares
        from_own = (1 - self.p - self.q) / self.gap * weighted_squares
        variance: NDArray[np.float64] = from_others + from_own
        return variance

    @property
    def form_size(self) -> int:
        """Size of what `form` names."""
        return self.k

    def describe(self) -> MechanismDescription:
        """Facts of the joint report."""
        return replace(self._description(self.form_size, p=self.p, q=self.q), name=JOINT, oracle=self.name)

    @property
    def n_supported(self) -> int | None:
        """Values that each report supports; None where reports differ in how many."""
        return None

    def can_be_sum(self, raw: NDArray[Any], n: int) -> bool:
        """Each count is a whole number from 0 to n; all of them add up to what n reports support, where that is known."""
        if raw.shape != (self.k,) or not np.issubdtype(raw.dtype, np.integer):
            return False
        adds_up = self.n_supported is None or raw.sum() == n * self.n_supported
        return bool(adds_up and raw.min() >= 0 and raw.max() <= n)

    def unbias(self, raw: NDArray[np.int64], n: int) -> NDArray[np.float64]:
        """Unbiased number of holders with each value, float64 [k], from raw support counts of n reports."""
        totals: NDArray[np.float64] = (np.asarray(raw, dtype=np.float64) - n * self.q) / self.gap
        return totals

    def linear_variance(self, weights: ArrayLike, counts: ArrayLike) -> Any:
        """Exact noise variance of sum_k weights_k N~_k, covariances between values included."""
        weights = np.asarray(weights, dtype=np.float64)
        counts = np.asarray(counts, dtype=np.float64)
        variance = self.variance_of_sums(
            weights=weights.sum(axis=0),
            squares=(weights**2).sum(axis=0),
            weighted=counts @ weights,
            weighted_squares=counts @ weights**2,
            n=round(float(counts.sum())),
        )
        return float(variance) if weights.ndim == 1 else variance

    def cell_variance(
        self,
        class_weights: ArrayLike,
        n_cells: ArrayLike,
        inside: NDArray[np.float64],
        counts: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """The same from sums over groups of cells."""
        weights, sizes = np.asarray(class_weights, dtype=np.float64), np.asarray(n_cells, dtype=np.float64)
        return self.variance_of_sums(
            weights=sizes * weights.sum(),
            squares=sizes * (weights**2).sum(),
            weighted=inside @ weights,
            weighted_squares=inside @ weights**2,
            n=round(float(counts.sum())),
        )

    def mean_variance(self) -> float:
        """Noise variance per holder of one total, N~_k / sqrt(n), where every value is equally frequent."""
        return float(
            self.variance_of_sums(weights=1, squares=1, weighted=1 / self.k, weighted_squares=1 / self.k, n=1)
        )

    def _bound_of_one(self, n: int, totals_at_once: int) -> PoisoningBound:
        shift = 1 / self.gap
        return PoisoningBound(
            one=shift, one_percent=math.ceil(n / 100) * shift, totals_at_once=totals_at_once
        )

    def _shaped(self, reports: NDArray[Any]) -> NDArray[Any]:
        reports = np.asarray(reports)
        if reports.dtype != self.dtype or reports.ndim == 0 or reports.shape[1:] != self.report_shape:
            shape = ", ".join(["n", *map(str, self.report_shape)])
            raise DataError(
                f"{self.name}: reports are {self.dtype} [{shape}], found {reports.dtype} of shape {reports.shape}"
            )
        return reports
