"""What private features of no use cost, and whether stated shares hold: python benchmarks/public_features_checks.py SUITE

    useless       excess error with seven private columns of no use (six levels of a category, a skewed number) over that without
    explained     the share of the label's variance that public features are stated to explain, beside the model's on new labels

Seeds are fixed.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ldptree.estimators.public_features import PublicFeatureRegressor

Floats = NDArray[np.float64]
FRESH = 4_000
STATED = re.compile(r"explain about (\d+)% \((\d+)% to (\d+)%\)")


def step(X: Floats) -> Floats:
    """The mean label, float64 [n]: a slope and a step."""
    return np.asarray(3 * X[:, 0] + 2 * (X[:, 1] > 0.75))


def useless(runs: int) -> None:
    """A row of the table for each number of holders."""
    print(
        "| holders, eps | with | without | ratio | asked the label | asked nothing |\n|---|---|---|---|---|---|"
    )
    for n, epsilon in ((3000, 2.0), (3000, 4.0), (5000, 2.0), (5000, 4.0), (8000, 2.0), (8000, 4.0)):
        figures = np.mean([_with_and_without(n, epsilon, run) for run in range(runs)], axis=0)
        with_them, without, label, nothing = figures
        print(
            f"| {n:,}, {epsilon:g} | {with_them:.3f} | {without:.3f} | {with_them / without:.2f} "
            f"| {label:,.0f} | {nothing:,.0f} |",
            flush=True,
        )


def _with_and_without(n: int, epsilon: float, run: int) -> tuple[float, float, float, float]:
    rng = np.random.default_rng(run)
    X = rng.random((n + FRESH, 3))
    levels = np.eye(6)[rng.choice(6, n + FRESH, p=[0.4, 0.3, 0.15, 0.1, 0.04, 0.01])]
    everything = np.column_stack([X, levels, rng.lognormal(0, 1, n + FRESH) / 30])
    y = step(X) + rng.normal(0, 0.7, n + FRESH)
    excess, fits = [], []
    for rows, private in ((everything, list(range(3, 10))), (X, [])):
        fitted = PublicFeatureRegressor(
            epsilon, private_features=private, label_range=(-2, 10), feature_range=(0, 1), random_state=run
        ).fit(rows[:n], y[:n])
        excess.append(float(np.mean((fitted.predict(rows[n:]) - step(X[n:])) ** 2)))
        fits.append(fitted)
    asked = [(answers.question.about, len(answers.respondents)) for answers in fits[0].rounds_]
    label = sum(size for about, size in asked if about.startswith("the label by"))
    return excess[0], excess[1], label, n - sum(size for _, size in asked)


def explained(runs: int) -> None:
    """A row of the table for each epsilon and law of the label."""
    print(
        "| eps, noise | stated | the model's own | bands that hold it | nothing stated |\n|---|---|---|---|---|"
    )
    for epsilon in (1.0, 2.0, 4.0):
        for law in ("normal", "skewed"):
            found = [one for run in range(runs) if (one := _stated_and_true(epsilon, law, run)) is not None]
            stated, true, holds = np.mean(found, axis=0) if found else (np.nan,) * 3
            print(
                f"| {epsilon:g}, {law} | {stated:.2f} | {true:.2f} | {holds * len(found):.0f} of {len(found)} "
                f"| {runs - len(found)} |",
                flush=True,
            )


def _stated_and_true(
    epsilon: float, law: str, run: int, n: int = 10_000
) -> tuple[float, float, float] | None:
    rng = np.random.default_rng(run)
    X = rng.random((n + FRESH, 4))
    mean = step(X) + 0.5 * X[:, 2]
    if law == "normal":
        y, ends = mean + rng.normal(0, 0.7, n + FRESH), (-2, 10)
    else:
        y, ends = 2000 * np.exp(0.6 * mean - 1 + rng.normal(0, 0.3, n + FRESH)), (0, 50_000)
    fitted = PublicFeatureRegressor(epsilon, private_features=[3], label_range=ends, random_state=run)
    model = fitted.fit(X[:n], y[:n]).model_
    stated = STATED.search(model.says)
    if stated is None:
        return None
    label = next(a.question for a in fitted.rounds_ if a.question.about.startswith("the label by"))
    middle = label.surface.intercept
    cut = np.clip(y[n:], middle - label.half, middle + label.half)
    true = 1 - float(np.mean((cut - model.surface(model.scaled(X[n:]))) ** 2) / cut.var())
    share, low, high = (int(figure) / 100 for figure in stated.groups())
    return share, true, float(low <= true <= high)


SUITES: dict[str, tuple[Callable[[int], None], int]] = {"useless": (useless, 6), "explained": (explained, 12)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--runs", type=int)
    arguments = parser.parse_args()
    suite, default = SUITES[arguments.suite]
    suite(arguments.runs or default)
