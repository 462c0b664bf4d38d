"""Random corrected models of every kind of label, link and feature, and rows to score, for the tests beside this file."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from example_models import every_kind_of_feature, random_rows, random_tree

from ldptree.encoding import Encoding, Level, NumericFeature
from ldptree.families.corrections import Corrections
from ldptree.families.stumps import Stump
from ldptree.inference.discrepancy import ALIKE
from ldptree.models.corrected import CorrectedModel
from ldptree.models.ensemble import Ensemble
from ldptree.partition.tree import Partition
from ldptree.protocol.published_base import Contrast

KINDS: dict[str, tuple[tuple[Level, ...], str, int]] = {
    "number": ((), "identity", 1),
    "number, with stumps": ((), "identity", 1),
    "two classes, logistic, with stumps": (("no", "yes"), "logistic", 1),
    "two classes, one share": (("no", "yes"), "identity", 1),
    "two classes, two shares": (("no", "yes"), "identity", 2),
    "two classes, logistic": (("no", "yes"), "logistic", 1),
    "two classes, softmax": (("no", "yes"), "softmax", 2),
    "three classes, shares": (("bus", "taxi", "it's"), "identity", 3),
    "three classes, softmax": (("bus", "taxi", "it's"), "softmax", 3),
    "ten classes, shares": (tuple(range(10)), "identity", 10),
    "ten classes, softmax": (tuple(range(10)), "softmax", 10),
}
"""Classes, link and outputs of the trees."""


def trees_of(partitions: list[Partition], n_outputs: int, link: str, rng: np.random.Generator) -> Ensemble:
    """An ensemble of these trees with random values: shares, numbers or log odds."""
    trees = []
    for tree in partitions:
        value = rng.dirichlet(np.ones(max(n_outputs, 2)), tree.n_nodes)[:, :n_outputs] / len(partitions)
        if link != "identity":
            value = rng.normal(0.0, 1.0, (tree.n_nodes, n_outputs))
        trees.append((tree.feature, tree.threshold, tree.left, tree.right, value))
    return Ensemble.of_trees(trees, rng.normal(0.0, 0.1, n_outputs), link)


def corrected(
    encoding: Encoding,
    base: Ensemble,
    partition: Partition,
    classes: tuple[Level, ...],
    rng: np.random.Generator,
) -> CorrectedModel:
    """A model with random corrections, some of them 0, that now and then push a share out of [0, 1]."""
    shape = (partition.n_leaves, len(classes) if len(classes) > 2 else 1)
    correction = np.where(rng.random(shape) < 0.2, 0.0, rng.normal(0.0, 0.4, shape))
    noise = np.where(rng.random(shape) < 0.1, np.inf, rng.random(shape))
    return CorrectedModel(
        encoding=encoding,
        base=base,
        partition=partition,
        corrections=Corrections(
            share=rng.dirichlet(np.ones(shape[0])),
            correction=correction,
            sd=np.where(correction == 0.0, 0.0, rng.random(shape) * 0.2),
            hidden=np.zeros((2, *shape)) if classes else rng.exponential(0.02, (2, *shape)),
            observed=correction + rng.normal(0.0, 0.1, shape),
            noise_sd=noise,
            discrepancy=correction,
            priors=(ALIKE,) * shape[1],
            common_sd=0.0 if classes else 0.125,
            chance_alike=math.nan if classes else 0.5,
        ),
        classes=classes,
        default=rng.random(shape[1]),
        target="paid",
        epsilon=2.0,
        mechanism="joint oue",
        n_private=1000,
        n_public=100,
        protocol_digests=("0" * 64,) * shape[1],
    )


def random_corrected(
    kind: str = "number", seed: int = 0, *, n_trees: int = 7, depth: int = 6, with_rules: bool = False
) -> CorrectedModel:
    """A model over every kind of feature."""
    rng = np.random.default_rng(seed)
    classes, link, n_outputs = KINDS[kind]
    encoding = every_kind_of_feature(with_rules=with_rules)
    partitions = [random_tree(encoding.n_encoded, depth, rng) for _ in range(n_trees)]
    base = trees_of(partitions, n_outputs, link, rng)
    model = corrected(encoding, base, random_tree(encoding.n_encoded, 3, rng), classes, rng)
    return replace(model, stumps=random_stumps(model, rng)) if "stumps" in kind else model


def random_stumps(model: CorrectedModel, rng: np.random.Generator) -> tuple[Stump, ...]:
    """A stump along every encoded column."""
    return tuple(
        Stump(
            contrast=Contrast(column, float(np.float32(rng.random()))),
            shift=float(rng.normal(0.0, 0.1)),
            sd=float(rng.random() * 0.1),
            balance=rng.uniform(-1.0, 1.0, model.partition.n_leaves),
        )
        for column in range(model.encoding.n_encoded)
    )


def hard_rows(model: CorrectedModel, n: int, seed: int, missing: float = 0.03) -> np.ndarray:
    """Raw rows with values missing, unlisted, out of range and infinite, and on thresholds of trees and just beside them."""
    rng = np.random.default_rng(seed)
    encoding = model.encoding
    raw = random_rows(encoding, n, rng, missing)
    start = 0
    for j, feature in enumerate(encoding.features):
        if isinstance(feature, NumericFeature):
            tested = np.concatenate(
                [t.threshold[t.feature == start] for t in (model.base, model.partition)] + [np.zeros(1)]
            )
            exact = feature.minimum + rng.choice(tested, n) * (feature.maximum - feature.minimum)
            beside = np.nextafter(exact, rng.choice([-np.inf, np.inf], n))
            how = rng.integers(0, 6, n)
            raw[:, j] = np.where(np.isnan(raw[:, j]) | (how > 2), raw[:, j], np.where(how > 0, exact, beside))
            raw[rng.random(n) < 0.02, j] = rng.choice([np.inf, -np.inf, 1e308, -1e308])
        elif isinstance(feature.levels[0], bool):
            raw[raw[:, j] < 0, j] = np.nan  # a truth value knows no third level
        start += len(feature.names)
    return raw
