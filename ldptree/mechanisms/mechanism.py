"""The interface of a mechanism, for a private report about one cell and label, exact sums of many reports, and its facts.

One mechanism, one file beside this one; the registry is in the package. What is shared by all of them is only which
value a holder has: cell * C + label, or "outside" (a label not declared, a row that cannot be placed).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.coins import Words
from ldptree.errors import ConfigError, DataError

Form = Literal["value", "bits", "set", "signed set", "hash", "numbers", "bits and label", "bits and number"]
"""What a report is made of."""


@dataclass(frozen=True, kw_only=True)
class MechanismDescription:
    """Facts of one mechanism and of one report of it, from the integers in use.

    Attributes:
        name: of the mechanism, as a protocol has it.
        oracle: of a joint report, the frequency oracle below it.
        form: what a report is made of.
        size: how many of them: values that a value is one of, bits, elements of a set, buckets of a hash, numbers. A label
            apart does not count.
        n_values: values that a holder can have; None for a number.
        report_bytes: size of one report as it is sent.
        epsilon: that no likelihood ratio exceeds, rounded up.
        p: P(a report supports its holder's value, or cell where the label is apart); None where noise is added.
        q: P(it supports another given one).
        label_p: P(the label that is sent with the own cell is the own one), where a label has a coin of its own.
        noise_sd: standard deviation of the noise of one number of a report (of the cell, where the label has another).
        label_noise_sd: the same of a label that is a number, in widths of its range.
        is_simulation_device: whether reports leak through floating point, so that no real client may send one.
    """

    name: str
    form: Form
    size: int
    n_values: int | None
    report_bytes: int
    epsilon: float
    oracle: str | None = None
    p: float | None = None
    q: float | None = None
    label_p: float | None = None
    noise_sd: float | None = None
    label_noise_sd: float | None = None
    is_simulation_device: bool = False

    @property
    def figures(self) -> dict[str, float]:
        """Chances and noise of one report, as far as the mechanism has them."""
        figures = {name: getattr(self, name) for name in ("p", "q", "label_p", "noise_sd", "label_noise_sd")}
        return {name: figure for name, figure in figures.items() if figure is not None}


@dataclass(frozen=True)
class PoisoningBound:
    """The bound of what dishonest holders can do to the unbiased totals, in holders.

    Attributes:
        one: the largest shift that one dishonest report causes to one total.
        one_percent: the same for one per cent of n holders (rounded up) who agree.
        totals_at_once: how many totals one report can shift that far at the same time.
    """

    one: float
    one_percent: float
    totals_at_once: int


MAX_VALUES = 2**31
STEPS = 256
MOST_STEPS = 2**16
JOINT = "joint"
"""What protocols call the report of a frequency oracle over cells and labels together; the oracle is named beside it."""


@dataclass(frozen=True)
class Mechanism(ABC):
    """A mechanism on L cells and C classes, defined by integers alone.

    Attributes:
        n_cells: L, at least 1.
        n_classes: C, at least 2 (1 for an oracle over plain values).

    Raises:
        ConfigError: L or C is too small, or L C + 1 above 2^31.
    """

    name: ClassVar[str]
    is_simulation_device: ClassVar[bool] = False
    """Whether its reports leak through floating point, so that no real client may send one."""
    for_classes: ClassVar[int | None] = None
    """The only number of classes that it is for, or None for any."""
    form: ClassVar[Form]
    """What a report is made of."""
    fewest_classes: ClassVar[int] = 2
    is_joint: ClassVar[bool] = False
    """Whether cell and label are reported as one value."""
    carries_residuals: ClassVar[bool] = False
    """Whether one report, with the whole epsilon, says the cell and a residual that is rounded between levels."""
    sums_values: ClassVar[bool] = False
    """Whether `aggregate` gives a sum of each value, in the order of values."""
    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.uint8)
    """Of a number of a report, as it is sent; by itself a report is bytes."""

    n_cells: int
    n_classes: int

    def __post_init__(self) -> None:
        if self.n_cells < 1 or self.n_classes < self.fewest_classes:
            raise ConfigError(
                f"{self.name}: {self.n_cells} cells x {self.n_classes} classes; at least 1 and {self.fewest_classes} are needed"
            )
        if self.n_values > MAX_VALUES:
            raise ConfigError(
                f"{self.name}: {self.n_cells:,} cells x {self.n_levels} labels are over 2^31 values"
            )

    @property
    def full_name(self) -> str:
        """The mechanism in one or two words, such as "joint oue"."""
        return self.name

    @property
    def k(self) -> int:
        """Return the number of totals, L C + 1 with "outside" last."""
        return self.n_cells * self.n_classes + 1

    @property
    def n_levels(self) -> int:
        """Return the number of labels a holder can have, C or more if a label is a number (`NumberReport`)."""
        return self.n_classes

    @property
    def n_values(self) -> int:
        """Return the number of values a holder can have, one for each cell and level, and "outside" last."""
        return self.n_cells * self.n_levels + 1

    @classmethod
    @abstractmethod
    def for_budget(cls, epsilon: float, n_cells: int, n_classes: int) -> Self:
        """The mechanism that spends at most epsilon on cell and label together.

        Raises:
            ConfigError: epsilon is not positive and finite, or so small that reports would carry nothing.
        """

    def at_epsilon(self, epsilon: float) -> Self:
        """The same mechanism, on as many cells and classes, at another epsilon. Raises ConfigError as `for_budget`."""
        return type(self).for_budget(epsilon, self.n_cells, self.n_classes)

    @classmethod
    @abstractmethod
    def from_thresholds(cls, n_cells: int, n_classes: int, thresholds: Mapping[str, int]) -> Self:
        """The mechanism with these integers, as `thresholds` gives them.

        Raises:
            ConfigError: a threshold is absent, unknown or out of range.
        """

    @property
    @abstractmethod
    def thresholds(self) -> dict[str, int]:
        """The integers that define it."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """Return the epsilon of the integers in use, rounded up. No likelihood ratio of a report exceeds e^it."""

    @property
    @abstractmethod
    def min_entropy(self) -> float:
        """Return a lower bound on a report's bits of chance. No report is likelier than 2^-min_entropy."""

    @property
    @abstractmethod
    def report_bytes(self) -> int:
        """Size of one report as it is stored and sent."""

    @property
    @abstractmethod
    def raw_size(self) -> int:
        """Length of what `aggregate` gives."""

    @abstractmethod
    def randomize(self, values: NDArray[np.int64], words: Words) -> NDArray[Any]:
        """Draw one report for each holder, on the holders' side.

        Args:
            values: int64 [n], each in 0 .. n_values - 1.
            words: the coins.

        Returns:
            The reports, one row a holder (the type is the mechanism's own).

        Raises:
            DataError: a value is out of range.
        """

    def pack(self, reports: NDArray[Any]) -> NDArray[np.uint8]:
        """The bytes of each report as it is sent, uint8 [n, report_bytes]; numbers are little-endian."""
        numbers = np.ascontiguousarray(reports, dtype=self.dtype.newbyteorder("<"))
        return numbers.view(np.uint8).reshape(-1, self.report_bytes)

    def unpack(self, packed: NDArray[np.uint8]) -> NDArray[Any]:
        """The reports of which `pack` gave the bytes; what they say is not checked.

        Raises:
            DataError: not uint8 [n, report_bytes].
        """
        packed = np.asarray(packed)
        if packed.ndim != 2 or packed.shape[1] != self.report_bytes or packed.dtype != np.uint8:
            raise DataError(
                f"{self.name}: packed reports are uint8 [n, {self.report_bytes}], "
                f"found {packed.dtype} of shape {packed.shape}"
            )
        return np.ascontiguousarray(packed).view(self.dtype.newbyteorder("<")).astype(self.dtype, copy=False)

    @abstractmethod
    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which reports a holder who follows the protocol can have sent, bool [n]."""

    @abstractmethod
    def aggregate(self, reports: NDArray[Any]) -> NDArray[Any]:
        """Return raw sums of reports, [raw_size], on the curator's side. Sums over shards may be added.

        Raises:
            DataError: the reports are not of this mechanism's shape or alphabet.
        """

    def no_reports(self) -> NDArray[Any]:
        """Return the raw sums of nobody, [raw_size], to which those of reports are added."""
        return np.zeros(self.raw_size, np.float64 if self.is_simulation_device else np.int64)

    @abstractmethod
    def sample_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[Any]:
        """Draw what `aggregate(randomize(...))` would give for holders whose values have these counts, int64 [n_values].

        The distribution is the same up to numpy's floating-point samplers. A simulation device: whoever calls it
        has seen the true counts.
        """

    @abstractmethod
    def can_be_sum(self, raw: NDArray[Any], n: int) -> bool:
        """Return whether n valid reports can have these raw sums, of any shape and type."""

    @abstractmethod
    def unbias(self, raw: NDArray[Any], n: int) -> NDArray[np.float64]:
        """Unbiased number of holders with each value, float64 [k], from the raw sums of n reports."""

    @abstractmethod
    def linear_variance(self, weights: ArrayLike, counts: ArrayLike) -> Any:
        """Exact noise variance of sum_k weights_k N~_k when counts_k holders have value k.

        Args:
            weights: float [k], or [k, m] for m sums at once.
            counts: float [k], the true counts, or what stands in for them.

        Returns:
            float, or float64 [m]; in holders squared.
        """

    @abstractmethod
    def cell_variance(
        self,
        class_weights: ArrayLike,
        n_cells: ArrayLike,
        inside: NDArray[np.float64],
        counts: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """The same for groups of cells at once, each cell with the same weights, float64 [groups].

        Args:
            class_weights: float [C].
            n_cells: [groups], cells of each group.
            inside: float [groups, C], holders of each group by class.
            counts: float [k], all holders by value.
        """

    @abstractmethod
    def describe(self) -> MechanismDescription:
        """Facts of the mechanism and of one report."""

    def _description(
        self,
        size: int,
        *,
        p: float | None = None,
        q: float | None = None,
        label_p: float | None = None,
        noise_sd: float | None = None,
        label_noise_sd: float | None = None,
    ) -> MechanismDescription:
        """`describe`, where these are what only the mechanism knows."""
        return MechanismDescription(
            name=self.name,
            form=self.form,
            size=size,
            n_values=self.n_values,
            report_bytes=self.report_bytes,
            epsilon=self.epsilon,
            p=p,
            q=q,
            label_p=label_p,
            noise_sd=noise_sd,
            label_noise_sd=label_noise_sd,
            is_simulation_device=self.is_simulation_device,
        )

    @abstractmethod
    def poisoning_bound(self, n: int) -> PoisoningBound:
        """Return what one dishonest holder, and one per cent of n, can move."""

    def margin_variance_per_holder(self) -> float:
        """Return v_A, the noise variance of a cell's margin A = (class 1) - (cell) / 2, over the number of holders.

        The exact linear form (covariances included), of which the part is taken that does not depend on where the
        holders are.
        """
        weights = np.full(self.n_classes, -0.5)
        weights[1] = 0.5
        everybody = np.full(self.k, 1 / (self.k - 1))
        everybody[-1] = 0.0
        return float(self.cell_variance(weights, [1], np.zeros((1, self.n_classes)), everybody)[0])

    def checked(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The values as int64 [n].

        Raises:
            DataError: they are of another shape, or one is out of range.
        """
        values = np.ascontiguousarray(values, dtype=np.int64)
        if values.ndim != 1 or (values.size and (values.min() < 0 or values.max() >= self.n_values)):
            raise DataError(f"{self.name}: values must be one-dimensional and in 0 .. {self.n_values - 1}")
        return values


@dataclass(frozen=True)
class NumberReport(Mechanism):
    """A report of a cell and a number, as one of many equally spaced levels, with two totals a cell.

    A label y in [low, high] is rounded at random to one of S + 1 levels (`Protocol.values`), so that its mean is exact; with
    S = 256 that adds at most (high - low)^2 / 2^18 of variance, which is nothing beside the noise. With t = 0 .. 1 the level
    over S, cell j has the totals N~_j1 = sum of t, N~_j0 = U~_j - N~_j1: as many people at the two ends of the range, which
    are the two classes, as give the same count and the same sum.

    Attributes:
        steps: S, from one end of the label's range to the other, at least 1.

    Raises:
        ConfigError: the classes are not the two ends of a range, or S is not in 1 .. 2^16.
    """

    steps: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_classes != 2 or not 1 <= self.steps <= MOST_STEPS:
            raise ConfigError(
                f"{self.name}: {self.n_classes} ends and {self.steps} steps; a range has 2 ends, and 1 to "
                f"{MOST_STEPS:,} steps between them"
            )

    @property
    def n_levels(self) -> int:
        """S + 1."""
        return self.steps + 1

    def cells_and_parts(self, values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Cell (L for "outside") and steps above the low end, each int64 [n]; "outside" has half of them."""
        cells, steps = np.divmod(self.checked(values), self.n_levels)
        steps[cells == self.n_cells] = self.steps // 2
        return cells, steps


def checked_rho(rho: float) -> float:
    """The share of epsilon that the cell of a `NumberReport` gets.

    Raises:
        ConfigError: it is not between 0 and 1.
    """
    if not 0 < rho < 1:
        raise ConfigError(f"rho = {rho}: the share of epsilon that the cell gets lies between 0 and 1")
    return float(rho)


def report_values(cells: ArrayLike, labels: ArrayLike, *, n_cells: int, n_classes: int) -> NDArray[np.int64]:
    """Return the value of each holder, int64 [n] in 0 .. L C, the last one "outside".

    Args:
        cells: int [n], 0 .. n_cells - 1; -1 (no cell) is outside.
        labels: int [n], 0 .. n_classes - 1; -1 (not declared) is outside.
        n_cells: L.
        n_classes: C.

    Raises:
        DataError: the lengths differ, or a cell or label is out of range.
    """
    cells, labels = np.asarray(cells, dtype=np.int64), np.asarray(labels, dtype=np.int64)
    if cells.shape != labels.shape or cells.ndim != 1:
        raise DataError(f"cells have shape {cells.shape}, labels {labels.shape}; both must be [n]")
    for name, array, size in (("cell", cells, n_cells), ("label", labels, n_classes)):
        if array.size and (array.min() < -1 or array.max() >= size):
            raise DataError(f"a {name} is not in -1 .. {size - 1}")
    is_outside = (cells < 0) | (labels < 0)
    return np.where(is_outside, n_cells * n_classes, cells * n_classes + labels)


def checked_thresholds(
    name: str, thresholds: Mapping[str, int], expected: tuple[str, ...]
) -> tuple[int, ...]:
    """The thresholds in the order expected.

    Raises:
        ConfigError: one is absent, unknown or not an integer.
    """
    if set(thresholds) != set(expected) or any(type(v) is not int for v in thresholds.values()):
        raise ConfigError(f"{name}: thresholds must be exactly the integers {', '.join(expected)}")
    return tuple(thresholds[key] for key in expected)
