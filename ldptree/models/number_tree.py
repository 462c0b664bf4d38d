"""The released model of a regression: for every node of the public tree a number, why, and how surely.

What lives here: what a node says of a label that is a number (predict, intervals). What does not: what every tree has
(`tree_model`), how it comes about (`fit_numbers`), files, and scoring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ldptree.errors import DataError
from ldptree.inference.shares import half_width
from ldptree.models.tree_model import TreeModel, numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.models.description import Description, Evidence

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionModel(TreeModel):
    """A fitted regression tree; what every tree has is in `TreeModel`. All in the label's own unit.

    Attributes:
        label_range: ends of the range that private labels were moved into.
        label_sd: standard deviation of one person's label within a cell, from public rows.
        value: float64 [nodes], the private mean that is predicted, within the range.
        value_sd: float64 [nodes], its standard deviation, infinite where there is no evidence.
        noise_sd: float64 [nodes], standard deviation that the mechanism's noise alone gives the mean of the node's reports.
        discrepancy: float64 [nodes], what the reports say about private - public mean.
        discrepancy_sd: float64 [nodes], its standard deviation; 0 where no difference was found worth having.
        mean_discrepancy: the same averaged over all private people.
        mean_discrepancy_sd: how far it may be off, a difference that was not found included (`discrepancy_doubt`).
        private_count: float64 [nodes], unbiased noisy number of private people; below a cell that reports were asked about
            (`finer`) its number, shared out by public rows.
        private_sum: float64 [nodes], unbiased noisy sum of their labels; below such a cell as `private_count`.
        public_count: int64 [nodes], public rows.
        public_sum: float64 [nodes], the sum of their labels.

    Raises:
        DataError: arrays do not fit the tree, or the range is none.
    """

    KIND: ClassVar[str] = "ldptree regression model"

    label_range: tuple[float, float]
    label_sd: float
    value: Floats
    value_sd: Floats
    noise_sd: Floats
    discrepancy: Floats
    discrepancy_sd: Floats
    mean_discrepancy: float
    mean_discrepancy_sd: float
    private_count: Floats
    private_sum: Floats
    public_count: NDArray[np.int64]
    public_sum: Floats

    def __post_init__(self) -> None:
        if len(self.label_range) != 2 or not self.label_range[0] < self.label_range[1]:
            raise DataError("model: label_range is not a low end and a high end")
        super().__post_init__()

    def arrays(self, n_nodes: int) -> dict[str, tuple[type, tuple[int, ...]]]:
        """Type and shape of every array."""
        return _arrays(n_nodes)

    @property
    def node_sd(self) -> Floats:
        """[nodes] `value_sd`."""
        return self.value_sd

    def predict(self, raw: NDArray[np.float64], columns: Sequence[str] | None = None) -> Floats:
        """float64 [n] the label expected of each raw row; arguments and errors as `cells`. A row without a cell gets the
        root's.
        """
        return self.value[self.nodes(raw, columns)]

    def value_interval(self, level: float) -> tuple[Floats, Floats]:
        """Ends of what is believed of each node's private mean with probability `level`, each [nodes], within the range.

        They speak of a cell's mean, given the tree, not of one person's label, and may hold less than `level` where private
        people differ from public ones in part of the features' space only (`LPDTRegressor.predict_interval`).

        Raises:
            ConfigError: `level` is not between 0 and 1.
        """
        half = half_width(level) * self.value_sd
        low, high = (np.clip(self.value + sign * half, *self.label_range) for sign in (-1, 1))
        return low, high

    def describe(self, evidence: Evidence) -> Description:
        """What it says of itself in numbers."""
        from ldptree.models.tree_description import describe_numbers

        return describe_numbers(self, evidence)

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """The constructor's arguments. Raises DataError."""
        values = super().from_plain(data)
        ends = data["label_range"]
        numbers = ("label_sd", "mean_discrepancy", "mean_discrepancy_sd")
        if not isinstance(ends, list) or any(
            type(v) not in (int, float) for v in (*ends, *(data[name] for name in numbers))
        ):
            raise DataError("model: label_range, label_sd and the mean discrepancy are numbers")
        arrays = _arrays(values["partition"].n_nodes)
        return (
            values
            | {"label_range": tuple(ends)}
            | {name: data[name] for name in numbers}
            | numbers_of(data, arrays)
        )


def _arrays(n_nodes: int) -> dict[str, tuple[type, tuple[int, ...]]]:
    """Type and shape of every array."""
    floats = (
        "value",
        "value_sd",
        "noise_sd",
        "discrepancy",
        "discrepancy_sd",
        "private_share",
        "private_count",
        "private_sum",
        "public_sum",
    )
    whole = {"public_count": np.int64, "decided_at": np.int32}
    return dict.fromkeys(floats, (np.float64, (n_nodes,))) | {
        name: (kind, (n_nodes,)) for name, kind in whole.items()
    }
