"""The linear programme of `optimal_label`, from an epsilon to integers.

What lives here: the programme in floating point, which chances lie on a bound in its solution, the chances solved from
that in rational numbers, and their rounding to multiples of 2^-64 that keeps every sum and every mean exact. What does not:
reports (`optimal_label`).

The programme is symmetric: Q(z|u) = Q(-z|-u) and q0(z) = q0(-z), so only levels u >= 0 and one chance for z and -z are
unknown. Outputs are at whole positions s and worth s 2^30 / (half steps), `half` levels above 0: then the mean of level
j / half is the integer equation sum_s count_s s = j steps 2^34.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from ldptree.coins import WORD, exp
from ldptree.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SCALE = 2**30
MEAN = WORD // SCALE
"""A level's mean, in positions times counts, is j steps MEAN."""
WIDTH = 0.35
"""Labels are expected about N(0, WIDTH^2), which gives the weights of the levels."""
# epsilon up to which 9 levels are enough; a larger epsilon is solved as the largest: its noise is that of the levels
FEW_LEVELS_UP_TO = 5.0
_LARGEST = 12.0
# below, Duchi's two outputs are as good to a thousandth, and chances too near each other for a floating-point solver
_TWO_OUTPUTS_UP_TO = 0.02
# output columns below this chance are left out; a chance this near a bound lies on it
_NEAR_ZERO, _ON_BOUND = 1e-9, 1e-5


@dataclass(frozen=True)
class Table:
    """Integers of a mechanism (see `OptimalLabel`)."""

    steps: int
    positions: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Corner:
    """The solver's answer for levels 0 .. half and outputs -m .. m, as chances [half + 1, 2m + 1], lowest, variance."""

    steps: int
    chances: Floats
    lowest: Floats
    objective: float


def solved(epsilon: float) -> Table:
    """The mechanism of least variance among the four outputs' ranges, in integers, that spends at most epsilon.

    Raises:
        ConfigError: epsilon is so small that no integers tell the levels apart, or none were found that keep it.
    """
    half, reach = (4, 16) if epsilon <= FEW_LEVELS_UP_TO else (16, 32)
    e = exp(min(epsilon, _LARGEST))
    if epsilon < _TWO_OUTPUTS_UP_TO:
        return _two_outputs(e, half)
    corners = [corner for c in _ranges(e) if (corner := _corner(float(e), c, half, reach))]
    if not corners:
        raise ConfigError(f"optimal_label: the solver found nothing at epsilon = {epsilon:g}; choose another")
    least = min(corner.objective for corner in corners)
    best = next(corner for corner in corners if corner.objective <= least * (1 + 1e-7))
    # rounding moves a ratio by at most some 2^-64 / q0; the claim is kept by solving for a hair less
    for bits in (40, 34, 28, 22):
        ratio = Fraction(e * (1 - (1 - 1 / e) * Decimal(2) ** -bits))
        table = _rounded(best, _exact(best, ratio))
        if table is not None and worst_ratio(table.counts) <= Fraction(e):
            return table
    raise ConfigError(f"optimal_label: epsilon = {epsilon:g} cannot be kept in integers; choose another")


def _two_outputs(e: Decimal, half: int) -> Table:
    """Duchi's mechanism (two outputs) on these levels."""
    steps = int(Decimal(SCALE) / half * (e - 1) / (e + 1))
    if steps < 1:
        raise ConfigError("optimal_label: epsilon is too small: reports would carry nothing")
    above = [(WORD + j * steps * MEAN) // 2 for j in range(-half, half + 1)]
    return Table(steps, (-1, 1), tuple((WORD - count, count) for count in above))


def worst_ratio(counts: tuple[tuple[int, ...], ...]) -> Fraction:
    """The largest likelihood ratio of any output and two levels."""
    return max(Fraction(max(column), min(column)) for column in zip(*counts, strict=True))


def _ranges(e: Decimal) -> tuple[Decimal, ...]:
    """The four candidates for C."""
    root = e.sqrt()
    duchi, piecewise = (e + 1) / (e - 1), (root + 1) / (root - 1)
    return duchi, (duchi + piecewise) / 2, piecewise, piecewise * Decimal("1.5")


def _corner(e: float, c: Decimal, half: int, reach: int) -> Corner | None:
    """Solve the programme for outputs on [-c, c] and levels 0 .. half, in units of positions; None where there is no solution."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, hstack, kron, vstack
    from scipy.sparse import eye_array as eye

    steps = max(int((Decimal(SCALE * reach) / (half * c)).to_integral_value()), 1)
    s = np.arange(-reach, reach + 1)
    n_out, n_levels = s.size, half + 1
    u = np.arange(n_levels) / half
    weight = np.exp(-((u / WIDTH) ** 2) / 2) * np.where(u > 0, 2.0, 1.0)
    weight /= weight.sum()
    value = s * (SCALE / (half * steps))
    # unknown: Q [levels, outputs] and q0 by magnitude [reach + 1]
    magnitude = coo_array((np.ones(n_out), (np.arange(n_out), np.abs(s))), shape=(n_out, reach + 1))
    lowest = kron(np.ones((n_levels, 1)), magnitude)
    own = eye(n_levels * n_out)
    above = hstack([-own, lowest])
    below = hstack([own, -e * lowest])
    sums = hstack([kron(eye(n_levels), np.ones((1, n_out))), coo_array((n_levels, reach + 1))])
    means = hstack([kron(eye(n_levels), value[None, :]), coo_array((n_levels, reach + 1))])
    cost = np.concatenate([np.outer(weight, value**2).ravel() / value[-1] ** 2, np.zeros(reach + 1)])
    answer = linprog(
        cost,
        A_ub=vstack([above, below]).tocsr(),
        b_ub=np.zeros(2 * n_levels * n_out),
        A_eq=vstack([sums, means]).tocsr(),
        b_eq=np.concatenate([np.ones(n_levels), u]),
        method="highs-ds",
    )
    if answer.status != 0:
        return None
    chances = answer.x[: n_levels * n_out].reshape(n_levels, n_out)
    # level 0 as it is and mirrored are as good: their mean is symmetric
    chances[0] = (chances[0] + chances[0, ::-1]) / 2
    return Corner(steps, chances, answer.x[n_levels * n_out :][np.abs(s)], float(answer.fun) * value[-1] ** 2)


def _exact(corner: Corner, e: Fraction) -> list[list[Fraction]]:
    """Return the chances [levels, outputs] in rational numbers, as each lies at q0, at e q0, or between."""
    reach = corner.lowest.size // 2
    ratio = float(e) - 1
    names: dict[tuple[int, ...], int] = {}
    cells: list[list[tuple[int, Fraction] | None]] = []
    for j, row in enumerate(corner.chances):
        cells.append([])
        for place, (chance, lowest) in enumerate(zip(row, corner.lowest, strict=True)):
            s = place - reach
            if lowest < _NEAR_ZERO:
                cells[j].append(None)
                continue
            where = (chance - lowest) / (lowest * ratio)
            if where < _ON_BOUND or where > 1 - _ON_BOUND:
                name: tuple[int, ...] = (abs(s),)
            else:
                name = (j, s if j else abs(s))
            factor = e if len(name) == 1 and where > 0.5 else Fraction(1)
            cells[j].append((names.setdefault(name, len(names)), factor))
    rows = []
    for j, level in enumerate(cells):
        for power, total in ((0, Fraction(1)), (1, Fraction(j * corner.steps, SCALE))):
            row = [Fraction(0)] * len(names)
            for place, cell in enumerate(level):
                if cell is not None:
                    row[cell[0]] += cell[1] * (place - reach) ** power
            rows.append([*row, total])
    values = _solve(rows, len(names))
    return [[values[c[0]] * c[1] if c else Fraction(0) for c in level] for level in cells]


def _solve(rows: list[list[Fraction]], n: int) -> list[Fraction]:
    """One solution of linear equations [*coefficients, right side]; what no equation decides is 0."""
    pivots: list[int] = []
    for column in range(n):
        k = len(pivots)
        best = max(range(k, len(rows)), key=lambda i: abs(rows[i][column]), default=None)
        if best is None or rows[best][column] == 0:
            continue
        rows[k], rows[best] = rows[best], rows[k]
        top = rows[k][column]
        rows[k] = [x / top for x in rows[k]]
        for i, row in enumerate(rows):
            if i != k and row[column] != 0:
                factor = row[column]
                rows[i] = [x - factor * y for x, y in zip(row, rows[k], strict=True)]
        pivots.append(column)
    solution = [Fraction(0)] * n
    for k, column in enumerate(pivots):
        solution[column] = rows[k][-1]
    return solution


def _rounded(corner: Corner, chances: list[list[Fraction]]) -> Table | None:
    """Counts of 2^-64 with exact sums and means for every level, those below 0 mirrored; None where there are none."""
    reach = corner.lowest.size // 2
    kept = [place for place, chance in enumerate(chances[0]) if chance > 0]
    positions = [place - reach for place in kept]
    upper = []
    for j, level in enumerate(chances):
        row = [round(level[place] * WORD) for place in kept]
        sums = WORD - sum(row)
        means = j * corner.steps * MEAN - sum(s * c for s, c in zip(positions, row, strict=True))
        adjusted = _adjusted(row, positions, sums, means)
        if adjusted is None or min(adjusted) <= 0:
            return None
        upper.append(tuple(adjusted))
    lower = [tuple(reversed(row)) for row in upper[:0:-1]]
    return Table(corner.steps, tuple(positions), (*lower, *upper))


def _adjusted(row: list[int], positions: list[int], sums: int, means: int) -> list[int] | None:
    """Add `sums` to a row's sum and `means` to its mean by the likeliest three outputs that can; None if none can."""
    likely = sorted(range(len(row)), key=lambda i: (-row[i], i))
    for some in combinations(likely[:8], min(3, len(row))):
        a, *others = some
        b, c = others if len(others) == 2 else (others[0], others[0])
        gap_b, gap_c = positions[b] - positions[a], positions[c] - positions[a]
        left = means - positions[a] * sums
        for more in range(abs(gap_b)):
            if (left - more * gap_c) % gap_b == 0:
                adjusted = list(row)
                adjusted[c] += more
                rest = (left - more * gap_c) // gap_b
                adjusted[b] += rest
                adjusted[a] += sums - more - rest
                return adjusted
    return None
