"""Score a family that asked in rounds, and baselines, by squared error. No score is a release.

The learning and scoring themselves are in `ldptree`; which rows are scored is in `evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.baselines import BASELINES, select_baselines
from ldptree.encoding import Encoding
from ldptree.metrics.numbers import bins_of, compare_numbers
from ldptree.models import Model
from ldptree.models.public_view import points_of
from schemas.tables import EvaluateConfig
from storage import tables
from tasks.scoring.held_back import Rows, answer_all, read_drawn

Floats = NDArray[np.float64]


def score_rounds(
    learned: Model,
    encoding: Encoding,
    target: str,
    public_rows: tuple[NDArray[np.float32], Floats],
    shards: Sequence[Path],
    held_back: Rows,
    evaluation: EvaluateConfig,
    seed: int,
) -> dict[str, Any]:
    """Scores of ours and every baseline, and predicted against true in bins."""
    known = held_back.is_known
    labels, raw = held_back.labels[known], held_back.raw[known]
    ours = learned.predict(raw)
    rivals = _rivals(public_rows, shards, encoding, target, raw, evaluation, seed)
    scores = compare_numbers(labels, {"ours": ours, **dict(answer_all(rivals, 0.0))})
    return {"kind": "regression", "scores": scores, "redraws": [], "bins": bins_of(labels, ours)}


def read_complete(paths: Sequence[Path], encoding: Encoding, target: str, *, at_most: int, seed: int) -> Rows:
    """Read private rows of Parquet files as `read_drawn` does, with labels as numbers (NaN if missing)."""
    table = read_drawn(paths, [*encoding.columns, target], at_most=at_most, seed=seed)
    return Rows(tables.raw_matrix(table, encoding), tables.label_numbers(table.column(target)))


def _rivals(
    public: tuple[NDArray[np.float32], Floats],
    shards: Sequence[Path],
    encoding: Encoding,
    target: str,
    raw: Floats,
    evaluation: EvaluateConfig,
    seed: int,
) -> dict[str, Callable[[], Floats]]:
    """Each rival as a call that gives its predictions."""
    test_X = points_of(encoding, raw).astype(np.float32)
    caps = {"public": evaluation.public_rows, "private": evaluation.private_rows}

    def fit(key: str) -> Floats:
        baseline = BASELINES[key]
        X, y = public
        if baseline.reads == "private":
            rows = read_complete(shards, encoding, target, at_most=caps["private"], seed=seed)
            X, y = points_of(encoding, rows.raw[rows.is_known]).astype(np.float32), rows.labels[rows.is_known]
        return baseline.fit_predict(X, y, test_X, n_classes=0, max_rows=caps[baseline.reads], seed=seed)

    return {key: lambda key=key: fit(key) for key in select_baselines(n_classes=0)}  # type: ignore[misc]
