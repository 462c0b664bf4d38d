"""Settings chosen before any private row is looked at, from sizes and epsilon alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ldptree.errors import ConfigError
from ldptree.mechanisms import JOINT_CHOICES, mechanism_for, number_mechanism_for
from ldptree.protocol.stochastic_rounding import expected_shares, label_levels

# 65,536 cells: a deeper tree fits in no report and no picture
MAX_DEPTH = 16


if TYPE_CHECKING:
    from numpy.typing import ArrayLike

NUMBER_LEVELS = (2, 3, 4, 5, 7, 9, 13, 17)
"""Of how many levels a label that is a number may be sent as one."""
FEWEST_PUBLIC_ROWS = {"classes": 3, "numbers": 5, "errors": 5}
"""Fewest rows in a cell, by what is learned ("errors" are of a public model). Fewer say next to nothing of where people
differ. Of classes, 3 was picked on real trips of one city, and lost nothing that stands out of the noise on 14 other
sets.
"""
FEW_PUBLIC_ROWS = 30
"""With fewer, a CART of classes is cut down to single rows, which beats no cut (5 rows of 3 classes, .67 to .46)."""
DEPTH_OF_PUBLIC_ROWS = 6
"""Deepest regression tree of public rows alone. With smoothing, deeper gains nothing more (six real sets)."""
MOST_NOISE_OF_ALL = 0.05
"""Standard deviation that the noise of all cells may give the mean label of all reports, in twice that of a public label."""


def default_min_samples_leaf(
    learned: Literal["classes", "numbers", "errors"],
    n_public: int,
    *,
    wanted: int | Literal["auto"] = "auto",
    partition: str = "cart",
    is_paper: bool = False,
) -> int:
    """Return the fewest public rows that a cell may have (`min_samples_leaf` of `ldptree.partition.grow_partition`).

    Where nothing else is wanted `FEWEST_PUBLIC_ROWS`; but 1 for classes below `FEW_PUBLIC_ROWS` public rows, on edges, and where
    LPCT's Algorithm 2 prunes.

    Args:
        learned: classes, numbers, or the errors of a public model.
        n_public: public rows; without any there is nothing to count, and 1 is found whatever is wanted.
        wanted: a number from 1 that is taken as it is, or "auto".
        partition: one of `ldptree.partition.PARTITIONS`.
        is_paper: whether LPCT's Algorithm 2 prunes.
    """
    if not n_public:
        return 1
    if wanted != "auto":
        return wanted
    is_free = partition != "cart" or is_paper or n_public < FEW_PUBLIC_ROWS
    return 1 if learned == "classes" and is_free else FEWEST_PUBLIC_ROWS[learned]


def paper_depth(d: int, n_private: int, n_public: int, epsilon: float) -> int:
    """Return the p0 of LPCT's Algorithm 2, floor(d / (2 + 2 d) log2(n_P eps^2 + n_Q^((2 + 2 d) / d))), 1 to 16."""
    rate = d / (2 + 2 * d)
    depth = rate * math.log2(max(n_private * epsilon**2 + float(n_public) ** (1 / rate), 1.0))
    return min(max(math.floor(depth), 1), MAX_DEPTH)


def termination_depth(d: int, n_private: int, epsilon: float) -> int:
    """Return the depth of LPCT's second query in Algorithm 2, floor(d / (2 + 2 d) log2(n_P eps^2)), 0 to 16."""
    depth = d / (2 + 2 * d) * math.log2(max(n_private * epsilon**2, 1.0))
    return min(math.floor(depth), MAX_DEPTH)


def automatic_depth(d: int, n_private: int, epsilon: float, n_classes: int, mechanism: str = "auto") -> int:
    """Return the depth of the partition, the largest p with p <= d / (2 + 2 d) * log2(n_private / v_A(p)).

    The rate of LPCT's p0 (section 5) with the mechanism's own noise in the place of the papers' 1 /
    epsilon^2: v_A(p) is the noise variance of a cell's margin per holder on 2^p cells
    (`Mechanism.margin_variance_per_holder`). On both of LPCT's synthetic pairs this is the depth that is best in hindsight.

    Args:
        d: number of encoded columns.
        n_private: number of holders who will report.
        epsilon: their budget.
        n_classes: C.
        mechanism: one of `ldptree.mechanisms.CHOICES`; "auto": the quieter one at each depth.

    Returns:
        1 to 16: at least one split, at most 65,536 cells.

    Raises:
        ConfigError: d, n_private, n_classes or epsilon is out of range.
    """
    if d < 1 or n_private < 1 or n_classes < 2:
        given = f"d = {d}, n_private = {n_private}, n_classes = {n_classes}"
        raise ConfigError(f"depth: {given}; they must be at least 1, 1 and 2")
    best = 1
    for depth in range(1, MAX_DEPTH + 1):
        n_cells = 2**depth
        noise = mechanism_for(mechanism, epsilon, n_cells, n_classes).margin_variance_per_holder()
        # no noise at all is left at enormous epsilon: then the cap decides
        if depth <= d / (2 + 2 * d) * math.log2(n_private / max(noise, 2.0**-64)):
            best = depth
    return best


@dataclass(frozen=True, kw_only=True)
class NumberDepths:
    """The depths of a regression tree.

    Attributes:
        asked: of the cells that reports are asked about.
        whole: of the tree that public rows part further, at least `asked` (`finer`).
    """

    asked: int
    whole: int


def number_depths(
    d: int,
    n_private: int,
    epsilon: float,
    *,
    mechanism: str = "auto",
    partition: str = "cart",
    n_public: int = 0,
    min_samples_leaf: int = 1,
    label_sd: float = 0.5,
) -> NumberDepths:
    """Return a regression tree's depths, of the cells that reports carry and, if deeper, that public rows do.

    Reports carry what `automatic_depth` says, the noise of a cell's sum of labels taken in units in which the public standard
    deviation is 1/2, as that of two even classes. Where there are public rows, no more cells are asked about than leave the noise
    of the mean of ALL reports at `MOST_NOISE_OF_ALL` or below, since every cell adds its own: a difference that is common to
    all people would be lost in it. Public rows carry floor(log2(n_public / min_samples_leaf)), at most `DEPTH_OF_PUBLIC_ROWS`.

    Where edges are cut, one tree serves both: of two depths the larger.

    Args:
        d, n_private, epsilon, mechanism: as `automatic_depth`.
        partition: one of `ldptree.partition.PARTITIONS`.
        n_public: public rows.
        min_samples_leaf: fewest of them in a cell.
        label_sd: their labels' `relative_sd`.

    Raises:
        ConfigError: d, n_private or epsilon is out of range.
    """
    if d < 1 or n_private < 1:
        raise ConfigError(f"depth: d = {d}, n_private = {n_private}; they must be at least 1")
    is_parted = partition == "cart" and n_public > 0
    best = 1
    for depth in range(1, MAX_DEPTH + 1):
        resolved = number_mechanism_for(mechanism, epsilon, 2**depth)
        noise = resolved.margin_variance_per_holder() / (4 * label_sd**2)
        is_carried = depth <= d / (2 + 2 * d) * math.log2(n_private / max(noise, 2.0**-64))
        if is_carried and (not is_parted or 2**depth * noise <= n_private * MOST_NOISE_OF_ALL**2):
            best = depth
    of_public = math.floor(math.log2(max(n_public // max(min_samples_leaf, 1), 1)))
    whole = max(best, min(of_public, DEPTH_OF_PUBLIC_ROWS))
    return NumberDepths(asked=best if is_parted else whole, whole=whole)


def relative_sd(labels: ArrayLike, label_range: tuple[float, float]) -> float:
    """Standard deviation of public labels [n] over the width of their range, at most 1/2; 1/2 where they show none."""
    y, (low, high) = np.asarray(labels, dtype=np.float64), label_range
    return min((float(y.std()) if y.size else 0.0) / (high - low) or 0.5, 0.5)


def number_levels(
    mechanism: str, epsilon: float, n_cells: int, labels: ArrayLike, label_range: tuple[float, float]
) -> int:
    """Of `NUMBER_LEVELS`, the one with the least variance of a cell's sum of labels, noise and rounding together.

    Few levels round coarsely, many make the alphabet large. Of public labels alone; without any, as if they were spread evenly.
    Mechanisms that send the label apart keep the two ends: 2.

    Args:
        mechanism: one of `ldptree.mechanisms.CHOICES`.
        epsilon: the budget.
        n_cells: L.
        labels: public labels [n], n may be 0.
        label_range: its ends.
    """
    if mechanism not in JOINT_CHOICES:
        return 2
    y = np.asarray(labels, dtype=np.float64)
    y = y if y.size else np.linspace(*label_range, 101)
    centre = float(y.mean())

    def variance(n_levels: int) -> float:
        resolved = number_mechanism_for(mechanism, epsilon, n_cells, n_levels)
        weights = np.array(label_levels(*label_range, n_levels)) - centre
        shares = expected_shares(y, *label_range, n_levels) / n_cells
        everybody = np.append(np.tile(shares, n_cells), 0.0)
        noise = resolved.cell_variance(weights, [1], shares[None], everybody)[0]
        return float(noise + shares @ weights**2)

    return min(NUMBER_LEVELS, key=variance)
