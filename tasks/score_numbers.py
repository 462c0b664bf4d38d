"""What evaluate does where the label is a number: ours, rivals and redraws by their squared errors. Nothing of it is a release.

The learning and scoring themselves are in `ldptree`; which rows are scored is in `evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.baselines import BASELINES, select_baselines
from ldptree.coins import Words
from ldptree.families.fit_numbers import fit_regression
from ldptree.families.tree_public import PublicLabels
from ldptree.metrics.numbers import bins_of, mse_interval, paired_mse_lead, score_numbers
from ldptree.models.tree import NumberTree
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.totals import Totals
from ldptree.simulate.redraws import KnownHolders
from schemas.tables import EvaluateConfig
from tasks import progress
from tasks.held_back import Rows, known_labels, some_private

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Question:
    """What was asked and learned, and everything it is scored with."""

    protocol: Protocol
    learned: NumberTree
    public: PublicLabels
    public_rows: tuple[NDArray[np.float32], Floats]
    shards: Sequence[Path]
    how: dict[str, Any]
    evaluation: EvaluateConfig
    seed: int
    words: Callable[[int], Words]
    """The coins of a redraw by its number."""


def scored(question: Question, held_back: Rows) -> dict[str, Any]:
    """Scores of ours and every rival on the held-back rows, the redraws' errors, and predicted against true in bins."""
    labels = held_back.labels[held_back.is_known]
    raw = held_back.raw[held_back.is_known]
    ours = question.learned.predict(raw)
    holders = known_labels(question.shards, question.protocol)
    progress.advance(0.2)
    found = {"ours": score_numbers(labels, ours).to_json() | {"interval": mse_interval(labels, ours)}}
    rivals = _rivals(question, holders, raw)
    with ThreadPoolExecutor(2) as pool:
        # The last take longest: begun first, they do not end alone.
        answers = {key: pool.submit(rivals[key]) for key in reversed(rivals)}
        for done, key in enumerate(rivals):
            said = answers[key].result()
            found[key] = score_numbers(labels, said).to_json() | {
                "interval": mse_interval(labels, said),
                "lead": paired_mse_lead(labels, ours, said),
            }
            progress.advance(0.2 + 0.7 * (done + 1) / len(rivals))
    nodes = question.learned.nodes(raw)
    redraws = []
    for number in range(question.evaluation.redraws):
        totals = holders.drawn_again(question.words(number))
        model = fit_regression(question.protocol, totals, question.public, **question.how)
        redraws.append(score_numbers(labels, model.estimate[:, 0][nodes]).mse)
    return {"kind": "regression", "scores": found, "redraws": redraws, "bins": bins_of(labels, ours)}


def _rivals(question: Question, holders: KnownHolders, raw: Floats) -> dict[str, Callable[[], Floats]]:
    """Each rival as a call that gives its predictions."""
    protocol, evaluation = question.protocol, question.evaluation
    depth = protocol.partition.max_depth
    true = Totals.exact_numbers(*holders.sums(), mechanism=protocol.mechanism, depth=depth)
    test_X = protocol.encoding.encode(raw)
    caps = {"public": evaluation.public_rows, "private": evaluation.private_rows}

    def exactly(**how: Any) -> Floats:
        model = fit_regression(protocol, true, question.public, **(question.how | how))
        return model.predict(raw)

    def fit(key: str) -> Floats:
        baseline = BASELINES[key]
        X, y = question.public_rows
        if baseline.reads == "private":
            X, y = some_private(question.shards, protocol, caps["private"], question.seed)
        return baseline.fit_predict(
            X, y, test_X, n_classes=0, max_rows=caps[baseline.reads], seed=question.seed
        )

    return {
        "public_only": lambda: exactly(lam=np.inf),
        "no_noise": exactly,
        **{key: lambda key=key: fit(key) for key in select_baselines(n_classes=0)},  # type: ignore[misc]
    }
