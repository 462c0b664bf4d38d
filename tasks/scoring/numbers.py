"""Score numbers by squared error, for ours, rivals and redraws. No score is a release.

The learning and scoring themselves are in `ldptree`; which rows are scored is in `evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.coins import Words
from ldptree.families.tree_fit import fit_regression
from ldptree.mechanisms import Mechanism
from ldptree.metrics.numbers import bins_of, mse_interval, paired_mse_lead, score_numbers
from ldptree.protocol.totals import Totals
from ldptree.simulate.redraws import KnownHolders
from tasks import progress
from tasks.scoring.held_back import Rows, Trial, answer_all

Floats = NDArray[np.float64]


def score_trial(trial: Trial, held_back: Rows) -> dict[str, Any]:
    """Scores of ours and every rival on the held-back rows, the redraws' errors, and predicted against true in bins."""
    labels = held_back.labels[held_back.is_known]
    raw = held_back.raw[held_back.is_known]
    ours = trial.learned.predict(raw)
    holders = KnownHolders(trial.protocol, *trial.gather_known())
    progress.advance(0.2)
    scores = {"ours": score_numbers(labels, ours).to_json() | {"interval": mse_interval(labels, ours)}}
    rivals = _rivals(trial, holders, raw)
    for done, (key, answer) in enumerate(answer_all(rivals), start=1):
        scores[key] = score_numbers(labels, answer).to_json() | {
            "interval": mse_interval(labels, answer),
            "lead": paired_mse_lead(labels, ours, answer),
        }
        progress.advance(0.2 + 0.7 * done / len(rivals))
    nodes = trial.learned.nodes(raw)

    def score(mechanism: Mechanism, words: Words) -> float:
        totals = holders.drawn_again(words, mechanism=mechanism)
        model = fit_regression(trial.protocol, totals, trial.evidence, **trial.how)
        return score_numbers(labels, model.estimate[:, 0][nodes]).mse

    return {"kind": "regression", "scores": scores, "bins": bins_of(labels, ours), **trial.redraw(score)}


def _rivals(trial: Trial, holders: KnownHolders, raw: Floats) -> dict[str, Callable[[], Floats]]:
    """Each rival as a call that gives its predictions."""
    protocol = trial.protocol
    depth = protocol.partition.max_depth
    true = Totals.exact_numbers(*holders.sums(), mechanism=protocol.mechanism, depth=depth)

    def exactly(**how: Any) -> Floats:
        model = fit_regression(protocol, true, trial.evidence, **(trial.how | how))
        return model.predict(raw)

    return {
        "public_only": lambda: exactly(lam=np.inf),
        "no_noise": exactly,
        **trial.rivals(raw),
    }
