"""evaluate, where some features are public: scores on held-back private rows beside baselines. What only a simulation can know;
nothing of it is a release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldptree.baselines import BASELINES, select_baselines
from ldptree.encoding import Encoding
from ldptree.errors import DataError
from ldptree.metrics.numbers import bins_of, mse_interval, paired_mse_lead, score_numbers
from ldptree.models.public_view import points_of
from schemas.manifest import Manifest, StoredTranscript
from schemas.tables import EvaluateConfig
from storage import tables
from storage.digests import Hasher
from storage.store import Draft
from tasks import progress
from tasks.artifacts import read_encoding, read_model, read_scaled, write_scores
from tasks.held_back import Rows, at_most, duplicates
from tasks.learning import Asking
from tasks.step import step

Floats = NDArray[np.float64]


@step("evaluate_shown", version="2", home="simulation", order=16, says="scores on held-back private rows")
def evaluate_shown(
    draft: Draft,
    *,
    transcript: StoredTranscript,
    asking: Asking,
    reading: Mapping[str, Any],
    model: Manifest,
    train: Manifest,
    test: Manifest,
    evaluation: EvaluateConfig,
    noise_seed: int | None,
) -> None:
    """Write `scores.json` ("scores"): ours, every baseline, predicted against true in bins, and the count of duplicates."""
    store, seed, target = draft.store, asking.seed, asking.target
    read, _ = read_encoding(store, transcript.encoding)
    learned = read_model(store, model)
    held_back = at_most(evaluation.test_rows, read_complete(store.files(test), read, target), seed)
    known = held_back.is_known
    if not known.any():
        raise DataError(
            "no held-back row has a label: nothing can be scored. Raise dataset.test_fraction, or set evaluate = false."
        )
    labels, raw = held_back.labels[known], held_back.raw[known]
    ours = learned.predict(raw)
    found: dict[str, dict[str, Any]] = {
        "ours": score_numbers(labels, ours).to_json() | {"interval": mse_interval(labels, ours)}
    }
    shards = sorted(store.files(train), key=Hasher().of_file)
    rivals = _rivals(read_scaled(store, transcript.scaled), shards, read, target, raw, evaluation, seed)
    for done, (key, rival) in enumerate(rivals.items()):
        said = rival()
        found[key] = score_numbers(labels, said).to_json() | {
            "interval": mse_interval(labels, said),
            "lead": paired_mse_lead(labels, ours, said),
        }
        progress.advance((done + 1) / len(rivals))
    content = {
        "kind": "regression",
        "scores": found,
        "redraws": [],
        "bins": bins_of(labels, ours),
        "duplicates": duplicates(shards, store.files(test)),
        "n_test": held_back.labels.size,
        "n_test_all": test.rows,
    }
    write_scores(draft, content)


def read_complete(paths: Sequence[Path], encoding: Encoding, target: str) -> Rows:
    """Private rows of Parquet files, labels as numbers (NaN: missing)."""
    table = tables.read(paths, [*encoding.columns, target])
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
            rows = at_most(caps["private"], read_complete(shards, encoding, target), seed)
            X, y = points_of(encoding, rows.raw[rows.is_known]).astype(np.float32), rows.labels[rows.is_known]
        return baseline.fit_predict(X, y, test_X, n_classes=0, max_rows=caps[baseline.reads], seed=seed)

    return {key: lambda key=key: fit(key) for key in select_baselines(n_classes=0)}  # type: ignore[misc]
