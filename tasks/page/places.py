"""Where a node lies, in raw units and plain words, and what share of private people lives there: for models of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldptree.encoding import Encoding, NumericFeature
from ldptree.partition.raw import RawTree
from ldptree.partition.tree import Partition
from tasks.page.numbers import MINUS

Names = Mapping[str, Mapping[str, str]]
"""Of a column, what its codes are called."""


class Grown(Protocol):
    """A model with one tree whose cells it speaks of."""

    @property
    def encoding(self) -> Encoding:
        """How a raw row is read."""

    @property
    def partition(self) -> Partition:
        """The tree on encoded rows."""

    @property
    def raw_tree(self) -> RawTree:
        """The tree in raw units."""


def class_name(column: str, value: object, names: Names) -> str:
    """What a value of a column is called."""
    return names.get(column, {}).get(str(value), str(value))


def shares_below(tree: Partition, counts: ArrayLike) -> NDArray[np.float64]:
    """Share of all people below each node, [nodes], from noisy counts [cells] made non-negative; 1 at the root."""
    held = np.maximum(np.asarray(counts, dtype=np.float64), 0.0)
    total = held.sum()
    per_cell = held / total if total > 0 else np.full(tree.n_leaves, 1 / tree.n_leaves)
    cells, nodes = tree.paths()
    return np.bincount(nodes, weights=per_cell[cells], minlength=tree.n_nodes).astype(np.float64)


def path_words(model: Grown, node: int, names: Names, *, only_last: bool = False) -> tuple[str, ...]:
    """The conditions that lead to a node, one a column, in raw units: "trip miles above 2.5 to 7"."""
    tree, raw = model.partition, model.raw_tree
    numbers: dict[str, list[float]] = {}
    is_level: dict[str, str] = {}
    not_levels: dict[str, list[str]] = {}
    other: dict[str, str] = {}
    order: dict[str, None] = {}
    while (above := int(tree.parent[node])) >= 0:
        is_left = int(tree.left[above]) == node
        feature = raw.encoding.features[raw.column[above]]
        name = feature.column.replace("_", " ")
        order = {name: None} | order
        threshold = float(raw.threshold[above])
        if raw.level[above] >= 0 and not isinstance(feature, NumericFeature):
            level = class_name(feature.column, feature.levels[raw.level[above]], names)
            if not is_left:
                is_level.setdefault(name, level)
            else:
                not_levels.setdefault(name, []).append(level)
        elif np.isfinite(threshold):
            low, high = numbers.setdefault(name, [-np.inf, np.inf])
            numbers[name] = [low, min(high, threshold)] if is_left else [max(low, threshold), high]
        else:
            other.setdefault(name, "is missing" if np.isposinf(threshold) != is_left else "is known")
        node = above
        if only_last:
            break
    said = []
    for name in order:
        if name in numbers:
            said.append(f"{name} {_between(*numbers[name])}")
        if name in is_level:
            said.append(f"{name} is {is_level[name]}")
        elif name in not_levels:
            said.append(f"{name} is not {_listed(not_levels[name])}")
        if name in other:
            said.append(f"{name} {other[name]}")
    return tuple(said)


def _between(low: float, high: float) -> str:
    if np.isinf(low):
        return f"up to {number_words(high)}"
    if np.isinf(high):
        return f"above {number_words(low)}"
    return f"above {number_words(low)} to {number_words(high)}"


def number_words(value: float) -> str:
    """A raw number, short."""
    rounded = round(value)
    if abs(value - rounded) < 1e-9 * max(1.0, abs(value)):
        said = f"{rounded:,}"
    else:
        said = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return said.replace("-", MINUS)


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
