"""From how many public rows on a corrected public model is the better: LDPTREE_DATA=DIR python benchmarks/recommended.py

For each set, number of public rows and epsilon: the tree that is learned from reports | the corrected public model, mean of
three draws; accuracy of classes, MSE of numbers. "differ": private labels are others (a third flipped, or .7 standard deviations
higher) where the column that says most about the label is above its median.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import regression_sets
from correction_samples import census, diabetes, employee
from lpct_samples import chicago, companies, wine
from numpy.typing import NDArray

from ldptree.estimators import CorrectionClassifier, CorrectionRegressor, LPCTClassifier, LPDTRegressor

PUBLIC = (10, 20, 50, 100, 200, 500)
EPSILONS = (1.0, 2.0, 4.0)
DRAWS = 3
MOST_ROWS = 20_000


def sets() -> Iterator[tuple[str, NDArray[Any], NDArray[Any], bool]]:
    """Name, features, labels, and whether they are classes."""
    tables = {
        "census": census(),
        "chicago": chicago(companies()[0]),
        "wine": wine(),
        "employee": employee(),
        "diabetes": diabetes(),
    }
    for name, table in tables.items():
        yield name, np.nan_to_num(table.X, nan=float(np.nanmedian(table.X))), table.y, True
    for name in ("ABA", "HOU"):
        found = regression_sets.load(name)
        yield name, found.X, found.y, False


def scores(
    X: NDArray[Any],
    y: NDArray[Any],
    is_class: bool,
    n_public: int,
    *,
    differ: bool,
    epsilon: float,
    draw: int,
) -> tuple[float, float] | None:
    """Of the tree, and of the correction; None where public rows have one class."""
    rng = np.random.default_rng([draw, n_public, differ])
    rows = rng.permutation(len(y))[:MOST_ROWS]
    public, test, private = np.split(rows, [n_public, n_public + len(rows) // 5])
    truth = y.copy()
    if differ:
        says = [abs(np.corrcoef(column, y)[0, 1]) if column.std() else 0.0 for column in X.T]
        column = X[:, int(np.argmax(says))]
        where = (column > np.median(column)) & ~np.isin(np.arange(len(y)), public)
        flipped = where & (rng.random(len(y)) < 0.35)
        truth = np.where(flipped, 1 - y, y) if is_class else y + 0.7 * y.std() * where
    if is_class and len(np.unique(truth[public])) < 2:
        return None
    learned = np.r_[public, private]
    mask = np.arange(len(learned)) < n_public
    found = []
    for kind in (LPCTClassifier, CorrectionClassifier) if is_class else (LPDTRegressor, CorrectionRegressor):
        model = kind(epsilon=epsilon, random_state=draw).fit(X[learned], truth[learned], public=mask)
        answers = model.predict(X[test])
        found.append(float(np.mean(answers == truth[test] if is_class else (answers - truth[test]) ** 2)))
    return found[0], found[1]


def main() -> None:
    """Print the table, a line as soon as it is known."""
    warnings.simplefilter("ignore")
    print("| set | private people | public rows |" + "".join(f" eps {one:g} |" for one in EPSILONS))
    print("|---|---|---|" + "---|" * len(EPSILONS))
    for name, X, y, is_class in sets():
        for differ in (False, True):
            for n_public in PUBLIC:
                cells = []
                for epsilon in EPSILONS:
                    draws = [
                        scores(X, y, is_class, n_public, differ=differ, epsilon=epsilon, draw=draw)
                        for draw in range(DRAWS)
                    ]
                    known = np.array([one for one in draws if one is not None])
                    cells.append(
                        " \\| ".join(f"{one:.4g}" for one in known.mean(axis=0)) if len(known) else ""
                    )
                kind = "differ" if differ else "alike"
                print(f"| {name} | {kind} | {n_public} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
