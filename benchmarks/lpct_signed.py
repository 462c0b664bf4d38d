"""Signed subsets beside the joint report: the same samples and seeds, learned weighting and smoothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from lpct_samples import PAIRS, Sample, chicago, companies, synthetic_pair
from lpct_trials import asked, coins
from numpy.typing import NDArray
from tables import MarkdownTable, standard_error

from ldptree.inference.depth import automatic_depth
from ldptree.mechanisms import mechanism_for

EPSILONS = (0.5, 1.0, 2.0, 4.0)
MECHANISMS = ("auto", "signed_subset")
CELLS = (4, 16, 64, 256)
DEPTHS = (2, 4, 6)
N_FEATURES = 2
"""Of the pairs."""

Trial = tuple[Sample, Sequence[int], dict[str, Any]]
"""Rows, the seed of the holders' coins, and settings of `asked`."""


def side_by_side(runs: int) -> bool:
    """Noise of a margin; accuracy on the pairs (`runs` draws) and on Chicago (a fifth as many splits)."""
    noise()
    table = MarkdownTable("accuracy", *(f"eps {e:g}" for e in EPSILONS))
    for gamma, n_public in PAIRS.items():
        pairs = list(draws(gamma, runs))
        sizes = N_FEATURES, len(pairs[0][0].y)
        for mechanism in MECHANISMS:
            depths = (automatic_depth(*sizes, e, 2, mechanism) for e in EPSILONS)
            table.row(f'(automatic depth, mechanism="{mechanism}")', *depths)
        compared(table, f"gamma {gamma:g}, n_Q {n_public}", accuracies(pairs))
        same = accuracies(pairs, partial(automatic_depth, *sizes, n_classes=2))
        compared(table, f"gamma {gamma:g}, the tree of auto", same)
    found = accuracies(trips(max(2, runs // 5)))
    compared(table, "Chicago, eight companies, three depths", found)
    for i, depth in enumerate(DEPTHS):
        compared(table, f"Chicago, depth {depth}", found[i :: len(DEPTHS)])
    return True


def draws(gamma: float, runs: int) -> Iterator[Trial]:
    """Of a synthetic pair."""
    for run in range(runs):
        yield synthetic_pair(gamma, run), (run,), {"partition": "max-edge", "known": (0.0, 1.0)}


def trips(splits: int) -> Iterator[Trial]:
    """Of every company, split and depth."""
    for company in companies():
        table_of = chicago(company)
        for run in range(splits):
            sample = table_of.split(run)
            for depth in DEPTHS:
                yield sample, (run, depth), {"depth": depth}


def noise() -> None:
    """Noise variance of a margin and of a count where nobody is, over those of the joint report."""
    table = MarkdownTable("noise variance, over the joint report's", *(f"eps {e:g}" for e in EPSILONS))
    nobody = np.zeros((1, 2))
    for name, weights in (("a margin", (-0.5, 0.5)), ("a count", (1.0, 1.0))):
        for cells in CELLS:
            others = np.append(np.full(2 * cells, 0.5 / cells), 0.0)
            joint, ours = (
                [
                    mechanism_for(m, e, cells, 2).cell_variance(weights, [1], nobody, others)[0]
                    for e in EPSILONS
                ]
                for m in MECHANISMS
            )
            table.row(f"{name}, {cells} cells", *(f"{b / a:.2f}" for a, b in zip(joint, ours, strict=True)))
    print(flush=True)


def accuracies(trials: Iterable[Trial], depth: Callable[[float], int] | None = None) -> NDArray[np.float64]:
    """Of both mechanisms at every epsilon, float64 [trials, 2, epsilons]."""
    return np.array(
        [
            [
                [
                    asked(
                        sample,
                        epsilon,
                        coins(*seed),
                        mechanism=mechanism,
                        inflation=1.0,
                        **how | ({} if depth is None else {"depth": depth(epsilon)}),
                    ).accuracy()
                    for epsilon in EPSILONS
                ]
                for mechanism in MECHANISMS
            ]
            for sample, seed, how in trials
        ]
    )


def compared(table: MarkdownTable, name: str, found: NDArray[np.float64]) -> None:
    """Mean accuracies, and the mean difference with its standard error over trials."""
    for mechanism, values in zip(MECHANISMS, found.mean(axis=0), strict=True):
        table.measured(f'{name}: mechanism="{mechanism}"', values.tolist())
    above = (found[:, 1] - found[:, 0]).T
    table.row(f"{name}: difference", *(f"{a.mean():+.4f} ± {standard_error(a):.4f}" for a in above))
