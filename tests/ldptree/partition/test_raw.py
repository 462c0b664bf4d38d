"""The partition in raw units gives the same cell to every row, whatever the row holds."""

import numpy as np
import pytest

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.errors import DataError
from ldptree.partition.cart import grow_cart
from ldptree.partition.max_edge import grow_max_edge
from ldptree.partition.raw import RawTree
from ldptree.partition.tree import Partition

LEVELS = ("a", "b", "c", "d")


def random_encoding(rng) -> Encoding:
    features = []
    for j in range(int(rng.integers(1, 9))):
        name = f"x{j}"
        low = float(np.round(rng.normal(0, 50), int(rng.integers(0, 3))))
        kind = rng.integers(0, 8)
        span = [0.0, 1.0, 0.3, 7.0, 1e-9, 1e12][int(rng.integers(0, 6))]
        fill = low + float(rng.uniform(-1, 2)) * span
        if kind == 0:
            features.append(CategoricalFeature(name, LEVELS))
        elif kind == 1:
            features.append(CategoricalFeature(name, LEVELS[:2], fill=1))
        elif kind == 2:
            features.append(CategoricalFeature(name, LEVELS, missing_level=True))
        elif kind == 3:
            features.append(NumericFeature(name, low, low + span, fill=fill))
        elif kind == 4:
            features.append(NumericFeature(name, low, low + span, fill=fill, indicator=True))
        else:
            features.append(NumericFeature(name, low, low + span))
    return Encoding(tuple(features))


def random_rows(rng, encoding, n) -> np.ndarray:
    columns = []
    for feature in encoding.features:
        if isinstance(feature, CategoricalFeature):
            column = rng.integers(-1, len(feature.levels), n).astype(float)
        else:
            span = feature.maximum - feature.minimum
            column = feature.minimum + rng.uniform(-0.5, 1.5, n) * (span or 1.0)
            whole = rng.random(n) < 0.3
            column[whole] = np.round(column[whole])
            column[rng.random(n) < 0.02] = np.inf
            column[rng.random(n) < 0.02] = -np.inf
            column[rng.random(n) < 0.05] = feature.minimum
            column[rng.random(n) < 0.05] = feature.maximum
        column[rng.random(n) < 0.1] = np.nan
        columns.append(column)
    return np.stack(columns, axis=1)


def random_tree(rng, encoding, X) -> Partition:
    """Random tests; half of the thresholds are values of X themselves, some are without effect."""
    feature, threshold, left, right = [-1], [0.0], [-1], [-1]
    for _ in range(int(rng.integers(0, 40))):
        leaf = int(rng.choice(np.flatnonzero(np.array(feature) == -1)))
        column = int(rng.integers(0, encoding.n_encoded))
        seen = X[~np.isnan(X[:, column]), column]
        on_a_value = seen.size and rng.random() < 0.5
        feature[leaf] = column
        threshold[leaf] = float(rng.choice(seen)) if on_a_value else float(rng.uniform(-0.1, 1.1))
        left[leaf], right[leaf] = len(feature), len(feature) + 1
        feature += [-1, -1]
        threshold += [0.0, 0.0]
        left += [-1, -1]
        right += [-1, -1]
    return Partition.of(feature, threshold, left, right)


@pytest.mark.parametrize("seed", range(60))
def test_raw_cells_equal_encoded_cells_on_every_row(seed):
    rng = np.random.default_rng(seed)
    encoding = random_encoding(rng)
    raw = random_rows(rng, encoding, 600)
    X = encoding.encode(raw)
    tree = random_tree(rng, encoding, X)
    expected = tree.apply(X)
    in_raw_units = RawTree.of(tree, encoding)
    np.testing.assert_array_equal(in_raw_units.apply(raw), expected)
    np.testing.assert_array_equal(in_raw_units.apply(np.asfortranarray(raw)), expected)
    used = in_raw_units.columns_used
    narrow = raw[:, [encoding.columns.index(name) for name in used]]
    np.testing.assert_array_equal(in_raw_units.apply(narrow, used), expected)


@pytest.mark.parametrize("seed", range(6))
def test_rows_beside_each_threshold_go_the_same_way(seed):
    """The floats on both sides of every raw threshold, and whole numbers, for grown trees."""
    rng = np.random.default_rng(100 + seed)
    encoding = Encoding(
        (NumericFeature("a", -1.0, 9900.0), NumericFeature("b", 0.1, 0.7), CategoricalFeature("c", LEVELS))
    )
    raw = np.stack(
        [rng.integers(-1, 200, 900), rng.uniform(0.1, 0.7, 900), rng.integers(0, 4, 900)], axis=1
    ).astype(float)
    X = encoding.encode(raw)
    y = ((raw[:, 0] > 60) ^ (raw[:, 2] == 2) ^ (rng.random(900) < 0.1)).astype(int)
    for grow in (grow_cart, grow_max_edge):
        tree = grow(X, y, depth=6, n_classes=2)
        in_raw_units = RawTree.of(tree, encoding)
        numeric = (in_raw_units.column >= 0) & (in_raw_units.level < 0) & np.isfinite(in_raw_units.threshold)
        rows = []
        for node in np.flatnonzero(numeric):
            t = in_raw_units.threshold[node]
            for x in (t, np.nextafter(t, -np.inf), np.nextafter(t, np.inf), np.floor(t), np.ceil(t)):
                row = raw[rng.integers(0, 900)].copy()
                row[in_raw_units.column[node]] = x
                rows.append(row)
        probe = np.concatenate([np.array(rows).reshape(-1, 3), raw])
        np.testing.assert_array_equal(in_raw_units.apply(probe), tree.apply(encoding.encode(probe)))


def test_branches_read_as_sentences():
    encoding = Encoding(
        (
            NumericFeature("miles", 0.0, 10.0, fill=2.0, indicator=True),
            CategoricalFeature("company", ("Flash Cab", "Sun Taxi")),
        )
    )
    tree = Partition.of(
        [0, 2, 1, -1, -1, -1, -1],
        [0.32, 0.5, 0.5, 0, 0, 0, 0],
        [1, 3, 5, -1, -1, -1, -1],
        [2, 4, 6, -1, -1, -1, -1],
    )
    words = RawTree.of(tree, encoding)
    assert words.branches(0) == ("miles <= 3.2, or missing", "miles > 3.2")
    assert words.branches(1) == ("company is not Flash Cab", "company is Flash Cab")
    assert words.branches(2) == ("miles is known", "miles is missing")
    assert words.where(0) == "everyone"
    assert words.where(4) == "miles <= 3.2, or missing and company is Flash Cab"
    assert words.where(6) == "miles > 3.2 and miles is missing"


def test_a_column_in_use_cannot_be_left_out():
    encoding = Encoding((NumericFeature("a", 0, 1), NumericFeature("b", 0, 1)))
    words = RawTree.of(Partition.of([1, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1]), encoding)
    assert words.columns_used == ("b",)
    with pytest.raises(DataError, match="lack the columns b"):
        words.apply(np.zeros((1, 1)), ("a",))
    with pytest.raises(DataError, match="shape"):
        words.apply(np.zeros((1, 1)))
