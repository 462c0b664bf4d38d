"""A plain CART, pruned by cost complexity with the price of a leaf chosen by cross-validation, or on rows held back: the tree of
two baselines, on public and on private rows.

Breiman, Friedman, Olshen, Stone 1984, chapter 3: for a price alpha, the best pruned tree minimises (weighted
impurity of its leaves) + alpha (number of leaves). For a fixed alpha it is found exactly by one pass from
the leaves up, so one grown tree a fold serves every alpha. With many rows a test sample chooses as well (section 3.4.1
there) and costs one tree in place of many.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.partition.label_unit import fit_in_unit

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
        cost: [nodes] impurity times the node's share of the rows: Gini's, or the variance.
        values: [nodes, C] class shares, or [nodes, 1] the mean label.
        unit: of a cost: 1, or the variance of all labels.
        fitted: the scikit-learn tree.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    cost: Floats
    values: Floats
    unit: float
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
        return cls._of(tree, shares / shares.sum(axis=1, keepdims=True), unit=1.0)

    @classmethod
    def grow_on_numbers(cls, X: NDArray[np.float32], y: Floats, seed: int) -> GrownTree:
        """The same for labels y [n] and squared error."""
        from sklearn.tree import DecisionTreeRegressor

        model = DecisionTreeRegressor(min_samples_leaf=MIN_SAMPLES_LEAF, random_state=seed)
        tree = fit_in_unit(model, X, y).tree_
        # prices depend on the labels' unit; labels that are all equal have none
        return cls._of(tree, tree.value[:, 0, :], unit=float(tree.impurity[0]) or 1.0)

    @classmethod
    def _of(cls, tree: Any, values: Floats, *, unit: float) -> GrownTree:
        return cls(
            left=np.asarray(tree.children_left),
            right=np.asarray(tree.children_right),
            cost=tree.impurity * tree.weighted_n_node_samples / tree.weighted_n_node_samples[0],
            values=values,
            unit=unit,
            fitted=tree,
        )

    def prices(self) -> Floats:
        """[N_PRICES] prices of a leaf: 0, then logarithmically to one at which the root alone is left."""
        gain = self.cost[0] - self.cost[self.left < 0].sum()
        largest = 2.0 * max(gain, 1e-12 * self.unit)
        smallest = 0.1 * self.unit / self.fitted.weighted_n_node_samples[0]
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
        """[n, C] values of the rows' nodes, the nodes replaced by those that stand for them."""
        found: Floats = self.values[stands[self.fitted.apply(np.ascontiguousarray(X, dtype=np.float32))]]
        return found


def fit_pruned_tree(
    X: NDArray[np.float32],
    labels: NDArray[Any],
    test_X: NDArray[np.float32],
    *,
    n_classes: int,
    seed: int,
) -> Floats:
    """Class shares, [n_test, C], by the tree of best accuracy on rows it was not grown on; with `n_classes` = 0 mean labels,
    [n_test], by that of least squared error. Of equally good trees the smallest is taken.
    """
    if n_classes:
        return _fit_predict(
            X, labels, test_X, lambda X, labels: GrownTree.grow(X, labels, n_classes, seed), _n_right, seed
        )
    return _fit_predict(
        X, labels, test_X, lambda X, y: GrownTree.grow_on_numbers(X, y, seed), _minus_squared_error, seed
    )[:, 0]


def _fit_predict(
    X: NDArray[np.float32],
    labels: NDArray[Any],
    test_X: NDArray[np.float32],
    grow: Callable[[NDArray[np.float32], NDArray[Any]], GrownTree],
    score: Callable[[GrownTree, Floats, NDArray[np.float32], NDArray[Any]], NDArray[Any]],
    seed: int,
) -> Floats:
    """Values of the tree whose price has the largest score (larger is better) over the rows held out."""
    fold = np.random.default_rng(seed).permutation(labels.size) % N_FOLDS
    if labels.size > MANY_ROWS:
        tree = grow(X[fold != 0], labels[fold != 0])
        prices = tree.prices()
        scores = score(tree, prices, X[fold == 0], labels[fold == 0])
    else:
        tree = grow(X, labels)
        prices = tree.prices()

        def held_out(k: int) -> NDArray[Any]:
            grown = grow(X[fold != k], labels[fold != k])
            return score(grown, prices, X[fold == k], labels[fold == k])

        # One row alone leaves nothing to grow on where it is held out.
        folds = range(N_FOLDS) if labels.size >= N_FOLDS else []
        with ThreadPoolExecutor(N_THREADS) as threads:
            scores = sum(threads.map(held_out, folds), start=np.zeros(prices.size, dtype=np.int64))
    chosen = prices.size - 1 - int(scores[::-1].argmax())
    return tree.predict(test_X, tree.prune(prices[chosen : chosen + 1])[0])


def _n_right(
    grown: GrownTree, prices: Floats, X: NDArray[np.float32], labels: NDArray[np.integer]
) -> NDArray[np.int64]:
    """[prices] how many rows the tree decides rightly once it is pruned best for each price."""
    leaf = grown.fitted.apply(np.ascontiguousarray(X, dtype=np.float32))
    decision = grown.values.argmax(axis=1)[grown.prune(prices)]
    found: NDArray[np.int64] = (decision[:, leaf] == labels).sum(axis=1)
    return found


def _minus_squared_error(grown: GrownTree, prices: Floats, X: NDArray[np.float32], y: Floats) -> Floats:
    """[prices] less the sum of squared errors of the tree once it is pruned best for each price."""
    leaf = grown.fitted.apply(np.ascontiguousarray(X, dtype=np.float32))
    mean = grown.values[:, 0][grown.prune(prices)]
    found: Floats = -((mean[:, leaf] - y) ** 2).sum(axis=1)
    return found
