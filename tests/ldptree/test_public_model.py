"""The public model: out-of-fold errors are honest, fitted models are taken as they are, and sizes are kept."""

import re

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, SplineTransformer, StandardScaler
from sklearn.svm import SVC

from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import ConfigError, DataError, DistilledBaseWarning
from ldptree.estimators.holders import encoding_of
from ldptree.models.ensemble import from_sklearn
from ldptree.public_models import BASES
from ldptree.public_models import fit as public_fit
from ldptree.public_models import smoothed_tree as public_tree
from ldptree.public_models.additive import MOST_OFF
from ldptree.public_models.fit import fit_public, take_public, with_thresholds
from ldptree.public_models.model import constant, indicators, top_of

pytestmark = pytest.mark.usefixtures("few_trees")


def rows(n=300, seed=0, n_classes=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3)).astype(np.float32)
    y = 3 * (X[:, 0] > 0.5) + X[:, 1] + (2.0 if n_classes else 0.5) * rng.normal(size=n)
    return X, np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes)) if n_classes else y


def unit(d=3, high=1.0):
    return Encoding(tuple(NumericFeature(f"x{j}", 0.0, high) for j in range(d)))


@pytest.mark.parametrize(
    ("base", "n_classes"),
    [
        *(("tree", 0), ("tree", 3), ("forest", 0), ("forest", 2), ("boosting", 0)),
        *(pytest.param("blend", c, marks=pytest.mark.slow) for c in (0, 2, 3)),
    ],
)
def test_out_of_fold_errors_are_those_of_fresh_rows(base, n_classes):
    """Their mean square is near that on 3,000 fresh rows: within 25 %."""
    X, y = rows(400, n_classes=n_classes)
    model = fit_public(base, X, y, n_classes=n_classes)
    fresh, labels = rows(3000, seed=1, n_classes=n_classes)
    errors = indicators(labels, n_classes) - model.answers(fresh)
    assert model.answers(fresh).shape == (3000, 3 if n_classes == 3 else 1)
    assert np.mean(model.errors**2) == pytest.approx(np.mean(errors**2), rel=0.25)
    in_sample = np.mean((indicators(y, n_classes) - model.answers(X)) ** 2)
    assert in_sample < 0.95 * np.mean(model.errors**2)


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("base", BASES)
def test_few_public_rows_are_enough(base, n):
    X, y = rows(n)
    model = fit_public(base, X, y)
    assert np.isfinite(model.answers(rows(50)[0])).all()
    assert np.isfinite(model.errors).all()


@pytest.mark.parametrize(
    ("base", "seen"),
    [(base, seen) for base in ("forest", "boosting") for seen in ([1], [0, 2])] + [("forest", [3, 1, 0])],
)
def test_a_class_that_no_public_row_has_is_an_output_whose_share_is_0(base, seen):
    """The others' shares are those of the same base with their classes alone."""
    X, y = rows(100, n_classes=2 if len(seen) == 2 else 3)
    alone = fit_public(base, X, y, n_classes=len(seen)) if len(seen) > 1 else None
    model = fit_public(base, X, np.array(seen)[y % len(seen)], n_classes=4)
    said = model.answers(X)
    unseen = np.setdiff1d(np.arange(4), seen)
    assert model.errors.shape[1:] == (4,)
    assert said[:, unseen].max() < 1e-300
    np.testing.assert_allclose(said.sum(axis=1), 1)
    if len(seen) == 2:
        np.testing.assert_allclose(said[:, seen[1]], alone.answers(X)[:, 0], rtol=1e-9)
        np.testing.assert_allclose(model.errors[:, seen[1]], alone.errors[:, 0], rtol=1e-9)
    elif len(seen) == 1:
        assert (said[:, seen[0]] == 1).all()


def test_a_smoothed_tree_knows_how_unsure_its_cells_are():
    """Means of 16 trees' predictions spread as the posterior variance says: ratio of the two within [.25, 2.2]."""
    spread, stated = [], []
    grid = rows(400, seed=99)[0]
    side = (grid[:, 0] > 0.5).astype(int)
    for seed in range(16):
        X, y = rows(150, seed=seed)
        tree = public_tree.fit(X, y)
        spread.append(np.bincount(side, tree.predict(grid)) / np.bincount(side))
        cells = (X[:, 0] > 0.5).astype(int)
        stated.append(tree.variance_of_means(tree.partition.apply(X), cells, 2))
    ratio = np.mean(stated, axis=0) / np.var(spread, axis=0)
    assert ((ratio > 0.25) & (ratio < 2.2)).all(), ratio


def test_a_forest_is_made_smaller_to_fit_and_what_does_not_fit_is_refused_with_its_size():
    X, y = rows(400)
    whole = fit_public("forest", X, y)
    limit = whole.ensemble.n_bytes // 4
    less = fit_public("forest", X, y, max_bytes=limit)
    assert less.ensemble.n_bytes <= limit
    assert public_fit.FEWEST_TREES <= less.ensemble.roots.size < public_fit.N_TREES
    with pytest.raises(ConfigError, match=r"bytes in a protocol .* at most 200"):
        fit_public("forest", X, y, max_bytes=200)
    with pytest.raises(ConfigError, match="at most 500"):
        fit_public("boosting", X, y, max_bytes=500)


def by_scikit_learn(X, y, n_classes, n_trees=40, weights=None):
    """Trees and out-of-bag errors of a forest as scikit-learn fits it in one go on one core, every tree drawing all rows."""
    kind = RandomForestClassifier if n_classes else RandomForestRegressor
    forest = kind(n_trees, min_samples_leaf=2, oob_score=True, random_state=0).fit(X, y, weights)
    held_out = forest.oob_decision_function_ if n_classes else forest.oob_prediction_[:, None]
    errors = indicators(y, n_classes) - (held_out[:, 1:] if n_classes == 2 else held_out)
    return from_sklearn(forest).predict(X)[:, n_classes == 2 :], errors


@pytest.mark.parametrize("n_classes", [0, 3])
def test_where_few_rows_are_drawn_the_forest_is_scikit_learns_to_the_last_bit(n_classes, monkeypatch):
    X, y = rows(500, n_classes=n_classes)
    monkeypatch.setattr(public_fit, "MOST_DRAWN", 500)
    model = fit_public("forest", X, y, n_classes=n_classes)
    answers, errors = by_scikit_learn(X, y, n_classes)
    assert np.array_equal(model.answers(X), answers)
    assert np.array_equal(model.errors, errors)


@pytest.mark.parametrize("n_classes", [0, 3])
def test_weights_are_scikit_learns_and_a_base_that_cannot_use_them_is_refused(n_classes):
    X, y = rows(300, n_classes=n_classes)
    weights = np.where(X[:, 0] > 0.5, 5.0, 0.5)
    weighted, errors = by_scikit_learn(X, y, n_classes, weights=weights)
    model = fit_public("forest", X, y, n_classes=n_classes, weights=weights)
    np.testing.assert_allclose(model.answers(X), weighted, atol=1e-6)
    np.testing.assert_allclose(model.errors, errors, atol=1e-6)
    for base in ("forest", "boosting"):
        plain, weighted = (
            fit_public(base, X, y, n_classes=n_classes, weights=w).answers(X) for w in (None, weights)
        )
        assert not np.allclose(plain, weighted)
    for base in ("blend", "tree"):
        with pytest.raises(
            ConfigError, match=f'base = "{base}": cannot use weights; take forest or boosting'
        ):
            fit_public(base, X, y, n_classes=n_classes, weights=weights)


@pytest.mark.parametrize("n_classes", [0, 2])
def test_trees_that_draw_a_part_of_many_rows_have_honest_errors_on_all(n_classes, monkeypatch):
    """Their mean square is near that on 3,000 fresh rows: within 15 %."""
    X, y = rows(3000, n_classes=n_classes)
    monkeypatch.setattr(public_fit, "MOST_DRAWN", 300)
    model = fit_public("forest", X, y, n_classes=n_classes)
    most = 2 * (300 // public_fit.MIN_SAMPLES_LEAF) - 1  # nodes that 300 rows can make
    assert np.diff([*model.ensemble.roots, model.ensemble.n_nodes]).max() <= most
    assert len(model.errors) == 3000
    fresh, labels = rows(3000, seed=1, n_classes=n_classes)
    errors = indicators(labels, n_classes) - model.answers(fresh)
    assert np.mean(model.errors**2) == pytest.approx(np.mean(errors**2), rel=0.15)


def test_a_forest_does_not_depend_on_the_number_of_cores():
    X, y = rows(300, n_classes=2)
    models = []
    for n_jobs in (1, 3):
        with joblib.parallel_config(backend="threading", n_jobs=n_jobs):
            models.append(fit_public("forest", X, y, n_classes=2))
    with joblib.parallel_config(backend="sequential"):
        models.append(fit_public("forest", X, y, n_classes=2))
    assert len({model.ensemble.digest for model in models}) == 1
    assert all(np.array_equal(model.errors, models[0].errors) for model in models)


@pytest.mark.parametrize("n_classes", [0, 2])
def test_a_forest_that_came_out_too_large_is_the_one_of_fewer_trees(n_classes, monkeypatch):
    X, y = rows(300, n_classes=n_classes)
    monkeypatch.setattr(public_fit, "_forest_size", lambda *_: (public_fit.N_TREES, 2))
    whole = fit_public("forest", X, y, n_classes=n_classes).ensemble.n_bytes
    model = fit_public("forest", X, y, n_classes=n_classes, max_bytes=int(0.8 * whole))
    n_trees = model.ensemble.roots.size
    assert public_fit.FEWEST_TREES < n_trees < public_fit.N_TREES
    answers, errors = by_scikit_learn(X, y, n_classes, n_trees)
    assert np.array_equal(model.answers(X), answers)
    assert np.array_equal(model.errors, errors)


@pytest.mark.parametrize("n_classes", [0, 2])
def test_a_forest_too_large_at_its_fewest_trees_gets_larger_leaves(n_classes, monkeypatch):
    X, y = rows(300, n_classes=n_classes)
    monkeypatch.setattr(public_fit, "_forest_size", lambda *_: (public_fit.FEWEST_TREES, 2))
    whole = fit_public("forest", X, y, n_classes=n_classes).ensemble
    less = fit_public("forest", X, y, n_classes=n_classes, max_bytes=whole.n_bytes // 2).ensemble
    assert less.n_bytes <= whole.n_bytes // 2
    assert less.roots.size == public_fit.FEWEST_TREES


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_a_fitted_model_gives_the_same_answers_on_raw_rows_beyond_the_public_range_too(n_classes):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(0, 300, (500, 3)), 1)
    score = X[:, 0] + X[:, 1]
    if n_classes:
        y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
        fitted = RandomForestClassifier(9, random_state=0).fit(X, y)
        expected = fitted.predict_proba(X)[:, 1:] if n_classes == 2 else fitted.predict_proba(X)
    else:
        y = score
        fitted = HistGradientBoostingRegressor(max_iter=20).fit(X, y)
        expected = fitted.predict(X)[:, None]
    # a narrow public sample: its range alone would clip most rows
    encoding = with_thresholds(unit(), fitted)
    near = (np.abs(X) < 150).all(axis=1)
    model = take_public(fitted, encoding, encoding.encode(X[near]), y[near], n_classes=n_classes)
    np.testing.assert_allclose(
        model.answers(encoding.encode(X)), expected, atol=1e-5 * np.abs(expected).max()
    )
    assert model.errors.shape == (near.sum(), expected.shape[1])
    with pytest.raises(ConfigError, match="bytes"):
        take_public(fitted, encoding, encoding.encode(X[:0]), y[:0], n_classes=n_classes, max_bytes=100)


SCALED = make_pipeline(StandardScaler(), LogisticRegression())
SUMS = [
    (0, Ridge(50.0)),
    (0, make_pipeline(MinMaxScaler(), SplineTransformer(), Ridge())),
    (2, SCALED),
    (2, GaussianNB()),
    (3, SCALED),
]


@pytest.mark.parametrize(("n_classes", "fitted"), SUMS, ids=lambda part: str(part)[:9])
def test_a_fitted_model_that_adds_up_over_columns_is_taken_within_a_twentieth(n_classes, fitted):
    """Of a share, or of the spread of its numbers; its errors are honest ones in the label's unit."""
    rng = np.random.default_rng(0)
    X = rng.normal(50, 300, (600, 3))
    score = (X[:, 0] - X[:, 1]) / 300 + rng.normal(size=600)
    y = np.digitize(score, [0.0, 1.0][: n_classes - 1]) if n_classes else 100 * score
    fitted = clone(fitted).fit(X[:400], y[:400])
    encoding = encoding_of(X[:400], None, None)
    model = take_public(fitted, encoding, encoding.encode(X[:400]), y[:400], n_classes=n_classes)
    inside = np.clip(X, X[:400].min(axis=0), X[:400].max(axis=0))
    wanted = fitted.predict_proba(inside) if n_classes else fitted.predict(inside)[:, None]
    wanted = wanted[:, 1:] if n_classes == 2 else wanted
    found = model.answers(encoding.encode(X))
    assert np.abs(found - wanted).max() <= MOST_OFF * (1.0 if n_classes else np.ptp(wanted))
    fresh = indicators(y[400:], n_classes) - found[400:]
    assert np.mean(model.errors**2) == pytest.approx(np.mean(fresh**2), rel=0.2)
    assert model.ensemble.n_bytes < 30_000


@pytest.mark.parametrize(
    ("fitted", "said"),
    [
        (SVC(), "SVC has no shares of classes"),
        (LogisticRegression(), "LogisticRegression is not fitted"),
    ],
)
def test_a_model_that_has_no_answers_is_refused_with_what_to_do(fitted, said):
    X, y = rows(200, n_classes=2)
    model = fitted if "not fitted" in said else clone(fitted).fit(X, y)
    with pytest.raises(DataError, match=said):
        take_public(model, unit(), X, y, n_classes=2)


OTHERS = [
    (0, KNeighborsRegressor(20)),
    (
        0,
        make_pipeline(
            StandardScaler(), MLPRegressor(hidden_layer_sizes=(20,), max_iter=2000, random_state=0)
        ),
    ),
    (2, make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=2000, random_state=0))),
    (3, KNeighborsClassifier(20)),
]


@pytest.mark.parametrize(("n_classes", "fitted"), OTHERS, ids=lambda part: str(part)[:9])
def test_trees_stand_for_any_other_model_and_it_is_said_how_far_off_they_are(n_classes, fitted):
    """Its errors are those of the trees on labels of rows that neither was fitted on."""
    X, y = rows(1500, n_classes=n_classes)
    fitted = clone(fitted).fit(X[:500], y[:500])
    with pytest.warns(DistilledBaseWarning, match="trees stand for it") as said:
        model = take_public(fitted, unit(), X[:500], y[:500], n_classes=n_classes)
    off = float(re.search(r"are ([\d.e+-]+) off its own", str(said[0].message))[1])
    wanted = fitted.predict_proba(X[500:]) if n_classes else fitted.predict(X[500:])[:, None]
    found, wanted = model.answers(X[500:]), wanted[:, 1:] if n_classes == 2 else wanted
    assert np.sqrt(np.mean((found - wanted) ** 2)) == pytest.approx(off, rel=0.35)
    assert off < 0.35 * np.std(wanted)
    fresh = indicators(y[500:], n_classes) - found
    assert np.mean(model.errors**2) == pytest.approx(np.mean(fresh**2), rel=0.3)
    with pytest.raises(DataError, match="need 10 public rows to be fitted to it, of which there are 5"):
        take_public(fitted, unit(), X[:5], y[:5], n_classes=n_classes)


def test_a_fitted_model_of_another_kind_is_refused():
    X, y = rows(100, n_classes=2)
    fitted = RandomForestClassifier(3).fit(X, y)
    with pytest.raises(DataError, match="another kind of label"):
        take_public(fitted, unit(), X, y, n_classes=0)
    with pytest.raises(DataError, match="fitted on 3 columns, the rows have 2"):
        take_public(fitted, unit(2), X[:, :2], y, n_classes=2)


def test_a_constant_answers_the_same_everywhere():
    model = constant(np.array([0.5]), 2)
    np.testing.assert_array_equal(model.answers(rows(5)[0]), np.full((5, 1), 0.5))
    assert not model.own_variance(top_of(public_tree.fit(*rows(20)).partition, 1), rows(5)[0]).any()


def test_the_top_of_a_tree_agrees_with_it_above_the_cut():
    X, y = rows(200)
    tree = public_tree.fit(X, y).partition
    for depth in (0, 1, 3, 40):
        top = top_of(tree, depth)
        assert top.max_depth == min(depth, tree.max_depth)
        pairs = np.unique(np.stack([tree.apply(X), top.apply(X)]), axis=1)
        assert pairs.shape[1] == np.unique(pairs[0]).size  # no leaf of the tree is in two cells of its top
