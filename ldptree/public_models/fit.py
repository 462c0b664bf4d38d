"""Public models fitted on public rows, or taken over from scikit-learn, with honest errors and a size that is kept.

What lives here: the bases, out-of-fold errors, the size in a protocol. What does not: what a public model is (`public_model`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ldptree.encoding import Encoding, Feature, NumericFeature, scale
from ldptree.errors import ConfigError, DataError, DistilledBaseWarning
from ldptree.limits import MAX_PROTOCOL_BYTES
from ldptree.models.ensemble import Ensemble, from_sklearn, is_of_trees
from ldptree.partition.label_unit import centre_of, fit_in_unit, unit_of
from ldptree.public_models import BASES, WEIGHTED_BASES
from ldptree.public_models import smoothed_tree as public_tree
from ldptree.public_models.additive import raw_rows, take_additive
from ldptree.public_models.blend import (
    FEWEST_ROWS,
    MOST_DRAWN,
    MOST_WEIGHED_ON,
    N_TREES,
    draw_most,
    fit_blend,
)
from ldptree.public_models.model import PublicModel, constant, indicators, n_outputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Rows = NDArray[np.float32]

FEWEST_TREES = 100
MIN_SAMPLES_LEAF = 2
FOLDS = 5
_SEED = 0
_PROBE, _PROBE_OF_MANY = 16, 8
_ROOM = 0.9
_NEVER = -700.0
"""Log odds of a class that no public row has, for a share of 10^-304."""


def fit_public(
    base: str,
    X: Rows,
    y: NDArray[Any],
    *,
    n_classes: int = 0,
    weights: Floats | None = None,
    max_bytes: int = MAX_PROTOCOL_BYTES,
) -> PublicModel:
    """Fit one of `BASES` on encoded public rows [n, d] with numbers or class indices [n], n >= 1; the same rows, the same model.

    "tree" is the smoothed tree, "forest" 200 trees of scikit-learn (with its out-of-bag errors), "boosting" its histogram
    boosting, "blend" several models, weighed (`public_models.blend`; of fewer than 10 rows a forest). A tree of a forest draws at
    most `MOST_DRAWN` rows. A forest that is too large gets fewer trees, down to 100, then larger leaves. Labels far from 0 are
    counted from their centre (`label_unit`), which is put into the offset: a published value keeps 7 digits, the offset all.
    `weights` [n] are scikit-learn's `sample_weight`, of a base in `WEIGHTED_BASES`; errors are those of rows, each alike.

    Raises:
        ConfigError: the base is unknown, cannot use weights, or is still too large: its size is named.
    """
    if base not in BASES:
        raise ConfigError(f'base = "{base}": known are {", ".join(BASES)}, or a fitted scikit-learn model')
    if weights is not None and base not in WEIGHTED_BASES:
        raise ConfigError(f'base = "{base}": cannot use weights; take {" or ".join(WEIGHTED_BASES)}')
    centre = 0.0 if n_classes else centre_of(y)
    if centre:
        moved = fit_public(base, X, y - centre, weights=weights, max_bytes=max_bytes)
        return _within(_moved(moved, centre), max_bytes)
    wanted = indicators(y, n_classes)
    if base == "tree":
        return _within(_smoothed(X, wanted, n_classes), max_bytes)
    if len(X) < 2 or (n_classes and np.unique(y).size == 1):
        return constant(wanted[0], n_classes)
    if base == "boosting":
        return _within(_boosted(X, y, n_classes, weights), max_bytes)
    if base == "blend" and len(X) >= FEWEST_ROWS:
        return _within(_blend(X, wanted, n_classes, max_bytes), max_bytes)
    return _within(_forest(X, y, n_classes, max_bytes, weights), max_bytes)


def _moved(model: PublicModel, by: float) -> PublicModel:
    """The same of numbers that are so much larger."""
    ensemble = replace(model.ensemble, offset=model.ensemble.offset + by)
    smoothed = tuple(replace(tree, value=tree.value + by) for tree in model.smoothed)
    return replace(model, ensemble=ensemble, smoothed=smoothed)


def take_public(
    fitted: Any,
    encoding: Encoding,
    X: Rows,
    y: NDArray[Any],
    *,
    n_classes: int = 0,
    max_bytes: int = MAX_PROTOCOL_BYTES,
) -> PublicModel:
    """A fitted scikit-learn model on raw numeric columns, whose rows its owner declares public.

    One of trees, or that adds up over columns (`public_models.additive`), is taken as it is. In place of any other stands a blend
    of trees, fitted to its answers to the public rows here; a `DistilledBaseWarning` says how far off that is. Errors are those
    of clones, fitted on folds of the public rows here, which may be the ones it was fitted on.

    Args:
        fitted: the model; its classes are 0 .. n_classes - 1 in the order of `classes_`.
        encoding: of the raw columns it was fitted on; its ranges hold every threshold (`with_thresholds`).
        X, y: public rows here, encoded; there may be none.

    Raises:
        DataError: as `ensemble.from_sklearn` or `additive.take_additive`; it was fitted on other columns, or for another kind of
            label; or there are too few public rows for a blend in its place.
        ConfigError: it is too large: its size is named.
    """
    n_columns = getattr(fitted, "n_features_in_", encoding.n_encoded)
    if n_columns != encoding.n_encoded:
        raise DataError(f"base: fitted on {n_columns} columns, the rows have {encoding.n_encoded}")
    taken = _take_trees(fitted, encoding) if is_of_trees(fitted) else take_additive(fitted, encoding)
    if hasattr(fitted, "classes_") != (n_classes > 0):
        raise DataError(
            f"base: {type(fitted).__name__} is for another kind of label; take a "
            f"{'classifier' if n_classes else 'regressor'}"
        )
    if taken is None:
        return _within(_distil(fitted, encoding, X, y, n_classes, max_bytes), max_bytes)
    ensemble = _one_share(taken, n_classes)
    errors = np.empty((0, n_outputs(n_classes)))
    if len(X) > 1:
        from sklearn.base import clone

        # encoded rows serve trees, which only compare
        rows = X if is_of_trees(fitted) else raw_rows(encoding, X)
        errors = _out_of_fold(lambda some: clone(fitted).fit(rows[some], y[some]), rows, y, n_classes)
    return _within(PublicModel(ensemble=ensemble, errors=errors, n_classes=n_classes), max_bytes)


def _distil(
    fitted: Any, encoding: Encoding, X: Rows, y: NDArray[Any], n_classes: int, max_bytes: int
) -> PublicModel:
    """The blend that answers most like a fitted model; its errors are those of the model's clones and its own, together."""
    from sklearn.base import clone

    name = type(fitted).__name__
    if len(X) < FEWEST_ROWS:
        raise DataError(
            f"base: {name} is no sum over its columns; trees stand for such a model, and need {FEWEST_ROWS} public rows to be "
            f"fitted to it, of which there are {len(X)}"
        )
    X, y = draw_most(MOST_WEIGHED_ON, X, y)
    rows = raw_rows(encoding, X)
    answers = fitted.predict_proba(rows)[:, n_classes == 2 :] if n_classes else fitted.predict(rows)[:, None]
    blend = _blend(X, np.asarray(answers, dtype=np.float64), n_classes, max_bytes)
    off = float(np.sqrt(np.mean(blend.errors**2)))
    warnings.warn(
        f"base: {name} is no sum over its columns, so {blend.ensemble.roots.size} trees stand for it. On public rows that they "
        f"were not fitted on their {'shares' if n_classes else 'answers'} are {off:.2g} off its own, root mean square.",
        DistilledBaseWarning,
        stacklevel=2,
    )
    errors = _out_of_fold(lambda some: clone(fitted).fit(rows[some], y[some]), rows, y, n_classes)
    return replace(blend, errors=errors + blend.errors)


def _take_trees(fitted: Any, encoding: Encoding) -> Ensemble:
    """Its trees, on encoded columns."""
    raw = from_sklearn(fitted)
    threshold = raw.threshold.copy()
    for j, feature in enumerate(encoding.features):
        at = raw.feature == j
        if isinstance(feature, NumericFeature) and at.any():
            threshold[at] = scale(threshold[at], feature.minimum, feature.maximum)
    return replace(raw, threshold=threshold)


def with_thresholds(encoding: Encoding, fitted: Any) -> Encoding:
    """The encoding with its ranges widened to hold every threshold of a fitted model, so that clipping changes no answer."""
    if not is_of_trees(fitted):
        return encoding
    raw = from_sklearn(fitted)
    features: list[Feature] = []
    for j, feature in enumerate(encoding.features):
        tested = raw.threshold[raw.feature == j]
        if isinstance(feature, NumericFeature) and tested.size:
            low, high = feature.minimum, feature.maximum
            pad = 0.05 * (max(high, tested.max()) - min(low, tested.min())) or 1.0
            low = low if low <= tested.min() else float(tested.min() - pad)
            high = high if tested.max() < high else float(tested.max() + pad)
            features.append(replace(feature, minimum=low, maximum=high))
        else:
            features.append(feature)
    return Encoding(tuple(features))


def _within(model: PublicModel, max_bytes: int) -> PublicModel:
    size = model.ensemble.n_bytes
    if size > max_bytes:
        raise ConfigError(
            f"base: {size:,} bytes in a protocol ({model.ensemble.roots.size} trees, {model.ensemble.n_nodes:,} nodes), at "
            f"most {max_bytes:,} are allowed; take fewer or smaller trees, or raise max_protocol_bytes"
        )
    return model


def _one_share(ensemble: Ensemble, n_classes: int) -> Ensemble:
    """Return only the second of two shares that add up to 1, at half the size."""
    if n_classes != 2 or ensemble.link != "identity" or ensemble.n_outputs != 2:
        return ensemble
    return replace(ensemble, value=ensemble.value[:, 1:], offset=ensemble.offset[1:])


def _trees_of(fitted: Any, n_classes: int) -> Ensemble:
    """Return a fitted model with an output for every declared class, and no share for one without public rows."""
    ensemble = from_sklearn(fitted)
    seen = fitted.classes_ if n_classes else np.arange(0)
    if len(seen) == n_classes:
        return _one_share(ensemble, n_classes)
    is_share = ensemble.link == "identity"
    own = (
        seen[1:] if ensemble.link == "logistic" else seen
    )  # log odds of the second over the first, whose own are 0
    value = np.zeros((ensemble.n_nodes, n_classes))
    value[:, own] = ensemble.value
    offset = np.full(n_classes, 0.0 if is_share else _NEVER)
    offset[seen] = 0.0
    offset[own] = ensemble.offset
    return replace(ensemble, value=value, offset=offset, link="identity" if is_share else "softmax")


def _smoothed(X: Rows, wanted: Floats, n_classes: int) -> PublicModel:
    trees = tuple(public_tree.fit(X, column) for column in wanted.T)
    arrays = []
    for output, tree in enumerate(trees):
        value = np.zeros((tree.partition.n_nodes, len(trees)))
        value[:, output] = tree.value
        part = tree.partition
        arrays.append((part.feature, part.threshold, part.left, part.right, value))
    return PublicModel(
        ensemble=Ensemble.of_trees(arrays, np.zeros(len(trees))),
        errors=np.stack([tree.residuals for tree in trees], axis=1)
        if len(X) > 1
        else np.empty((0, len(trees))),
        smoothed=trees,
        n_classes=n_classes,
    )


def _boosted(X: Rows, y: NDArray[Any], n_classes: int, weights: Floats | None) -> PublicModel:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if n_classes else HistGradientBoostingRegressor
    unit = 1.0 if n_classes else unit_of(y)

    def fit(rows: Any) -> Any:
        model, w = kind(random_state=_SEED), None if weights is None else weights[rows]
        return model.fit(X[rows], y[rows], w) if n_classes else fit_in_unit(model, X[rows], y[rows], unit, w)

    errors = _out_of_fold(fit, X, y, n_classes)
    return PublicModel(ensemble=_trees_of(fit(slice(None)), n_classes), errors=errors, n_classes=n_classes)


def _forest(X: Rows, y: NDArray[Any], n_classes: int, max_bytes: int, weights: Floats | None) -> PublicModel:
    n_trees, min_rows = _forest_size(X, y, n_classes, max_bytes)
    while True:
        forest = _grown(X, y, n_classes, n_trees, min_rows, weights)
        ensemble = _trees_of(forest, n_classes)
        while (size := ensemble.n_bytes) > max_bytes and n_trees > FEWEST_TREES:
            n_trees = max(FEWEST_TREES, int(0.95 * n_trees * max_bytes / size))
            del forest.estimators_[n_trees:]
            ensemble = _trees_of(forest, n_classes)
        if size <= max_bytes or min_rows > len(X):
            break
        min_rows = max(min_rows + 1, int(min_rows * size / max_bytes))
    return PublicModel(ensemble=ensemble, errors=_out_of_bag(forest, X, y, n_classes), n_classes=n_classes)


def _forest_size(X: Rows, y: NDArray[Any], n_classes: int, max_bytes: int) -> tuple[int, int]:
    """Trees and rows a leaf of a forest that will likely fit, judged by a few trees."""
    is_few, min_rows = len(X) <= MOST_DRAWN, MIN_SAMPLES_LEAF
    probe = _PROBE if is_few else _PROBE_OF_MANY
    while True:
        few = _trees_of(_grown(X, y, n_classes, probe, min_rows), n_classes)
        # in a list of more trees the two ids of an inner node and the share of a leaf have more digits
        longer = 0.0 if is_few else 1.5 * few.n_nodes * math.log10(FEWEST_TREES / probe)
        per_tree = (few.n_bytes + longer) / probe
        n_trees = min(N_TREES, int(_ROOM * max_bytes / per_tree))
        if n_trees >= FEWEST_TREES or min_rows > len(X):
            return max(n_trees, FEWEST_TREES), min_rows
        aim = max_bytes if is_few else _ROOM * max_bytes
        min_rows = max(min_rows + 1, int(min_rows * FEWEST_TREES * per_tree / aim))


def _blend(X: Rows, wanted: Floats, n_classes: int, max_bytes: int) -> PublicModel:
    """The blend of numbers or shares [n, M]."""
    unit = 1.0 if n_classes else unit_of(wanted[:, 0])
    blend = fit_blend(X, wanted / unit, is_class=n_classes > 0, max_bytes=max_bytes)
    ensemble = blend.ensemble
    if unit != 1.0:
        ensemble = replace(ensemble, value=ensemble.value * unit, offset=ensemble.offset * unit)
    return PublicModel(ensemble=ensemble, errors=blend.errors * unit, n_classes=n_classes)


def _grown(
    X: Rows, y: NDArray[Any], n_classes: int, n_trees: int, min_rows: int, weights: Floats | None = None
) -> Any:
    """A fitted forest; the same whatever number of cores grows it, and its first trees are those of a smaller one."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if n_classes else RandomForestRegressor
    drawn = MOST_DRAWN if len(X) > MOST_DRAWN else None
    forest = kind(n_trees, min_samples_leaf=min_rows, max_samples=drawn, random_state=_SEED, n_jobs=-1)
    return forest.fit(X, y, weights) if n_classes else fit_in_unit(forest, X, y, weights=weights)


def _out_of_bag(forest: Any, X: Rows, y: NDArray[Any], n_classes: int) -> Floats:
    """Errors [n, M] of the trees that did not draw a row; rows that all of them drew are left out."""
    # some classes may have no row
    outputs = np.asarray(forest.classes_) if n_classes else np.zeros(1, dtype=np.int64)
    answered, n_trees = np.zeros((len(X), max(n_classes, 1))), np.zeros(len(X))
    for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        rows = np.flatnonzero(np.bincount(drawn, minlength=len(X)) == 0)
        if not rows.size:
            continue
        answer = tree.predict_proba(X[rows]) if n_classes else tree.predict(X[rows])[:, None]
        answered[np.ix_(rows, outputs)] += answer
        n_trees[rows] += 1
    is_out = n_trees > 0
    held_out = answered[is_out] / n_trees[is_out, None]
    return indicators(y, n_classes)[is_out] - (held_out[:, 1:] if n_classes == 2 else held_out)


def _out_of_fold(
    fit: Callable[[NDArray[np.bool_]], Any], X: NDArray[Any], y: NDArray[Any], n_classes: int
) -> Floats:
    """Errors [n, M] on public rows of models that `fit` fits on the other folds; encoded rows serve, as trees only compare."""
    fold = np.random.default_rng(_SEED).permutation(len(y)) % min(FOLDS, len(y))
    answered = np.zeros((len(y), max(n_classes, 1)))
    for k in range(fold.max() + 1):
        is_in = fold != k
        seen = np.unique(y[is_in])
        if n_classes and seen.size == 1:
            answered[~is_in, seen[0]] = 1.0
        elif n_classes:
            answered[np.ix_(~is_in, seen)] = fit(is_in).predict_proba(X[~is_in])
        else:
            answered[~is_in, 0] = fit(is_in).predict(X[~is_in])
    errors: Floats = indicators(y, n_classes) - (answered[:, 1:] if n_classes == 2 else answered)
    return errors
