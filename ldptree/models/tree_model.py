"""What every released tree has: the tree, how rows are read, what each node rests on, and a canonical JSON with a digest.

What lives here: a tree as a value, and where a raw row falls. What does not: what a node says (`model` for classes,
`regression` for numbers), how it comes about (`fit`, `fit_numbers`), files, and scoring.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import DataError
from ldptree.limits import check_spent
from ldptree.models import model_json
from ldptree.partition.raw import RawTree
from ldptree.partition.tree import Partition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

VERSION = 1
MOSTLY = 0.9
"""A node rests on one kind of evidence alone where that brings this share of the precision."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeModel:
    """A fitted tree; read-only arrays, most with one row a node, node 0 the root.

    Attributes:
        encoding: how a raw row is read.
        partition: the tree on encoded rows.
        target: the label's column.
        outside: "clip" or "drop", as the protocol says.
        private_share: float64 [nodes], share in [0, 1] of the precision that reports bring.
        decided_at: int32 [nodes], the node on whose evidence it is decided.
        prune: the pruning rule.
        lam: as it was asked for: "learned", "auto" or a number.
        lam_used: weight of a public row in private people; None where it was learned cell by cell.
        epsilon: what each holder spent, as claimed.
        mechanism: how reports were made, such as "joint oue".
        n_private: holders who reported.
        n_public: public rows.
        protocol_digest: of the protocol that was answered.

    Raises:
        DataError: arrays do not fit the tree, or epsilon or a count is impossible.
    """

    KIND: ClassVar[str]

    encoding: Encoding
    partition: Partition
    target: str
    outside: str
    private_share: Floats
    decided_at: NDArray[np.int32]
    prune: str
    lam: str | float
    lam_used: float | None
    epsilon: float
    mechanism: str
    n_private: int
    n_public: int
    protocol_digest: str

    def __post_init__(self) -> None:
        check_spent("model", self.epsilon, n_private=self.n_private, n_public=self.n_public)
        if self.partition.feature.max() >= self.encoding.n_encoded:
            raise DataError("model: the tree tests a column that the encoding does not have")
        for name, (kind, shape) in self.arrays(self.partition.n_nodes).items():
            array: NDArray[Any] = np.array(getattr(self, name), dtype=kind)
            if array.shape != shape:
                raise DataError(f"model: {name} has shape {array.shape}, expected {shape}")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if self.decided_at.min() < 0 or self.decided_at.max() >= self.partition.n_nodes:
            raise DataError("model: decided_at names nodes that the tree does not have")

    @abstractmethod
    def arrays(self, n_nodes: int) -> dict[str, tuple[type, tuple[int, ...]]]:
        """Type and shape of every array."""

    @property
    @abstractmethod
    def node_sd(self) -> Floats:
        """[nodes] how unsure each node's answer is; infinite where there is no evidence."""

    @cached_property
    def raw_tree(self) -> RawTree:
        """The tree in raw units."""
        return RawTree.of(self.partition, self.encoding)

    @cached_property
    def columns_needed(self) -> tuple[str, ...]:
        """The raw columns that decide a prediction, in the encoding's order.

        Those the tree tests, those where a missing value has no rule, and with outside = "drop" every
        numeric one.
        """
        used = set(self.raw_tree.columns_used) | set(self.encoding.columns_without_rule)
        if self.outside == "drop":
            used |= {f.column for f in self.encoding.features if isinstance(f, NumericFeature)}
        return tuple(column for column in self.encoding.columns if column in used)

    @property
    def evidence(self) -> list[str]:
        """What each decision rests on, by 90 % of the precision: "private", "public", "both" or "none"."""
        share, sd = self.private_share[self.decided_at], self.node_sd
        words = np.where(share >= MOSTLY, "private", np.where(share <= 1 - MOSTLY, "public", "both"))
        return [str(word) for word in np.where(np.isinf(sd), "none", words)]

    def cells(self, raw: NDArray[np.float64], columns: Sequence[str] | None = None) -> NDArray[np.int32]:
        """int32 [n] the cell of each raw row; -1 for a row that no holder could have placed either.

        That is a row where a value is missing that no rule fills, or with outside = "drop" a row outside
        the public range.

        Args:
            raw: a raw matrix, float64 [n, columns] (see `ldptree.encoding`).
            columns: names of its columns where they are not all of the encoding's; `columns_needed` suffice.

        Raises:
            DataError: a column is absent or the matrix has another number of them.
        """
        names = self.encoding.columns if columns is None else tuple(columns)
        absent = [column for column in self.columns_needed if column not in names]
        if absent:
            raise DataError(f"rows to predict lack the columns {', '.join(absent)}")
        cells = self.raw_tree.apply(raw, names)
        is_unplaced = ~self.encoding.encodable(raw, names)
        if self.outside == "drop":
            is_unplaced |= self.encoding.is_outside(raw, names)
        return np.where(is_unplaced, np.int32(-1), cells)

    def nodes(self, raw: NDArray[np.float64], columns: Sequence[str] | None = None) -> NDArray[np.int32]:
        """int32 [n] the node that speaks for each raw row: its leaf, or the root where it has no cell."""
        cells = self.cells(raw, columns)
        return np.where(cells < 0, np.int32(0), self.partition.leaves[cells])

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON without the digest itself."""
        return model_json.digest_of(self._to_plain())

    def to_json(self) -> str:
        """The canonical text: sorted keys, its own digest in it; an infinite number is the text "inf"."""
        return model_json.written(self._to_plain(), self.digest)

    def _to_plain(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"kind": self.KIND, "version": VERSION}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Encoding | Partition):
                plain[field.name] = value.to_json()
            elif isinstance(value, np.ndarray):
                plain[field.name] = value.tolist() if np.isfinite(value).all() else _with_words(value)
            elif isinstance(value, tuple):
                plain[field.name] = list(value)
            else:
                plain[field.name] = "inf" if value == math.inf else value
        return plain

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The model that `to_json` wrote, every part checked anew.

        Raises:
            DataError: not a model, of an unknown version, a field absent, unknown or of a wrong type,
                arrays that do not fit, or a digest that is not that of the content.
        """
        data = model_json.read(
            text, kind=cls.KIND, version=VERSION, fields=[field.name for field in fields(cls)]
        )
        return cls(**cls.from_plain(data))

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """The constructor's arguments but its own arrays, from plain values whose names are known to be complete.

        Raises:
            DataError: a field has the wrong type.
        """
        values: dict[str, Any] = {
            "encoding": Encoding.from_json(data["encoding"]),
            "partition": Partition.from_json(data["partition"]),
        }
        model_json.check_types(data, _PLAIN)
        for name in _PLAIN:
            values[name] = math.inf if name.startswith("lam") and data[name] == "inf" else data[name]
        return values


_PLAIN: dict[str, tuple[type, ...]] = {
    "target": (str,),
    "outside": (str,),
    "prune": (str,),
    "lam": (str, int, float),
    "lam_used": (str, int, float, type(None)),
    "epsilon": (int, float),
    "mechanism": (str,),
    "n_private": (int,),
    "n_public": (int,),
    "protocol_digest": (str,),
}


def numbers_of(data: Mapping[str, Any], arrays: Mapping[str, tuple[type, tuple[int, ...]]]) -> dict[str, Any]:
    """The arrays of these names from lists. Raises DataError."""
    values: dict[str, Any] = {}
    for name, (kind, _) in arrays.items():
        try:
            values[name] = np.array(data[name], dtype=kind)
        except (TypeError, ValueError, OverflowError):
            raise DataError(f'model: field "{name}" is not an array of numbers') from None
    return values


def _with_words(array: Floats) -> list[Any]:
    return [
        _with_words(v) if isinstance(v, np.ndarray) else "inf" if math.isinf(v) else float(v) for v in array
    ]
