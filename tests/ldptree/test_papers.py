"""The estimators as the papers print them, in plain loops, against what the program makes of the same reports.

LPCT: Ma and Yang, JMLR 2024. LPDT: Ma et al., NeurIPS 2023. HistOfTree: Ma, Jia and Yang, AISTATS 2025.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from number_examples import Asked
from scipy.stats import kstest
from seeded_words import words as seeded

from ldptree.encoding import Encoding, NumericFeature
from ldptree.families.family import converse, respond_in_rounds
from ldptree.families.histoftree import HistOfTree, choose_shape
from ldptree.families.settings import PaperOptions
from ldptree.families.tree_fit import fit_regression
from ldptree.inference.algorithm_2 import prune
from ldptree.inference.weighting import gather_class_evidence, weigh_evidence
from ldptree.partition import Partition
from ldptree.partition.max_edge import grow_max_edge
from ldptree.protocol.question import PublicView

FALSE_ALARM = 1e-3

# LPCT: (8)


@pytest.mark.parametrize("lam", [0.0, 0.1, 1.0, 50.0])
def test_a_node_of_lpct_has_the_printed_share(lam):
    """(sum Y~ U~ + lam sum Y U) / (sum U~ + lam sum U), from noisy counts of private rows and counts of public ones."""
    rng, tree = np.random.default_rng(0), Partition.of([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1])
    private, public = rng.normal([[600, 300], [200, 400]], 20.0), np.array([[50, 40], [10, 70]])
    evidence = gather_class_evidence(
        tree, private=private, public=public, margin_noise=np.full(2, 400.0), mass_noise=np.full(2, 1600.0),
        n_private=1500, class_index=1,
    )  # fmt: skip
    eta = weigh_evidence(evidence, lam, rule="ratio").theta + 0.5
    for node, cells in enumerate([[0, 1], [0], [1]]):
        above = private[cells, 1].sum() + lam * public[cells, 1].sum()
        assert eta[node] == pytest.approx(above / (private[cells].sum() + lam * public[cells].sum()))


# LPCT: Algorithm 2


def lpct_algorithm_2(private, public, epsilon, n_private, termination_depth):
    """eta - 1/2 of every cell of a complete tree, and flag, line by line; private, public: counts [cells, 2] after the query.

    Where no k_j is assigned it is the one of the largest v, as section 5.1 has it. (16) is searched on a grid.
    """
    p0, log = int(math.log2(len(private))), math.log(n_private + public.sum())
    lams = np.concatenate([[0.0], np.logspace(-5, 5, 20_001)])
    found, flag = [], False
    for j in range(len(private)):
        s, v, k_j = {}, {}, None
        for k in range(p0, 0, -1):
            below = np.arange(len(private)) >> (p0 - k) == j >> (p0 - k)
            (P0, P1), (Q0, Q1) = private[below].sum(axis=0), public[below].sum(axis=0)
            U, UQ, A, AQ = P0 + P1, Q0 + Q1, (P1 - P0) / 2, (Q1 - Q0) / 2
            if 2 ** (p0 - k + 3) / epsilon**2 * n_private >= U:
                v_Q = abs(AQ / UQ) / math.sqrt(4 * log / UQ)
                v_P = abs(A / U) / math.sqrt(2 ** (p0 - k + 5) / epsilon**2 * n_private * log / U**2)
                s[k], v[k] = (A / U, v_P) if v_Q <= v_P else (AQ / UQ, v_Q)
                if v_Q <= v_P and k <= termination_depth:
                    k_j, flag = k, True
                    break
            else:
                above, under = A + lams * AQ, U + lams * UQ
                of_lam = np.abs(above / under) / np.sqrt((32 * U + 4 * lams**2 * UQ) * log / under**2)
                s[k], v[k] = (above / under)[of_lam.argmax()], of_lam.max()
            if v[k] >= 1:
                k_j = k
                break
        found.append(s[k_j or max(v, key=lambda k: (v[k], k))])
    return np.array(found), flag


@pytest.mark.parametrize(
    ("epsilon", "termination_depth"), [(4.0, 0), (4.0, 1), (8.0, 0), (8.0, 1), (16.0, 0)]
)
def test_lpct_is_pruned_by_the_printed_algorithm_2(epsilon, termination_depth):
    """Five collections each: cells in their noise and above it, sides that agree and that do not, ended and not."""
    tree = grow_max_edge(np.empty((0, 3), np.float32), [], depth=3, n_classes=2)
    branches = set()
    for seed in range(5):
        rng = np.random.default_rng(seed)
        private = rng.multinomial(1500, rng.dirichlet(np.full(16, 0.7))).reshape(8, 2) + rng.normal(
            0, 9, (8, 2)
        )
        public = rng.integers(1, 60, (8, 2))
        evidence = gather_class_evidence(
            tree, private=private, public=public, margin_noise=np.full(8, 40.0), mass_noise=np.full(8, 160.0),
            n_private=1500, class_index=1,
        )  # fmt: skip
        options = {"epsilon": epsilon, "termination_depth": termination_depth}
        expected, flag = lpct_algorithm_2(private, public, n_private=1500, **options)
        found = prune(evidence, n_public=int(public.sum()), options=PaperOptions(), **options)
        np.testing.assert_allclose(found.pruned.theta[evidence.cell_nodes], expected, atol=1e-3)
        assert found.is_terminated == flag
        branches |= {
            flag,
            *evidence.levels.depth_of_nodes[found.pruned.decided_at[evidence.cell_nodes]].tolist(),
        }
    assert termination_depth == 0 or True in branches
    assert len(branches) >= 2


# LPDT: Algorithm 2, which is LPCT's Algorithm 1 with another impurity; (5)


def impurity(y, criterion):
    if criterion == "variance":
        return ((y - y.mean()) ** 2).sum() if y.size else 0.0
    return y.size * 2 * y.mean() * (1 - y.mean()) if y.size else 0.0


def printed_boxes(X, y, depth, n_l, criterion):
    """The boxes of pi_s, each the rows in it: of the longest edges the one of the least impurity is cut in its middle, unless a
    part has n_l rows or fewer.
    """
    boxes = [(np.zeros(X.shape[1]), np.ones(X.shape[1]), np.arange(len(X)), False)]
    for _ in range(depth):
        parted = []
        for low, high, rows, is_whole in boxes:
            edges = high - low
            cuts = []
            for edge in np.flatnonzero(edges == edges.max()):
                is_left = X[rows, edge] < (low[edge] + high[edge]) / 2
                cost = impurity(y[rows[is_left]], criterion) + impurity(y[rows[~is_left]], criterion)
                cuts.append((cost, int(edge), is_left))
            _, edge, is_left = min(cuts, key=lambda cut: cut[:2])
            if is_whole or min(is_left.sum(), (~is_left).sum()) <= n_l:
                parted.append((low, high, rows, True))
                continue
            middle = (low[edge] + high[edge]) / 2
            unit = np.eye(X.shape[1], dtype=bool)[edge]
            parted.append((low, np.where(unit, middle, high), rows[is_left], False))
            parted.append((np.where(unit, middle, low), high, rows[~is_left], False))
        boxes = parted
    return [rows for *_, rows, _ in boxes]


@pytest.mark.parametrize("criterion", ["variance", "gini"])
@pytest.mark.parametrize(("depth", "n_l"), [(1, 0), (4, 3), (6, 8)])
def test_the_max_edge_partition_is_the_printed_one(criterion, depth, n_l):
    rng = np.random.default_rng(2)
    X = rng.random((400, 3)).astype(np.float32)
    y = X[:, 1] + 0.5 * (X[:, 2] > 0.25) + rng.normal(0, 0.2, 400)
    y = (y > 0.7).astype(int) if criterion == "gini" else y
    tree = grow_max_edge(X, y, depth=depth, n_classes=2, criterion=criterion, min_samples_leaf=n_l + 1)
    cells = tree.apply(X)
    ours = {tuple(np.flatnonzero(cells == cell).tolist()) for cell in range(tree.n_leaves)}
    assert ours == {tuple(sorted(rows.tolist())) for rows in printed_boxes(X, y, depth, n_l, criterion)}


def cells_of_lpdt(asked):
    """(5): f_j = sum of Y~ U~ / sum of U~, float [L]."""
    mechanism, (low, high) = asked.protocol.mechanism, asked.ends
    L, q = mechanism.n_cells, mechanism.bits.q
    bits = np.unpackbits(asked.reports[:, 4:], axis=1, count=L, bitorder="little")
    steps = np.ascontiguousarray(asked.reports[:, :4]).view("<i4")[:, 0]
    Y = low + (high - low) * steps / mechanism.steps
    U = np.where(bits == 1, 1 - q, -q)
    return (Y[:, None] * U).sum(axis=0) / U.sum(axis=0)


@pytest.mark.parametrize("rho", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_a_cell_of_lpdt_has_the_printed_value(epsilon, rho):
    asked = Asked("randomized_response", epsilon, rho=rho, n=1000, n_public=60)
    settings = {"lam": 0.0, "prune": "none", "rule": "ratio"}
    model = fit_regression(asked.protocol, asked.totals, asked.public, **settings)
    expected = np.clip(cells_of_lpdt(asked), *asked.ends)
    np.testing.assert_allclose(model.estimate[:, 0][model.partition.leaves], expected, rtol=1e-9)


# HistOfTree: (4) to (9), (15) to (17)

EPSILON, M, N = 3.0, 2.0, 60
PLACES = (np.arange(8) + 0.5) / 8
"""A point in every cell: bins are halves, and splits are in the middle of an edge."""


class Collected:
    """One conversation about three features, of which each holder protects some."""

    def __init__(self, mechanism: str) -> None:
        rng = np.random.default_rng(0)
        self.X, self.y = rng.choice(PLACES, (N, 3)), rng.uniform(-M, M, N)
        self.W = rng.random((N, 3)) < [0.9, 0.5, 0.3]
        names = tuple(NumericFeature(name, 0.0, 1.0) for name in "abc")
        family = HistOfTree(
            epsilon=EPSILON, encoding=Encoding(names), low=-M, high=M, s=1, t=2, p=2,
            mechanism=mechanism, label="laplace",
        )  # fmt: skip
        view, words = PublicView.of(self.X, self.W), seeded(1)
        answer = respond_in_rounds(
            view, lambda question, at: question.randomize(self.X[at], self.y[at], self.W[at], words)
        )
        self.model, (label, cells) = converse(family, view, answer)
        self.Y = label.question.decode(label.reports)
        self.partition, self.reports = cells.question.partition, cells.reports

    def possible(self, i: int) -> set[int]:
        """V_i: the cells with a point that has what holder i shows."""
        sides = [PLACES if hidden else [x] for x, hidden in zip(self.X[i], self.W[i], strict=True)]
        return set(self.partition.apply(np.array(list(itertools.product(*sides)))).tolist())


def indicators_by_bits(found: Collected) -> np.ndarray:
    """V~ by (8)."""
    e = math.exp(EPSILON / 4)
    bits = np.unpackbits(found.reports, axis=1, count=found.partition.n_cells, bitorder="little")
    V = np.zeros(bits.shape)
    for i in range(N):
        for j in found.possible(i):
            V[i, j] = (e + 1) / (e - 1) * (bits[i, j] - 1 / (1 + e))
    return V


def indicators_by_cell(found: Collected) -> np.ndarray:
    """V~ by (17)."""
    e = math.exp(EPSILON / 2)
    V = np.zeros((N, found.partition.n_cells))
    for i in range(N):
        size = len(found.possible(i))
        for j in found.possible(i):
            named = float(int.from_bytes(found.reports[i].tobytes(), "little") == j)
            V[i, j] = (e + size - 1) / (e - 1) * (named - 1 / (e + size - 1))
    return V


@pytest.mark.parametrize(
    ("mechanism", "indicators"), [("randomized_response", indicators_by_bits), ("grr", indicators_by_cell)]
)
def test_a_cell_of_histoftree_has_the_printed_value(mechanism, indicators):
    """(9) of (8) or (17), moved into the label's range."""
    found = Collected(mechanism)
    V = indicators(found)
    expected = [(found.Y * V[:, j]).sum() / V[:, j].sum() for j in range(V.shape[1])]
    np.testing.assert_allclose(found.model.value, np.clip(expected, -M, M), rtol=1e-9)
    np.testing.assert_allclose(found.model.count, V.sum(axis=0), rtol=1e-9, atol=1e-9)


def test_a_label_of_histoftree_has_the_printed_noise():
    """(4): Laplace of scale 4 M / epsilon, where half of epsilon is the label's; Kolmogorov-Smirnov, false alarm 1e-3."""
    found = Collected("grr")
    assert kstest((found.Y - found.y) * EPSILON / (4 * M), "laplace").pvalue > FALSE_ALARM


def objective(protects, epsilon, s, p, weight):
    """(15), read off the page."""
    n, d = protects.shape
    order = np.argsort(-protects.sum(axis=0), kind="stable")
    outside = protects[:, order[s:]].sum(axis=1)
    delta = np.mean([2.0 ** (c * p / (d - s)) for c in outside])
    first = 2.0 ** (p * (d + s) / (d - s)) * math.log(n) / (n * epsilon**2) * delta
    return first + weight * 2.0 ** (-2 * p / (d - s))


@pytest.mark.parametrize("gamma", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("weight", [0.01, 1.0])
def test_the_choice_of_adhistoftree_is_the_least_of_15(gamma, weight):
    n, d = 5_000, 5
    protects = np.arange(1, n + 1)[:, None] <= n / np.arange(1, d + 1)[None, :] ** gamma
    found = choose_shape(protects, 2.0, bias_weight=weight)
    values = {(s, p): objective(protects, 2.0, s, p, weight) for s in range(d) for p in range(13)}
    assert values[found.n_binned, found.depth] == pytest.approx(min(values.values()))
    edges = 2 ** (found.depth / (d - found.n_binned))
    assert found.bins == (max(1, round(edges)) if found.n_binned else 1)


def test_with_everything_or_nothing_the_choice_is_lpdts():
    """Section 4.3: W = 1 for the first n - n_Q holders and 0 for the others makes s = 0 the best."""
    protects = np.repeat(np.arange(20_000)[:, None] < 12_000, 5, axis=1)
    assert choose_shape(protects, 4.0, bias_weight=1.0).n_binned == 0
