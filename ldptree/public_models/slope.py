"""A second public model beside the first, and the one column that a row is lengthened by: how far their answers are apart.

What lives here: what a protocol and a corrected model say of it, and cells that are cut once more by that column. What does not:
fitting the second model (`public_slope`), and what reports say of it (`correction_slope`).

With f0 the public model and f1 the second one, g(x) = f1(x) - f0(x), clipped to +- c. A row is encoded as if g were one more of
its numeric columns, of range -c to c, so that trees, cells and SQL know nothing of it but a name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import DataError
from ldptree.limits import LARGEST
from ldptree.models.ensemble import LEAF, Ensemble
from ldptree.partition.tree import Partition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

COLUMN = "straight line less tree"
"""The name of g among a row's columns."""
_FIELDS = {"trees", "half"}


@dataclass(frozen=True, eq=False, kw_only=True)
class Slope:
    """The second public model, and how far the two may be apart.

    Attributes:
        trees: f1, on encoded rows, one output.
        half: c, above 0.

    Raises:
        DataError: the trees are not of one number, or a number is not finite or too large.
    """

    trees: Ensemble
    half: float

    def __post_init__(self) -> None:
        if self.trees.n_outputs != 1 or self.trees.link != "identity":
            raise DataError(
                f'slope: {self.trees.n_outputs} outputs and link "{self.trees.link}"; it is one number as it is'
            )
        highest = float(np.abs(self.trees.value).max()) * self.trees.roots.size
        if max(highest, float(np.abs(self.trees.offset).max())) > LARGEST:
            raise DataError(f"slope: values so large that their sum may be beyond {LARGEST:g}")
        if not (math.isfinite(self.half) and 0 < self.half <= LARGEST):
            raise DataError(f"slope: half = {self.half}: must be above 0 and at most {LARGEST:g}")

    def apart(self, base: Ensemble, X: NDArray[np.float32]) -> Floats:
        """g, float64 [n], of encoded rows [n, d]: this model's answer less that of `base`, clipped."""
        return self.apart_from(base.predict(X)[:, 0], X)

    def apart_from(self, answers: Floats, X: NDArray[np.float32]) -> Floats:
        """The same where the answers of the base, float64 [n], are known."""
        found: Floats = self.trees.predict(X)[:, 0] - answers
        return np.clip(found, -self.half, self.half)

    def longer(self, encoding: Encoding) -> Encoding:
        """The encoding of rows that have g as their last column. Raises DataError where a column has its name."""
        return Encoding((*encoding.features, NumericFeature(COLUMN, -self.half, self.half)))

    def lengthened(self, encoding: Encoding, base: Ensemble, raw: Floats) -> Floats:
        """Raw rows [n, columns] with g as one column more; NaN where a row cannot be encoded."""
        is_whole = encoding.encodable(raw)
        found = np.full((len(raw), 1), np.nan)
        found[is_whole, 0] = self.apart(base, encoding.encode(raw[is_whole]))
        return np.hstack([raw, found])

    def to_json(self) -> dict[str, Any]:
        """Plain lists."""
        return {"trees": self.trees.to_json(), "half": self.half}

    @classmethod
    def from_json(cls, data: object) -> Self:
        """The slope that `to_json` wrote, every part checked anew. Raises DataError."""
        if not isinstance(data, Mapping) or set(data) != _FIELDS:
            raise DataError(f"slope: expected exactly the fields {', '.join(sorted(_FIELDS))}")
        if type(data["half"]) not in (int, float):
            raise DataError("slope: half must be a number")
        return cls(trees=Ensemble.from_json(data["trees"]), half=float(data["half"]))


def cut(tree: Partition, column: int, threshold: float) -> Partition:
    """The tree with every cell j cut once more, by an encoded column, into cells 2 j (at most the threshold) and 2 j + 1."""
    n, leaves = tree.n_nodes, tree.leaves
    ends = np.full(2 * leaves.size, LEAF)
    left, right = tree.left.copy(), tree.right.copy()
    left[leaves], right[leaves] = n + 2 * np.arange(leaves.size), n + 2 * np.arange(leaves.size) + 1
    feature, limits = tree.feature.copy(), tree.threshold.copy()
    feature[leaves], limits[leaves] = column, threshold
    return Partition.of(
        *(
            np.concatenate(pair)
            for pair in ((feature, ends), (limits, 0.0 * ends), (left, ends), (right, ends))
        )
    )


def without_slope(tree: Partition, column: int) -> Partition:
    """The tree that `cut` was given: node ids stay, and each cell is what was above two of them.

    Raises:
        DataError: it is not such a tree.
    """
    n = tree.n_nodes - tree.n_leaves
    is_last = tree.feature[:n] == column
    tests = (np.where(is_last, LEAF, tree.feature[:n]), np.where(is_last, 0.0, tree.threshold[:n]))
    try:
        found = Partition.of(*tests, *(np.where(is_last, LEAF, a[:n]) for a in (tree.left, tree.right)))
        if cut(found, column, float(tree.threshold[:n][is_last].max(initial=0.0))).digest == tree.digest:
            return found
    except DataError:
        pass
    raise DataError(
        f"the partition does not test column {column} once for each cell, at one threshold, last of all"
    )
