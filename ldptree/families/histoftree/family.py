"""HistOfTree and AdHistOfTree (Ma, Jia and Yang, AISTATS 2025), from labels to a partition made of them and of what is
shown, then cells and values.

The partition is Algorithm 1's or CART-style, the values are those of (9). AdHistOfTree chooses how many features are
binned, in how many bins, and how deep the tree goes by (15), from the sizes, epsilon and the mask alone; no label and no
value of a feature is looked at.

The paper's Proposition 3.2 calls the mechanism non-interactive; the tree is made of noisy labels, so the guarantee is that
of adaptive composition: eps of the label and eps of the cell add up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.coins import left_of
from ldptree.encoding import Encoding
from ldptree.families.family import RoundsFamily
from ldptree.families.histoftree.questions import CellsQuestion, LabelQuestion
from ldptree.families.settings import HistOfTreeSettings
from ldptree.limits import MAX_BINS
from ldptree.mechanisms.masked import MASKED
from ldptree.mechanisms.numbers import NUMBERS
from ldptree.models.histoftree import HistOfTreeModel
from ldptree.partition.masked import grow_masked_tree
from ldptree.partition.max_edge import grow_random_edge
from ldptree.partition.product import MAX_CELLS, Histogram, Product, check_size
from ldptree.partition.tree import LEAF, Partition
from ldptree.protocol.question import AnsweredQuestion, PublicView, Question, Transcript

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]
    Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The shape of a HistOfTree.

    Attributes:
        n_binned: s, the features of the histogram.
        bins: t.
        depth: p.
    """

    n_binned: int
    bins: int
    depth: int


def binned_features(protects: Mask, n_binned: int) -> tuple[int, ...]:
    """The s features that most holders protect, increasing; of equals those with the smallest numbers (section 3.3)."""
    return tuple(sorted(_by_protection(protects)[:n_binned].tolist()))


def choose_shape(
    protects: Mask,
    epsilon: float,
    *,
    n_binned: int | None = None,
    bins: int | None = None,
    depth: int | None = None,
    bias_weight: float = 1.0,
    bin_shift: int = 0,
) -> Shape:
    """(s, p) by brute force on (15), then t = 2^(p / (d - s)) rounded, moved by bin_shift, and at least 1.

    The objective is 2^(p (d + s) / (d - s)) log(n) / (n eps^2) delta(p) + bias_weight 2^(-2 p / (d - s)), with delta(p) the
    mean over holders of 2^(p c_i / (d - s)), c_i the features that holder i protects outside the histogram (12). With s = d,
    where it has no meaning, t stands for 2^(p / (d - s)) and p is 0.

    Args:
        protects: bool [n, d].
        epsilon: of the whole.
        n_binned, bins, depth: s, t, p where they are known.
        bias_weight: the constant on the second term.
        bin_shift: added to t*.
    """
    n, d = protects.shape
    order = _by_protection(protects)
    noise = math.log(max(n, 2)) / (max(n, 1) * epsilon**2)
    best: tuple[float, Shape] | None = None
    # c_i, less one column with every s
    outside = protects.sum(axis=1)
    for s in range(d + 1):
        if s:
            outside = outside - protects[:, order[s - 1]]
        if s != n_binned and (n_binned is not None or s == d):
            continue
        holders = np.bincount(outside)
        counts = np.flatnonzero(holders)
        holders = holders[counts]
        depths, fineness = _candidates(n, d, s, bins, depth)
        # 2^(p / (d - s)), the edge count that t must match
        edges = np.exp2(fineness)
        t = np.clip(np.round(edges) + bin_shift, 1, MAX_BINS)
        if bins is not None or not s:
            t[:] = bins if s else 1
        with np.errstate(over="ignore"):  # a partition of that many cells is none anyway
            delta = np.exp2(fineness[:, None] * (counts + d + s)) @ holders / max(n, 1)
        value = noise * delta + bias_weight * edges**-2.0
        value[s * np.log2(t + 1) + depths > math.log2(MAX_CELLS) + 1e-9] = np.inf
        at = int(np.argmin(value))
        if np.isfinite(value[at]) and (best is None or value[at] < best[0] * (1 - 1e-12)):
            best = float(value[at]), Shape(n_binned=s, bins=int(t[at]), depth=int(depths[at]))
    if best is None:  # nothing that was asked for fits: the partition says so
        s = n_binned or 0
        return Shape(n_binned=s, bins=bins or 1, depth=(depth or 0) if s < d else 0)
    return best[1]


def _candidates(
    n: int, d: int, s: int, bins: int | None, depth: int | None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Depths p to try, up to log2 n, and log2 of the edge count of each."""
    deepest = max(1, math.floor(math.log2(max(n, 2))))
    if s == d:
        most = np.arange(1, max(2, round(2 ** (deepest / d))) + 1) if bins is None else np.array([bins])
        return np.zeros(most.size, dtype=np.int64), np.log2(most)
    depths = np.arange(deepest + 1) if depth is None else np.array([depth])
    return depths, depths / (d - s)


def _by_protection(protects: Mask) -> NDArray[np.int64]:
    """Features by how many holders protect them, most first."""
    order: NDArray[np.int64] = np.argsort(-protects.sum(axis=0), kind="stable")
    return order


@dataclass(frozen=True, kw_only=True)
class HistOfTree(HistOfTreeSettings, RoundsFamily[HistOfTreeModel]):
    """The settings; checked by the estimator.

    Attributes:
        epsilon: of both questions together.
        encoding: of the features.
        low, high: the range labels are clipped to.
        seed: of the public coins of splits that are drawn at random.
    """

    epsilon: float
    encoding: Encoding
    low: float
    high: float
    seed: int = 0

    def misfits(self) -> list[str]:
        """So many features cannot be binned."""
        d = len(self.encoding.names)
        if self.s != "auto" and self.s > d:
            return [f"s: there are {d} features to bin, got {self.s}; choose at most {d}"]
        return super().misfits()

    def shape(self, view: PublicView) -> Shape:
        """s, t and p. Raises ConfigError where so many cells cannot be kept."""
        protects = self._protects(view)
        n_binned, bins, depth = (None if value == "auto" else value for value in (self.s, self.t, self.p))
        if n_binned is None and self.mask_release == "all" and view.n and (protects == protects[0]).all():
            n_binned = int(protects[0].sum())
        shape = choose_shape(
            protects,
            self.epsilon,
            n_binned=n_binned,
            bins=bins,
            depth=depth,
            bias_weight=self.bias_weight,
            bin_shift=self.t_shift,
        )
        check_size(shape.bins, shape.n_binned, shape.depth)
        return shape

    def is_public(self, view: PublicView, shape: Shape) -> bool:
        """Return whether every cell follows from shown features for any tree. Then the label gets the whole epsilon."""
        if self.mask_release != "all":
            return bool(shape.bins**shape.n_binned * 2**shape.depth == 1)
        binned = list(binned_features(view.protects, shape.n_binned))
        of_histogram = shape.bins > 1 and bool(view.protects[:, binned].any())
        of_tree = shape.depth > 0 and bool(np.delete(view.protects, binned, axis=1).any())
        return not (of_histogram or of_tree)

    def ask(self, view: PublicView, transcript: Transcript) -> Question | None:
        """The label, then the cell, unless that is public."""
        shape = self.shape(view)
        is_public = self.is_public(view, shape)
        if not transcript:
            share = 0.0 if is_public else self.rho
            mechanism = NUMBERS[self.label].for_budget(self.epsilon * (1 - share))
            return LabelQuestion(mechanism, self.low, self.high)
        if len(transcript) > 1 or is_public:
            return None
        partition = self.grow(view, shape, _labels(transcript[0]))
        if partition.n_cells == 1:
            return None
        left = left_of(self.epsilon, self.epsilon * (1 - self.rho))
        masked = MASKED[self.mechanism](left, partition.n_cells)
        question = CellsQuestion(partition, masked, self.mask_release)
        question.check_memory(view.n)
        return question

    def grow(self, view: PublicView, shape: Shape, labels: Floats) -> Product:
        """Bins on the features most protected, a tree on the others by noisy labels, float64 [n]."""
        binned = binned_features(self._protects(view), shape.n_binned)
        features = [j for j in range(view.d) if j not in binned]
        if self.mask_release == "all":
            tree = grow_masked_tree(
                view.values,
                view.protects,
                labels,
                features=features,
                depth=shape.depth,
                splits=self.partition,
                criterion=self.criterion,
                min_samples_leaf=self.min_samples_leaf,
            )
        else:
            tree = _random_tree(features, shape.depth, self.seed)
        return Product(Histogram(binned, shape.bins), tree)

    def fit(self, view: PublicView, transcript: Transcript) -> HistOfTreeModel:
        """The values of the cells (eq. 9)."""
        partition = self._partition_of(view, transcript, np.arange(view.n))
        value, count, noise = self._cells(view, transcript, partition, np.ones(view.n))
        return HistOfTreeModel(
            encoding=self.encoding,
            partition=partition,
            value=value,
            count=count,
            count_sd=np.sqrt(noise),
            low=self.low,
            high=self.high,
            label=self.label,
            mechanism=self.mechanism if len(transcript) > 1 else None,
            mask_release=self.mask_release,
            epsilon=self.epsilon,
            n_holders=view.n,
        )

    def _partition_of(self, view: PublicView, transcript: Transcript, holders: NDArray[np.int64]) -> Product:
        """That of the question about cells; without one, by the labels of these holders."""
        if len(transcript) > 1:
            question = transcript[1].question
            assert isinstance(question, CellsQuestion)
            return question.partition
        return self.grow(view.part(holders), self.shape(view), _labels(transcript[0])[holders])

    def _cells(
        self, view: PublicView, transcript: Transcript, partition: Product, times: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Value, count and the count's noise (its variance) of each cell, float64 [cells]; holder i counts times[i]."""
        labels = _labels(transcript[0])
        middle = float(labels @ times / times.sum())
        weights = np.stack([(labels - middle) * times, times], axis=1)
        if len(transcript) > 1:
            question = transcript[1].question
            assert isinstance(question, CellsQuestion)
            (above, below), noise = question.sums(view, transcript[1].reports, weights)
        else:
            cells = partition.apply(view.values)
            above, below = (np.bincount(cells, w, minlength=partition.n_cells) for w in weights.T)
            noise = np.zeros(partition.n_cells)
        return self._values(middle, above, below), below, noise

    def _values(self, middle: float, above: Floats, below: Floats) -> Floats:
        """Return middle + above / below (0 / 0 is 0), cut to the labels' range, as noise can be far larger."""
        values = middle + np.divide(above, below, out=np.zeros_like(above), where=below != 0)
        return np.clip(values, self.low, self.high)

    def _protects(self, view: PublicView) -> NDArray[np.bool_]:
        """The mask as the curator knows it."""
        return view.protects if self.mask_release == "all" else np.ones((view.n, view.d), dtype=np.bool_)


def _labels(transcript: AnsweredQuestion) -> Floats:
    """Y~."""
    question = transcript.question
    assert isinstance(question, LabelQuestion)
    return question.decode(transcript.reports)


def _random_tree(features: Sequence[int], depth: int, seed: int) -> Partition:
    """Random max-edge on these features; no row is looked at."""
    if not depth or not features:
        return Partition.single()
    nobody = np.empty((0, len(features)), dtype=np.float32)
    tree = grow_random_edge(nobody, np.empty(0), depth=depth, n_classes=0, seed=seed)
    feature = np.where(tree.feature == LEAF, LEAF, np.asarray(features)[tree.feature])
    return Partition.of(feature, tree.threshold, tree.left, tree.right)
