"""The rivals as LPDT (D.1) and HistOfTree (C.1) print them, in plain loops, against what the program makes of the same reports;
and the baseline of HistOfTree that it becomes where nothing is protected.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ldptree.estimators.histoftree import HistOfTreeRegressor
from ldptree_benchmark.rivals.deconvolution import DeconvolutionRegressor
from ldptree_benchmark.rivals.histograms import PHISTRegressor
from ldptree_benchmark.rivals.krr import KaryResponseRegressor
from ldptree_benchmark.rivals.label_dt import LabelTreeRegressor, PublicPartTreeRegressor


def rows(n=200, d=2):
    rng = np.random.default_rng(4)
    X = rng.random((n, d))
    return X, np.clip(X[:, 0] + rng.normal(0, 0.3, n), -1, 1)


@pytest.mark.parametrize("is_adjusted", [False, True])
def test_a_cube_has_the_printed_ratio_of_noisy_sums(monkeypatch, is_adjusted):
    """Z / W of n reports, W = 1[x in A] + 4 / eps Lap and Z = y 1[x in A] + 4 M / eps Lap; of APHIST the average of W and of the
    volume.
    """
    (X, y), epsilon, threshold = rows(), 2.0, 0.1
    noise = np.random.default_rng(5).laplace(size=(2, 9)) * math.sqrt(len(y))
    drawn = iter(noise)
    monkeypatch.setattr(
        "ldptree_benchmark.rivals.histograms.laplace_sums",
        lambda n, size, scale, generator: scale * next(drawn),
    )
    model = PHISTRegressor(epsilon, bins=3, threshold=threshold, is_adjusted=is_adjusted, random_state=0)
    model.fit(X, y)
    for a, b in itertools.product(range(3), range(3)):
        middle = np.array([[(a + 0.5) / 3, (b + 0.5) / 3]])
        j = int(model.histogram_.apply(middle)[0])
        is_in = (np.minimum((X * 3).astype(int), 2) == [a, b]).all(axis=1)
        W = (is_in.sum() + 4 / epsilon * noise[0, j]) / len(y)
        W = (W + 1 / 9) / 2 if is_adjusted else W
        Z = (y[is_in].sum() + 4 * 1.0 / epsilon * noise[1, j]) / len(y)
        expected = Z / W if threshold <= W else 0.0
        assert model.predict(middle)[0] == pytest.approx(expected)


def test_a_deconvolved_kernel_is_on_average_over_the_noise_the_kernel_of_the_row_itself():
    """By quadrature over Laplace noise; and an answer is the printed ratio of weighted sums, in plain loops."""
    model = DeconvolutionRegressor(2.0, bandwidth=0.3, random_state=0)
    X, y = rows(n=40)
    answers, (b, _, _) = model.fit(X, y).predict(X[:5]), model.scales(2)

    def weight(u):
        return math.exp(-(u**2) / 2) * (1 + (b / 0.3) ** 2 * (1 - u**2))

    for x, answer in zip(X[:5], answers, strict=True):
        weights = [math.prod(weight((x[j] - sent[j]) / 0.3) for j in range(2)) for sent in model.reports_]
        expected = np.dot(weights, model.reports_[:, 2]) / sum(weights)
        assert answer == pytest.approx(expected, rel=1e-6)
    noise = np.linspace(-40, 40, 400_001)
    density = np.exp(-np.abs(noise) / b) / (2 * b)
    for u in (0.0, 0.7, 2.0):
        smoothed = sum(weight(u - w / 0.3) * p for w, p in zip(noise[::40], density[::40], strict=True))
        assert smoothed * (noise[40] - noise[0]) == pytest.approx(math.exp(-(u**2) / 2), abs=1e-3)


@pytest.mark.parametrize(
    "model",
    [
        KaryResponseRegressor(2.0, bins=3, max_depth=3, random_state=0),
        LabelTreeRegressor(2.0, max_depth=3, random_state=0),
        PublicPartTreeRegressor(2.0, private_features=[0], max_depth=3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_leaf_of_a_rival_s_tree_has_the_mean_of_the_reported_labels(model):
    X, y = rows()
    model.fit(X, y)
    is_krr = isinstance(model, KaryResponseRegressor)
    seen = model.reports_[:, :-1] if is_krr else X[:, getattr(model, "features_", [0, 1])]
    labels = model.reports_[:, -1] if is_krr else model.noisy_labels_
    leaves = model.tree_.apply(seen)
    found = model.tree_.predict(seen)
    for leaf in set(leaves.tolist()):
        assert found[leaves == leaf] == pytest.approx(labels[leaves == leaf].mean())
    if is_krr:  # the middles of reported bins
        assert set((seen * 6).round(9).ravel()) == {1.0, 3.0, 5.0}
    else:
        np.testing.assert_array_equal(model.predict(X), found)


def test_histoftree_with_no_private_feature_is_label_dt():
    """The same tree and the same numbers from the same coins, cut to the labels' range, and no second question."""
    rng = np.random.default_rng(0)
    X = rng.random((2000, 4))
    y = np.clip(1.5 * (X[:, 0] > 0.5) + X[:, 1] - 1.2 + 0.1 * rng.standard_normal(2000), -1, 1)
    for depth, leaf in ((1, 1), (5, 10), (8, 1)):
        settings = {"p": depth, "partition": "cart", "min_samples_leaf": leaf, "label": "laplace"}
        ours = HistOfTreeRegressor(1.0, private_features=[], random_state=3, **settings)
        theirs = LabelTreeRegressor(1.0, max_depth=depth, min_samples_leaf=leaf, random_state=3)
        uncut = theirs.fit(X, y).predict(X)
        np.testing.assert_allclose(ours.fit(X, y).predict(X), np.clip(uncut, -1, 1), rtol=1e-9, atol=1e-9)
        assert [round(e.epsilon, 12) for e in ours.ledger_.entries] == [1.0]
        assert ours.model_.mechanism is None
