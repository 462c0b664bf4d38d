"""A difference that all private people have in common, or half of them: `lpdt.py common`.

Labels are 3 x_1 + 2 [x_2 > .75] + N(0, .8^2) on four even features, private ones a shift higher, everywhere or where x_3 > .5, of
which public labels know nothing; 1,500 public rows. Printed are
how often the default sees the shift, its squared distance from the true mean, and how often its 90 % intervals hold that mean,
averaged over each of its cells; beside the same with the depth that public rows carry, 6, asked about whole.
"""

from __future__ import annotations

import numpy as np

from ldptree.estimators import LPDTRegressor

N_PUBLIC, NOISE = 1500, 0.8
SHIFTS = (0.0, 0.3, 0.7, 1.5)
"""In standard deviations of the labels' noise."""
LOCAL = 1.5
"""The same, where only half of the private people differ."""
ASKED = ((12_000, 0.5), (12_000, 1.0), (12_000, 2.0), (40_000, 1.0), (40_000, 2.0))


def one(
    n: int, epsilon: float, shift: float, depth: str | int, run: int, *, is_local: bool = False
) -> tuple[float, float, float]:
    """Whether a difference was seen, the squared error, and the share of private rows in whose cell the interval holds."""
    rng = np.random.default_rng(run)
    X, is_public = rng.random((n, 4)), np.arange(n) < N_PUBLIC
    is_shifted = ~is_public & (X[:, 2] > (0.5 if is_local else -1.0))
    truth = 3 * X[:, 0] + 2 * (X[:, 1] > 0.75) + np.where(is_shifted, shift * NOISE, 0.0)
    found = LPDTRegressor(epsilon, depth=depth, random_state=run).fit(
        X, truth + rng.normal(0, NOISE, n), is_public
    )
    rows, truth = X[~is_public], truth[~is_public]
    nodes = found.model_.nodes(rows)
    low, high = (end[:, 0] for end in found.model_.interval(0.9))
    count = np.bincount(nodes, minlength=low.size)
    mean = np.bincount(nodes, truth, low.size) / np.maximum(count, 1)
    inside = float(count @ ((low <= mean) & (mean <= high)) / count.sum())
    return float(found.model_.discrepancy.any()), float(np.mean((found.predict(rows) - truth) ** 2)), inside


def common(runs: int) -> bool:
    """A table; whether the largest shift is seen in nearly all runs from eps 1 on."""
    print(
        "| people | eps | shift / noise sd | seen | squared error | intervals hold | at depth 6: seen | error | hold |"
    )
    print("|---" * 9 + "|")
    is_seen = True
    for n, epsilon in ASKED:
        for shift, is_local in (*((shift, False) for shift in SHIFTS), (LOCAL, True)):
            ours, deep = (
                np.mean(
                    [one(n, epsilon, shift, depth, run, is_local=is_local) for run in range(runs)], axis=0
                )
                for depth in ("auto", 6)
            )
            if shift == SHIFTS[-1] and epsilon >= 1 and not is_local:
                is_seen &= bool(ours[0] >= 0.9)
            cells = " | ".join(f"{seen:.0%} | {error:.3f} | {hold:.0%}" for seen, error, hold in (ours, deep))
            where = " where x_3 > .5" if is_local else ""
            print(f"| {n - N_PUBLIC:,} | {epsilon:g} | {shift:g}{where} | {cells} |", flush=True)
    return is_seen
