"""A public model made of trees, as plain arrays that a protocol can carry and a device can run with numpy alone. It is
fitted in `public_models`.

A row's values are added tree after tree, so that the sums of both walks, by numpy and compiled, are the same to the last bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ldptree import serialize
from ldptree.compiled import compiled, has_numba
from ldptree.errors import DataError

LEAF = -1
LINKS = ("identity", "logistic", "softmax")
DIGITS = 7
"""Significant digits that a value keeps in a protocol. The published model is the rounded one."""
FEW_ROWS = 16
"""Rows up to which numpy predicts, as a device then has the answer sooner than numba is imported."""
MOST_ROWS = 4096
"""Rows of a block, enough for most leaves of a tree to get some."""
BLOCK_BYTES = 2**20
"""A block's tested columns, which should stay in the cache."""
_STEPS_AT_ONCE = 8

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trees whose values at a row's leaves are added up; node ids run through all trees, children after their parent.

    Attributes:
        feature: int32 [nodes], the encoded column that is tested, -1 at a leaf.
        threshold: float64 [nodes], left is x <= threshold.
        left, right: int32 [nodes], -1 at a leaf.
        value: float64 [nodes, outputs], 0 at an inner node.
        roots: int32 [trees].
        offset: float64 [outputs].
        link: "identity"; "logistic" for one output of log odds; "softmax" for several.

    Raises:
        DataError: the arrays are not trees.
    """

    feature: NDArray[np.int32]
    threshold: Floats
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: Floats
    roots: NDArray[np.int32]
    offset: Floats
    link: str = "identity"

    def __post_init__(self) -> None:
        kinds = {"feature": np.int32, "left": np.int32, "right": np.int32, "roots": np.int32}
        for name in ("feature", "threshold", "left", "right", "value", "roots", "offset"):
            array: NDArray[Any] = np.array(getattr(self, name), dtype=kinds.get(name, np.float64))
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        n = self.feature.size
        shapes = {
            self.feature.shape,
            self.threshold.shape,
            self.left.shape,
            self.right.shape,
            self.value.shape[:1],
        }
        if shapes != {(n,)} or self.value.ndim != 2 or self.offset.shape != self.value.shape[1:] or not n:
            raise DataError("ensemble: feature, threshold, left, right and value are not one list of nodes")
        if self.link not in LINKS or (self.link == "logistic") != (
            self.n_outputs == 1 and self.link != "identity"
        ):
            raise DataError(f'ensemble: link "{self.link}" with {self.n_outputs} outputs')
        if not (
            np.isfinite(self.threshold).all()
            and np.isfinite(self.value).all()
            and np.isfinite(self.offset).all()
        ):
            raise DataError("ensemble: a threshold or value is not a finite number")
        self._check_links(n)

    def _check_links(self, n: int) -> None:
        """Every node is the root of a tree or the child of one earlier node, so that a walk comes to an end."""
        is_inner = self.feature != LEAF
        children = np.concatenate([self.left[is_inner], self.right[is_inner]])
        parents = np.tile(np.flatnonzero(is_inner), 2)
        is_linked = self.feature.min() >= LEAF and (children > parents).all() and (children < n).all()
        joined = np.sort(np.concatenate([children, self.roots]))
        leaves = np.concatenate([self.left[~is_inner], self.right[~is_inner]])
        if (
            not is_linked
            or not np.array_equal(joined, np.arange(n))
            or (leaves != LEAF).any()
            or not self.roots.size
        ):
            raise DataError("ensemble: its nodes are not trees, each child after its parent")

    @property
    def n_outputs(self) -> int:
        """Numbers a row gets."""
        return int(self.value.shape[1])

    @property
    def n_nodes(self) -> int:
        """Nodes of all trees."""
        return int(self.feature.size)

    def predict(self, X: NDArray[np.float32]) -> Floats:
        """Predict encoded rows [n, d], float64 [n, outputs], as numbers or shares of classes (two for "logistic").

        Raises:
            DataError: the rows have too few columns, or a value is missing.
        """
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] <= self.feature.max():
            raise DataError(f"ensemble: rows have shape {X.shape}, tests need column {self.feature.max()}")
        answers = np.empty((X.shape[0], 2 if self.link == "logistic" else self.n_outputs))
        size = self._rows_at_once
        for start in range(0, X.shape[0], size):
            block = X[start : start + size].astype(np.float32, copy=False)
            if np.isnan(block).any():
                raise DataError("ensemble: a value is missing in an encoded row")
            answers[start : start + size] = self._linked(self._sums(block))
        return answers

    def _linked(self, sums: Floats) -> Floats:
        if self.link == "logistic":
            share = 1.0 / (1.0 + np.exp(-np.clip(sums, -700, 700)))
            return np.hstack([1.0 - share, share])
        if self.link == "softmax":
            odds = np.exp(sums - sums.max(axis=1, keepdims=True))
            shares: Floats = odds / odds.sum(axis=1, keepdims=True)
            return shares
        return sums

    def _sums(self, block: NDArray[np.float32]) -> Floats:
        """Return float64 [rows, outputs], offset and trees in turn, to the last bit the same by every walk."""
        if len(block) <= FEW_ROWS or not has_numba():
            return sum_few(block, *self._steps, self.value, self.roots, self.offset)
        used, feature = self._tested
        columns = np.ascontiguousarray(block.T if used.size == block.shape[1] else block[:, used].T)
        sums = np.tile(self.offset, (len(block), 1))
        _, limit, child = self._steps
        add_up(columns, feature, limit, child, self.value, self.roots, sums)
        return sums

    @property
    def _rows_at_once(self) -> int:
        """Return the rows of a block, few enough to stay in the cache, and enough for most leaves to get some."""
        if not has_numba():
            return max(1, BLOCK_BYTES // (64 * self.roots.size * self.n_outputs))
        return int(np.clip(BLOCK_BYTES // (4 * max(self._tested[0].size, 1)), FEW_ROWS, MOST_ROWS))

    @cached_property
    def _tested(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The columns that some node tests, and each node's place among them, -1 at a leaf."""
        is_inner = self.feature != LEAF
        used, place = np.unique(self.feature[is_inner], return_inverse=True)
        feature = np.full(self.n_nodes, LEAF, dtype=np.int32)
        feature[is_inner] = place
        return used.astype(np.int64), feature

    @cached_property
    def _steps(self) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.int32]]:
        """Return the arrays that a walk reads, which are feature, threshold, and children [nodes, 2].

        A float32 is above a threshold exactly where it is above the largest float32 that is not above the threshold.
        """
        with np.errstate(over="ignore"):
            limit = self.threshold.astype(np.float32)
        is_above = limit > self.threshold
        limit[is_above] = np.nextafter(limit[is_above], np.float32(-np.inf))
        return self.feature, limit, np.stack([self.left, self.right], axis=1)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of its JSON."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def text(self) -> str:
        """Its canonical JSON, which all questions about it hold."""
        return serialize.canonical(self.to_json())

    @property
    def n_bytes(self) -> int:
        """Size of its JSON without blanks."""
        return len(self.text)

    def to_json(self) -> dict[str, Any]:
        """Plain lists; values of leaves only, in the order of the nodes."""
        is_leaf = self.feature == LEAF
        return {
            "feature": self.feature.tolist(),
            "threshold": self.threshold[~is_leaf].tolist(),
            "left": self.left[~is_leaf].tolist(),
            "right": self.right[~is_leaf].tolist(),
            "value": self.value[is_leaf].tolist(),
            "roots": self.roots.tolist(),
            "offset": self.offset.tolist(),
            "link": self.link,
        }

    @classmethod
    def from_json(cls, data: object) -> Self:
        """The ensemble that `to_json` wrote, every part checked anew.

        Raises:
            DataError: a field is absent, unknown or of a wrong type, or the lists are not trees.
        """
        names = {"feature", "threshold", "left", "right", "value", "roots", "offset", "link"}
        if not isinstance(data, Mapping) or set(data) != names or not isinstance(data["link"], str):
            raise DataError(f"ensemble: expected exactly the fields {', '.join(sorted(names))}")
        for name in ("feature", "left", "right", "roots"):
            if not isinstance(data[name], list) or any(
                type(v) is not int or abs(v) >= 2**31 for v in data[name]
            ):
                raise DataError(f"ensemble: {name} must be a list of whole numbers")
        if not _are_numbers(data["threshold"]) or not _are_numbers(data["offset"]):
            raise DataError("ensemble: threshold and offset must be lists of numbers")
        rows = data["value"]
        if not isinstance(rows, list) or not all(
            _are_numbers(row) and len(row) == len(data["offset"]) for row in rows
        ):
            raise DataError("ensemble: value must be a list of lists of numbers, one for each output")
        feature = np.array(data["feature"], dtype=np.int32)
        is_leaf = feature == LEAF
        sizes = {len(data[name]) for name in ("threshold", "left", "right")}
        n_inner, n_leaves = int((~is_leaf).sum()), int(is_leaf.sum())
        # a binary tree has one leaf more than inner nodes; a text without leaves could else ask for any memory
        if sizes != {n_inner} or not len(rows) == n_leaves == n_inner + len(data["roots"]):
            raise DataError("ensemble: its lists do not fit its nodes")
        threshold, left, right = (
            np.zeros(feature.size),
            np.full(feature.size, LEAF),
            np.full(feature.size, LEAF),
        )
        threshold[~is_leaf], left[~is_leaf], right[~is_leaf] = data["threshold"], data["left"], data["right"]
        value = np.zeros((feature.size, len(data["offset"])))
        if rows:
            value[is_leaf] = rows
        return cls(
            feature,
            threshold,
            left,
            right,
            value,
            np.array(data["roots"], np.int32),
            np.array(data["offset"]),
            data["link"],
        )

    @classmethod
    def of_trees(
        cls, trees: Sequence[tuple[Any, Any, Any, Any, Any]], offset: Floats, link: str = "identity"
    ) -> Self:
        """Trees one after the other, each (feature, threshold, left, right, value [nodes, outputs]) with ids of its own.

        Values are rounded to `DIGITS` significant digits; the nodes of a tree are put in an order in which children follow.
        """
        parts: list[list[NDArray[Any]]] = [[], [], [], [], []]
        roots, start = [], 0
        for tree in trees:
            feature, threshold, left, right, value = (np.asarray(part) for part in tree)
            order = _parents_first(left, right)
            new = np.empty(order.size, dtype=np.int64)
            new[order] = np.arange(order.size) + start
            is_leaf = left[order] < 0
            kept = np.where(is_leaf[:, None], value[order], 0.0)
            parts[0].append(np.where(is_leaf, LEAF, feature[order]))
            parts[1].append(np.where(is_leaf, 0.0, threshold[order]))
            parts[2].append(np.where(is_leaf, LEAF, new[left[order]]))
            parts[3].append(np.where(is_leaf, LEAF, new[right[order]]))
            parts[4].append(rounded(kept))
            roots.append(start)
            start += order.size
        feature, threshold, left, right, value = (np.concatenate(part) for part in parts)
        return cls(feature, threshold, left, right, value, np.array(roots), rounded(np.asarray(offset)), link)


def rounded(values: Floats) -> Floats:
    """The values to `DIGITS` significant digits."""
    each, place = np.unique(values, return_inverse=True)
    safe = np.where(each == 0, 1.0, np.abs(each))
    unit = 10.0 ** (np.floor(np.log10(safe)) - (DIGITS - 1))
    multiples: Floats = np.where(each == 0, 0.0, np.round(each / unit) * unit)
    return np.array([float(f"{v:.{DIGITS}g}") for v in multiples])[place].reshape(np.shape(values))


_SINGLE_TREES = (
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
)
_FORESTS = (
    "RandomForestClassifier",
    "RandomForestRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
)
_BOOSTINGS = ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor")


def from_sklearn(fitted: Any) -> Ensemble:
    """A fitted scikit-learn tree, forest or histogram boosting, classifier or regressor, on encoded numeric columns.

    Classifiers answer with the shares of their classes, in the order of `classes_`.

    Raises:
        DataError: it is of another kind, not fitted, has several labels a row, was fitted with categorical columns, or adds
            up on another scale than the label's.
    """
    name = type(fitted).__name__
    try:
        if name in _SINGLE_TREES:
            return _of_forest([fitted], hasattr(fitted, "classes_"))
        if name in _FORESTS:
            return _of_forest(fitted.estimators_, hasattr(fitted, "classes_"))
        if name in _BOOSTINGS:
            return _of_boosting(fitted)
    except AttributeError:
        raise DataError(
            f"{name}: not fitted, or of a version that is not known here; fit it on public rows first"
        ) from None
    raise DataError(f"{name}: is no scikit-learn tree, forest or histogram boosting")


def is_of_trees(fitted: Any) -> bool:
    """Return whether `from_sklearn` knows the kind."""
    return type(fitted).__name__ in (*_SINGLE_TREES, *_FORESTS, *_BOOSTINGS)


def _of_forest(trees: Sequence[Any], is_classifier: bool) -> Ensemble:
    plain_trees = []
    for fitted in trees:
        tree = fitted.tree_
        if tree.value.shape[1] != 1:
            raise DataError(
                f"ensemble: a tree has {tree.value.shape[1]} labels a row; only one is known here"
            )
        value = tree.value[:, 0, :]
        if is_classifier:
            value = value / value.sum(axis=1, keepdims=True)
        plain_trees.append(
            (tree.feature, tree.threshold, tree.children_left, tree.children_right, value / len(trees))
        )
    return Ensemble.of_trees(plain_trees, np.zeros(plain_trees[0][4].shape[1]))


def _of_boosting(fitted: Any) -> Ensemble:
    rounds = fitted._predictors
    scale = type(fitted._loss.link).__name__
    if not hasattr(fitted, "classes_") and scale != "IdentityLink":
        raise DataError(
            f"ensemble: boosting that adds up on another scale than the label's ({scale}) is not known here; take "
            'loss="squared_error"'
        )
    n_outputs = len(rounds[0])
    trees = []
    for by_output in rounds:
        for output, predictor in enumerate(by_output):
            nodes = predictor.nodes
            if nodes["is_categorical"].any():
                raise DataError("ensemble: boosting with categorical columns is not known here; one-hot them")
            is_leaf = nodes["is_leaf"].astype(bool)
            value = np.zeros((nodes.size, n_outputs))
            value[is_leaf, output] = nodes["value"][is_leaf]
            left = np.where(is_leaf, LEAF, nodes["left"].astype(np.int64))
            right = np.where(is_leaf, LEAF, nodes["right"].astype(np.int64))
            trees.append((nodes["feature_idx"], nodes["num_threshold"], left, right, value))
    offset = np.asarray(fitted._baseline_prediction, dtype=np.float64).ravel()
    link = "identity" if not hasattr(fitted, "classes_") else "logistic" if n_outputs == 1 else "softmax"
    return Ensemble.of_trees(trees, offset, link)


def _parents_first(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.int64]:
    """The nodes of one tree in an order in which children follow their parents."""
    order, todo = [], [0]
    while todo:
        node = todo.pop()
        order.append(node)
        if left[node] >= 0:
            todo += [int(right[node]), int(left[node])]
    return np.array(order, dtype=np.int64)


def _are_numbers(values: object) -> bool:
    return isinstance(values, list) and all(type(v) in (int, float) for v in values)


def sum_few(
    block: NDArray[np.float32],
    feature: NDArray[np.int32],
    limit: NDArray[np.float32],
    child: NDArray[np.int32],
    value: Floats,
    roots: NDArray[np.int32],
    offset: Floats,
) -> Floats:
    """Add up offset and values, float64 [rows, outputs]. numpy takes one step of all rows in all trees at once.

    Args:
        block: [rows, d], no value missing.
        feature, limit: [nodes], right is x > limit; feature -1 at a leaf.
        child: [nodes, 2].
        value: [nodes, outputs].
        roots: [trees].
        offset: [outputs].
    """
    n, d = block.shape
    flat, below = block.ravel(), child.ravel()
    leaves, start = np.tile(roots, n), np.repeat(np.arange(n) * d, roots.size)
    walking = np.flatnonzero(feature[leaves] != LEAF)
    while walking.size:
        node, row = leaves[walking], start[walking]
        for _ in range(_STEPS_AT_ONCE):
            tested = feature[node]
            is_above = flat[row + tested] > limit[node]
            node = np.where(tested == LEAF, node, below[2 * node + is_above])
        leaves[walking] = node
        walking = walking[feature[node] != LEAF]
    # accumulate adds one after the other, as the compiled walk does; a plain sum pairs its terms
    terms = np.concatenate([np.tile(offset, (n, 1, 1)), value[leaves].reshape(n, roots.size, -1)], axis=1)
    sums: Floats = np.add.accumulate(terms, axis=1)[:, -1]
    return sums


@compiled
def add_up(columns, feature, limit, child, value, roots, sums):  # type: ignore[no-untyped-def]
    """Add the values at the leaves of a block's rows to sums [rows, outputs], tree after tree.

    Args as of `sum_few`, but columns [tested columns, rows], to which `feature` refers; at most 65,536 rows.
    """
    # Rows go down a tree together: at a node their list is parted in two, from one buffer to the other, without a branch that
    # depends on a value. Only nodes that some row reaches are visited, and a row takes as many steps as its own leaf is deep.
    # Unsigned places spare a check for negative ones.
    n_rows, n_outputs, unit = sums.shape[0], sums.shape[1], np.uint64(1)
    lists = np.empty((2, n_rows), dtype=np.uint16)
    todo = np.empty((n_rows, 4), dtype=np.int64)
    for tree in range(roots.size):
        for i in range(n_rows):
            lists[0, i] = i
        todo[0, 0], todo[0, 1], todo[0, 2], todo[0, 3] = roots[tree], 0, n_rows, 0
        n_todo = 1
        while n_todo:
            n_todo -= 1
            node, side = todo[n_todo, 0], todo[n_todo, 3]
            first, last = todo[n_todo, 1], todo[n_todo, 2]
            while feature[node] >= 0:
                column, threshold = columns[feature[node]], limit[node]
                here, there = lists[side, first:last], lists[1 - side, first:last]
                to_left, from_right = np.uint64(0), np.uint64(last - first)
                for i in range(last - first):
                    row = here[i]
                    goes_right = np.uint64(column[row] > threshold)
                    there[to_left] = row
                    there[from_right - unit] = row
                    to_left += unit - goes_right
                    from_right -= goes_right
                side = 1 - side
                middle = first + np.int64(to_left)
                if middle == first:
                    node = child[node, 1]
                    continue
                if middle < last:
                    todo[n_todo, 0], todo[n_todo, 3] = child[node, 1], side
                    todo[n_todo, 1], todo[n_todo, 2] = middle, last
                    n_todo += 1
                node, last = child[node, 0], middle
            here = lists[side, first:last]
            for i in range(last - first):
                row = here[i]
                for output in range(n_outputs):
                    sums[row, output] += value[node, output]
