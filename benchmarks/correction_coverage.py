"""How often two standard deviations of a correction cover the truth: python benchmarks/correction_coverage.py [--base B]

A made-up law: y = 2 x0 + sin(2 x1) + N(0, 1) on four normal columns, 1,500 public people and 8,000 private ones, of whom those
with x2 > 0 have labels that are higher by a shift. Base "boosting", or another one. The truth of a cell is the mean error of the
public model on 60,000 more private people. Beside it the reports' own intervals, which know nothing but noise.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
from correction import FAMILY, public_view
from numpy.typing import NDArray
from tables import MarkdownTable

from ldptree.coins import Words
from ldptree.families.correction_plan import CorrectionPlan, make_plan
from ldptree.families.corrections import ResidualEstimates, correct
from ldptree.public_models.fit import BASES
from ldptree.simulate.redraws import KnownHolders

Floats = NDArray[np.float64]
N_PUBLIC, N_PRIVATE, N_TRUTH = 1_500, 8_000, 60_000
SHIFTS, EPSILONS = (0.0, 0.3, 1.0, 2.0), (1.0, 4.0)
FEWEST = 30
"""Of the people whose errors make the truth, below which a cell's is not known well enough."""


def people(rng: np.random.Generator, n: int, shift: float) -> tuple[Floats, Floats, Floats]:
    """Rows, labels and expected labels."""
    X = rng.normal(size=(n, 4))
    expected = 2 * X[:, 0] + np.sin(2 * X[:, 1]) + shift * (X[:, 2] > 0)
    return X, expected + rng.normal(size=n), expected


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--base", choices=BASES, default="boosting")
    arguments.add_argument("--runs", type=int, default=25)
    options = arguments.parse_args()
    rng = np.random.default_rng(0)
    X, y, _ = people(rng, N_PUBLIC, 0.0)
    public = public_view(replace(FAMILY, base=options.base), (X, y), ())
    lines = MarkdownTable(
        "shift, eps", "cells", "covered by the correction's 2 sd", "by the reports' own 2 sd"
    )
    for shift in SHIFTS:
        for epsilon in EPSILONS:
            plan = make_plan(public.evidence, epsilon=epsilon, n_holders=N_PRIVATE)
            protocol = replace(FAMILY, epsilon=epsilon).publish(public, plan)
            truth, is_known = true_means(rng, plan, protocol, shift)
            hits = np.zeros(2)
            for run in range(options.runs):
                raw, labels, _ = people(rng, N_PRIVATE, shift)
                holders = KnownHolders(
                    protocol, protocol.cells(raw), protocol.residuals(raw, labels).astype(np.float32)
                )
                seen = ResidualEstimates.of(
                    plan, holders.drawn_again(Words.seeded(np.random.SeedSequence([run, 1])))
                )
                found = correct(plan, [seen])
                off = np.abs(found.correction[:, 0] - truth) <= 2 * found.sd[:, 0]
                own = np.abs(seen.mean - truth) <= 2 * np.sqrt(seen.variance)
                hits += [off[is_known].mean(), own[is_known].mean()]
            shown = (f"{h / options.runs:.2f}" for h in hits)
            lines.row(f"{shift:g}, {epsilon:g}", str(plan.partition.n_leaves), *shown)


def true_means(
    rng: np.random.Generator, plan: CorrectionPlan, protocol: Any, shift: float
) -> tuple[Floats, NDArray[np.bool_]]:
    """The mean error of the public model in each cell, and whether enough people are in it."""
    raw, _, expected = people(rng, N_TRUTH, shift)
    cells, errors = protocol.cells(raw), protocol.residuals(raw, expected)
    count = np.bincount(cells, minlength=plan.partition.n_leaves)
    return np.bincount(cells, errors, count.size) / np.maximum(count, 1), count >= FEWEST


if __name__ == "__main__":
    main()
