"""A partition in the units of the raw data. It finds cells of raw rows without a scaled copy of them.

A numeric test becomes a comparison with the largest raw value that scaling leaves at or below the threshold;
a one-hot test becomes a question for one level. Cells are the same, row for row, as on encoded rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ldptree.compiled import compiled
from ldptree.encoding import CategoricalFeature, Encoding, Feature, NumericFeature, largest_raw, scale
from ldptree.errors import DataError
from ldptree.partition.tree import LEAF, Partition

# where a missing value goes
LEFT, RIGHT, STOP = 1, 0, -1


@dataclass(frozen=True, eq=False)
class RawTree:
    """A partition in raw units; read-only arrays, one entry a node.

    A row goes left where `x <= threshold` at a numeric test (level -1; a threshold of NaN sends every value
    right), where `x != level` at a question for a level, and where `missing` says so if x is missing.

    Attributes:
        partition: the partition on encoded rows; node ids are its own.
        encoding: the encoding it was grown under.
        column: int32 [nodes], index into `encoding.columns`; -1 at a leaf.
        level: int32 [nodes], the level asked for, an index into the feature's levels; -1 at a numeric test.
        threshold: float64 [nodes], may be infinite or NaN.
        missing: int8 [nodes], 1 left, 0 right, -1 the row has no cell.
    """

    partition: Partition
    encoding: Encoding
    column: NDArray[np.int32]
    level: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing: NDArray[np.int8]

    @classmethod
    def of(cls, partition: Partition, encoding: Encoding) -> Self:
        """The partition in the units of the encoding's raw columns.

        Raises:
            DataError: the partition tests a column that the encoding does not have.
        """
        if partition.feature.max() >= encoding.n_encoded:
            raise DataError(f"partition tests column {partition.feature.max()}, of {encoding.n_encoded}")
        n = partition.n_nodes
        column, level = np.full(n, LEAF, dtype=np.int32), np.full(n, -1, dtype=np.int32)
        threshold, missing = np.zeros(n), np.full(n, STOP, dtype=np.int8)
        places = [(j, place) for j, f in enumerate(encoding.features) for place in range(len(f.names))]
        for node in np.flatnonzero(partition.feature != LEAF):
            column[node], place = places[partition.feature[node]]
            feature = encoding.features[column[node]]
            t = float(partition.threshold[node])
            level[node], threshold[node] = _test(feature, place, t)
            missing[node] = _missing(feature, place, t)
        for array in (column, level, threshold, missing):
            array.setflags(write=False)
        return cls(partition, encoding, column, level, threshold, missing)

    @cached_property
    def columns_used(self) -> tuple[str, ...]:
        """The raw columns that some test looks at, in the encoding's order."""
        return tuple(self.encoding.columns[j] for j in np.unique(self.column[self.column != LEAF]))

    def apply(self, raw: NDArray[np.float64], columns: Sequence[str] | None = None) -> NDArray[np.int32]:
        """The cell of each raw row, int32 [n]; -1 where a test meets a missing value that no rule fills.

        Args:
            raw: a raw matrix, float64 [n, columns], in row or column order.
            columns: names of its columns, where they are not all of the encoding's; `columns_used` suffice.

        Raises:
            DataError: a column in use is absent, or the matrix has another number of columns.
        """
        names = self.encoding.columns if columns is None else tuple(columns)
        raw = np.asarray(raw, dtype=np.float64)
        if raw.ndim != 2 or raw.shape[1] != len(names):
            raise DataError(f"raw rows have shape {raw.shape}, expected [n, {len(names)}]")
        places = {name: j for j, name in enumerate(names)}
        absent = [name for name in self.columns_used if name not in places]
        if absent:
            raise DataError(f"raw rows lack the columns {', '.join(absent)}, which the partition tests")
        place = np.array([places.get(name, -1) for name in self.encoding.columns])
        if not (raw.flags.c_contiguous or raw.flags.f_contiguous):
            raw = np.ascontiguousarray(raw)
        cells = np.empty(raw.shape[0], dtype=np.int32)
        tree = self.partition
        at = np.where(self.column == LEAF, LEAF, place[self.column]).astype(np.int32)
        _walk_raw(
            raw, at, self.level, self.threshold, self.missing, tree.left, tree.right, tree.cell_of_node, cells
        )
        return cells

    def columns_needed(self, *, drops_outside: bool) -> tuple[str, ...]:
        """The raw columns that decide a row's cell, in the encoding's order.

        Those that are tested, and those where a missing value has no rule, as it leaves the row without a cell. `drops_outside`:
        so does a value outside the public range, and every numeric column counts.
        """
        used = {*self.columns_used, *self.encoding.columns_without_rule}
        if drops_outside:
            used |= {f.column for f in self.encoding.features if isinstance(f, NumericFeature)}
        return tuple(column for column in self.encoding.columns if column in used)

    def cells(
        self, raw: NDArray[np.float64], columns: Sequence[str] | None = None, *, drops_outside: bool = False
    ) -> NDArray[np.int32]:
        """The cell of each raw row, int32 [n]; -1 where `columns_needed` says that it has none.

        Args:
            raw: a raw matrix, float64 [n, columns] (see `ldptree.encoding`).
            columns: names of its columns where they are not all of the encoding's; `columns_needed` suffice.
            drops_outside: whether a row outside the public range has no cell.

        Raises:
            DataError: a column is absent or the matrix has another number of them.
        """
        names = self.encoding.columns if columns is None else tuple(columns)
        absent = [
            column for column in self.columns_needed(drops_outside=drops_outside) if column not in names
        ]
        if absent:
            raise DataError(f"raw rows lack the columns {', '.join(absent)}")
        cells = self.apply(raw, names)
        has_none = ~self.encoding.encodable(raw, names)
        if drops_outside:
            has_none |= self.encoding.is_outside(raw, names)
        cells[has_none] = -1
        return cells

    def branches(self, node: int) -> tuple[str, str]:
        """Describe the rows that go left and right of an inner node, in raw units, such as "miles <= 3.2"."""
        feature = self.encoding.features[self.column[node]]
        threshold, level = float(self.threshold[node]), int(self.level[node])
        column, missing = feature.column, f"{feature.column} is missing"
        if np.isnan(threshold):
            return missing, f"{column} is known"
        if level >= 0 and isinstance(feature, CategoricalFeature):
            left, right = f"{column} is not {feature.levels[level]}", f"{column} is {feature.levels[level]}"
        elif threshold == np.inf:
            left, right = f"{column} is known", missing
        else:
            left, right = f"{column} <= {threshold:.6g}", f"{column} > {threshold:.6g}"
        if self.missing[node] == LEFT:
            left = f"{left}, or missing"
        elif self.missing[node] == RIGHT and right != missing:
            right = f"{right}, or missing"
        return left, right

    def where(self, node: int) -> str:
        """Describe a node by the branches from the root on; "everyone" for the root."""
        branches: list[str] = []
        while (above := int(self.partition.parent[node])) != LEAF:
            branches.append(self.branches(above)[int(self.partition.left[above]) != node])
            node = above
        return " and ".join(reversed(branches)) or "everyone"


def _test(feature: Feature, place: int, t: float) -> tuple[int, float]:
    """Level and raw threshold of the test `encoded column <= t`; place counts within the feature."""
    if isinstance(feature, NumericFeature) and place == 0:
        return -1, np.nan if t < 0 else largest_raw(t, feature.minimum, feature.maximum)
    is_level = not isinstance(feature, NumericFeature) and place < len(feature.levels)
    if is_level and 0 <= t < 1:
        return place, 0.0
    # the mark of a missing value (0 where the value is there), or a test that parts nothing
    return -1, np.inf if t >= 0 else np.nan


def _missing(feature: Feature, place: int, t: float) -> int:
    """Return the side of a missing value, which is that of its encoded value."""
    if isinstance(feature, NumericFeature):
        if feature.fill is None:
            return STOP
        encoded = 1.0 if place else float(scale(feature.fill, feature.minimum, feature.maximum))
    elif feature.missing_level:
        encoded = float(place == len(feature.levels))
    elif feature.fill is not None:
        encoded = float(place == feature.fill)
    else:
        return STOP
    return LEFT if encoded <= t else RIGHT


@compiled
def _walk_raw(raw, column, level, threshold, missing, left, right, cell_of_node, cells):  # type: ignore[no-untyped-def]
    for row in range(raw.shape[0]):
        node = 0
        while column[node] >= 0:
            x = raw[row, column[node]]
            if np.isnan(x):
                if missing[node] < 0:
                    break
                goes_left = missing[node] == 1
            elif level[node] >= 0:
                goes_left = x != level[node]
            else:
                goes_left = x <= threshold[node]
            node = left[node] if goes_left else right[node]
        cells[row] = cell_of_node[node]  # -1 where the walk stopped at an inner node
