"""LPCTClassifier and LPDTRegressor: what they learn, with which settings, and what they refuse."""

import math

import numpy as np
import pytest
from sklearn.datasets import make_classification

from ldptree.errors import ConfigError, DataError
from ldptree.estimators import LPCTClassifier, LPDTRegressor
from ldptree.families.settings import PaperOptions
from ldptree.inference.depth import FEW_PUBLIC_ROWS, FEWEST_PUBLIC_ROWS
from ldptree.mechanisms import CHOICES

KINDS = [LPCTClassifier, LPDTRegressor]


def people(n=2000, n_public=150, seed=0, n_classes=2):
    """Rows, labels and a mask of public rows: the label follows the quarter of the plane. n_classes 0: numbers from 0 to 4."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    if not n_classes:
        y = 1.0 * (X[:, 0] > 0.5) + 2.0 * (X[:, 1] > 0.5) + rng.random(n)
        return X, y, rng.permutation(n) < n_public
    y = ((X[:, 0] > 0.5) + 2 * (X[:, 1] > 0.5)) % n_classes
    flipped = rng.random(n) < 0.1
    y[flipped] = rng.integers(0, n_classes, flipped.sum())
    return X, y, rng.permutation(n) < n_public


def people_of(kind, *sizes, **settings):
    return people(*sizes, **{"n_classes": 0 if kind is LPDTRegressor else 2} | settings)


# what is learned


@pytest.mark.parametrize(
    ("mechanism", "n_classes"),
    [(m, C) for i, m in enumerate(CHOICES) for C in (0, 2 if i % 2 or m == "signed_subset" else 4)],
)
def test_it_learns_the_law_with_every_mechanism(mechanism, n_classes):
    X, y, public = people(3000, 300, n_classes=n_classes)
    kind = LPCTClassifier if n_classes else LPDTRegressor
    fitted = kind(8.0, mechanism=mechanism, depth=2, random_state=1).fit(X, y, public=public)
    T, t, _ = people(2000, seed=5, n_classes=n_classes)
    assert fitted.score(T, t) > 0.85
    assert fitted.mechanism_.epsilon <= 8.0
    assert fitted.protocol_.n_classes == n_classes or fitted.protocol_.numeric
    assert fitted.protocol_.simulation == (mechanism == "laplace")


IN_COMMON = [
    {"partition": "max-edge"},
    {"lam": 0},
    {"lam": math.inf},
    {"lam": "auto"},
    {"outside": "drop"},
    {"feature_range": (0, 1)},
]
LPCTS = [
    {"partition": "random-edge"},
    {"prune": "variance"},
    {"prune": "none"},
    {"prune": "paper"},
    {
        "prune": "paper",
        "partition": "max-edge",
        "paper": PaperOptions(termination=False, stop_empty=False, stop_at_public=True),
    },
    {"lam": "auto", "prune": "none", "rule": "ratio", "mechanism": "laplace"},
    {"feature_range": ([0, 0, 0], [1, 1, 2])},
]
PAPERS_LPDT = {"mechanism": "randomized_response", "lam": 0, "prune": "none", "rule": "ratio", "rho": 0.7}
LPDTS = [
    {"partition": "random-edge", "depth": 6},
    {"prune": "fallback"},
    {"prune": "none", "lam": 1.0},
    {"min_samples_leaf": 30},
    {"label_range": (-5.0, 9.0)},
    {"depth": 2} | PAPERS_LPDT,
]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [(LPCTClassifier, one) for one in (*IN_COMMON, *LPCTS)]
    + [(LPDTRegressor, one) for one in (*IN_COMMON, *LPDTS)],
)
def test_every_variant_is_a_setting(kind, settings):
    X, y, public = people_of(kind, 2500, 300 if kind is LPCTClassifier else 100)
    fitted = kind(8.0, random_state=3, **settings).fit(X, y, public=public)
    found = fitted.predict(X)
    assert fitted.score(X, y) > 0.5 + 0.1 * (kind is LPCTClassifier)
    if kind is LPCTClassifier:
        np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1)
        np.testing.assert_array_equal(found, fitted.decision_function(X) > 0)
    else:
        low, high = fitted.label_range_
        assert ((low <= found) & (found <= high)).all()


@pytest.mark.parametrize(
    ("settings", "n_public", "fewest"),
    [
        ({}, 60, FEWEST_PUBLIC_ROWS["classes"]),
        ({}, FEW_PUBLIC_ROWS - 1, 1),
        ({"partition": "max-edge"}, 60, 0),
        ({"prune": "paper"}, 60, 1),
    ],
)
def test_a_cart_has_some_public_rows_in_every_cell_but_where_they_are_few_or_the_paper_says_otherwise(
    settings, n_public, fewest
):
    X, _, public = people(3000, n_public)
    any_label = np.random.default_rng(1).integers(0, 2, len(X))
    fitted = LPCTClassifier(8.0, depth=8, random_state=1, **settings).fit(X, any_label, public=public)
    cells = fitted.partition_.apply(fitted.protocol_.encoding.encode(X[public]))
    assert np.bincount(cells, minlength=fitted.partition_.n_leaves).min() == fewest


def test_of_several_classes_the_predicted_one_has_the_largest_score():
    rng = np.random.default_rng(3)
    X, public = rng.random((3000, 2)), np.arange(3000) < 150
    y = np.where(rng.random(3000) < 0.4, rng.integers(0, 4, 3000), (4 * X[:, 0]).astype(int))
    fitted = LPCTClassifier(2.0, random_state=3).fit(X, y, public=public)
    assert (fitted.model_.estimate.argmax(axis=1) != fitted.model_.decision).any()
    scores = fitted.decision_function(X)
    np.testing.assert_array_equal(fitted.classes_[scores.argmax(axis=1)], fitted.predict(X))
    np.testing.assert_allclose(scores.sum(axis=1), 0, atol=1e-12)
    assert fitted.margin_interval(X)[0].shape == (3000, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_without_public_rows_the_tree_is_cut_blindly_in_the_range_that_was_given(kind):
    X, y, _ = people_of(kind, 6000)
    y = y / 2 - 1 if kind is LPDTRegressor else y
    fitted = kind(4.0, depth=4, random_state=0).fit(X, y)
    assert (fitted.partition_.depth[fitted.partition_.leaves] == 4).all()
    assert fitted.model_.n_public == 0
    assert fitted.score(X, y) > 0.6
    stretched = kind(4.0, depth=4, feature_range=(0, 100), random_state=0).fit(100 * X, y)
    np.testing.assert_array_equal(stretched.partition_.threshold, fitted.partition_.threshold)
    edges = kind(4.0, depth=4, partition="max-edge", random_state=0).fit(X, y)
    np.testing.assert_array_equal(edges.partition_.threshold, fitted.partition_.threshold)
    if kind is LPDTRegressor:
        assert fitted.label_range_ == (-1.0, 1.0)
        known = kind(4.0, depth=4, label_range=(0, 4), random_state=0).fit(X, 2 * y + 2)
        assert known.label_range_ == (0.0, 4.0)
        assert known.score(X, 2 * y + 2) > 0.6


def test_algorithm_2_asks_with_one_half_of_epsilon_and_where_it_terminates_with_the_other():
    X, y, public = people(3000, 20)
    twice = LPCTClassifier(2.0, prune="paper", random_state=0).fit(X, y, public=public)
    assert [entry.epsilon for entry in twice.ledger_.entries] == [1.0, 1.0]
    assert twice.protocol_.round == 2
    assert twice.model_.epsilon == 2.0
    assert (twice.model_.prune, twice.model_.lam) == ("paper", "paper")
    once = LPCTClassifier(2.0, prune="paper", paper={"termination": False}, random_state=0).fit(
        X, y, public=public
    )
    assert [entry.epsilon for entry in once.ledger_.entries] == [2.0]


def test_the_range_of_labels_is_that_of_public_rows_and_a_single_one_gives_none_unless_one_is_given():
    X, y, public = people(n_classes=0)
    fitted = LPDTRegressor(2.0, random_state=1).fit(X, y, public=public)
    assert fitted.label_range_ == (y[public].min(), y[public].max())
    X, y, _ = people(100, n_classes=0)
    public = np.arange(100) == 0
    with pytest.raises(DataError, match="no range; set label_range"):
        LPDTRegressor(1.0).fit(X, y, public=public)
    fitted = LPDTRegressor(1.0, label_range=(0, 4), feature_range=(0, 1)).fit(X, y, public=public)
    assert np.isfinite(fitted.predict(X)).all()


@pytest.mark.parametrize("power", [-50, -180, 180])
def test_the_unit_of_the_label_does_not_matter(power):
    """A power of two rounds nothing, so the tree is the same (scikit-learn's own stops at an absolute variance)."""
    X, y, public = people(600, n_classes=0)
    trees = [
        LPDTRegressor(4.0, depth=3, random_state=0).fit(X, label, public=public).partition_
        for label in (y, np.ldexp(y, power))
    ]
    assert trees[0].n_leaves > 1
    assert trees[0].to_json() == trees[1].to_json()


# what is refused, before anybody reports


def refuse(kind, settings, message, **besides):
    X, y, public = people_of(kind, 200, 50, **besides)
    estimator = kind(**({"epsilon": 1.0, "random_state": 0} | settings))
    with pytest.raises(ConfigError, match=message):
        estimator.fit(X, y, public=public)
    assert not getattr(estimator, "ledger_", None) or not estimator.ledger_.entries


def test_what_is_for_two_classes_or_fewer_cells_is_refused():
    refuse(LPCTClassifier, {"depth": 40, "partition": "max-edge"}, r"up to 2\^40 cells")
    refuse(LPCTClassifier, {"prune": "paper"}, "two classes, found 3", n_classes=3)
    message = 'is for two classes, and there are 4; use "auto"'
    refuse(LPCTClassifier, {"mechanism": "signed_subset"}, message, n_classes=4)


def test_public_rows_of_one_label_are_refused_with_the_remedy():
    for kind, message in (
        (LPCTClassifier, "the public rows have one class only, .*Mark public rows of every class"),
        (LPDTRegressor, "one label only, 0, so they give no range"),
    ):
        X, y, public = people_of(kind, 200, 50)
        with pytest.raises(DataError, match=message):
            kind(1.0, random_state=0).fit(X, y * ~public, public=public)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
@pytest.mark.parametrize("candidates", [None, [{}, {"depth": 1}]])
def test_labels_whose_squares_are_no_floats_are_refused(scale, candidates):
    X, y, public = people(400, n_classes=0)
    with pytest.raises(ConfigError, match="another unit"):
        LPDTRegressor(4.0, candidates=candidates, random_state=0).fit(X, y * scale, public=public)
    with pytest.raises(ConfigError, match="another unit"):
        LPDTRegressor(4.0, label_range=(0, 5e-324), candidates=candidates, random_state=0).fit(X, y)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_totals_that_no_memory_holds_are_refused_with_their_size():
    X, _, _ = people(1)
    X, y = np.repeat(X, 5000, axis=0), np.arange(5000)
    with pytest.raises(
        ConfigError, match=r"1,024 cells x 5,000 classes: .* GiB; at most 3 are used, which is 919 such cells"
    ):
        LPCTClassifier(1.0, depth=10, random_state=0).fit(X, y)


def test_a_report_that_no_memory_holds_is_refused_with_its_size():
    X, y = make_classification(3000, 30, random_state=0)
    with pytest.raises(ConfigError, match=r"takes .* GiB|up to 2\^"):
        LPCTClassifier(1.0, depth=30, mechanism="laplace", random_state=0).fit(X, y)
