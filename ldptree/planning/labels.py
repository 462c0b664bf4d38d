"""Draw labels of simulated people, anew for each, from what people with the features of a public row may answer.

Thousands of people who repeat the labels of a few hundred rows would be a population whose every chance can be learned, and whose
reports seem to gain what no others would. A label is drawn as a quantile regression forest has it (Meinshausen, JMLR 2006): that
of a random public row in the same leaf of a random tree, which the row itself had no part in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.partition.label_unit import in_range_of_one

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.planning.known_rows import KnownRows

N_TREES = 100
MIN_SAMPLES_LEAF = 5


@dataclass(frozen=True, eq=False)
class LabelLaw:
    """A forest of public rows.

    Attributes:
        labels: of the rows, [n].
        leaves: int64 [n, trees], where each row lies.
        times: int64 [n, trees], how often a tree has drawn it; 0: it is out of this tree's bag.
    """

    labels: NDArray[Any]
    leaves: NDArray[np.int64]
    times: NDArray[np.int64]

    @classmethod
    def of(cls, rows: KnownRows, seed: int) -> LabelLaw:
        """Fit it; the same rows, the same law."""
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        kind = RandomForestRegressor if rows.is_number else RandomForestClassifier
        forest: Any = kind(N_TREES, min_samples_leaf=MIN_SAMPLES_LEAF, n_jobs=2, random_state=seed)
        X = rows.encoding.encode(rows.raw)
        forest.fit(X, in_range_of_one(rows.labels) if rows.is_number else rows.labels)
        times = [np.bincount(drawn, minlength=rows.n) for drawn in forest.estimators_samples_]
        return cls(rows.labels, np.asarray(forest.apply(X), dtype=np.int64), np.stack(times, axis=1))

    def draw(self, at: NDArray[np.integer], copies: int, generator: np.random.Generator) -> NDArray[Any]:
        """So many labels for each of these rows, [len(at), copies]."""
        is_in_bag = self.times[at] > 0
        n_out = np.maximum((~is_in_bag).sum(axis=1), 1)  # a row in every bag takes one of them
        out_first = np.argsort(is_in_bag, axis=1, kind="stable")
        place = (generator.random((len(at), copies)) * n_out[:, None]).astype(np.int64)
        tree_of = np.take_along_axis(out_first, place, axis=1)
        labels = np.empty(tree_of.shape, self.labels.dtype)
        for tree in range(self.leaves.shape[1]):
            which, copy = np.nonzero(tree_of == tree)
            labels[which, copy] = self._draw_from(tree, at[which], generator)
        return labels

    def _draw_from(self, tree: int, at: NDArray[np.integer], generator: np.random.Generator) -> NDArray[Any]:
        """A label for each of these rows, of the rows that this tree has drawn into its leaf."""
        drawn = np.repeat(np.arange(len(self.labels)), self.times[:, tree])
        drawn = drawn[np.argsort(self.leaves[drawn, tree], kind="stable")]
        leaves = self.leaves[drawn, tree]
        first, stop = (np.searchsorted(leaves, self.leaves[at, tree], side) for side in ("left", "right"))
        place = first + (generator.random(len(at)) * (stop - first)).astype(np.int64)
        return np.asarray(self.labels[drawn[place]])
