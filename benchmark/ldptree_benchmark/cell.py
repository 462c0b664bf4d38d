"""Score a learner on a data set at one epsilon in one repetition, on held-back rows, or each candidate with --paper."""

from __future__ import annotations

import resource
import time
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from ldptree.errors import LdptreeError
from ldptree_benchmark.laws import draw_law
from ldptree_benchmark.learners import learner_of
from ldptree_benchmark.learners.answers import Trial
from ldptree_benchmark.rows import TEST, LabelledRows, find_leaks, read_rows, split_rows
from ldptree_benchmark.suite import Column, Law, Measure, Method, Split
from schemas.manifest import Manifest
from storage.store import Draft, Store
from tasks.step import step


@step("cell", version="4", home="simulation", says="one score of a benchmark")
def score_cell(
    draft: Draft,
    *,
    source: Manifest | Law,
    method: Method,
    dataset: str,
    epsilon: float | None,
    repetition: int,
    seed: int,
    split: Split,
    measure: Measure,
    code: str,
) -> Mapping[str, Any]:
    """Write, for each combination of the method's candidates, the score, other measures, parts of the error if the
    method asks for them, and the seconds that fit and answers took, or why there is no score. Also the memory of the
    process by then, in MiB. `code` is the digest of `ldptree`, the benchmark and the libraries, by
    `ldptree_benchmark.code.digest_code`.

    Raises LdptreeError: no combination has a score.
    """
    rows = rows_of(draft.store, source, dataset, seed, repetition, split)
    learner = learner_of(method.learner, is_number=not rows.n_classes)
    # Of a repetition all epsilons draw with the same coins; methods with coins of their own.
    own = zlib.crc32(f"{dataset}/{method.learner}/{seed}/{repetition}".encode())
    trial, labels = Trial(rows, epsilon, own, method.settings), rows.of(TEST).y
    scores: list[float | None] = []
    columns: list[Mapping[Column, float]] = []
    parts: list[Mapping[str, float]] = []
    timed, reasons = [], []
    with threadpool_limits(1):  # cells are computed side by side
        began = time.monotonic()
        for answer in learner.answer_each(trial, method.combinations, with_parts=method.parts != "none"):
            timed.append(time.monotonic() - began)
            if isinstance(answer, LdptreeError):
                scores.append(None)
                columns.append({})
                parts.append({})
                reasons.append(str(answer))
            else:
                whole = timed[-1] + answer.seconds_before
                scores.append(whole if measure == "seconds" else _score(answer.answers, labels, measure))
                columns.append(answer.columns)
                parts.append(answer.parts)
                reasons.append("")
            began = time.monotonic()
    if all(reasons):
        raise LdptreeError(reasons[0])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "scores": scores, "columns": columns, "parts": parts, "seconds": timed, "reasons": reasons, "process_peak_mib": peak,
        "n_test": len(labels),
    }  # fmt: skip


def _score(answers: NDArray[Any], labels: NDArray[Any], measure: Measure) -> float:
    return float(np.mean(answers == labels) if measure == "accuracy" else np.mean((answers - labels) ** 2))


@step(
    "leaks",
    version="2",
    home="simulation",
    says="what makes a data set's scores look better than they are",
)
def check_leaks(
    draft: Draft, *, source: Manifest | Law, dataset: str, seed: int, split: Split
) -> Mapping[str, Any]:
    """Return what makes scores of the first repetition look better than they are, and the sizes of its parts."""
    rows = rows_of(draft.store, source, dataset, seed, 0, split)
    leaks = find_leaks(rows)
    parts = np.bincount(rows.part, minlength=3).tolist()
    return {**asdict(leaks), "parts": parts, "features": rows.X.shape[1]}


def rows_of(
    store: Store, source: Manifest | Law, dataset: str, seed: int, repetition: int, split: Split
) -> LabelledRows:
    """The split rows of one repetition. Raises DataError, ConfigError."""
    if isinstance(source, Law):
        rows = draw_law(source.law, source.parameters, [zlib.crc32(dataset.encode()), seed, repetition])
    else:
        rows = read_rows(store, source)
    return split_rows(rows, dataset, seed, repetition, split)
