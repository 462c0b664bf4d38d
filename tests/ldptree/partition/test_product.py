"""A histogram times a tree: which cells a holder could be in, kept as a product of sets."""

import numpy as np
import pytest

from ldptree.errors import ConfigError, DataError
from ldptree.partition.product import MAX_CELLS, Histogram, Product, check_size
from ldptree.partition.tree import Partition
from ldptree.serialize import of_plain, to_plain

TREE = Partition.of(
    [1, 3, -1, -1, 1, -1, -1],
    [0.5, 0.25, 0, 0, 0.75, 0, 0],
    [1, 2, -1, -1, 5, -1, -1],
    [4, 3, -1, -1, 6, -1, -1],
)
PRODUCT = Product(Histogram((0, 2), 3), TREE)
D = 4


def holders(m, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((m, D)), rng.random((m, D)) < 0.5


def potential(row, protects, grid):
    """V_i by its definition: the cells of all points that agree with what is shown."""
    points = np.where(protects, grid, row)
    return set(PRODUCT.apply(points).tolist())


def test_potential_cells_are_those_of_all_rows_that_agree_with_what_is_shown():
    X, protects = holders(60)
    axis = (np.arange(12) + 0.5) / 12
    grid = np.stack(np.meshgrid(*[axis] * D), axis=-1).reshape(-1, D)
    candidates = PRODUCT.candidates(np.where(protects, 0.0, X), protects)
    written = candidates.matrix()
    for i in range(60):
        assert set(np.flatnonzero(written[i]).tolist()) == potential(X[i], protects[i], grid)
    np.testing.assert_array_equal(candidates.sizes, written.sum(axis=1))
    assert candidates.contain(PRODUCT.apply(X)).all()


def test_what_a_protected_value_is_does_not_move_the_potential_cells():
    X, protects = holders(200, 1)
    other = np.where(protects, np.random.default_rng(2).random(X.shape), X)
    a, b = PRODUCT.candidates(X, protects), PRODUCT.candidates(other, protects)
    np.testing.assert_array_equal(a.digits, b.digits)
    np.testing.assert_array_equal(a.leaves, b.leaves)


def test_ranks_number_the_potential_cells_and_cells_undo_them():
    X, protects = holders(80, 3)
    candidates = PRODUCT.candidates(X, protects)
    written = candidates.matrix()
    for rank in range(int(candidates.sizes.max())):
        has = np.flatnonzero(candidates.sizes > rank)
        cells = candidates.cells(np.minimum(rank, candidates.sizes - 1))
        assert written[has, cells[has]].all()
        np.testing.assert_array_equal(candidates.ranks(cells)[has], rank)


def test_weights_spread_over_potential_cells_as_if_these_were_written_out():
    X, protects = holders(300, 4)
    candidates = PRODUCT.candidates(X, protects)
    weights = np.random.default_rng(5).normal(size=(300, 2))
    np.testing.assert_allclose(candidates.spread(weights), weights.T @ candidates.matrix())


def test_bins_are_half_open_and_the_last_one_is_closed():
    X = np.array([[0.0], [0.24], [0.25], [0.5], [0.75], [1.0]])
    np.testing.assert_array_equal(Histogram((0,), 4).apply(X), [0, 0, 1, 2, 3, 3])


def test_a_partition_of_nothing_is_one_cell():
    one = Product(Histogram((), 1), Partition.single())
    assert one.n_cells == 1
    np.testing.assert_array_equal(one.apply(np.zeros((3, 2))), 0)
    assert one.candidates(np.zeros((3, 2)), np.ones((3, 2), bool)).sizes.tolist() == [1, 1, 1]


def test_json_gives_the_same_partition_back_and_nothing_else_passes():
    plain = to_plain(PRODUCT)
    assert of_plain(Product, plain, of="partition").digest == PRODUCT.digest
    with pytest.raises(DataError, match="exactly the fields"):
        of_plain(Product, plain | {"more": 1}, of="partition")
    with pytest.raises(DataError, match="wrong type"):
        of_plain(Histogram, {"features": [0.5], "bins": 2}, of="histogram")


def test_a_tree_on_a_binned_feature_is_refused():
    with pytest.raises(DataError, match="the histogram bins"):
        Product(Histogram((1,), 2), TREE)


def test_too_many_cells_are_refused_with_their_size_and_the_largest_that_fits():
    with pytest.raises(
        ConfigError, match=r"3\^20 x 2\^4 cells take about .* GiB.*the largest that fits.*s = 9"
    ) as refused:
        check_size(3, 20, 4)
    assert f"{MAX_CELLS:,}" in str(refused.value)
    check_size(3, 9, 4)
    with pytest.raises(ConfigError):
        check_size(3, 10, 4)


@pytest.mark.parametrize(("features", "bins"), [((0, 0), 2), ((-1,), 2), ((0,), 0), ((0,), 255)])
def test_impossible_histograms_are_refused(features, bins):
    with pytest.raises(ConfigError):
        Histogram(features, bins)
