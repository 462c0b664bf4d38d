"""Totals and public labels that are numbers into a regression model: LPDT (NeurIPS 2023), and what goes beyond it.

The arithmetic is that of classes (`weighting`, `pruning`): here labels become margins of the same size, and margins a
label again. With c the public mean and 2 s twice the public standard deviation, theta = (label - c) / (2 s), which has variance
1/4, as the margin of two even classes has. What is learned about the difference of public and private people, and the
smoothing over the tree, then need no settings of their own.

The paper's estimator (eq. 5), f_j = sum of Y~ U~ / sum of U~ with 0/0 = 0, is lam = 0, prune = "none", rule = "ratio".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms import describe
from ldptree.pruning import NUMBER_PRUNINGS
from ldptree.regression import RegressionModel
from ldptree.weighting import Evidence, check_weighting, gather, weigh

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ldptree.partition.tree import Partition
    from ldptree.protocol import Protocol
    from ldptree.totals import Totals

    Floats = NDArray[np.float64]

FOLDS = 5
SMALLEST = 1e-6
"""Of the variance of all labels: what one within a cell has at least."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicLabels:
    """What the public rows say of their labels.

    Attributes:
        count: float64 [L], rows of each cell.
        total: float64 [L], sum of their labels.
        mean: of all of them; the middle of the range where there are none.
        sd: standard deviation of all of them; half the range where there are none, or all are equal.
        residual_variance: of one label within a cell.
    """

    count: Floats
    total: Floats
    mean: float
    sd: float
    residual_variance: float

    @classmethod
    def of(
        cls,
        partition: Partition,
        X: NDArray[np.float32],
        y: ArrayLike,
        label_range: tuple[float, float],
        grow: Callable[[NDArray[np.float32], Floats], Partition],
    ) -> PublicLabels:
        """Summaries of scaled public rows X [n, d] with labels y [n]; n may be 0.

        `grow` makes the partition of other rows: a tree fits its own rows too well, so what is left within cells is measured
        on rows held out (`_held_out_variance`).
        """
        labels = np.asarray(y, dtype=np.float64)
        low, high = label_range
        n_cells = partition.n_leaves
        if labels.size == 0:
            nothing, half = np.zeros(n_cells), (high - low) / 2
            return cls(
                count=nothing, total=nothing, mean=(low + high) / 2, sd=half, residual_variance=half**2
            )
        cells = partition.apply(X)
        count = np.bincount(cells, minlength=n_cells).astype(np.float64)
        total = np.bincount(cells, weights=labels, minlength=n_cells).astype(np.float64)
        variance = float(labels.var()) or (high - low) ** 2 / 4
        return cls(
            count=count,
            total=total,
            mean=float(labels.mean()),
            sd=variance**0.5,
            residual_variance=float(
                np.clip(_held_out_variance(X, labels, grow), SMALLEST * variance, variance)
            ),
        )


def _held_out_variance(
    X: NDArray[np.float32], y: Floats, grow: Callable[[NDArray[np.float32], Floats], Partition]
) -> float:
    """Variance of one label within a cell, by `FOLDS`-fold cross-validation; of all labels where rows are fewer.

    A label held out differs from the mean of its cell's n rows by variance (1 + 1/n), and by what the tree has wrong there,
    which counts as well. It is what lets a tree be too deep: measured by the tree's own rows, its cells look sure of
    themselves (abalone at depth 8, 417 public rows: MSE 7.9, and 6.1 so).
    """
    if y.size < 2 * FOLDS:
        return float(y.var())
    fold, squares = np.arange(y.size) % FOLDS, 0.0
    fold = np.random.default_rng(0).permutation(fold)
    for k in range(FOLDS):
        tree = grow(X[fold != k], y[fold != k])
        cells, held_out = tree.apply(X[fold != k]), tree.apply(X[fold == k])
        count = np.bincount(cells, minlength=tree.n_leaves)
        total = np.bincount(cells, weights=y[fold != k], minlength=tree.n_leaves)
        safe = np.maximum(count, 1)
        mean = np.where(count > 0, total / safe, y[fold != k].mean())
        squares += float((((y[fold == k] - mean[held_out]) ** 2) / (1 + 1 / safe[held_out])).sum())
    return squares / y.size


def check_settings(*, lam: str | float, prune: str, rule: str) -> None:
    """Everything about a fit that can be refused before anybody is asked.

    Raises:
        ConfigError: lam, prune or rule is not known, or they do not go together.
    """
    if prune not in NUMBER_PRUNINGS:
        raise ConfigError(
            f'prune = "{prune}": for a label that is a number, known are {", ".join(NUMBER_PRUNINGS)}'
        )
    if rule == "ratio" and prune == "smooth":
        raise ConfigError(
            'rule = "ratio" is the paper\'s, and prune = "smooth" is not; set prune = "none" or "fallback"'
        )
    check_weighting(lam, rule)


def fit_regression(
    protocol: Protocol,
    totals: Totals,
    public: PublicLabels,
    *,
    lam: str | float = "learned",
    prune: str = "smooth",
    rule: str = "margin",
    epsilon: float | None = None,
) -> RegressionModel:
    """Turn totals into a model: weigh private against public evidence, then smooth.

    Args:
        protocol: what the holders answered; its label is a number.
        totals: the unbiased totals of their reports.
        public: what the public rows say.
        lam: "learned", "auto", or the weight of a public row in private people, from 0 (private alone) to infinity.
        prune: one of `NUMBER_PRUNINGS`.
        rule: "margin", or "ratio", the paper's (`weighting.fixed`).
        epsilon: what a holder spent in all rounds, where that is not the protocol's.

    Raises:
        ConfigError: lam, prune or rule is not known, or they do not go together.
        DataError: totals or public labels do not fit the protocol, or nobody reported.
    """
    check_settings(lam=lam, prune=prune, rule=rule)
    if not protocol.numeric:
        raise DataError("model: the protocol's label is a class, not a number")
    shape = (protocol.n_cells, protocol.n_classes)
    if totals.counts.shape != shape or public.count.shape != shape[:1]:
        raise DataError(
            f"model: totals of shape {totals.counts.shape} and public labels of {public.count.size} cells, "
            f"the protocol's tree and levels are {shape}"
        )
    if totals.n_private < 1:
        raise DataError("model: nobody reported; collect reports first, or fit with lam = inf on public rows")
    scale = 2.0 * public.sd
    levels = np.array(protocol.classes, dtype=np.float64)
    evidence = _gather(protocol, totals, public, levels, scale)
    weighted = weigh(evidence, lam, rule)
    pruned = NUMBER_PRUNINGS[prune](evidence, weighted)
    low, high = protocol.label_range
    return RegressionModel(
        encoding=protocol.encoding,
        partition=protocol.partition,
        target=protocol.target,
        outside=protocol.outside,
        label_range=(low, high),
        label_sd=public.residual_variance**0.5,
        value=np.clip(public.mean + scale * pruned.theta, low, high),
        value_sd=scale * np.sqrt(pruned.variance),
        noise_sd=scale * np.sqrt(evidence.private_noise) / evidence.private_mass,
        discrepancy=scale * weighted.discrepancy,
        discrepancy_sd=scale * np.sqrt(weighted.discrepancy_variance),
        mean_discrepancy=scale * float(weighted.mean_discrepancy),
        mean_discrepancy_sd=scale * float(weighted.mean_discrepancy_variance) ** 0.5,
        private_share=weighted.private_share,
        private_count=evidence.private_count,
        private_sum=evidence.rolled_up(totals.counts @ levels),
        public_count=np.rint(evidence.public_mass).astype(np.int64),
        public_sum=evidence.rolled_up(public.total),
        decided_at=pruned.decided_at.astype(np.int32),
        prune=prune,
        lam=lam if isinstance(lam, str) else float(lam),
        lam_used=weighted.lam,
        epsilon=float(protocol.epsilon if epsilon is None else epsilon),
        mechanism=describe(protocol.mechanism),
        n_private=totals.n_private,
        n_public=int(public.count.sum()),
        protocol_digest=protocol.digest,
    )


def _gather(
    protocol: Protocol, totals: Totals, public: PublicLabels, levels: Floats, scale: float
) -> Evidence:
    weights = (levels - public.mean) / scale
    return gather(
        protocol.partition,
        private_margin=totals.counts @ weights,
        private_count=totals.cell_counts,
        margin_noise=totals.cell_variance(weights),
        mass_noise=totals.count_variance,
        public_margin=(public.total - public.mean * public.count) / scale,
        public_count=public.count,
        n_private=totals.n_inside,
        label_variance=public.residual_variance / scale**2,
        theta_of_nobody=-public.mean / scale,
    )
