"""Public models beside each other, alone and corrected: LDPTREE_DATA=DIR python benchmarks/correction_bases.py [--runs N]

The sets of the LPDT paper (public : private : test = 1 : 7 : 2), and red wine public with white wine private. Every figure is an
MSE over that of the smoothed public tree alone on the same rows; the geometric mean leaves out CBM, whose labels nine speeds
determine to the last digit, so that its ratios say nothing.
"""

from __future__ import annotations

import argparse

import numpy as np
import regression_sets
from correction import Rows, mse
from tables import MarkdownTable

BASES = ("tree", "forest", "blend")
EPSILONS = (1.0, 2.0, 4.0, 8.0)
LEFT_OUT = "CBM"
WINE = "red public, white private"


def rows_of(name: str, run: int) -> Rows:
    """A split of a set; the wines as in `correction.py shift`."""
    if name != WINE:
        data = regression_sets.load(name)
        split = regression_sets.splits(data, run)
        return Rows(*((data.X[at], data.y[at]) for at in (split.public, split.private, split.test)))
    red, white = regression_sets.load("RED"), regression_sets.load("WHI")
    test, train = np.split(np.random.default_rng([run, 66]).permutation(white.y.size), [white.y.size // 5])
    return Rows((red.X, red.y), (white.X[train], white.y[train]), (white.X[test], white.y[test]))


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--runs", type=int, default=5)
    options = arguments.parse_args()
    names = (WINE, *regression_sets.LPDT_NAMES)
    lines = MarkdownTable(
        "MSE over the public tree's",
        *(f"{b} alone, eps {' '.join(f'{e:g}' for e in EPSILONS)}" for b in BASES),
    )
    found = []
    for name in names:
        each = np.array([[_figures(name, run, base) for base in BASES] for run in range(options.runs)]).mean(
            axis=0
        )
        ratio = each / each[0, 0]
        lines.row(name, *(" ".join(f"{v:.3f}" for v in row) for row in ratio))
        if name not in (WINE, LEFT_OUT):
            found.append(ratio)
    middle = np.exp(np.log(found).mean(axis=0))
    lines.row(
        f"geometric mean of sets but {LEFT_OUT}", *(" ".join(f"{v:.3f}" for v in row) for row in middle)
    )


def _figures(name: str, run: int, base: str) -> list[float]:
    alone, corrected, _ = mse(rows_of(name, run), EPSILONS, run, base)
    return [alone, *corrected]


if __name__ == "__main__":
    main()
