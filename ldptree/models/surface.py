"""Functions of scaled rows, surfaces of features and contrasts of one, whose sum is a model of public features.

A surface is a line with trees on top of it: f(x) = intercept + slopes . (x - stand_ins) + the mean of the trees. Rows are
scaled to [0, 1] and complete, or NaN where a feature is hidden: there the mean of those who show it stands in.

A contrast is a function of one feature with mean 0, known to everybody. Ours, beyond the Walsh functions of quartile cells:
with r in [-1, 1] the rank of a value, sign(r) (1 + 2 |r|)/3 goes both with what rises steadily (94 % of a linear effect's
variance) and with a step at the median (92 %), where the Walsh function has 75 % and 100 %. So one number a feature does
what took two. Ranks are those of bins, whose shares are published, so that ties count as what they are: a bin has the rank
of its middle, and the function is a constant in each bin, centred and scaled by the shares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ldptree.errors import DataError
from ldptree.partition.tree import Partition
from ldptree.rounding import round_digits

Floats = NDArray[np.float64]

SHAPES = ("rise", "bowl")
"""A rise sets low against high values, and a bowl the middle against both ends."""
BINS = 16
# a function of two values rises; one that bends has three
_FEWEST_BINS = {"rise": 2, "bowl": 3}
# shares are added up in floating point
_ROUNDING = 1e-9
NEAR = 16
"""Thresholds in the same 1/NEAR of a feature's range count as one."""


@dataclass(frozen=True)
class Contrast:
    """A function of one scaled feature, in [-1, 1].

    Attributes:
        feature: its column.
        shape: one of SHAPES.
        shares: of people in each of BINS equal bins of [0, 1]: BINS numbers, none negative, that add up to 1.

    Raises:
        DataError: a part is none of that.
    """

    feature: int
    shape: str
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.shape not in SHAPES or type(self.feature) is not int or self.feature < 0:
            raise DataError(f"contrast: shape {self.shape!r} of feature {self.feature!r}")
        if (
            len(self.shares) != BINS
            or not all(0 <= share <= 1 for share in self.shares)
            or abs(math.fsum(self.shares) - 1) > _ROUNDING
        ):
            raise DataError(f"contrast: shares must be {BINS} numbers of which none is negative, 1 in all")

    @cached_property
    def ranks(self) -> Floats:
        """The share of people below each end of a bin, float64 [BINS + 1], from 0 to 1."""
        ranks = np.concatenate([[0.0], np.minimum(np.cumsum(self.shares), 1.0)])
        ranks[-1] = 1.0
        return ranks

    @cached_property
    def values(self) -> Floats:
        """Return the function in each bin, float64 [BINS], with mean 0 by shares and -1 or 1 as the largest.

        All 0 where people are in too few bins for this shape to be anything (one, or two that bend).
        """
        shares = np.array(self.shares)
        has_people = shares > 0
        if has_people.sum() < _FEWEST_BINS[self.shape]:
            return np.zeros(BINS)
        rank = self.ranks[:-1] + self.ranks[1:] - 1
        if self.shape == "bowl":
            rank = 2 * np.abs(rank) - 1
        value = np.sign(rank) * (1 + 2 * np.abs(rank)) / 3
        centred = value - shares @ value
        largest = np.abs(centred[has_people]).max()
        if largest < _ROUNDING:
            return np.zeros(BINS)
        return np.asarray(np.clip(centred / largest, -1.0, 1.0))

    @cached_property
    def square(self) -> float:
        """The mean square by the shares; 0 where there is nothing to ask."""
        return float(np.array(self.shares) @ self.values**2)

    @cached_property
    def swing(self) -> float:
        """From its least to its largest value where people are."""
        return float(np.ptp(self.values[np.array(self.shares) > 0]))

    def __call__(self, rows: Floats) -> Floats:
        """float64 [n] in [-1, 1], of scaled rows [n, d]; 0, its mean, where the feature is NaN."""
        x = rows[:, self.feature]
        is_absent = np.isnan(x)
        return np.where(is_absent, 0.0, self.values[bin_of(np.where(is_absent, 0.0, x))])


def bin_of(values: Floats) -> NDArray[np.int64]:
    """The bin of each scaled value, 0 .. BINS - 1."""
    return np.clip(np.floor(values * BINS), 0, BINS - 1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Tree:
    """A partition of the surface's features and a value for each cell, float64 [cells]."""

    partition: Partition
    values: Floats


@dataclass(frozen=True, eq=False)
class Surface:
    """intercept + slopes . (x - stand_ins) + the mean of the trees, in the label's unit.

    Attributes:
        features: which columns it reads.
        stand_ins: float64 [features], the mean of each where it is shown.
        intercept: the value at the stand-ins, trees apart.
        slopes: float64 [features], per unit of scaled feature.
        trees: on the columns of `features`.

    Raises:
        DataError: shapes that do not fit, or a number is infinite.
    """

    features: tuple[int, ...]
    stand_ins: Floats
    intercept: float
    slopes: Floats
    trees: tuple[Tree, ...] = ()

    def __post_init__(self) -> None:
        k = len(self.features)
        if self.stand_ins.shape != (k,) or self.slopes.shape != (k,):
            raise DataError(
                f"surface: {k} features, stand-ins {self.stand_ins.shape}, slopes {self.slopes.shape}"
            )
        for tree in self.trees:
            if tree.values.shape != (tree.partition.n_leaves,) or tree.partition.feature.max() >= k:
                raise DataError("surface: a tree's values or features do not fit it")
        arrays = [self.stand_ins, self.slopes, *(tree.values for tree in self.trees)]
        if not (math.isfinite(self.intercept) and all(np.isfinite(array).all() for array in arrays)):
            raise DataError("surface: a number is missing or infinite")

    @classmethod
    def constant(cls, value: float) -> Self:
        """The same value everywhere."""
        return cls((), np.zeros(0), value, np.zeros(0))

    def times(self, factor: float) -> Surface:
        """So many times its value, everywhere, rounded: it is published, and the factor may differ in its last digits."""
        trees = tuple(Tree(tree.partition, round_digits(factor * tree.values)) for tree in self.trees)
        intercept, slopes = float(round_digits(factor * self.intercept)), round_digits(factor * self.slopes)
        return Surface(self.features, self.stand_ins, intercept, slopes, trees)

    def columns(self, rows: Floats) -> Floats:
        """Its own columns of rows [n, d], float64 [n, features], stand-ins in place of NaN."""
        own = rows[:, list(self.features)]
        return np.where(np.isnan(own), self.stand_ins, own)

    def __call__(self, rows: Floats) -> Floats:
        """float64 [n], of rows [n, d]."""
        own = self.columns(rows)
        value: Floats = self.intercept + (own - self.stand_ins) @ self.slopes
        if self.trees:
            narrow = own.astype(np.float32)
            value = value + np.mean(
                [tree.values[tree.partition.apply(narrow)] for tree in self.trees], axis=0
            )
        return value


@dataclass(frozen=True, kw_only=True)
class Step:
    """A question that trees ask alike, on whether the feature is above about this threshold.

    Attributes:
        feature: the column of a row.
        threshold: scaled; the mean of those of its splits, weighted by what they part.
        change: what being above adds, in the label's unit, averaged over all trees and people.
        n_trees: how many of the trees ask it.
        share: of the variance that splits of all trees bring, its own, 0 to 1.
    """

    feature: int
    threshold: float
    change: float
    n_trees: int
    share: float


def find_steps(surface: Surface, rows: Floats) -> tuple[Step, ...]:
    """The steps of the trees, those that bring the most variance first; none where the trees do not vary over the rows.

    By the law of total variance a tree's variance over the rows is a sum over its splits, w_l w_r / (w_l + w_r)
    (v_l - v_r)^2 with the weights and mean values of both sides.

    Args:
        surface: of which the trees are looked at.
        rows: float64 [n, d] in [0, 1], NaN where a feature is not shown.
    """
    own = surface.columns(rows).astype(np.float32)
    by_step: dict[tuple[int, int], list[tuple[int, float, float, float]]] = {}
    for number, tree in enumerate(surface.trees):
        for feature, threshold, part, change in _splits(tree, own):
            near = (surface.features[feature], min(int(threshold * NEAR), NEAR - 1))
            by_step.setdefault(near, []).append((number, threshold, part, change))
    total = sum(part for splits in by_step.values() for _, _, part, _ in splits)
    if total <= 0:
        return ()
    made = []
    for (feature, _), splits in by_step.items():
        part = sum(split[2] for split in splits)
        made.append(
            Step(
                feature=feature,
                threshold=sum(split[1] * split[2] for split in splits) / part,
                change=sum(split[3] for split in splits) / len(surface.trees),
                n_trees=len({split[0] for split in splits}),
                share=part / total,
            )
        )
    return tuple(sorted(made, key=lambda step: (-step.share, step.feature, step.threshold)))


def _splits(tree: Tree, own: NDArray[np.float32]) -> list[tuple[int, float, float, float]]:
    """Return feature, threshold, part of the variance, and rise times weight of each split that separates."""
    partition = tree.partition
    held = np.bincount(partition.apply(own), minlength=partition.n_leaves) / len(own)
    cells, nodes = partition.paths()
    mass = np.bincount(nodes, weights=held[cells], minlength=partition.n_nodes)
    sums = np.bincount(nodes, weights=(held * tree.values)[cells], minlength=partition.n_nodes)
    splits = []
    for node in np.flatnonzero(partition.feature >= 0).tolist():
        low, high = int(partition.left[node]), int(partition.right[node])
        if mass[low] <= 0 or mass[high] <= 0:
            continue
        rise = float(sums[high] / mass[high] - sums[low] / mass[low])
        part = float(mass[low] * mass[high] / mass[node]) * rise**2
        if part > 0:
            splits.append(
                (
                    int(partition.feature[node]),
                    float(partition.threshold[node]),
                    part,
                    rise * float(mass[node]),
                )
            )
    return splits
