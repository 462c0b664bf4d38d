"""HistOfTree's curator (Ma, Jia and Yang, AISTATS 2025): labels, a partition from them and from what is shown, cells, values.

What lives here: the order of the two questions, the partition (Algorithm 1 or CART-style) and the values (eq. 9). What does
not: the questions (`questions`), the choice of s, t and p (`choice`).

The paper's Proposition 3.2 calls the mechanism non-interactive; the tree is made of noisy labels, so the guarantee is that
of adaptive composition: eps of the label and eps of the cell add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.encoding import Encoding
from ldptree.families.family import RoundsFamily
from ldptree.families.histoftree.choice import Shape, binned_features, choose
from ldptree.families.histoftree.model import HistOfTreeModel
from ldptree.families.histoftree.questions import CellsQuestion, LabelQuestion
from ldptree.mechanisms.masked import MASKED
from ldptree.mechanisms.numbers import NUMBERS
from ldptree.partition.masked import grow_masked_tree
from ldptree.partition.product import Histogram, Product, check_size
from ldptree.partition.random_edge import grow_random_edge
from ldptree.partition.tree import LEAF, Partition
from ldptree.protocol.question import AnsweredQuestion, PublicView, Question, Transcript

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class HistOfTree(RoundsFamily[HistOfTreeModel]):
    """The settings; checked by the estimator.

    Attributes:
        epsilon: of both questions together.
        encoding: of the features.
        low, high: the range labels are clipped to.
        n_binned, bins, depth: s, t and p; None is chosen by (15), s of an aligned mask is the number of private features.
        bias_weight, bin_shift: of (15).
        splits, criterion, min_samples_leaf: of the tree (`partition.masked.grow_masked_tree`).
        mechanism: of the cell, one of `MASKED`.
        label: of the label, one of `NUMBERS`.
        rho: the share of epsilon that the cell takes (the paper's C.1 calls the label's share rho).
        mask_release: what is sent of the mask, one of `RELEASES`. Unless "all", nothing that is shown is looked at: splits are
            drawn at random, and (15) supposes that everything is protected.
        seed: of the public coins of such splits.
    """

    epsilon: float
    encoding: Encoding
    low: float
    high: float
    n_binned: int | None = None
    bins: int | None = None
    depth: int | None = None
    bias_weight: float = 0.01
    bin_shift: int = -1
    splits: str = "max-edge"
    criterion: str = "weighted"
    min_samples_leaf: int = 1
    mechanism: str = "grr"
    label: str = "optimal_label"
    rho: float = 0.5
    mask_release: str = "all"
    seed: int = 0

    def shape(self, shown: PublicView) -> Shape:
        """s, t and p. Raises ConfigError where so many cells cannot be kept."""
        protects = self._protects(shown)
        n_binned = self.n_binned
        if n_binned is None and self.mask_release == "all" and shown.n and (protects == protects[0]).all():
            n_binned = int(protects[0].sum())
        shape = choose(
            protects,
            self.epsilon,
            n_binned=n_binned,
            bins=self.bins,
            depth=self.depth,
            bias_weight=self.bias_weight,
            bin_shift=self.bin_shift,
        )
        check_size(shape.bins, shape.n_binned, shape.depth)
        return shape

    def is_public(self, shown: PublicView, shape: Shape) -> bool:
        """Whether everybody's cell follows from what is shown, whatever the tree: then the label gets the whole epsilon."""
        if self.mask_release != "all":
            return bool(shape.bins**shape.n_binned * 2**shape.depth == 1)
        binned = list(binned_features(shown.protects, shape.n_binned))
        of_histogram = shape.bins > 1 and bool(shown.protects[:, binned].any())
        of_tree = shape.depth > 0 and bool(np.delete(shown.protects, binned, axis=1).any())
        return not (of_histogram or of_tree)

    def ask(self, shown: PublicView, answers: Transcript) -> Question | None:
        """The label, then the cell, unless that is public."""
        shape = self.shape(shown)
        is_public = self.is_public(shown, shape)
        if not answers:
            share = 0.0 if is_public else self.rho
            mechanism = NUMBERS[self.label].for_budget(self.epsilon * (1 - share))
            return LabelQuestion(mechanism, self.low, self.high)
        if len(answers) > 1 or is_public:
            return None
        partition = self.partition(shown, shape, _labels(answers[0]))
        if partition.n_cells == 1:
            return None
        masked = MASKED[self.mechanism](self.epsilon - self.epsilon * (1 - self.rho), partition.n_cells)
        question = CellsQuestion(partition, masked, self.mask_release)
        question.check_memory(shown.n)
        return question

    def partition(self, shown: PublicView, shape: Shape, labels: Floats) -> Product:
        """Bins on the features most protected, a tree on the others by noisy labels, float64 [n]."""
        binned = binned_features(self._protects(shown), shape.n_binned)
        features = [j for j in range(shown.d) if j not in binned]
        if self.mask_release == "all":
            tree = grow_masked_tree(
                shown.values,
                shown.protects,
                labels,
                features=features,
                depth=shape.depth,
                splits=self.splits,
                criterion=self.criterion,
                min_samples_leaf=self.min_samples_leaf,
            )
        else:
            tree = _random_tree(features, shape.depth, self.seed)
        return Product(Histogram(binned, shape.bins), tree)

    def fit(self, shown: PublicView, answers: Transcript) -> HistOfTreeModel:
        """The values of the cells (eq. 9)."""
        partition = self._partition_of(shown, answers, np.arange(shown.n))
        value, count, noise = self._cells(shown, answers, partition, np.ones(shown.n))
        return HistOfTreeModel(
            encoding=self.encoding,
            partition=partition,
            value=value,
            count=count,
            count_sd=np.sqrt(noise),
            low=self.low,
            high=self.high,
            label=self.label,
            mechanism=self.mechanism if len(answers) > 1 else None,
            mask_release=self.mask_release,
            epsilon=self.epsilon,
            n_holders=shown.n,
        )

    def _partition_of(self, shown: PublicView, answers: Transcript, holders: NDArray[np.int64]) -> Product:
        """That of the question about cells; without one, by the labels of these holders."""
        if len(answers) > 1:
            question = answers[1].question
            assert isinstance(question, CellsQuestion)
            return question.partition
        return self.partition(shown.part(holders), self.shape(shown), _labels(answers[0])[holders])

    def _cells(
        self, shown: PublicView, answers: Transcript, partition: Product, times: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Value, count and the count's noise (its variance) of each cell, float64 [cells]; holder i counts times[i]."""
        labels = _labels(answers[0])
        middle = float(labels @ times / times.sum())
        weights = np.stack([(labels - middle) * times, times], axis=1)
        if len(answers) > 1:
            question = answers[1].question
            assert isinstance(question, CellsQuestion)
            (above, below), noise = question.sums(shown, answers[1].reports, weights)
        else:
            cells = partition.apply(shown.values)
            above, below = (np.bincount(cells, w, minlength=partition.n_cells) for w in weights.T)
            noise = np.zeros(partition.n_cells)
        return self._values(middle, above, below), below, noise

    def _values(self, middle: float, above: Floats, below: Floats) -> Floats:
        """middle + above / below, 0 / 0 is the mean of all, cut to the labels' range: noise can be far larger than it."""
        values = middle + np.divide(above, below, out=np.zeros_like(above), where=below != 0)
        return np.clip(values, self.low, self.high)

    def _protects(self, shown: PublicView) -> NDArray[np.bool_]:
        """The mask as the curator knows it."""
        return shown.protects if self.mask_release == "all" else np.ones((shown.n, shown.d), dtype=np.bool_)


def _labels(answers: AnsweredQuestion) -> Floats:
    """Y~."""
    question = answers.question
    assert isinstance(question, LabelQuestion)
    return question.decode(answers.reports)


def _random_tree(features: Sequence[int], depth: int, seed: int) -> Partition:
    """Random max-edge on these features; no row is looked at."""
    if not depth or not features:
        return Partition.single()
    nobody = np.empty((0, len(features)), dtype=np.float32)
    tree = grow_random_edge(nobody, np.empty(0), depth=depth, n_classes=0, seed=seed)
    feature = np.where(tree.feature == LEAF, LEAF, np.asarray(features)[tree.feature])
    return Partition.of(feature, tree.threshold, tree.left, tree.right)
