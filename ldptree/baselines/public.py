"""Baselines of a run, in which plain learners use public rows alone, or private rows without noise.

Each is one function, for classes and for numbers: with `n_classes` = 0 the labels are numbers. Those on public rows never
read a private label. The one on private rows is what a plain tree would be without any privacy, a simulation device: what it
returns may be scored and shown by whoever owns those rows, and is never part of a release.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ldptree.partition.label_unit import fit_in_unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


Label = TypeVar("Label", bound=np.generic)

N_TREES = 100
MIN_SAMPLES_LEAF = 5
N_PRICES = 30
N_FOLDS = 5
N_THREADS = 2
MANY_ROWS = 20_000
"""Up to here 5 folds choose, above it a fifth of the rows, held back."""


def predict_constant(
    X: NDArray[np.float32],
    labels: NDArray[Any],
    test_X: NDArray[np.float32],
    *,
    n_classes: int,
    max_rows: int,
    seed: int,
) -> Floats:
    """The class shares of all rows, [n_test, C] the same for every row, or their mean label, [n_test]."""
    if not n_classes:
        return np.full(test_X.shape[0], labels.mean())
    shares = np.bincount(labels, minlength=n_classes) / labels.size
    return np.tile(shares, (test_X.shape[0], 1))


def predict_by_tree(
    X: NDArray[np.float32],
    labels: NDArray[Any],
    test_X: NDArray[np.float32],
    *,
    n_classes: int,
    max_rows: int,
    seed: int,
) -> Floats:
    """Class shares, [n_test, C], or mean labels, [n_test], of the leaves of a CART, pruned by cross-validated cost complexity."""
    X, labels = draw_at_most(max_rows, X, labels, seed=seed)
    return fit_pruned_tree(X, labels, test_X, n_classes=n_classes, seed=seed)


def predict_by_forest(
    X: NDArray[np.float32],
    labels: NDArray[Any],
    test_X: NDArray[np.float32],
    *,
    n_classes: int,
    max_rows: int,
    seed: int,
) -> Floats:
    """Class shares, [n_test, C], or mean labels, [n_test], averaged over the trees of a random forest (Breiman 2001)."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    X, labels = draw_at_most(max_rows, X, labels, seed=seed)
    kind = RandomForestClassifier if n_classes else RandomForestRegressor
    forest = kind(n_estimators=N_TREES, min_samples_leaf=MIN_SAMPLES_LEAF, n_jobs=2, random_state=seed)
    if n_classes:
        forest.fit(X, labels)
    else:
        fit_in_unit(forest, X, labels)
    # Two threads would add up the trees in the order in which they finish, and the last digits would change.
    forest.n_jobs = 1
    if not n_classes:
        predicted: Floats = forest.predict(test_X)
        return predicted
    shares = np.zeros((test_X.shape[0], n_classes))
    shares[:, forest.classes_] = forest.predict_proba(test_X)
    return shares


def draw_at_most(
    max_rows: int, X: NDArray[np.float32], labels: NDArray[Label], *, seed: int
) -> tuple[NDArray[np.float32], NDArray[Label]]:
    """All rows, or `max_rows` of them drawn without replacement, in their old order."""
    if labels.size <= max_rows:
        return X, labels
    drawn = np.sort(np.random.default_rng(seed).choice(labels.size, max_rows, replace=False))
    return X[drawn], labels[drawn]


@dataclass(frozen=True, eq=False)
class GrownTree:
    """A fitted scikit-learn tree, read for pruning.

    scikit-learn prunes for one price, in time quadratic in the leaves: over a second where 100,000 rows have noisy labels.

    Attributes:
        tree: the fitted tree; children have larger ids than their parent.
        cost: [nodes] impurity times the node's share of the rows: Gini's, or the variance.
        values: [nodes, C] class shares, or [nodes, 1] the mean label.
        unit: of a cost: 1, or the variance of all labels.
    """

    tree: Any
    cost: Floats
    values: Floats
    unit: float

    @classmethod
    def grow(cls, X: NDArray[np.float32], labels: NDArray[Any], n_classes: int, seed: int) -> GrownTree:
        """Grow an unpruned tree on rows X [n, d] with at least `MIN_SAMPLES_LEAF` rows a leaf; n_classes = 0 for numbers."""
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

        settings = {"min_samples_leaf": MIN_SAMPLES_LEAF, "random_state": seed}
        if n_classes:
            model = DecisionTreeClassifier(**settings).fit(X, labels)
            tree, unit = model.tree_, 1.0
            values = np.zeros((tree.node_count, n_classes))
            values[:, model.classes_] = tree.value[:, 0, :]
            values /= values.sum(axis=1, keepdims=True)
        else:
            tree = fit_in_unit(DecisionTreeRegressor(**settings), X, labels).tree_
            # prices depend on the labels' unit; labels that are all equal have none
            values, unit = tree.value[:, 0, :], float(tree.impurity[0]) or 1.0
        weight = tree.weighted_n_node_samples
        return cls(tree, tree.impurity * weight / weight[0], values, unit)

    def prices(self) -> Floats:
        """Return [N_PRICES] prices of a leaf, first 0, then logarithmic steps to a price that leaves the root alone."""
        gain = self.cost[0] - self.cost[self.tree.children_left < 0].sum()
        largest = 2.0 * max(gain, 1e-12 * self.unit)
        smallest = 0.1 * self.unit / self.tree.weighted_n_node_samples[0]
        return np.concatenate([[0.0], np.geomspace(min(smallest, largest), largest, N_PRICES - 1)])

    def prune(self, prices: Floats) -> NDArray[np.int64]:
        """[prices, nodes] the node that stands for each node once the tree is pruned best for each price."""
        children = np.stack([self.tree.children_left, self.tree.children_right], axis=1)
        inner = np.flatnonzero(children[:, 0] >= 0)
        best = self.cost[None, :] + prices[:, None]
        is_cut = np.ones((prices.size, len(children)), dtype=np.bool_)
        for node in inner[::-1]:
            left, right = children[node]
            below = best[:, left] + best[:, right]
            is_cut[:, node] = best[:, node] <= below
            best[:, node] = np.minimum(best[:, node], below)
        stands = np.tile(np.arange(len(children)), (prices.size, 1))
        for node in inner:
            is_above = is_cut[:, node]
            for child in children[node]:
                stands[is_above, child] = stands[is_above, node]
                is_cut[:, child] |= is_above
        return stands

    def leaves(self, X: NDArray[np.float32]) -> NDArray[np.int64]:
        """[n] the leaf of each row, before pruning."""
        leaves: NDArray[np.int64] = self.tree.apply(np.ascontiguousarray(X, dtype=np.float32))
        return leaves

    def predict(self, X: NDArray[np.float32], price: float) -> Floats:
        """[n, C] values of the rows' nodes, once the tree is pruned best for a price."""
        values: Floats = self.values[self.prune(np.array([price]))[0][self.leaves(X)]]
        return values

    def score(
        self, prices: Floats, X: NDArray[np.float32], labels: NDArray[Any], n_classes: int
    ) -> NDArray[Any]:
        """[prices] how many rows are decided rightly, or less the sum of squared errors, once pruned best for each price."""
        answers = self.values.argmax(axis=1) if n_classes else self.values[:, 0]
        predicted = answers[self.prune(prices)][:, self.leaves(X)]
        right: NDArray[Any] = predicted == labels if n_classes else -((predicted - labels) ** 2)
        return np.asarray(right.sum(axis=1))


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
    fold = np.random.default_rng(seed).permutation(labels.size) % N_FOLDS
    has_many = labels.size > MANY_ROWS
    grown_on = fold != 0 if has_many else slice(None)
    tree = GrownTree.grow(X[grown_on], labels[grown_on], n_classes, seed)
    prices = tree.prices()

    def score_held_out(k: int) -> NDArray[Any]:
        kept, held = fold != k, fold == k
        grown = tree if has_many else GrownTree.grow(X[kept], labels[kept], n_classes, seed)
        return grown.score(prices, X[held], labels[held], n_classes)

    # One row alone leaves nothing to grow on where it is held out.
    folds = range(1 if has_many else N_FOLDS) if labels.size >= N_FOLDS else range(0)
    with ThreadPoolExecutor(N_THREADS) as threads:
        scores = sum(threads.map(score_held_out, folds), start=np.zeros(prices.size, dtype=np.int64))
    chosen = prices.size - 1 - int(scores[::-1].argmax())
    values = tree.predict(test_X, prices[chosen])
    return values if n_classes else values[:, 0]
