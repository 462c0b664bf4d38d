"""The joint report: cell and label together are one categorical value, and the whole epsilon goes on it.

With L cells and C classes the alphabet has K = L C + 1 values: cell * C + label, and "outside" last (a label
not declared, a row that cannot be placed). Any frequency oracle reports it, so one report is eps-LDP in
(x, y) together. The papers send cell and label apart (LPCT eqs 5 and 6, each with half of epsilon), at 40 / eps^2
of noise variance a holder for a cell's margin A = (class 1) - (cell) / 2; the joint report with oue
has 2 e^eps / (e^eps - 1)^2, 1.8 instead of 40 at epsilon 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.coins import Words
from ldptree.errors import ConfigError
from ldptree.mechanisms.description import MechanismDescription, PoisoningBound
from ldptree.mechanisms.mechanism import Mechanism
from ldptree.mechanisms.oracles import ORACLES, Oracle

# in the order of preference where two are equally good
_CHOICE = ("grr", "oue")


@dataclass(frozen=True)
class Joint(Mechanism):
    """The joint report over a frequency oracle; reports, raw sums and integers are the oracle's.

    Attributes:
        oracle: over L C + 1 values.

    Raises:
        ConfigError: the oracle has another alphabet.
    """

    name: ClassVar[str] = "joint"
    sums_values: ClassVar[bool] = True

    oracle: Oracle

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.oracle.k != self.k:
            raise ConfigError(
                f"the oracle has {self.oracle.k} values, "
                f"{self.n_cells} cells x {self.n_classes} classes need {self.k}"
            )

    @property
    def full_name(self) -> str:
        """With the oracle's name."""
        return f"{self.name} {self.oracle.name}"

    @classmethod
    def for_budget(cls, epsilon: float, n_cells: int, n_classes: int, oracle: str = "auto") -> Self:
        """The joint report over an oracle, by name; "auto": the quieter of grr and oue."""
        k = n_cells * n_classes + 1
        chosen = choose_oracle(epsilon, k) if oracle == "auto" else ORACLES[oracle].for_budget(epsilon, k)
        return cls(n_cells, n_classes, chosen)

    @classmethod
    def from_thresholds(
        cls, n_cells: int, n_classes: int, thresholds: Mapping[str, int], oracle: str = ""
    ) -> Self:
        """The joint report over the oracle of this name with these integers."""
        if oracle not in ORACLES:
            raise ConfigError(f'oracle "{oracle}" is not known; known are {", ".join(ORACLES)}')
        k = n_cells * n_classes + 1
        return cls(n_cells, n_classes, ORACLES[oracle].from_thresholds(k, thresholds))

    @property
    def thresholds(self) -> dict[str, int]:
        """The oracle's integers."""
        return self.oracle.thresholds

    @property
    def epsilon(self) -> float:
        """The oracle's epsilon."""
        return self.oracle.epsilon

    @property
    def min_entropy(self) -> float:
        """The oracle's."""
        return self.oracle.min_entropy

    @property
    def report_bytes(self) -> int:
        """The oracle's."""
        return self.oracle.report_bytes

    @property
    def raw_size(self) -> int:
        """One count of supporting reports a value."""
        return self.k

    def randomize(self, values: NDArray[np.int64], words: Words) -> NDArray[Any]:
        """The oracle's reports of the values."""
        return self.oracle.randomize(values, words)

    def pack(self, reports: NDArray[Any]) -> NDArray[np.uint8]:
        """The oracle's bytes."""
        return self.oracle.pack(reports)

    def unpack(self, packed: NDArray[np.uint8]) -> NDArray[Any]:
        """The oracle's reports."""
        return self.oracle.unpack(packed)

    def is_valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        """As the oracle says."""
        return self.oracle.is_valid(reports)

    def aggregate(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        """How many reports support each value, int64 [k]."""
        return self.oracle.aggregate(reports)

    def sample_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """The oracle's exact totals."""
        return self.oracle.sample_totals(counts, generator)

    def can_be_sum(self, raw: NDArray[Any], n: int) -> bool:
        """Each count is a whole number from 0 to n."""
        is_whole = raw.shape == (self.k,) and np.issubdtype(raw.dtype, np.integer)
        return bool(is_whole and raw.min() >= 0 and raw.max() <= n)

    def unbias(self, raw: NDArray[Any], n: int) -> NDArray[np.float64]:
        """Unbiased number of holders with each value."""
        return self.oracle.unbias(raw, n)

    def linear_variance(self, weights: ArrayLike, counts: ArrayLike) -> Any:
        """The oracle's, covariances between values included."""
        return self.oracle.linear_variance(weights, counts, round(float(np.sum(counts))))

    def cell_variance(
        self,
        class_weights: ArrayLike,
        n_cells: ArrayLike,
        inside: NDArray[np.float64],
        counts: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """The oracle's, from sums over the groups."""
        weights, sizes = np.asarray(class_weights, dtype=np.float64), np.asarray(n_cells, dtype=np.float64)
        return self.oracle.variance_of_sums(
            weights=sizes * weights.sum(),
            squares=sizes * (weights**2).sum(),
            weighted=inside @ weights,
            weighted_squares=inside @ weights**2,
            n=round(float(counts.sum())),
        )

    def describe(self) -> MechanismDescription:
        """The oracle's, under this name."""
        return replace(self.oracle.describe(), name=self.name, oracle=self.oracle.name)

    def poisoning_bound(self, n: int) -> PoisoningBound:
        """The oracle's."""
        return self.oracle.poisoning_bound(n)


def choose_oracle(epsilon: float, k: int) -> Oracle:
    """Of grr and oue over k values, the one with the smallest mean noise variance if all are equally likely.

    grr wins for small k or large epsilon, oue for large k. No private row is looked at.
    """
    return min((ORACLES[name].for_budget(epsilon, k) for name in _CHOICE), key=Oracle.mean_variance)
