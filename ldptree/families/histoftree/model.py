"""HistOfTree's released model: a value for every cell of a product partition, and what it rests on. How it comes
about is in `curator`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ldptree.encoding import Encoding
from ldptree.errors import DataError
from ldptree.limits import check_spent
from ldptree.partition.product import Product
from ldptree.serialize import Document

if TYPE_CHECKING:
    from ldptree.models.description import Description, Evidence

Floats = NDArray[np.float64]

_ARRAYS = ("value", "count", "count_sd")


@dataclass(frozen=True, eq=False, kw_only=True)
class HistOfTreeModel(Document):
    """Read-only; arrays have one entry a cell.

    Attributes:
        encoding: how a raw row becomes a point of [0, 1]^d.
        partition: the cells.
        value: float64 [cells], what is predicted (eq. 9), in the label's unit.
        count: float64 [cells], the unbiased number of holders, the denominator; negative where the noise is.
        count_sd: float64 [cells], standard deviation of its noise in an empty cell; 0 where the count is exact.
        low, high: the range that labels were clipped to.
        label, mechanism: how label and cell were sent; no mechanism where cells depend on nothing protected.
        mask_release: what was sent of the masks.
        epsilon: what each holder spent at most, over both questions.
        n_holders: who answered.

    Raises:
        DataError: the parts do not fit together.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("ldptree histoftree model",)

    encoding: Encoding
    partition: Product
    value: Floats
    count: Floats
    count_sd: Floats
    low: float
    high: float
    label: str
    mechanism: str | None
    mask_release: str
    epsilon: float
    n_holders: int

    def __post_init__(self) -> None:
        check_spent("model", self.epsilon, n_holders=self.n_holders)
        columns = max((int(self.partition.tree.feature.max()), *self.partition.histogram.features))
        if columns >= self.encoding.n_encoded:
            raise DataError("model: the partition looks at a column that the encoding does not have")
        for name in _ARRAYS:
            array: Floats = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != (self.partition.n_cells,) or not np.isfinite(array).all():
                raise DataError(f"model: {name} must be {self.partition.n_cells} finite numbers")
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def cells(self, raw: Floats) -> NDArray[np.int64]:
        """The cell of each raw row [n, columns], int64 [n]; DataError for other columns or a missing value."""
        encoded = self.encoding.encode(raw)
        if np.isnan(encoded).any():
            raise DataError(
                "rows to predict: a value is missing; fill it from public knowledge, or drop the row"
            )
        return self.partition.apply(encoded.astype(np.float64))

    def predict(self, raw: Floats) -> Floats:
        """Labels, float64 [n]; arguments and errors as `cells`."""
        return np.asarray(self.value[self.cells(raw)])

    @property
    def shares(self) -> Floats:
        """Each cell's estimated share of the holders, float64 [cells], adding up to 1: counts that noise made negative are 0."""
        held: Floats = np.maximum(self.count, 0.0)
        total = held.sum()
        return held / total if total > 0 else np.full(held.size, 1.0 / held.size)

    def describe(self, encoding: Encoding, target: str, evidence: Evidence) -> Description:
        """What it says of itself in numbers; `encoding` is of raw rows."""
        from ldptree.families.histoftree.description import describe_histogram

        return describe_histogram(self, encoding, target, evidence)
