"""Whether LPCT's intervals of 90 % hold what they should, and whether differences are seen where there are none.

Two features, 500 public and 10,000 private rows (and 100,000), everybody's chance of class 1 a line in the first feature. What is
to be held is the true margin of the private people of each row's cell. The first table is of the default settings, the second of
others, where public and private people are alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tables import MarkdownTable

from ldptree.estimators import LPCTClassifier

Floats = NDArray[np.float64]

N_PUBLIC = 500
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
LAWS: dict[str, Callable[[Floats], Floats]] = {
    "alike": lambda x: 0.3 + 0.4 * x,
    "public people the other way round": lambda x: 0.7 - 0.4 * x,
}
"""Chance of class 1 of public people; of private ones it is the first."""
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"prune": "none"},
    {"lam": 0.0},
    {"lam": 0.0, "prune": "none"},
    {"lam": "auto"},
    {"lam": "auto", "prune": "none"},
    {"lam": math.inf, "prune": "none"},
    {"prune": "variance"},
    {"prune": "paper"},
)
"""What differs from the default."""


def one(
    law: str, n_private: int, epsilon: float, partition: str, run: int, **settings: Any
) -> tuple[float, float, float, float]:
    """Share of people whose interval holds the truth, share that it decides for, share of those it decides wrongly, and whether a
    difference of public and private people was seen.
    """
    rng = np.random.default_rng([run, n_private])
    X = rng.random((N_PUBLIC + n_private, 2))
    is_public = np.arange(len(X)) < N_PUBLIC
    truth = LAWS["alike"](X[:, 0])
    chance = np.where(is_public, LAWS[law](X[:, 0]), truth)
    y = (rng.random(len(X)) < chance).astype(np.int64)
    fitted = LPCTClassifier(epsilon, partition=partition, random_state=run, **settings).fit(
        X, y, public=is_public
    )
    model, private = fitted.model_, X[~is_public]
    cells = model.cells(private)
    people = np.bincount(cells, minlength=fitted.partition_.n_leaves)
    ones = np.bincount(cells, weights=truth[~is_public], minlength=people.size)
    margin = (ones / np.maximum(people, 1) - 0.5)[cells]
    low, high = fitted.margin_interval(private)
    is_decided = (low > 0) | (high < 0)
    is_wrong = is_decided & ((low > 0) != (margin > 0))
    return (
        float(((low <= margin) & (margin <= high)).mean()),
        float(is_decided.mean()),
        float(is_wrong.sum() / max(is_decided.sum(), 1)),
        float((model.discrepancy_sd > 0).any()),
    )


def intervals(runs: int) -> bool:
    """Both laws, both partitions; and alike with ten times as many people. Then other settings than the default."""
    table = MarkdownTable(
        "public and private people, partition: intervals hold / decide for / of these wrongly / a difference seen",
        *(f"eps {e:g}" for e in EPSILONS),
    )
    for law, n_private in (*((law, 10_000) for law in LAWS), ("alike", 100_000)):
        for partition in ("cart", "max-edge"):
            found = [
                np.mean([one(law, n_private, epsilon, partition, run) for run in range(runs)], axis=0)
                for epsilon in EPSILONS
            ]
            cells = (" / ".join(f"{value:.2f}" for value in values) for values in found)
            table.row(f"{law}, {n_private:,} private, {partition}", *cells)
    print()
    others(runs)
    return True


def others(runs: int) -> None:
    """A table of what intervals hold with each of `SETTINGS`: alike, 10,000 private people."""
    table = MarkdownTable(
        "alike, 10,000 private: intervals hold, of each partition",
        *(f"{partition}, eps {e:g}" for partition in ("cart", "max-edge") for e in EPSILONS),
    )
    for settings in SETTINGS:
        found = [
            np.mean([one("alike", 10_000, epsilon, partition, run, **settings)[0] for run in range(runs)])
            for partition in ("cart", "max-edge")
            for epsilon in EPSILONS
        ]
        name = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        table.row(name.replace("'", '"') or "the default", *(f"{value:.2f}" for value in found))
