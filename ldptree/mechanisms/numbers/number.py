"""The interface of a number mechanism, for a private report of one u in [-1, 1] that decodes to mean u.

One mechanism, one file beside this one; the registry is in the package. Labels and residuals of any other range are moved
to [-1, 1] by whoever asks. Sums over cells, and what is learned from reports, are elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.coins import Words
from ldptree.errors import DataError
from ldptree.mechanisms.mechanism import MechanismDescription

Floats = NDArray[np.float64]


class NumberMechanism(ABC):
    """An unbiased epsilon-LDP report of a number in [-1, 1]; a frozen value, defined by integers where its outputs are finite.

    Attributes:
        name: as in the registry.
        is_simulation_device: whether its reports leak through floating point, so that no real client may send one.
        dtype: of a report.
    """

    name: ClassVar[str]
    is_simulation_device: ClassVar[bool] = False
    dtype: ClassVar[np.dtype[Any]]

    @classmethod
    @abstractmethod
    def for_budget(cls, epsilon: float) -> Self:
        """The mechanism that spends at most epsilon.

        Raises:
            ConfigError: epsilon is not positive and finite, or so small that reports would carry nothing.
        """

    @classmethod
    @abstractmethod
    def from_thresholds(cls, thresholds: Mapping[str, Any]) -> Self:
        """The mechanism with these integers, as `thresholds` gives them, checked anew.

        Raises:
            ConfigError: one is absent, unknown or out of range.
        """

    @property
    @abstractmethod
    def thresholds(self) -> dict[str, Any]:
        """Return the numbers that define it, as plain integers and lists (a simulation device's epsilon)."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """Return the epsilon of the integers in use, rounded up. No likelihood ratio of a report exceeds e^it."""

    @property
    @abstractmethod
    def bound(self) -> float:
        """The largest magnitude of a decoded report; infinite where there is none."""

    @abstractmethod
    def randomize(self, numbers: ArrayLike, words: Words) -> NDArray[Any]:
        """Draw one report for each holder, `dtype` [n], on the holders' side.

        Args:
            numbers: float [n], each in [-1, 1].
            words: the coins.

        Raises:
            DataError: a number is outside, or not a number.
        """

    @abstractmethod
    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which reports an honest holder can have sent, bool [n].

        Raises:
            DataError: not `dtype` [n].
        """

    def decode(self, reports: NDArray[Any]) -> Floats:
        """Decode reports to unbiased numbers, float64 [n], on the curator's side.

        Raises:
            DataError: a report is of another type, or cannot come from an honest holder.
        """
        reports = self._shaped(reports)
        is_valid = self.is_valid(reports)
        if not is_valid.all():
            raise DataError(
                f"{self.name}: report {int(np.argmin(is_valid)) + 1} of {is_valid.size} (and {(~is_valid).sum() - 1} more) "
                "cannot come from an honest holder; it was made under another protocol, or forged"
            )
        return self._decoded(reports)

    @abstractmethod
    def _decoded(self, reports: NDArray[Any]) -> Floats:
        """`decode` of reports that are valid."""

    @abstractmethod
    def variance(self, numbers: ArrayLike) -> Floats:
        """Exact variance of a decoded report about its holder's number, float64 like `numbers` (in [-1, 1])."""

    def describe(self) -> MechanismDescription:
        """Facts of the mechanism and of one report."""
        is_real = self.is_simulation_device
        return MechanismDescription(
            name=self.name,
            form="numbers" if is_real else "value",
            size=1 if is_real else self.outputs.size,
            n_values=None,
            report_bytes=self.dtype.itemsize,
            epsilon=self.epsilon,
            is_simulation_device=is_real,
        )

    @property
    def outputs(self) -> NDArray[Any]:
        """Every report there is, `dtype` [K]. Raises NotImplementedError where they are not finite."""
        raise NotImplementedError(f"{self.name}: its outputs are not finite")

    def law(self, number: float) -> list[Fraction]:
        """The exact chance of each of `outputs` for a holder with this number. Raises NotImplementedError as `outputs`."""
        raise NotImplementedError(f"{self.name}: its outputs are not finite")

    def _shaped(self, reports: NDArray[Any]) -> NDArray[Any]:
        reports = np.asarray(reports)
        if reports.dtype != self.dtype or reports.ndim != 1:
            raise DataError(
                f"{self.name}: reports are {self.dtype} [n], found {reports.dtype} of shape {reports.shape}"
            )
        return reports


def checked_numbers(name: str, numbers: ArrayLike) -> Floats:
    """float64 [n], each in [-1, 1].

    Raises:
        DataError: they are not.
    """
    checked = np.asarray(numbers, dtype=np.float64)
    if checked.ndim != 1 or not (np.abs(checked) <= 1).all():
        raise DataError(f"{name}: numbers must be one-dimensional and in [-1, 1]; clip and scale them first")
    return checked
