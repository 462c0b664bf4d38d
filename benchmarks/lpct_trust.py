"""What it gains to trust the cells of a CART as far as public rows held out say, beside taking them at their word."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from lpct_leaves import DEPTHS, sets
from lpct_trials import asked, coins
from tables import MarkdownTable

EPSILONS = (0.5, 1.0, 2.0, 4.0)


def gains(runs: int) -> bool:
    """Accuracy above that of cells taken at their word, by set, mean of `DEPTHS`, on the same reports."""
    table = MarkdownTable(
        "accuracy above that of inflation 1", *(f"eps {e:g}" for e in EPSILONS), "inflations, by depth"
    )
    each = []
    for name, draw in sets().items():
        found, factors = np.empty((len(EPSILONS), runs)), []
        for run in range(runs):
            sample = draw(run)
            for i, epsilon in enumerate(EPSILONS):
                trials = [asked(sample, epsilon, coins(run, p), depth=p) for p in DEPTHS]
                found[i, run] = np.mean([t.accuracy() - replace(t, inflation=1.0).accuracy() for t in trials])
            factors.append([t.inflation for t in trials])
        each.append(found)
        cells = (f"{f.mean():+.4f} ± {f.std(ddof=1) / math.sqrt(runs):.4f}" for f in found)
        table.row(name, *cells, ", ".join(f"{f:g}" for f in np.median(factors, axis=0)))
    all_sets = np.array(each)
    errors = np.sqrt(all_sets.var(axis=-1, ddof=1).sum(axis=0)) / (math.sqrt(runs) * len(each))
    table.row(
        f"mean of {len(each)} sets",
        *(f"{m:+.4f} ± {e:.4f}" for m, e in zip(all_sets.mean(axis=(0, 2)), errors, strict=True)),
        "",
    )
    return True
