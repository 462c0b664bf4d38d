"""Weigh several public models by their answers to rows they were not fitted on. This is the public model unless another
is named.

    f = sum_i w_i f_i,    w_i >= 0,    sum_i w_i = 1

The f_i are forests, boostings, a ridge regression on stairs, and that ridge regression with a forest on what it leaves. Each is
fitted by least squares to numbers, or to the indicators of the classes, so that all are sums of trees and f is one list of trees
as well: what carries, checks, runs and exports a forest does so here. w minimises the squared error of answers to rows of other
folds (of a forest: out of bag) and a penalty on w^2 that weighs little where rows are many (stacking: Wolpert 1992, Breiman
1996).
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.models.ensemble import Ensemble, rounded
from ldptree.public_models.linear import Linear

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Rows = NDArray[np.float32]
    Tree = tuple[Any, Any, Any, Any, Floats]

FOLDS = 5
FEWEST_ROWS = 2 * FOLDS
"""Public rows below which nothing can be weighed."""
MOST_WEIGHED_ON = 10_000
"""Rows that the weights are found on where there are more."""
MOST_ROWS = 200_000
"""Most rows that any model sees, to bound memory. No model here has the leaves or slopes to learn from more."""
MOST_DRAWN = 20_000
"""Most rows that a tree of a forest draws. A forest has to fit into a protocol, and trees that drew more rows only get
larger leaves. On 100,000 rows it takes a fourth of the time, and is as good on private people
(docs/measured/correction.md).
"""
MOST_BOOSTED = 40_000
"""Most rows that boosting is fitted on, as so few and small trees learn no more from others."""
N_TREES = 200
"""Trees of a forest of weight 1; one of weight .3 keeps .3 of them."""
GROWN = 100
"""Trees of a forest that is weighed; fewer would make it look worse than it is."""
FEWEST_TREES = 50
"""Fewest trees of a forest of weight 1, whose leaves get larger until so many fit."""
LEAST_WEIGHT = 0.03
"""What weighs less is left out."""
PENALTY = 10.0
"""Penalty on w^2, in the best model's squared errors. On 10 rows w is nearly even, on 1,000 nearly free."""
_PROBE = 8
_NODE_BYTES = 48
_DIGITS = 3
"""Digits of a weight, so that sums whose last bits differ from machine to machine give the same weights."""
_SEED = 0


@dataclass(frozen=True, eq=False)
class FittedTrees:
    """A fitted model.

    Attributes:
        trees: with values [nodes, M].
        offset: [M], added to them.
        is_mean: whether the answer is a mean of the trees, of which some do as well; else their sum.
        held_out: float64 [n, M], answers to the rows by models that they had no part in; None where not asked for.
    """

    trees: Sequence[Tree]
    offset: Floats
    is_mean: bool = False
    held_out: Floats | None = None

    def times(self, weight: float, n_trees: int) -> list[Tree]:
        """Its trees, or so many of them that it is a mean of, as they are added up."""
        kept = self.trees[:n_trees] if self.is_mean else self.trees
        by = weight / len(kept) if self.is_mean and kept else weight
        return [(*tree[:4], by * tree[4]) for tree in kept]


@dataclass(frozen=True, eq=False)
class PublicSample:
    """Encoded public rows [n, d] with numbers or indicators [n, M], and the bytes that a forest alone may have."""

    X: Rows
    Y: Floats
    is_class: bool
    room: int

    @cached_property
    def lines(self) -> list[Linear]:
        """The ridge regression of every output."""
        return [Linear.fit(self.X, y) for y in self.Y.T]

    @cached_property
    def by_line(self) -> Floats:
        """Answers [n, M] of the ridge regression to rows that it was not fitted on, or that were few of very many."""
        if len(self.X) > MOST_WEIGHED_ON:
            return np.stack([line(self.X) for line in self.lines], axis=1)
        return self.answer_held_out(_answer_by_lines)

    def answer_held_out(self, answer: Callable[[Rows, Floats, Rows], Floats]) -> Floats:
        """Answers [n, M] to each fold by what is fitted on the others; `answer` takes rows, labels and other rows."""
        fold = np.random.default_rng(_SEED).permutation(len(self.Y)) % FOLDS
        answers = np.empty(self.Y.shape)
        for k in range(FOLDS):
            is_in = fold != k
            answers[~is_in] = answer(self.X[is_in], self.Y[is_in], self.X[~is_in])
        return answers


class Model(ABC):
    """One of the f_i and its fit."""

    name: str

    @abstractmethod
    def learn(self, sample: PublicSample, n_trees: int | None = None) -> FittedTrees:
        """Fit it, with held-out answers; or a forest of so many trees, without."""


@dataclass(frozen=True)
class Line(Model):
    """The ridge regression on stairs."""

    name: str = "line"

    def learn(self, sample: PublicSample, n_trees: int | None = None) -> FittedTrees:
        """See `Model`."""
        lines = sample.lines
        trees = [tree for m, line in enumerate(lines) for tree in _of_output(line.trees(), m, len(lines))]
        offset = np.array([line.offset for line in lines])
        return FittedTrees(trees, offset, held_out=sample.by_line if n_trees is None else None)


@dataclass(frozen=True)
class Growth:
    """The parameters by which the trees of a forest are grown.

    Attributes:
        columns: share of the columns tried at a cut, or "sqrt", the root of their number.
        min_rows: fewest rows of a leaf.
    """

    columns: float | str
    min_rows: int


@dataclass(frozen=True)
class Forest(Model):
    """A forest.

    Attributes:
        of_numbers, of_classes: how its trees are grown.
    """

    name: str
    of_numbers: Growth
    of_classes: Growth

    def learn(self, sample: PublicSample, n_trees: int | None = None) -> FittedTrees:
        """See `Model`."""
        growth = _growth_within(sample, self.of_classes if sample.is_class else self.of_numbers)
        forest = _grown(sample, growth, n_trees or GROWN, is_held_out=n_trees is None)
        held_out = forest.oob_prediction_.reshape(sample.Y.shape) if n_trees is None else None
        return FittedTrees(_trees_of(forest), np.zeros(sample.Y.shape[1]), is_mean=True, held_out=held_out)


@dataclass(frozen=True)
class ResidualForest(Model):
    """The ridge regression, and a forest on what it leaves of rows that it was not fitted on; the trees are the forest's."""

    forest: Forest
    name: str = "line and forest"

    def learn(self, sample: PublicSample, n_trees: int | None = None) -> FittedTrees:
        """See `Model`."""
        forest = self.forest.learn(replace(sample, Y=sample.Y - sample.by_line), n_trees)
        if forest.held_out is None:
            return forest
        return replace(forest, held_out=sample.by_line + forest.held_out)


@dataclass(frozen=True)
class Boosting(Model):
    """scikit-learn's histogram boosting, a model an output."""

    name: str
    max_leaf_nodes: int
    max_iter: int
    learning_rate: float
    min_samples_leaf: int

    def learn(self, sample: PublicSample, n_trees: int | None = None) -> FittedTrees:
        """See `Model`."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1, "openmp"):  # more threads cost more than they save
            X, Y = draw_most(MOST_BOOSTED, sample.X, sample.Y)
            columns = self._columns(X)
            fitted = [self._fit(X[:, columns], y) for y in Y.T]
            held_out = sample.answer_held_out(self._answer) if n_trees is None else None
        trees = [
            tree
            for m, booster in enumerate(fitted)
            for tree in _of_output(_rounds_of(booster, columns), m, len(fitted))
        ]
        offset = np.array([float(np.ravel(booster._baseline_prediction)[0]) for booster in fitted])
        return FittedTrees(trees, offset, held_out=held_out)

    def _columns(self, X: Rows) -> NDArray[np.intp]:
        """The columns that some cut parts into two large enough leaves; the others, as of rare categories, only take time."""
        n, least = len(X), min(self.min_samples_leaf, len(X) // 2)
        values = np.partition(X, (least - 1, n - least), axis=0)
        is_cut = values[least - 1] < values[n - least]
        is_cut[0] = True  # scikit-learn refuses rows without columns
        return np.flatnonzero(is_cut)

    def _fit(self, X: Rows, y: Floats) -> Any:
        from sklearn.ensemble import HistGradientBoostingRegressor

        return HistGradientBoostingRegressor(
            max_leaf_nodes=self.max_leaf_nodes,
            max_iter=self.max_iter,
            learning_rate=self.learning_rate,
            min_samples_leaf=self.min_samples_leaf,
            early_stopping=False,
            random_state=_SEED,
        ).fit(X, y)

    def _answer(self, X: Rows, Y: Floats, others: Rows) -> Floats:
        columns = self._columns(X)
        return np.stack([self._fit(X[:, columns], y).predict(others[:, columns]) for y in Y.T], axis=1)


LINE = Line()
REST = ResidualForest(Forest("rest", of_numbers=Growth(1.0, 2), of_classes=Growth(0.5, 2)))
MODELS: tuple[Model, ...] = (
    LINE,
    REST,
    Forest("forest", of_numbers=Growth(1.0, 1), of_classes=Growth("sqrt", 1)),
    Forest("smoother forest", of_numbers=Growth(1 / 3, 1), of_classes=Growth("sqrt", 5)),
    Boosting("boosting of small trees", 4, 75, 0.2, 5),
    Boosting("boosting", 16, 60, 0.15, 10),
)


@dataclass(frozen=True, eq=False)
class Blend:
    """The fitted blend.

    Attributes:
        ensemble: f.
        errors: float64 [m, M], labels less the answers of a blend that the row had no part in but for w; of m rows, all or some.
        weights: by the name of the model; those of `MODELS`, 0 for one that is left out.
    """

    ensemble: Ensemble
    errors: Floats
    weights: dict[str, float]


def fit_blend(X: Rows, Y: Floats, *, is_class: bool, max_bytes: int) -> Blend:
    """Fit and weigh all models; the same rows, the same blend.

    Args:
        X, Y: encoded public rows [n, d], numbers or indicators [n, M], n at least `FEWEST_ROWS`.
        is_class: which of the two.
        max_bytes: what forests are made smaller for, as far as they can be; the ensemble may still be larger.
    """
    X, Y = draw_most(MOST_ROWS, X, Y)
    sample = some = PublicSample(X, Y, is_class, max_bytes)
    if len(X) > MOST_WEIGHED_ON:
        at = np.sort(np.random.default_rng(_SEED).permutation(len(X))[:MOST_WEIGHED_ON])
        some = replace(sample, X=X[at], Y=Y[at])
    _ = some.by_line  # two models take it: once is enough
    learnt = _learn_each(lambda model: model.learn(some))
    answers = np.stack([model.held_out for model in learnt if model.held_out is not None])
    w = weigh(answers, some.Y)
    if some is not sample:
        first, weight_of = dict(zip(MODELS, learnt, strict=True)), dict(zip(MODELS, w, strict=True))

        def learn_from_all(model: Model) -> FittedTrees:
            if not weight_of[model] and model is not LINE:
                return first[model]
            return model.learn(sample, _share_of(N_TREES, weight_of[model]))

        _ = sample.lines
        learnt = _learn_each(learn_from_all)
    ensemble = _summed(learnt, w, max_bytes)
    while ensemble.n_bytes > max_bytes and (smaller := _without_largest_boosting(learnt, w)) is not None:
        w = smaller
        ensemble = _summed(learnt, w, max_bytes)
    weights = {model.name: float(weight) for model, weight in zip(MODELS, w, strict=True)}
    return Blend(ensemble=ensemble, errors=some.Y - np.tensordot(w, answers, 1), weights=weights)


def _without_largest_boosting(learnt: Sequence[FittedTrees], w: Floats) -> Floats | None:
    """Return weights without the boosting of the most trees, or None if there is none. It has a tree for each output
    and round, of which none can be left out as of a forest.
    """
    sizes = [
        len(learned.trees) if weight and isinstance(model, Boosting) else 0
        for model, learned, weight in zip(MODELS, learnt, w, strict=True)
    ]
    if not any(sizes):
        return None
    others = w.copy()
    others[int(np.argmax(sizes))] = 0.0
    if not others.any():
        others[MODELS.index(LINE)] = 1.0
    return np.asarray(others / others.sum())


def _learn_each(learn: Callable[[Model], FittedTrees]) -> list[FittedTrees]:
    """Every model, as many at once as there are cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        # the last take longest: begun first, they do not end alone
        return [*pool.map(learn, reversed(MODELS))][::-1]


def weigh(answers: Floats, wanted: Floats) -> Floats:
    """w, float64 [models], of held-out answers [models, n, M] to rows whose answer is wanted [n, M]."""
    from scipy.optimize import nnls

    errors = (answers - wanted).reshape(len(answers), -1)
    products = errors @ errors.T / errors.shape[1]
    least = float(products.diagonal().min())
    if least == 0.0:  # exact: nothing is better than the first of those
        weights = np.zeros(len(answers))
        weights[int(np.argmin(products.diagonal()))] = 1.0
        return weights
    products /= least
    products += (PENALTY / len(wanted) + 1e-9) * np.eye(len(answers))
    root = np.linalg.cholesky(products)
    # the least w' P w with sum w = 1: without that condition, of w' P w + (1 - sum w)^2, but for a factor
    weights, _ = nnls(np.vstack([root.T, np.ones(len(answers))]), np.append(np.zeros(len(answers)), 1.0))
    weights /= weights.sum()
    weights[weights < LEAST_WEIGHT] = 0.0
    weights = np.round(weights / weights.sum(), _DIGITS)
    return np.asarray(weights / weights.sum())


def _summed(learnt: Sequence[FittedTrees], w: Floats, max_bytes: int) -> Ensemble:
    """One list of trees, with as many of each forest as its weight has a part in `N_TREES`, or as fit."""
    weights = w.copy()
    weights[MODELS.index(LINE)] += w[MODELS.index(REST)]
    offset = sum((weight * model.offset for weight, model in zip(weights, learnt, strict=True)), np.zeros(1))
    n_trees = float(N_TREES)
    while True:
        kept = [_share_of(n_trees, weight) for weight in w]
        trees = [
            tree
            for model, weight, n in zip(learnt, weights, kept, strict=True)
            if weight
            for tree in model.times(float(weight), n)
        ]
        if not trees:  # a line without a slope
            trees = [_constant(offset.size)]
        ensemble = Ensemble.of_trees(trees, rounded(offset))
        size = ensemble.n_bytes
        if size <= max_bytes or n_trees < 2:
            return ensemble
        n_trees *= 0.95 * min(max_bytes / size, 1.0)


def _constant(n_outputs: int) -> Tree:
    leaf = np.array([-1])
    return leaf, np.zeros(1), leaf, leaf, np.zeros((1, n_outputs))


def _share_of(n_trees: float, weight: float) -> int:
    """The trees of a forest of this weight, 1 at least."""
    return max(math.ceil(n_trees * weight), 1)


def _answer_by_lines(X: Rows, Y: Floats, others: Rows) -> Floats:
    return np.stack([Linear.fit(X, y)(others) for y in Y.T], axis=1)


def _of_output(trees: Sequence[Tree], output: int, n_outputs: int) -> list[Tree]:
    """Trees of values [nodes, 1], as trees of n_outputs that only have something to say of one."""
    wide_trees = []
    for *shape, value in trees:
        wide = np.zeros((len(value), n_outputs))
        wide[:, output] = value[:, 0]
        wide_trees.append((*shape, wide))
    return wide_trees


def _rounds_of(boosted: Any, columns: NDArray[np.intp]) -> list[Tree]:
    """The trees of a boosting of numbers, fitted on these columns."""
    trees = []
    for (predictor,) in boosted._predictors:
        nodes = predictor.nodes
        is_leaf = nodes["is_leaf"].astype(bool)
        left, right = (np.where(is_leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
        value = np.where(is_leaf, nodes["value"], 0.0)[:, None]
        trees.append((columns[nodes["feature_idx"]], nodes["num_threshold"], left, right, value))
    return trees


def _grown(sample: PublicSample, growth: Growth, n_trees: int, *, is_held_out: bool) -> Any:
    """A fitted forest, with out-of-bag answers if wanted; the same whatever number of cores grows it."""
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(
        n_trees,
        max_features=growth.columns,
        min_samples_leaf=growth.min_rows,
        max_samples=MOST_DRAWN if len(sample.X) > MOST_DRAWN else None,
        oob_score=is_held_out,
        random_state=_SEED,
        n_jobs=-1,
    ).fit(sample.X, sample.Y if sample.Y.shape[1] > 1 else sample.Y[:, 0])


def _trees_of(forest: Any) -> list[Tree]:
    trees = (estimator.tree_ for estimator in forest.estimators_)
    return [(t.feature, t.threshold, t.children_left, t.children_right, t.value[:, :, 0]) for t in trees]


def draw_most(most: int, X: Rows, y: NDArray[Any]) -> tuple[Rows, NDArray[Any]]:
    """So many of the rows [n, d] and labels [n, ...] at most, the same each time."""
    if len(y) <= most:
        return X, y
    at = np.sort(np.random.default_rng(_SEED).choice(len(y), most, replace=False))
    return X[at], y[at]


def _growth_within(sample: PublicSample, growth: Growth) -> Growth:
    """The same, with leaves so large that `FEWEST_TREES` trees fit into the room, judged by a few trees."""
    n, n_outputs = sample.Y.shape
    while True:
        most = 2 * min(n, MOST_DRAWN) / growth.min_rows * (_NODE_BYTES + 8 * n_outputs)
        if most * FEWEST_TREES <= sample.room or growth.min_rows > n:
            return growth
        few = _trees_of(_grown(sample, growth, _PROBE, is_held_out=False))
        size = Ensemble.of_trees(few, np.zeros(n_outputs)).n_bytes / _PROBE * FEWEST_TREES
        if size <= sample.room:
            return growth
        larger = max(growth.min_rows + 1, int(growth.min_rows * size / sample.room))
        growth = replace(growth, min_rows=larger)
