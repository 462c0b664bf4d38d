"""How few public rows a cell of LPCT's CART should have, by sets that are not Chicago's: `lpct.py leaves`.

What lives here: the sets, and accuracy by fewest rows a cell. What does not: the tree and the trial (`lpct_trials`). The sets
are those of `lpct_samples` and `correction_samples`, and the regression sets with "above the median" as the class, a tenth of
them public as in LPDT. Of large public samples a part is drawn anew in each run, so that trees differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from correction_samples import census, diabetes, employee
from lpct_samples import Sample, Table, four_classes, wine, wine_classes
from lpct_trials import asked, coins
from numpy.typing import NDArray
from regression_sets import LPDT_NAMES, load

Floats = NDArray[np.float64]
Draw = Callable[[int], Sample]

ROWS = (1, 2, 3, 4, 5, 7, 10)
DEPTHS = (2, 4, 6)
LEAST_PUBLIC = 80
"""A set with fewer public rows is left out: it says little about trees of 64 cells."""


def _part(table: Table, n_public: int) -> Draw:
    """A table's splits with that many of its public rows."""

    def draw(run: int) -> Sample:
        sample = table.split(run)
        kept = np.random.default_rng([run, 2]).permutation(sample.public_y.size)[:n_public]
        rows = (sample.public_X[kept], sample.public_y[kept])
        return Sample(*rows, sample.X, sample.y, sample.test_X, sample.test_y, sample.n_classes)

    return draw


def _above_median(name: str) -> Draw:
    """A regression set, label above its median; one row of ten is public, two are test rows."""
    dataset = load(name)
    y = (dataset.y > np.median(dataset.y)).astype(np.int64)

    def draw(run: int) -> Sample:
        order = np.random.default_rng([run, 1]).permutation(y.size)
        parts = np.split(order, [y.size // 10, y.size - y.size // 5])
        return Sample(*(rows for part in parts for rows in (dataset.X[part], y[part])))

    return draw


def sets() -> dict[str, Draw]:
    """Every set by its name, with at least `LEAST_PUBLIC` public rows."""
    found: dict[str, Draw] = {
        "wine": _part(wine(), 800),
        "wine, four classes": _part(wine_classes(), 800),
        "Census": _part(census(), 2_000),
        "Employee": _part(employee(), 300),
        "Diabetes": _part(diabetes(), 150),
        "four sectors": four_classes,
        **{name: _above_median(name) for name in LPDT_NAMES},
    }
    return {name: draw for name, draw in found.items() if draw(0).public_y.size >= LEAST_PUBLIC}


def by_rows(draw: Draw, epsilons: tuple[float, ...], runs: int) -> Floats:
    """Accuracy, float64 [epsilons, ROWS, runs], mean of `DEPTHS`; the same coins for every number of rows."""
    found = np.empty((len(epsilons), len(ROWS), runs))
    for run in range(runs):
        sample = draw(run)
        for i, epsilon in enumerate(epsilons):
            for j, rows in enumerate(ROWS):
                found[i, j, run] = np.mean(
                    [
                        asked(
                            sample, epsilon, coins(run, p), depth=p, min_samples_leaf=rows, inflation=1.0
                        ).accuracy()
                        for p in DEPTHS
                    ]
                )
    return found


def above_one_row(epsilons: tuple[float, ...], runs: int) -> tuple[Mapping[str, Floats], Floats, Floats]:
    """Accuracy less that of one row a cell.

    Returns:
        By set, float64 [ROWS], mean over epsilons; the mean over sets, float64 [epsilons, ROWS]; its standard error over runs.
    """
    gains = {}
    for name, draw in sets().items():
        found = by_rows(draw, epsilons, runs)
        gains[name] = found - found[:, :1]
    each = np.stack(list(gains.values()))
    errors = np.sqrt(np.var(each, axis=-1, ddof=1).sum(axis=0)) / (math.sqrt(runs) * len(each))
    return {n: g.mean(axis=(0, 2)) for n, g in gains.items()}, each.mean(axis=(0, 3)), errors
