"""Ask first, in a correction, along which columns private people differ in ways that public labels do not show.

The cells of a correction are grown on public labels. A difference along a column that public labels do not depend on lies in all
cells alike, and is averaged away. So a part of the holders is asked before the others: each draws one of K columns in the clear,
and reports its residual with the sign of the half of the public rows that it is in (`published_base.Contrast`). The mean of
these, c_k, has the variance E_k of one number's mean: with B levels that is the quietest question there is about a difference
between halves, quieter than one about a cell of two. The tree of cells is cut along the column with the largest
|c_k| / sqrt(E_k), where that is above `SURELY_SEEN`, and along others that stay above `CLEARLY_SEEN` without what the ones
before explain of them on public rows. Whoever was not asked yet reports on the cells.

A difference that turns its sign with another column lies in both halves of either alike. Where so many are asked that the noise
stays below `NOISE_WITH_PAIRS`, every pair of the columns is a contrast too (`published_base.Pair`).

Each holder answers one of the two questions with the whole epsilon, and the second depends on the first one's answers alone: by
parallel composition both together are epsilon-LDP. The second question's reports are the only ones that a correction is made
of, so that a column which looked best by chance has no part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from ldptree.families.correction_plan import SATURATED, CorrectionPlan, PublicEvidence, make_plan
from ldptree.families.corrections import estimate_residuals
from ldptree.partition.tree import LEAF, Partition
from ldptree.protocol.published_base import Along, Contrast, Pair, mean_products

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldptree.protocol.totals import Totals

SHARE = 500
"""Of a thousand holders, how many are asked about contrasts. Of 150 to 500, the more the surer a column is found at epsilon 1,
and none loses where there is nothing to find."""
MOST_CONTRASTS = 16
LEAST_HALF = 0.1
"""Of the public rows, which either half has at least."""
LEAST_HALF_OF_PAIR = 0.4
NOISE_OF_ERRORS = 1.0 / 3.0
"""The standard deviation of a contrast, in root mean squares of public errors, above which nobody is asked about contrasts."""
NOISE_WITH_PAIRS = 0.1
"""The same, above which nobody is asked about pairs. Where two columns differ each alone, pairs cost .001 of accuracy on average
with 1/10 and .01 at most, up to .03 with 1/8 and .05 with 1/6."""
SURELY_SEEN = 1.5
"""Standard deviations of its noise that the largest contrast must have for a cut."""
CLEARLY_SEEN = 3.0
"""The same of each other contrast: of fifteen about nothing, one is above it in 4 % of runs."""
OF_MANY = 3.5
"""The same of a pair: of 120 about nothing, one is above it in 5 % of runs."""
MOST_CUTS = 3
"""Columns that are cut above the tree."""
WIDER = 4.0
"""How many times as wide the next range is, or as the standard deviation of public labels where that is larger."""


def choose_contrasts(X: NDArray[np.float32]) -> tuple[Contrast, ...]:
    """The columns of public rows [n, d] that one cut parts most evenly, at most `MOST_CONTRASTS`."""
    if not len(X):
        return ()
    parts = [_part_evenly(column) for column in np.sort(X, axis=0).T]
    order = np.argsort([-smaller for _, smaller in parts], kind="stable")[:MOST_CONTRASTS]
    return tuple(Contrast(int(j), parts[j][0]) for j in order if parts[j][1] >= LEAST_HALF)


def choose_pairs(
    X: NDArray[np.float32], contrasts: Sequence[Contrast], groups: Sequence[Sequence[int]]
) -> tuple[Pair, ...]:
    """The pairs of contrasts of different raw columns whose halves have both at least `LEAST_HALF_OF_PAIR` of the public rows.

    Args:
        X: float32 [n, d], encoded public rows, n >= 1.
        contrasts: of one column each.
        groups: the encoded columns of each raw column.
    """
    raw = {column: at for at, group in enumerate(groups) for column in group}
    smaller = (1.0 - np.abs(mean_products(contrasts, X))) / 2.0
    return tuple(
        Pair(*sorted((contrasts[k], contrasts[j])))
        for k, j in combinations(range(len(contrasts)), 2)
        if raw[contrasts[k].feature] != raw[contrasts[j].feature] and smaller[k, j] >= LEAST_HALF_OF_PAIR
    )


def _part_evenly(values: NDArray[np.float32]) -> tuple[float, float]:
    """A threshold at or just below the median of sorted values [n], and the smaller half's share."""
    n, median = len(values), values[len(values) // 2]
    first, stop = np.searchsorted(values, median), np.searchsorted(values, median, side="right")
    n_below, threshold = (first, values[first - 1]) if n - stop < first else (stop, median)
    return float(threshold), min(n_below, n - n_below) / n


def plan_contrasts(
    evidence: PublicEvidence,
    contrasts: Sequence[Along],
    *,
    epsilon: float,
    n_holders: int,
    n_levels: int | str = "auto",
    mechanism: str = "auto",
) -> CorrectionPlan:
    """Return the question about contrasts, of n holders, as a plan with one cell whose outputs are contrasts.

    Halves are of about equal size, so that what clipping adds to both cancels.
    """
    symmetric = replace(evidence.range, offset=0.0, offset_sd=0.0, moved=())
    return make_plan(
        replace(evidence, range=symmetric, grow=lambda depth: Partition.single()),
        epsilon=epsilon,
        n_holders=n_holders * SHARE // 1000 // max(len(contrasts), 1),
        depth=0,
        n_levels=n_levels,
        mechanism=mechanism,
    )


def is_worth_asking(plan: CorrectionPlan, evidence: PublicEvidence, noise: float = NOISE_OF_ERRORS) -> bool:
    """Return whether a difference that explains much of the errors would be seen: `NOISE_OF_ERRORS`, or `NOISE_WITH_PAIRS`."""
    return plan.expected_sd <= noise * float(np.sqrt(np.mean(evidence.errors**2)))


def find_cuts(
    plan: CorrectionPlan,
    contrasts: Sequence[Along],
    totals: Sequence[Totals],
    X: NDArray[np.float32],
    most: int = MOST_CUTS,
) -> tuple[Contrast, ...]:
    """The columns of the contrasts that the reports speak for, the clearest first; none where none stands out of its noise.

    Args:
        plan: the question about contrasts.
        contrasts: the K that were asked about.
        totals: the answers, one a contrast.
        X: float32 [n, d], encoded public rows, on which one contrast explains a part of another.
        most: how many columns may be cut; a pair is cut along both or not at all.

    Raises:
        DataError: nobody reported.
    """
    seen = estimate_residuals(plan, totals)
    mean = np.array([float(side.mean[0]) for side in seen])
    variance = np.array([float(side.variance[0]) for side in seen])
    overlap = mean_products(contrasts, X)
    is_pair = np.array([isinstance(along, Pair) for along in contrasts])
    chosen: list[int] = []
    cuts: dict[Contrast, None] = {}
    while len(cuts) < most:
        explained = overlap[:, chosen] @ np.linalg.pinv(overlap[np.ix_(chosen, chosen)])
        noise = variance + explained**2 @ variance[chosen]
        strength = np.abs(mean - explained @ mean[chosen]) / np.sqrt(noise)
        n_new = np.array([len({*along.cuts} - {*cuts}) for along in contrasts])
        least = np.where(is_pair, OF_MANY, CLEARLY_SEEN if chosen else SURELY_SEEN)
        strength[(strength <= least) | (n_new == 0) | (n_new > most - len(cuts))] = 0.0
        best = int(np.argmax(strength))
        if not strength[best]:
            break
        chosen.append(best)
        cuts |= dict.fromkeys(contrasts[best].cuts)
    return tuple(cuts)


def widen_range(plan: CorrectionPlan, totals: Sequence[Totals]) -> float | None:
    """Return the range of a residual for the next question, where these answers show that it was too small; else None.

    A mean clipped residual near an end of the range says that most people lie beyond it on one side, and not how far.

    Args:
        plan: the question about contrasts.
        totals: the answers, one a contrast.

    Raises:
        DataError: nobody reported.
    """
    seen = estimate_residuals(plan, totals)
    least = max(abs(float(side.mean[0])) - SURELY_SEEN * float(side.variance[0]) ** 0.5 for side in seen)
    if least * plan.range.slope <= SATURATED * plan.range.half:
        return None
    return WIDER * max(plan.range.half, plan.scale / 2.0)


def cut_above(
    tree: Partition, contrast: Contrast, X: NDArray[np.float32], columns: Sequence[int]
) -> Partition:
    """The two halves of a contrast, and in either the tree without the tests that the half decides already.

    A test of the contrast's raw column is decided where it parts the values of public rows, but not those of the half; where no
    public row has a value on one side of it, by the threshold of the contrast.

    Args:
        tree: the cells.
        contrast: what is cut above them.
        X: float32 [n, d], encoded public rows.
        columns: the encoded columns of the contrast's raw column.
    """
    values = X[:, list(columns)]
    is_above = values[:, list(columns).index(contrast.feature)] > contrast.threshold
    feature, threshold, left, right = [contrast.feature], [contrast.threshold], [LEAF], [LEAF]
    for half, first in ((False, left), (True, right)):
        below = _Half(tree, contrast, list(columns), values, is_above, half)
        below.keep(0, np.arange(len(values)))
        kept = below.kept
        place = {node: len(feature) + i for i, node in enumerate(sorted(kept))}
        first[0] = len(feature)
        for node in place:
            feature.append(int(tree.feature[node]))
            threshold.append(float(tree.threshold[node]))
            for side, children in enumerate((left, right)):
                children.append(place[kept[node][side]] if kept[node] else LEAF)
    return Partition.of(feature, threshold, left, right)


@dataclass(frozen=True, eq=False)
class _Half:
    """A half of a contrast, and the nodes of a tree that are kept below it.

    Attributes:
        tree, contrast, columns: as of `cut_above`.
        values: float32 [n, columns], those of public rows.
        is_above: bool [n], which half each is in.
        half: which half it is.
        kept: the nodes, with their children there.
    """

    tree: Partition
    contrast: Contrast
    columns: list[int]
    values: NDArray[np.float32]
    is_above: NDArray[np.bool_]
    half: bool
    kept: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def keep(self, node: int, here: NDArray[np.intp]) -> int:
        """Keep a node, or the one that stands for it, where these values are, and those below; return which it is."""
        feature = int(self.tree.feature[node])
        if feature == LEAF:
            self.kept[node] = ()
            return node
        children, sides = (int(self.tree.left[node]), int(self.tree.right[node])), (here, here)
        if feature in self.columns:
            goes_left = self.values[here, self.columns.index(feature)] <= self.tree.threshold[node]
            sides = here[goes_left], here[~goes_left]
            for side in (0, 1):
                if self._is_ruled_out(node, side, sides[side]):
                    return self.keep(children[1 - side], sides[1 - side])
        self.kept[node] = tuple(self.keep(child, there) for child, there in zip(children, sides, strict=True))
        return node

    def _is_ruled_out(self, node: int, side: int, there: NDArray[np.intp]) -> bool:
        """Return whether nobody of the half is on a side of a test where these values are."""
        if there.size:
            return not (self.is_above[there] == self.half).any()
        if self.tree.feature[node] != self.contrast.feature or bool(side) == self.half:
            return False
        at = float(self.tree.threshold[node])
        return at <= self.contrast.threshold if self.half else at >= self.contrast.threshold
