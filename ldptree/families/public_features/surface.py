"""A function of public features as a value: a line, and trees on top of it. How it is fitted is in `surface_fit`.

Rows are scaled to [0, 1] and complete, or NaN where a feature is not shown: there the mean of those who show it stands in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ldptree.errors import DataError
from ldptree.partition.tree import Partition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_FIELDS = {"features", "stand_ins", "intercept", "slopes", "trees"}


@dataclass(frozen=True, eq=False)
class Tree:
    """A partition of the surface's features and a value for each cell, float64 [cells]."""

    partition: Partition
    values: Floats


@dataclass(frozen=True, eq=False)
class Surface:
    """intercept + slopes . (x - stand_ins) + the mean of the trees, in the label's unit.

    Attributes:
        features: which columns it reads.
        stand_ins: float64 [features], the mean of each where it is shown.
        intercept: the value at the stand-ins, trees apart.
        slopes: float64 [features], per unit of scaled feature.
        trees: on the columns of `features`.

    Raises:
        DataError: shapes that do not fit.
    """

    features: tuple[int, ...]
    stand_ins: Floats
    intercept: float
    slopes: Floats
    trees: tuple[Tree, ...] = ()

    def __post_init__(self) -> None:
        k = len(self.features)
        if self.stand_ins.shape != (k,) or self.slopes.shape != (k,):
            raise DataError(
                f"surface: {k} features, stand-ins {self.stand_ins.shape}, slopes {self.slopes.shape}"
            )
        for tree in self.trees:
            if tree.values.shape != (tree.partition.n_leaves,) or tree.partition.feature.max() >= k:
                raise DataError("surface: a tree's values or features do not fit it")

    @classmethod
    def constant(cls, value: float) -> Self:
        """The same value everywhere."""
        return cls((), np.zeros(0), value, np.zeros(0))

    def times(self, factor: float) -> Surface:
        """So many times its value, everywhere."""
        trees = tuple(Tree(tree.partition, factor * tree.values) for tree in self.trees)
        return Surface(self.features, self.stand_ins, factor * self.intercept, factor * self.slopes, trees)

    def columns(self, rows: Floats) -> Floats:
        """Its own columns of rows [n, d], float64 [n, features], stand-ins in place of NaN."""
        own = rows[:, list(self.features)]
        return np.where(np.isnan(own), self.stand_ins, own)

    def __call__(self, rows: Floats) -> Floats:
        """float64 [n], of rows [n, d]."""
        own = self.columns(rows)
        value: Floats = self.intercept + (own - self.stand_ins) @ self.slopes
        if self.trees:
            narrow = own.astype(np.float32)
            value = value + np.mean(
                [tree.values[tree.partition.apply(narrow)] for tree in self.trees], axis=0
            )
        return value

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "features": list(self.features),
            "stand_ins": self.stand_ins.tolist(),
            "intercept": self.intercept,
            "slopes": self.slopes.tolist(),
            "trees": [{"partition": t.partition.to_json(), "values": t.values.tolist()} for t in self.trees],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The surface that `to_json` wrote. Raises DataError where it is none."""
        if not isinstance(data, Mapping) or set(data) != _FIELDS:
            raise DataError(f"surface: must be exactly {', '.join(sorted(_FIELDS))}")
        try:
            return cls(
                tuple(int(j) for j in data["features"]),
                numbers(data["stand_ins"]),
                float(numbers([data["intercept"]])[0]),
                numbers(data["slopes"]),
                tuple(
                    Tree(Partition.from_json(tree["partition"]), numbers(tree["values"]))
                    for tree in data["trees"]
                ),
            )
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise DataError(f"surface: a part of it is of the wrong kind ({error})") from None


def numbers(plain: Any) -> Floats:
    """Finite numbers, float64. Raises DataError."""
    array = np.asarray(plain, dtype=np.float64)
    if not np.isfinite(array).all():
        raise DataError("surface: a number is missing or infinite")
    return array
