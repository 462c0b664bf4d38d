"""Random but reproducible encodings, trees, rows, tables and models for the tests beside this file."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from ldptree.encoding import CategoricalFeature, Encoding, Level, NumericFeature
from ldptree.families.tree_fit import PublicLabels, fit_model, fit_regression
from ldptree.mechanisms import mechanism_for, number_mechanism_for
from ldptree.models import Model
from ldptree.models.tree import ClassTree, NumberTree
from ldptree.partition.tree import Partition
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.stochastic_rounding import label_levels
from ldptree.protocol.totals import Totals


def every_kind_of_feature(*, with_rules: bool = True) -> Encoding:
    """One feature of every kind, with names and levels that need quoting."""
    always = (
        NumericFeature("fare", 0.1, 47.3, fill=9.7),
        NumericFeature('odd "name"', -3.0, 5.0, fill=0.0, indicator=True),
        NumericFeature("constant", 2.0, 2.0, fill=2.0),
        CategoricalFeature("company", ("Flash Cab", "O'Hare; --", 'a "b"', "ünï"), fill=1),
        CategoricalFeature("area", (8, 32, 76), missing_level=True),
        CategoricalFeature("shared", (False, True), fill=0),
        CategoricalFeature("rate", (0.5, 1.5), missing_level=True),
    )
    strict = (NumericFeature("miles", 0.0, 12.0), CategoricalFeature("day", ("Mon", "Tue")))
    return Encoding(always if with_rules else always + strict)


def random_tree(n_encoded: int, max_depth: int, rng: np.random.Generator) -> Partition:
    """A tree with random tests, some of which part nothing."""
    feature, threshold, left, right, todo = [-1], [0.0], [-1], [-1], [(0, 0)]
    for node, depth in todo:
        if depth < max_depth and rng.random() < 0.9:
            feature[node] = int(rng.integers(n_encoded))
            threshold[node] = float(rng.choice([rng.random(), rng.random(), 0.0, 1.0, -0.1, 0.5]))
            left[node], right[node] = len(feature), len(feature) + 1
            todo += [(left[node], depth + 1), (right[node], depth + 1)]
            for array, empty in ((feature, -1), (threshold, 0.0), (left, -1), (right, -1)):
                array += [empty, empty]
    return Partition.of(feature, threshold, left, right)


def complete_tree(depth: int) -> Partition:
    """A tree with all leaves at one depth."""
    nodes = np.arange(2 ** (depth + 1) - 1)
    is_inner = nodes < 2**depth - 1
    left, right = (np.where(is_inner, 2 * nodes + side, -1) for side in (1, 2))
    return Partition.of(np.where(is_inner, 0, -1), np.where(is_inner, 0.5, 0.0), left, right)


def random_rows(encoding: Encoding, n: int, rng: np.random.Generator, missing: float = 0.1) -> np.ndarray:
    """A raw matrix with values outside the range, unlisted levels (-1) and missing ones (NaN)."""
    columns = []
    for feature in encoding.features:
        if isinstance(feature, NumericFeature):
            span = feature.maximum - feature.minimum + 1.0
            column = rng.uniform(feature.minimum - 0.3 * span, feature.maximum + 0.3 * span, n)
            column[rng.random(n) < 0.1] = feature.minimum
        else:
            column = rng.integers(-1, len(feature.levels), n).astype(float)
        column[rng.random(n) < missing] = np.nan
        columns.append(column)
    return np.stack(columns, axis=1)


def rows_of(model: Model, n: int = 200, seed: int = 0, missing: float = 0.1) -> np.ndarray:
    """Such rows for a model, as a table can have them: a truth value knows no third level."""
    raw = random_rows(model.encoding, n, np.random.default_rng(seed), missing)
    for j, feature in enumerate(model.encoding.features):
        if getattr(feature, "levels", ("",))[0] is False:
            raw[raw[:, j] < 0, j] = np.nan
    return raw


def table_of(encoding: Encoding, raw: np.ndarray) -> pa.Table:
    """The raw rows as a person would have them: texts, numbers, NULLs and NaNs, and their number in `row`."""
    columns = {"row": pa.array(range(len(raw)))}
    for feature, column in zip(encoding.features, raw.T, strict=True):
        if isinstance(feature, NumericFeature):
            # both ways of missing
            values = [None if math.isnan(v) and i % 2 else float(v) for i, v in enumerate(column)]
            kind = pa.float64()
        else:
            of = type(feature.levels[0])
            unlisted = {str: "never seen", int: 99, float: 99.0, bool: None}[of]
            values = [
                None if math.isnan(v) else unlisted if v < 0 else feature.levels[int(v)] for v in column
            ]
            kind = {str: pa.string(), int: pa.int32(), float: pa.float64(), bool: pa.bool_()}[of]
        columns[feature.column] = pa.array(values, kind)
    return pa.table(columns)


def protocol_of(
    partition: Partition, encoding: Encoding, *, classes: tuple[Level, ...] = ("no", "yes"), **more: object
) -> Protocol:
    """A protocol over this tree; `epsilon` and `mechanism`, by name, may be given, and every field of `Protocol`."""
    epsilon, name = float(more.pop("epsilon", 2.0)), str(more.pop("mechanism", "oue"))
    return Protocol(
        encoding=encoding,
        partition=partition,
        target="paid",
        classes=classes,
        positive=classes[1] if len(classes) == 2 else None,
        mechanism=mechanism_for(name, epsilon, partition.n_leaves, len(classes)),
        epsilon=epsilon,
        **more,
    )


def totals_of(protocol: Protocol, counts: np.ndarray, rng: np.random.Generator, outside: int = 0) -> Totals:
    """Exact totals of holders with these counts [L, C], drawn as the reports would give them."""
    raw = protocol.mechanism.sample_totals(np.append(counts.ravel(), outside).astype(np.int64), rng)
    return Totals.from_raw(
        raw,
        mechanism=protocol.mechanism,
        n_private=int(counts.sum()) + outside,
        depth=protocol.partition.max_depth,
    )


def random_counts(n_cells: int, n_classes: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Counts [L, C] of n people spread unevenly, some cells of public rows left empty where n is small."""
    shares = rng.dirichlet(np.full(n_cells * n_classes, 0.5))
    return rng.multinomial(n, shares).reshape(n_cells, n_classes)


def random_model(
    seed: int,
    *,
    classes: tuple[Level, ...] = ("no", "yes"),
    with_rules: bool = True,
    max_depth: int = 6,
    lam: str | float = "learned",
    prune: str = "smooth",
    **more: object,
) -> ClassTree:
    """A model fitted to random totals on a random tree over every kind of feature."""
    rng = np.random.default_rng(seed)
    encoding = every_kind_of_feature(with_rules=with_rules)
    protocol = protocol_of(random_tree(encoding.n_encoded, max_depth, rng), encoding, classes=classes, **more)
    n_cells, n_classes = protocol.n_cells, len(classes)
    totals = totals_of(protocol, random_counts(n_cells, n_classes, 20_000, rng), rng)
    public = random_counts(n_cells, n_classes, 300, rng)
    return fit_model(protocol, totals, public, lam=lam, prune=prune)


def random_regression(
    seed: int, *, with_rules: bool = True, n_public: int = 300, fit: dict | None = None, **more
) -> NumberTree:
    """A model fitted to random totals on a random tree over every kind of feature."""
    rng = np.random.default_rng(seed)
    encoding = more.pop("encoding", None) or every_kind_of_feature(with_rules=with_rules)
    tree = more.pop("partition", None) or random_tree(encoding.n_encoded, 6, rng)
    mechanism = number_mechanism_for("oue", 2.0, tree.n_leaves, 5)
    protocol = Protocol(
        encoding=encoding,
        partition=tree,
        target="the fare",
        classes=label_levels(-2.0, 55.5, 5),
        positive=None,
        mechanism=mechanism,
        epsilon=2.0,
        numeric=True,
        **more,
    )
    counts = rng.multinomial(5000, rng.dirichlet(np.full(mechanism.n_values, 0.3)))
    raw = mechanism.sample_totals(counts.astype(np.int64), rng)
    totals = Totals.from_raw(raw, mechanism=mechanism, n_private=5000, depth=tree.max_depth)
    count = rng.multinomial(n_public, rng.dirichlet(np.full(tree.n_leaves, 0.5))).astype(float)
    public = PublicLabels(
        count=count, total=count * rng.normal(20, 5, tree.n_leaves), mean=20.0, sd=8.0, residual_variance=30.0
    )
    return fit_regression(protocol, totals, public, **(fit or {}))
