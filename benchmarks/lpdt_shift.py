"""Red wine public, white wine private: `lpdt.py shift`.

Public and private people differ; the tree and the range are those of all 1,599 red wines, a fifth of the 4,898 white ones is
kept for the test. What is fitted differs, the reports do not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from lpdt_trials import Planted, Rows, asked, automatic_depths_of, coins, planted
from regression_sets import load
from tables import MarkdownTable

from ldptree.inference.depth import NumberDepths

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
SETTINGS: dict[str, dict[str, Any]] = {
    "learned (default)": {},
    "trusting public rows (lam = auto)": {"lam": "auto"},
    "private reports alone (lam = 0)": {"lam": 0.0},
    "public rows alone (lam = inf)": {"lam": math.inf},
}


def wines(runs: int) -> bool:
    """A table of mean test errors; whether the default is below public rows alone from eps 2 on."""
    red, white = load("RED"), load("WHI")
    found: dict[tuple[str, float], list[float]] = {}
    seen: dict[float, list[float]] = {epsilon: [] for epsilon in EPSILONS}
    known: dict[NumberDepths, Planted] = {}
    for run in range(runs):
        order = np.random.default_rng([run, 40_000]).permutation(white.y.size)
        test, private = np.split(order, [white.y.size // 5])
        rows = Rows(
            public_X=red.X,
            public_y=red.y,
            X=white.X[private],
            y=white.y[private],
            test_X=white.X[test],
            test_y=white.y[test],
        )
        for number, epsilon in enumerate(EPSILONS):
            depth = automatic_depths_of(rows, epsilon)
            tree = planted(rows, depth)
            known.setdefault(depth, tree)
            one = asked(tree, epsilon, *coins(run, number))
            for name, setting in SETTINGS.items():
                # the public rows are the same in every run, and so is what they say
                model = one.model(known[depth].public, **setting)
                found.setdefault((name, epsilon), []).append(one.score(model))
                if not setting:
                    seen[epsilon].append(model.mean_discrepancy[0])
    table = MarkdownTable("white wine, MSE", *(f"eps {e:g}" for e in EPSILONS))
    for name in SETTINGS:
        table.figures(name, [float(np.mean(found[name, e])) for e in EPSILONS])
    errors = [float(np.std(found["learned (default)", e]) / math.sqrt(runs)) for e in EPSILONS]
    table.figures("(standard error of learned)", errors)
    table.figures("private less public mean, learned", [float(np.mean(seen[e])) for e in EPSILONS], "+.2f")
    ours, public = (
        [np.mean(found[name, e]) for e in EPSILONS[2:]]
        for name in ("learned (default)", "public rows alone (lam = inf)")
    )
    return bool(np.less(ours, public).all())
