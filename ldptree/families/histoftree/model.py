"""HistOfTree's released model: a value for every cell of a product partition, and what it rests on.

What lives here: the model as a value (predict, canonical JSON). What does not: how it comes about (`curator`), and files.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ldptree.encoding import Encoding
from ldptree.errors import DataError
from ldptree.limits import check_spent
from ldptree.models import model_json
from ldptree.partition.product import Product

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ldptree.models.description import Description, Evidence

    Floats = NDArray[np.float64]

VERSION = 1
KIND = "ldptree histoftree model"
_PLAIN: dict[str, tuple[type, ...]] = {
    "low": (int, float),
    "high": (int, float),
    "label": (str,),
    "mechanism": (str, type(None)),
    "mask_release": (str,),
    "epsilon": (int, float),
    "n_holders": (int,),
}
_ARRAYS = ("value", "count", "count_sd")


@dataclass(frozen=True, eq=False, kw_only=True)
class HistOfTreeModel:
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

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON without the digest itself."""
        return model_json.digest_of(self._to_plain())

    def to_json(self) -> str:
        """The canonical text: sorted keys, its own digest in it."""
        return model_json.written(self._to_plain(), self.digest)

    def _to_plain(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"kind": KIND, "version": VERSION}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Encoding | Product):
                value = value.to_json()
            plain[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
        return plain

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The model that `to_json` wrote, every part checked anew.

        Raises:
            DataError: not such a model, of an unknown version, a field absent, unknown or of a wrong type, parts that do not
                fit, or a digest that is not that of the content.
        """
        data = model_json.read(text, kind=KIND, version=VERSION, fields=[field.name for field in fields(cls)])
        return cls(**_from_plain(data))


def _from_plain(data: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {
        "encoding": Encoding.from_json(data["encoding"]),
        "partition": Product.from_json(data["partition"]),
    }
    model_json.check_types(data, _PLAIN)
    values |= {name: data[name] for name in _PLAIN}
    for name in _ARRAYS:
        try:
            values[name] = np.array(data[name], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise DataError(f'model: field "{name}" is not an array of numbers') from None
    return values
