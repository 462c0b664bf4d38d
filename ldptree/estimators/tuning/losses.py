"""How far a candidate's predictions are off, and the most that two candidates can differ in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ldptree.estimators.holders import SplitRows
    from ldptree.models.tree import AnyTree

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class Loss(ABC):
    """How far a prediction is off."""

    @property
    @abstractmethod
    def bound(self) -> float:
        """The most that a loss can be."""

    @abstractmethod
    def measure(self, model: AnyTree, X: Floats, y: NDArray[Any]) -> Floats:
        """Float64 [n], the losses of a model on rows [n, d] with labels [n]."""

    @abstractmethod
    def difference_bound(self, first: AnyTree, other: AnyTree) -> float:
        """The most that the losses of two models on a row can differ."""


class ZeroOneLoss(Loss):
    """1 for a wrong class; labels are class indices, -1 for a label that is not declared."""

    bound = 1.0

    def measure(self, model: AnyTree, X: Floats, y: NDArray[Any]) -> Floats:
        """See `Loss`."""
        return np.asarray(model.predict(X) != y, dtype=np.float64)

    def difference_bound(self, first: AnyTree, other: AnyTree) -> float:
        """See `Loss`."""
        return 1.0


@dataclass(frozen=True)
class SquaredError(Loss):
    """The squared error of a number; labels are moved into [low, high], as private labels are."""

    low: float
    high: float

    @property
    def bound(self) -> float:
        """See `Loss`."""
        return (self.high - self.low) ** 2

    def measure(self, model: AnyTree, X: Floats, y: NDArray[Any]) -> Floats:
        """See `Loss`."""
        return np.asarray((model.predict(X) - np.clip(y, self.low, self.high)) ** 2)

    def difference_bound(self, first: AnyTree, other: AnyTree) -> float:
        """See `Loss`."""
        if not have_same_cells(first, other):
            return self.bound
        return largest_difference(cell_answers(first), cell_answers(other), self.low, self.high)


def largest_difference(first: Floats, other: Floats, low: float, high: float) -> float:
    """The most by which two predictions of the same row can differ in squared error, over labels in [low, high].

    |(f - y)^2 - (g - y)^2| = |f - g| |f + g - 2 y|, largest at an end of the range. Predictions [cells], of the same cells.
    """
    middle = first + other
    reach = np.maximum(np.abs(middle - 2 * low), np.abs(middle - 2 * high))
    return float((np.abs(first - other) * reach).max(initial=0.0))


def cell_answers(model: AnyTree) -> NDArray[Any]:
    """The prediction of each cell: a class or a number, [cells]."""
    return np.asarray(model.answers[model.partition.leaves])


def have_same_cells(one: AnyTree, other: AnyTree) -> bool:
    """Whether the cells of two models are the same."""
    return one.partition.digest == other.partition.digest and one.encoding == other.encoding


@dataclass(frozen=True, eq=False)
class PublicLosses:
    """What everybody knows of the losses of k candidates.

    Attributes:
        values: float64 [n_Q, k], on public rows; n_Q may be 0.
        bound: the most that a loss can be.
        difference_bounds: [k], the most that each candidate's can differ from the first one's.
    """

    values: Floats
    bound: float
    difference_bounds: Sequence[float]

    @classmethod
    def of(cls, loss: Loss, models: Sequence[AnyTree], rows: SplitRows) -> PublicLosses:
        """The losses of these models."""
        values = [loss.measure(model, rows.public_rows, rows.public_labels) for model in models]
        return cls(
            np.stack(values, axis=1), loss.bound, [loss.difference_bound(models[0], m) for m in models]
        )

    def select(self, places: Ints) -> PublicLosses:
        """Those of some candidates."""
        return PublicLosses(self.values[:, places], self.bound, [self.difference_bounds[j] for j in places])
