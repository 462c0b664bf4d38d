"""A plain CART, pruned by cost complexity with the price of a leaf chosen by cross-validation, or on rows held back.

What lives here: the tree that two baselines share (`public_tree`, `non_private`). Not a baseline by itself,
and not how the product grows its partitions (`ldptree.partition`).

Breiman, Friedman, Olshen, Stone 1984, chapter 3: for a price alpha, the best pruned tree minimises (weighted
impurity of its leaves) + alpha (number of leaves). For a fixed alpha it is found exactly by one pass from
the leaves up, so one grown tree a fold serves every alpha. With many rows a test sample chooses as well (section 3.4.1
there) and costs one tree in place of many.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MIN_SAMPLES_LEAF = 5
N_PRICES = 30
N_FOLDS = 5
N_THREADS = 2
MANY_ROWS = 20_000
"""Up to here 5 folds choose, above it a fifth of the rows, held back."""


@dataclass(frozen=True, eq=False)
class GrownTree:
    """A fitted scikit-learn tree, read for pruning.

    Attributes:
        left, right: [nodes] child ids, -1 at a leaf; children have larger ids than their parent.
        cost: [nodes] Gini impurity times the node's share of the rows.
        shares: [nodes, C] class shares.
        fitted: the scikit-learn tree.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    cost: Floats
    shares: Floats
    fitted: Any

    @classmethod
    def grow(
        cls, X: NDArray[np.float32], labels: NDArray[np.integer], n_classes: int, seed: int
    ) -> GrownTree:
        """Grow an unpruned tree on rows X [n, d] with at least `MIN_SAMPLES_LEAF` rows a leaf."""
        from sklearn.tree import DecisionTreeClassifier

        model = DecisionTreeClassifier(min_samples_leaf=MIN_SAMPLES_LEAF, random_state=seed).fit(X, labels)
        tree = model.tree_
        shares = np.zeros((tree.node_count, n_classes))
        shares[:, model.classes_] = tree.value[:, 0, :]
        return cls(
            left=np.asarray(tree.children_left),
            right=np.asarray(tree.children_right),
            cost=tree.impurity * tree.weighted_n_node_samples / tree.weighted_n_node_samples[0],
            shares=shares / shares.sum(axis=1, keepdims=True),
            fitted=tree,
        )

    def prices(self) -> Floats:
        """[N_PRICES] prices of a leaf: 0, then logarithmically to one at which the root alone is left."""
        gain = self.cost[0] - self.cost[self.left < 0].sum()
        largest, smallest = 2.0 * max(gain, 1e-12), 0.1 / self.fitted.weighted_n_node_samples[0]
        return np.concatenate([[0.0], np.geomspace(min(smallest, largest), largest, N_PRICES - 1)])

    def prune(self, prices: Floats) -> NDArray[np.int64]:
        """[prices, nodes] the node that stands for each node once the tree is pruned best for each price."""
        n_nodes = self.left.size
        best = self.cost[None, :] + prices[:, None]
        is_cut = np.ones((prices.size, n_nodes), dtype=np.bool_)
        for node in range(n_nodes - 1, -1, -1):
            if self.left[node] >= 0:
                below = best[:, self.left[node]] + best[:, self.right[node]]
                is_cut[:, node] = best[:, node] <= below
                best[:, node] = np.minimum(best[:, node], below)
        stands = np.tile(np.arange(n_nodes), (prices.size, 1))
        for node in range(n_nodes):
            if self.left[node] >= 0:
                for child in (self.left[node], self.right[node]):
                    is_above = is_cut[:, node]
                    stands[is_above, child] = stands[is_above, node]
                    is_cut[:, child] |= is_above
        return stands

    def predict(self, X: NDArray[np.float32], stands: NDArray[np.int64]) -> Floats:
        """[n, C] class shares of the rows, the nodes replaced by those that stand for them."""
        found: Floats = self.shares[stands[self.fitted.apply(np.ascontiguousarray(X, dtype=np.float32))]]
        return found


def fit_predict_proba(
    X: NDArray[np.float32],
    labels: NDArray[np.integer],
    test_X: NDArray[np.float32],
    *,
    n_classes: int,
    seed: int,
) -> Floats:
    """[n_test, C] class shares by the tree of best accuracy on rows it was not grown on; of equals, the smallest."""
    fold = np.random.default_rng(seed).permutation(labels.size) % N_FOLDS
    if labels.size > MANY_ROWS:
        tree = GrownTree.grow(X[fold != 0], labels[fold != 0], n_classes, seed)
        prices = tree.prices()
        right = _n_right(tree, prices, X[fold == 0], labels[fold == 0])
    else:
        tree = GrownTree.grow(X, labels, n_classes, seed)
        prices = tree.prices()

        def n_right(k: int) -> NDArray[np.int64]:
            grown = GrownTree.grow(X[fold != k], labels[fold != k], n_classes, seed)
            return _n_right(grown, prices, X[fold == k], labels[fold == k])

        # One row alone leaves nothing to grow on where it is held out.
        folds = range(N_FOLDS) if labels.size >= N_FOLDS else []
        with ThreadPoolExecutor(N_THREADS) as threads:
            right = sum(threads.map(n_right, folds), start=np.zeros(prices.size, dtype=np.int64))
    chosen = prices.size - 1 - int(right[::-1].argmax())
    return tree.predict(test_X, tree.prune(prices[chosen : chosen + 1])[0])


def _n_right(
    grown: GrownTree, prices: Floats, X: NDArray[np.float32], labels: NDArray[np.integer]
) -> NDArray[np.int64]:
    """[prices] how many rows the tree decides rightly once it is pruned best for each price."""
    leaf = grown.fitted.apply(np.ascontiguousarray(X, dtype=np.float32))
    decision = grown.shares.argmax(axis=1)[grown.prune(prices)]
    found: NDArray[np.int64] = (decision[:, leaf] == labels).sum(axis=1)
    return found
