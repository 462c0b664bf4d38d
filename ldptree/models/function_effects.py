"""What any fitted function says along one feature, over rows: shares of the variance of its answers, and the curve along one.

What lives here: arithmetic on a function and points of [0, 1]^d. What does not: the same of one tree, exactly and without rows
(`effects`), and rows that stand for people where features are protected (`histoftree.people`, `public_features.people`).

Shares: each answer less their mean is parted among the features by Shapley values over the rows (Strumbelj and Kononenko,
Knowledge and Information Systems 2014), which part an interaction between its features; a feature's share is the covariance of
its part with the answers, over their variance (Li et al., J. Physical Chemistry A 2010). So shares add up to 1 over rows as they
are, however dependent. Curves are partial dependences (Friedman, Annals of Statistics 2001, section 8.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ldptree.encoding import Encoding, Feature, NumericFeature
from ldptree.errors import DataError
from ldptree.models.effects import Piece
from ldptree.ranges import scale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Answers = Callable[[Floats], Floats]

EVALUATIONS, FEWEST_ORDERS, MOST_ORDERS = 400, 6, 40
"""Orders are tried until the rows were answered about so many times, within these bounds."""
GRID, STRETCHES = 200, 32
"""Ends of a curve are multiples of 1 / GRID of the range; a function that is no staircase is read in so many stretches."""
FEWEST_BEYOND, SHARE_BEYOND = 10, 0.01
"""A curve ends where fewer people than this, or a smaller share, lie beyond."""


def columns_of(encoding: Encoding) -> list[tuple[int, ...]]:
    """The encoded columns of every raw column."""
    found, at = [], 0
    for feature in encoding.features:
        found.append(tuple(range(at, at + len(feature.names))))
        at += len(feature.names)
    return found


def variance_shares(
    answers: Answers, rows: ArrayLike, groups: Sequence[tuple[int, ...]], *, seed: int = 0
) -> Floats:
    """Of each group of columns, its share of the variance of the answers, float64 [groups]; all 0 where they do not vary.

    A group whose part runs against the answers, as that of a feature may that others outweigh, has 0. An estimate from random
    orders, the same for a seed.

    Args:
        answers: the function, of rows float64 [n, d], float64 [n].
        rows: float64 [n, d]; NaN goes to the function as it is.
        groups: columns, no one twice.
        seed: of the orders.

    Raises:
        DataError: there is no row.
    """
    rows = _some(rows)
    rng, parts = np.random.default_rng(seed), np.zeros(len(groups))
    whole = answers(rows)
    centred = whole - whole.mean()
    # answers that are equal but for the last digit of a sum do not vary
    if float(centred @ centred) <= 1e-24 * float(whole @ whole):
        return parts
    wanted = int(np.clip(EVALUATIONS // max(len(groups), 1), FEWEST_ORDERS, MOST_ORDERS))
    for order in _orders(len(groups), wanted, rng):
        # from another row to the own one, a feature at a time: what each brings on the way
        others = rng.permutation(len(rows))
        at, before = rows[others], whole[others]
        for group in order:
            columns = list(groups[group])
            at[:, columns] = rows[:, columns]
            after = answers(at)
            parts[group] += centred @ (after - before)
            before = after
    parts = np.maximum(parts, 0.0)
    total = parts.sum()
    return parts / total if total > 0 else parts


def averages(answers: Answers, rows: ArrayLike, columns: tuple[int, ...], probes: ArrayLike) -> Floats:
    """The answers averaged over the rows with each probe in place of their own columns, float64 [probes].

    Args:
        answers: the function, of rows float64 [n, d], float64 [n].
        rows: float64 [n, d].
        columns: the columns that are set.
        probes: float64 [probes, columns].

    Raises:
        DataError: there is no row.
    """
    at = _some(rows).copy()
    found = []
    for probe in np.asarray(probes, dtype=np.float64):
        at[:, list(columns)] = probe
        found.append(float(answers(at).mean()))
    return np.array(found)


def pieces_of(feature: Feature, cuts: ArrayLike) -> tuple[list[Piece], Floats]:
    """The pieces of a raw column, and of each the encoded values in it, float64 [pieces, columns].

    Args:
        feature: the column.
        cuts: ends of the stretches, in [0, 1] and increasing; not looked at for a category, which has a piece a level.
    """
    if not isinstance(feature, NumericFeature):
        named = [Piece(level=level) for level in feature.levels]
        missing = [Piece(is_missing=True)] if feature.missing_level else []
        return [*named, *missing], np.eye(len(feature.names))
    wide = feature.maximum - feature.minimum
    ends = np.asarray(cuts, dtype=np.float64)
    raw = (feature.minimum + ends * wide).tolist()
    found = [Piece(low=low, high=high) for low, high in pairwise(raw)]
    probes = np.zeros((len(found), len(feature.names)))
    probes[:, 0] = (ends[:-1] + ends[1:]) / 2
    if feature.indicator and feature.fill is not None:
        found.append(Piece(is_missing=True))
        probes = np.vstack([probes, [float(scale(feature.fill, feature.minimum, feature.maximum)), 1.0]])
    return found, probes


def stretches_held(values: ArrayLike) -> Floats:
    """Ends of `STRETCHES` equal stretches of [0, 1] from where the values begin to where they end but for a few.

    Args:
        values: float64 [n], NaN left out.
    """
    held = np.asarray(values, dtype=np.float64)
    held = held[~np.isnan(held)]
    beyond = max(FEWEST_BEYOND, SHARE_BEYOND * held.size)
    counts = np.bincount(np.clip((held * GRID).astype(np.int64), 0, GRID - 1), minlength=GRID)
    from_left, from_right = np.cumsum(counts), np.cumsum(counts[::-1])
    if held.size < 2 * beyond:
        return np.linspace(0.0, 1.0, STRETCHES + 1)
    first, last = int(np.argmax(from_left >= beyond)), GRID - int(np.argmax(from_right >= beyond))
    if first >= last:
        return np.linspace(0.0, 1.0, STRETCHES + 1)
    return np.linspace(first / GRID, last / GRID, STRETCHES + 1)


def _orders(n: int, n_orders: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Random orders, each followed by its reverse: what one credits too early the other credits too late."""
    drawn = [rng.permutation(n) for _ in range((n_orders + 1) // 2)]
    return [order[::step] for order in drawn for step in (1, -1)]


def _some(rows: ArrayLike) -> Floats:
    found = np.asarray(rows, dtype=np.float64)
    if found.ndim != 2 or not found.size:
        raise DataError(f"effects: rows [n, d] with n > 0 are needed, got shape {found.shape}")
    return found
